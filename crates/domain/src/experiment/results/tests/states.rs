use super::{
    super::{Doubt, EntryState, ExperimentResults},
    world::{World, at, percent_of, profiles, single},
};
use crate::{
    experiment::{FigureKey, TrialState},
    ids::RunId,
    statistics::simulations::world::Random,
    verdict::VerdictKind,
    workload::StageKind,
};

/// Two profiles at C = 128, of which the second is 2.1 % slower.
fn throughputs(spread: f64, seed: u64) -> World {
    let mut world = profiles(&["vllm", "sglang"], 5);
    world.measure(
        &mut Random::seeded(seed),
        5,
        spread,
        &[at(128)],
        |cell, _| {
            if cell == 1 { 2320.0 * 0.979 } else { 2320.0 }
        },
    );
    world
}

fn verdict_of(results: &ExperimentResults, cell: usize) -> VerdictKind {
    let entry = &results.heat_maps[0].entries[cell];
    entry.verdict.as_ref().expect("a verdict").kind
}

#[test]
fn a_small_difference_is_established_only_where_launches_agree() {
    let established = |spread: f64| {
        let mut seed = 100;
        percent_of(60, || {
            seed += 1;
            let results = throughputs(spread, seed).results();
            let is_worse = verdict_of(&results, 1) == VerdictKind::Worse;
            assert_eq!(
                is_worse,
                results.best[0].established && results.best[0].leader == 0
            );
            is_worse
        })
    };
    let (calm, rough) = (established(0.003), established(0.03));
    assert!(calm >= 95.0, "{calm} %");
    assert!(rough <= 30.0, "{rough} %");
}

#[test]
fn who_is_best_is_said_with_what_would_settle_it() {
    let calm = throughputs(0.003, 1).results();
    assert!(
        calm.headline[0].starts_with("At C = 128 vllm is best: 2,")
            && calm.headline[0].ends_with("better than sglang."),
        "{}",
        calm.headline[0]
    );
    let rough = throughputs(0.03, 2).results();
    assert_eq!(verdict_of(&rough, 1), VerdictKind::NotEstablished);
    let sentence = &rough.headline[0];
    assert!(
        sentence.starts_with("At C = 128 it is not established which cell is best:")
            && sentence.contains("not told apart from"),
        "{sentence}"
    );
    assert!(
        sentence.contains("more restarts") && sentence.contains("settle"),
        "{sentence}"
    );
    // Two that are alike within what matters are said to be.
    let mut world = profiles(&["one", "other"], 6);
    world.measure(&mut Random::seeded(3), 6, 0.002, &[single()], |_, _| 90.0);
    let alike = world.results();
    assert_eq!(verdict_of(&alike, 1), VerdictKind::NoClearChange);
    assert!(
        alike.headline[0].starts_with("For one user ")
            && alike.headline[0].contains("no clear change beyond ±2 % against"),
        "{}",
        alike.headline[0]
    );
}

#[test]
fn what_is_not_measured_is_never_zero() {
    let mut world = profiles(&["a", "b", "c", "d", "e"], 3);
    world.set_trials(|status| status.trial.cell == 2, TrialState::Failed, 2);
    world.set_trials(|status| status.trial.cell == 3, TrialState::Cancelled, 0);
    world.set_trials(|status| status.trial.cell == 4, TrialState::Running, 0);
    world.measure(&mut Random::seeded(4), 1, 0.01, &[single()], |_, _| 90.0);
    let results = world.results();
    let states: Vec<EntryState> = results.heat_maps[0]
        .entries
        .iter()
        .map(|entry| entry.state)
        .collect();
    assert_eq!(
        states,
        [
            EntryState::Measured,
            EntryState::Measured,
            EntryState::Failed,
            EntryState::Missing,
            EntryState::Running
        ]
    );
    for entry in &results.heat_maps[0].entries[2..] {
        assert_eq!((entry.figure, entry.ratio, entry.launches), (None, None, 0));
        let kind = entry.verdict.as_ref().expect("a verdict").kind;
        let failed = entry.state == EntryState::Failed;
        let expected = if failed {
            VerdictKind::Failed
        } else {
            VerdictKind::Missing
        };
        assert_eq!(kind, expected);
    }
    let planned = profiles(&["a", "b"], 3).results();
    assert_eq!(planned.heat_maps, []);
    assert_eq!(
        planned.headline,
        [
            "6 of 6 launches still to come. Nothing is judged before a look that was declared, or the end."
        ]
    );
}

#[test]
fn figures_of_a_trial_that_failed_are_not_used() {
    let mut world = profiles(&["a", "b"], 3);
    world.measure(&mut Random::seeded(5), 3, 0.01, &[single()], |_, _| 90.0);
    world.set_trials(
        |status| status.trial.cell == 1 && status.trial.block == 1,
        TrialState::Failed,
        2,
    );
    let entry = &world.results().heat_maps[0].entries[1];
    assert_eq!((entry.launches, entry.state), (2, EntryState::Measured));
    assert_eq!(entry.flags, ["2 launches failed"]);
}

#[test]
fn one_launch_shows_a_figure_and_decides_nothing() {
    let mut world = profiles(&["a", "b"], 1);
    world.measure(&mut Random::seeded(6), 1, 0.01, &[single()], |cell, _| {
        if cell == 1 { 90.0 } else { 63.6 }
    });
    let results = world.results();
    let entry = &results.heat_maps[0].entries[1];
    assert_eq!(entry.launches, 1);
    assert_eq!(
        entry.flags,
        ["one launch: how much launches vary is unknown"]
    );
    let figure = entry.figure.expect("a figure");
    assert_eq!((figure.low, figure.high), (None, None));
    assert!(entry.ratio.is_some_and(|ratio| ratio.low.is_none()));
    assert_eq!(verdict_of(&results, 1), VerdictKind::NotEstablished);
    assert!(
        results.headline[0].contains("A second launch of each would show"),
        "{}",
        results.headline[0]
    );
    let front = results.front;
    assert_eq!(front, None, "there is one figure only");
}

#[test]
fn a_doubtful_cell_neither_leads_nor_is_judged() {
    let mut world = profiles(&["a", "b", "c"], 4);
    let keys = [single(), at(8), at(32)];
    world.measure(&mut Random::seeded(7), 4, 0.003, &keys, |cell, _| {
        100.0 + 20.0 * f64::from(cell)
    });
    let run = world
        .figures
        .iter()
        .find(|trial| trial.cell == 2)
        .map(|trial| trial.run)
        .expect("a run");
    world.doubts.push(Doubt {
        run,
        level: Some(StageKind::SingleStream),
        what: "3 % of its requests failed".to_owned(),
    });
    world.doubts.push(Doubt {
        run: RunId(9999),
        level: None,
        what: "of no concern".to_owned(),
    });
    let results = world.results();
    assert_eq!(verdict_of(&results, 2), VerdictKind::NotEstablished);
    let best: Vec<(u32, bool)> = results
        .best
        .iter()
        .map(|best| (best.leader, best.established))
        .collect();
    assert_eq!(best, [(1, true), (2, true), (2, true)]);
    assert!(
        results.headline[0].ends_with("better than a (left out: 1 cell in doubt)."),
        "{}",
        results.headline[0]
    );
    let front = results.front.expect("a front");
    assert_eq!(front.across, at(32));
    let on: Vec<(bool, bool)> = front
        .cells
        .iter()
        .map(|cell| (cell.undominated, cell.doubtful))
        .collect();
    assert_eq!(on, [(false, false), (true, false), (true, true)]);
    assert_eq!(results.charts[0].id, "experiment-front");
}

#[test]
fn other_figures_have_intervals_and_no_verdicts() {
    let ttft = FigureKey {
        metric: "ttft".to_owned(),
        level: StageKind::SingleStream,
    };
    let mut world = profiles(&["a", "b"], 3);
    world.measure(
        &mut Random::seeded(8),
        3,
        0.01,
        &[ttft.clone(), single()],
        |_, _| 90.0,
    );
    let results = world.results();
    assert_eq!(
        results.heat_maps[0].key,
        single(),
        "what is judged comes first"
    );
    let map = &results.heat_maps[1];
    assert_eq!((&map.key, map.unit.as_str()), (&ttft, "ms"));
    let entry = &map.entries[1];
    assert!(entry.verdict.is_none() && entry.ratio.is_some_and(|ratio| ratio.low.is_some()));
    assert_eq!(results.best.len(), 1);
}

#[test]
fn launches_of_another_day_are_not_paired() {
    let mut world = profiles(&["a", "b"], 3);
    world.measure(&mut Random::seeded(9), 3, 0.001, &[single()], |_, _| 90.0);
    let blocks = |world: &World| world.table(&single()).shared_blocks(&[0, 1]);
    assert_eq!(blocks(&world), [0, 1, 2]);
    world.set_trials(
        |status| status.trial.cell == 1 && status.trial.block == 1,
        TrialState::Skipped,
        0,
    );
    assert_eq!(blocks(&world), [0, 2]);
    assert_eq!(world.results().heat_maps[0].entries[1].launches, 3);
}

#[test]
fn results_cross_the_wire_unchanged() {
    let results = throughputs(0.003, 12).results();
    let wire = serde_json::to_string(&results).expect("JSON");
    let read: ExperimentResults = serde_json::from_str(&wire).expect("it reads back");
    assert_eq!(read, results);
    let titles = results.clone().map_charts(|chart| chart.title);
    assert_eq!(titles.charts.len(), results.charts.len());
}
