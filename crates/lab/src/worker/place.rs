//! Where a run's client stands, and its way to the engine. A run on a launch is
//! measured on the launch's host where that can be, so that no network is in the
//! figures.

use sqlx::types::Json;
use tokdyno_domain::{
    endpoint::EndpointUrl,
    engine::EngineKind,
    host::Reach,
    ids::LaunchId,
    launch::{LaunchFailure, LaunchState},
    meter::ApiKey,
    run::RunState,
    views::run_host::ClientPlace,
};
use tokdyno_engines::{Health, health};
use tokdyno_remote::{ExitKind, Forward, Host, RawCommand, RemoteError, RemoteProgram};

use super::{
    Worker,
    drive::Ending,
    lease::{self, Claimed, Lease},
    sampling::Sampling,
};
use crate::{
    LabError, clean,
    launching::{self, api_key},
};

/// How long a launch may take to be known as dead after its engine is.
const KNOWN_DEAD: std::time::Duration = std::time::Duration::from_secs(8);

/// A run's engine and the ways to it.
pub(super) struct Place {
    /// The engine's address from this machine.
    pub(super) here: EndpointUrl,
    /// Its address from where the meter runs.
    pub(super) meter: EndpointUrl,
    /// The key that the launch's profile gives its engine.
    pub(super) key: Option<ApiKey>,
    /// The meter on the host; none if it runs here.
    pub(super) program: Option<(Host, RemoteProgram)>,
    /// Of a run on a launch.
    pub(super) launch: Option<OnLaunch>,
}

/// The launch under a run.
pub(super) struct OnLaunch {
    id: LaunchId,
    engine: EngineKind,
    host: Host,
    place: ClientPlace,
    remarks: Vec<String>,
    /// Open for as long as this lives.
    _forward: Forward,
}

impl Place {
    /// Finds the way. An ending if there is none.
    pub(super) async fn find(
        worker: &Worker,
        claimed: &Claimed,
    ) -> Result<Result<Self, Ending>, LabError> {
        let Some(id) = claimed.launch else {
            return Ok(Ok(Self {
                here: claimed.endpoint.clone(),
                meter: claimed.endpoint.clone(),
                key: None,
                program: None,
                launch: None,
            }));
        };
        if let Some(ending) = ended(worker, id).await? {
            return Ok(Err(ending));
        }
        let launch = launching::read(&worker.lab.0.pool, id).await?;
        let config = &worker.lab.0.config;
        let host = Host::open(&config.remote, &launch.reach);
        let forward = match host.forward(launch.port).await {
            Ok(forward) => forward,
            Err(error) => return Ok(Err(Ending::failed(error))),
        };
        let here = launching::address(&forward)?;
        let mut on_launch = OnLaunch {
            id,
            engine: launch.spec.engine,
            host: host.clone(),
            place: claimed.place,
            remarks: Vec::new(),
            _forward: forward,
        };
        let mut program = None;
        let on_host = on_launch.place == ClientPlace::Host;
        if on_host && matches!(launch.reach, Reach::Ssh { .. }) {
            let meter = config.host_meter.as_ref().unwrap_or(&config.meter);
            match usable(&host, meter).await {
                Ok(there) => program = Some((host, there)),
                Err(Unusable::Host(error)) => return Ok(Err(Ending::failed(error))),
                Err(Unusable::Meter(why)) => {
                    on_launch.place = ClientPlace::Forward;
                    on_launch.remarks.push(format!(
                        "The meter cannot run on the host, so it was measured through a port forward: the network is in the figures. {why}"
                    ));
                }
            }
        }
        let meter = if on_launch.place == ClientPlace::Host {
            claimed.endpoint.clone()
        } else {
            here.clone()
        };
        Ok(Ok(Self {
            here,
            meter,
            key: api_key(&launch.spec),
            program,
            launch: Some(on_launch),
        }))
    }
}

impl OnLaunch {
    /// Keeps where it is measured from, and what the launch is known to be now.
    pub(super) async fn store(
        &self,
        worker: &Worker,
        lease: &Lease,
        round_trip_ms: f64,
    ) -> Result<(), LabError> {
        let remarks: Vec<String> = self.remarks.iter().map(|text| clean::owned(text)).collect();
        let mut tx = worker.lab.0.pool.begin().await?;
        lease::hold(&mut tx, lease).await?;
        sqlx::query!(
            "UPDATE runs SET client_place = $2, round_trip_ms = $3,
                 remarks = runs.remarks || $4::text[],
                 stamp = l.stamp, effective = l.effective
             FROM launches l WHERE runs.id = $1 AND l.id = $5",
            lease.run.0,
            self.place.word(),
            round_trip_ms,
            &remarks,
            self.id.0,
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Begins to sample the host.
    pub(super) fn sample(
        &self,
        worker: &Worker,
        lease: Lease,
        here: &EndpointUrl,
        key: Option<&ApiKey>,
    ) -> Sampling {
        Sampling::begin(
            &worker.lab.0.pool,
            lease,
            &self.host,
            (self.engine, here.clone(), key.cloned()),
        )
    }

    /// How the run ended, knowing how the launch under it fares.
    pub(super) async fn ending(
        &self,
        worker: &Worker,
        here: &EndpointUrl,
        key: Option<&ApiKey>,
        ending: Ending,
    ) -> Result<Ending, LabError> {
        if ending.state == RunState::Finished
            && matches!(health(self.engine, here, key).await, Health::Ok)
        {
            return Ok(ending);
        }
        // That it died is known a little after its requests fail.
        let until = tokio::time::Instant::now() + KNOWN_DEAD;
        loop {
            if let Some(other) = ended(worker, self.id).await? {
                return Ok(Ending {
                    at: ending.at,
                    ..other
                });
            }
            let asked_for = ending.state == RunState::Cancelled;
            if asked_for || tokio::time::Instant::now() >= until {
                return Ok(ending);
            }
            if matches!(health(self.engine, here, key).await, Health::Ok) {
                return Ok(ending);
            }
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        }
    }
}

/// How a run on this launch ends because of it; none while it serves.
pub(super) async fn ended(worker: &Worker, launch: LaunchId) -> Result<Option<Ending>, LabError> {
    let row = sqlx::query!(
        r#"SELECT state, failure AS "failure: Json<LaunchFailure>",
               stop_requested_at IS NOT NULL AS "stop_requested!"
           FROM launches WHERE id = $1"#,
        launch.0,
    )
    .fetch_optional(&worker.lab.0.pool)
    .await?
    .ok_or(LabError::NoSuchLaunch(launch))?;
    let state = crate::launch_rows::state_of(&row.state)?;
    Ok(match state {
        LaunchState::Ready if !row.stop_requested => None,
        LaunchState::Failed => Some(Ending::failed(format!(
            "Launch {launch}, on which it was measured, failed. {}",
            row.failure
                .map(|failure| failure.0.to_string())
                .unwrap_or_default()
        ))),
        LaunchState::Lost => Some(Ending::failed(format!(
            "Launch {launch}, on which it was measured, was lost: how its process ended is not known. Launch and measure again."
        ))),
        LaunchState::Ready | LaunchState::Stopping | LaunchState::Stopped => Some(Ending::new(
            RunState::Cancelled,
            format!("Launch {launch}, on which it was measured, was stopped."),
        )),
        LaunchState::Queued | LaunchState::Starting | LaunchState::Loading => Some(Ending::failed(
            format!("Launch {launch} is {state}; only one that is ready can be measured."),
        )),
    })
}

enum Unusable {
    /// The host is out of reach.
    Host(RemoteError),
    /// The meter does not run there; a sentence.
    Meter(String),
}

/// The meter on the host, once it has shown that it runs there.
async fn usable(host: &Host, meter: &std::path::Path) -> Result<RemoteProgram, Unusable> {
    let sorted = |error: RemoteError| {
        if error.is_connection() {
            Unusable::Host(error)
        } else {
            Unusable::Meter(error.to_string())
        }
    };
    let program = host.ensure_program(meter).await.map_err(sorted)?;
    let tried = RawCommand::new([program.path.as_str(), "--version"]);
    let output = host.run(&tried, &[]).await.map_err(sorted)?;
    if output.status.success() {
        return Ok(program);
    }
    let how = match output.status {
        ExitKind::Code(code) => format!("exit code {code}"),
        ExitKind::Signal(signal) => format!("signal {signal}"),
    };
    let said: String = String::from_utf8_lossy(&output.stderr)
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect();
    Err(Unusable::Meter(format!(
        "There it ends with {how} instead of telling its version: {said}"
    )))
}
