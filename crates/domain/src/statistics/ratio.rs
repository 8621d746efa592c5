//! One configuration, and the ratio of two.

use super::{
    history::PooledHistory,
    interval::{LogEstimate, Spread},
    launch::{Launch, values},
    moments::{Moments, Share},
};

/// One configuration over its launches: Student's t interval on the launches'
/// values. None without a launch; no interval below two.
///
/// Student (1908), *Biometrika* 6: 1–25.
#[must_use]
pub fn configuration(launches: &[Launch]) -> Option<LogEstimate> {
    let moments = Moments::of(&values(launches))?;
    Some(LogEstimate::new(
        moments.mean,
        moments.share().as_ref().map(std::slice::from_ref),
    ))
}

/// The ratio second / first over launches: Welch's t on the launches' values, with
/// Satterthwaite's degrees of freedom. None if a side has no launch; no interval
/// if one has fewer than two.
///
/// Welch, B. L. (1947), *Biometrika* 34: 28–35.
#[must_use]
pub fn over_launches(first: &[Launch], second: &[Launch]) -> Option<LogEstimate> {
    let (one, other) = (Moments::of(&values(first))?, Moments::of(&values(second))?);
    let shares = one.share().zip(other.share()).map(|(a, b)| [a, b]);
    Some(LogEstimate::new(
        other.mean - one.mean,
        shares.as_ref().map(<[Share; 2]>::as_slice),
    ))
}

/// The ratio second / first over blocks that the plan laid down beforehand: paired
/// t on the differences within each block, first launch before second. Blocks found
/// afterwards are none. None without a block; no interval below two.
#[must_use]
pub fn over_blocks(blocks: &[(&Launch, &Launch)]) -> Option<LogEstimate> {
    let differences: Vec<f64> = blocks
        .iter()
        .map(|(first, second)| second.value() - first.value())
        .collect();
    let moments = Moments::of(&differences)?;
    Some(LogEstimate::new(
        moments.mean,
        moments.share().as_ref().map(std::slice::from_ref),
    ))
}

/// The ratio second / first within these very launches: what the spread of repeats
/// alone allows to say. It speaks of the launches that were, and says nothing of
/// the next ones. None if a side has no launch; no interval if a launch has a
/// single repeat.
#[must_use]
pub fn within_launches(first: &[Launch], second: &[Launch]) -> Option<LogEstimate> {
    let (one, other) = (Moments::of(&values(first))?, Moments::of(&values(second))?);
    let shares: Option<Vec<Share>> = [first, second]
        .into_iter()
        .flat_map(|side| side.iter().map(move |launch| (launch, side.len() as f64)))
        .map(|(launch, launches)| {
            let share = launch.logs().share()?;
            Some(Share {
                variance: share.variance / launches.powi(2),
                ..share
            })
        })
        .collect();
    Some(LogEstimate::new(other.mean - one.mean, shares.as_deref()))
}

/// The ratio second / first where a side has a single launch: how much launches
/// vary is taken from the host's history, which the reader must be told by name.
/// None if a side has no launch.
#[must_use]
pub fn with_history(
    first: &[Launch],
    second: &[Launch],
    history: &PooledHistory,
) -> Option<LogEstimate> {
    let (one, other) = (Moments::of(&values(first))?, Moments::of(&values(second))?);
    let variance = history.between_launch_sd_log.powi(2) * (one.n.recip() + other.n.recip());
    Some(LogEstimate {
        centre: other.mean - one.mean,
        spread: (history.df > 0 && variance.is_finite() && variance > 0.0).then(|| Spread {
            standard_error: variance.sqrt(),
            freedom: f64::from(history.df),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{CONFIDENCE, interval::student_t};

    fn launches(figures: &[&[f64]]) -> Vec<Launch> {
        figures
            .iter()
            .map(|repeats| Launch::new(repeats).expect("a launch"))
            .collect()
    }

    #[test]
    fn equal_samples_have_ratio_one_inside_the_interval() {
        let side = launches(&[&[90.0], &[91.0], &[89.5]]);
        let interval = over_launches(&side, &side)
            .expect("a ratio")
            .ratio(CONFIDENCE);
        assert!((interval.ratio - 1.0).abs() < 1e-12);
        assert!(interval.low.expect("low") < 1.0 && interval.high.expect("high") > 1.0);
    }

    #[test]
    fn repeats_are_no_launches() {
        let (slow, fast) = (launches(&[&[63.5, 63.7]]), launches(&[&[89.9, 90.1]]));
        let across = over_launches(&slow, &fast).expect("a ratio");
        assert_eq!(across.spread, None);
        let within = within_launches(&slow, &fast)
            .expect("a ratio")
            .ratio(CONFIDENCE);
        assert!(within.low.expect("low") > 1.38 && within.high.expect("high") < 1.45);
        let single = launches(&[&[82.5]]);
        assert_eq!(
            within_launches(&single, &fast).expect("a ratio").spread,
            None
        );
        assert_eq!(over_launches(&[], &fast), None);
    }

    #[test]
    fn figures_without_any_spread_claim_no_certainty() {
        for (first, second) in [(63.6, 90.0), (63.7, 90.1), (0.1, 0.3)] {
            let (one, other) = (
                launches(&[&[first; 3][..]; 3]),
                launches(&[&[second; 3][..]; 3]),
            );
            for estimate in [over_launches(&one, &other), within_launches(&one, &other)] {
                let estimate = estimate.expect("a ratio");
                assert!((estimate.centre.exp() - second / first).abs() < 1e-12);
                assert_eq!(estimate.spread, None);
            }
        }
        // The spread of one side is still something to go by.
        let (alike, spread) = (
            launches(&[&[63.6], &[63.6]]),
            launches(&[&[90.0], &[90.1], &[89.9]]),
        );
        let estimate = over_launches(&alike, &spread).expect("a ratio");
        assert_eq!(estimate.spread.map(|spread| spread.freedom), Some(2.0));
    }

    #[test]
    fn welch_by_hand() {
        // Logs 0, 2 and 3, 3.2: means 1 and 3.1, variances 2 and 0.02.
        let e = std::f64::consts::E;
        let first = launches(&[&[1.0], &[e.powi(2)]]);
        let second = launches(&[&[e.powi(3)], &[e.powf(3.2)]]);
        let estimate = over_launches(&first, &second).expect("a ratio");
        let variance: f64 = 2.0 / 2.0 + 0.02 / 2.0;
        let freedom = variance.powi(2) / (1.0_f64 + 0.0001);
        let half = student_t(CONFIDENCE, freedom).expect("t") * variance.sqrt();
        assert!((estimate.centre - 2.1).abs() < 1e-9);
        let (low, _) = estimate.ends(CONFIDENCE).expect("an interval");
        assert!((low - (2.1 - half)).abs() < 1e-9);
    }

    #[test]
    fn blocks_take_out_what_both_sides_share() {
        // A drift of 30 % a day, and a gain of about 5 % within each day.
        let first = launches(&[&[100.0], &[130.0], &[170.0]]);
        let second = launches(&[&[105.0], &[136.0], &[179.0]]);
        let blocks: Vec<(&Launch, &Launch)> = first.iter().zip(&second).collect();
        let paired = over_blocks(&blocks).expect("a ratio").ratio(CONFIDENCE);
        assert!(paired.low.expect("low") > 1.03, "{paired:?}");
        let unpaired = over_launches(&first, &second)
            .expect("a ratio")
            .ratio(CONFIDENCE);
        assert!(unpaired.low.expect("low") < 1.0);
        assert!((paired.ratio - unpaired.ratio).abs() < 1e-12);
    }

    #[test]
    fn history_stands_in_for_launches() {
        let history = PooledHistory {
            between_launch_sd_log: 0.01,
            df: 8,
            label: "gpu1".to_owned(),
        };
        let (one, other) = (launches(&[&[82.5]]), launches(&[&[90.0]]));
        let estimate = with_history(&one, &other, &history).expect("a ratio");
        let spread = estimate.spread.expect("a spread");
        assert!((spread.standard_error - 0.01 * 2.0_f64.sqrt()).abs() < 1e-15);
        assert_eq!(spread.freedom, 8.0);
        let mean = configuration(&one).expect("a mean").mean(CONFIDENCE);
        assert!((mean.mean - 82.5).abs() < 1e-9 && mean.low.is_none());
    }
}
