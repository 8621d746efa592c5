//! The reader's side of self-certification: the measuring thread's own code, on a
//! thread and a runtime as in a run.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use tokdyno_domain::{endpoint::TlsTrust, metrics::request_figures};
use tokio::task::{JoinSet, LocalSet};

use super::{
    pacing::{self, Pacing, Written},
    steps::{Ladder, Outcome, Step, Timed},
};
use crate::{
    cancel::CancelFlag,
    connection::{Connection, Target},
    exchange::Exchange,
    load::nanos,
    reply::{Reply, Sent},
};

/// As large as the measuring thread's.
const BUFFER: usize = 64 << 10;
/// Longest silence of a reply: then the step has failed.
const IDLE: Duration = Duration::from_secs(1);
/// Connections opened at the same time.
const OPENING: usize = 64;
/// Steps there can be, up and down, each tried twice.
const MOST_STEPS: usize = 24;
/// Steps beyond this are not begun.
const LONGEST: Duration = Duration::from_secs(3);

/// What the streams share.
struct Reading {
    written: Arc<Written>,
    buffer: RefCell<Vec<u8>>,
    stop: CancelFlag,
}

/// Climbs the ladder until it ends, or the time or the stop flag end it. None if there
/// is no server to read from. Blocks: for a thread of its own.
pub(super) fn climb(ladder: Ladder, stop: &CancelFlag) -> Option<Ladder> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    LocalSet::new().block_on(&runtime, climb_here(ladder, stop))
}

async fn climb_here(mut ladder: Ladder, stop: &CancelFlag) -> Option<Ladder> {
    let began = Instant::now();
    let most = ladder.next()?.requests() as usize * MOST_STEPS;
    let written = Arc::new(Written::new(most));
    let server = Pacing::start(&written).ok()?;
    let endpoint = format!("http://{}", server.address).parse().ok()?;
    let target = Target::resolve(&endpoint, &TlsTrust::System, IDLE)
        .await
        .ok()?;
    let reading = Rc::new(Reading {
        written,
        buffer: RefCell::new(vec![0; BUFFER]),
        stop: stop.clone(),
    });
    let mut connections = open(Rc::new(target), ladder.streams()).await;
    let mut first_id = 0;
    while let Some(step) = ladder.next() {
        if stop.is_cancelled() || began.elapsed() > LONGEST {
            break;
        }
        let timed = run(&reading, &step, first_id, &mut connections).await;
        first_id += step.requests() as usize;
        ladder.take(&step, Outcome::of(&step, &timed));
    }
    Some(ladder)
}

async fn open(target: Rc<Target>, streams: u32) -> Vec<Option<Connection>> {
    let mut connections = Vec::new();
    while connections.len() < streams as usize {
        let mut opening = JoinSet::new();
        for _ in 0..OPENING.min(streams as usize - connections.len()) {
            let target = Rc::clone(&target);
            opening.spawn_local(async move { target.connect().await.ok() });
        }
        // One that is missing shows as chunks that did not arrive.
        connections.extend(opening.join_all().await);
    }
    connections
}

/// One step: all streams at once. Gives the requests that came through.
async fn run(
    reading: &Rc<Reading>,
    step: &Step,
    first_id: usize,
    connections: &mut Vec<Option<Connection>>,
) -> Vec<Timed> {
    let mut streams = JoinSet::new();
    for (place, connection) in connections.drain(..).enumerate() {
        let first_id = first_id + place * step.rounds as usize;
        streams.spawn_local(stream(Rc::clone(reading), *step, first_id, connection));
    }
    let mut timed = Vec::new();
    while let Some(joined) = streams.join_next().await {
        let Ok((connection, requests)) = joined else {
            continue;
        };
        connections.push(connection);
        timed.extend(requests);
    }
    timed
}

/// One stream: a request after the other.
async fn stream(
    reading: Rc<Reading>,
    step: Step,
    first_id: usize,
    mut connection: Option<Connection>,
) -> (Option<Connection>, Vec<Timed>) {
    let exchange = Exchange {
        buffer: &reading.buffer,
        idle: IDLE,
        stop: &reading.stop,
    };
    let mut timed = Vec::new();
    for id in (first_id..).take(step.rounds as usize) {
        if connection.is_none() {
            break;
        }
        let request = pacing::request(id, step.first, step.interval, step.chunks);
        let mut reply = Reply::new(step.chunks);
        let sent_at = Instant::now();
        exchange
            .run(&mut connection, &request, sent_at, &mut reply, |_| {})
            .await;
        let sent_ns = nanos(sent_at.saturating_duration_since(reading.written.origin()));
        let (record, _) = reply.into_record(&sent(sent_ns), None);
        let Some((figures, (first, last))) =
            request_figures(&record).zip(reading.written.times(id))
        else {
            continue;
        };
        if record.chunks != step.chunks {
            continue;
        }
        timed.push(Timed {
            first_written: first as f64,
            last_written: last as f64,
            first_read: sent_ns as f64 + figures.ttft_ms * 1e6,
            tpot: figures.tpot_ms.map(|ms| ms * 1e6),
            chunks: step.chunks,
        });
    }
    (connection, timed)
}

/// Of a request that is no stage's.
pub(super) const fn sent(sent_ns: u64) -> Sent {
    Sent {
        stage: 0,
        seq: 0,
        prompt: 0,
        sent_ns,
        intended_ns: None,
        turn: None,
        asked_tokens: None,
        connect_ns: None,
    }
}
