use tokdyno_domain::{
    record::RequestRecord,
    workload::{LoadLevel, StageKind, Workload},
};

use super::*;

fn plan(size: StageSize) -> StagePlan {
    let level = LoadLevel {
        kind: StageKind::ClosedLoop { concurrency: 8 },
        size,
    };
    Workload::with_levels("w", vec![level]).plan()[0]
}

fn of_requests() -> StagePlan {
    plan(StageSize::Requests { requests: 32 })
}

fn progress() -> Progress {
    Progress {
        stage: 1,
        stages: 5,
        phase: Phase::Measuring,
        done: 12,
        failed: 1,
        planned: Some(32),
        in_flight: 8,
        current_tps: Some(512.0),
        elapsed_s: 9.0,
        left_s: Some(20.0),
    }
}

fn request(ttft_ms: u64, tpot_ms: u64) -> RequestRecord {
    let record = serde_json::json!({
        "stage": 0, "seq": 0, "prompt": 0, "sent_ns": 0,
        "ttft_ns": ttft_ms * 1_000_000,
        "e2el_ns": (ttft_ms + 10 * tpot_ms) * 1_000_000,
        "end_ns": (ttft_ms + 10 * tpot_ms) * 1_000_000,
        "completion_tokens": 11, "first_chunk_tokens": 1,
        "chunks": 11, "coalesced_chunks": 0, "counted_by": "usage", "done_seen": true,
    });
    serde_json::from_value(record).expect("a record")
}

#[test]
fn the_moving_block_says_what_is_known() {
    assert_eq!(
        heading(Some(&of_requests()), &progress()),
        "stage 2/5 · C = 8 · measuring"
    );
    assert_eq!(
        details(&progress(), &Latencies::default()),
        "12 of 32 requests · 20 s left in all\n8 in flight · 512.0 tok/s now · 1 failed\nTTFT p50 – ms   TPOT p50 – ms"
    );
    let unknown = Progress {
        failed: 0,
        planned: None,
        current_tps: None,
        left_s: None,
        phase: Phase::WarmUp,
        ..progress()
    };
    assert_eq!(heading(None, &unknown), "stage 2/5 · warming up");
    assert!(details(&unknown, &Latencies::default()).starts_with("12 requests\n8 in flight\n"));
}

#[test]
fn the_bar_follows_requests_or_time() {
    let by_requests = share_done(Some(&of_requests()), &progress(), Some(1.0));
    assert_eq!(by_requests, 12.0 / 32.0);
    let timed = plan(StageSize::Duration { seconds: 16.0 });
    let unplanned = Progress {
        planned: None,
        ..progress()
    };
    assert_eq!(share_done(Some(&timed), &unplanned, Some(1.0)), 0.5);
    assert_eq!(share_done(Some(&timed), &unplanned, None), 0.0);
    let half = "━".repeat(BAR / 2) + &"─".repeat(BAR / 2);
    assert_eq!(drawn(0.5), half);
    assert_eq!(drawn(3.0), "━".repeat(BAR));
    assert_eq!(drawn(f64::NAN), "─".repeat(BAR));
}

#[test]
fn latencies_so_far_have_a_p99_from_a_hundred_on() {
    let mut latencies = Latencies::default();
    for _ in 0..99 {
        latencies.take(&request(20, 10));
    }
    let line = latencies.line();
    assert!(
        line.contains("TTFT p50 20.0") && !line.contains("p99"),
        "{line}"
    );
    latencies.take(&request(200, 10));
    let line = latencies.line();
    assert!(
        line.contains("p99 20.0") || line.contains("p99 200"),
        "{line}"
    );
    assert!(line.contains("TPOT p50 10.0"), "{line}");
}

#[test]
fn the_line_of_a_finished_stage() {
    let figures = StageFigures {
        requests: 32,
        output_tps: Some(512.0),
        ..Default::default()
    };
    assert_eq!(
        over(1, 5, Some(&of_requests()), &figures),
        "stage 2/5: C = 8, 32 requests, 0 failed, 512.0 tok/s"
    );
    let mut figures = figures;
    figures.ttft_ms.p50 = Some(20.1);
    assert!(over(1, 5, None, &figures).ends_with("512.0 tok/s, TTFT p50 20.1 ms"));
    assert_eq!(
        left_out(4, 5, Some(&of_requests()), "Enough."),
        "stage 5/5: C = 8 left out. Enough."
    );
}
