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
use tokdyno_domain::{
    endpoint::EndpointUrl,
    engine::EngineKind,
    host::RunSample,
    meter::{ApiKey, Phase, Progress},
};
use tokdyno_engines::in_flight;
use tokdyno_remote::{Host, RemoteError};
use tokio::task::JoinHandle;

use super::lease::Lease;
use crate::{LabError, clean};

/// How long the engine may take to tell how many requests it works on.
const ENGINE: Duration = Duration::from_millis(800);
/// Pause before sampling is begun anew.
const AGAIN: Duration = Duration::from_secs(5);
/// Nobody has said how many requests are in flight, or no stage is being measured.
const UNKNOWN: i64 = -1;

/// An engine as asked for its requests: which, where, with which key.
pub(super) type Engine = (EngineKind, EndpointUrl, Option<ApiKey>);

/// Samples until it is dropped.
pub(super) struct Sampling {
    task: JoinHandle<()>,
    client: Arc<Client>,
}

/// What the client last said of itself; [`UNKNOWN`] where it did not.
struct Client {
    in_flight: AtomicI64,
    stage: AtomicI64,
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sampling {
    pub(super) fn begin(pool: &PgPool, lease: Lease, host: &Host, engine: Engine) -> Self {
        let client = Arc::new(Client::default());
        let sampler = Sampler {
            pool: pool.clone(),
            lease,
            host: host.clone(),
            engine,
            client: Arc::clone(&client),
        };
        Self {
            task: tokio::spawn(sampler.run()),
            client,
        }
    }

    /// The client has said how far it is.
    pub(super) fn client_at(&self, progress: &Progress) {
        let stage = match progress.phase {
            Phase::Measuring | Phase::Draining => i64::from(progress.stage),
            Phase::WarmUp => UNKNOWN,
        };
        self.client.stage.store(stage, Ordering::Relaxed);
        let in_flight = i64::from(progress.in_flight);
        self.client.in_flight.store(in_flight, Ordering::Relaxed);
    }
}

impl Default for Client {
    fn default() -> Self {
        Self {
            in_flight: AtomicI64::new(UNKNOWN),
            stage: AtomicI64::new(UNKNOWN),
        }
    }
}

fn known(value: &AtomicI64) -> Option<u32> {
    u32::try_from(value.load(Ordering::Relaxed)).ok()
}

struct Sampler {
    pool: PgPool,
    lease: Lease,
    host: Host,
    engine: Engine,
    client: Arc<Client>,
}

impl Sampler {
    async fn run(self) {
        let mut seq = 0;
        let mut said = false;
        loop {
            if let Err(error) = self.run_once(&mut seq).await {
                tracing::debug!(run = %self.lease.run, %error, "sampling a host was interrupted");
                // Once: how often it is interrupted afterwards is seen in the charts.
                if !said {
                    said = true;
                    self.say(&remark(seq, &error)).await;
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn run_once(&self, seq: &mut i64) -> Result<(), RemoteError> {
        let mut samples = self.host.sample().await?;
        loop {
            let sample = samples.next().await?;
            let (own_in_flight, stage) = (known(&self.client.in_flight), known(&self.client.stage));
            let (kind, endpoint, key) = &self.engine;
            let asked = in_flight(*kind, endpoint, key.as_ref());
            let engine_requests = match tokio::time::timeout(ENGINE, asked).await {
                Ok(Ok(count)) => count,
                _ => None,
            };
            let sample = RunSample {
                sample,
                engine_requests,
                own_in_flight,
                stage,
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

    async fn say(&self, remark: &str) {
        let stored = sqlx::query!(
            "UPDATE runs SET remarks = remarks || $4::text
             WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3",
            self.lease.run.0,
            self.lease.epoch,
            self.lease.owner,
            clean::owned(remark),
        )
        .execute(&self.pool)
        .await;
        if let Err(error) = stored {
            tracing::debug!(run = %self.lease.run, %error, "a remark was not stored");
        }
    }
}

/// What a run says of a host that could not be sampled after so many samples.
fn remark(samples: i64, error: &RemoteError) -> String {
    if samples == 0 {
        format!("The host could not be sampled from the beginning. {error}")
    } else {
        format!(
            "Sampling the host was interrupted during the run, so what the host did meanwhile has a gap. {error}"
        )
    }
}

#[cfg(test)]
mod tests {
    use sqlx::PgPool;
    use tokdyno_domain::{access::Actor, host::Reach};
    use tokdyno_remote::RemoteConfig;
    use uuid::Uuid;

    use super::*;
    use crate::testing::{self, new_run};

    #[test]
    fn a_gap_is_told_from_a_late_beginning() {
        let error = RemoteError::TimedOut {
            host: "gpu1".to_owned(),
            seconds: 5,
        };
        assert!(remark(0, &error).contains("from the beginning"));
        let gap = remark(40, &error);
        assert!(gap.contains("has a gap") && gap.contains("gpu1"), "{gap}");
    }

    #[sqlx::test(migrator = "crate::MIGRATOR")]
    async fn a_host_that_cannot_be_sampled_gives_the_run_one_remark(pool: PgPool) {
        let folder = testing::folder();
        let lab = testing::lab(&pool, &folder).await;
        let run = lab
            .queue_run(&Actor::LOCAL, &new_run("http://127.0.0.1:1"))
            .await
            .expect("queued");
        let lease = Lease {
            run,
            owner: Uuid::from_u128(1),
            epoch: 1,
        };
        sqlx::query("UPDATE runs SET lease_owner = $2, lease_epoch = 1 WHERE id = $1")
            .bind(run)
            .bind(lease.owner)
            .execute(&pool)
            .await
            .expect("stored");
        let sampler = Sampler {
            pool: pool.clone(),
            lease,
            host: Host::open(
                &RemoteConfig::new(folder.path().join("no-agent")),
                &Reach::Local,
            ),
            engine: (
                EngineKind::Other,
                "http://127.0.0.1:1".parse().expect("an address"),
                None,
            ),
            client: Arc::default(),
        };
        // Long enough for a second attempt.
        let _ = tokio::time::timeout(AGAIN + Duration::from_secs(2), sampler.run()).await;
        let remarks: Vec<String> = sqlx::query_scalar("SELECT remarks FROM runs WHERE id = $1")
            .bind(run)
            .fetch_one(&pool)
            .await
            .expect("read");
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        assert!(remarks[0].contains("from the beginning"), "{remarks:?}");
    }
}
