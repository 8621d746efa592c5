//! Climbing until a server delivers no more.

use std::{
    sync::{Condvar, Mutex},
    time::Duration,
};

use crate::support::{Server, json, level, proper, run};
use tokdyno_domain::{
    meter::{MeterEventKind, MeterOutcome},
    workload::{LoadLevel, Saturation, StageKind, StageSize},
};

/// A server that works on two requests at a time.
fn of_two() -> Server {
    let (free, changed) = (Mutex::new(2_u32), Condvar::new());
    Server::start(move |asked, stream| {
        let mut places = changed
            .wait_while(free.lock().expect("no panic"), |free| *free == 0)
            .expect("no panic");
        *places -= 1;
        drop(places);
        std::thread::sleep(Duration::from_millis(60));
        *free.lock().expect("no panic") += 1;
        changed.notify_one();
        proper(asked, stream)
    })
}

#[test]
fn levels_above_saturation_are_left_out_in_all_repeats() {
    let server = of_two();
    let mut levels = vec![LoadLevel {
        kind: StageKind::SingleStream,
        size: StageSize::Requests { requests: 3 },
    }];
    levels.extend([
        level(1, 6),
        level(2, 12),
        level(4, 16),
        level(8, 16),
        level(16, 32),
    ]);
    let mut spec = server.spec(levels);
    spec.workload.repeats = 2;
    spec.workload.warmup_requests = Some(1);
    spec.workload.saturation = Some(Saturation {
        min_gain_percent: 25,
    });
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let skipped: Vec<(u32, &str)> = told
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            MeterEventKind::StageSkipped { stage, reason } => Some((*stage, reason.as_str())),
            _ => None,
        })
        .collect();
    let stages: Vec<u32> = skipped.iter().map(|(stage, _)| *stage).collect();
    assert_eq!(stages, [4, 5, 10, 11]);
    for (_, reason) in skipped {
        assert!(reason.contains("From C = 2 to C = 4"), "{reason}");
    }
    let begun: Vec<u32> = told
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            MeterEventKind::StageStarted { stage } => Some(stage.index),
            _ => None,
        })
        .collect();
    assert_eq!(begun, [0, 1, 2, 3, 6, 7, 8, 9]);
    assert_eq!(told.figures().len(), 8);
}

#[test]
fn failures_end_no_climb() {
    // After the trial request, and C = 1 and 2: at C = 4 three of five are refused, and
    // the others are slow.
    let server = Server::start(|asked, stream| {
        let overloaded = (19..59).contains(&asked.number);
        if overloaded && asked.number % 5 < 3 {
            return json(stream, 429, r#"{"error":{"message":"slow down"}}"#);
        }
        std::thread::sleep(Duration::from_millis(if overloaded { 200 } else { 20 }));
        proper(asked, stream)
    });
    let mut spec = server.spec(vec![level(1, 6), level(2, 12), level(4, 40), level(8, 32)]);
    spec.workload.warmup_requests = Some(0);
    spec.workload.saturation = Some(Saturation {
        min_gain_percent: 25,
    });
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let figures = told.figures();
    assert_eq!(figures.len(), 4, "none is left out");
    assert_eq!(figures[2].failed, 24);
    // By its throughput the climb would be over.
    assert!(figures[2].output_tps < figures[1].output_tps);
}
