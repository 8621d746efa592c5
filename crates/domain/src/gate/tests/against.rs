use super::*;

/// A launch a run: three of the baseline, three of another configuration.
fn launches(base: [f64; 3], other: [f64; 3]) -> Vec<RunFacts> {
    let of = |first: i64, name: &str, size: &str, speeds: [f64; 3]| {
        speeds
            .into_iter()
            .zip(first..)
            .map(|(speed, id)| {
                let mut facts = launched(id, name, id, stages(speed, speed * 10.0));
                facts.settings.insert("tp_size".to_owned(), size.to_owned());
                facts
            })
            .collect::<Vec<_>>()
    };
    [of(1, "base", "8", base), of(4, "other", "4", other)].concat()
}

const BASE: [f64; 3] = [100.0, 100.4, 99.7];

#[test]
fn an_interval_wholly_on_one_side_decides() {
    let at = |text: &str, other| one(text, launches(BASE, other));
    let kept = at("single.e2e_tps not worse than 2 %", [99.5, 99.9, 99.2]);
    assert_eq!(kept.outcome, Outcome::Holds, "{}", kept.sentence);
    assert_eq!(kept.of, "other");
    assert!(
        kept.sentence.starts_with(
            "e2e_tps_p50, single stream: other against base is −0.5 % (95 % interval "
        ) && kept
            .sentence
            .ends_with("over 3 launches and 3 launches): not worse by more than 2 %."),
        "{}",
        kept.sentence
    );
    let interval = kept.interval.expect("an interval");
    assert!(interval.low.expect("low") > 0.98 && interval.ratio < 1.0);
    let broken = at("single.e2e_tps not worse than 2 %", [90.0, 90.4, 89.8]);
    assert_eq!(broken.outcome, Outcome::Broken, "{}", broken.sentence);
    let open = at("single.e2e_tps not worse than 2 %", [98.0, 98.4, 97.7]);
    assert_eq!(open.outcome, Outcome::NotEstablished, "{}", open.sentence);
    assert!(
        open.sentence.contains("is not established"),
        "{}",
        open.sentence
    );
    // Better is not worse.
    let better = at("c8.output_tps not worse than 0 %", [120.0, 121.0, 119.5]);
    assert_eq!(better.outcome, Outcome::Holds, "{}", better.sentence);
    assert_eq!(
        better.verdict.expect("a verdict").kind,
        crate::verdict::VerdictKind::Better
    );
}

#[test]
fn less_is_better_of_latencies() {
    let with_ttft = |mut runs: Vec<RunFacts>, ttft: [f64; 6]| {
        for (run, ttft) in runs.iter_mut().zip(ttft) {
            for stage in &mut run.stages {
                stage.ttft_ms = crate::metrics::Distribution::of(vec![ttft]);
            }
        }
        runs
    };
    let at = |factor: f64| {
        let ttft = [
            100.0,
            100.3,
            99.8,
            100.0 * factor,
            100.2 * factor,
            99.9 * factor,
        ];
        one(
            "single.ttft not worse than 5 %",
            with_ttft(launches(BASE, BASE), ttft),
        )
        .outcome
    };
    assert_eq!(at(1.03), Outcome::Holds);
    assert_eq!(at(0.5), Outcome::Holds);
    assert_eq!(at(1.05), Outcome::NotEstablished);
    assert_eq!(at(1.08), Outcome::Broken);
}

#[test]
fn one_launch_each_establishes_nothing_but_of_itself() {
    let pair = |other: f64| {
        let repeats = |speed: f64| {
            vec![
                single(0, speed),
                single(1, speed * 1.002),
                single(2, speed * 0.999),
            ]
        };
        vec![
            run(1, "base", repeats(100.0)),
            run(2, "new", repeats(other)),
        ]
    };
    let open = one("e2e_tps not worse than 2 %", pair(100.0));
    assert_eq!(open.outcome, Outcome::NotEstablished);
    assert!(
        open.sentence.contains("launch-to-launch variation unknown"),
        "{}",
        open.sentence
    );
    let within = |other| one("e2e_tps not worse than 2 % within launches", pair(other));
    let kept = within(99.5);
    assert_eq!(kept.outcome, Outcome::Holds, "{}", kept.sentence);
    assert!(
        kept.sentence.contains("within these launches"),
        "{}",
        kept.sentence
    );
    assert_eq!(within(90.0).outcome, Outcome::Broken);
    // Without repeats there is no interval to go by.
    let bare = vec![
        run(1, "base", vec![single(0, 100.0)]),
        run(2, "new", vec![single(0, 150.0)]),
    ];
    let open = one("e2e_tps not worse than 2 % within launches", bare);
    assert_eq!(open.outcome, Outcome::NotEstablished, "{}", open.sentence);
}

#[test]
fn what_is_broken_is_corrected_for_all_pairs_and_what_holds_is_not() {
    // Worse than 2 % at the full level, and not any more as one of many.
    let runs = || launches(BASE, [97.0, 97.3, 96.7]);
    let alone = one("single.e2e_tps not worse than 2 %", runs());
    assert_eq!(alone.outcome, Outcome::Broken, "{}", alone.sentence);
    let rules = ["single.e2e_tps not worse than 2 %"; 12];
    let many = gate(&rules, runs());
    assert_eq!(
        many.outcome,
        Outcome::NotEstablished,
        "{}",
        many.judgements[0].sentence
    );
    assert!(
        many.judgements[0].sentence.contains("(99.58 % interval"),
        "{}",
        many.judgements[0].sentence
    );
    let kept = launches(BASE, [99.0, 99.3, 98.7]);
    assert_eq!(gate(&rules, kept).outcome, Outcome::Holds);
}

#[test]
fn doubt_and_difference_leave_it_open() {
    let mut flagged = launches(BASE, BASE);
    for run in &mut flagged[3..] {
        run.stages[0].flags = vec![crate::metrics::StageFlag::Partial];
    }
    let open = one("single.e2e_tps not worse than 2 %", flagged);
    assert_eq!(open.outcome, Outcome::NotEstablished);
    assert!(open.sentence.contains("is flagged"), "{}", open.sentence);
    let mut other_workload = launches(BASE, BASE);
    for run in &mut other_workload[3..] {
        run.summary.workload_hash = crate::ids::ContentHash::of(b"another");
    }
    let open = one(
        "single.e2e_tps not worse than 2 % within launches",
        other_workload,
    );
    assert_eq!(open.outcome, Outcome::NotEstablished);
    assert!(
        open.sentence.contains("Not comparable"),
        "{}",
        open.sentence
    );
    let open = one("goodput not worse than 2 %", launches(BASE, BASE));
    assert_eq!(
        (open.outcome, open.of.as_str()),
        (Outcome::NotEstablished, "other")
    );
    assert!(
        open.sentence.contains("no such figure"),
        "{}",
        open.sentence
    );
}

#[test]
fn a_level_that_one_side_lacks_is_asked_about() {
    let mut runs = launches(BASE, BASE);
    for run in &mut runs[3..] {
        run.stages.truncate(1);
    }
    let outcome = gate(&["output_tps not worse than 2 %"], runs);
    assert_eq!(outcome.outcome, Outcome::NotEstablished);
    assert!(
        outcome.judgements[0]
            .sentence
            .contains("other has no figure"),
        "{outcome:?}"
    );
}

#[test]
fn bounds_are_asked_of_all_but_the_baseline() {
    let outcome = gate(
        &["single.e2e_tps_p50 >= 95"],
        launches([90.0, 91.0, 92.0], BASE),
    );
    assert_eq!(outcome.outcome, Outcome::Holds);
    let of: Vec<&str> = outcome
        .judgements
        .iter()
        .map(|judgement| judgement.of.as_str())
        .collect();
    assert_eq!(of, ["other (run 4)", "other (run 5)", "other (run 6)"]);
    // Of one configuration, run against run.
    let same = vec![
        run(1, "a", stages(90.0, 900.0)),
        run(2, "a", stages(80.0, 800.0)),
    ];
    let broken = one("single.e2e_tps_p50 >= 85", same);
    assert_eq!(
        (broken.outcome, broken.of.as_str()),
        (Outcome::Broken, "a (run 2)")
    );
}

#[test]
fn a_rule_on_the_baseline_needs_one() {
    let rules = [rule("output_tps not worse than 2 %")];
    let alone = [measured(run(1, "a", stages(90.0, 900.0)))];
    let error = evaluate(&rules, &alone, &History::default()).expect_err("refused");
    assert!(error.to_string().contains("needs a baseline"), "{error}");
    assert!(evaluate(&rules, &[], &History::default()).is_err());
    let many = vec![alone[0].clone(); 13];
    assert!(
        evaluate(&rules, &many, &History::default())
            .expect_err("refused")
            .to_string()
            .contains("these are 13")
    );
}

#[test]
fn the_history_of_the_host_stands_in_for_a_single_launch() {
    let past = launches(BASE, [110.0, 110.5, 109.8]);
    let pair: Vec<Measured> = launches(BASE, [99.9, 1.0, 1.0])
        .into_iter()
        .filter(|run| [1, 4].contains(&run.summary.id.0))
        .map(measured)
        .collect();
    let rules = [rule("single.e2e_tps not worse than 5 %")];
    let history = History::of(&past, std::collections::BTreeMap::new());
    let judged = evaluate(&rules, &pair, &history).expect("judged");
    let said = &judged.judgements[0].sentence;
    assert_eq!(judged.outcome, Outcome::Holds, "{said}");
    assert!(
        said.contains("variation taken from 6 launches of 2 configurations on gpu1"),
        "{said}"
    );
    let blind = evaluate(&rules, &pair, &History::default()).expect("judged");
    assert_eq!(blind.outcome, Outcome::NotEstablished);
}
