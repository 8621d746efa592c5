//! The closed loop: so many slots, each sending one request after the other.

use std::{
    cell::{Cell, OnceCell, RefCell},
    io,
    rc::Rc,
    task::Poll,
    time::{Duration, Instant},
};

use tokdyno_domain::{
    meter::{ApiKey, MeterEventKind, Phase, Progress, RequestEvent},
    metrics::Traced,
    prompts::PromptSet,
    record::{ChunkTrace, FailureKind, RequestRecord},
    workload::limits,
};
use tokio::task::JoinSet;

use crate::{
    cancel::CancelFlag,
    connection::{Connection, Target},
    events::Emitter,
    progress::{Outlook, Speed, Standing},
    reply::{Reply, Sent},
    request::Template,
};

/// One read never takes more; shared by all slots of the thread.
const READ_BUFFER: usize = 64 << 10;
/// How long the end of a reply's body is waited for after `[DONE]`.
const LINGER: Duration = Duration::from_secs(2);
/// How often progress is told.
const TICK: Duration = Duration::from_millis(250);
/// Failed connections in a row after which going on is pointless.
const HOPELESS: u32 = 100;
/// How long a slot without a connection waits while others have theirs: without a
/// pause it would use up the requests before any of these is answered.
const PAUSE: Duration = Duration::from_millis(100);
/// Slots that send their first request in each millisecond. All at once would be a
/// burst that waits in the server's sockets, and each later wave would be one, too.
const RAMP: usize = 40;
/// Connections opened at the same time, so that a listener's queue holds them.
const OPENING: usize = 64;

/// What all stages of a run share.
pub(crate) struct Shared {
    pub(crate) origin: Instant,
    pub(crate) target: Target,
    pub(crate) template: Template,
    pub(crate) key: Option<ApiKey>,
    pub(crate) prompts: PromptSet,
    pub(crate) seed: u64,
    pub(crate) idle: Duration,
    pub(crate) emitter: Emitter,
    /// Raised by the user, by a lost reader, or by ourselves with a reason.
    pub(crate) stop: CancelFlag,
    /// Why we stopped by ourselves.
    pub(crate) hopeless: OnceCell<String>,
    pub(crate) buffer: RefCell<Vec<u8>>,
    pub(crate) stages: u32,
    pub(crate) outlook: RefCell<Outlook>,
}

/// When a load stops issuing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Until {
    Requests(u32),
    Seconds(f64),
}

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadPlan {
    pub(crate) stage: u32,
    pub(crate) warming: bool,
    pub(crate) concurrency: u32,
    pub(crate) until: Until,
    pub(crate) first_prompt: u64,
    pub(crate) max_tokens: u32,
}

/// Slots with their connections, kept from one load to the next.
pub(crate) type Slots = Vec<Option<Connection>>;

/// A load under way.
struct Load {
    shared: Rc<Shared>,
    plan: LoadPlan,
    started: Instant,
    issued: Cell<u32>,
    sent: Cell<u32>,
    in_flight: Cell<u32>,
    done: Cell<u64>,
    failed: Cell<u64>,
    connect_failures: Cell<u32>,
    /// Tokens that arrived, and those of replies that are over.
    tokens: Cell<u64>,
    tokens_over: Cell<u64>,
    records: RefCell<Vec<Traced>>,
}

impl Shared {
    /// A buffer for [`Shared::buffer`].
    pub(crate) fn new_buffer() -> RefCell<Vec<u8>> {
        RefCell::new(vec![0; READ_BUFFER])
    }

    fn secret(&self) -> Option<&str> {
        self.key.as_ref().map(ApiKey::reveal)
    }

    /// Sends one request and reads its reply into `reply`. On return the
    /// connection is still there if it may be used again.
    pub(crate) async fn exchange(
        &self,
        slot: &mut Option<Connection>,
        request: &[u8],
        sent_at: Instant,
        reply: &mut Reply,
        on_tokens: impl Fn(u32),
    ) {
        let Some(connection) = slot.as_mut() else {
            return;
        };
        let ns = |at: Instant| nanos(at.saturating_duration_since(sent_at));
        let work = async {
            match tokio::time::timeout(self.idle, connection.write_all(request)).await {
                // A server may refuse a request before it has read it all: what
                // it says is still there to be read.
                Ok(Ok(()) | Err(_)) => {}
                Err(_) => return reply.on_idle(self.idle.as_secs_f64(), ns(Instant::now())),
            }
            self.read(connection, reply, &ns, on_tokens).await;
        };
        let cancelled = tokio::select! {
            biased;
            () = work => false,
            () = self.stop.cancelled() => true,
        };
        if cancelled {
            reply.on_cancel(ns(Instant::now()));
        }
        if !reply.is_reusable() {
            *slot = None;
        }
    }

    async fn read(
        &self,
        connection: &mut Connection,
        reply: &mut Reply,
        ns: &impl Fn(Instant) -> u64,
        on_tokens: impl Fn(u32),
    ) {
        let mut last = Instant::now();
        let mut alarm = std::pin::pin!(tokio::time::sleep(self.idle));
        std::future::poll_fn(|cx| {
            while !reply.is_over() {
                let mut buffer = self.buffer.borrow_mut();
                match connection.poll_read(cx, &mut buffer) {
                    Poll::Pending => break,
                    Poll::Ready(Ok((0, at))) => reply.on_eof(None, ns(at)),
                    Poll::Ready(Ok((count, at))) => {
                        let was_done = reply.is_done();
                        reply.on_bytes(buffer.get(..count).unwrap_or_default(), ns(at));
                        if reply.take_heard() {
                            last = at;
                        }
                        on_tokens(reply.take_fresh_tokens());
                        if reply.is_done() && !was_done {
                            alarm.as_mut().reset((at + LINGER.min(self.idle)).into());
                        }
                    }
                    // A peer that leaves out the closing notice of TLS.
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        reply.on_eof(None, ns(Instant::now()));
                    }
                    Poll::Ready(Err(error)) => reply.on_eof(Some(&error), ns(Instant::now())),
                }
            }
            if reply.is_over() {
                return Poll::Ready(());
            }
            // The alarm is moved only when it rings: moving it at every read
            // would cost more than the read.
            while alarm.as_mut().poll(cx).is_ready() {
                let limit = if reply.is_done() {
                    LINGER.min(self.idle)
                } else {
                    self.idle
                };
                let due = last + limit;
                if due <= Instant::now() {
                    reply.on_idle(limit.as_secs_f64(), ns(Instant::now()));
                    return Poll::Ready(());
                }
                alarm.as_mut().reset(due.into());
            }
            Poll::Pending
        })
        .await;
    }

    /// Opens the connections of the slots, as many at a time as a listener's queue
    /// holds, and closes those beyond `concurrency`. Failures are left to the
    /// requests that will meet them.
    pub(crate) async fn open(self: &Rc<Self>, slots: &mut Slots, concurrency: u32) {
        slots.resize_with(concurrency as usize, || None);
        let mut missing = Vec::new();
        for (place, slot) in slots.iter_mut().enumerate() {
            if let Some(connection) = slot
                && !connection.is_fresh().await
            {
                *slot = None;
            }
            if slot.is_none() {
                missing.push(place);
            }
        }
        for batch in missing.chunks(OPENING) {
            let mut opening = JoinSet::new();
            for place in batch {
                let (shared, place) = (Rc::clone(self), *place);
                opening.spawn_local(async move { (place, shared.target.connect().await) });
            }
            loop {
                let next = tokio::select! {
                    next = opening.join_next() => next,
                    () = self.stop.cancelled() => return,
                };
                let Some(joined) = next else { break };
                if let Ok((place, Ok(connection))) = joined
                    && let Some(slot) = slots.get_mut(place)
                {
                    *slot = Some(connection);
                }
            }
        }
    }
}

/// Runs a load to its end, or until the stop flag is raised. Gives the requests
/// in the order in which they were over.
pub(crate) async fn run(shared: &Rc<Shared>, plan: LoadPlan, slots: &mut Slots) -> Vec<Traced> {
    shared.open(slots, plan.concurrency).await;
    let load = Rc::new(Load {
        shared: Rc::clone(shared),
        plan,
        started: Instant::now(),
        issued: Cell::new(0),
        sent: Cell::new(0),
        in_flight: Cell::new(0),
        done: Cell::new(0),
        failed: Cell::new(0),
        connect_failures: Cell::new(0),
        tokens: Cell::new(0),
        tokens_over: Cell::new(0),
        records: RefCell::new(Vec::new()),
    });
    let mut running = JoinSet::new();
    for (place, connection) in slots.drain(..).enumerate() {
        let wait_ms = u64::try_from(place / RAMP).unwrap_or(0);
        running.spawn_local(Rc::clone(&load).slot(connection, Duration::from_millis(wait_ms)));
    }
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut speed = Speed::default();
    loop {
        tokio::select! {
            biased;
            joined = running.join_next() => match joined {
                Some(connection) => slots.push(connection.unwrap_or(None)),
                None => break,
            },
            _ = tick.tick() => load.tell(&mut speed),
        }
    }
    load.tell(&mut speed);
    if !plan.warming && !shared.stop.is_cancelled() {
        shared.outlook.borrow_mut().finished(load.standing());
    }
    load.records.take()
}

impl Load {
    /// One slot: after a while a request at a time until none is left.
    async fn slot(
        self: Rc<Self>,
        mut connection: Option<Connection>,
        wait: Duration,
    ) -> Option<Connection> {
        self.rest(wait).await;
        while self.may_issue() {
            self.issued.set(self.issued.get() + 1);
            self.one(&mut connection).await;
            if self.connect_failures.get() > 0 && connection.is_none() && self.in_flight.get() > 0 {
                self.rest(PAUSE).await;
            }
        }
        connection
    }

    /// Sends nothing for a while, or until the stop flag is raised.
    async fn rest(&self, wait: Duration) {
        if wait.is_zero() {
            return;
        }
        tokio::select! {
            biased;
            () = self.shared.stop.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    fn may_issue(&self) -> bool {
        if self.shared.stop.is_cancelled() {
            return false;
        }
        match self.plan.until {
            Until::Requests(requests) => self.issued.get() < requests,
            Until::Seconds(seconds) => {
                self.started.elapsed().as_secs_f64() < seconds
                    && self.issued.get() < limits::REQUESTS
            }
        }
    }

    async fn one(&self, slot: &mut Option<Connection>) {
        if let Some(connection) = slot
            && !connection.is_fresh().await
        {
            *slot = None;
        }
        let mut connect_ns = None;
        let mut refusal = None;
        if slot.is_none() {
            let began = Instant::now();
            let opened = tokio::select! {
                biased;
                opened = self.shared.target.connect() => opened,
                // Not sent, so there is nothing to record.
                () = self.shared.stop.cancelled() => return,
            };
            connect_ns = Some(nanos(began.elapsed()));
            match opened {
                Ok(connection) => *slot = Some(connection),
                Err(sentence) => refusal = Some(sentence),
            }
        }
        // Numbered only now, so that numbers follow the order of sending.
        let seq = self.sent.get();
        self.sent.set(seq + 1);
        let prompt = self.plan.first_prompt + u64::from(seq);
        let mut reply = Reply::new(self.plan.max_tokens);
        let sent_at;
        if let Some(sentence) = refusal {
            sent_at = Instant::now();
            reply.on_connect_failure(sentence);
        } else {
            let text = self.shared.prompts.prompt(self.shared.seed, prompt);
            let request = self.shared.template.request(&text, self.plan.max_tokens);
            self.in_flight.set(self.in_flight.get() + 1);
            sent_at = Instant::now();
            let on_tokens = |count: u32| self.tokens.set(self.tokens.get() + u64::from(count));
            self.shared
                .exchange(slot, &request, sent_at, &mut reply, on_tokens)
                .await;
            self.in_flight.set(self.in_flight.get() - 1);
        }
        let sent = Sent {
            stage: self.plan.stage,
            seq,
            prompt,
            sent_ns: nanos(sent_at.saturating_duration_since(self.shared.origin)),
            connect_ns,
        };
        let (record, trace) = reply.into_record(&sent, self.shared.secret());
        self.keep(record, trace);
    }

    fn keep(&self, record: RequestRecord, trace: Option<ChunkTrace>) {
        self.done.set(self.done.get() + 1);
        if record.failure.is_some() && !record.is_cancelled() {
            self.failed.set(self.failed.get() + 1);
        }
        self.tokens_over
            .set(self.tokens_over.get() + told_tokens(&record, trace.as_ref()));
        self.judge_connecting(&record);
        if self.plan.warming {
            self.records.borrow_mut().push((record, None));
            return;
        }
        self.records
            .borrow_mut()
            .push((record.clone(), trace.clone()));
        self.shared
            .emitter
            .emit(MeterEventKind::Request(Box::new(RequestEvent {
                record,
                trace,
            })));
    }

    /// A server that is gone is not worth a thousand refused connections.
    fn judge_connecting(&self, record: &RequestRecord) {
        match &record.failure {
            Some(failure) if failure.kind == FailureKind::Connect => {
                let failures = self.connect_failures.get() + 1;
                self.connect_failures.set(failures);
                let from_the_start = u64::from(failures) == self.done.get()
                    && failures >= self.plan.concurrency.max(10);
                // While others are being answered the server is not gone.
                if (failures >= HOPELESS || from_the_start) && self.in_flight.get() == 0 {
                    let reason = format!(
                        "{failures} requests in a row found no connection. {}",
                        failure.message
                    );
                    // The first reason stays.
                    let _ = self.shared.hopeless.set(reason);
                    self.shared.stop.cancel();
                }
            }
            Some(failure) if failure.kind == FailureKind::Cancelled => {}
            _ => self.connect_failures.set(0),
        }
    }

    fn standing(&self) -> Standing {
        let in_flight_tokens = self.tokens.get().saturating_sub(self.tokens_over.get()) as f64;
        let begun = (in_flight_tokens / f64::from(self.plan.max_tokens))
            .min(f64::from(self.in_flight.get()));
        Standing {
            stage: self.plan.stage as usize,
            warming: self.plan.warming,
            work: self.done.get() as f64 + begun,
            elapsed_s: self.started.elapsed().as_secs_f64(),
        }
    }

    fn tell(&self, speed: &mut Speed) {
        let phase = match (self.plan.warming, self.may_issue()) {
            (true, _) => Phase::WarmUp,
            (false, true) => Phase::Measuring,
            (false, false) => Phase::Draining,
        };
        let progress = Progress {
            stage: self.plan.stage,
            stages: self.shared.stages,
            phase,
            done: self.done.get(),
            failed: self.failed.get(),
            planned: match self.plan.until {
                Until::Requests(requests) => Some(requests.into()),
                Until::Seconds(_) => None,
            },
            in_flight: self.in_flight.get(),
            current_tps: speed.note(self.started.elapsed(), self.tokens.get()),
            elapsed_s: self.shared.origin.elapsed().as_secs_f64(),
            left_s: self.shared.outlook.borrow().left_s(self.standing()),
        };
        self.shared
            .emitter
            .emit_if_room(MeterEventKind::Progress(progress));
    }
}

/// Tokens as they were counted while they came.
fn told_tokens(record: &RequestRecord, trace: Option<&ChunkTrace>) -> u64 {
    match trace {
        Some(trace) if !trace.tokens.is_empty() => {
            trace.tokens.iter().map(|count| u64::from(*count)).sum()
        }
        _ => record.chunks.into(),
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
