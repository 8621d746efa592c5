//! Waiting for a launch or a run, with its stages on standard error as they pass.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use tokdyno_domain::{
    ids::{LaunchId, RunId},
    launch::LaunchState,
    meter::{Phase, Progress},
    run::RunState,
    text,
    views::{
        run::RunSummary,
        servers::{LaunchView, Step, StepState},
    },
};

use super::{ClientError, Connection};

/// How often is asked.
const ASK: Duration = Duration::from_millis(700);
/// How long a server may be away: it may be starting anew, and launches go on.
const AWAY: Duration = Duration::from_secs(120);

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Everything that was asked for is done, or it runs and is kept.
    Settled,
    /// It has ended, and what it is to bring back is there.
    Over,
}

/// How it ended.
pub(crate) struct Ending {
    /// What the server said last.
    pub(crate) answer: Value,
    /// What went wrong, as a sentence.
    pub(crate) trouble: Option<String>,
}

/// Waits until a launch is ready, or all that was asked for is done.
///
/// # Errors
/// The server is away for too long, or refuses.
pub(crate) async fn follow_launch(
    connection: &Connection,
    launch: LaunchId,
) -> Result<Ending, ClientError> {
    follow(connection, launch, Until::Settled).await
}

/// Waits until a launch has ended.
///
/// # Errors
/// The server is away for too long, or refuses.
pub(crate) async fn follow_stop(
    connection: &Connection,
    launch: LaunchId,
) -> Result<Ending, ClientError> {
    follow(connection, launch, Until::Over).await
}

async fn follow(
    connection: &Connection,
    launch: LaunchId,
    until: Until,
) -> Result<Ending, ClientError> {
    let number = launch.to_string();
    let mut patience = Patience::default();
    let mut teller = Teller::default();
    loop {
        if let Some(answer) = patience.ask(connection, &["launches", &number]).await? {
            let view: LaunchView = connection.parsed(answer.clone())?;
            for line in teller.news(&view) {
                eprintln!("{line}");
            }
            if is_done(&view, until) {
                return Ok(Ending {
                    answer,
                    trouble: trouble(&view, until),
                });
            }
        }
        tokio::time::sleep(ASK).await;
    }
}

fn is_done(view: &LaunchView, until: Until) -> bool {
    let under_way = |step: &Step| step.state == StepState::Now;
    if view.summary.state.is_over() {
        return !view.steps.iter().any(under_way);
    }
    if until == Until::Over || view.summary.state != LaunchState::Ready {
        return false;
    }
    // Kept running: what comes after its own end, such as bringing production back,
    // waits until somebody stops it.
    let open = |step: &Step| matches!(step.state, StepState::Now | StepState::ToCome);
    view.steps
        .iter()
        .take_while(|step| !step.name.starts_with("restore "))
        .all(|step| !open(step))
}

fn trouble(view: &LaunchView, until: Until) -> Option<String> {
    if let Some(failure) = &view.summary.failure {
        // Who stops a launch that had failed got what was asked for.
        if until == Until::Settled {
            return Some(failure.to_string());
        }
    }
    if until == Until::Settled && view.summary.state == LaunchState::Lost {
        return Some(format!(
            "Launch {} was lost: its host rebooted, or its process vanished.",
            view.summary.id
        ));
    }
    let failed = view
        .steps
        .iter()
        .filter(|step| until == Until::Settled || step.name.starts_with("restore "))
        .find(|step| step.state == StepState::Failed);
    if let Some(step) = failed {
        return Some(format!("The step “{}” failed. {}", step.name, step.detail));
    }
    let ended_early = until == Until::Settled
        && view.summary.state == LaunchState::Stopped
        && view
            .steps
            .iter()
            .any(|step| step.state == StepState::Skipped);
    ended_early.then(|| {
        format!(
            "Launch {} was stopped before everything was done.",
            view.summary.id
        )
    })
}

/// Says each thing once.
#[derive(Default)]
struct Teller {
    said: Vec<String>,
    waits_for: Option<String>,
    stage: String,
}

impl Teller {
    fn news(&mut self, view: &LaunchView) -> Vec<String> {
        let mut lines = Vec::new();
        if view.summary.waits_for != self.waits_for {
            self.waits_for.clone_from(&view.summary.waits_for);
            if let Some(holder) = &self.waits_for {
                lines.push(format!("… waits for {holder}"));
            }
        }
        for step in &view.steps {
            let Some(line) = line(step) else {
                continue;
            };
            if !self.said.contains(&line) {
                self.said.push(line.clone());
                lines.push(line);
            }
        }
        if view.summary.state == LaunchState::Loading && view.stage_text != self.stage {
            self.stage.clone_from(&view.stage_text);
            lines.push(format!("    {}", self.stage));
        }
        lines
    }
}

fn line(step: &Step) -> Option<String> {
    let detail = if step.detail.is_empty() {
        String::new()
    } else {
        format!(": {}", step.detail)
    };
    let mark = match step.state {
        StepState::ToCome => return None,
        StepState::Now => '…',
        StepState::Done => '✓',
        StepState::Failed => '✗',
        StepState::Skipped => '–',
    };
    Some(format!("{mark} {}{detail}", step.name))
}

/// A run, as far as waiting needs it.
#[derive(Debug, Deserialize)]
struct Run {
    summary: RunSummary,
    progress: Option<Progress>,
}

/// Waits until a run is over.
///
/// # Errors
/// The server is away for too long, or refuses.
pub(crate) async fn follow_run(connection: &Connection, run: RunId) -> Result<Ending, ClientError> {
    let number = run.to_string();
    let mut patience = Patience::default();
    let mut last = String::new();
    loop {
        if let Some(answer) = patience.ask(connection, &["runs", &number]).await? {
            let view: Run = connection.parsed(answer.clone())?;
            let line = run_line(&view);
            if line != last {
                eprintln!("{line}");
                last = line;
            }
            let state = view.summary.state;
            if state.is_over() {
                let trouble = (state != RunState::Finished).then(|| {
                    let reason = view.summary.reason.unwrap_or_default();
                    format!("Run {run} is {state}. {reason}").trim().to_owned()
                });
                return Ok(Ending { answer, trouble });
            }
        }
        tokio::time::sleep(ASK).await;
    }
}

fn run_line(run: &Run) -> String {
    match &run.progress {
        Some(progress) if run.summary.state == RunState::Running => {
            let doing = match progress.phase {
                Phase::WarmUp => "warming up",
                Phase::Measuring => "measuring",
                Phase::Draining => "waiting for the last replies",
            };
            format!(
                "… stage {} of {}: {doing}, {} over",
                progress.stage + 1,
                progress.stages,
                text::plural(progress.done, "request", "requests"),
            )
        }
        _ => format!("… {}", run.summary.state),
    }
}

/// Bears with a server that is away for a moment.
#[derive(Default)]
struct Patience {
    away_since: Option<Instant>,
}

impl Patience {
    /// The answer; none while the server is away.
    async fn ask(
        &mut self,
        connection: &Connection,
        path: &[&str],
    ) -> Result<Option<Value>, ClientError> {
        match connection.get(path).await {
            Ok(answer) => {
                self.away_since = None;
                Ok(Some(answer))
            }
            Err(error) if error.may_pass() => {
                if self.away_since.is_none() {
                    eprintln!("… the server is away; waiting for it");
                }
                let since = *self.away_since.get_or_insert_with(Instant::now);
                if since.elapsed() < AWAY {
                    Ok(None)
                } else {
                    Err(error)
                }
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use LaunchState::{Failed, Loading, Queued, Ready, Stopped, Stopping};
    use StepState::{Done, Now, Skipped, ToCome};
    use tokdyno_domain::launch::{FailureKind, LaunchFailure};

    use super::{super::samples::view, *};

    #[test]
    fn a_kept_launch_is_settled_once_it_is_ready_and_measured() {
        let kept = |measure, keep| {
            let steps = [
                ("verify", Done),
                ("measure", measure),
                ("keep running", keep),
                ("restore production", ToCome),
            ];
            is_done(&view(Ready, &steps), Until::Settled)
        };
        assert!(kept(Done, Done));
        assert!(!kept(Now, ToCome));
        assert!(!is_done(&view(Queued, &[]), Until::Settled));
        assert!(!is_done(&view(Loading, &[("load", Now)]), Until::Settled));
    }

    #[test]
    fn an_ended_launch_is_waited_for_until_production_is_back() {
        let steps = |restore| [("stop", Done), ("restore production", restore)];
        for until in [Until::Settled, Until::Over] {
            assert!(!is_done(&view(Stopping, &steps(ToCome)), until));
            assert!(!is_done(&view(Stopped, &steps(Now)), until));
            assert!(is_done(&view(Stopped, &steps(Done)), until));
            assert!(is_done(&view(Stopped, &steps(StepState::Failed)), until));
        }
        let running = view(Ready, &[("keep running", Done)]);
        assert!(!is_done(&running, Until::Over));
    }

    #[test]
    fn what_went_wrong_is_a_sentence_and_stopping_on_purpose_is_none() {
        let mut failed = view(Failed, &[("load", StepState::Failed)]);
        failed.summary.failure = Some(LaunchFailure::new(FailureKind::OutOfMemory, "rank 3"));
        let sentence = trouble(&failed, Until::Settled).expect("a sentence");
        assert!(sentence.contains("memory"), "{sentence}");
        assert_eq!(trouble(&failed, Until::Over), None, "it was to end");

        let early = view(Stopped, &[("verify", Done), ("measure", Skipped)]);
        assert!(trouble(&early, Until::Settled).is_some());
        assert_eq!(trouble(&early, Until::Over), None);
        let whole = view(Stopped, &[("measure", Done), ("stop", Done)]);
        assert_eq!(trouble(&whole, Until::Settled), None);
        let not_back = view(Stopped, &[("restore production", StepState::Failed)]);
        for until in [Until::Settled, Until::Over] {
            let sentence = trouble(&not_back, until).expect("a sentence");
            assert!(sentence.contains("restore production"), "{sentence}");
        }
    }

    #[test]
    fn each_thing_is_said_once() {
        let mut teller = Teller::default();
        let mut waiting = view(Queued, &[("load", ToCome)]);
        waiting.summary.waits_for = Some("launch 3".to_owned());
        assert_eq!(teller.news(&waiting), ["… waits for launch 3"]);
        assert!(teller.news(&waiting).is_empty());
        let mut loading = view(Loading, &[("load", Now)]);
        loading.stage_text = "25 % of the weights".to_owned();
        assert_eq!(teller.news(&loading), ["… load", "    25 % of the weights"]);
        assert!(teller.news(&loading).is_empty());
        let ready = view(Ready, &[("load", Done)]);
        assert_eq!(teller.news(&ready), ["✓ load"]);
    }

    #[test]
    fn a_run_is_told_by_its_state() {
        let run: Run = serde_json::from_value(serde_json::json!({
            "summary": {
                "id": 1, "configuration": "", "state": "queued", "reason": null,
                "cancel_requested": false, "queue_place": 0, "source": "measured",
                "engine": "sglang", "engine_version": null, "model": "", "hardware": "",
                "endpoint": null, "workload_name": "", "workload_hash": "", "workload_text": "",
                "created_at": 0, "started_at": null, "finished_at": null,
                "single_stream": null, "peak_output": null, "flagged": false,
            },
            "progress": null,
        }))
        .expect("a run");
        assert_eq!(run_line(&run), "… queued");
    }
}
