use sqlx::PgPool;
use tokdyno_domain::access::Actor;

use super::{Action, acting_from, note_more};
use crate::{
    LabError,
    testing::{folder, lab, launches::host_form},
};

const ME: &Actor = &Actor::LOCAL;

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_log_says_who_did_what_from_where(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let form = host_form("box", "gpu1");
    let work = lab.add_host(&Actor::SIGNED_IN, &form);
    let host = acting_from("192.0.2.7", work).await.expect("added");
    lab.remove_host(ME, host).await.expect("removed");
    let page = lab.audit(ME, None).await.expect("read");
    let [removed, added] = &page.entries[..] else {
        panic!("two entries: {:?}", page.entries)
    };
    assert_eq!(
        (
            added.by.as_str(),
            added.origin.as_str(),
            added.action.as_str()
        ),
        ("operator with the password", "192.0.2.7", "host_add")
    );
    assert_eq!(added.link, Some(format!("/hosts/{host}")));
    assert_eq!(added.detail, "box, over SSH as gpu1");
    assert_eq!((removed.origin.as_str(), &removed.link), ("", &None));
    assert_eq!(page.before, None);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_log_is_read_page_by_page_without_gap_or_repeat(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let mut tx = pool.begin().await.expect("begun");
    for number in 0..230 {
        let detail = format!("\0{}", "x".repeat(600));
        note_more(
            &mut tx,
            ME,
            Action::Stop,
            format!("launch {number}"),
            &detail,
        )
        .await
        .expect("noted");
    }
    tx.commit().await.expect("committed");
    let mut sizes = Vec::new();
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = lab.audit(ME, before).await.expect("read");
        sizes.push(page.entries.len());
        seen.extend(page.entries.into_iter().map(|entry| entry.subject));
        before = page.before;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [100, 100, 30]);
    let expected: Vec<String> = (0..230).rev().map(|n| format!("launch {n}")).collect();
    assert_eq!(seen, expected);
    assert!(matches!(
        lab.audit(&Actor::NETWORK, None).await,
        Err(LabError::Forbidden(_))
    ));
}
