//! The open loop: each request leaves at its time, however many are in flight.

use std::{
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};

use rustix::process::{Resource, getrlimit};
use tokdyno_domain::workload::limits;
use tokio::task::{JoinError, JoinSet};

use super::{Slots, job::Job, state::Load, unwritten::Waiting};
use crate::{alarm::Alarm, connection::Connection, progress::Speed, schedule::Schedule};

/// Files the process needs beside one per connection.
const SPARE_FILES: u64 = 64;
/// Most bytes of requests that wait for a connection, or for the server to take them.
const MOST_WAITING: usize = 1 << 30;

/// Connections that no request is using, the one used last on top: it is the least
/// likely to have been closed by the server.
type Pool = Rc<RefCell<Vec<Connection>>>;

/// Why no further request can be in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Full {
    /// The bound of the meter.
    #[error(
        "{} requests were in flight and not yet answered, the most the meter keeps: the server answers more slowly than requests come, and the rest was not sent. Lower the rate, or take a shorter stage.",
        limits::CONCURRENCY
    )]
    Bound,
    /// The limit of open files.
    #[error(
        "{0} requests were in flight and not yet answered, and this process may open no further connection, so the rest was not sent. Raise the limit of open files (ulimit -n), or lower the rate."
    )]
    Files(u32),
    /// The memory they take.
    #[error(
        "{} MiB of requests waited for the server to take them, the most the meter keeps, so the rest was not sent. Lower the rate, or take shorter prompts.",
        MOST_WAITING >> 20
    )]
    Bytes,
}

/// Sends the requests of a schedule, and waits until all are over.
pub(super) async fn run(load: &Rc<Load>, schedule: &Schedule, slots: &mut Slots) {
    let pool: Pool = Rc::new(RefCell::new(slots.drain(..).flatten().collect()));
    let (most, because) = bound(getrlimit(Resource::Nofile).current);
    let waiting = Waiting::default();
    let alarm = Alarm::new().ok();
    let mut running = JoinSet::new();
    let mut tick = super::ticks();
    let mut speed = Speed::default();
    for (number, at_ns) in (0_u64..).zip(&schedule.times_ns) {
        // Before its time, so that its making does not hold it up.
        let mut job = Job::new(&load.shared, &load.plan, number);
        let due = load.started + Duration::from_nanos(*at_ns);
        job.due = Some(due);
        // Others have their turn at least once, also where many are due at once.
        tokio::task::yield_now().await;
        // Also where the next is always due already.
        tokio::select! {
            biased;
            _ = tick.tick() => load.tell(&mut speed),
            () = std::future::ready(()) => {}
        }
        while Instant::now() < due && !load.shared.stop.is_cancelled() {
            tokio::select! {
                biased;
                () = wait(alarm.as_ref(), due) => {}
                () = load.shared.stop.cancelled() => {}
                _ = tick.tick() => load.tell(&mut speed),
            }
        }
        if load.shared.stop.is_cancelled() {
            break;
        }
        // Those that are over.
        while let Some(joined) = running.try_join_next() {
            note(load, joined);
        }
        if let Some(full) = full(running.len(), waiting.get(), (most, because)) {
            load.end_early(full.to_string());
            break;
        }
        load.issue();
        job.bytes.count(&waiting);
        running.spawn_local(one(Rc::clone(load), Rc::clone(&pool), job));
    }
    if schedule.is_cut {
        load.end_early(super::too_many());
    }
    load.end_issuing();
    loop {
        tokio::select! {
            biased;
            joined = running.join_next() => match joined {
                Some(joined) => note(load, joined),
                None => break,
            },
            _ = tick.tick() => load.tell(&mut speed),
        }
    }
    load.tell(&mut speed);
    slots.extend(pool.take().into_iter().map(Some));
}

fn note(load: &Load, joined: Result<(), JoinError>) {
    if let Err(error) = joined {
        load.take_fault(&error);
    }
}

/// Why no further request may be sent, if so many run and so many bytes wait.
fn full(running: usize, waiting: usize, (most, because): (u32, Full)) -> Option<Full> {
    if running >= most as usize {
        return Some(because);
    }
    (waiting >= MOST_WAITING).then_some(Full::Bytes)
}

/// Waits as exactly as it can: without a timer of the kernel by the runtime's.
async fn wait(alarm: Option<&Alarm>, due: Instant) {
    let rung = match alarm {
        Some(alarm) => alarm.until(due).await.is_ok(),
        None => false,
    };
    if !rung {
        tokio::time::sleep_until(due.into()).await;
    }
}

async fn one(load: Rc<Load>, pool: Pool, job: Job) {
    let mut slot = None;
    loop {
        let idle = pool.borrow_mut().pop();
        let Some(mut idle) = idle else { break };
        if idle.is_fresh().await {
            slot = Some(idle);
            break;
        }
    }
    if let Some(opened) = load.shared.connect(&mut slot).await {
        load.send(&mut slot, job, opened, None).await;
    }
    pool.borrow_mut().extend(slot);
}

/// The most requests in flight, and why no more.
fn bound(files: Option<u64>) -> (u32, Full) {
    let room = files.map(|files| files.saturating_sub(SPARE_FILES));
    match room.and_then(|room| u32::try_from(room).ok()) {
        Some(room) if room < limits::CONCURRENCY => (room, Full::Files(room)),
        _ => (limits::CONCURRENCY, Full::Bound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bounds_the_requests_in_flight() {
        assert_eq!(bound(Some(1024)), (960, Full::Files(960)));
        assert_eq!(bound(Some(10)), (0, Full::Files(0)));
        let most = (limits::CONCURRENCY, Full::Bound);
        assert_eq!(bound(Some(1 << 20)), most);
        assert_eq!(bound(Some(u64::MAX)), most);
        assert_eq!(bound(None), most);
        assert_eq!(full(959, MOST_WAITING - 1, (960, Full::Bound)), None);
        assert_eq!(full(960, 0, (960, Full::Bound)), Some(Full::Bound));
        let waiting = full(1, MOST_WAITING, (960, Full::Bound));
        assert_eq!(waiting, Some(Full::Bytes));
        assert!(Full::Bytes.to_string().starts_with("1024 MiB"));
        assert!(Full::Bound.to_string().starts_with("8192 requests"));
        assert!(Full::Files(960).to_string().contains("ulimit -n"));
    }
}
