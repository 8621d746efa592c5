//! A load under way: what was sent, what came of it, and how far it is.

use std::{
    cell::{Cell, OnceCell, RefCell},
    rc::Rc,
    time::Instant,
};

use tokdyno_domain::{
    conditions::RepliesSeen,
    meter::{MeterEventKind, Phase, Progress, RequestEvent},
    metrics::Traced,
    record::{ChunkTrace, FailureKind, RequestRecord},
    workload::limits,
};
use tokio::task::JoinError;

use super::{LoadPlan, Loaded, Shape, Shared, Until, connect::Opened, job::Job, nanos};
use crate::{
    connection::Connection,
    progress::{Speed, Standing},
    reply::{Reply, Seen, Sent},
};

/// Failed connections in a row after which going on is pointless.
const HOPELESS: u32 = 100;

/// A load under way.
pub(super) struct Load {
    pub(super) shared: Rc<Shared>,
    pub(super) plan: LoadPlan,
    pub(super) started: Instant,
    issued: Cell<u32>,
    sent: Cell<u32>,
    conversations: Cell<u64>,
    in_flight: Cell<u32>,
    done: Cell<u64>,
    failed: Cell<u64>,
    connect_failures: Cell<u32>,
    /// Tokens that arrived, and those of replies that are over.
    tokens: Cell<u64>,
    tokens_over: Cell<u64>,
    ended_issuing: Cell<bool>,
    ended_early: OnceCell<String>,
    lags_ms: RefCell<Vec<f64>>,
    requests: RefCell<Vec<Traced>>,
    replies: Cell<RepliesSeen>,
}

impl Load {
    pub(super) fn new(shared: Rc<Shared>, plan: LoadPlan) -> Self {
        Self {
            shared,
            plan,
            started: Instant::now(),
            issued: Cell::new(0),
            sent: Cell::new(0),
            conversations: Cell::new(0),
            in_flight: Cell::new(0),
            done: Cell::new(0),
            failed: Cell::new(0),
            connect_failures: Cell::new(0),
            tokens: Cell::new(0),
            tokens_over: Cell::new(0),
            ended_issuing: Cell::new(false),
            ended_early: OnceCell::new(),
            lags_ms: RefCell::default(),
            requests: RefCell::default(),
            replies: Cell::default(),
        }
    }

    /// What became of it, once it is over.
    pub(super) fn loaded(&self) -> Loaded {
        if !self.plan.warming && !self.shared.stop.is_cancelled() {
            self.shared.outlook.borrow_mut().finished(self.standing());
        }
        Loaded {
            requests: self.requests.take(),
            ended_early: self.ended_early.get().cloned(),
            lags_ms: self.lags_ms.take(),
            replies: self.replies.get(),
        }
    }

    /// May another request be sent?
    pub(super) fn may_issue(&self) -> bool {
        if self.ended_issuing.get() || self.shared.stop.is_cancelled() {
            return false;
        }
        match &self.plan.shape {
            Shape::Closed(Until::Requests(requests)) => self.issued.get() < *requests,
            Shape::Closed(Until::Seconds(seconds)) => {
                let in_time = self.started.elapsed().as_secs_f64() < *seconds;
                if in_time && self.issued.get() >= limits::REQUESTS {
                    self.end_early(super::too_many());
                }
                in_time && self.issued.get() < limits::REQUESTS
            }
            Shape::Open(_) => true,
        }
    }

    /// Counts a request as begun.
    pub(super) fn issue(&self) {
        self.issued.set(self.issued.get() + 1);
    }

    /// No further request will be begun.
    pub(super) fn end_issuing(&self) {
        self.ended_issuing.set(true);
    }

    /// The same, before its time. The first reason stays.
    pub(super) fn end_early(&self, reason: String) {
        self.ended_issuing.set(true);
        let _ = self.ended_early.set(reason);
    }

    /// Stops the run where a task of the load ended by a panic: what it had in hand is
    /// lost, and the rest would look whole.
    pub(super) fn take_fault(&self, error: &JoinError) {
        // The first reason stays.
        let _ = self.shared.hopeless.set(fault(error));
        self.shared.stop.cancel();
    }

    /// The number of the request that is sent next.
    pub(super) const fn next_seq(&self) -> u32 {
        self.sent.get()
    }

    /// Takes the next conversation.
    pub(super) fn next_conversation(&self) -> u64 {
        let number = self.conversations.get();
        self.conversations.set(number + 1);
        number
    }

    /// Do connections fail while others have theirs?
    pub(super) const fn lacks_connections(&self) -> bool {
        self.connect_failures.get() > 0 && self.in_flight.get() > 0
    }

    /// Sends a request, waits until it is over, and records it. Gives whether it
    /// succeeded; the answer's text is appended to `answer` where it is wanted.
    pub(super) async fn send(
        &self,
        slot: &mut Option<Connection>,
        job: Job,
        opened: Opened,
        answer: Option<&mut String>,
    ) -> bool {
        // Numbered only now, so that numbers follow the order of sending.
        let seq = self.next_seq();
        self.sent.set(seq + 1);
        let mut reply = Reply::new(job.max_tokens);
        if answer.is_some() {
            reply.keep_text();
        }
        let sent_at;
        if let Some(sentence) = opened.refusal {
            sent_at = Instant::now();
            reply.on_connect_failure(sentence);
        } else {
            self.in_flight.set(self.in_flight.get() + 1);
            sent_at = Instant::now();
            self.note_lag(&job, sent_at, opened.connect_ns);
            let on_tokens = |count: u32| self.tokens.set(self.tokens.get() + u64::from(count));
            self.shared
                .exchange(slot, job.bytes, sent_at, &mut reply, on_tokens)
                .await;
            self.in_flight.set(self.in_flight.get() - 1);
        }
        if let Some(answer) = answer {
            answer.push_str(&reply.take_text());
        }
        let since_origin = |at: Instant| nanos(at.saturating_duration_since(self.shared.origin));
        let sent = Sent {
            stage: self.plan.stage,
            seq,
            prompt: job.prompt,
            sent_ns: since_origin(sent_at),
            intended_ns: job.due.map(since_origin),
            turn: job.turn,
            asked_tokens: job.asked_tokens,
            connect_ns: opened.connect_ns,
        };
        let seen = reply.seen();
        let (record, trace) = reply.into_record(&sent, self.shared.secret());
        let succeeded = record.is_success();
        if succeeded {
            self.note_reply(seen);
        }
        self.keep(record, trace);
        succeeded
    }

    fn note_reply(&self, seen: Seen) {
        let before = self.replies.get();
        self.replies.set(RepliesSeen {
            judged: before.judged + u64::from(seen.looping.is_some()),
            looping: before.looping + u64::from(seen.looping == Some(true)),
            left_open: before.left_open + u64::from(seen.left_open),
            odd_usage: before.odd_usage + u64::from(seen.odd_usage),
        });
    }

    /// How much later than scheduled a request is sent, but for connecting.
    fn note_lag(&self, job: &Job, sent_at: Instant, connect_ns: Option<u64>) {
        if let Some(due) = job.due {
            let late_ns = nanos(sent_at.saturating_duration_since(due));
            let lag_ns = late_ns.saturating_sub(connect_ns.unwrap_or(0));
            self.lags_ms.borrow_mut().push(lag_ns as f64 / 1e6);
        }
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
            self.requests.borrow_mut().push((record, None));
            return;
        }
        self.requests
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
                let from_the_start =
                    u64::from(failures) == self.done.get() && failures >= self.plan.slots.max(10);
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

    /// Tells how far it is.
    pub(super) fn tell(&self, speed: &mut Speed) {
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
            planned: self.plan.shape.planned(),
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

fn fault(error: &JoinError) -> String {
    format!("A fault of the meter: please report it. A request could not be measured ({error}).")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fault_is_to_be_reported() {
        let broken = tokio::spawn(async { panic!("no such slot") }).await;
        let sentence = fault(&broken.expect_err("a panic"));
        assert!(sentence.starts_with("A fault of the meter: please report it."));
        assert!(sentence.contains("no such slot"), "{sentence}");
    }
}
