//! Hosts that are given back by an agreed time.

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
        let mut tx = pool.begin().await?;
        let mut remark =
            "Its turn did not come before the host was to be given back, so it was never started."
                .to_owned();
        if let Some(late) = late(Timestamp(row.at), now()) {
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
            let actor = Actor {
                id: ActorId(row.actor_id),
                team: TeamId(row.team_id),
                role: Role::Operator,
            };
            let subject = format!("launch {launch}");
            audit::note_more(&mut tx, &actor, Action::GiveBack, subject, &remark).await?;
            launch_rows::announce_state(&mut tx, launch, LaunchState::Stopped).await?;
        }
        tx.commit().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
