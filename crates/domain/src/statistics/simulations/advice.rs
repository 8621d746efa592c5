use super::{Critical, Effect, TRIALS, World, rate, world::Random};
use crate::statistics::{Advice, CONFIDENCE, Planning, RELEVANT_EFFECT, over_launches};

/// Whoever makes the advised restarts gets a verdict about as often as the advice
/// supposes, if ratio and spread are what they seemed.
#[test]
fn advised_restarts_settle_it_four_times_in_five() {
    let spread = 0.02;
    let world = World::bare(Effect::LogNormal, spread);
    for (what, centre, seed) in [("a gain of 4 %", 0.04, 301), ("no difference", 0.0, 302)] {
        let advice = Planning {
            centre,
            variance: spread * spread,
            launches: (2, 2),
            blocked: false,
            delta: RELEVANT_EFFECT,
            error: 1.0 - CONFIDENCE,
            minutes_per_launch: None,
        }
        .advice();
        let Advice::Restarts { first, second, .. } = advice else {
            panic!("{advice:?}");
        };
        let (mut random, mut critical) = (Random::seeded(seed), Critical::at(CONFIDENCE));
        let percent = rate(
            &format!("verdicts after {} advised restarts, {what}", first + second),
            TRIALS,
            || {
                let one = world.launches(&mut random, 2 + first);
                let other: Vec<_> = (0..2 + second)
                    .map(|_| world.launch(&mut random, centre))
                    .collect();
                let estimate = over_launches(&one, &other).expect("an estimate");
                let (low, high) = critical.ends(&estimate);
                let band = RELEVANT_EFFECT.ln_1p();
                low > 0.0 || high < 0.0 || (low > -band && high < band)
            },
        );
        assert!((78.0..=86.0).contains(&percent), "{percent} %");
    }
}
