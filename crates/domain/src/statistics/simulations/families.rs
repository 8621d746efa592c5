use super::{Critical, Effect, TRIALS, World, rate, world::Random};
use crate::{
    source::Source,
    statistics::{Better, CONFIDENCE, Launch, LogEstimate, RELEVANT_EFFECT, holm, over_launches},
    verdict::{Pair, Question, Side, Verdict, VerdictKind, judge_family},
};

const ERROR: f64 = 1.0 - CONFIDENCE;
const LAUNCHES: u32 = 5;

/// Eleven configurations, each moved by `shift`, against a baseline: the share of
/// families in which a verdict is wrong. They are judged as the product does, but
/// only where some pair comes near the strictest step at all.
fn against_a_baseline(
    what: &str,
    world: World,
    shift: f64,
    seed: u64,
    is_wrong: fn(&Verdict) -> bool,
) -> f64 {
    let mut random = Random::seeded(seed);
    let mut near = Critical::at(1.0 - 1.1 * ERROR / 11.0);
    rate(&format!("families with a false {what}"), TRIALS, || {
        let baseline = world.launches(&mut random, LAUNCHES);
        let others: Vec<Vec<Launch>> = (0..11)
            .map(|_| {
                (0..LAUNCHES)
                    .map(|_| world.launch(&mut random, shift))
                    .collect()
            })
            .collect();
        let is_far = others.iter().any(|other| {
            let estimate = over_launches(&baseline, other).expect("an estimate");
            !near.covers(&estimate, shift)
        });
        is_far && judged(&baseline, &others).iter().any(is_wrong)
    })
}

fn judged(baseline: &[Launch], others: &[Vec<Launch>]) -> Vec<Verdict> {
    let side = |launches| Side {
        name: "one",
        launches,
        source: Source::Simulated,
        objection: None,
        failed: None,
    };
    let pairs = others
        .iter()
        .map(|other| Pair {
            question: Question::of("speed", Better::Higher),
            first: side(baseline),
            second: side(other),
            comparable: Ok(()),
        })
        .collect();
    judge_family("against the baseline", pairs)
}

const fn is_decided(verdict: &Verdict) -> bool {
    matches!(verdict.kind, VerdictKind::Better | VerdictKind::Worse)
}

#[test]
fn twelve_equal_configurations_against_a_baseline() {
    for (effect, spread, seed) in [
        (Effect::Normal, 0.10, 101),
        (Effect::LogNormal, 0.03, 102),
        (Effect::HeavyTailed, 0.05, 103),
    ] {
        let what = format!("difference, 11 pairs with a baseline, {effect:?} {spread}");
        let world = World::bare(effect, spread);
        let percent = against_a_baseline(&what, world, 0.0, seed, is_decided);
        assert!(percent <= 5.0, "{percent} %");
    }
}

#[test]
fn twelve_equal_configurations_each_against_each() {
    let pairs: Vec<(usize, usize)> = (0..12)
        .flat_map(|first| (first + 1..12).map(move |second| (first, second)))
        .collect();
    let world = World::bare(Effect::LogNormal, 0.03);
    let mut random = Random::seeded(104);
    let mut near = Critical::at(1.0 - 1.1 * ERROR / pairs.len() as f64);
    let percent = rate(
        "families with a false difference, all 66 pairs",
        TRIALS,
        || {
            let sides: Vec<Vec<Launch>> = (0..12)
                .map(|_| world.launches(&mut random, LAUNCHES))
                .collect();
            let estimates: Vec<LogEstimate> = pairs
                .iter()
                .map(|(first, second)| {
                    over_launches(&sides[*first], &sides[*second]).expect("an estimate")
                })
                .collect();
            if estimates.iter().all(|estimate| near.covers(estimate, 0.0)) {
                return false;
            }
            let p_values: Vec<f64> = estimates
                .iter()
                .map(|estimate| estimate.p_value().expect("a p value"))
                .collect();
            holm(&p_values, ERROR).iter().any(|tested| tested.rejected)
        },
    );
    assert!(percent <= 5.0, "{percent} %");
}

/// Effects exactly on the bound: neither is one of them relevant, nor near enough.
#[test]
fn what_matters_and_what_does_not_is_claimed_no_oftener() {
    let calm = World::bare(Effect::LogNormal, 0.003);
    let (beyond, near) = (-(-RELEVANT_EFFECT).ln_1p(), RELEVANT_EFFECT.ln_1p());
    let percent = against_a_baseline(
        "relevant difference, 11 effects of δ",
        calm,
        beyond,
        111,
        |verdict| verdict.relevant,
    );
    assert!(percent <= 5.0, "{percent} %");
    let percent = against_a_baseline(
        "no clear change, 11 effects of δ",
        World::bare(Effect::LogNormal, 0.01),
        near,
        112,
        |verdict| verdict.kind == VerdictKind::NoClearChange,
    );
    assert!(percent <= 5.0, "{percent} %");
}
