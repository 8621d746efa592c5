use tokdyno_domain::{
    conditions::{Certificate, EngineReport, Speculation, StageConditions},
    engine::EngineKind,
    goodput::{Bounds, Goodput},
    meter::ClientInfo,
    metrics::{Distribution, METRIC_VERSION, StageFigures, StageFlag},
    result_file::{RESULT_SCHEMA, ResultEndpoint, TOOL},
    timestamp::Timestamp,
    workload::{Arrivals, Preset, Thousandths},
};

use super::*;

fn stage(index: u32, repeat: u32, speed: f64) -> ResultStage {
    ResultStage {
        index,
        kind: StageKind::SingleStream,
        repeat,
        complete: true,
        figures: StageFigures {
            requests: 5,
            completed: 5,
            output_tps: Some(speed - 1.0),
            e2e_tps: Distribution::of(vec![speed]),
            decode_tps: Distribution::of(vec![speed + 1.0]),
            ..Default::default()
        },
        conditions: StageConditions::default(),
        histograms: None,
        records: Vec::new(),
    }
}

fn result(stages: Vec<ResultStage>) -> ResultFile {
    ResultFile {
        schema_version: RESULT_SCHEMA,
        tool: TOOL.to_owned(),
        tool_version: "0".to_owned(),
        metric_version: METRIC_VERSION,
        started_at: Timestamp(0),
        finished_at: Timestamp(0),
        configuration: None,
        hardware: None,
        endpoint: ResultEndpoint {
            url: "http://gpu1:8000".to_owned(),
            model: "kimi".to_owned(),
            engine: Some(EngineKind::Sglang),
            engine_version: Some("0.5.3".to_owned()),
            settings: std::collections::BTreeMap::new(),
            simulated: false,
        },
        client: ClientInfo::default(),
        workload: Preset::Quick.workload(),
        outcome: MeterOutcome::Complete,
        stages,
        skipped: Vec::new(),
    }
}

#[test]
fn repeats_are_averaged_and_their_spread_is_shown() {
    let text = report(&result(vec![stage(0, 0, 80.0), stage(1, 1, 90.0)]), None);
    assert!(
        text.contains(
            "Single stream: 85.0 tok/s, 80.0 to 90.0 over 2 repeats; decoding alone 86.0 tok/s."
        ),
        "{text}"
    );
    assert!(
        text.contains("http://gpu1:8000 · SGLang 0.5.3 · kimi\n"),
        "{text}"
    );
    assert!(!text.contains("SIMULATED"));
}

#[test]
fn repeats_without_verdict_are_left_out_of_the_single_stream() {
    let mut flagged = stage(1, 1, 20.0);
    flagged.figures.flags.push(StageFlag::Failures {
        failed: 1,
        requests: 6,
    });
    let text = report(&result(vec![stage(0, 0, 80.0), flagged.clone()]), None);
    assert!(
        text.contains("Single stream: 80.0 tok/s, one repeat: its spread is unknown; decoding alone 81.0 tok/s; 1 repeat left out, on which no verdict may rest.\n"),
        "{text}"
    );
    let none = report(&result(vec![flagged]), None);
    assert!(
        none.contains("Single stream: no repeat supports a figure.\n"),
        "{none}"
    );
}

#[test]
fn an_empty_prefix_cache_is_said_only_where_all_stages_tell() {
    let says = "Prefix cache: no prompt token came from it.";
    let mut cold = stage(0, 0, 80.0);
    cold.figures.prompt_tokens = Some(100);
    cold.figures.cached_tokens = Some(0);
    assert!(around::said(&[cold.clone(), cold.clone()]).contains(says));
    assert!(!around::said(&[cold, stage(1, 1, 80.0)]).contains(says));
}

#[test]
fn columns_stand_below_their_headings() {
    let text = closed_grid(&[&stage(0, 0, 2320.0)]).fitted(None);
    let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let end = |line: &[char], what: &str| {
        let line: String = line.iter().collect();
        let byte = line.find(what).expect("found") + what.len();
        line[..byte].chars().count()
    };
    assert_eq!(end(&lines[0], "output tok/s"), end(&lines[1], "2,319"));
    assert_eq!(end(&lines[0], "e2e tok/s p50"), end(&lines[1], "2,320"));
}

#[test]
fn flags_simulation_and_endings_are_said() {
    let mut flagged = stage(0, 0, 80.0);
    flagged.figures.flags.push(StageFlag::Partial);
    flagged.complete = false;
    let mut result = result(vec![flagged]);
    result.outcome = MeterOutcome::Cancelled;
    result.endpoint.simulated = true;
    let text = report(&result, None);
    assert!(
        text.contains("! stage 1: The stage did not run to its end"),
        "{text}"
    );
    assert!(text.contains("Stopped before the end"), "{text}");
    assert!(text.contains("*** SIMULATED"), "{text}");
    assert!(
        !text.contains("Single stream: "),
        "a partial stage is no figure"
    );
    result.stages.clear();
    assert!(report(&result, None).contains("No request was finished"));
}

#[test]
fn an_open_loop_has_a_table_of_its_own() {
    let mut open = stage(1, 0, 80.0);
    open.kind = StageKind::OpenLoop {
        rate: Thousandths::new(4.0).expect("a rate"),
        arrivals: Arrivals::Poisson,
    };
    open.figures.request_throughput = Some(3.9);
    open.figures.ttft_intended_ms = Distribution::of(vec![25.0]);
    let text = report(&result(vec![stage(0, 0, 80.0), open.clone()]), None);
    let lines: Vec<&str> = text.lines().collect();
    let row = lines
        .iter()
        .find(|line| line.starts_with("2 4 req/s (Poisson)"))
        .expect("a row");
    assert!(row.contains("3.90") && row.contains("25.0"), "{row}");
    assert!(text.contains("\n1 single "), "{text}");
    let alone = report(&result(vec![open]), None);
    assert!(!alone.contains("steady"), "no empty table: {alone}");
}

#[test]
fn a_narrow_terminal_gets_narrow_lines() {
    let result = result(vec![stage(0, 0, 2320.0)]);
    let text = report(&result, Some(60));
    let table: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("stage"))
        .take(2)
        .collect();
    assert!(
        table.iter().all(|line| line.chars().count() <= 60),
        "{table:?}"
    );
    assert!(text.contains("No room for: "), "{text}");
}

#[test]
fn what_went_on_around_is_said_where_something_did() {
    let mut with = stage(0, 0, 80.0);
    with.kind = StageKind::ClosedLoop { concurrency: 8 };
    with.figures.prompt_tokens = Some(100);
    with.figures.cached_tokens = Some(25);
    with.figures.chunks = 300;
    with.figures.duration_s = Some(3.0);
    with.figures.goodput = Some(Goodput {
        bounds: Bounds {
            ttft_ms: Some(200.0),
            ..Bounds::default()
        },
        good: 4,
        undefined: 1,
        requests_per_s: Some(1.25),
    });
    with.conditions.engine = Some(EngineReport {
        speculation: Some(Speculation {
            steps: 100,
            drafted: Some(300),
            accepted: 68,
            accepted_at: Vec::new(),
        }),
        waiting_max: Some(12.0),
        ..EngineReport::default()
    });
    with.conditions.certificate = Some(Certificate {
        at: Timestamp(0),
        concurrency: 8,
        chunks_per_s: 20_000.0,
        is_limit: false,
        ttft_error_p50_ms: 0.04,
        ttft_error_p99_ms: 0.2,
        tpot_error: -0.001,
        remembered: true,
    });
    let text = around::said(&[with]);
    for expected in [
        "Goodput (TTFT up to 200 ms)\n  stage 1, C = 8: 1.25 req/s, 4 of 5 successful requests good, 1 without a bounded figure and so not good\n",
        "Acceptance\n  stage 1, C = 8: accept length 1.68 tokens a step, 23 % of the drafted tokens accepted\n",
        "Prefix cache\n  stage 1, C = 8: 25 % of the prompt tokens by the replies' count\n",
        "In the engine\n  stage 1, C = 8: up to 12 waiting in its queue\n",
        "With 8 streams this machine times at least 20,000 chunks/s truthfully (first token +0.04 ms in the median, time per token -0.10 %; remembered); stage 1 had 100.\n",
    ] {
        assert!(text.contains(expected), "{expected}{text}");
    }
    assert_eq!(around::said(&[stage(0, 0, 80.0)]), "");
}

#[test]
fn levels_left_out_are_named_once_and_flags_with_their_stages() {
    let mut result = result(
        [stage(0, 0, 80.0), stage(1, 1, 81.0)]
            .map(|mut stage| {
                stage.figures.flags.push(StageFlag::Partial);
                stage
            })
            .to_vec(),
    );
    result.skipped = vec![2];
    let text = report(&result, None);
    assert!(
        text.contains("Throughput rose no more, so these were left out: C = 32.\n"),
        "{text}"
    );
    assert!(text.contains("! stages 1, 2: The stage did not"), "{text}");
}
