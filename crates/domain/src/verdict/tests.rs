use super::*;

const HIGHER: Better = Better::Higher;

fn launches(figures: &[f64]) -> Vec<Launch> {
    figures
        .iter()
        .map(|figure| Launch::single(*figure).expect("a launch"))
        .collect()
}

fn one(repeats: &[f64]) -> Vec<Launch> {
    vec![Launch::new(repeats).expect("a launch")]
}

fn side<'a>(name: &'a str, launches: &'a [Launch]) -> Side<'a> {
    Side {
        name,
        launches,
        source: Source::Measured,
        objection: None,
        failed: None,
    }
}

fn judged(question: &Question<'_>, first: &[Launch], second: &[Launch]) -> Verdict {
    judge(question, &side("a", first), &side("b", second), Ok(()))
}

fn speeds(first: &[f64], second: &[f64]) -> Verdict {
    judged(
        &Question::of("m", HIGHER),
        &launches(first),
        &launches(second),
    )
}

#[test]
fn figures_recorded_by_hand_are_said_as_recorded() {
    let (vllm, sglang) = (one(&[82.5]), one(&[90.0]));
    let recorded = |name, launches| Side {
        source: Source::Recorded,
        ..side(name, launches)
    };
    let verdict = judge(
        &Question::of("single-stream", HIGHER),
        &recorded("vLLM", &vllm),
        &recorded("SGLang", &sglang),
        Ok(()),
    );
    assert_eq!(verdict.kind, VerdictKind::NotEstablished);
    assert_eq!(
        verdict.sentence,
        "single-stream: SGLang against vLLM is +9.1 % as recorded, one launch each, launch-to-launch variation unknown: not established. A second launch of each would show how much launches vary."
    );
    assert_eq!(verdict.across_launches, None);
}

#[test]
fn a_large_gap_within_one_launch_each_is_spoken_of() {
    let question = Question {
        minutes_per_launch: Some(20.0),
        ..Question::of("single-stream", HIGHER)
    };
    let verdict = judged(
        &question,
        &one(&[63.5, 63.6, 63.7]),
        &one(&[89.9, 90.0, 90.1]),
    );
    assert_eq!(verdict.kind, VerdictKind::NotEstablished);
    assert_eq!(
        verdict.sentence,
        "single-stream: b against a is +41.5 % within these launches (95 % interval +41.1 % to +42.0 % over 3 repeats and 3 repeats), one launch each, launch-to-launch variation unknown: not established. A second launch of each would show how much launches vary; 40 minutes on this host."
    );
    let within = verdict.within_launch.expect("a ratio");
    assert!(within.low.expect("low") > 1.4);
}

#[test]
fn history_decides_where_it_is_named() {
    let history = PooledHistory {
        between_launch_sd_log: 0.01,
        df: 8,
        label: "12 launches on gpu1".to_owned(),
    };
    let question = Question {
        history: Some(&history),
        ..Question::of("m", HIGHER)
    };
    let far = judged(&question, &one(&[63.6]), &one(&[90.0]));
    assert_eq!((far.kind, far.relevant), (VerdictKind::Better, true));
    assert!(
        far.sentence.contains(
            "over 1 launch and 1 launch, launch-to-launch variation taken from 12 launches on gpu1"
        ),
        "{}",
        far.sentence
    );
    let near = judged(&question, &one(&[100.0]), &one(&[101.0]));
    assert_eq!(near.kind, VerdictKind::NotEstablished);
    assert!(
        matches!(near.advice, Some(Advice::Restarts { .. })),
        "{}",
        near.sentence
    );
    // Launches of one's own come first.
    let several = launches(&[99.0, 100.0]);
    let own = judged(&question, &several, &several);
    assert!(matches!(own.basis, Some(Basis::Launches { .. })));
}

#[test]
fn the_side_with_a_single_launch_is_named() {
    let several = launches(&[90.0, 90.1, 89.9]);
    let verdict = judged(&Question::of("m", HIGHER), &several, &one(&[90.0, 90.1]));
    assert_eq!(verdict.kind, VerdictKind::NotEstablished);
    assert!(
        verdict
            .sentence
            .contains("b rests on one launch, launch-to-launch variation unknown")
            && verdict.sentence.contains("A second launch of b would"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn several_launches_decide_where_the_interval_does() {
    let (slow, fast) = ([63.5, 63.6, 63.7], [89.9, 90.0, 90.1]);
    assert_eq!(speeds(&slow, &fast).kind, VerdictKind::Better);
    assert_eq!(speeds(&fast, &slow).kind, VerdictKind::Worse);
    let same = speeds(&fast, &fast);
    assert_eq!(same.kind, VerdictKind::NoClearChange);
    let ending = "Verdict: no clear change, the difference is below 2 %.";
    assert!(same.sentence.ends_with(ending), "{}", same.sentence);
    let open = speeds(&[80.0, 90.0, 100.0], &[82.0, 91.0, 99.0]);
    assert_eq!(open.kind, VerdictKind::NotEstablished);
    assert!(
        open.sentence
            .ends_with("It would take more than 100 more restarts to settle ±2 %."),
        "{}",
        open.sentence
    );
}

#[test]
fn beyond_doubt_is_not_beyond_what_matters() {
    let base = [100.0, 100.1, 99.9];
    let slight = speeds(&base, &[101.0, 101.1, 100.9]);
    assert_eq!((slight.kind, slight.relevant), (VerdictKind::Better, false));
    let ending = "Verdict: better, though perhaps by less than 2 %.";
    assert!(slight.sentence.ends_with(ending), "{}", slight.sentence);
    let clear = speeds(&base, &[110.0, 110.1, 109.9]);
    assert_eq!((clear.kind, clear.relevant), (VerdictKind::Better, true));
    let ending = "Verdict: better, and by more than 2 %.";
    assert!(clear.sentence.ends_with(ending), "{}", clear.sentence);
    let lost = speeds(&base, &[90.0, 90.1, 89.9]);
    assert_eq!((lost.kind, lost.relevant), (VerdictKind::Worse, true));
    let ending = "Verdict: worse, and by more than 2 %.";
    assert!(lost.sentence.ends_with(ending), "{}", lost.sentence);
}

#[test]
fn of_a_latency_less_is_better() {
    let (long, short) = (launches(&[50.0, 50.1, 49.9]), launches(&[40.0, 40.1, 39.9]));
    let question = Question::of("ttft", Better::Lower);
    let verdict = judged(&question, &long, &short);
    assert_eq!(
        (verdict.kind, verdict.relevant),
        (VerdictKind::Better, true)
    );
    assert!(
        verdict.sentence.contains("b against a is −20.0 %")
            && verdict
                .sentence
                .ends_with("Verdict: better (less is better), and by more than 2 %."),
        "{}",
        verdict.sentence
    );
    assert_eq!(judged(&question, &short, &long).kind, VerdictKind::Worse);
}

#[test]
fn a_planned_block_is_judged_within_itself() {
    let first = launches(&[100.0, 130.0, 170.0, 90.0]);
    let second = launches(&[105.0, 136.0, 179.0]);
    let blocks = [(0, 0), (1, 1), (2, 2)];
    let question = Question {
        blocks: Some(&blocks),
        ..Question::of("m", HIGHER)
    };
    let verdict = judged(&question, &first, &second);
    assert_eq!(
        (verdict.kind, verdict.relevant),
        (VerdictKind::Better, true)
    );
    assert!(
        verdict.sentence.contains("over 3 blocks"),
        "{}",
        verdict.sentence
    );
    assert_eq!(
        judged(&Question::of("m", HIGHER), &first, &second).kind,
        VerdictKind::NotEstablished
    );
    // No launch is in two blocks, and none is where there is no launch.
    let blocks = [(0, 0), (0, 1), (1, 1), (2, 0), (2, 7)];
    let question = Question {
        blocks: Some(&blocks),
        ..Question::of("m", HIGHER)
    };
    let verdict = judged(&question, &first, &second);
    assert_eq!(verdict.basis, Some(Basis::Blocks { blocks: 2 }));
}

#[test]
fn a_look_is_judged_at_its_share_and_only_if_declared() {
    let (first, second) = (
        launches(&[100.0, 101.0, 99.0]),
        launches(&[103.5, 104.5, 102.5]),
    );
    let at = |looks| {
        let question = Question {
            looks,
            ..Question::of("m", HIGHER)
        };
        judged(&question, &first, &second)
    };
    assert_eq!(at(None).kind, VerdictKind::Better);
    let early = at(Some(Looks {
        planned: 5,
        this: 1,
    }));
    assert_eq!(early.kind, VerdictKind::NotEstablished);
    assert!(
        early.sentence.contains("99 % interval") && early.sentence.contains("look 1 of 5"),
        "{}",
        early.sentence
    );
    let late = at(Some(Looks {
        planned: 2,
        this: 3,
    }));
    assert_eq!(late.kind, VerdictKind::NotEstablished);
    assert!(
        late.sentence
            .ends_with("look 3 is not one of the 2 that were declared."),
        "{}",
        late.sentence
    );
}

#[test]
fn a_family_is_corrected_and_named() {
    let base = launches(&[100.0, 101.0, 99.0]);
    let slight = launches(&[102.5, 103.5, 101.5]);
    let far = launches(&[150.0, 151.0, 149.0]);
    let lone = one(&[120.0]);
    let pair = |second| Pair {
        question: Question::of("m", HIGHER),
        first: side("a", &base),
        second: side("b", second),
        comparable: Ok(()),
    };
    assert_eq!(
        speeds(&[100.0, 101.0, 99.0], &[102.5, 103.5, 101.5]).kind,
        VerdictKind::Better
    );
    let verdicts = judge_family(
        "each against a",
        vec![pair(&slight), pair(&lone), pair(&far), pair(&base)],
    );
    let kinds: Vec<VerdictKind> = verdicts.iter().map(|verdict| verdict.kind).collect();
    assert_eq!(
        kinds,
        [
            VerdictKind::NotEstablished,
            VerdictKind::NotEstablished,
            VerdictKind::Better,
            VerdictKind::NotEstablished
        ]
    );
    let family = verdicts[2].family.as_ref().expect("a family");
    assert_eq!((family.name.as_str(), family.size), ("each against a", 3));
    assert!(
        verdicts[2].sentence.contains("98.33 % interval")
            && verdicts[2]
                .sentence
                .contains("corrected for 3 pairs: each against a"),
        "{}",
        verdicts[2].sentence
    );
    assert_eq!(verdicts[1].family, None, "it could not be tested");
    // The interval is the one that the pair was tested with.
    let interval = verdicts[0].across_launches.expect("a ratio");
    assert!(interval.low.expect("low") < 1.0);
    let alone = judge_family("each against a", vec![pair(&slight)]);
    assert_eq!(
        (alone[0].kind, &alone[0].family),
        (VerdictKind::Better, &None)
    );
}

#[test]
fn launches_that_are_all_alike_decide_nothing() {
    let verdict = speeds(&[63.6; 3], &[90.0; 3]);
    assert_eq!(verdict.kind, VerdictKind::NotEstablished);
    assert!(
        verdict.sentence.contains("all values alike, no interval"),
        "{}",
        verdict.sentence
    );
    let repeats = judged(
        &Question::of("m", HIGHER),
        &one(&[63.6; 3]),
        &one(&[90.0; 3]),
    );
    assert!(
        repeats.sentence.contains("all repeats alike, no interval"),
        "{}",
        repeats.sentence
    );
}

#[test]
fn missing_failed_objected_and_incomparable_sides_are_named() {
    let fine = launches(&[90.0, 91.0]);
    let question = Question::of("m", HIGHER);
    let missing = judged(&question, &[], &fine);
    assert_eq!(
        (missing.kind, missing.sentence.as_str()),
        (VerdictKind::Missing, "m: a has no figure.")
    );
    let failed = Side {
        failed: Some("out of GPU memory"),
        ..side("b", &[])
    };
    let verdict = judge(&question, &side("a", &fine), &failed, Ok(()));
    assert_eq!(
        (verdict.kind, verdict.sentence.as_str()),
        (VerdictKind::Failed, "m: b failed: out of GPU memory.")
    );
    let flagged = Side {
        objection: Some("had failures"),
        ..side("b", &fine)
    };
    let verdict = judge(&question, &side("a", &fine), &flagged, Ok(()));
    assert_eq!(verdict.kind, VerdictKind::NotEstablished);
    assert!(
        verdict
            .sentence
            .ends_with("Not established: b had failures."),
        "{}",
        verdict.sentence
    );
    let verdict = judge(
        &question,
        &side("a", &fine),
        &side("b", &fine),
        Err("workloads differ".to_owned()),
    );
    assert_eq!(verdict.kind, VerdictKind::NotComparable);
}

#[test]
fn verdicts_of_earlier_versions_are_still_read_and_written_alike() {
    let stored = r#"{"kind":"not_established","metric":"m","within_launch":{"ratio":1.1,"low":null,"high":null},"sentence":"As it was said then.","analysis_version":1}"#;
    let verdict: Verdict = serde_json::from_str(stored).expect("a verdict");
    assert!(!verdict.relevant && verdict.across_launches.is_none());
    let written = serde_json::to_string(&verdict).expect("serialises");
    let keys: serde_json::Value = serde_json::from_str(&written).expect("an object");
    assert_eq!(keys.as_object().map(serde_json::Map::len), Some(6));
    // And what is written now is read back as it was.
    let now = speeds(&[80.0, 90.0, 100.0], &[82.0, 91.0, 99.0]);
    let written = serde_json::to_string(&now).expect("serialises");
    let read: Verdict = serde_json::from_str(&written).expect("a verdict");
    assert_eq!(read, now);
}

#[test]
fn a_verdict_turns_round_with_its_sides() {
    let figures = [
        [100.0, 101.0, 99.0],
        [102.1, 103.0, 101.2],
        [97.9, 98.4, 97.1],
    ];
    for first in &figures {
        for second in &figures {
            let (there, back) = (speeds(first, second), speeds(second, first));
            let mirrored = match there.kind {
                VerdictKind::Better => VerdictKind::Worse,
                VerdictKind::Worse => VerdictKind::Better,
                same => same,
            };
            assert_eq!((back.kind, back.relevant), (mirrored, there.relevant));
        }
    }
}
