//! The host under a run, sampled each second. Nothing here makes the engine
//! generate, and no failure of it harms the run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use sqlx::PgPool;
use tokdyno_domain::{endpoint::EndpointUrl, engine::EngineKind, host::RunSample, meter::ApiKey};
use tokdyno_engines::in_flight;
use tokdyno_remote::{Host, RemoteError};
use tokio::task::JoinHandle;

use super::lease::Lease;
use crate::{LabError, clean};

/// How long the engine may take to tell how many requests it works on.
const ENGINE: Duration = Duration::from_millis(800);
/// Pause before sampling is begun anew.
const AGAIN: Duration = Duration::from_secs(5);
/// Nobody has said how many requests are in flight.
const UNKNOWN: i64 = -1;

/// An engine as asked for its requests: which, where, with which key.
pub(super) type Engine = (EngineKind, EndpointUrl, Option<ApiKey>);

/// Samples until it is dropped.
pub(super) struct Sampling {
    task: JoinHandle<()>,
    own: Arc<AtomicI64>,
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sampling {
    pub(super) fn begin(pool: &PgPool, lease: Lease, host: &Host, engine: Engine) -> Self {
        let own = Arc::new(AtomicI64::new(UNKNOWN));
        let sampler = Sampler {
            pool: pool.clone(),
            lease,
            host: host.clone(),
            engine,
            own: Arc::clone(&own),
        };
        Self {
            task: tokio::spawn(sampler.run()),
            own,
        }
    }

    /// The client has said how many of its requests are in flight.
    pub(super) fn own_in_flight(&self, count: u32) {
        self.own.store(i64::from(count), Ordering::Relaxed);
    }
}

struct Sampler {
    pool: PgPool,
    lease: Lease,
    host: Host,
    engine: Engine,
    own: Arc<AtomicI64>,
}

impl Sampler {
    async fn run(self) {
        let mut seq = 0;
        loop {
            if let Err(error) = self.run_once(&mut seq).await {
                tracing::debug!(run = %self.lease.run, %error, "sampling a host was interrupted");
                if seq == 0 {
                    self.say(&error).await;
                    seq = 1;
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn run_once(&self, seq: &mut i64) -> Result<(), RemoteError> {
        let mut samples = self.host.sample().await?;
        loop {
            let sample = samples.next().await?;
            let own = u32::try_from(self.own.load(Ordering::Relaxed)).ok();
            let (kind, endpoint, key) = &self.engine;
            let asked = in_flight(*kind, endpoint, key.as_ref());
            let engine_requests = match tokio::time::timeout(ENGINE, asked).await {
                Ok(Ok(count)) => count,
                _ => None,
            };
            let sample = RunSample {
                sample,
                engine_requests,
                own_in_flight: own,
            };
            *seq += 1;
            if let Err(error) = self.store(*seq, &sample).await {
                tracing::debug!(run = %self.lease.run, %error, "a sample was not stored");
            }
        }
    }

    async fn store(&self, seq: i64, sample: &RunSample) -> Result<(), LabError> {
        let json = serde_json::to_value(sample)
            .map_err(|error| LabError::internal("writing a sample", error))?;
        // Under the run's lease, like every write about it.
        sqlx::query!(
            "INSERT INTO host_samples (run_id, seq, sample)
             SELECT id, $4, $5 FROM runs
             WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3 AND state = 'running'
             ON CONFLICT DO NOTHING",
            self.lease.run.0,
            self.lease.epoch,
            self.lease.owner,
            seq,
            clean::json(json),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn say(&self, error: &RemoteError) {
        let remark = format!("The host could not be sampled from the beginning. {error}");
        let stored = sqlx::query!(
            "UPDATE runs SET remarks = remarks || $4::text
             WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3",
            self.lease.run.0,
            self.lease.epoch,
            self.lease.owner,
            clean::owned(&remark),
        )
        .execute(&self.pool)
        .await;
        if let Err(error) = stored {
            tracing::debug!(run = %self.lease.run, %error, "a remark was not stored");
        }
    }
}
