//! Logs, followed while they grow.

use std::{fs, time::Duration};

use tokdyno_remote::{Follow, RemoteError, testing};
use tokio::time::timeout;

use crate::support;

async fn piece(follow: &mut Follow) -> Result<Option<Vec<u8>>, RemoteError> {
    timeout(Duration::from_secs(20), follow.next())
        .await
        .expect("in time")
}

#[tokio::test]
async fn a_growing_file_comes_as_it_grows_and_ends_when_it_is_removed() {
    for host in support::both() {
        host.host
            .write("f", "log", b"one\n")
            .await
            .expect("written");
        let mut follow = host.host.follow("f", "log", 2).await.expect("follows");
        assert_eq!(piece(&mut follow).await, Ok(Some(b"e\n".to_vec())));
        let path = host.folder("f").join("log");
        let more: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        {
            use std::io::Write;
            let mut file = fs::OpenOptions::new()
                .append(true)
                .open(&path)
                .expect("open");
            file.write_all(&more).expect("written");
        }
        let mut got = Vec::new();
        while got.len() < more.len() {
            got.extend(piece(&mut follow).await.expect("no cut").expect("no end"));
        }
        assert!(got == more);
        assert_eq!(follow.offset(), 4 + more.len() as u64);
        fs::remove_file(&path).expect("removed");
        assert_eq!(piece(&mut follow).await, Ok(None));
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_yet_is_waited_for() {
    let host = support::local();
    host.host.write("f", "other", b"").await.expect("written");
    let mut follow = host.host.follow("f", "log", 0).await.expect("follows");
    let nothing = timeout(Duration::from_millis(300), follow.next()).await;
    assert!(nothing.is_err());
    host.host.write("f", "log", b"late").await.expect("written");
    assert_eq!(piece(&mut follow).await, Ok(Some(b"late".to_vec())));
    let missing = host
        .host
        .follow("nowhere", "log", 0)
        .await
        .expect_err("no folder");
    assert_eq!(missing.word(), "no_such_folder");
}

#[tokio::test]
async fn after_a_cut_following_goes_on_without_loss_or_repetition() {
    let host = support::remote("/bin/bash");
    let script = "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); sleep 0.01; done";
    let spawned = host.sh("f", script).await;
    let mut got = Vec::new();
    let mut cuts = 0;
    let expected: String = (0..400).map(|i| format!("line {i}\n")).collect();
    let mut follow = host.host.follow("f", "log", 0).await.expect("follows");
    while got.len() < expected.len() {
        match piece(&mut follow).await {
            Ok(bytes) => got.extend(bytes.expect("no end")),
            Err(error) => {
                assert_eq!(error.word(), "cut");
                assert_eq!(follow.offset(), got.len() as u64);
                follow = host
                    .host
                    .follow("f", "log", follow.offset())
                    .await
                    .expect("again");
                continue;
            }
        }
        if cuts < 3 && got.len() > 500 * (cuts + 1) {
            cuts += 1;
            // The client's own ssh, not the server: the most abrupt end.
            for pid in testing::children(std::process::id()) {
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                if name.trim() == "ssh" {
                    testing::kill(pid);
                }
            }
        }
    }
    assert_eq!(cuts, 3);
    assert_eq!(String::from_utf8(got).expect("text"), expected);
    host.over("f", &spawned.identity).await;
}

#[tokio::test]
async fn whoever_stops_following_leaves_nothing_behind() {
    let host = support::local();
    host.host.write("f", "log", b"x").await.expect("written");
    let before = testing::children(std::process::id());
    let follow = host.host.follow("f", "log", 0).await.expect("follows");
    let agents: Vec<u32> = testing::children(std::process::id())
        .into_iter()
        .filter(|pid| !before.contains(pid))
        .collect();
    assert_eq!(agents.len(), 1);
    drop(follow);
    assert!(support::gone(agents[0]).await);
}
