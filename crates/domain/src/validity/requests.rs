//! Requests of others, as the engine's own count beside the client's tells.

use super::share;
use crate::{host::RunSample, metrics::StageFlag, workload::StageKind};

/// Strangers' requests are believed when so many samples in a row tell of them: the
/// engine's count and the client's are not taken at the same moment.
const IN_A_ROW: usize = 3;

/// Are there more requests in the engine, through several samples of a stage, than the
/// client can have sent?
pub(super) fn check_stage(samples: &[&RunSample], kind: StageKind) -> Option<StageFlag> {
    check(samples, arriving(kind)?)
}

/// The same of samples in no stage: when they were taken no schedule was under way.
pub(super) fn check_between(samples: &[&RunSample]) -> Option<StageFlag> {
    let between: Vec<&RunSample> = samples
        .iter()
        .copied()
        .filter(|sample| sample.stage.is_none())
        .collect();
    check(&between, 0)
}

/// Own requests that can have come to the engine since the client last told its count,
/// for which a whole second between two samples is ample. A closed loop sends one when
/// another is over, so its count stands. None where nobody can tell: the rate of a trace
/// varies, and is not known here.
fn arriving(kind: StageKind) -> Option<u64> {
    let a_second = |rate: f64| rate.ceil() as u64;
    match kind {
        StageKind::SingleStream | StageKind::ClosedLoop { .. } => Some(0),
        StageKind::OpenLoop { rate, .. } => Some(a_second(rate.get())),
        StageKind::Ramp { from, to, .. } => Some(a_second(from.max(to).get())),
        StageKind::Replay { .. } => None,
    }
}

fn check(samples: &[&RunSample], arriving: u64) -> Option<StageFlag> {
    let excess: Vec<u64> = samples
        .iter()
        .map(
            |sample| match (sample.engine_requests, sample.own_in_flight) {
                (Some(all), Some(own)) => all.saturating_sub(own.into()),
                _ => 0,
            },
        )
        .collect();
    let told = samples
        .iter()
        .filter(|sample| sample.engine_requests.is_some() && sample.own_in_flight.is_some())
        .count();
    let believed: Vec<&[u64]> = excess
        .split(|more| *more <= arriving)
        .filter(|row| row.len() >= IN_A_ROW)
        .collect();
    let most = *believed.iter().flat_map(|row| row.iter()).max()?;
    let count: usize = believed.iter().map(|row| row.len()).sum();
    Some(StageFlag::OtherRequests {
        most,
        share: share(count, told),
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{CLOSED, refs, sample},
        *,
    };
    use crate::workload::{Arrivals, Thousandths};

    fn run(excess: &[u64]) -> Vec<RunSample> {
        excess
            .iter()
            .zip(0..)
            .map(|(more, second)| RunSample {
                engine_requests: Some(8 + more),
                own_in_flight: Some(8),
                ..sample(second, vec![])
            })
            .collect()
    }

    #[test]
    fn requests_of_others_are_believed_when_they_stay() {
        assert_eq!(
            check_stage(&refs(&run(&[0, 5, 5, 0, 3, 0, 2, 2])), CLOSED),
            None
        );
        assert_eq!(
            check_stage(&refs(&run(&[0, 1, 4, 2, 0, 0])), CLOSED),
            Some(StageFlag::OtherRequests {
                most: 4,
                share: 0.5
            })
        );
        let mut silent = run(&[9, 9, 9]);
        for second in &mut silent {
            second.engine_requests = None;
        }
        assert_eq!(check_stage(&refs(&silent), CLOSED), None);
    }

    #[test]
    fn requests_that_a_schedule_has_just_sent_are_not_of_others() {
        let rate = |rate| Thousandths::new(rate).expect("a rate");
        let arrivals = Arrivals::Poisson;
        let open = StageKind::OpenLoop {
            rate: rate(4.5),
            arrivals,
        };
        let [up, down] = [(0.5, 4.5), (4.5, 0.5)].map(|(from, to)| StageKind::Ramp {
            from: rate(from),
            to: rate(to),
            arrivals,
        });
        for kind in [open, up, down] {
            let at = |excess: &[u64]| check_stage(&refs(&run(excess)), kind);
            assert_eq!(at(&[1, 5, 3, 5, 2, 5]), None, "{kind}");
            assert_eq!(at(&[9, 6, 5, 6, 9, 0]), None, "not in a row at {kind}");
            let strangers = StageFlag::OtherRequests {
                most: 9,
                share: 0.5,
            };
            assert_eq!(at(&[5, 6, 9, 7, 1, 0]), Some(strangers), "{kind}");
        }
        let replay = StageKind::Replay {
            speed: Thousandths::ONE,
        };
        assert_eq!(check_stage(&refs(&run(&[90; 9])), replay), None);
    }

    #[test]
    fn the_host_tells_only_of_samples_in_no_stage() {
        let mut samples = run(&[2, 2, 2]);
        assert!(check_between(&refs(&samples)).is_some());
        for sample in &mut samples {
            sample.stage = Some(0);
        }
        assert_eq!(check_between(&refs(&samples)), None);
    }
}
