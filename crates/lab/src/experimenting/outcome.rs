//! How a trial's launch ended, and what that means for the experiment.

use sqlx::{PgConnection, types::Json};
use tokdyno_domain::{
    ids::LaunchId,
    launch::{FailureKind, LaunchFailure, LaunchState},
    run::RunState,
    timestamp::Timestamp,
};

use crate::{LabError, launch_rows};

/// What became of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was measured.
    Done,
    /// It could not be measured, which is held against its cell; why.
    Failed(String),
    /// It ended by no fault of its cell; why.
    Interrupted(String),
}

/// A trial's launch and the run that measured it, as they stand now.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    launch: LaunchId,
    state: LaunchState,
    failure: Option<LaunchFailure>,
    stop_requested: bool,
    /// When ending begins, so that the host is given back in time.
    end_by: Option<Timestamp>,
    run: Option<SeenRun>,
}

#[derive(Debug, Clone)]
struct SeenRun {
    id: i64,
    state: RunState,
    reason: String,
    /// Some stage of it has a request that succeeded.
    has_figures: bool,
}

/// Looks at a launch. Its first run is the one that was planned with it.
pub(super) async fn look(
    connection: &mut PgConnection,
    launch: LaunchId,
) -> Result<Seen, LabError> {
    let row = sqlx::query!(
        r#"SELECT l.state, l.failure AS "failure: Json<LaunchFailure>",
               l.stop_requested_at IS NOT NULL AS "stop_requested!",
               (l.plan ->> 'give_back_at')::bigint AS give_back_at,
               (l.plan ->> 'give_back_lead_s')::bigint AS lead_s,
               r.id AS "run?", r.state AS "run_state?", r.reason AS run_reason,
               EXISTS (SELECT 1 FROM stages s
                   WHERE s.run_id = r.id AND s.completed > 0) AS "has_figures!"
           FROM launches l
           LEFT JOIN LATERAL (
               SELECT id, state, reason FROM runs WHERE launch_id = l.id ORDER BY id LIMIT 1
           ) r ON true
           WHERE l.id = $1"#,
        launch.0,
    )
    .fetch_one(connection)
    .await?;
    let run = match (row.run, row.run_state) {
        (Some(id), Some(state)) => Some(SeenRun {
            id,
            // The words are checked by the database.
            state: RunState::from_word(&state).unwrap_or(RunState::Failed),
            reason: row.run_reason.unwrap_or_default(),
            has_figures: row.has_figures,
        }),
        _ => None,
    };
    let lead_us = row.lead_s.unwrap_or(0).saturating_mul(1_000_000);
    Ok(Seen {
        launch,
        state: launch_rows::state_of(&row.state)?,
        failure: row.failure.map(|failure| failure.0),
        stop_requested: row.stop_requested,
        end_by: row
            .give_back_at
            .map(|at| Timestamp(at.saturating_sub(lead_us))),
        run,
    })
}

impl Seen {
    /// The run, as stored.
    pub(super) fn run(&self) -> Option<i64> {
        self.run.as_ref().map(|run| run.id)
    }

    /// Its turn on the host has not come.
    pub(super) fn is_waiting(&self) -> bool {
        self.state == LaunchState::Queued
    }

    /// What became of the trial, and why the experiment pauses, if it does; none while
    /// launch or run are not over.
    pub(super) fn outcome(&self, now: Timestamp) -> Option<(Outcome, Option<String>)> {
        let run_goes_on = self.run.as_ref().is_some_and(|run| !run.state.is_over());
        if !self.state.is_over() || run_goes_on {
            return None;
        }
        let failure = self.failure.as_ref();
        if self
            .run
            .as_ref()
            .is_some_and(|run| run.state == RunState::Finished && run.has_figures)
        {
            // What holds the GPUs would be in the way of every launch to come.
            let stays = failure.filter(|failure| failure.kind == FailureKind::NotStopped);
            return Some((
                Outcome::Done,
                stays.map(|failure| self.host_trouble(failure)),
            ));
        }
        Some(match (self.state, failure) {
            (LaunchState::Failed, Some(failure)) if is_of_the_host(failure.kind) => {
                let why = self.host_trouble(failure);
                (Outcome::Interrupted(why.clone()), Some(why))
            }
            (LaunchState::Failed, Some(failure)) if failure.kind == FailureKind::Internal => {
                (Outcome::Interrupted(failure.to_string()), None)
            }
            (LaunchState::Failed, failure) => {
                let why =
                    failure.map_or_else(|| "It gave no reason.".to_owned(), ToString::to_string);
                (Outcome::Failed(why), None)
            }
            (LaunchState::Lost, _) => (
                Outcome::Interrupted(format!("How launch {} ended is not known.", self.launch)),
                None,
            ),
            _ => self.stopped(now),
        })
    }

    /// A launch that was stopped before it was measured whole.
    fn stopped(&self, now: Timestamp) -> (Outcome, Option<String>) {
        let pausing = |why: String| (Outcome::Interrupted(why.clone()), Some(why));
        if self.stop_requested {
            return pausing(format!(
                "Launch {} was stopped by hand, so the experiment pauses. Resume it when the host is free for it.",
                self.launch
            ));
        }
        if self.end_by.is_some_and(|at| at <= now) {
            return pausing(
                "The host is given back as agreed. Resume the experiment when the host may be used again."
                    .to_owned(),
            );
        }
        match &self.run {
            Some(run) => match run.state {
                RunState::Cancelled => pausing(format!(
                    "Run {} was cancelled by hand, so the experiment pauses.",
                    run.id
                )),
                RunState::Interrupted => (Outcome::Interrupted(run.reason.clone()), None),
                RunState::Finished => (
                    Outcome::Failed(format!(
                        "Run {} has no figure: not one of its requests succeeded.",
                        run.id
                    )),
                    None,
                ),
                _ => (Outcome::Failed(run.reason.clone()), None),
            },
            None => (
                Outcome::Interrupted(format!(
                    "Launch {} ended before it was measured.",
                    self.launch
                )),
                None,
            ),
        }
    }

    fn host_trouble(&self, failure: &LaunchFailure) -> String {
        format!(
            "Launch {} failed for a reason that every other one would meet as well. {failure} Resume the experiment when that is settled.",
            self.launch
        )
    }
}

/// Would any launch on this host fail alike? Then no cell is to blame.
const fn is_of_the_host(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Unreachable
            | FailureKind::HostKeyUnknown
            | FailureKind::HostKeyChanged
            | FailureKind::AccessRefused
            | FailureKind::Agent
            | FailureKind::PortTaken
            | FailureKind::GpuBusy
            | FailureKind::DiskFull
            | FailureKind::Rebooted
            | FailureKind::NotStopped
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(state: LaunchState, run: Option<RunState>) -> Seen {
        Seen {
            launch: LaunchId(7),
            state,
            failure: None,
            stop_requested: false,
            end_by: None,
            run: run.map(|state| SeenRun {
                id: 9,
                state,
                reason: "a reason".to_owned(),
                has_figures: true,
            }),
        }
    }

    fn failed(kind: FailureKind, run: Option<RunState>) -> Seen {
        Seen {
            failure: Some(LaunchFailure::new(kind, "a line of its log")),
            ..seen(LaunchState::Failed, run)
        }
    }

    const NOW: Timestamp = Timestamp(1_000);

    #[test]
    fn nothing_is_said_before_launch_and_run_are_over() {
        assert_eq!(seen(LaunchState::Ready, None).outcome(NOW), None);
        let measuring = seen(LaunchState::Stopped, Some(RunState::Running));
        assert_eq!(measuring.outcome(NOW), None);
        let stopping = seen(LaunchState::Stopping, Some(RunState::Finished));
        assert_eq!(stopping.outcome(NOW), None);
    }

    #[test]
    fn a_run_with_figures_is_kept_however_its_launch_ended() {
        for (seen, pauses) in [
            (seen(LaunchState::Stopped, Some(RunState::Finished)), false),
            (seen(LaunchState::Lost, Some(RunState::Finished)), false),
            (
                failed(FailureKind::EngineDied, Some(RunState::Finished)),
                false,
            ),
            (
                failed(FailureKind::NotStopped, Some(RunState::Finished)),
                true,
            ),
        ] {
            let (outcome, pause) = seen.outcome(NOW).expect("it is over");
            assert_eq!(
                (outcome, pause.is_some()),
                (Outcome::Done, pauses),
                "{seen:?}"
            );
        }
        let mut empty = seen(LaunchState::Stopped, Some(RunState::Finished));
        empty.run.as_mut().expect("a run").has_figures = false;
        assert!(matches!(
            empty.outcome(NOW),
            Some((Outcome::Failed(_), None))
        ));
    }

    #[test]
    fn only_what_a_cell_is_to_blame_for_is_a_failure() {
        let of_the_cell = failed(FailureKind::OutOfMemory, None).outcome(NOW);
        assert!(matches!(of_the_cell, Some((Outcome::Failed(_), None))));
        let of_the_run = seen(LaunchState::Stopped, Some(RunState::Failed)).outcome(NOW);
        assert_eq!(
            of_the_run,
            Some((Outcome::Failed("a reason".to_owned()), None))
        );
        for seen in [
            seen(LaunchState::Lost, Some(RunState::Cancelled)),
            seen(LaunchState::Stopped, Some(RunState::Interrupted)),
            seen(LaunchState::Stopped, None),
            failed(FailureKind::Internal, None),
        ] {
            let outcome = seen.outcome(NOW);
            assert!(
                matches!(outcome, Some((Outcome::Interrupted(_), None))),
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn what_every_launch_would_meet_and_what_people_do_pauses() {
        let by_hand = Seen {
            stop_requested: true,
            ..seen(LaunchState::Stopped, Some(RunState::Cancelled))
        };
        let in_time = Seen {
            end_by: Some(NOW),
            ..seen(LaunchState::Stopped, Some(RunState::Cancelled))
        };
        for (seen, said) in [
            (failed(FailureKind::GpuBusy, None), "every other one"),
            (failed(FailureKind::Unreachable, None), "every other one"),
            (by_hand, "stopped by hand"),
            (in_time, "given back"),
            (
                seen(LaunchState::Stopped, Some(RunState::Cancelled)),
                "Run 9 was cancelled",
            ),
        ] {
            let Some((Outcome::Interrupted(_), Some(why))) = seen.outcome(NOW) else {
                panic!("{seen:?}");
            };
            assert!(why.contains(said), "{why}");
        }
    }
}
