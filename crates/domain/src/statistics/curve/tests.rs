use super::*;
use crate::statistics::CONFIDENCE;

/// A curve from ratios with a half width on the logarithmic scale.
fn curve(points: &[(u32, f64)], half: Option<f64>) -> RatioCurve {
    RatioCurve {
        points: points
            .iter()
            .map(|(concurrency, log)| CurvePoint {
                concurrency: *concurrency,
                ratio: RatioInterval {
                    ratio: log.exp(),
                    low: half.map(|half| (log - half).exp()),
                    high: half.map(|half| (log + half).exp()),
                },
            })
            .collect(),
        basis: CurveBasis::Launches,
        pointwise_confidence: CONFIDENCE,
    }
}

#[test]
fn a_crossing_lies_in_the_middle_of_log_c() {
    let curve = curve(&[(1, 0.2), (4, 0.1), (16, -0.1), (64, -0.3)], Some(0.05));
    let crossings = curve.crossings();
    assert_eq!(crossings.len(), 1);
    let crossing = crossings[0];
    assert!((crossing.at - 8.0).abs() < 1e-9);
    assert_eq!(
        (crossing.below, crossing.above),
        (Leader::Second, Leader::First)
    );
    // The ends reach one a quarter of the way (in log C) from either side.
    assert!((crossing.low.expect("low") - 2.0_f64.powf(2.5)).abs() < 1e-9);
    assert!((crossing.high.expect("high") - 2.0_f64.powf(3.5)).abs() < 1e-9);
    assert_eq!(
        curve.sentence("untuned", "tuned", "throughput").as_deref(),
        Some(
            "By throughput, tuned is faster up to C = 6–11, untuned above (interpolated between measured points, pointwise 95 % intervals over launches)."
        )
    );
}

#[test]
fn a_wide_interval_reaches_over_points_and_out_of_what_was_measured() {
    let points = [(1, 0.2), (4, 0.1), (16, -0.1), (64, -0.3)];
    let wide = curve(&points, Some(0.15));
    let crossing = wide.crossings()[0];
    // 0.15 above one is left halfway between C = 1 and 4.
    assert!((crossing.low.expect("low") - 2.0).abs() < 1e-9);
    assert!((crossing.high.expect("high") - 2.0_f64.powf(4.5)).abs() < 1e-9);
    let wider = curve(&points, Some(0.25));
    let crossing = wider.crossings()[0];
    assert_eq!(crossing.low, None);
    assert!(crossing.high.is_some());
    let sentence = wider.sentence("a", "b", "throughput").expect("a sentence");
    assert!(
        sentence.contains("b is faster up to about C = 8 (undecided from C = 1 to 45), a above"),
        "{sentence}"
    );
}

#[test]
fn none_one_or_several_and_either_way_round() {
    assert!(curve(&[(1, 0.1), (2, 0.3)], None).crossings().is_empty());
    let several = curve(&[(1, -0.1), (4, 0.1), (16, -0.1)], None);
    let at: Vec<f64> = several.crossings().iter().map(|c| c.at).collect();
    assert!((at[0] - 2.0).abs() < 1e-9 && (at[1] - 8.0).abs() < 1e-9);
    assert_eq!(
        several.sentence("a", "b", "throughput").as_deref(),
        Some(
            "By throughput as measured, a is faster up to about C = 2, b up to about C = 8, a above; no difference established at any C (interpolated between measured points, no interval)."
        )
    );
    let up = curve(&[(1, -0.1), (4, 0.1)], Some(0.05));
    let crossing = up.crossings()[0];
    assert_eq!(crossing.below, Leader::First);
    assert!(crossing.low.expect("low") < 2.0 && crossing.high.expect("high") > 2.0);
}

#[test]
fn touching_one_is_no_crossing_and_resting_on_it_is_one_in_the_middle() {
    assert!(
        curve(&[(1, 0.1), (2, 0.0), (4, 0.1)], None)
            .crossings()
            .is_empty()
    );
    let resting = curve(&[(1, 0.1), (2, 0.0), (8, 0.0), (16, -0.1)], Some(0.01));
    let crossings = resting.crossings();
    assert_eq!(crossings.len(), 1);
    assert!((crossings[0].at - 4.0).abs() < 1e-9);
    assert!(crossings[0].low.expect("low") < 2.0 && crossings[0].high.expect("high") > 8.0);
    let sentence = curve(&[(1, 0.0), (2, 0.0)], None).sentence("a", "b", "throughput");
    assert!(sentence.expect("a sentence").contains("they agree"));
}

#[test]
fn who_leads_is_said_only_where_an_interval_says_so() {
    let said = |points: &[(u32, f64)], half| {
        curve(points, half)
            .sentence("a", "b", "throughput")
            .expect("a sentence")
    };
    let ahead = [(1, 0.3), (4, 0.1), (16, 0.2)];
    assert!(said(&ahead, Some(0.05)).contains("b leads throughout ("));
    let partly = said(&ahead, Some(0.15));
    assert!(
        partly.contains("b leads at C = 1, 16, no difference established at C = 4 ("),
        "{partly}"
    );
    for half in [Some(0.5), None] {
        let none = said(&ahead, half);
        assert!(
            none.contains("do not cross") && none.contains("; no difference established at any C"),
            "{none}"
        );
    }
    let crossing = said(&[(1, 0.1), (4, -0.1)], Some(0.5));
    assert!(
        crossing.starts_with("By throughput as measured, b")
            && crossing.contains("; no difference established at any C"),
        "{crossing}"
    );
}

#[test]
fn a_point_without_an_interval_ends_what_is_known() {
    let mut gap = curve(&[(1, 0.3), (4, 0.1), (16, -0.1), (64, -0.3)], Some(0.15));
    gap.points[0].ratio.low = None;
    gap.points[0].ratio.high = None;
    let crossing = gap.crossings()[0];
    assert_eq!(crossing.low, None);
    assert!(crossing.high.is_some());
}

#[test]
fn launches_at_shared_levels_make_the_curve() {
    let side = |figures: &[f64]| -> Vec<Launch> {
        figures
            .iter()
            .map(|figure| Launch::single(*figure).expect("a launch"))
            .collect()
    };
    let (slow, fast, lone) = (
        side(&[99.0, 100.0, 101.0]),
        side(&[108.0, 110.0, 112.0]),
        side(&[105.0]),
    );
    let level = |concurrency, first, second| CurveLevel {
        concurrency,
        first,
        second,
    };
    let levels = [
        level(16, &fast, &slow),
        level(1, &slow, &fast),
        level(4, &slow, &[]),
    ];
    let curve = RatioCurve::of(&levels, CONFIDENCE);
    assert_eq!(curve.basis, CurveBasis::Launches);
    assert_eq!(curve.reach(), Some((1, 16)));
    let crossing = curve.crossings()[0];
    assert!((crossing.at - 4.0).abs() < 1e-9);
    assert!(crossing.low.is_some() && crossing.high.is_some());
    // One level with a lone launch, and the curve speaks of the launches alone.
    let levels = [level(1, &slow, &fast), level(16, &slow, &lone)];
    let curve = RatioCurve::of(&levels, CONFIDENCE);
    assert_eq!(curve.basis, CurveBasis::WithinLaunch);
    assert!(!curve.has_intervals());
}
