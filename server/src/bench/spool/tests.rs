use tokdyno_domain::{
    meter::{MeterEvent, MeterEventKind},
    timestamp::Timestamp,
    workload::{LoadLevel, Preset, StageKind, StageSize, Workload},
};

use super::*;
use crate::bench::Subject;

fn around() -> Circumstances {
    let subject = Subject {
        info: None,
        notes: Vec::new(),
    };
    let level = LoadLevel {
        kind: StageKind::SingleStream,
        size: StageSize::Requests { requests: 9 },
    };
    Circumstances {
        configuration: Some("tuned".to_owned()),
        ..Circumstances::new(
            "http://127.0.0.1:1".to_owned(),
            &subject,
            Workload::with_levels("w", vec![level]),
        )
    }
}

fn event(seq: u64, kind: MeterEventKind) -> String {
    let event = MeterEvent {
        seq,
        at: Timestamp(1_767_225_600_000_000),
        kind,
    };
    serde_json::to_string(&event).expect("serialises") + "\n"
}

fn started() -> String {
    let stage = around().workload.plan()[0];
    event(1, MeterEventKind::StageStarted { stage })
}

#[test]
fn files_stand_beside_the_result_and_go_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = folder.path().join("r.json");
    let spool = Spool::begin(&result, &around()).expect("begun");
    let events = spool.events().expect("a name");
    assert!(events.ends_with("/r.json.events.jsonl"), "{events}");
    let again = Spool::begin(&result, &around()).expect_err("under way");
    assert!(matches!(again, SpoolError::UnderWay(_)), "{again}");
    let other = recover(Path::new(&events)).expect_err("nothing there yet");
    assert!(matches!(other, SpoolError::Read { .. }), "{other}");
    fs::write(&events, started()).expect("written");
    let during = recover(Path::new(&events)).expect_err("under way");
    assert!(matches!(during, SpoolError::UnderWay(_)), "{during}");
    spool.remove();
    assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 0);
}

#[test]
fn events_of_a_dead_measurement_are_not_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = folder.path().join("r.json");
    let spool = Spool::begin(&result, &around()).expect("begun");
    fs::write(spool.events().expect("a name"), started()).expect("written");
    drop(spool);
    let error = Spool::begin(&result, &around())
        .expect_err("left")
        .to_string();
    assert!(
        error.contains("--recover") && error.contains("r.json.events.jsonl"),
        "{error}"
    );
    // A companion alone is what is left of a run that never began.
    fs::remove_file(folder.path().join("r.json.events.jsonl")).expect("removed");
    Spool::begin(&result, &around()).expect("begun").abandon();
    assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 0);
}

#[test]
fn only_the_last_line_may_be_cut_off() {
    let whole = started()
        + &event(
            2,
            MeterEventKind::Finished {
                outcome: MeterOutcome::Cancelled,
            },
        );
    let read = |text: &str| Events::read("e", text.as_bytes()).map(|events| events.collected);
    let collected = read(&whole).expect("events");
    assert_eq!(collected.outcome(), Some(&MeterOutcome::Cancelled));
    let cut = read(&whole[..whole.len() - 5]).expect("events");
    assert_eq!(cut.outcome(), None);
    let error = read(&format!("{{\"seq\":1\n{whole}")).expect_err("changed");
    assert!(error.to_string().starts_with("Line 1 of e"), "{error}");
}

#[test]
fn a_file_of_two_measurements_is_refused() {
    let read = |text: &str| Events::read("e", text.as_bytes());
    let last = |seq| {
        event(
            seq,
            MeterEventKind::Finished {
                outcome: MeterOutcome::Complete,
            },
        )
    };
    let once = started() + &last(2);
    for (text, line) in [
        (once.clone() + &once, 3),
        (started() + &started(), 2),
        (once.clone() + &last(3), 3),
    ] {
        let error = read(&text).expect_err("twice").to_string();
        assert!(error.starts_with(&format!("Line {line} of e")), "{error}");
    }
    assert!(read(&once).expect("events").is_whole());
    let gap = read(&(started() + &last(9))).expect("events");
    assert!(gap.has_gap && !gap.is_whole());
    assert!(!read(&started()).expect("events").is_whole());
}

#[test]
fn only_what_the_files_hold_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::begin(&folder.path().join("r.json"), &around()).expect("begun");
    let events = spool.events().expect("a name");
    assert_eq!(spool.kept(), Kept::Nothing, "no events yet");
    fs::write(&events, started()).expect("written");
    assert_eq!(spool.kept(), Kept::Nothing, "no request is over");
    let whole = started()
        + &event(
            2,
            MeterEventKind::Finished {
                outcome: MeterOutcome::Complete,
            },
        );
    fs::write(&events, whole).expect("written");
    assert_eq!(spool.kept(), Kept::Whole);
    fs::remove_file(&spool.spec).expect("removed");
    assert_eq!(spool.kept(), Kept::Nothing, "nobody knows what it was");
}

#[test]
fn a_companion_of_somebody_else_is_not_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = folder.path().join("r.json");
    let spec = folder.path().join("r.json.spec.json");
    for theirs in [
        "{\"openapi\": 3}",
        "text",
        "{\"tool\": \"other\", \"meter_schema\": 2}",
    ] {
        fs::write(&spec, theirs).expect("written");
        let error = Spool::begin(&result, &around()).expect_err("foreign");
        assert!(matches!(error, SpoolError::Foreign(_)), "{error}");
        assert_eq!(fs::read_to_string(&spec).expect("read"), theirs);
    }
    // That of another version, or an empty one, is of no use to anybody.
    for left in [
        "",
        "{\"tool\": \"tokdyno\", \"meter_schema\": 1, \"url\": \"a long one\"}",
    ] {
        fs::write(&spec, left).expect("written");
        let spool = Spool::begin(&result, &around()).expect("begun");
        let text = fs::read(&spec).expect("read");
        read_companion(&spec, &text).expect("written anew");
        spool.remove();
    }
}

#[test]
fn what_holds_no_request_or_is_no_spool_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = folder.path().join("r.json");
    let spool = Spool::begin(&result, &around()).expect("begun");
    let events = PathBuf::from(spool.events().expect("a name"));
    fs::write(&events, started()).expect("written");
    drop(spool);
    let error = recover(&events).expect_err("nothing");
    assert!(matches!(error, SpoolError::Nothing(_)), "{error}");
    assert!(matches!(recover(&result), Err(SpoolError::NoEvents(_))));
    let spec = folder.path().join("r.json.spec.json");
    let text = fs::read_to_string(&spec).expect("read");
    fs::write(
        &spec,
        text.replace("\"meter_schema\": ", "\"meter_schema\": 9"),
    )
    .expect("written");
    let error = recover(&events).expect_err("another version").to_string();
    assert!(error.contains("it was written by version"), "{error}");
}

#[test]
fn the_companion_reads_back() {
    let around = Circumstances {
        workload: Preset::Standard.workload(),
        ..around()
    };
    let text = serde_json::to_string(&around).expect("serialises");
    let read: Circumstances = serde_json::from_str(&text).expect("reads back");
    assert_eq!(read, around);
}
