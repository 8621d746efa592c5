//! One run, from its claim to its end.

use std::{path::Path, time::Duration};

use sqlx::types::Json;
use tokdyno_domain::{
    engine::{EngineInfo, EngineKind},
    meter::{ApiKey, METER_SCHEMA, MeterOutcome, MeterSpec},
    run::RunState,
    timestamp::Timestamp,
};
use tokdyno_engines::{ProbeError, ProbeReport, preferred_model, probe, title_of_configuration};
use tokio::{sync::watch, time::Instant};

use super::{
    Worker, ingest,
    lease::{self, Claimed, Heartbeat, Lease},
    meter::{self, Meter},
    patience::{LAST_TRIES, persist},
    place::{self, Place},
    sampling::Sampling,
    spool::{self, SpoolFolder, Tail, TailError},
};
use crate::{LabError, clean, commands::emit_state, secrets::Sealed};

/// How often the spool file is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Shortest time between two stored progresses.
const PROGRESS: Duration = Duration::from_millis(250);

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) state: RunState,
    pub(super) reason: Option<String>,
    pub(super) at: Option<Timestamp>,
}

impl Ending {
    pub(super) fn new(state: RunState, reason: impl Into<Option<String>>) -> Self {
        Self {
            state,
            reason: reason.into(),
            at: None,
        }
    }

    pub(super) fn failed(reason: impl std::fmt::Display) -> Self {
        Self::new(RunState::Failed, clean::owned(&reason.to_string()))
    }
}

/// Measures a run. Whatever happens, it is over afterwards, or its lease is left
/// to lapse and it is recovered.
pub(super) async fn drive(worker: &Worker, claimed: &Claimed, stop: &watch::Receiver<bool>) {
    let lease = claimed.lease;
    let run = lease.run;
    tracing::info!(%run, endpoint = %claimed.endpoint, "a measurement begins");
    let drive = Drive {
        worker,
        claimed,
        heartbeat: Heartbeat::start(&worker.lab, lease),
        stop: stop.clone(),
    };
    let measured = match drive.measure().await {
        Ok(ending) => drive.with_reason(ending).await,
        Err(error) => Err(error),
    };
    let ending = match measured {
        Ok(ending) => ending,
        Err(LabError::LeaseLost) => {
            tracing::warn!(%run, "another worker has taken the run over");
            return;
        }
        Err(LabError::DatabaseUnavailable) => {
            tracing::warn!(%run, "the database stayed away; the run is recovered at the next start");
            return;
        }
        Err(error) => {
            if let Some(path) = worker.spool_folder().and_then(|folder| folder.find(run)) {
                SpoolFolder::put_aside(&path);
            }
            Ending::failed(error)
        }
    };
    let state = ending.state;
    let concluded = persist!(
        stop,
        ingest::conclude(
            &worker.lab.0.pool,
            &lease,
            &claimed.workload,
            ending.state,
            ending.reason.as_deref(),
            ending.at,
        )
    );
    match concluded {
        Ok(()) => {
            tracing::info!(%run, %state, "a measurement is over");
            if let Some(path) = worker.spool_folder().and_then(|folder| folder.find(run)) {
                SpoolFolder::remove(&path);
            }
        }
        Err(error) => tracing::warn!(%run, %error, "the end of a measurement was not stored"),
    }
}

struct Drive<'a> {
    worker: &'a Worker,
    claimed: &'a Claimed,
    heartbeat: Heartbeat,
    stop: watch::Receiver<bool>,
}

impl Drive<'_> {
    /// Whoever stops a launch cancels what is measured on it: the run says so.
    async fn with_reason(&self, ending: Ending) -> Result<Ending, LabError> {
        match self.claimed.launch {
            Some(launch) if ending.state == RunState::Cancelled && ending.reason.is_none() => {
                let because = persist!(&self.stop, place::ended(self.worker, launch))?;
                Ok(because.map_or(ending.clone(), |because| Ending {
                    at: ending.at,
                    ..because
                }))
            }
            _ => Ok(ending),
        }
    }

    async fn measure(&self) -> Result<Ending, LabError> {
        let claimed = self.claimed;
        let key = match persist!(&self.stop, self.key())? {
            Ok(key) => key,
            Err(sentence) => return Ok(Ending::failed(sentence)),
        };
        let mut stop = self.stop.clone();
        let probed = async {
            let place = match Place::find(self.worker, claimed).await? {
                Ok(place) => place,
                Err(ending) => return Ok(Err(ending)),
            };
            let key = key.or_else(|| place.key.clone());
            let probed = probe(&place.here, key.as_ref(), &claimed.tls).await;
            Ok::<_, LabError>(Ok((place, key, probed)))
        };
        let probed = tokio::select! {
            probed = probed => probed?,
            () = self.heartbeat.trouble() => {
                return if self.heartbeat.now().lost {
                    Err(LabError::LeaseLost)
                } else {
                    Ok(Ending::new(RunState::Cancelled, None))
                };
            }
            _ = stop.wait_for(|stop| *stop) => return Ok(stopped()),
        };
        let (place, key, probed) = match probed {
            Ok(probed) => probed,
            Err(ending) => return Ok(ending),
        };
        let model = match probed {
            Ok(report) => {
                let model = claimed
                    .requested_model
                    .clone()
                    .or_else(|| preferred_model(&report.info, None).map(str::to_owned));
                persist!(&self.stop, self.store_probe(&report, model.as_deref()))?;
                if let Some(launch) = &place.launch {
                    let round_trip = report.round_trip_ms;
                    let lease = &claimed.lease;
                    persist!(&self.stop, launch.store(self.worker, lease, round_trip))?;
                }
                model
            }
            // A server may well generate without listing its models; then somebody
            // has to name one.
            Err(ProbeError::NotOpenAi { .. }) if claimed.requested_model.is_some() => {
                let (report, model) = (unlisted(), claimed.requested_model.as_deref());
                persist!(&self.stop, self.store_probe(&report, model))?;
                claimed.requested_model.clone()
            }
            Err(error) => return Ok(Ending::failed(error)),
        };

        let Some(folder) = self.worker.spool_folder() else {
            return Ok(Ending::failed(format!(
                "The folder {} cannot be written, so nothing that is measured would be safe. Check its permissions and space.",
                self.worker.lab.0.config.data_dir.display()
            )));
        };
        let (path, log) = match folder.create(claimed.lease.run, claimed.lease.epoch) {
            Ok(made) => made,
            Err(error) => {
                return Ok(Ending::failed(format!(
                    "The spool file of this measurement cannot be made ({error}). Check the data directory's permissions and space."
                )));
            }
        };
        let sampling = place
            .launch
            .as_ref()
            .map(|launch| launch.sample(self.worker, claimed.lease, &place.here, key.as_ref()));
        let mut spec = MeterSpec {
            schema: METER_SCHEMA,
            endpoint: place.meter.clone(),
            model,
            tls: claimed.tls.clone(),
            api_key: key.clone(),
            workload: claimed.workload.clone(),
            certify: self.worker.lab.0.config.certify,
            spool: None,
        };
        let program = &self.worker.lab.0.config.meter;
        let started = match &place.program {
            Some((host, program)) => Meter::start_on(host, program, &spec, &path, log)
                .await
                .map_err(|error| {
                    format!("The measuring program could not be started on the host. {error}")
                }),
            None => {
                spec.spool = Some(path.to_string_lossy().into_owned());
                Meter::start(program, &spec, log).await.map_err(|error| {
                    format!(
                        "The measuring program {} could not be started ({error}). Check that it is installed beside this program.",
                        program.display()
                    )
                })
            }
        };
        let mut meter = match started {
            Ok(meter) => meter,
            Err(sentence) => return Ok(Ending::failed(sentence)),
        };
        let followed = self.follow(&mut meter, &path, sampling.as_ref()).await;
        if followed.is_err() {
            meter.stop().await;
        }
        drop(sampling);
        let ending = followed?;
        match &place.launch {
            Some(launch) if !*self.stop.borrow() => {
                // The tail of the run is stored; only its last word is still open.
                launch
                    .ending(self.worker, &place.here, key.as_ref(), ending)
                    .await
            }
            _ => Ok(ending),
        }
    }

    /// Stores what the meter writes until it has ended.
    async fn follow(
        &self,
        meter: &mut Meter,
        path: &Path,
        sampling: Option<&Sampling>,
    ) -> Result<Ending, LabError> {
        let run = self.claimed.lease.run;
        let plan = self.claimed.workload.plan();
        let unreadable =
            |error: std::io::Error| LabError::internal("watching the measuring process", error);
        let mut tail = Some(Tail::open(path).map_err(unreadable)?);
        let mut finished: Option<(MeterOutcome, Timestamp)> = None;
        let mut pending = None;
        let mut retry = Retry::default();
        let mut cancelled = false;
        let mut give_up: Option<Instant> = None;
        let mut last_progress: Option<Instant> = None;
        let mut clock = tokio::time::interval(LOOK);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            clock.tick().await;
            let beat = self.heartbeat.now();
            if beat.lost {
                return Err(LabError::LeaseLost);
            }
            if beat.cancel_requested {
                cancelled = true;
            }
            if *self.stop.borrow() && give_up.is_none() {
                give_up = Some(Instant::now() + meter::GRACE + LAST_TRIES);
                meter.cancel().await;
                meter.leave();
            }
            if cancelled {
                meter.cancel().await;
            }
            meter.kill_if_overdue();
            // Seen dead before the file is read for the last time, so nothing can
            // come after that.
            let status = meter.ended().await.map_err(unreadable)?;

            let mut caught_up = false;
            while retry.is_due() {
                let mut batch = match pending.take() {
                    Some(batch) => batch,
                    None => {
                        let (back, batch) = next_batch(tail.take(), 0).await?;
                        tail = Some(back);
                        batch
                    }
                };
                if let Some(end) = batch.finished.take() {
                    finished = Some(end);
                }
                if let (Some(sampling), Some(progress)) = (sampling, &batch.progress) {
                    sampling.client_at(progress);
                }
                if batch.is_empty() {
                    caught_up = true;
                    break;
                }
                if last_progress.is_some_and(|at| at.elapsed() < PROGRESS) {
                    batch.progress = None;
                } else if batch.progress.is_some() {
                    last_progress = Some(Instant::now());
                }
                let stored =
                    ingest::apply(&self.worker.lab.0.pool, &self.claimed.lease, &plan, &batch);
                match bounded(stored).await {
                    Ok(held) => {
                        cancelled |= held.cancel_requested;
                        retry = Retry::default();
                    }
                    Err(LabError::DatabaseUnavailable) => {
                        pending = Some(batch);
                        retry.later();
                        tracing::warn!(%run, "the database is away; the measurement goes on");
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(status) = status
                && caught_up
            {
                let stopping = give_up.is_some();
                if let (Some(why), None, false, false) =
                    (meter.not_copied(), &finished, cancelled, stopping)
                {
                    return Ok(not_kept(why));
                }
                return Ok(ending(finished, cancelled, stopping, || {
                    let mut how = meter::describe(status);
                    if let Some(complaint) = spool::complaints(path) {
                        how = format!("{how}: {complaint}");
                    }
                    how
                }));
            }
            if give_up.is_some_and(|at| Instant::now() >= at) {
                return Err(LabError::DatabaseUnavailable);
            }
        }
    }

    async fn key(&self) -> Result<Result<Option<ApiKey>, String>, LabError> {
        let run = self.claimed.lease.run;
        let row = sqlx::query!(
            "SELECT nonce, ciphertext FROM secrets WHERE run_id = $1",
            run.0
        )
        .fetch_optional(&self.worker.lab.0.pool)
        .await?;
        let Some(row) = row else { return Ok(Ok(None)) };
        let sealed = Sealed {
            nonce: row.nonce,
            ciphertext: row.ciphertext,
        };
        Ok(self
            .worker
            .lab
            .0
            .key_file
            .open_sealed(run, &sealed)
            .map(Some)
            .map_err(|error| error.to_string()))
    }

    async fn store_probe(&self, report: &ProbeReport, model: Option<&str>) -> Result<(), LabError> {
        store_probe(self.worker, &self.claimed.lease, report, model).await
    }
}

async fn store_probe(
    worker: &Worker,
    lease: &Lease,
    report: &ProbeReport,
    model: Option<&str>,
) -> Result<(), LabError> {
    let info = &report.info;
    let title: String = title_of_configuration(info)
        .chars()
        .take(tokdyno_domain::views::measure::MAX_NAME)
        .collect();
    let notes: Vec<String> = report.notes.iter().map(|note| clean::owned(note)).collect();
    let mut tx = worker.lab.0.pool.begin().await?;
    lease::hold(&mut tx, lease).await?;
    sqlx::query!(
        "UPDATE runs SET engine = $2, engine_version = $3, settings = $4,
             model = coalesce($5, model), remarks = remarks || $6::text[],
             configuration = CASE WHEN configuration = '' THEN $7 ELSE configuration END
         WHERE id = $1",
        lease.run.0,
        info.kind.word(),
        info.version.as_deref().map(clean::owned),
        Json(clean::map(&info.settings)) as _,
        model.map(clean::owned),
        &notes,
        clean::owned(&title),
    )
    .execute(&mut *tx)
    .await?;
    if info.simulated {
        ingest::mark_simulated(&mut tx, lease.run).await?;
    }
    emit_state(&mut tx, lease.run, RunState::Running).await?;
    tx.commit().await?;
    Ok(())
}

/// What is known of a server that lists no models.
fn unlisted() -> ProbeReport {
    ProbeReport {
        info: EngineInfo {
            kind: EngineKind::Other,
            version: None,
            models: Vec::new(),
            max_model_len: None,
            settings: std::collections::BTreeMap::new(),
            max_running_requests: None,
            simulated: false,
        },
        round_trip_ms: 0.0,
        notes: vec![
            "The server has no list of models, so its engine, version and settings are unknown."
                .to_owned(),
        ],
    }
}

/// When to try again after the database was away.
#[derive(Default)]
struct Retry {
    at: Option<Instant>,
    pause: Duration,
}

impl Retry {
    fn is_due(&self) -> bool {
        self.at.is_none_or(|at| Instant::now() >= at)
    }

    fn later(&mut self) {
        self.pause = (self.pause * 2).clamp(Duration::from_millis(250), Duration::from_secs(5));
        self.at = Some(Instant::now() + self.pause);
    }
}

/// A database that swallows a question is one that is away.
pub(crate) async fn bounded<T>(
    question: impl Future<Output = Result<T, LabError>>,
) -> Result<T, LabError> {
    tokio::time::timeout(Duration::from_secs(60), question)
        .await
        .unwrap_or(Err(LabError::DatabaseUnavailable))
}

/// Reads on, away from the threads that serve pages. Lines up to `stored` are
/// stored already.
pub(super) async fn next_batch(
    tail: Option<Tail>,
    stored: i64,
) -> Result<(Tail, ingest::Batch), LabError> {
    let Some(mut tail) = tail else {
        return Err(LabError::internal(
            "reading a spool file",
            "it is being read",
        ));
    };
    let (tail, batch) = tokio::task::spawn_blocking(move || {
        let batch = tail.next_batch(stored);
        (tail, batch)
    })
    .await
    .map_err(|error| LabError::internal("reading a spool file", error))?;
    let batch =
        batch.map_err(|error: TailError| LabError::internal("reading a spool file", error))?;
    Ok((tail, batch))
}

/// The end of a run whose meter has ended.
fn ending(
    finished: Option<(MeterOutcome, Timestamp)>,
    cancelled: bool,
    stopping: bool,
    how: impl FnOnce() -> String,
) -> Ending {
    let at = finished.as_ref().map(|(_, at)| *at);
    let ending = match finished.map(|(outcome, _)| outcome) {
        Some(MeterOutcome::Complete) => Ending::new(RunState::Finished, None),
        Some(MeterOutcome::Failed { reason }) => Ending::failed(reason),
        Some(MeterOutcome::Cancelled) | None if cancelled => {
            Ending::new(RunState::Cancelled, None)
        }
        Some(MeterOutcome::Cancelled) | None if stopping => stopped(),
        Some(MeterOutcome::Cancelled) => Ending::new(
            RunState::Interrupted,
            "The measuring process was told to stop by somebody else. What it had finished is kept; measure again."
                .to_owned(),
        ),
        None => Ending::new(
            RunState::Interrupted,
            format!(
                "The measuring process ended unexpectedly ({}). What it had finished is kept; measure again.",
                clean::text(&how())
            ),
        ),
    };
    Ending { at, ..ending }
}

/// The lines of a meter on a host did not all come to be kept here.
fn not_kept(why: &str) -> Ending {
    Ending::new(
        RunState::Interrupted,
        format!(
            "What the measuring program on the host wrote could not be kept here ({}). Check the data directory's space and permissions, and the network. What had been kept stays; measure again.",
            clean::text(why)
        ),
    )
}

fn stopped() -> Ending {
    Ending::new(
        RunState::Interrupted,
        "Tokdyno was stopped while this run was being measured. What had been finished is kept; measure again."
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_ends_as() {
        let state = |outcome: Option<MeterOutcome>, cancelled, stopping| {
            ending(
                outcome.map(|outcome| (outcome, Timestamp(1))),
                cancelled,
                stopping,
                || "signal 9".to_owned(),
            )
            .state
        };
        let complete = || Some(MeterOutcome::Complete);
        assert_eq!(state(complete(), false, false), RunState::Finished);
        assert_eq!(
            state(complete(), true, true),
            RunState::Finished,
            "it was quicker than the word"
        );
        let told = || Some(MeterOutcome::Cancelled);
        assert_eq!(state(told(), true, false), RunState::Cancelled);
        assert_eq!(state(told(), true, true), RunState::Cancelled);
        assert_eq!(state(told(), false, true), RunState::Interrupted);
        assert_eq!(state(told(), false, false), RunState::Interrupted);
        assert_eq!(state(None, true, false), RunState::Cancelled, "killed");
        let failed = Some(MeterOutcome::Failed {
            reason: "no".to_owned(),
        });
        assert_eq!(state(failed, true, true), RunState::Failed);
        let not_kept = not_kept("No space left on device");
        assert_eq!(not_kept.state, RunState::Interrupted);
        assert!(
            not_kept
                .reason
                .is_some_and(|reason| reason.contains("(No space left on device)"))
        );
        let died = ending(None, false, false, || "signal 9".to_owned());
        assert_eq!(died.state, RunState::Interrupted);
        assert!(
            died.reason
                .is_some_and(|reason| reason.contains("(signal 9)"))
        );
    }
}
