use sqlx::PgPool;
use tokdyno_domain::access::Actor;

use super::{HASHING, MAX_PASSWORD, MIN_PASSWORD, aside};
use crate::{
    Lab, LabError,
    testing::{folder, lab},
};

const ME: &Actor = &Actor::LOCAL;
const RIGHT: &str = "correct horse battery";

async fn acts(lab: &Lab) -> Vec<String> {
    let page = lab.audit(ME, None).await.expect("read");
    page.entries
        .into_iter()
        .rev()
        .map(|entry| format!("{} from {}: {}", entry.action, entry.origin, entry.detail))
        .collect()
}

async fn failures(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM sign_in_failures")
        .fetch_one(pool)
        .await
        .expect("read")
}

async fn age_failures(pool: &PgPool) {
    sqlx::query("UPDATE sign_in_failures SET created_at = now() - interval '16 minutes'")
        .execute(pool)
        .await
        .expect("written");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_password_opens_a_session_that_can_be_ended(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let early = lab.sign_in("10.0.0.1", RIGHT).await.expect_err("a refusal");
    assert_eq!(early.status(), 409, "{early}");
    assert!(!lab.me(ME).await.expect("read").password_set);

    lab.set_password(ME, RIGHT).await.expect("set");
    let token = lab.sign_in("10.0.0.1", RIGHT).await.expect("signed in");
    assert_eq!(token.reveal().len(), 64);
    assert!(!format!("{token:?}").contains(&token.reveal()[..8]));
    let who = lab.actor_of(token.reveal()).await.expect("asked");
    assert_eq!(who, Some(Actor::SIGNED_IN));
    let me = lab.me(&Actor::SIGNED_IN).await.expect("read");
    assert!(me.signed_in && me.may_operate && me.password_set);
    let me = lab.me(&Actor::NETWORK).await.expect("read");
    assert!(!me.signed_in && !me.may_operate && me.password_set);

    lab.sign_out(token.reveal()).await.expect("signed out");
    lab.sign_out(token.reveal()).await.expect("nothing to end");
    assert_eq!(lab.actor_of(token.reveal()).await.expect("asked"), None);
    assert_eq!(lab.actor_of("").await.expect("asked"), None);
    let acts = acts(&lab).await;
    assert_eq!(
        acts,
        [
            "password from : ",
            "sign_in from 10.0.0.1: ",
            "sign_out from : "
        ]
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn neither_password_nor_token_is_kept(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    lab.set_password(ME, RIGHT).await.expect("set");
    let token = lab.sign_in("10.0.0.1", RIGHT).await.expect("signed in");
    lab.sign_in("10.0.0.2", "wrong but long")
        .await
        .expect_err("a refusal");
    let rows: Vec<String> = sqlx::query_scalar(
        "SELECT row_to_json(t)::text FROM operator_password t
         UNION ALL SELECT row_to_json(t)::text FROM sessions t
         UNION ALL SELECT row_to_json(t)::text FROM sign_in_failures t
         UNION ALL SELECT row_to_json(t)::text FROM audit_log t",
    )
    .fetch_all(&pool)
    .await
    .expect("read");
    assert!(
        rows[0].contains("$argon2id$v=19$m=19456,t=2,p=1$"),
        "{}",
        rows[0]
    );
    for secret in [RIGHT, "wrong but long", token.reveal()] {
        assert!(!rows.iter().any(|row| row.contains(secret)));
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_session_ends_by_itself_and_with_the_password(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    lab.set_password(ME, RIGHT).await.expect("set");
    let lapsed = lab.sign_in("10.0.0.1", RIGHT).await.expect("signed in");
    let left: f64 = sqlx::query_scalar(
        "SELECT extract(epoch FROM expires_at - now())::float8 / 3600 FROM sessions",
    )
    .fetch_one(&pool)
    .await
    .expect("read");
    assert!((left - 12.0).abs() < 0.1, "{left}");
    sqlx::query("UPDATE sessions SET expires_at = now() - interval '1 second'")
        .execute(&pool)
        .await
        .expect("written");
    assert_eq!(lab.actor_of(lapsed.reveal()).await.expect("asked"), None);

    let token = lab.sign_in("10.0.0.1", RIGHT).await.expect("signed in");
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM sessions")
        .fetch_one(&pool)
        .await
        .expect("read");
    assert_eq!(kept, 1, "ended sessions are cleared away");
    lab.set_password(&Actor::SIGNED_IN, "another long password")
        .await
        .expect("set");
    assert_eq!(lab.actor_of(token.reveal()).await.expect("asked"), None);
    let old = lab.sign_in("10.0.0.1", RIGHT).await.expect_err("changed");
    assert_eq!(old.status(), 401);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_password_that_is_none_says_why(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let short = "ä".repeat(MIN_PASSWORD - 1);
    let long = "x".repeat(MAX_PASSWORD + 1);
    for (password, word) in [(short, "9 characters"), (long, "1025 bytes")] {
        let error = lab
            .set_password(ME, &password)
            .await
            .expect_err("a refusal");
        assert_eq!(error.status(), 422);
        let said = error.to_string();
        assert!(said.contains(word) && !said.contains(&password), "{said}");
    }
    let refused = lab.set_password(&Actor::NETWORK, RIGHT).await;
    assert!(matches!(refused, Err(LabError::Forbidden(_))));
    lab.set_password(ME, &"x".repeat(MAX_PASSWORD))
        .await
        .expect("set");
    let too_long = lab.sign_in("a", &"x".repeat(MAX_PASSWORD + 1)).await;
    assert_eq!(too_long.expect_err("a refusal").status(), 401);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn five_failures_from_an_address_make_it_wait_and_nobody_else(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    lab.set_password(ME, RIGHT).await.expect("set");
    // At once: none slips past while another is being looked at.
    let guesses = (0..8).map(|_| {
        let lab = lab.clone();
        tokio::spawn(async move { lab.sign_in("10.0.0.1", "wrong password").await })
    });
    let mut statuses = Vec::new();
    for guess in guesses.collect::<Vec<_>>() {
        let refused = guess.await.expect("asked").expect_err("a refusal");
        statuses.push(refused.status());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429, 429, 429]);

    let right = lab.sign_in("10.0.0.1", RIGHT).await.expect_err("waits");
    assert_eq!(right.status(), 429);
    assert!(right.to_string().contains("Wait 15 minutes"), "{right}");
    lab.sign_in("10.0.0.2", RIGHT).await.expect("signed in");
    let refusals = acts(&lab)
        .await
        .iter()
        .filter(|act| act.starts_with("sign_in_refused from 10.0.0.1"))
        .count();
    assert_eq!(refusals, 6, "five failures, and once that it has to wait");

    age_failures(&pool).await;
    lab.sign_in("10.0.0.1", RIGHT).await.expect("signed in");
    assert_eq!(failures(&pool).await, 0);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn twenty_failures_in_all_make_everybody_wait(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    lab.set_password(ME, RIGHT).await.expect("set");
    sqlx::query(
        "INSERT INTO sign_in_failures (address, created_at)
         SELECT 'address ' || n, now() - n * interval '20 seconds' FROM generate_series(1, 19) n",
    )
    .execute(&pool)
    .await
    .expect("written");
    let last = lab.sign_in("new", "wrong password").await;
    assert_eq!(last.expect_err("a refusal").status(), 401);
    let full = lab.sign_in("newer", RIGHT).await.expect_err("waits");
    assert_eq!(full.status(), 429);
    // The oldest of the twenty is 380 s old.
    assert!(full.to_string().contains("Wait 9 minutes"), "{full}");
    age_failures(&pool).await;
    lab.sign_in("newer", RIGHT).await.expect("signed in");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_success_forgets_the_failures_of_its_address(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    lab.set_password(ME, RIGHT).await.expect("set");
    let address = "x\0".repeat(200);
    for _ in 0..4 {
        let wrong = lab.sign_in(&address, "wrong password").await;
        assert!(matches!(wrong, Err(LabError::WrongPassword)));
    }
    lab.sign_in("elsewhere", "wrong password")
        .await
        .expect_err("a refusal");
    lab.sign_in(&address, RIGHT).await.expect("signed in");
    assert_eq!(failures(&pool).await, 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn no_session_is_opened_by_a_password_that_was_changed_meanwhile(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    lab.set_password(ME, RIGHT).await.expect("set");
    let verified: String = sqlx::query_scalar("SELECT hash FROM operator_password")
        .fetch_one(&pool)
        .await
        .expect("read");
    let attempt = lab.count_attempt("10.0.0.1").await.expect("counted");
    lab.set_password(ME, "another long password")
        .await
        .expect("set");
    let late = lab.open_session("10.0.0.1", attempt, &verified).await;
    assert!(matches!(late, Err(LabError::WrongPassword)), "{late:?}");
    let sessions: i64 = sqlx::query_scalar("SELECT count(*) FROM sessions")
        .fetch_one(&pool)
        .await
        .expect("read");
    assert_eq!((sessions, failures(&pool).await), (0, 1));
    let told = acts(&lab).await;
    assert_eq!(
        told.last().expect("some"),
        "sign_in_refused from : changed password"
    );
}

#[tokio::test]
async fn hashing_that_nobody_waits_for_any_more_still_counts_while_it_lasts() {
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let (began, begun) = tokio::sync::oneshot::channel();
    let before = HASHING.available_permits();
    let asked = tokio::spawn(aside(move || {
        let _ = began.send(());
        let _ = wait.recv();
        Ok(())
    }));
    begun.await.expect("begun");
    asked.abort();
    assert!(asked.await.expect_err("left").is_cancelled());
    assert_eq!(HASHING.available_permits(), before - 1);
    go_on.send(()).expect("it waits");
    crate::testing::wait_until("it is done", async || HASHING.available_permits() == before).await;
}
