//! Live events: stored, announced, and heard.

use std::{sync::Weak, time::Duration};

use sqlx::{
    PgConnection, PgPool,
    postgres::{PgListener, PgNotification},
    types::Json,
};
use time::OffsetDateTime;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    ids::RunId,
    live::{LaunchEvent, LiveEvent, LiveKind},
    meter::Progress,
};
use tokio::sync::broadcast;

use crate::{Lab, LabError, lab::Inner, launching};

const CHANNEL: &str = "tokdyno_live";
/// Events that a slow page may lag behind before it is told that it missed some.
pub(crate) const BACKLOG: usize = 1024;
/// Most events that a page which comes back is told at once.
const MOST_MISSED: i64 = 1000;

impl Lab {
    /// Events of all runs from now on, for an actor who may read. Events name no
    /// team: that suffices while all actors are of one team, and must be filtered
    /// by team before there are two. After a lost database connection, events
    /// of the gap are told again; a reader who sees
    /// [`RecvError::Lagged`](broadcast::error::RecvError::Lagged) fetches afresh.
    ///
    /// # Errors
    /// [`LabError::Forbidden`].
    pub fn live(&self, actor: &Actor) -> Result<broadcast::Receiver<LiveEvent>, LabError> {
        authorise(actor, Capability::Read)?;
        Ok(self.hear())
    }

    /// The same for the laboratory itself.
    pub(crate) fn hear(&self) -> broadcast::Receiver<LiveEvent> {
        self.0.live.subscribe()
    }

    /// Kept events of a run after one that a reader has seen, and, while it runs,
    /// how far it is. With no number nothing was missed: then it is only asked
    /// whether the actor may hear of the run at all.
    ///
    /// # Errors
    /// [`LabError::NoSuchRun`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn events_after(
        &self,
        actor: &Actor,
        run: RunId,
        seq: Option<i64>,
    ) -> Result<Vec<LiveEvent>, LabError> {
        authorise(actor, Capability::Read)?;
        self.must_exist(actor, run).await?;
        let Some(seq) = seq else {
            return Ok(Vec::new());
        };
        let rows = sqlx::query!(
            r#"SELECT seq, kind AS "kind: Json<LiveKind>" FROM run_events
               WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"#,
            run.0,
            seq,
            MOST_MISSED,
        )
        .fetch_all(&self.0.pool)
        .await?;
        let mut events: Vec<LiveEvent> = rows
            .into_iter()
            .map(|row| LiveEvent {
                run,
                seq: row.seq,
                kind: row.kind.0,
            })
            .collect();
        let now = sqlx::query!(
            r#"SELECT event_seq, progress AS "progress: Json<Progress>" FROM runs
               WHERE id = $1 AND state = 'running' AND deleted_at IS NULL"#,
            run.0,
        )
        .fetch_optional(&self.0.pool)
        .await?;
        if let Some(now) = now
            && let Some(progress) = now.progress
        {
            events.push(LiveEvent {
                run,
                seq: now.event_seq,
                kind: LiveKind::Progress(progress.0),
            });
        }
        Ok(events)
    }
}

/// Gives an event the next number of its run, keeps it, and announces it when
/// the transaction is committed.
pub(crate) async fn emit(
    connection: &mut PgConnection,
    run: RunId,
    kind: LiveKind,
) -> Result<(), LabError> {
    let seq = sqlx::query_scalar!(
        "WITH next AS (
             UPDATE runs SET event_seq = event_seq + 1 WHERE id = $1
             RETURNING event_seq, team_id
         )
         INSERT INTO run_events (run_id, seq, team_id, kind)
         SELECT $1, event_seq, team_id, $2 FROM next RETURNING seq",
        run.0,
        Json(&kind) as _,
    )
    .fetch_one(&mut *connection)
    .await?;
    announce(connection, &LiveEvent { run, seq, kind }).await
}

/// Announces an event when the transaction is committed.
pub(crate) async fn announce(
    connection: &mut PgConnection,
    event: &LiveEvent,
) -> Result<(), LabError> {
    let text = serde_json::to_string(event)
        .map_err(|error| LabError::internal("writing an event", error))?;
    sqlx::query!("SELECT pg_notify($1, $2)", CHANNEL, text)
        .fetch_one(connection)
        .await?;
    Ok(())
}

/// Listens until the laboratory is gone, and connects again whenever the
/// connection is lost.
pub(crate) async fn listen(lab: Weak<Inner>) {
    let mut heard_until: Option<OffsetDateTime> = None;
    loop {
        let Some((pool, heard)) = lab.upgrade().map(|inner| {
            let heard = Heard {
                runs: inner.live.clone(),
                launches: inner.launches.clone(),
            };
            (inner.pool.clone(), heard)
        }) else {
            return;
        };
        if let Err(error) = listen_once(&pool, &heard, &mut heard_until).await {
            tracing::debug!(%error, "listening for events was interrupted");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Where what was heard is told on.
struct Heard {
    runs: broadcast::Sender<LiveEvent>,
    launches: broadcast::Sender<LaunchEvent>,
}

async fn listen_once(
    pool: &PgPool,
    heard: &Heard,
    heard_until: &mut Option<OffsetDateTime>,
) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    // A lost connection must come back here, so that what was missed is read.
    listener.eager_reconnect(false);
    listener.listen_all([CHANNEL, launching::CHANNEL]).await?;
    let now = sqlx::query_scalar!(r#"SELECT now() AS "now!""#)
        .fetch_one(pool)
        .await?;
    if let Some(since) = *heard_until {
        for event in since_then(pool, since).await? {
            // Nobody listening is no fault.
            let _ = heard.runs.send(event);
        }
    }
    *heard_until = Some(now);
    let mut clock = tokio::time::interval(Duration::from_secs(10));
    clock.tick().await;
    loop {
        tokio::select! {
            news = listener.try_recv() => match news? {
                Some(notification) => tell(heard, &notification),
                None => return Ok(()),
            },
            // Moves the mark on, so that a gap is read from shortly before it.
            _ = clock.tick() => {
                *heard_until = Some(
                    sqlx::query_scalar!(r#"SELECT now() AS "now!""#).fetch_one(pool).await?,
                );
            }
        }
    }
}

fn tell(heard: &Heard, notification: &PgNotification) {
    let text = notification.payload();
    let told = if notification.channel() == launching::CHANNEL {
        serde_json::from_str(text).map(|event| heard.launches.send(event).is_ok())
    } else {
        serde_json::from_str(text).map(|event| heard.runs.send(event).is_ok())
    };
    if let Err(error) = told {
        tracing::warn!(%error, "an announcement could not be read");
    }
}

async fn since_then(pool: &PgPool, since: OffsetDateTime) -> Result<Vec<LiveEvent>, sqlx::Error> {
    // Five seconds more: a transaction's time is that of its beginning.
    let rows = sqlx::query!(
        r#"SELECT run_id, seq, kind AS "kind: Json<LiveKind>" FROM run_events
           WHERE created_at > $1::timestamptz - interval '5 seconds'
           ORDER BY created_at, run_id, seq LIMIT $2"#,
        since,
        MOST_MISSED,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| LiveEvent {
            run: RunId(row.run_id),
            seq: row.seq,
            kind: row.kind.0,
        })
        .collect())
}
