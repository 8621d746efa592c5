//! Whose turn it is: one owner per set of GPUs, in the order of asking. What is to
//! be restored goes first, since somebody relies on it.

use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use tokdyno_domain::{
    ids::{HostId, LaunchId},
    launch::LaunchState,
    timestamp::Timestamp,
};
use uuid::Uuid;

use super::lease::LaunchLease;
use crate::{LabError, launch_rows, worker::lease::LEASE};

/// How long deciding about one host may take.
const TURN: Duration = Duration::from_secs(20);

/// A launch as far as its turn depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    id: LaunchId,
    state: LaunchState,
    /// None means all of the host's.
    gpus: Option<Vec<u32>>,
    /// It brings back what stood there before.
    restored: bool,
    /// The adopted launch that it is, or brings back.
    root: LaunchId,
    /// The adopted launch that this one puts aside for its time.
    puts_aside: Option<LaunchId>,
    /// For people: profile, who, since and until when.
    profile: String,
    by: String,
    since: Timestamp,
    until: Option<Timestamp>,
}

/// What becomes of a waiting launch now.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Turn {
    Go,
    Wait(String),
}

/// Claims every launch whose turn it is, and tells the others what they wait for.
/// Trouble with one host leaves the others their turn, and what was claimed is in
/// `claimed` however it ends.
///
/// # Errors
/// [`LabError::DatabaseUnavailable`].
pub(super) async fn claim(
    pool: &PgPool,
    owner: Uuid,
    claimed: &mut Vec<LaunchLease>,
) -> Result<(), LabError> {
    let hosts = sqlx::query_scalar!(
        "SELECT DISTINCT host_id FROM launches WHERE state = 'queued' ORDER BY host_id"
    )
    .fetch_all(pool)
    .await?;
    let (mut slow, mut outage) = (0, false);
    for host in hosts {
        match tokio::time::timeout(TURN, claim_on(pool, owner, HostId(host))).await {
            Ok(Ok(mut here)) => claimed.append(&mut here),
            Ok(Err(LabError::DatabaseUnavailable)) => outage = true,
            Ok(Err(error)) => {
                tracing::warn!(host, %error, "the queue of a host cannot be moved on");
            }
            Err(_) => {
                slow += 1;
                tracing::warn!(host, "the queue of a host is held by somebody");
            }
        }
        // One may be a row that somebody holds; two are the database.
        if slow > 1 {
            return Err(LabError::DatabaseUnavailable);
        }
    }
    if outage {
        return Err(LabError::DatabaseUnavailable);
    }
    Ok(())
}

async fn claim_on(pool: &PgPool, owner: Uuid, host: HostId) -> Result<Vec<LaunchLease>, LabError> {
    let mut tx = pool.begin().await?;
    // Workers decide about a host one after another.
    let locked = sqlx::query_scalar!(
        "SELECT id FROM hosts WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED",
        host.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    if locked.is_none() {
        return Ok(Vec::new());
    }
    let entries = entries(&mut tx, host).await?;
    let mut claimed = Vec::new();
    for (launch, turn) in turns(&entries) {
        match turn {
            Turn::Go => {
                let epoch = sqlx::query_scalar!(
                    "UPDATE launches SET state = 'starting', lease_owner = $2,
                         lease_epoch = lease_epoch + 1, waits_for = NULL,
                         lease_expires_at = now() + $3::float8 * interval '1 second'
                     WHERE id = $1 AND state = 'queued' RETURNING lease_epoch",
                    launch.0,
                    owner,
                    LEASE.as_secs_f64(),
                )
                .fetch_optional(&mut *tx)
                .await?;
                // Stopped by somebody meanwhile.
                let Some(epoch) = epoch else { continue };
                claimed.push(LaunchLease {
                    launch,
                    owner,
                    epoch,
                });
                launch_rows::announce_state(&mut tx, launch, LaunchState::Starting).await?;
            }
            Turn::Wait(sentence) => {
                let changed = sqlx::query!(
                    "UPDATE launches SET waits_for = $2
                     WHERE id = $1 AND state = 'queued' AND waits_for IS DISTINCT FROM $2",
                    launch.0,
                    sentence,
                )
                .execute(&mut *tx)
                .await?;
                if changed.rows_affected() > 0 {
                    launch_rows::announce_state(&mut tx, launch, LaunchState::Queued).await?;
                }
            }
        }
    }
    tx.commit().await?;
    Ok(claimed)
}

async fn entries(connection: &mut PgConnection, host: HostId) -> Result<Vec<Entry>, LabError> {
    let rows = sqlx::query!(
        r#"SELECT l.id, l.state, l.gpus, l.origin = 'restored' AS "restored!",
               coalesce(l.restores_id, l.id) AS "root!",
               coalesce(aside.restores_id, aside.id) AS "puts_aside?",
               p.name AS profile, a.name AS by,
               coalesce(l.started_at, l.created_at) AS "since!: OffsetDateTime",
               (l.plan ->> 'give_back_at')::bigint AS until
           FROM launches l
           JOIN profile_revisions r ON r.id = l.revision_id
           JOIN profiles p ON p.id = r.profile_id
           JOIN actors a ON a.id = l.actor_id
           LEFT JOIN launches aside ON aside.id = (l.plan ->> 'restore')::bigint
           WHERE l.host_id = $1
             AND l.state IN ('queued', 'starting', 'loading', 'ready', 'stopping')
           ORDER BY l.id"#,
        host.0,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Entry {
                id: LaunchId(row.id),
                state: launch_rows::state_of(&row.state)?,
                gpus: row.gpus.map(launch_rows::read_gpus),
                restored: row.restored,
                root: LaunchId(row.root),
                puts_aside: row.puts_aside.map(LaunchId),
                profile: row.profile,
                by: row.by,
                since: Timestamp::from_datetime(row.since),
                until: row.until.map(Timestamp),
            })
        })
        .collect()
}

/// What becomes of each waiting launch of one host.
fn turns(entries: &[Entry]) -> Vec<(LaunchId, Turn)> {
    let mut waiting: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.state == LaunchState::Queued)
        .collect();
    waiting.sort_by_key(|entry| (!entry.restored, entry.id));
    // Those who own GPUs, and those who are before in the queue.
    let mut before: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.state.holds_gpus())
        .collect();
    let mut turns = Vec::new();
    for entry in waiting {
        let in_the_way = before
            .iter()
            .find(|other| overlap(entry, other) && !gives_way(other, entry));
        let turn = in_the_way.map_or(Turn::Go, |other| Turn::Wait(other.sentence()));
        turns.push((entry.id, turn));
        before.push(entry);
    }
    turns
}

fn overlap(one: &Entry, other: &Entry) -> bool {
    match (&one.gpus, &other.gpus) {
        (Some(one), Some(other)) => one.iter().any(|gpu| other.contains(gpu)),
        _ => true,
    }
}

/// Is this what the launch was asked to put aside? Only once it is ready, so that it
/// is known to work when it is brought back.
fn gives_way(other: &Entry, entry: &Entry) -> bool {
    entry.puts_aside == Some(other.root)
        && matches!(other.state, LaunchState::Ready | LaunchState::Stopping)
}

impl Entry {
    /// `launch 7 (vllm-prod, by local operator, since 2026-11-29 12:03 UTC)`.
    fn sentence(&self) -> String {
        let since = if self.state == LaunchState::Queued {
            ", waiting itself".to_owned()
        } else {
            format!(", since {}", self.since.exact())
        };
        let until = self
            .until
            .map(|until| format!(", until {}", until.exact()))
            .unwrap_or_default();
        format!(
            "launch {} ({}, by {}{since}{until})",
            self.id, self.profile, self.by
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: i64, state: LaunchState, gpus: Option<&[u32]>) -> Entry {
        Entry {
            id: LaunchId(id),
            state,
            gpus: gpus.map(<[u32]>::to_vec),
            restored: false,
            root: LaunchId(id),
            puts_aside: None,
            profile: "vllm-prod".to_owned(),
            by: "local operator".to_owned(),
            since: Timestamp(1_795_968_039_000_000),
            until: None,
        }
    }

    fn go(entries: &[Entry]) -> Vec<i64> {
        turns(entries)
            .into_iter()
            .filter(|(_, turn)| *turn == Turn::Go)
            .map(|(id, _)| id.0)
            .collect()
    }

    #[test]
    fn gpus_have_one_owner_and_others_are_told_who() {
        let mut owner = entry(7, LaunchState::Ready, Some(&[0, 1]));
        owner.until = Some(Timestamp(1_795_975_200_000_000));
        let entries = [
            owner,
            entry(8, LaunchState::Queued, Some(&[1, 2])),
            entry(9, LaunchState::Queued, Some(&[3])),
            entry(10, LaunchState::Queued, None),
        ];
        assert_eq!(go(&entries), [9]);
        let told = turns(&entries);
        assert_eq!(
            told[0].1,
            Turn::Wait(
                "launch 7 (vllm-prod, by local operator, since 2026-11-29 16:00 UTC, until 2026-11-29 18:00 UTC)"
                    .to_owned()
            )
        );
    }

    #[test]
    fn nobody_overtakes_on_the_same_gpus() {
        let entries = [
            entry(7, LaunchState::Loading, Some(&[0])),
            entry(8, LaunchState::Queued, None),
            entry(9, LaunchState::Queued, Some(&[5])),
        ];
        assert!(go(&entries).is_empty(), "9 waits for 8, which waits for 7");
        let free = [
            entry(8, LaunchState::Queued, None),
            entry(9, LaunchState::Queued, Some(&[5])),
        ];
        assert_eq!(go(&free), [8]);
    }

    #[test]
    fn what_is_put_aside_gives_way_once_it_is_ready_also_when_it_was_restored_before() {
        let mut production = entry(7, LaunchState::Ready, None);
        production.root = LaunchId(3);
        let mut trial = entry(8, LaunchState::Queued, None);
        trial.puts_aside = Some(LaunchId(3));
        assert_eq!(go(&[production.clone(), trial.clone()]), [8]);
        production.state = LaunchState::Loading;
        assert!(go(&[production.clone(), trial.clone()]).is_empty());
        production.state = LaunchState::Ready;
        trial.puts_aside = Some(LaunchId(4));
        assert!(go(&[production, trial]).is_empty());
    }

    #[test]
    fn what_is_restored_goes_first() {
        let mut restored = entry(9, LaunchState::Queued, None);
        restored.restored = true;
        let entries = [entry(8, LaunchState::Queued, None), restored];
        assert_eq!(go(&entries), [9]);
    }
}
