//! What is written reads back.

use proptest::prelude::*;

use super::{Comparison, Demand, Figure, Level, METRICS, Place, Rule, Statistic};
use crate::workload::Thousandths;

fn level() -> impl Strategy<Value = Option<Level>> {
    let rate = (1_u32..4_000_000_000).prop_filter_map("a rate", Thousandths::of_thousandths);
    proptest::option::of(prop_oneof![
        Just(Level::Single),
        Just(Level::Ramp),
        Just(Level::Replay),
        any::<u32>().prop_map(Level::Closed),
        rate.prop_map(Level::Rate),
    ])
}

fn figure() -> impl Strategy<Value = Figure> {
    (0..METRICS.len(), 0..Statistic::ALL.len()).prop_map(|(metric, statistic)| {
        let metric = &METRICS[metric];
        Figure {
            metric,
            statistic: matches!(metric.place, Place::Distribution(_))
                .then_some(Statistic::ALL[statistic]),
        }
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    let comparison = prop_oneof![
        Just(Comparison::Less),
        Just(Comparison::LessOrEqual),
        Just(Comparison::Greater),
        Just(Comparison::GreaterOrEqual),
    ];
    let number = any::<f64>().prop_filter("a number", |number| number.is_finite());
    let bound =
        (comparison, number).prop_map(|(comparison, bound)| Demand::Bound { comparison, bound });
    let not_worse =
        (0.0..100.0_f64, any::<bool>()).prop_map(|(percent, within_launches)| Demand::NotWorse {
            percent,
            within_launches,
        });
    (level(), figure(), prop_oneof![bound, not_worse])
        .prop_filter("a ratio", |(_, figure, demand)| {
            matches!(demand, Demand::Bound { .. }) || figure.metric.better.is_some()
        })
        .prop_map(|(level, figure, demand)| Rule {
            level,
            figure,
            demand,
        })
}

proptest! {
    #[test]
    fn a_rule_reads_back_as_it_is_written(rule in rule()) {
        let text = rule.to_string();
        // The longest numbers there are have hundreds of digits, which nobody types.
        prop_assume!(text.chars().count() <= 200);
        prop_assert_eq!(text.parse(), Ok(rule), "{}", text);
    }

    #[test]
    fn whatever_is_typed_is_a_rule_or_a_sentence(text in ".{0,80}") {
        match text.parse::<Rule>() {
            Ok(rule) => prop_assert_eq!(rule.to_string().parse(), Ok(rule)),
            Err(error) => prop_assert!(error.to_string().ends_with('.'), "{error}"),
        }
    }

    #[test]
    fn the_opposite_holds_exactly_where_it_does_not(
        rule in rule(), value in -1e6..1e6_f64, near in any::<bool>()
    ) {
        if let Demand::Bound { comparison, bound } = rule.demand {
            let value = if near { bound } else { value };
            prop_assert_ne!(
                comparison.holds(value, bound),
                comparison.opposite().holds(value, bound)
            );
            prop_assert_eq!(comparison.opposite().opposite(), comparison);
        }
    }
}
