use super::{
    super::{
        Part, StepStanding,
        attribution::{contests, step_pairs},
    },
    world::{World, at, covers_of_five, percent_of, single, tuning},
};
use crate::{
    experiment::{Design, FigureKey, Step, StepSet, samples::switch},
    statistics::{log_share, simulations::world::Random},
    verdict::VerdictKind,
};

const UNTUNED: f64 = 63.6;
const TUNED: f64 = 90.0;
const LAUNCHES: u32 = 5;

fn steps_of(world: &World) -> Vec<StepSet> {
    world
        .cells
        .iter()
        .map(|cell| cell.steps.expect("steps"))
        .collect()
}

/// All of the gain from NCCL's variables, none from continuous decode.
fn founding(sets: &[StepSet], cell: u32, _: &FigureKey) -> f64 {
    if sets[cell as usize].has(0) {
        TUNED
    } else {
        UNTUNED
    }
}

fn measured(spread: f64, seed: u64, truth: impl Fn(StepSet) -> f64) -> World {
    let mut world = World::new(tuning(), LAUNCHES);
    let sets = steps_of(&world);
    world.measure(
        &mut Random::seeded(seed),
        LAUNCHES,
        spread,
        &[single()],
        |cell, _| truth(sets[cell as usize]),
    );
    world
}

#[test]
fn the_gain_is_credited_to_the_step_that_makes_it() {
    const TRIALS: u64 = 40;
    let right = (0..TRIALS)
        .filter(|seed| {
            let world = measured(
                0.003,
                1000 + seed,
                |set| {
                    if set.has(0) { TUNED } else { UNTUNED }
                },
            );
            let found = world.results().attributions.remove(0);
            let standings: Vec<StepStanding> =
                found.steps.iter().map(|step| step.standing).collect();
            standings == [StepStanding::Changes, StepStanding::Nothing]
                && found
                    .sentence
                    .starts_with("The whole single-stream speed gain of +4")
        })
        .count();
    // Five verdicts have to be right at once, and a family errs in 5 %.
    assert!(right >= 36, "{right} of {TRIALS}");
}

#[test]
fn the_sentence_says_what_comes_from_where() {
    let world = measured(0.003, 7, |set| if set.has(0) { TUNED } else { UNTUNED });
    let results = world.results();
    let sentence = &results.attributions[0].sentence;
    assert_eq!(
        sentence,
        "The whole single-stream speed gain of +41.5 % (+41.0 to +42.0 %) comes from the NCCL variables; from `--num-continuous-decode-steps 4` comes nothing (−0.7 to +0.8 %)."
    );
    assert_eq!(results.headline.last(), Some(sentence));
    let chart = results.charts.last().expect("a chart");
    assert_eq!(chart.id, "attribution-single-stream");
    assert_eq!(chart.summary, *sentence);
    assert_eq!(chart.series.len(), 3);
    for series in &chart.series {
        assert_eq!(series.points.len(), 2);
        assert!(series.points.iter().all(|point| point.y_bar.is_some()));
    }
}

#[test]
fn nothing_is_said_only_if_the_interval_is_within_the_effect_that_matters() {
    let world = measured(0.03, 11, |set| if set.has(0) { TUNED } else { UNTUNED });
    let found = world.results().attributions.remove(0);
    assert_eq!(found.total.verdict.kind, VerdictKind::Better);
    assert_eq!(found.steps[1].standing, StepStanding::NotEstablished);
    let sentence = &found.sentence;
    assert!(
        sentence.contains("what comes from `--num-continuous-decode-steps 4` is not established")
            && sentence.contains("more restarts")
            && sentence.contains(" To tell ")
            && !sentence.contains("nothing")
            && !sentence.contains("whole"),
        "{sentence}"
    );
    // How often it is claimed though the step does just what matters.
    let mut seed = 5000;
    let percent = percent_of(100, || {
        seed += 1;
        let world = measured(0.004, seed, |set| {
            let gain = if set.has(0) { TUNED } else { UNTUNED };
            if set.has(1) { gain * 1.02 } else { gain }
        });
        let found = world.results().attributions.remove(0);
        found.steps[1].standing == StepStanding::Nothing
    });
    assert!(percent <= 5.0, "{percent} %");
}

#[test]
fn intervals_of_ratios_and_shares_cover_the_truth() {
    const TRIALS: u32 = 2_000;
    let mut world = World::new(tuning(), LAUNCHES);
    let sets = steps_of(&world);
    let mut random = Random::seeded(31);
    let gain = (TUNED / UNTUNED).ln();
    let pairs = step_pairs(&world.table(&single()));
    let truths: Vec<f64> = pairs
        .iter()
        .map(|(from, to)| {
            let has = |cell: &u32| sets[*cell as usize].has(0);
            if has(to) && !has(from) { gain } else { 0.0 }
        })
        .collect();
    assert_eq!(pairs.len(), 4);
    let (mut ratios, mut shares) = ([0_u32; 4], [0_u32; 2]);
    for _ in 0..TRIALS {
        world.reset();
        world.measure(&mut random, LAUNCHES, 0.02, &[single()], |cell, key| {
            founding(&sets, cell, key)
        });
        let table = world.table(&single());
        for ((contest, truth), count) in contests(&table, &pairs)
            .iter()
            .zip(&truths)
            .zip(&mut ratios)
        {
            let estimate = contest.estimate().expect("an estimate");
            *count += u32::from(covers_of_five(&estimate, *truth));
        }
        // The second step brings nothing of it, and swapping it for the first all of it.
        for ((from, to, truth), count) in [(2, 1, 0.0), (3, 2, 1.0)].iter().zip(&mut shares) {
            let logs: Vec<(f64, f64)> = (0..LAUNCHES)
                .map(|block| {
                    let log = |cell: u32| table.log(cell, block).expect("a figure");
                    (log(*to) - log(*from), log(1) - log(0))
                })
                .collect();
            let share = log_share(&logs, 0.95).expect("a share");
            *count += u32::from(share.low <= *truth && *truth <= share.high);
        }
    }
    for (what, count) in ratios.into_iter().chain(shares).enumerate() {
        let percent = 100.0 * f64::from(count) / f64::from(TRIALS);
        println!("interval {what}, of four ratios and two shares, covers: {percent} %");
        assert!((93.0..=97.0).contains(&percent), "{what}: {percent} %");
    }
}

#[test]
fn steps_that_do_the_same_thing_depend_on_each_other() {
    // Either of the two brings all of it.
    let world = measured(
        0.003,
        3,
        |set| {
            if set == StepSet::NONE { 100.0 } else { 120.0 }
        },
    );
    let found = world.results().attributions.remove(0);
    assert_eq!(found.interactions.len(), 1, "of two steps it is one");
    assert!(found.interactions[0].matters());
    for step in &found.steps {
        assert_eq!(step.standing, StepStanding::Depends);
    }
    assert!(
        found.sentence.contains("the order matters") && found.sentence.contains("alone"),
        "{}",
        found.sentence
    );
    // Where steps multiply, it is hardly ever said.
    let mut seed = 600;
    let percent = percent_of(100, || {
        seed += 1;
        let world = measured(0.01, seed, |set| {
            100.0 * if set.has(0) { 1.2 } else { 1.0 } * if set.has(1) { 1.1 } else { 1.0 }
        });
        world.results().attributions[0].interactions[0].matters()
    });
    assert!(percent <= 10.0, "{percent} %");
}

fn three_steps() -> Design {
    let step = |name: &str| Step {
        label: name.to_owned(),
        changes: vec![switch(name)],
    };
    Design::Ablation {
        steps: vec![step("--a"), step("--b"), step("--c")],
    }
}

#[test]
fn shares_of_the_chain_add_up_to_the_whole() {
    let mut world = World::new(three_steps(), 4);
    let sets = steps_of(&world);
    world.measure(&mut Random::seeded(5), 4, 0.005, &[at(8)], |cell, _| {
        1000.0
            * [1.3, 1.1, 0.9]
                .iter()
                .zip(0..)
                .fold(1.0, |product, (gain, step)| {
                    if sets[cell as usize].has(step) {
                        product * gain
                    } else {
                        product
                    }
                })
    });
    let found = world.results().attributions.remove(0);
    let added: Vec<&Part> = found
        .steps
        .iter()
        .map(|step| step.added.as_ref().expect("measured"))
        .collect();
    let sum: f64 = added
        .iter()
        .map(|part| part.share.expect("a share").share)
        .sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    let product: f64 = added
        .iter()
        .map(|part| part.ratio.expect("a ratio").ratio)
        .product();
    let total = found.total.ratio.expect("a ratio").ratio;
    assert!((product / total - 1.0).abs() < 1e-9);
    assert_eq!(found.interactions.len(), 3);
    let last = added[2].share.expect("a share");
    assert!(last.high < 0.0, "it works against the others: {last:?}");
    assert!(
        found.sentence.contains("from `--c` comes −"),
        "{}",
        found.sentence
    );
    // Every pair of cells is tested once, the chain's first step and the first alone as one.
    let family = added[0].verdict.family.as_ref().expect("a family");
    assert_eq!(family.size, 7);
}

#[test]
fn a_step_with_a_failed_cell_is_not_established_and_the_others_are() {
    let mut world = World::new(three_steps(), 4);
    let sets = steps_of(&world);
    let failed = sets
        .iter()
        .position(|set| *set == StepSet::all(2))
        .expect("a cell");
    let failed = u32::try_from(failed).expect("few");
    world.set_trials(
        |status| status.trial.cell == failed,
        crate::experiment::TrialState::Failed,
        2,
    );
    world.measure(&mut Random::seeded(6), 4, 0.003, &[single()], |cell, _| {
        if sets[cell as usize].has(0) {
            130.0
        } else {
            100.0
        }
    });
    let found = world.results().attributions.remove(0);
    assert_eq!(found.steps[0].standing, StepStanding::Changes);
    assert_eq!(found.steps[2].standing, StepStanding::NotEstablished);
    let part = found.steps[2].added.as_ref().expect("a part");
    assert_eq!(part.verdict.kind, VerdictKind::Failed);
    assert_eq!((part.ratio, part.share), (None, None));
    assert!(
        found.sentence.contains("a cell has no figure"),
        "{}",
        found.sentence
    );
}

#[test]
fn where_b_failed_the_steps_that_are_known_are_told() {
    let mut world = World::new(three_steps(), 4);
    let sets = steps_of(&world);
    world.set_trials(
        |status| status.trial.cell == 1,
        crate::experiment::TrialState::Failed,
        2,
    );
    world.measure(&mut Random::seeded(8), 4, 0.003, &[single()], |cell, _| {
        if sets[cell as usize].has(0) {
            130.0
        } else {
            100.0
        }
    });
    let found = world.results().attributions.remove(0);
    assert_eq!(found.total.verdict.kind, VerdictKind::Failed);
    assert!(
        found.sentence.starts_with(
            "What the steps from A to B do together is not established: single-stream speed: B failed"
        ) && found.sentence.contains("rom `--a` comes +"),
        "{}",
        found.sentence
    );
}
