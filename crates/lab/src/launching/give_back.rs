//! Hosts that are given back by an agreed time.

use std::time::Duration;

use sqlx::PgPool;
use tokdyno_domain::{
    access::{Actor, Role},
    ids::{ActorId, LaunchId, TeamId},
    launch::LaunchState,
    timestamp::Timestamp,
};

use super::row::now;
use crate::{
    LabError,
    audit::{self, Action},
    launch_rows,
};

/// Less than this is no delay worth telling, in microseconds.
const LEAST: i64 = 1_000_000;
/// How often the clock is read while an agreed time is waited for.
const SLICE: Duration = Duration::from_secs(15);

/// Waits until it is that time by the clock on the wall. The clock is read again and
/// again: it may be set, and a machine that sleeps wakes later than its timers think.
pub(super) async fn wait_until(at: Timestamp, now: impl Fn() -> Timestamp) {
    loop {
        let slice = slice(at, now());
        if slice.is_zero() {
            return;
        }
        tokio::time::sleep(slice).await;
    }
}

/// How long to sleep before the clock is read again; nothing once the time has come.
fn slice(at: Timestamp, now: Timestamp) -> Duration {
    let left = u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0);
    Duration::from_micros(left).min(SLICE)
}

/// What is said of a launch that turns to ending, because its host is given back.
pub(super) fn begins(at: Timestamp, now: Timestamp) -> String {
    let agreed = at.exact();
    match late(at, now) {
        None => format!("Ended in time, because the host is given back by {agreed}."),
        Some(late) => format!(
            "Ended, because the host was to be given back by {agreed}. Ending began {late} after that, because nobody drove the launch in time."
        ),
    }
}

/// What is said once its processes have ended; none if that was in time.
pub(super) fn ended(at: Timestamp, now: Timestamp) -> Option<String> {
    Some(format!(
        "The host was free {} after the agreed time, {}.",
        late(at, now)?,
        at.exact()
    ))
}

/// How late it is, in words; none if it is not.
fn late(at: Timestamp, now: Timestamp) -> Option<String> {
    let by = now.0.saturating_sub(at.0);
    if by < LEAST {
        return None;
    }
    let seconds = by / 1_000_000;
    Some(match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    })
}

/// Ends waiting launches whose time is up before it was their turn.
pub(super) async fn end_overdue_waiting(pool: &PgPool) -> Result<(), LabError> {
    let rows = sqlx::query!(
        r#"SELECT id, team_id, actor_id, (plan ->> 'give_back_at')::bigint AS "at!",
               coalesce((plan ->> 'give_back_lead_s')::bigint, 0) AS "lead!"
           FROM launches
           WHERE state = 'queued' AND plan ->> 'give_back_at' IS NOT NULL"#
    )
    .fetch_all(pool)
    .await?;
    for row in rows {
        let launch = LaunchId(row.id);
        let begins = row.at.saturating_sub(row.lead.saturating_mul(1_000_000));
        if begins > now().0 {
            continue;
        }
        let actor = Actor {
            id: ActorId(row.actor_id),
            team: TeamId(row.team_id),
            role: Role::Operator,
        };
        match end_waiting(pool, launch, &actor, Timestamp(row.at)).await {
            Err(LabError::DatabaseUnavailable) => return Err(LabError::DatabaseUnavailable),
            // The others are ended all the same.
            Err(error) => tracing::warn!(%launch, %error, "a waiting launch cannot be ended"),
            Ok(()) => {}
        }
    }
    Ok(())
}

async fn end_waiting(
    pool: &PgPool,
    launch: LaunchId,
    actor: &Actor,
    at: Timestamp,
) -> Result<(), LabError> {
    let mut tx = pool.begin().await?;
    let mut remark =
        "Its turn did not come before the host was to be given back, so it was never started."
            .to_owned();
    if let Some(late) = late(at, now()) {
        remark.push_str(&format!(
            " That was noticed {late} after the agreed time, because nobody looked before."
        ));
    }
    let ended = sqlx::query!(
        "UPDATE launches SET state = 'stopped', ended_at = now(), waits_for = NULL,
             remarks = remarks || $2::text
         WHERE id = $1 AND state = 'queued'",
        launch.0,
        &remark,
    )
    .execute(&mut *tx)
    .await?;
    if ended.rows_affected() > 0 {
        let subject = format!("launch {launch}");
        audit::note_more(&mut tx, actor, Action::GiveBack, subject, &remark).await?;
        launch_rows::announce_state(&mut tx, launch, LaunchState::Stopped).await?;
    }
    tx.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_read_again_however_far_the_agreed_time_is() {
        let at = Timestamp(1_795_968_039_000_000);
        assert_eq!(slice(at, Timestamp(at.0 - 7 * 86_400_000_000)), SLICE);
        assert_eq!(slice(Timestamp(i64::MAX), Timestamp(i64::MIN)), SLICE);
        let soon = Duration::from_millis(2);
        assert_eq!(slice(at, Timestamp(at.0 - 2_000)), soon);
        assert_eq!(slice(at, at), Duration::ZERO);
        assert_eq!(slice(at, Timestamp(i64::MAX)), Duration::ZERO);
    }

    #[tokio::test]
    async fn waiting_follows_a_clock_that_is_set() {
        let at = Timestamp(1_000_000);
        let reads = std::cell::Cell::new(0_i64);
        // 20 ms before, 10 ms before, then set an hour ahead.
        let clock = || {
            reads.set(reads.get() + 1);
            match reads.get() {
                1 => Timestamp(at.0 - 20_000),
                2 => Timestamp(at.0 - 10_000),
                _ => Timestamp(at.0 + 3_600_000_000),
            }
        };
        tokio::time::timeout(Duration::from_secs(10), wait_until(at, clock))
            .await
            .expect("the time has come");
        assert_eq!(reads.get(), 3);
    }

    #[test]
    fn lateness_is_told_and_only_where_it_was_late() {
        let at = Timestamp(1_795_968_039_000_000);
        let after = |seconds: i64| Timestamp(at.0 + seconds * 1_000_000);
        for (seconds, said) in [
            (45, "45 s after"),
            (600, "10 min after"),
            (10_800, "3 h after"),
        ] {
            let begins = begins(at, after(seconds));
            assert!(
                begins.contains(said) && !begins.contains("in time,"),
                "{begins}"
            );
            let ended = ended(at, after(seconds)).expect("late");
            assert!(ended.contains(said), "{ended}");
        }
        assert!(begins(at, after(-1)).starts_with("Ended in time"));
        assert_eq!(ended(at, after(-1)), None);
        assert_eq!(ended(at, at), None);
    }
}
