//! Requests of others, as the engine's own count beside the client's tells.

use super::share;
use crate::{host::RunSample, metrics::StageFlag};

/// Strangers' requests are believed when so many samples in a row tell of them: the
/// engine's count and the client's are not taken at the same moment.
const IN_A_ROW: usize = 3;

pub(super) fn check(samples: &[&RunSample]) -> Option<StageFlag> {
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
        .split(|more| *more == 0)
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
        super::testing::{refs, sample},
        *,
    };

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
        assert_eq!(check(&refs(&run(&[0, 5, 5, 0, 3, 0, 2, 2]))), None);
        assert_eq!(
            check(&refs(&run(&[0, 1, 4, 2, 0, 0]))),
            Some(StageFlag::OtherRequests {
                most: 4,
                share: 0.5
            })
        );
        let mut silent = run(&[9, 9, 9]);
        for second in &mut silent {
            second.engine_requests = None;
        }
        assert_eq!(check(&refs(&silent)), None);
    }
}
