//! Did the engine work on as many requests as the client had in flight? Its own gauges
//! tell, whatever it says of its limits.

use super::{FEWEST, StagePart};
use crate::{conditions::EngineReport, metrics::StageFlag};

/// The engine worked on fewer than this share of C at every reading. Between one reply
/// and the next request a slot is empty for a moment, which takes a few percent.
const REACHED: f64 = 0.9;

/// Fewer than this share of the requests in flight ever came to the engine. What is
/// being written, read and split into tokens is in flight and not yet, or no more, the
/// engine's.
const ARRIVED: f64 = 0.8;

/// A queue through the whole of a stage: C was never worked on. At the beginning of a
/// stage all engines have one, so a peak that reaches C clears it.
pub(super) fn waiting(stage: &StagePart<'_>) -> Option<StageFlag> {
    let asked = stage.kind.concurrency()?;
    let is_capped = |flag: &StageFlag| matches!(flag, StageFlag::EngineCap { .. });
    if stage.flags.iter().any(is_capped) {
        // Which says the same, and why.
        return None;
    }
    let (running, waiting) = gauges(stage.engine()?)?;
    (waiting >= 1.0 && running < REACHED * f64::from(asked)).then(|| StageFlag::EngineQueue {
        running: whole(running),
        waiting: whole(waiting),
        asked,
    })
}

/// Requests that neither ran nor waited anywhere in the engine.
pub(super) fn held_back(stage: &StagePart<'_>) -> Option<StageFlag> {
    stage.kind.concurrency()?;
    let in_flight = stage.achieved_concurrency?;
    let (running, waiting) = gauges(stage.engine()?)?;
    let at_engine = running + waiting;
    // A few requests come and go between two readings.
    (in_flight >= 4.0 && at_engine < ARRIVED * in_flight).then(|| StageFlag::HeldBack {
        at_engine: whole(at_engine),
        in_flight,
    })
}

/// The most that ran and the most that waited, where there are enough readings.
fn gauges(engine: &EngineReport) -> Option<(f64, f64)> {
    let enough = usize::try_from(engine.samples).is_ok_and(|samples| samples >= FEWEST);
    enough
        .then_some(engine.running_max?)
        .zip(engine.waiting_max)
}

fn whole(requests: f64) -> u32 {
    // Gauges are floating-point numbers; the conversion saturates.
    requests.round() as u32
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{part, said},
        *,
    };
    use crate::workload::StageKind;

    const TWENTY: StageKind = StageKind::ClosedLoop { concurrency: 20 };

    fn with(samples: u32, running: f64, waiting: f64) -> [Option<StageFlag>; 2] {
        let conditions = said(EngineReport {
            samples,
            running_max: Some(running),
            waiting_max: Some(waiting),
            ..EngineReport::default()
        });
        let stage = part(0, TWENTY, &conditions);
        [super::waiting(&stage), held_back(&stage)]
    }

    #[test]
    fn a_queue_all_through_a_stage_is_flagged() {
        assert_eq!(with(5, 18.0, 2.0), [None, None]);
        assert_eq!(with(5, 17.0, 0.0), [None, None], "nobody waited");
        let queue = StageFlag::EngineQueue {
            running: 17,
            waiting: 3,
            asked: 20,
        };
        assert_eq!(with(5, 17.0, 3.0), [Some(queue), None]);
        assert_eq!(with(4, 17.0, 3.0), [None, None], "too few readings");
    }

    #[test]
    fn a_queue_behind_a_known_limit_is_said_once() {
        let conditions = said(EngineReport {
            samples: 9,
            running_max: Some(10.0),
            waiting_max: Some(10.0),
            ..EngineReport::default()
        });
        let flags = [StageFlag::EngineCap {
            cap: 10,
            in_flight: 20,
        }];
        let stage = part(0, TWENTY, &conditions);
        assert!(super::waiting(&stage).is_some());
        let capped = StagePart {
            flags: &flags,
            ..stage
        };
        assert_eq!(super::waiting(&capped), None);
    }

    #[test]
    fn requests_that_never_come_to_the_engine_are_flagged() {
        assert_eq!(with(5, 16.0, 0.0), [None, None]);
        let held = StageFlag::HeldBack {
            at_engine: 15,
            in_flight: 20.0,
        };
        assert_eq!(with(5, 15.0, 0.0), [None, Some(held)]);
        assert_eq!(with(4, 15.0, 0.0), [None, None], "too few readings");
    }

    #[test]
    fn a_handful_or_a_rate_tells_nothing() {
        let conditions = said(EngineReport {
            samples: 9,
            running_max: Some(0.0),
            waiting_max: Some(0.0),
            ..EngineReport::default()
        });
        let mut few = part(0, StageKind::SingleStream, &conditions);
        assert_eq!(held_back(&few), None);
        few.kind = StageKind::Replay {
            speed: crate::workload::Thousandths::ONE,
        };
        few.achieved_concurrency = Some(50.0);
        assert_eq!([super::waiting(&few), held_back(&few)], [None, None]);
    }
}
