//! How fast it goes, and how long it will still take.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use tokdyno_domain::workload::{StagePlan, StageSize, Workload};

use crate::schedule;

/// Over how long the present speed is taken.
const SPEED_WINDOW: Duration = Duration::from_secs(1);

/// Tokens per second over about the last second.
#[derive(Debug, Default)]
pub(crate) struct Speed(VecDeque<(Duration, u64)>);

impl Speed {
    /// Notes the tokens seen until `at` and gives the speed; none while nothing
    /// has come yet.
    pub(crate) fn note(&mut self, at: Duration, tokens: u64) -> Option<f64> {
        self.0.push_back((at, tokens));
        while self.0.len() > 2
            && self
                .0
                .get(1)
                .is_some_and(|(then, _)| at.saturating_sub(*then) >= SPEED_WINDOW)
        {
            self.0.pop_front();
        }
        let (since, before) = *self.0.front()?;
        let seconds = at.checked_sub(since)?.as_secs_f64();
        (tokens > 0 && seconds > 0.0).then(|| tokens.saturating_sub(before) as f64 / seconds)
    }
}

/// The time left, from the speed so far. The unit is the *wave*: every slot
/// doing one request. Waves take longer the more slots there are, so the time of
/// one is remembered per concurrency.
#[derive(Debug)]
pub(crate) struct Outlook {
    plan: Vec<Prospect>,
    /// Length of a warm-up request as a share of a measured one.
    warmup_share: f64,
    wave_s: BTreeMap<u32, f64>,
    last_wave_s: Option<f64>,
}

/// A stage to come.
#[derive(Debug)]
struct Prospect {
    plan: StagePlan,
    extent: Extent,
    skipped: bool,
}

/// How much a stage is.
#[derive(Debug, Clone, Copy)]
enum Extent {
    /// So many seconds of issuing: it is bounded by time, or an open loop.
    Seconds(f64),
    /// So many requests, however long they take.
    Requests(u32),
}

/// Where a stage stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// Index of the stage.
    pub(crate) stage: usize,
    /// It is warming up.
    pub(crate) warming: bool,
    /// Requests done, fractions of those in flight included.
    pub(crate) work: f64,
    /// Seconds since warm-up or measuring began.
    pub(crate) elapsed_s: f64,
}

impl Outlook {
    pub(crate) fn new(workload: &Workload) -> Self {
        Self {
            plan: workload
                .plan()
                .into_iter()
                .map(|plan| Prospect {
                    plan,
                    extent: Extent::of(plan, workload),
                    skipped: false,
                })
                .collect(),
            warmup_share: f64::from(workload.warmup_output_tokens)
                / f64::from(workload.output_tokens.max(1)),
            wave_s: BTreeMap::new(),
            last_wave_s: None,
        }
    }

    /// A stage was measured to its end.
    pub(crate) fn finished(&mut self, standing: Standing) {
        let Some(Prospect { plan, .. }) = self.plan.get(standing.stage) else {
            return;
        };
        // An open loop has as many in flight as it happens to have.
        let Some(slots) = plan.level.kind.concurrency() else {
            return;
        };
        if let Some(wave_s) = wave_of(standing, slots) {
            self.wave_s.insert(slots, wave_s);
            self.last_wave_s = Some(wave_s);
        }
    }

    /// A stage will be left out.
    pub(crate) fn skipped(&mut self, stage: u32) {
        if let Some(prospect) = self.plan.get_mut(stage as usize) {
            prospect.skipped = true;
        }
    }

    /// Seconds until all stages are over; none while nothing can be said.
    pub(crate) fn left_s(&self, now: Standing) -> Option<f64> {
        let Prospect { plan, extent, .. } = self.plan.get(now.stage)?;
        let slots = plan.level.kind.slots();
        // An open loop warms up in a closed one.
        let in_waves = now.warming || !plan.level.kind.is_open();
        let seen = wave_of(now, slots).filter(|_| in_waves).map(|wave_s| {
            if now.warming {
                wave_s / self.warmup_share.max(f64::EPSILON)
            } else {
                wave_s
            }
        });
        let known = self.wave_s.get(&slots).copied();
        let here = if now.warming {
            known.or(seen)
        } else {
            seen.or(known)
        }
        .or(self.last_wave_s);
        let waves = |requests: f64| (requests.max(0.0) / f64::from(slots)) * here.unwrap_or(0.0);
        let mut left = if now.warming {
            waves(f64::from(plan.warmup_requests) - now.work) * self.warmup_share
        } else {
            0.0
        };
        left += match *extent {
            Extent::Seconds(seconds) if now.warming => seconds,
            Extent::Seconds(seconds) => (seconds - now.elapsed_s).max(0.0),
            Extent::Requests(requests) => {
                here?;
                waves(f64::from(requests) - if now.warming { 0.0 } else { now.work })
            }
        };
        for later in self.plan.iter().skip(now.stage + 1) {
            if !later.skipped {
                left += self.later_s(later, here)?;
            }
        }
        left.is_finite().then_some(left)
    }

    /// How long a later stage will take, in s.
    fn later_s(&self, later: &Prospect, here: Option<f64>) -> Option<f64> {
        let plan = &later.plan;
        let slots = plan.level.kind.slots();
        let wave_s = self.wave_s.get(&slots).copied().or(here);
        let waves = |requests: u32| f64::from(requests) / f64::from(slots);
        let warmup = waves(plan.warmup_requests) * self.warmup_share * wave_s.unwrap_or(0.0);
        let measuring = match later.extent {
            Extent::Seconds(seconds) => seconds,
            Extent::Requests(requests) => waves(requests) * wave_s?,
        };
        Some(warmup + measuring)
    }
}

impl Extent {
    fn of(plan: StagePlan, workload: &Workload) -> Self {
        match plan.level.size {
            StageSize::Duration { seconds } => Self::Seconds(seconds),
            StageSize::Requests { requests } => schedule::nominal_s(plan.level, &workload.prompts)
                .map_or(Self::Requests(requests), Self::Seconds),
        }
    }
}

fn wave_of(standing: Standing, slots: u32) -> Option<f64> {
    let waves = standing.work / f64::from(slots);
    (waves > 0.0 && standing.elapsed_s > 0.0).then(|| standing.elapsed_s / waves)
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::workload::{Arrivals, LoadLevel, StageKind, Thousandths};

    use super::*;

    fn workload() -> Workload {
        let level = |concurrency, requests| LoadLevel {
            kind: StageKind::ClosedLoop { concurrency },
            size: StageSize::Requests { requests },
        };
        let mut workload = Workload::with_levels("w", vec![level(1, 10), level(4, 40)]);
        workload.output_tokens = 100;
        workload.warmup_output_tokens = 10;
        workload
    }

    fn at(stage: usize, warming: bool, work: f64, elapsed_s: f64) -> Standing {
        Standing {
            stage,
            warming,
            work,
            elapsed_s,
        }
    }

    #[test]
    fn nothing_is_said_before_anything_is_known() {
        let outlook = Outlook::new(&workload());
        assert_eq!(outlook.left_s(at(0, true, 0.0, 0.0)), None);
        assert_eq!(outlook.left_s(at(9, false, 1.0, 1.0)), None);
    }

    #[test]
    fn the_rest_follows_from_the_speed_so_far() {
        let mut outlook = Outlook::new(&workload());
        // 5 of 10 done in 5 s: 5 s left, then a warm-up wave of 0.1 s and ten of 1 s.
        let left = outlook.left_s(at(0, false, 5.0, 5.0)).expect("a time");
        assert!((left - 15.1).abs() < 1e-9, "{left}");
        outlook.finished(at(0, false, 10.0, 10.0));
        // Four slots take 2 s a wave: 20 of 40 done in 10 s.
        let left = outlook.left_s(at(1, false, 20.0, 10.0)).expect("a time");
        assert!((left - 10.0).abs() < 1e-9, "{left}");
    }

    #[test]
    fn stages_bounded_by_time_need_no_speed() {
        let mut workload = workload();
        for level in &mut workload.levels {
            level.size = StageSize::Duration { seconds: 30.0 };
        }
        let outlook = Outlook::new(&workload);
        assert_eq!(outlook.left_s(at(0, true, 0.0, 0.0)), Some(60.0));
    }

    #[test]
    fn open_loops_take_as_long_as_their_schedule() {
        let mut workload = workload();
        let rate = Thousandths::new(4.0).expect("a rate");
        workload.levels = vec![LoadLevel {
            kind: StageKind::OpenLoop {
                rate,
                arrivals: Arrivals::Constant,
            },
            size: StageSize::Requests { requests: 40 },
        }];
        workload.repeats = 2;
        let mut outlook = Outlook::new(&workload);
        assert_eq!(outlook.left_s(at(0, true, 0.0, 0.0)), Some(20.0));
        // However many are over.
        assert_eq!(outlook.left_s(at(0, false, 1.0, 3.0)), Some(17.0));
        outlook.finished(at(0, false, 40.0, 12.0));
        assert_eq!(outlook.left_s(at(1, false, 0.0, 11.0)), Some(0.0));
    }

    #[test]
    fn what_is_left_out_takes_no_time() {
        let mut outlook = Outlook::new(&workload());
        outlook.skipped(1);
        let left = outlook.left_s(at(0, false, 5.0, 5.0)).expect("a time");
        assert!((left - 5.0).abs() < 1e-9, "{left}");
    }

    #[test]
    fn speed_of_the_last_second() {
        let mut speed = Speed::default();
        let ms = Duration::from_millis;
        assert_eq!(speed.note(ms(0), 0), None);
        assert_eq!(speed.note(ms(250), 0), None);
        assert_eq!(speed.note(ms(500), 50), Some(100.0));
        for step in 3..=20 {
            speed.note(ms(step * 250), 1000 + step * 50);
        }
        // 50 tokens each quarter of a second.
        let now = speed.note(ms(5250), 1000 + 21 * 50).expect("a speed");
        assert!((now - 200.0).abs() < 1e-9, "{now}");
    }
}
