//! Whole runs against a server that behaves, in its several ways.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use crate::support::{
    Server, Then, done, event, json, level, paced, proper, run, run_with, stream_head, total, write,
};
use tokdyno_domain::{
    conditions::CacheReset,
    meter::{ApiKey, MeterEventKind, MeterOutcome, Phase},
    metrics::StageFlag,
    record::FailureKind,
    workload::{Api, CachePolicy, LoadLevel, StageKind, StageSize},
};
use tokdyno_loadgen::{CancelFlag, SpecError, run_blocking};

#[test]
fn a_run_of_two_stages_and_two_repeats() {
    let server = Server::start(proper);
    let mut spec = server.spec(vec![level(1, 3), level(4, 12)]);
    spec.workload.repeats = 2;
    spec.api_key = ApiKey::new("sk-secret");
    let told = run(spec.clone());
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let MeterEventKind::Started {
        model,
        stages,
        dropped_fields,
        client,
        ..
    } = &told.events[0].kind
    else {
        panic!("{:?}", told.events[0]);
    };
    assert_eq!(
        (model.as_str(), *stages, dropped_fields.len()),
        ("tiny", 4, 0)
    );
    assert_eq!(client.pid, std::process::id());

    let records = told.records();
    assert_eq!(records.len(), 30);
    for record in &records {
        assert!(record.is_success(), "{record:?}");
        assert_eq!(record.completion_tokens, Some(4));
        // Nothing paces the four: some may come in the first one's read.
        let first = record.first_chunk_tokens.expect("running usage");
        assert!((1..=4).contains(&first) && first <= record.coalesced_chunks + 1);
        assert_eq!(record.prompt_tokens, Some(7));
        assert_eq!(record.connect_ns, None, "opened before the clock starts");
        assert!(record.done_seen && !record.simulated);
        let (headers, ttft, e2el) = (
            record.headers_ns.unwrap(),
            record.ttft_ns.unwrap(),
            record.e2el_ns.unwrap(),
        );
        assert!(headers <= ttft && ttft <= e2el && e2el <= record.end_ns);
        let plan = spec.workload.plan()[record.stage as usize];
        assert_eq!(record.prompt, plan.first_prompt + u64::from(record.seq));
    }
    for (stage, count) in [(0, 3), (1, 12), (2, 3), (3, 12)] {
        let mut of_stage: Vec<_> = records
            .iter()
            .filter(|record| record.stage == stage)
            .collect();
        of_stage.sort_by_key(|record| record.seq);
        let seqs: Vec<u32> = of_stage.iter().map(|record| record.seq).collect();
        assert_eq!(seqs, (0..count).collect::<Vec<_>>());
        assert!(
            of_stage
                .windows(2)
                .all(|pair| pair[0].sent_ns <= pair[1].sent_ns),
            "numbered in the order of sending"
        );
    }
    for figures in told.figures() {
        assert_eq!(figures.failed, 0);
        assert!(figures.output_tps.is_some());
        assert!(!figures.flags.contains(&StageFlag::Partial));
    }
    // The model list; then the trial's, three more for four slots, and those three
    // again in the second repeat, because a stage of one keeps only one.
    assert_eq!(
        server.connections.load(Ordering::SeqCst),
        8,
        "connections are kept"
    );
    let asked = server.asked.lock().expect("no panic");
    assert!(
        asked
            .iter()
            .all(|asked| asked.head.contains("Authorization: Bearer sk-secret\r\n"))
    );
    assert!(
        asked
            .iter()
            .all(|asked| asked.head.contains("Accept-Encoding: identity\r\n"))
    );
    let prompts: std::collections::HashSet<&str> = asked
        .iter()
        .filter_map(|asked| asked.body["prompt"].as_str())
        .collect();
    assert_eq!(prompts.len(), 1 + 10 + 30, "no prompt is sent twice");
}

#[test]
fn the_prefix_cache_is_cleared_between_warm_up_and_stage() {
    let server = Server::start(|asked, stream| match asked.route.as_str() {
        "POST /reset_prefix_cache" => json(stream, 200, "{}"),
        _ => proper(asked, stream),
    });
    let mut spec = server.spec(vec![level(1, 2)]);
    spec.workload.cache = CachePolicy::ResetBeforeStage;
    spec.workload.repeats = 2;
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    for conditions in told.conditions() {
        assert_eq!(conditions.cache_reset, Some(CacheReset::Cleared));
        assert_eq!((conditions.unsent, &conditions.ended_early), (0, &None));
        let client = conditions.client.as_ref().expect("watched");
        assert!(client.kernel_times.is_some() && client.send_lag_p99_ms.is_none());
        assert_eq!(conditions.certificate, None, "switched off");
    }
    let asked = server.asked.lock().expect("no panic");
    let cleared: Vec<bool> = asked
        .iter()
        .filter(|asked| asked.route.starts_with("POST"))
        .map(|asked| asked.route.ends_with("cache"))
        .collect();
    // The trial; then in each repeat a warm-up, the clearing, and two that count.
    assert_eq!(
        cleared,
        [false, false, true, false, false, false, true, false, false]
    );
}

#[test]
fn traces_and_progress_come() {
    let server = Server::start(|asked, stream| paced(asked, stream, Duration::from_millis(40)));
    let mut spec = server.spec(vec![level(2, 6)]);
    spec.workload.output_tokens = 10;
    let told = run(spec);
    let traces: Vec<_> = told
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            MeterEventKind::Request(request) => request.trace.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(traces.len(), 6);
    for trace in &traces {
        assert_eq!(trace.gaps_us.len(), 10);
        assert_eq!(trace.tokens, [1; 10]);
        // Ten pauses of 40 ms came before the last token.
        assert!(trace.arrivals_us().last().expect("arrivals") >= 390_000);
    }
    let progress: Vec<_> = told
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            MeterEventKind::Progress(progress) => Some(progress),
            _ => None,
        })
        .collect();
    assert!(
        progress
            .iter()
            .any(|progress| progress.phase == Phase::WarmUp)
    );
    let measuring: Vec<_> = progress
        .iter()
        .filter(|progress| progress.phase == Phase::Measuring)
        .collect();
    assert!(
        measuring
            .iter()
            .any(|progress| progress.current_tps.is_some_and(|tps| tps > 0.0)
                && progress.left_s.is_some())
    );
    assert!(
        measuring
            .iter()
            .all(|progress| progress.planned == Some(6) && progress.in_flight <= 2)
    );
    let last = progress.last().expect("progress");
    assert_eq!(
        (last.phase, last.done, last.failed),
        (Phase::Draining, 6, 0)
    );
    assert_eq!(last.left_s, Some(0.0));
}

#[test]
fn exactly_so_many_are_in_flight() {
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (inside, peak) = (Arc::clone(&now), Arc::clone(&most));
    // Five wait for each other before any is answered: fewer would never be.
    let five = Barrier::new(5);
    let server = Server::start(move |asked, stream| {
        peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        stream_head(stream);
        // The trial request comes alone.
        if asked.number > 0 {
            five.wait();
        }
        for token in 1..=asked.body["max_tokens"].as_u64().expect("a number") {
            event(stream, &crate::support::text(u32::try_from(token).ok()));
        }
        // Before the last byte: the client's next request may come at once.
        inside.fetch_sub(1, Ordering::SeqCst);
        done(stream)
    });
    let told = run(server.spec(vec![level(5, 25)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert!(told.records().iter().all(|record| record.is_success()));
    assert_eq!(most.load(Ordering::SeqCst), 5);
}

#[test]
fn three_hundred_at_once() {
    let server = Server::start(|asked, stream| paced(asked, stream, Duration::from_millis(20)));
    let told = run(server.spec(vec![level(300, 600)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert_eq!(told.records().len(), 600);
    assert!(told.records().iter().all(|record| record.is_success()));
    // The model list and one for each slot.
    assert_eq!(server.connections.load(Ordering::SeqCst), 301);
}

#[test]
fn a_stage_bounded_by_time_drains() {
    let server = Server::start(|asked, stream| paced(asked, stream, Duration::from_millis(5)));
    let spec = server.spec(vec![LoadLevel {
        kind: StageKind::ClosedLoop { concurrency: 2 },
        size: StageSize::Duration { seconds: 0.5 },
    }]);
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert!(told.records().len() >= 2);
    assert!(told.records().iter().all(|record| record.is_success()));
}

#[test]
fn a_server_that_closes_every_connection() {
    let server = Server::start(|_, stream| {
        write(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
        );
        for token in 1..=4 {
            write(
                stream,
                format!("data: {}\r\n\r\n", crate::support::text(Some(token))),
            );
        }
        write(
            stream,
            format!("data: {}\r\n\r\ndata: [DONE]\r\n\r\n", total(4)),
        );
        Then::Close
    });
    let told = run(server.spec(vec![level(1, 3)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert!(
        told.records().iter().all(|record| record.is_success()),
        "{:?}",
        told.records()
    );
    assert!(
        told.records()[1..]
            .iter()
            .all(|record| record.connect_ns.is_some())
    );
}

#[test]
fn nothing_is_sent_twice_when_a_close_crosses_a_request() {
    // Promises to keep the connection, and closes it right after the reply.
    let server = Server::start(|asked, stream| {
        proper(asked, stream);
        Then::Close
    });
    let mut spec = server.spec(vec![level(1, 20), level(4, 40)]);
    spec.workload.warmup_requests = Some(0);
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let records = told.records();
    assert_eq!(records.len(), 60);
    let succeeded = records.iter().filter(|record| record.is_success()).count();
    // Every request that the server read was answered, and none came again; the
    // others were noticed before sending, or are broken.
    assert_eq!(server.bodies().len(), 1 + succeeded);
    for failure in records.iter().filter_map(|record| record.failure.as_ref()) {
        assert_eq!(failure.kind, FailureKind::Broken);
    }
    assert!(
        records
            .iter()
            .any(|record| record.is_success() && record.connect_ns.is_some())
    );
}

#[test]
fn pieces_cut_anywhere() {
    let server = Server::start(|_, stream| {
        let mut body = Vec::new();
        for token in 1..=4 {
            body.extend_from_slice(
                format!("data: {{\"choices\":[{{\"text\":\"grüße 你好 🙂\"}}],\"usage\":{{\"completion_tokens\":{token}}}}}\r\n\r\n").as_bytes(),
            );
        }
        body.extend_from_slice(b": bye\r\n\r\ndata: [DONE]\r\n\r\n");
        stream_head(stream);
        for piece in body.chunks(7) {
            // The chunk's head, its data and its end in writes of their own.
            write(stream, format!("{:X};a=b\r\n", piece.len()));
            write(stream, piece);
            write(stream, "\r\n");
        }
        write(stream, "0\r\n\r\n");
        Then::Keep
    });
    let told = run(server.spec(vec![level(1, 3)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    for record in told.records() {
        assert!(record.is_success(), "{record:?}");
        assert_eq!((record.chunks, record.completion_tokens), (4, Some(4)));
    }
}

#[test]
fn an_event_of_a_million_bytes() {
    let server = Server::start(|_, stream| {
        stream_head(stream);
        let long = "x".repeat(1 << 20);
        event(
            stream,
            &format!(r#"{{"choices":[{{"text":"{long}"}}],"usage":{{"completion_tokens":4}}}}"#),
        );
        done(stream)
    });
    let told = run(server.spec(vec![level(2, 4)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert!(
        told.records()
            .iter()
            .all(|record| record.is_success() && record.first_chunk_tokens == Some(4))
    );
}

#[test]
fn refused_fields_are_dropped_before_the_clock_starts() {
    let server = Server::start(|asked, stream| {
        if asked.body["stream_options"]
            .get("continuous_usage_stats")
            .is_some()
        {
            return json(
                stream,
                400,
                r#"{"error":{"message":"unknown field continuous_usage_stats"}}"#,
            );
        }
        proper(asked, stream)
    });
    let told = run(server.spec(vec![level(1, 2)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let MeterEventKind::Started { dropped_fields, .. } = &told.events[0].kind else {
        panic!("{:?}", told.events[0]);
    };
    assert_eq!(dropped_fields, &["stream_options.continuous_usage_stats"]);
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 5);
    assert!(
        bodies[1..]
            .iter()
            .all(|body| body["stream_options"]["include_usage"] == true
                && body["ignore_eos"] == true)
    );
}

#[test]
fn a_server_that_refuses_all_extras() {
    let server = Server::start(|asked, stream| {
        if asked.body.get("ignore_eos").is_some() || asked.body.get("stream_options").is_some() {
            return json(stream, 422, r#"{"detail":"extra fields"}"#);
        }
        proper(asked, stream)
    });
    let told = run(server.spec(vec![level(1, 1)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let MeterEventKind::Started { dropped_fields, .. } = &told.events[0].kind else {
        panic!("{:?}", told.events[0]);
    };
    assert_eq!(dropped_fields.len(), 3);
}

#[test]
fn chat_and_the_mark_of_the_stand_in() {
    let server = Server::start(|asked, stream| {
        assert_eq!(asked.route, "POST /v1/chat/completions");
        assert_eq!(asked.body["messages"][0]["role"], "user");
        write(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Tokdyno-Simulated: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        event(
            stream,
            r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
        );
        event(
            stream,
            r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
        );
        event(
            stream,
            r#"{"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}"#,
        );
        event(
            stream,
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"reasoning_tokens":2,"prompt_tokens_details":{"cached_tokens":1}}}"#,
        );
        done(stream)
    });
    let mut spec = server.spec(vec![level(1, 2)]);
    spec.workload.api = Api::Chat;
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    for record in told.records() {
        assert!(record.simulated && record.is_success());
        // Equal if both chunks came in one read.
        assert!(record.first_answer_ns >= record.ttft_ns && record.ttft_ns.is_some());
        assert_eq!(
            (
                record.chunks,
                record.completion_tokens,
                record.first_chunk_tokens
            ),
            (2, Some(4), None)
        );
        assert_eq!(
            (record.reasoning_tokens, record.cached_tokens),
            (Some(2), Some(1))
        );
        assert_eq!(record.finish_reason.as_deref(), Some("stop"));
    }
}

#[test]
fn cancel_keeps_what_is_finished() {
    // The first two measured replies come, all others never end.
    let server = Server::start(|asked, stream| {
        if asked.number < 5 {
            return proper(asked, stream);
        }
        stream_head(stream);
        event(stream, &crate::support::text(Some(1)));
        std::thread::sleep(Duration::from_secs(30));
        Then::Close
    });
    let cancel = CancelFlag::new();
    let flag = cancel.clone();
    let mut finished = 0;
    let told = run_with(
        server.spec(vec![level(2, 100), level(3, 100)]),
        &cancel,
        move |event| {
            if let MeterEventKind::Request(_) = event.kind {
                finished += 1;
                if finished == 2 {
                    flag.cancel();
                }
            }
        },
    );
    assert_eq!(told.outcome, MeterOutcome::Cancelled);
    let records = told.records();
    assert_eq!(
        records.iter().filter(|record| record.is_success()).count(),
        2
    );
    let cancelled = records
        .iter()
        .filter(|record| record.is_cancelled())
        .count();
    assert!((1..=2).contains(&cancelled), "{cancelled}");
    assert_eq!(records.len(), 2 + cancelled);
    let figures = told.figures();
    assert_eq!(figures.len(), 1, "the second stage never begins");
    assert_eq!(
        (
            figures[0].completed,
            figures[0].failed,
            figures[0].cancelled
        ),
        (2, 0, cancelled as u64)
    );
    assert!(figures[0].flags.contains(&StageFlag::Partial));
}

#[test]
fn cancel_before_the_first_reply() {
    let cancel = CancelFlag::new();
    let flag = cancel.clone();
    let server = Server::start_raw(move |_, _| {
        flag.cancel();
        std::thread::sleep(Duration::from_secs(30));
        Then::Close
    });
    let told = run_with(server.spec(vec![level(1, 1)]), &cancel, |_| {});
    assert_eq!(told.outcome, MeterOutcome::Cancelled);
    assert_eq!(told.events.len(), 1);
}

#[test]
fn the_spool_holds_what_was_told_and_takes_no_second_run() {
    let server = Server::start(proper);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.jsonl");
    let mut spec = server.spec(vec![level(2, 6)]);
    spec.spool = Some(path.to_str().expect("a path").to_owned());
    let told = run(spec.clone());
    // Compared as text: reading a float back may change its last digit.
    let told: String = told
        .events
        .iter()
        .map(|event| serde_json::to_string(event).expect("a line") + "\n")
        .collect();
    assert_eq!(std::fs::read_to_string(&path).expect("a spool"), told);
    let again = run_blocking(spec, &CancelFlag::new(), |_| panic!("no event"));
    assert!(matches!(again, Err(SpecError::Spool(_))), "{again:?}");
}

#[test]
fn specifications_that_cannot_be_run() {
    let server = Server::start(proper);
    let refused = |change: &dyn Fn(&mut tokdyno_domain::meter::MeterSpec)| {
        let mut spec = server.spec(vec![level(1, 1)]);
        change(&mut spec);
        run_blocking(spec, &CancelFlag::new(), |_| panic!("no event")).expect_err("a refusal")
    };
    assert!(matches!(
        refused(&|spec| spec.schema = 99),
        SpecError::Schema(99)
    ));
    assert!(matches!(
        refused(&|spec| spec.workload.levels.clear()),
        SpecError::Workload(_)
    ));
    assert!(matches!(
        refused(&|spec| spec.api_key = ApiKey::new("a b")),
        SpecError::Key
    ));
    assert!(matches!(
        refused(&|spec| spec.model = Some(" ".to_owned())),
        SpecError::Model
    ));
    assert!(matches!(
        refused(&|spec| spec.spool = Some("/no/such/folder/f".to_owned())),
        SpecError::Spool(_)
    ));
    assert_eq!(server.asked.lock().expect("no panic").len(), 0);
}
