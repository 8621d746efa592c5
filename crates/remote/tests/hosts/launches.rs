//! Launches: they outlive what started them, and end wholly.

use std::{fs, time::Duration};

use tokdyno_domain::host::ProcessIdentity;
use tokdyno_remote::{ProcessStatus, RawCommand, Signal, Spawn, Stopped, testing};

use crate::support;

const GRACE: Duration = Duration::from_millis(500);

#[tokio::test]
async fn how_a_launch_ended_is_written_down() {
    for host in support::both() {
        let ended = host.sh("code", "echo bye; exit 7").await;
        assert_eq!(
            host.over("code", &ended.identity).await,
            ProcessStatus::Exited { code: 7 }
        );
        let killed = host.sh("signal", "kill -SEGV $$").await;
        assert_eq!(
            host.over("signal", &killed.identity).await,
            ProcessStatus::Killed { signal: 11 }
        );
        assert_eq!(host.says("code", "bye").await, "bye\n");
        // A folder can be used again; what it said is added to.
        let again = host.sh("code", "exit 0").await;
        assert_eq!(
            host.over("code", &again.identity).await,
            ProcessStatus::Exited { code: 0 }
        );
        assert_ne!(again.identity, ended.identity);
        assert_eq!(
            host.host.status("code", &ended.identity).await,
            Ok(ProcessStatus::Gone)
        );
        assert_eq!(host.says("code", "bye").await, "bye\n");
    }
}

#[tokio::test]
async fn a_launch_leads_its_group_and_its_folder_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let host = support::local();
    let spawned = host.sh("own", "exec sleep 60").await;
    assert_eq!(spawned.identity.pid, spawned.identity.pgid);
    assert_eq!(
        spawned.folder_path,
        host.folder("own").display().to_string()
    );
    for (path, mode) in [
        (host.folder("own"), 0o700),
        (host.folder("own").join("log"), 0o600),
        (host.folder("own").join("process.json"), 0o600),
    ] {
        let facts = fs::metadata(&path).expect("facts");
        assert_eq!(
            facts.permissions().mode() & 0o777,
            mode,
            "{}",
            path.display()
        );
    }
    let second = Spawn {
        folder: "own".to_owned(),
        command: RawCommand::new(["true"]),
    };
    let error = host.host.spawn(&second).await.expect_err("taken");
    assert_eq!(error.word(), "still_alive");
    let error = host.host.remove("own").await.expect_err("alive");
    assert_eq!(error.word(), "still_alive");
    let stopped = host
        .host
        .stop("own", &spawned.identity, GRACE)
        .await
        .expect("stopped");
    assert_eq!(stopped, Stopped::default());
    host.host.remove("own").await.expect("removed");
    assert!(!host.folder("own").exists());
}

#[tokio::test]
async fn a_launch_outlives_its_connection() {
    let host = support::remote("/bin/bash");
    let spawned = host
        .sh("long", "trap 'echo hup' HUP; while :; do sleep 0.1; done")
        .await;
    host.sshd.as_ref().expect("an sshd").cut();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let status = host
        .host
        .status("long", &spawned.identity)
        .await
        .expect("found again");
    assert!(
        matches!(status, ProcessStatus::Running { group: 1.. }),
        "{status:?}"
    );
    let log = host
        .host
        .read("long", "log", 100)
        .await
        .expect("read")
        .expect("a log");
    assert_eq!(log, b"", "no hang-up reached it");
    let stopped = host
        .host
        .stop("long", &spawned.identity, GRACE)
        .await
        .expect("stopped");
    assert!(stopped.left.is_empty());
}

#[test]
fn a_launch_outlives_the_program_that_asked_for_it() {
    // The runtime and everything that was connected go at once, as in a crash.
    let host = support::local();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let spawned = runtime.block_on(host.sh("long", "sleep 60"));
    runtime.shutdown_background();
    assert!(support::lives(spawned.identity.pid));
    let keeper = fs::read_to_string(format!("/proc/{}/stat", spawned.identity.pid))
        .expect("it lives")
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)?.parse::<u32>().ok())
        .expect("a parent");
    assert_ne!(keeper, std::process::id());
    let next = tokio::runtime::Runtime::new().expect("a runtime");
    let stopped = next.block_on(host.host.stop("long", &spawned.identity, GRACE));
    assert!(stopped.expect("stopped").left.is_empty());
    assert!(
        next.block_on(support::gone(keeper)),
        "the keeper ends with its launch"
    );
}

#[tokio::test]
async fn a_stubborn_launch_is_killed_with_all_its_children() {
    for host in support::both() {
        // One child in the group, one that left the session and whose parent is gone.
        let script = "trap '' TERM; sleep 61 & (setsid sh -c \"trap '' TERM; echo far $$; sleep 62; sleep 62\" &) ; echo ready; while :; do sleep 0.1; done";
        let spawned = host.sh("stubborn", script).await;
        let log = host.says("stubborn", "far").await;
        assert!(log.contains("ready") && log.contains("far"), "{log}");
        let status = host
            .host
            .status("stubborn", &spawned.identity)
            .await
            .expect("a status");
        let ProcessStatus::Running { group } = status else {
            panic!("it runs: {status:?}");
        };
        assert!(group >= 4, "{group}");
        let left = host.host.leftovers("stub").await.expect("a list");
        assert_eq!(left.len(), 1);
        assert!(left[0].processes.len() >= 4);
        assert_eq!(left[0].identity, spawned.identity);
        assert_eq!(host.host.leftovers("other").await, Ok(Vec::new()));

        let stopped = host
            .host
            .stop("stubborn", &spawned.identity, GRACE)
            .await
            .expect("stopped");
        assert_eq!(
            stopped,
            Stopped {
                forced: true,
                left: Vec::new(),
                gpu_held: false
            }
        );
        for process in &left[0].processes {
            assert!(support::gone(process.pid).await, "{}", process.pid);
        }
        assert_eq!(host.host.leftovers("").await, Ok(Vec::new()));
        assert_eq!(
            host.host.status("stubborn", &spawned.identity).await,
            Ok(ProcessStatus::Killed { signal: 9 })
        );
    }
}

#[tokio::test]
async fn a_launch_that_heeds_the_request_is_not_killed() {
    let host = support::local();
    let spawned = host
        .sh(
            "kind",
            "trap 'echo draining; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
        )
        .await;
    host.says("kind", "ready").await;
    let stopped = host
        .host
        .stop("kind", &spawned.identity, Duration::from_secs(10))
        .await;
    assert_eq!(stopped, Ok(Stopped::default()));
    assert!(host.says("kind", "draining").await.contains("draining"));
    assert_eq!(
        host.over("kind", &spawned.identity).await,
        ProcessStatus::Exited { code: 0 }
    );
    let again = host.host.stop("kind", &spawned.identity, GRACE).await;
    assert_eq!(again, Ok(Stopped::default()), "stopping twice does no harm");
}

#[tokio::test]
async fn orphans_of_a_dead_leader_are_found_and_stopped_even_without_a_keeper() {
    let host = support::local();
    let spawned = host.sh("crash", "sleep 63 & echo ready; wait").await;
    host.says("crash", "ready").await;
    let all = host.host.leftovers("crash").await.expect("a list");
    let orphan = all[0]
        .processes
        .iter()
        .find(|process| process.pid != spawned.identity.pid)
        .expect("a child")
        .clone();
    let parent = |pid: u32| -> u32 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
        let (_, rest) = stat.rsplit_once(')').expect("a name");
        rest.split_ascii_whitespace()
            .nth(1)
            .and_then(|word| word.parse().ok())
            .expect("a parent")
    };
    // First the keeper, then the leader: nothing watches any more.
    let keeper = parent(spawned.identity.pid);
    testing::kill(keeper);
    assert!(support::gone(keeper).await);
    testing::kill(spawned.identity.pid);
    assert!(support::gone(spawned.identity.pid).await);
    assert_eq!(
        host.host.status("crash", &spawned.identity).await,
        Ok(ProcessStatus::Gone)
    );
    let left = host.host.leftovers("").await.expect("a list");
    assert_eq!(left[0].processes, std::slice::from_ref(&orphan));
    assert!(left[0].command.contains("sleep 63"));
    let stopped = host
        .host
        .stop("crash", &spawned.identity, GRACE)
        .await
        .expect("stopped");
    assert!(stopped.left.is_empty());
    assert!(support::gone(orphan.pid).await);
}

#[tokio::test]
async fn another_process_with_the_number_is_neither_taken_for_the_launch_nor_signalled() {
    let host = support::local();
    let spawned = host.sh("mine", "exec sleep 60").await;
    let later = ProcessIdentity {
        start_ticks: spawned.identity.start_ticks + 1,
        ..spawned.identity.clone()
    };
    assert_eq!(
        host.host.status("mine", &later).await,
        Ok(ProcessStatus::Gone)
    );
    for group in [false, true] {
        assert_eq!(
            host.host.signal(&later, Signal::Kill, group).await,
            Ok(false)
        );
    }
    let error = host
        .host
        .stop("mine", &later, GRACE)
        .await
        .expect_err("another one");
    assert_eq!(error.word(), "no_such_process");
    let before = ProcessIdentity {
        boot_id: "00000000-0000-0000-0000-000000000000".to_owned(),
        ..spawned.identity.clone()
    };
    assert_eq!(
        host.host.status("mine", &before).await,
        Ok(ProcessStatus::Rebooted)
    );
    assert_eq!(
        host.host.signal(&before, Signal::Kill, true).await,
        Ok(false)
    );
    assert_eq!(
        host.host.stop("mine", &before, GRACE).await,
        Ok(Stopped::default())
    );
    assert!(support::lives(spawned.identity.pid));
    assert_eq!(
        host.host.signal(&spawned.identity, Signal::Int, true).await,
        Ok(true)
    );
    assert_eq!(
        host.over("mine", &spawned.identity).await,
        ProcessStatus::Killed { signal: 2 }
    );
}

#[tokio::test]
async fn a_process_that_was_not_launched_from_here_is_left_alone() {
    let host = support::local();
    let mut stranger = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("starts");
    let facts = host
        .host
        .process(stranger.id(), &[])
        .await
        .expect("read")
        .expect("it lives");
    let error = host
        .host
        .stop("never", &facts.identity, GRACE)
        .await
        .expect_err("a stranger");
    assert_eq!(error.word(), "no_such_folder");
    assert!(support::lives(stranger.id()));
    assert_eq!(
        host.host.signal(&facts.identity, Signal::Term, false).await,
        Ok(true)
    );
    stranger.wait().expect("ended");
    assert_eq!(host.host.process(facts.identity.pid, &[]).await, Ok(None));
}

#[tokio::test]
async fn files_of_a_folder_are_written_whole_listed_and_read() {
    for host in support::both() {
        let content: Vec<u8> = (0..=255).cycle().take(200_000).collect();
        host.host
            .write("files", "b.bin", &content)
            .await
            .expect("written");
        host.host
            .write("files", "a.conf", b"NCCL_PROTO=LL\n")
            .await
            .expect("written");
        let listed = host.host.list("files").await.expect("a list");
        let names: Vec<(&str, u64)> = listed
            .iter()
            .map(|file| (file.name.as_str(), file.size))
            .collect();
        assert_eq!(names, [("a.conf", 14), ("b.bin", 200_000)]);
        assert!(host.host.read("files", "b.bin", 1 << 30).await == Ok(Some(content)));
        assert_eq!(
            host.host.read("files", "a.conf", 4).await,
            Ok(Some(b"NCCL".to_vec()))
        );
        assert_eq!(host.host.read("files", "none", 4).await, Ok(None));
        let path = host.folder("files").join("a.conf").display().to_string();
        assert_eq!(
            host.host.read_path(&path, 4).await,
            Ok(Some(b"NCCL".to_vec()))
        );
        assert_eq!(host.host.read_path("/no/such/file", 4).await, Ok(None));
        for (folder, file) in [
            ("../x", "log"),
            ("files", "../../x"),
            ("files", "/etc/passwd"),
            ("", "log"),
        ] {
            let error = host
                .host
                .read(folder, file, 4)
                .await
                .expect_err("a way out");
            assert_eq!(error.word(), "bad_request");
        }
        assert_eq!(
            host.host
                .read_path("etc", 4)
                .await
                .expect_err("relative")
                .word(),
            "bad_request"
        );
        assert_eq!(
            host.host
                .read_path("/dev/zero", 4)
                .await
                .expect_err("a device")
                .word(),
            "bad_request"
        );
    }
}
