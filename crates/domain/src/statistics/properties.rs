//! What holds for any figures.

use proptest::{collection::vec, prelude::*};

use super::{
    CONFIDENCE, Components, Launch, LogEstimate, Planning, configuration, holm, over_blocks,
    over_launches, within_launches,
};

type Figures = Vec<Vec<f64>>;

/// Launches of one to four repeats, over three orders of magnitude.
fn figures(launches: std::ops::Range<usize>) -> impl Strategy<Value = Figures> {
    vec(vec(1.0..1000.0_f64, 1..5), launches)
}

fn launches(figures: &Figures, factor: f64) -> Vec<Launch> {
    figures
        .iter()
        .map(|repeats| {
            let scaled: Vec<f64> = repeats.iter().map(|figure| figure * factor).collect();
            Launch::new(&scaled).expect("positive figures")
        })
        .collect()
}

fn both(first: &[Launch], second: &[Launch]) -> [LogEstimate; 2] {
    [
        over_launches(first, second).expect("a ratio"),
        within_launches(first, second).expect("a ratio"),
    ]
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-7 * (1.0 + one.abs().max(other.abs()))
}

fn is_alike(one: Option<f64>, other: Option<f64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => is_near(one.ln(), other.ln()),
        (None, None) => true,
        _ => false,
    }
}

proptest! {
    #[test]
    fn the_unit_does_not_matter(
        first in figures(1..6), second in figures(1..6), factor in 0.01..100.0_f64,
    ) {
        let one = both(&launches(&first, 1.0), &launches(&second, 1.0));
        let other = both(&launches(&first, factor), &launches(&second, factor));
        for (one, other) in one.iter().zip(&other) {
            let (one, other) = (one.ratio(CONFIDENCE), other.ratio(CONFIDENCE));
            prop_assert!(is_near(one.ratio, other.ratio));
            prop_assert!(is_alike(one.low, other.low) && is_alike(one.high, other.high));
        }
        let mean = |factor| configuration(&launches(&first, factor)).expect("a mean").mean(CONFIDENCE);
        prop_assert!(is_near((mean(1.0).mean * factor).ln(), mean(factor).mean.ln()));
        prop_assert!(is_alike(mean(1.0).low.map(|low| low * factor), mean(factor).low));
    }

    #[test]
    fn the_other_way_round_is_the_reciprocal(first in figures(1..6), second in figures(1..6)) {
        let (first, second) = (launches(&first, 1.0), launches(&second, 1.0));
        let (there, back) = (both(&first, &second), both(&second, &first));
        for (there, back) in there.iter().zip(&back) {
            let (one, other) = (there.ratio(CONFIDENCE), back.ratio(CONFIDENCE));
            prop_assert!(is_near(one.ratio.ln(), -other.ratio.ln()));
            prop_assert!(is_alike(one.low, other.high.map(f64::recip)));
            prop_assert!(is_alike(one.high, other.low.map(f64::recip)));
            prop_assert_eq!(there.p_value().is_some(), back.p_value().is_some());
        }
    }

    #[test]
    fn more_confidence_is_a_wider_interval(
        first in figures(2..6), second in figures(2..6), low in 0.5..0.99_f64, more in 0.001..0.009_f64,
    ) {
        let (first, second) = (launches(&first, 1.0), launches(&second, 1.0));
        let estimate = over_launches(&first, &second).expect("a ratio");
        let narrow = estimate.ends(low).expect("an interval");
        let wide = estimate.ends(low + more).expect("an interval");
        prop_assert!(wide.0 < narrow.0 && narrow.1 < wide.1);
        prop_assert!(narrow.0 < estimate.centre && estimate.centre < narrow.1);
    }

    #[test]
    fn a_drift_that_blocks_share_does_not_matter(
        figures in vec((1.0..1000.0_f64, 1.0..1000.0_f64, 0.1..10.0_f64), 2..6),
    ) {
        let estimate = |drifts: bool| {
            let blocks: Vec<(Launch, Launch)> = figures
                .iter()
                .map(|(first, second, drift)| {
                    let factor = if drifts { *drift } else { 1.0 };
                    let launch = |figure: f64| Launch::single(figure * factor).expect("a launch");
                    (launch(*first), launch(*second))
                })
                .collect();
            let blocks: Vec<(&Launch, &Launch)> = blocks.iter().map(|(one, other)| (one, other)).collect();
            over_blocks(&blocks).expect("a ratio").ratio(CONFIDENCE)
        };
        let (calm, adrift) = (estimate(false), estimate(true));
        prop_assert!(is_near(calm.ratio.ln(), adrift.ratio.ln()));
        prop_assert!(is_alike(calm.low, adrift.low));
    }

    #[test]
    fn holm_never_rejects_more_than_uncorrected_nor_less_than_bonferroni(
        p_values in vec(0.0..0.2_f64, 0..15),
    ) {
        let tested = holm(&p_values, 0.05);
        prop_assert_eq!(tested.len(), p_values.len());
        for (p, tested) in p_values.iter().zip(&tested) {
            prop_assert!(!tested.rejected || *p <= 0.05);
            prop_assert!(tested.rejected || *p > 0.05 / p_values.len() as f64);
            // The interval at the tested level agrees with the verdict.
            prop_assert_eq!(tested.rejected, *p <= tested.error);
            prop_assert!(tested.adjusted >= *p);
            prop_assert_eq!(tested.rejected, tested.adjusted <= 0.05 * (1.0 + 1e-12));
        }
    }

    #[test]
    fn components_are_variances(figures in vec(figures(1..5), 1..4)) {
        let sides: Vec<Vec<Launch>> = figures.iter().map(|side| launches(side, 1.0)).collect();
        let sides: Vec<&[Launch]> = sides.iter().map(Vec::as_slice).collect();
        if let Some(components) = Components::of(&sides) {
            prop_assert!(components.between.is_finite() && components.between >= 0.0);
            prop_assert!(components.within.is_none_or(|within| within.is_finite() && within >= 0.0));
            prop_assert!(components.of_launch(2.0) <= components.of_launch(1.0));
        }
    }

    #[test]
    fn a_calmer_host_never_needs_more_restarts(
        centre in -0.1..0.1_f64, sd in 0.001..0.2_f64, first in 1..8_u32, second in 1..8_u32,
    ) {
        let count = |sd: f64| {
            let planning = Planning {
                centre,
                variance: sd * sd,
                launches: (first, second),
                blocked: false,
                delta: 0.02,
                error: 0.05,
                minutes_per_launch: None,
            };
            match planning.advice() {
                super::Advice::Restarts { first, second, .. } => first + second,
                _ => super::MOST_RESTARTS + 1,
            }
        };
        prop_assert!(count(sd) >= 1);
        prop_assert!(count(sd * 0.7) <= count(sd));
    }
}
