use super::{Critical, Effect, TRIALS, World, rate, world::Random};
use crate::statistics::{CONFIDENCE, Looks, over_launches};

/// Error of each of three looks after Pocock, S. J. (1977), *Biometrika* 64:
/// 191–199, whose levels suppose groups of equal size.
const POCOCK_OF_THREE: f64 = 0.0221;

/// The share of plans over two equal configurations in which a look, at so many
/// launches a side and so much error each, sees a difference.
fn false_verdicts(what: &str, world: World, looks: &[u32], error: f64, seed: u64) -> f64 {
    let (mut random, mut critical) = (Random::seeded(seed), Critical::at(1.0 - error));
    let most = looks.iter().copied().max().expect("a look");
    rate(
        &format!("plans with a false verdict, {what}"),
        TRIALS,
        || {
            let first = world.launches(&mut random, most);
            let second = world.launches(&mut random, most);
            looks.iter().any(|launches| {
                let so_far = *launches as usize;
                let estimate =
                    over_launches(&first[..so_far], &second[..so_far]).expect("an estimate");
                !critical.covers(&estimate, 0.0)
            })
        },
    )
}

#[test]
fn declared_looks_keep_the_error() {
    let every = |from: u32, step: usize, looks: u32| -> Vec<u32> {
        (from..).step_by(step).take(looks as usize).collect()
    };
    for (schedule, seed) in [
        (every(3, 1, 3), 201),
        (every(5, 5, 3), 202),
        (every(2, 2, 5), 203),
        (vec![2, 4, 8, 16, 32], 204),
        (every(3, 1, 10), 205),
    ] {
        for world in [
            World::bare(Effect::Normal, 0.10),
            World::bare(Effect::LogNormal, 0.03),
        ] {
            let planned = u32::try_from(schedule.len()).expect("few looks");
            let looks = Looks::new(planned, 1).expect("a look");
            let what = format!(
                "{planned} looks at {schedule:?} launches, {:?}",
                world.effect
            );
            let percent = false_verdicts(&what, world, &schedule, looks.error(), seed);
            assert!(percent <= 5.0, "{percent} %");
        }
    }
}

/// Why looks are declared: looking a second time as if it were the first, after
/// twice the launches, errs more often than it says.
#[test]
fn an_undeclared_second_look_errs_too_often() {
    let percent = false_verdicts(
        "a second look that nobody declared",
        World::bare(Effect::LogNormal, 0.03),
        &[5, 10],
        1.0 - CONFIDENCE,
        211,
    );
    assert!((6.5..=9.5).contains(&percent), "{percent} %");
}

/// Why the error is split evenly: sharper levels hold for evenly spaced looks, and
/// not for those that are far apart.
#[test]
fn pocock_holds_only_for_evenly_spaced_looks() {
    let world = World::bare(Effect::LogNormal, 0.03);
    let even = false_verdicts(
        "Pocock's levels, 3 looks at 5, 10, 15",
        world,
        &[5, 10, 15],
        POCOCK_OF_THREE,
        221,
    );
    assert!(even <= 5.0, "{even} %");
    let apart = false_verdicts(
        "Pocock's levels, 3 looks at 3, 15, 75",
        world,
        &[3, 15, 75],
        POCOCK_OF_THREE,
        222,
    );
    assert!(apart > 5.0, "{apart} %");
}
