use super::{
    super::{ByFigures, Standing},
    world::{World, at, profiles, single, tuning},
};
use crate::{
    experiment::{Decision, Look, TrialState, due_look, settled},
    statistics::{Looks, simulations::world::Random},
    verdict::VerdictKind,
};

/// Three profiles: one far ahead, one just like the first.
fn three(blocks: u32) -> World {
    let mut world = profiles(&["base", "fast", "like"], 8).looking_after(&[4, 6]);
    world.measure(
        &mut Random::seeded(20),
        blocks,
        0.001,
        &[single(), at(64)],
        |cell, _| if cell == 1 { 120.0 } else { 100.0 },
    );
    world
}

fn settled_cells(world: &World) -> Vec<u32> {
    let stop = world.spec.early_stop.clone().expect("looks");
    let mut decision = ByFigures::new(world.findings());
    settled(&stop, &world.trials, &mut decision)
}

#[test]
fn a_cell_is_settled_when_all_its_figures_are() {
    let world = three(4);
    assert_eq!(settled_cells(&world), [0, 1, 2]);
    assert_eq!(
        settled_cells(&three(3)),
        Vec::<u32>::new(),
        "no look is due"
    );
    // The throughput of one is open.
    let mut open = three(4);
    for (trial, noise) in open
        .figures
        .iter_mut()
        .filter(|trial| trial.cell == 2)
        .zip([0.9, 1.1, 0.93, 1.04])
    {
        for (key, value) in &mut trial.figures {
            if *key == at(64) {
                *value *= noise;
            }
        }
    }
    assert_eq!(settled_cells(&open), [1]);
}

#[test]
fn an_undeclared_look_settles_nothing() {
    let world = three(4);
    let mut decision = ByFigures::new(world.findings());
    let look = |number| Look {
        number,
        of: 3,
        blocks: 4,
    };
    assert!(decision.is_settled(1, look(1)));
    assert!(!decision.is_settled(1, look(4)));
    let nothing = profiles(&["a", "b"], 8).looking_after(&[4]);
    assert!(!ByFigures::new(nothing.findings()).is_settled(1, look(1)));
}

#[test]
fn verdicts_wait_for_a_look_and_are_those_of_the_last_one() {
    let standing = |world: &World| Standing::of(&world.findings());
    let early = three(3);
    assert!(!standing(&early).is_judged());
    let results = early.results();
    let verdict = results.heat_maps[0].entries[1]
        .verdict
        .as_ref()
        .expect("one");
    assert_eq!(verdict.kind, VerdictKind::NotEstablished);
    assert!(
        verdict.sentence.contains("is still being measured"),
        "{}",
        verdict.sentence
    );
    assert!(!results.best[0].established);

    let between = three(5);
    assert_eq!(
        (standing(&between).looks, standing(&between).blocks_before),
        (
            Some(Looks {
                planned: 3,
                this: 1
            }),
            Some(4)
        )
    );
    let results = between.results();
    let entry = &results.heat_maps[0].entries[1];
    assert_eq!(entry.launches, 5, "the figure is of all launches");
    let verdict = entry.verdict.as_ref().expect("a verdict");
    assert_eq!(verdict.kind, VerdictKind::Better);
    assert!(
        verdict.sentence.contains("over 4 blocks, look 1 of 3"),
        "{}",
        verdict.sentence
    );
    assert_eq!(
        results.headline[0],
        "9 of 24 launches still to come. Verdicts are those of look 1 of 3, after 4 blocks."
    );

    let end = standing(&three(8));
    assert_eq!(
        end.looks,
        Some(Looks {
            planned: 3,
            this: 3
        })
    );
    assert_eq!((end.blocks_before, end.to_come), (None, 0));
    // Without looks the end is judged as ever.
    let mut plain = three(8);
    plain.spec.early_stop = None;
    assert_eq!(standing(&plain).looks, None);
}

#[test]
fn what_was_settled_stays_so() {
    for seed in 0..40 {
        let mut world = profiles(&["a", "b", "c", "d"], 8).looking_after(&[3, 5]);
        let mut random = Random::seeded(900 + seed);
        let truth = |cell: u32| 100.0 * (1.0 + 0.012 * f64::from(cell));
        let mut stopped: Vec<u32> = Vec::new();
        for blocks in [3, 5, 8] {
            world.measure(&mut random, blocks, 0.006, &[single()], |cell, _| {
                truth(cell)
            });
            let stop = world.spec.early_stop.clone().expect("looks");
            if blocks < 8 {
                assert!(due_look(&stop, &world.trials).is_some() || stopped.contains(&0));
            }
            for cell in settled_cells(&world) {
                world.set_trials(
                    |status| status.trial.cell == cell && status.state == TrialState::Planned,
                    TrialState::Settled,
                    0,
                );
                stopped.push(cell);
            }
        }
        let results = world.results();
        assert_eq!(results.standing.to_come, 0);
        for cell in stopped.into_iter().filter(|cell| *cell != 0) {
            let entry = &results.heat_maps[0].entries[cell as usize];
            let kind = entry.verdict.as_ref().expect("a verdict").kind;
            assert_ne!(kind, VerdictKind::NotEstablished, "{seed}: {cell}");
        }
    }
}

#[test]
fn a_cell_of_an_ablation_goes_on_as_long_as_a_step_is_open() {
    let mut world = World::new(tuning(), 8).looking_after(&[4]);
    let sets: Vec<_> = world
        .cells
        .iter()
        .map(|cell| cell.steps.expect("steps"))
        .collect();
    // A flag that may or may not do something, beside variables that do much.
    world.measure(&mut Random::seeded(21), 4, 0.02, &[single()], |cell, _| {
        if sets[cell as usize].has(0) {
            90.0
        } else {
            63.6
        }
    });
    let table = world.table(&single());
    let estimate = table.contest(0, 1).estimate().expect("an estimate");
    assert!(
        estimate.p_value().expect("a p value") < 1e-3,
        "B is far from A"
    );
    assert_eq!(settled_cells(&world), Vec::<u32>::new());
}
