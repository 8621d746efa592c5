//! Configurations over their launches.

use super::*;
use crate::{
    analysis::samples::launched,
    ids::{HostId, RunId},
    verdict::Basis,
};

fn set(mut facts: RunFacts, key: &str, value: &str) -> RunFacts {
    facts.settings.insert(key.to_owned(), value.to_owned());
    facts
}

/// A launch with a single stream and two levels, a share faster than usual.
fn speeds(share: f64) -> Vec<StageView> {
    vec![
        single(0, 60.0 * share),
        closed(4, 0, 200.0 * share),
        closed(16, 0, 400.0 * share),
    ]
}

fn slow_and_fast(gain: f64) -> Vec<RunFacts> {
    [(1, 1.0), (2, 1.004), (3, 0.997)]
        .into_iter()
        .map(|(id, share)| launched(id, "slow", id, speeds(share)))
        .chain(
            [(4, 1.0), (5, 1.003), (6, 0.998)]
                .into_iter()
                .map(|(id, share)| {
                    set(
                        launched(id, "fast", id, speeds(gain * share)),
                        "tp_size",
                        "4",
                    )
                }),
        )
        .collect()
}

#[test]
fn the_same_launch_twice_is_repeats_and_two_launches_are_two_values() {
    let other = set(
        launched(9, "other", 9, vec![single(0, 90.0)]),
        "tp_size",
        "4",
    );
    let pair = |second_launch| {
        let runs = [
            launched(1, "a", 1, vec![single(0, 60.0), single(1, 60.4)]),
            launched(2, "a", second_launch, vec![single(0, 62.0)]),
            other.clone(),
        ];
        compare(&runs).expect("a comparison")
    };
    let same = pair(1);
    assert_eq!(same.groups.len(), 2);
    assert_eq!(same.groups[0].runs, [RunId(1), RunId(2)]);
    assert_eq!((same.groups[0].launches, same.groups[1].launches), (1, 1));
    let cell = same.rows[0].groups[0].as_ref().expect("a figure");
    assert_eq!((cell.launches, cell.estimate.n), (1, 2));
    assert!(
        same.verdicts[0].sentence.contains("one launch each"),
        "{}",
        same.verdicts[0].sentence
    );

    let two = pair(2);
    assert_eq!(two.groups[0].launches, 2);
    let cell = two.rows[0].groups[0].as_ref().expect("a figure");
    assert_eq!((cell.launches, cell.estimate.n), (2, 2));
    let mean = ((60.0_f64 * 60.4).sqrt() + 62.0) / 2.0;
    assert!((cell.estimate.mean - mean).abs() < 1e-9);
    let ratio = two.rows[0].groups[1]
        .as_ref()
        .and_then(|cell| cell.ratio)
        .expect("a ratio");
    assert!((ratio - 90.0 / mean).abs() < 1e-9);
    assert!(
        two.verdicts[0]
            .sentence
            .contains("other rests on one launch"),
        "{}",
        two.verdicts[0].sentence
    );
    // One verdict a pair of configurations, whatever the number of runs.
    assert_eq!((same.verdicts.len(), two.verdicts.len()), (1, 1));
}

#[test]
fn runs_of_an_address_are_one_launch_and_it_is_said() {
    let runs = [
        run(1, "a", vec![single(0, 60.0)]),
        run(2, "a", vec![single(0, 61.0)]),
        set(run(3, "b", vec![single(0, 90.0)]), "tp_size", "4"),
    ];
    let view = compare(&runs).expect("a comparison");
    assert_eq!(view.groups[0].launches, 1);
    assert_eq!(
        view.groups[0].notes,
        [
            "Nothing tells whether the server was restarted between runs 1, 2: they count as repeats of one launch."
        ]
    );
    assert!(view.groups[1].notes.is_empty());
    assert_eq!(view.verdicts[0].kind, VerdictKind::NotEstablished);
}

#[test]
fn what_launches_do_not_share_is_said() {
    let mut elsewhere = launched(2, "a", 2, vec![single(0, 61.0)]);
    if let Some(launch) = &mut elsewhere.summary.launch {
        launch.host = (HostId(2), "gpu2".to_owned());
    }
    let mut failed = launched(4, "a", 4, vec![]);
    failed.summary.state = RunState::Failed;
    let runs = [
        launched(1, "a", 1, vec![single(0, 60.0)]),
        elsewhere,
        run(3, "a", vec![single(0, 60.5)]),
        failed,
    ];
    let view = compare(&runs).expect("a comparison");
    assert_eq!(view.groups.len(), 1);
    assert_eq!(
        view.groups[0].notes,
        [
            "Nothing tells which start of the server run 3 is of: it counts as another launch.",
            "From several hosts, whose differences are among those of its launches: gpu1, gpu2.",
            "Failed, and speaks only where it has figures: run 4.",
        ]
    );
    // Of one configuration each run is judged against the baseline.
    assert_eq!(view.verdicts.len(), 3);
}

#[test]
fn settings_or_names_that_differ_make_two_groups() {
    let runs = [
        launched(1, "a", 1, vec![single(0, 60.0)]),
        set(
            launched(2, "a", 2, vec![single(0, 61.0)]),
            "page_size",
            "64",
        ),
        launched(3, "b", 3, vec![single(0, 60.0)]),
        launched(4, "a", 4, vec![single(0, 60.5)]),
    ];
    let view = compare(&runs).expect("a comparison");
    let groups: Vec<(&str, usize)> = view
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.runs.len()))
        .collect();
    assert_eq!(groups, [("a (runs 1, 4)", 2), ("a (run 2)", 1), ("b", 1)]);
    let difference = &view.differences[0];
    assert_eq!(difference.values.len(), 4);
    assert_eq!(
        view.by_group(difference).collect::<Vec<_>>(),
        [None, Some("64"), None]
    );
}

#[test]
fn what_a_start_finds_by_itself_parts_nothing() {
    let pool = |id, tokens: &str| {
        set(
            launched(id, "a", id, vec![single(0, 60.0)]),
            "max_total_num_tokens",
            tokens,
        )
    };
    let near = compare(&[pool(1, "412345"), pool(2, "412100")]).expect("a comparison");
    assert_eq!((near.groups.len(), near.differences.len()), (1, 0));
    assert_eq!(near.class.kind, ClassKind::Repeat);
    let far = compare(&[pool(1, "412345"), pool(2, "206000")]).expect("a comparison");
    assert_eq!((far.groups.len(), far.differences.len()), (2, 1));
}

#[test]
fn all_that_matters_of_all_pairs_is_one_family() {
    let view = compare(&slow_and_fast(1.4)).expect("a comparison");
    assert_eq!(view.class.kind, ClassKind::Controlled);
    let metrics: Vec<&str> = view
        .verdicts
        .iter()
        .map(|verdict| verdict.metric.as_str())
        .collect();
    assert_eq!(
        metrics,
        [
            "Single stream",
            "Output throughput at C = 4",
            "Output throughput at C = 16"
        ]
    );
    for verdict in &view.verdicts {
        assert_eq!(
            (verdict.kind, verdict.relevant),
            (VerdictKind::Better, true),
            "{}",
            verdict.sentence
        );
        assert_eq!(
            verdict.basis,
            Some(Basis::Launches {
                first: 3,
                second: 3
            })
        );
        assert!(
            verdict.sentence.contains(
                "corrected for 3 pairs: fast against slow, single stream and throughput at each C"
            ),
            "{}",
            verdict.sentence
        );
    }
    assert!(
        view.crossovers[0]
            .contains("fast leads throughout (pointwise 95 % intervals over launches)"),
        "{}",
        view.crossovers[0]
    );
    let mut three = slow_and_fast(1.4);
    three.extend([7, 8].map(|id| {
        let share = 1.0 + 0.001 * (id - 7) as f64;
        set(launched(id, "third", id, speeds(share)), "tp_size", "2")
    }));
    let view = compare(&three).expect("a comparison");
    assert_eq!(view.verdicts.len(), 6);
    assert!(
        view.verdicts
            .iter()
            .all(|verdict| { verdict.family.as_ref().map(|family| family.size) == Some(6) })
    );
}

#[test]
fn identical_results_lead_nowhere() {
    let view = compare(&slow_and_fast(1.0)).expect("a comparison");
    assert!(
        view.crossovers[0].contains("no difference established at any C"),
        "{}",
        view.crossovers[0]
    );
    let twice = [
        run(1, "a", speeds(1.0)),
        set(run(2, "b", speeds(1.0)), "tp_size", "4"),
    ];
    let sentence = compare(&twice).expect("a comparison").crossovers.remove(0);
    assert!(
        sentence.contains("no difference established at any C") && !sentence.contains("leads"),
        "{sentence}"
    );
}

#[test]
fn the_front_is_said_below_the_decision() {
    let decision = |runs: &[RunFacts]| {
        let view = compare(runs).expect("a comparison");
        view.charts
            .into_iter()
            .find(|chart| chart.id == "decision")
            .expect("the chart")
    };
    let clear = decision(&slow_and_fast(1.4));
    let said = "Front: fast. Dominated beyond doubt, by 95 % intervals over launches: slow.";
    assert!(clear.notes.iter().any(|note| note == said), "{clear:?}");
    assert!(clear.summary.ends_with(said), "{}", clear.summary);
    let near = decision(&slow_and_fast(1.001));
    assert!(
        near.summary.ends_with(
            "Front: slow; fast. Dominated beyond doubt, by 95 % intervals over launches: nobody."
        ),
        "{}",
        near.summary
    );
    let one_configuration = decision(&slow_and_fast(1.4)[..3]);
    assert_eq!(one_configuration.series.len(), 3);
    assert!(
        !one_configuration.summary.contains("Front"),
        "{}",
        one_configuration.summary
    );
    let mut lone = slow_and_fast(1.4);
    lone.truncate(4);
    lone.drain(..2);
    assert!(
        decision(&lone)
            .summary
            .contains("Front: all of them. Nobody has"),
    );
}

#[test]
fn a_flagged_run_is_left_out_where_there_is_a_sound_one() {
    let mut runs = slow_and_fast(1.4);
    for stage in &mut runs[2].stages {
        stage.disputed = true;
    }
    let view = compare(&runs).expect("a comparison");
    assert_eq!(view.groups[0].launches, 3);
    let cell = view.rows[0].groups[0].as_ref().expect("a figure");
    assert_eq!((cell.launches, cell.doubtful), (2, false));
    assert_eq!(cell.runs, [RunId(1), RunId(2)]);
    assert!(
        view.groups[0].notes.iter().any(|note| note
            == "Left out at C = 4 as flagged, disputed, estimated or mismatched: run 3."),
        "{:?}",
        view.groups[0].notes
    );
    assert!(
        view.verdicts[0]
            .sentence
            .contains("over 2 launches and 3 launches"),
        "{}",
        view.verdicts[0].sentence
    );
}

#[test]
fn flags_are_worn_in_the_notes_each_kind_once() {
    use crate::metrics::StageFlag;
    let mut runs = slow_and_fast(1.4);
    let hot = |celsius| StageFlag::HotGpu { gpu: 1, celsius };
    runs[0].stages[0].flags = vec![hot(90)];
    runs[0].stages[1].flags = vec![
        hot(91),
        StageFlag::OtherRequests {
            most: 2,
            share: 0.5,
        },
    ];
    runs[2].stages[1].flags = vec![hot(92)];
    let view = compare(&runs).expect("a comparison");
    let flagged = |group: usize| -> Vec<&String> {
        let notes = view.groups[group].notes.iter();
        notes.filter(|note| note.starts_with("Flagged")).collect()
    };
    let said = flagged(0);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("Flagged in run 1 at C = 4: The engine worked on other"));
    assert!(
        said[1].starts_with("Flagged in runs 1, 3 at single stream, C = 4: GPU 1 reached 90"),
        "{said:?}"
    );
    assert_eq!(flagged(1), Vec::<&String>::new());
    let launches: Vec<Option<u32>> = view
        .rows
        .iter()
        .map(|row| row.groups[0].as_ref().map(|cell| cell.launches))
        .collect();
    assert!(
        launches.contains(&Some(2)) && launches.contains(&Some(3)),
        "one level lost its doubtful run: {launches:?}"
    );
}

#[test]
fn confounded_says_what_would_separate() {
    let mut runs = slow_and_fast(1.4);
    for facts in &mut runs[3..] {
        *facts = set(facts.clone(), "page_size", "64");
    }
    for facts in &mut runs[..3] {
        *facts = set(facts.clone(), "page_size", "1");
    }
    let view = compare(&runs).expect("a comparison");
    assert_eq!(view.class.kind, ClassKind::Confounded);
    assert_eq!(
        view.separating,
        [
            "Measure slow with only page_size changed, from 1 to 64.",
            "Measure slow with only tp_size changed, from 8 to 4."
        ]
    );
}

#[test]
fn one_change_at_a_time_is_controlled() {
    let base = |id, name: &str| {
        set(
            launched(id, name, id, vec![single(0, 60.0)]),
            "page_size",
            "1",
        )
    };
    let runs = [
        base(1, "base"),
        set(base(2, "pages"), "page_size", "64"),
        set(base(3, "halves"), "tp_size", "4"),
    ];
    let view = compare(&runs).expect("a comparison");
    assert_eq!(view.class.kind, ClassKind::Controlled);
    assert!(
        view.class
            .sentence
            .ends_with("pages in page_size; halves in tp_size."),
        "{}",
        view.class.sentence
    );
    assert!(view.separating.is_empty());
    let both = set(set(base(4, "both"), "page_size", "64"), "tp_size", "4");
    let [base, pages, halves] = runs;
    let view = compare(&[base, pages, halves, both]).expect("a comparison");
    assert_eq!(view.class.kind, ClassKind::Confounded);
    // The factors are apart already.
    assert!(view.separating.is_empty(), "{:?}", view.separating);
}

#[test]
fn a_host_s_history_is_named_where_one_launch_is_all_there_is() {
    let pair = [
        launched(1, "a", 1, vec![single(0, 60.0)]),
        set(launched(2, "b", 2, vec![single(0, 90.0)]), "tp_size", "4"),
    ];
    let past: Vec<RunFacts> = [70.0, 70.7, 69.8, 70.2]
        .into_iter()
        .zip(3..)
        .map(|(speed, id)| launched(id, "before", id, vec![single(0, speed)]))
        .collect();
    let minutes = std::collections::BTreeMap::from([(HostId(1), 12.0)]);
    let known = compare_with(&pair, &History::of(&past, minutes.clone())).expect("a comparison");
    let verdict = &known.verdicts[0];
    assert_eq!(
        (verdict.kind, verdict.basis.clone()),
        (
            VerdictKind::Better,
            Some(Basis::History {
                label: "4 launches of 1 configuration on gpu1".to_owned()
            })
        ),
        "{}",
        verdict.sentence
    );
    // Of too few launches only the time that one takes is used.
    let few = compare_with(&pair, &History::of(&past[..2], minutes.clone()));
    let sentence = &few.expect("a comparison").verdicts[0].sentence;
    assert!(
        sentence.contains("one launch each, launch-to-launch variation unknown")
            && sentence.ends_with("24 minutes on this host."),
        "{sentence}"
    );
    let mut elsewhere = pair.clone();
    if let Some(launch) = &mut elsewhere[1].summary.launch {
        launch.host = (HostId(2), "gpu2".to_owned());
    }
    let apart = compare_with(&elsewhere, &History::of(&past, minutes)).expect("a comparison");
    assert!(
        apart.verdicts[0].sentence.contains("variation unknown"),
        "{}",
        apart.verdicts[0].sentence
    );
}

#[test]
fn charts_are_of_configurations() {
    let mut runs = slow_and_fast(1.4);
    runs.push(set(
        launched(
            7,
            "odd",
            7,
            vec![single(0, 80.0), closed(4, 0, 300.0), closed(16, 0, 700.0)],
        ),
        "tp_size",
        "2",
    ));
    let view = compare(&runs).expect("a comparison");
    let chart = |id: &str| {
        view.charts
            .iter()
            .find(|chart| chart.id == id)
            .expect("the chart")
    };
    let throughput = chart("throughput");
    let names: Vec<&str> = throughput
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    assert_eq!(names, ["slow", "fast", "odd"]);
    let slow = &throughput.series[0].points[1];
    let (low, high) = slow.y_bar.expect("an interval");
    // t(2) = 4.303 on values that spread by 0.35 %.
    assert!(low < 397.5 && high > 403.0 && slow.n == Some(3), "{slow:?}");
    assert_eq!(slow.note.as_deref(), Some("3 launches"));
    let kind = StageKind::ClosedLoop { concurrency: 16 };
    let behind: Vec<(RunId, StageKind)> = slow.behind.iter().map(|of| (of.run, of.kind)).collect();
    assert_eq!(behind, [1, 2, 3].map(|run| (RunId(run), kind)));
    assert_eq!(throughput.series[2].points[0].y_bar, None, "one value");
    assert_eq!(
        throughput.bars.as_deref(),
        Some("Bars: 95 % intervals over launches, each by itself.")
    );
    // Nobody is off the front but slow: the line runs through the others.
    let decision = chart("decision");
    let front = decision.series.last().expect("the front");
    assert!(front.name.starts_with("Front"), "{}", front.name);
    assert_eq!(
        front
            .points
            .iter()
            .map(|point| point.y.round())
            .collect::<Vec<_>>(),
        [84.0, 80.0]
    );
}

#[test]
fn two_addresses_are_two_servers_also_under_one_name() {
    let at = |id, address: &str| {
        let mut facts = run(id, "SGLang", vec![single(0, 60.0)]);
        facts.settings.insert("tp_size".to_owned(), "8".to_owned());
        facts.summary.endpoint = Some(address.to_owned());
        facts
    };
    let (one, other) = ("http://127.0.0.1:8000", "http://127.0.0.1:8001");
    let apart = compare(&[at(1, one), at(2, other)]).expect("a comparison");
    assert_eq!(apart.groups.len(), 2);
    assert_eq!(apart.class.kind, ClassKind::Confounded);
    let said = &apart.class.sentence;
    assert!(said.contains("their addresses do"), "{said}");
    let again = compare(&[at(1, one), at(2, one)]).expect("a comparison");
    assert_eq!(again.groups.len(), 1);
    assert_eq!(again.class.kind, ClassKind::Repeat);
    // Of a launch it is known what was started, on whatever port.
    let mut launched = [
        launched(1, "SGLang", 1, vec![single(0, 60.0)]),
        launched(2, "SGLang", 2, vec![single(0, 60.0)]),
    ];
    for (facts, address) in launched.iter_mut().zip([one, other]) {
        facts.summary.endpoint = Some(address.to_owned());
    }
    assert_eq!(compare(&launched).expect("a comparison").groups.len(), 1);
}
