use sqlx::PgPool;
use tokdyno_domain::{access::Actor, ids::LaunchId, launch::LaunchState};

use crate::{
    Lab, LabError,
    testing::{
        folder, lab,
        launches::{bring_to, queued},
    },
};

const ME: &Actor = &Actor::LOCAL;

/// Keeps pieces one after another, as the worker does.
async fn keep(pool: &PgPool, launch: LaunchId, pieces: &[&[u8]]) {
    for piece in pieces {
        sqlx::query(
            "WITH at AS (SELECT log_size FROM launches WHERE id = $1),
                  kept AS (INSERT INTO launch_log (launch_id, start, bytes)
                      SELECT $1, log_size, $2 FROM at)
             UPDATE launches SET log_size = log_size + octet_length($2) WHERE id = $1",
        )
        .bind(launch)
        .bind(*piece)
        .execute(pool)
        .await
        .expect("kept");
    }
}

async fn whole(lab: &Lab, launch: LaunchId) -> Vec<u8> {
    let mut file = lab.launch_log_file(ME, launch).await.expect("a file");
    let mut bytes = Vec::new();
    while let Some(piece) = file.next().await.expect("read") {
        bytes.extend(piece);
    }
    bytes
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn pages_of_any_size_join_to_the_whole_log(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (_, _, launch) = queued(&lab).await;
    let text = "Loading weights … 10 %\r… 20 %\n😀 fertig: größer\n".repeat(3);
    // Cut wherever a character may be cut.
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(7).collect();
    keep(&pool, launch, &pieces).await;
    for most in [4_u64, 5, 7, 16, 1000] {
        let (mut start, mut joined) = (0, String::new());
        loop {
            let page = lab.launch_log(ME, launch, start, most, "").await;
            let page = page.expect("a page");
            assert_eq!(page.start, start);
            assert_eq!(page.size, text.len() as u64);
            assert_eq!(page.next - page.start, page.text.len() as u64);
            assert!(page.next - page.start <= most && page.found.is_empty());
            if page.next == start {
                break;
            }
            start = page.next;
            joined += &page.text;
        }
        assert_eq!(joined, text, "{most} bytes a page");
    }
    assert_eq!(whole(&lab, launch).await, text.as_bytes());
    // Exactly what lies between two marks, and no standing still within a character.
    let page = lab.launch_log(ME, launch, 1, 3, "").await.expect("a page");
    assert_eq!((page.text.as_str(), page.next), ("oad", 4));
    let inside = lab.launch_log(ME, launch, 16, 1, "").await.expect("a page");
    assert_eq!((inside.text.as_str(), inside.next), ("\u{fffd}", 17));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn half_a_character_is_waited_for_while_the_log_may_grow(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (_, _, launch) = queued(&lab).await;
    bring_to(&pool, launch, LaunchState::Loading).await;
    keep(&pool, launch, &[b"50 \xe2\x82"]).await;
    let page = lab
        .launch_log(ME, launch, 0, 100, "")
        .await
        .expect("a page");
    assert_eq!((page.text.as_str(), page.next, page.size), ("50 ", 3, 5));
    keep(&pool, launch, &[b"\xac\n\xff\xfe bytes that are no text\n"]).await;
    let page = lab
        .launch_log(ME, launch, page.next, 100, "")
        .await
        .expect("a page");
    assert_eq!(page.text, "€\n\u{fffd}\u{fffd} bytes that are no text\n");
    // What never comes is shown as what it is.
    keep(&pool, launch, &[b"\xe2\x82"]).await;
    bring_to(&pool, launch, LaunchState::Failed).await;
    let page = lab
        .launch_log(ME, launch, page.next, 100, "")
        .await
        .expect("a page");
    assert_eq!((page.text.as_str(), page.next), ("\u{fffd}", page.size));
    let beyond = lab.launch_log(ME, launch, u64::MAX, u64::MAX, "").await;
    assert_eq!(beyond.expect("a page").text, "");
    assert!(whole(&lab, launch).await.ends_with(b"\n\xe2\x82"));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_search_gives_lines_with_the_byte_at_which_each_begins(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (_, _, launch) = queued(&lab).await;
    keep(
        &pool,
        launch,
        &[b"one ERR", b"OR\ntwo\nthree er", b"ror 100%_\n"],
    )
    .await;
    let find = async |text: &str| {
        lab.launch_log(ME, launch, 0, 4, text)
            .await
            .expect("a page")
            .found
    };
    assert_eq!(
        find(" error ").await,
        [
            (0, "one ERROR".to_owned()),
            (14, "three error 100%_".to_owned())
        ]
    );
    assert_eq!(find("100%_").await.len(), 1, "no pattern of SQL");
    assert_eq!(find("x_").await, []);
    assert_eq!(find("\0").await, []);
    let many = "error\n".repeat(500);
    keep(&pool, launch, &[many.as_bytes()]).await;
    assert_eq!(find("error").await.len(), 200);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_log_that_is_long_is_downloaded_piece_by_piece(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (_, _, launch) = queued(&lab).await;
    assert_eq!(whole(&lab, launch).await, b"");
    let pieces: Vec<Vec<u8>> = (0..70_u8).map(|n| vec![n; 1 + usize::from(n)]).collect();
    let slices: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    keep(&pool, launch, &slices).await;
    assert_eq!(whole(&lab, launch).await, pieces.concat());
    let page = lab
        .launch_log(ME, launch, 0, u64::MAX, "")
        .await
        .expect("a page");
    assert_eq!(page.next, page.size);

    let nobody = LaunchId(404);
    let unknown = lab.launch_log(ME, nobody, 0, 9, "").await;
    assert_eq!(unknown.expect_err("none").status(), 404);
    let unknown = lab.launch_log_file(ME, nobody).await.map(drop);
    assert_eq!(unknown.expect_err("none").status(), 404);
    for refused in [
        lab.launch_log(&Actor::GUEST, launch, 0, 9, "")
            .await
            .map(drop),
        lab.launch_log_file(&Actor::GUEST, launch).await.map(drop),
    ] {
        assert!(matches!(refused, Err(LabError::Forbidden(_))));
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_log_is_read_by_those_who_launch(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (_, _, launch) = queued(&lab).await;
    let stranger = &Actor::NETWORK;
    let page = lab.launch_log(stranger, launch, 0, 100, "").await;
    assert!(matches!(page, Err(LabError::Forbidden(_))), "{page:?}");
    let file = lab.launch_log_file(stranger, launch).await;
    assert!(matches!(file, Err(LabError::Forbidden(_))));
    lab.launch_log(&Actor::SIGNED_IN, launch, 0, 100, "")
        .await
        .expect("a page");
}
