//! How the measuring machine fares during a stage: how busy the measuring thread
//! is, what the hypervisor takes away, and how late the thread is woken.
//!
//! ```text
//! let watch = Watch::start();              // on the measuring thread, in its LocalSet
//! let before = target.reads();
//! // … the stage, without its warm-up …
//! let reads = target.reads().since(before);
//! let client = watch.finish(reads.by_kernel, reads.all);
//! ```

use std::{
    cell::RefCell,
    fs,
    rc::Rc,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use tokdyno_domain::conditions::{ClientLoad, STOOD_STILL_MS};
use tokio::task::JoinHandle;

use crate::{alarm::Alarm, machine};

/// How often the thread asks to be woken.
const WAKE_EVERY: Duration = Duration::from_millis(20);
/// Buckets of lags: four to each doubling, from a microsecond to over an hour.
const BUCKETS: usize = 128;
/// Buckets to each doubling.
const PER_DOUBLING: f64 = 4.0;

/// Watches the measuring machine. Made and finished on the measuring thread.
pub(crate) struct Watch {
    began: Instant,
    cpu_ns: Option<i64>,
    ticks: Option<Ticks>,
    lags: Rc<RefCell<Lags>>,
    waking: Option<JoinHandle<()>>,
}

/// Processor time of the whole machine since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    stolen: u64,
}

/// How late the thread was woken, in a fixed amount of memory.
#[derive(Debug)]
struct Lags {
    counts: [u32; BUCKETS],
    noted: u64,
    longest: Duration,
    /// The sum of those of [`STOOD_STILL_MS`] or more.
    stood_still: Duration,
}

impl Watch {
    /// Begins. Needs a `LocalSet` around it: a task of its own is woken every 20 ms.
    pub(crate) fn start() -> Self {
        let lags = Rc::new(RefCell::new(Lags::new()));
        let noting = Rc::clone(&lags);
        let waking = Alarm::new()
            .map(|alarm| tokio::task::spawn_local(wake_and_note(alarm, noting)))
            // Without an alarm there is no lag to tell.
            .ok();
        Self {
            began: Instant::now(),
            cpu_ns: thread_cpu_ns(),
            ticks: ticks_now(),
            lags,
            waking,
        }
    }

    /// Ends. `kernel_reads` of `reads` had their time from the kernel. How late
    /// requests of an open loop were sent is not known here.
    pub(crate) fn finish(self, kernel_reads: u64, reads: u64) -> ClientLoad {
        let elapsed_ns = self.began.elapsed().as_nanos() as f64;
        let busy = self
            .cpu_ns
            .zip(thread_cpu_ns())
            .filter(|_| elapsed_ns > 0.0)
            .map(|(before, now)| ((now - before).max(0) as f64 / elapsed_ns).min(1.0));
        let stolen = self
            .ticks
            .zip(ticks_now())
            .and_then(|(before, now)| stolen_between(before, now));
        let lags = self.lags.borrow();
        ClientLoad {
            thread_busy: busy,
            stolen,
            wake_lag_p99_ms: lags.quantile(0.99).map(ms),
            wake_lag_max_ms: (lags.noted > 0).then(|| ms(lags.longest)),
            stood_still_ms: (lags.noted > 0).then(|| ms(lags.stood_still)),
            kernel_times: (reads > 0).then(|| (kernel_reads as f64 / reads as f64).min(1.0)),
            send_lag_p99_ms: None,
            governor: machine::governor(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(waking) = &self.waking {
            waking.abort();
        }
    }
}

impl Lags {
    const fn new() -> Self {
        Self {
            counts: [0; BUCKETS],
            noted: 0,
            longest: Duration::ZERO,
            stood_still: Duration::ZERO,
        }
    }

    fn note(&mut self, lag: Duration) {
        let us = (lag.as_nanos() as f64 / 1000.0).max(1.0);
        let place = ((us.log2() * PER_DOUBLING) as usize).min(BUCKETS - 1);
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(1);
        }
        self.noted += 1;
        self.longest = self.longest.max(lag);
        if ms(lag) >= STOOD_STILL_MS {
            self.stood_still = self.stood_still.saturating_add(lag);
        }
    }

    /// The lag that a share of the wakings did not exceed: the upper bound of its
    /// bucket, at most a fifth too long, and never beyond the longest seen.
    fn quantile(&self, share: f64) -> Option<Duration> {
        if self.noted == 0 {
            return None;
        }
        let rank = (share * self.noted as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        })?;
        let us = ((place + 1) as f64 / PER_DOUBLING).exp2();
        Some(Duration::from_secs_f64(us / 1e6).min(self.longest))
    }
}

async fn wake_and_note(alarm: Alarm, lags: Rc<RefCell<Lags>>) {
    loop {
        let due = Instant::now() + WAKE_EVERY;
        // A timer that fails has no more to tell.
        if alarm.until(due).await.is_err() {
            return;
        }
        lags.borrow_mut().note(due.elapsed());
    }
}

fn thread_cpu_ns() -> Option<i64> {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec
        .checked_mul(1_000_000_000)?
        .checked_add(time.tv_nsec)
}

fn ticks_now() -> Option<Ticks> {
    Ticks::read(&fs::read_to_string("/proc/stat").ok()?)
}

impl Ticks {
    /// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq,
    /// steal; guests' time behind them is already in the first two.
    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().find(|line| line.starts_with("cpu "))?;
        let fields: Vec<u64> = line
            .split_ascii_whitespace()
            .skip(1)
            .take(8)
            .map_while(|field| field.parse().ok())
            .collect();
        Some(Self {
            stolen: *fields.get(7)?,
            all: fields.iter().sum(),
        })
    }
}

fn stolen_between(before: Ticks, now: Ticks) -> Option<f64> {
    let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
    let stolen = now.stolen.checked_sub(before.stolen)?;
    Some((stolen as f64 / all as f64).min(1.0))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_hypervisor_took() {
        let before = Ticks::read("cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1 1 1 1\n");
        assert_eq!(
            before,
            Some(Ticks {
                all: 1000,
                stolen: 40
            })
        );
        let later = Ticks {
            all: 1200,
            stolen: 90,
        };
        let before = before.expect("ticks");
        assert_eq!(stolen_between(before, later), Some(0.25));
        assert_eq!(stolen_between(later, before), None);
        assert_eq!(stolen_between(later, later), None);
        for other in ["", "cpu 1 2 3", "cpu a b c d e f g h", "intr 1 2"] {
            assert_eq!(Ticks::read(other), None, "{other}");
        }
    }

    #[test]
    fn lags_are_told_to_a_fifth() {
        let mut lags = Lags::new();
        assert_eq!(lags.quantile(0.99), None);
        for us in 1..=1000 {
            lags.note(Duration::from_micros(us));
        }
        let p50 = lags.quantile(0.5).expect("a lag").as_secs_f64() * 1e6;
        assert!((500.0..=600.0).contains(&p50), "{p50}");
        // Never more than was seen.
        assert_eq!(lags.quantile(1.0), Some(Duration::from_micros(1000)));
        lags.note(Duration::ZERO);
        lags.note(Duration::from_secs(100_000));
        assert_eq!(lags.longest, Duration::from_secs(100_000));
        assert_eq!(lags.noted, 1002);
    }

    #[test]
    fn long_lags_are_added_up() {
        let mut lags = Lags::new();
        for lag_ms in [1, 49, 50, 200] {
            lags.note(Duration::from_millis(lag_ms));
        }
        assert_eq!(lags.stood_still, Duration::from_millis(250));
    }

    #[tokio::test]
    async fn a_stage_is_watched() {
        let local = tokio::task::LocalSet::new();
        let load = local
            .run_until(async {
                let watch = Watch::start();
                let began = Instant::now();
                // Work, and chances to be woken.
                while began.elapsed() < Duration::from_millis(300) {
                    tokio::task::yield_now().await;
                }
                watch.finish(3, 4)
            })
            .await;
        assert!(
            load.thread_busy
                .is_some_and(|busy| busy > 0.0 && busy <= 1.0)
        );
        let (p99, most) = (load.wake_lag_p99_ms, load.wake_lag_max_ms);
        assert!(p99.is_some() && p99 <= most, "{p99:?} {most:?}");
        assert_eq!(load.kernel_times, Some(0.75));
        assert_eq!(load.send_lag_p99_ms, None);
    }

    #[tokio::test]
    async fn no_reads_no_share() {
        let local = tokio::task::LocalSet::new();
        let load = local.run_until(async { Watch::start().finish(0, 0) }).await;
        assert_eq!(load.kernel_times, None);
        assert_eq!(load.wake_lag_max_ms, None);
    }
}
