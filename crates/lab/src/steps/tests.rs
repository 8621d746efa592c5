use tokdyno_domain::{
    engine::EngineKind,
    ids::{ContentHash, HostId, LaunchId, ProfileId, RunId},
    launch::{
        Afterwards, FailureKind, LaunchFailure, LaunchOrigin, LaunchPlan, LaunchState, LoadStage,
        MeasurePlan,
    },
    run::RunState,
    timestamp::Timestamp,
    views::servers::{
        LaunchRun, LaunchSummary,
        StepState::{self, Done, Failed, Now, Skipped, ToCome},
    },
    workload::Preset,
};

use super::{Doing, Production, Way};

fn launch(state: LaunchState) -> LaunchSummary {
    let reached = |least: LaunchState| {
        let place = |state| LaunchState::ALL.iter().position(|other| *other == state);
        (place(state) >= place(least)).then_some(Timestamp(1))
    };
    LaunchSummary {
        id: LaunchId(9),
        origin: LaunchOrigin::Launched,
        state,
        failure: None,
        host: (HostId(1), "box".to_owned()),
        profile: (ProfileId(1), "tuned".to_owned(), 1, ContentHash::of(b"")),
        engine: EngineKind::Sglang,
        engine_version: None,
        simulated: false,
        port: 8000,
        gpus: None,
        stamp: None,
        by: "me".to_owned(),
        created_at: Timestamp(0),
        started_at: reached(LaunchState::Loading),
        ready_at: reached(LaunchState::Ready),
        ended_at: reached(LaunchState::Stopped),
        stage: None,
        waits_for: None,
        step: String::new(),
        stop_requested: false,
        unreachable_since: None,
        give_back_at: None,
    }
}

fn failed(kind: FailureKind, started: bool, ready: bool) -> LaunchSummary {
    LaunchSummary {
        failure: Some(LaunchFailure::new(kind, "x")),
        started_at: started.then_some(Timestamp(1)),
        ready_at: ready.then_some(Timestamp(2)),
        ..launch(LaunchState::Failed)
    }
}

fn run(state: RunState) -> LaunchRun {
    LaunchRun {
        id: RunId(3),
        configuration: String::new(),
        workload: String::new(),
        state,
    }
}

fn measuring() -> LaunchPlan {
    LaunchPlan {
        measure: Some(MeasurePlan {
            configuration: "tuned".to_owned(),
            workload: Preset::Quick.workload(),
            through_forward: false,
        }),
        afterwards: Afterwards::Stop,
        ..LaunchPlan::default()
    }
}

fn states(launch: &LaunchSummary, plan: &LaunchPlan, run: Option<&LaunchRun>) -> Vec<StepState> {
    let way = Way {
        launch,
        plan,
        production: None,
        run,
        restore_due: false,
    };
    way.steps().into_iter().map(|step| step.state).collect()
}

#[test]
fn the_words_of_a_step_read_back_with_more_behind_them() {
    for doing in Doing::ALL {
        let step = format!("{}: more", doing.words());
        assert_eq!(Doing::from_step(&step), Some(doing));
    }
    assert_eq!(Doing::from_step(""), None);
}

#[test]
fn what_lives_has_one_step_under_way() {
    let plan = LaunchPlan::default();
    let at = |state, step: &str| {
        let launch = LaunchSummary {
            step: step.to_owned(),
            stage: Some(LoadStage::Weights),
            ..launch(state)
        };
        states(&launch, &plan, None)
    };
    // check host, start, load, verify, keep
    assert_eq!(at(LaunchState::Queued, ""), [ToCome; 5]);
    assert_eq!(
        at(LaunchState::Starting, ""),
        [Now, ToCome, ToCome, ToCome, ToCome]
    );
    assert_eq!(
        at(LaunchState::Starting, "starting"),
        [Done, Now, ToCome, ToCome, ToCome]
    );
    assert_eq!(
        at(LaunchState::Loading, "loading"),
        [Done, Done, Now, ToCome, ToCome]
    );
    assert_eq!(
        at(LaunchState::Loading, "verifying"),
        [Done, Done, Done, Now, ToCome]
    );
    assert_eq!(at(LaunchState::Ready, ""), [Done; 5]);
    assert_eq!(at(LaunchState::Stopping, ""), [Done, Done, Done, Done, Now]);
    assert_eq!(at(LaunchState::Stopped, ""), [Done; 5]);
}

#[test]
fn loading_says_how_far_it_is_and_keeping_how_long() {
    let plan = LaunchPlan::default();
    let details = |launch: &LaunchSummary| -> Vec<(String, String)> {
        let way = Way {
            launch,
            plan: &plan,
            production: None,
            run: None,
            restore_due: false,
        };
        way.steps()
            .into_iter()
            .map(|step| (step.name, step.detail))
            .collect()
    };
    let mut loading = launch(LaunchState::Loading);
    loading.stage = Some(LoadStage::Graphs);
    assert_eq!(details(&loading)[2].1, "capturing CUDA graphs");
    let (name, detail) = details(&launch(LaunchState::Ready))[4].clone();
    assert_eq!(name, "keep running");
    assert!(detail.contains("until somebody stops it"));
    assert_eq!(details(&launch(LaunchState::Stopping))[4].0, "stop");
}

#[test]
fn a_failure_stands_at_the_step_that_it_broke() {
    let plan = measuring();
    // check host, start, load, verify, measure, stop
    let cases: [(LaunchSummary, Option<LaunchRun>, usize); 8] = [
        (failed(FailureKind::PortTaken, false, false), None, 0),
        (failed(FailureKind::NoProgram, false, false), None, 1),
        (failed(FailureKind::OutOfMemory, true, false), None, 2),
        (failed(FailureKind::TimedOut, true, false), None, 2),
        (failed(FailureKind::WrongModel, true, false), None, 3),
        (failed(FailureKind::NoToken, true, false), None, 3),
        (failed(FailureKind::Killed, true, true), None, 4),
        (
            failed(FailureKind::Killed, true, true),
            Some(run(RunState::Finished)),
            5,
        ),
    ];
    for (launch, run, broke) in cases {
        let seen = states(&launch, &plan, run.as_ref());
        let mut expected = vec![Done; broke];
        expected.push(Failed);
        expected.resize(6, Skipped);
        assert_eq!(seen, expected, "{:?}", launch.failure);
    }
    let mut lost = launch(LaunchState::Lost);
    lost.ready_at = None;
    assert_eq!(
        states(&lost, &LaunchPlan::default(), None),
        [Done, Done, Failed, Skipped, Skipped]
    );
}

#[test]
fn what_was_stopped_midway_skips_the_rest() {
    let plan = measuring();
    let stopped = |started: bool, ready: bool| LaunchSummary {
        started_at: started.then_some(Timestamp(1)),
        ready_at: ready.then_some(Timestamp(2)),
        stop_requested: true,
        ..launch(LaunchState::Stopped)
    };
    assert_eq!(states(&stopped(false, false), &plan, None), [Skipped; 6]);
    assert_eq!(
        states(&stopped(true, false), &plan, None),
        [Done, Done, Skipped, Skipped, Skipped, Done]
    );
    let cancelled = run(RunState::Cancelled);
    assert_eq!(
        states(&stopped(true, true), &plan, Some(&cancelled)),
        [Done, Done, Done, Done, Skipped, Done]
    );
}

#[test]
fn the_measurement_is_as_its_run_is() {
    let plan = measuring();
    let ready = launch(LaunchState::Ready);
    for (run_state, measure, end) in [
        (RunState::Queued, Now, ToCome),
        (RunState::Running, Now, ToCome),
        (RunState::Finished, Done, Now),
        (RunState::Failed, Failed, Now),
        (RunState::Interrupted, Failed, Now),
        (RunState::Cancelled, Skipped, Now),
    ] {
        let seen = states(&ready, &plan, Some(&run(run_state)));
        assert_eq!(seen[4..], [measure, end], "{run_state}");
    }
    assert_eq!(states(&ready, &plan, None)[4..], [Now, ToCome]);
    assert_eq!(
        states(&launch(LaunchState::Loading), &plan, None)[4..],
        [ToCome, ToCome]
    );
}

#[test]
fn an_adopted_server_was_neither_checked_nor_loaded() {
    let adopted = LaunchSummary {
        origin: LaunchOrigin::Adopted,
        ..launch(LaunchState::Ready)
    };
    let plan = LaunchPlan::default();
    let way = Way {
        launch: &adopted,
        plan: &plan,
        production: None,
        run: None,
        restore_due: false,
    };
    let names: Vec<String> = way.steps().into_iter().map(|step| step.name).collect();
    assert_eq!(names, ["adopt", "verify", "keep running"]);
    let looked_at = LaunchSummary {
        state: LaunchState::Loading,
        ready_at: None,
        ..adopted.clone()
    };
    assert_eq!(states(&looked_at, &plan, None), [Done, Now, ToCome]);
    let unlike = LaunchSummary {
        origin: LaunchOrigin::Adopted,
        ..failed(FailureKind::Internal, true, false)
    };
    assert_eq!(states(&unlike, &plan, None), [Done, Failed, Skipped]);
}

#[test]
fn production_is_restored_not_touched_or_missing_and_that_is_said() {
    let plan = LaunchPlan::default();
    let production = |state, back| Production {
        launch: LaunchId(4),
        name: "vllm-prod".to_owned(),
        state,
        back,
    };
    let back = |state| Some((LaunchId(10), state, None));
    let over = launch(LaunchState::Stopped);
    let never_began = LaunchSummary {
        started_at: None,
        ready_at: None,
        ..launch(LaunchState::Stopped)
    };
    let alive = launch(LaunchState::Ready);
    let (gone, runs) = (LaunchState::Stopped, LaunchState::Ready);
    for (launch, production, due, expected, stopped) in [
        (&alive, production(gone, None), false, ToCome, Done),
        (&over, production(gone, None), true, Now, Done),
        (
            &over,
            production(gone, back(LaunchState::Queued)),
            false,
            Now,
            Done,
        ),
        (
            &over,
            production(gone, back(LaunchState::Loading)),
            false,
            Now,
            Done,
        ),
        (
            &over,
            production(gone, back(LaunchState::Ready)),
            false,
            Done,
            Done,
        ),
        (
            &over,
            production(gone, back(LaunchState::Failed)),
            false,
            Failed,
            Done,
        ),
        (&over, production(gone, None), false, Failed, Done),
        (
            &never_began,
            production(runs, None),
            false,
            Skipped,
            Skipped,
        ),
        // It had been stopped already when this one was.
        (
            &never_began,
            production(gone, back(LaunchState::Ready)),
            false,
            Done,
            Done,
        ),
    ] {
        let way = Way {
            launch,
            plan: &plan,
            production: Some(&production),
            run: None,
            restore_due: due,
        };
        let steps = way.steps();
        let (first, last) = (&steps[0], steps.last().expect("a step"));
        assert_eq!(
            (first.name.as_str(), first.state),
            ("stop vllm-prod", stopped)
        );
        assert_eq!(
            (last.name.as_str(), last.state),
            ("restore vllm-prod", expected)
        );
        let shown = if production.back.is_some() { 10 } else { 4 };
        assert_eq!(last.link, Some(format!("/servers/{shown}")));
    }
}
