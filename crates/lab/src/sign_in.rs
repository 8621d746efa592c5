//! The operator's password and the sessions it opens. Guessing is slow for any
//! number of servers over one database: every attempt is counted there before it
//! is looked at.

#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use argon2::{
    Argon2, PasswordHash, PasswordHasher, PasswordVerifier,
    password_hash::{self, SaltString},
};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use time::OffsetDateTime;
use tokdyno_domain::{
    access::{Actor, Capability, Role, authorise},
    ids::{ActorId, TeamId},
};
use tokio::sync::Semaphore;

use crate::{
    Lab, LabError,
    audit::{self, Action},
    clean,
};

/// How long a session lasts.
pub const SESSION: Duration = Duration::from_secs(12 * 60 * 60);
/// Shortest password, in characters.
pub const MIN_PASSWORD: usize = 10;
/// Longest password, in bytes.
pub const MAX_PASSWORD: usize = 1024;

/// For how long failures count.
const WINDOW: Duration = Duration::from_secs(15 * 60);
/// Failures from one address within that time.
const FROM_ADDRESS: i64 = 5;
/// Failures from all addresses together within that time.
const IN_ALL: i64 = 20;
/// Longest address that is kept, in characters.
const MAX_ADDRESS: usize = 100;
/// The advisory lock under which attempts are counted.
const LOCK: i64 = 0x746f_6b64_7973_6967;

/// Each hash takes 19 MiB and a processor for a moment.
static HASHING: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(2)));

/// What a browser keeps in its cookie: 32 random bytes as 64 hexadecimal digits.
/// Only its hash is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionToken(String);

impl SessionToken {
    /// The digits.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionToken(…)")
    }
}

impl Lab {
    /// Sets the operator's password. Everybody who is signed in has to do so again.
    ///
    /// # Errors
    /// [`LabError::Invalid`] for one that is too short or too long,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn set_password(&self, actor: &Actor, password: &str) -> Result<(), LabError> {
        authorise(actor, Capability::SetPassword)?;
        let length = password.chars().count();
        if length < MIN_PASSWORD {
            return Err(LabError::Invalid(format!(
                "The password has {length} characters; it needs at least {MIN_PASSWORD}, because whoever knows it starts programs on your hosts. Choose a longer one."
            )));
        }
        if password.len() > MAX_PASSWORD {
            return Err(LabError::Invalid(format!(
                "The password has {} bytes; at most {MAX_PASSWORD} are taken. Choose a shorter one.",
                password.len()
            )));
        }
        let hash = hashed(password).await?;
        let mut tx = self.0.pool.begin().await?;
        sqlx::query!(
            "INSERT INTO operator_password (hash) VALUES ($1)
             ON CONFLICT (the_only) DO UPDATE SET hash = $1, changed_at = now()",
            hash,
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!("DELETE FROM sessions")
            .execute(&mut *tx)
            .await?;
        audit::note(&mut tx, actor, Action::Password, "operator").await?;
        tx.commit().await?;
        Ok(())
    }

    /// Opens a session for whoever gives the operator's password. `address` is where
    /// the request came from.
    ///
    /// # Errors
    /// [`LabError::WrongPassword`], [`LabError::TooMany`] after 5 failures from the
    /// address or 20 in all within 15 minutes, [`LabError::Conflict`] if no password
    /// is set, [`LabError::DatabaseUnavailable`].
    pub async fn sign_in(&self, address: &str, password: &str) -> Result<SessionToken, LabError> {
        let address: String = clean::text(address).chars().take(MAX_ADDRESS).collect();
        audit::acting_from(address.clone(), self.sign_in_from(&address, password)).await
    }

    async fn sign_in_from(&self, address: &str, password: &str) -> Result<SessionToken, LabError> {
        let hash = sqlx::query_scalar!("SELECT hash FROM operator_password")
            .fetch_optional(&self.0.pool)
            .await?
            .ok_or_else(|| {
                LabError::Conflict(
                    "No operator's password is set, so nobody can sign in. Set one on the machine that runs this Tokdyno."
                        .to_owned(),
                )
            })?;
        let attempt = self.count_attempt(address).await?;
        // Longer ones were never set, and are not worth hashing.
        let fits = password.len() <= MAX_PASSWORD;
        if !(fits && matches(password, hash.clone()).await?) {
            let mut connection = self.0.pool.acquire().await?;
            refused(&mut connection, "wrong password").await?;
            return Err(LabError::WrongPassword);
        }
        self.open_session(address, attempt, &hash).await
    }

    /// Opens the session, unless the password of `verified` was changed while it was
    /// being looked at: then it ends sessions, and this one would outlive it.
    async fn open_session(
        &self,
        address: &str,
        attempt: i64,
        verified: &str,
    ) -> Result<SessionToken, LabError> {
        let token = new_token()?;
        let mut tx = self.0.pool.begin().await?;
        let still = sqlx::query_scalar!(
            "SELECT the_only FROM operator_password WHERE hash = $1 FOR SHARE",
            verified,
        )
        .fetch_optional(&mut *tx)
        .await?;
        if still.is_none() {
            refused(&mut tx, "changed password").await?;
            tx.commit().await?;
            return Err(LabError::WrongPassword);
        }
        sqlx::query!(
            "DELETE FROM sign_in_failures WHERE id = $1 OR address = $2",
            attempt,
            address,
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!("DELETE FROM sessions WHERE expires_at <= now()")
            .execute(&mut *tx)
            .await?;
        sqlx::query!(
            "INSERT INTO sessions (token_hash, team_id, actor_id, expires_at)
             VALUES ($1, $2, $3, now() + make_interval(secs => $4))",
            stored(token.reveal()),
            Actor::SIGNED_IN.team.0,
            Actor::SIGNED_IN.id.0,
            SESSION.as_secs_f64(),
        )
        .execute(&mut *tx)
        .await?;
        audit::note(&mut tx, &Actor::SIGNED_IN, Action::SignIn, "operator").await?;
        tx.commit().await?;
        Ok(token)
    }

    /// Ends a session. One that is not there is none to end.
    ///
    /// # Errors
    /// [`LabError::DatabaseUnavailable`].
    pub async fn sign_out(&self, token: &str) -> Result<(), LabError> {
        let mut tx = self.0.pool.begin().await?;
        let ended = sqlx::query!("DELETE FROM sessions WHERE token_hash = $1", stored(token))
            .execute(&mut *tx)
            .await?;
        if ended.rows_affected() > 0 {
            audit::note(&mut tx, &Actor::SIGNED_IN, Action::SignOut, "operator").await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Whose session this is; none if it has ended or never was. Looked up by the
    /// token's hash, so that the time it takes tells nothing about the token.
    ///
    /// # Errors
    /// [`LabError::DatabaseUnavailable`].
    pub async fn actor_of(&self, token: &str) -> Result<Option<Actor>, LabError> {
        let row = sqlx::query!(
            "SELECT a.id, s.team_id, a.role FROM sessions s JOIN actors a ON a.id = s.actor_id
             WHERE s.token_hash = $1 AND s.expires_at > now()",
            stored(token),
        )
        .fetch_optional(&self.0.pool)
        .await?;
        Ok(row.and_then(|row| {
            Some(Actor {
                id: ActorId(row.id),
                team: TeamId(row.team_id),
                role: Role::from_word(&row.role)?,
            })
        }))
    }

    /// Counts an attempt as failed until it turns out otherwise, so that attempts
    /// made at once cannot slip past the limits.
    async fn count_attempt(&self, address: &str) -> Result<i64, LabError> {
        let mut tx = self.0.pool.begin().await?;
        sqlx::query!("SELECT pg_advisory_xact_lock($1)", LOCK)
            .fetch_one(&mut *tx)
            .await?;
        sqlx::query!(
            "DELETE FROM sign_in_failures WHERE created_at <= now() - make_interval(secs => $1)",
            WINDOW.as_secs_f64(),
        )
        .execute(&mut *tx)
        .await?;
        // With enough failures, the wait ends when the first of the last few is old.
        let full = sqlx::query!(
            r#"SELECT
                   (SELECT created_at FROM sign_in_failures WHERE address = $1
                    ORDER BY created_at DESC OFFSET $2 LIMIT 1) AS "of_address: OffsetDateTime",
                   (SELECT created_at FROM sign_in_failures
                    ORDER BY created_at DESC OFFSET $3 LIMIT 1) AS "of_all: OffsetDateTime",
                   now() AS "now!: OffsetDateTime""#,
            address,
            FROM_ADDRESS - 1,
            IN_ALL - 1,
        )
        .fetch_one(&mut *tx)
        .await?;
        if let Some(oldest) = full.of_address.max(full.of_all) {
            let wait = oldest + WINDOW - full.now;
            let minutes = wait.whole_seconds().max(0) / 60 + 1;
            note_wait(&mut tx).await?;
            tx.commit().await?;
            return Err(LabError::TooMany(format!(
                "There were too many failed attempts to sign in. Wait {minutes} minutes, or use the machine that runs this Tokdyno."
            )));
        }
        let attempt = sqlx::query_scalar!(
            "INSERT INTO sign_in_failures (address) VALUES ($1) RETURNING id",
            address,
        )
        .fetch_one(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(attempt)
    }
}

async fn refused(connection: &mut PgConnection, why: &str) -> Result<(), LabError> {
    let actor = &Actor::NETWORK;
    audit::note_more(connection, actor, Action::SignInRefused, "operator", why).await
}

/// Notes that somebody has to wait, once a minute: whoever asks without end must not
/// fill the log.
async fn note_wait(connection: &mut PgConnection) -> Result<(), LabError> {
    const WHY: &str = "too many failures";
    let noted = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM audit_log WHERE team_id = $1
               AND action = 'sign_in_refused' AND detail = $2
               AND created_at > now() - interval '1 minute') AS "noted!""#,
        Actor::NETWORK.team.0,
        WHY,
    )
    .fetch_one(&mut *connection)
    .await?;
    if noted {
        return Ok(());
    }
    refused(connection, WHY).await
}

fn new_token() -> Result<SessionToken, LabError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| LabError::internal("drawing random numbers", error))?;
    Ok(SessionToken(hex::encode(bytes)))
}

fn stored(token: &str) -> Vec<u8> {
    Sha256::digest(token.as_bytes()).to_vec()
}

/// Argon2id with the crate's parameters, which are OWASP's, in PHC form.
async fn hashed(password: &str) -> Result<String, LabError> {
    let mut salt = [0_u8; 16];
    getrandom::fill(&mut salt)
        .map_err(|error| LabError::internal("drawing random numbers", error))?;
    let password = password.to_owned();
    aside(move || {
        let salt = SaltString::encode_b64(&salt)?;
        let hash = Argon2::default().hash_password(password.as_bytes(), &salt)?;
        Ok(hash.to_string())
    })
    .await
}

async fn matches(password: &str, hash: String) -> Result<bool, LabError> {
    let password = password.to_owned();
    aside(move || {
        let hash = PasswordHash::new(&hash)?;
        match Argon2::default().verify_password(password.as_bytes(), &hash) {
            Ok(()) => Ok(true),
            Err(password_hash::Error::Password) => Ok(false),
            Err(error) => Err(error),
        }
    })
    .await
}

/// Away from the threads that serve pages, and few at once.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> password_hash::Result<T> + Send + 'static,
) -> Result<T, LabError> {
    let doing = "working on a password";
    let permit = Arc::clone(&HASHING)
        .acquire_owned()
        .await
        .map_err(|error| LabError::internal(doing, error))?;
    // Held by the work itself, which goes on when nobody waits for it any more.
    let held = move || {
        let done = work();
        drop(permit);
        done
    };
    tokio::task::spawn_blocking(held)
        .await
        .map_err(|error| LabError::internal(doing, error))?
        .map_err(|error| LabError::internal(doing, error))
}
