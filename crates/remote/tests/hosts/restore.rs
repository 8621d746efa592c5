//! Servers that were found running, kept, and started again.

use std::{fs, os::unix::process::CommandExt, process::Stdio, time::Duration};

use tokdyno_remote::{ProcessStatus, Signal};

use crate::support;

#[tokio::test]
async fn a_found_server_is_started_again_with_all_it_had() {
    for host in support::both() {
        let place = host.home.join("a place");
        fs::create_dir(&place).expect("made");
        // It tells all it has as soon as it starts, and then waits.
        let script = "cat /proc/self/environ; pwd; echo \"$@\"; sleep 60";
        let mut server = std::process::Command::new("/bin/sh")
            .args(["-c", script, "server", "--api-key", "s3cr3tkey", "it's $x"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HF_TOKEN", "hf_0123456789abcdef")
            .env("NCCL_PROTO", "LL")
            .env("EMPTY", "")
            .current_dir(&place)
            .process_group(0)
            .stdout(Stdio::null())
            .spawn()
            .expect("starts");
        let facts = host
            .host
            .keep_process("kept", server.id())
            .await
            .expect("kept");
        let text = format!("{facts:?}");
        assert!(
            !text.contains("s3cr3tkey") && !text.contains("hf_0123"),
            "{text}"
        );
        assert_eq!(facts.directory, Some(place.display().to_string()));
        assert!(facts.environment.is_some_and(|variables| {
            variables.contains(&("NCCL_PROTO".to_owned(), "LL".to_owned()))
        }));
        assert!(facts.withheld.contains(&"HF_TOKEN".to_owned()));

        assert_eq!(
            host.host.signal(&facts.identity, Signal::Kill, true).await,
            Ok(true)
        );
        server.wait().expect("ended");

        let again = host
            .host
            .respawn_kept("again", "kept")
            .await
            .expect("starts");
        let log = host.says("again", "it's $x").await;
        for part in [
            "HF_TOKEN=hf_0123456789abcdef\0",
            "NCCL_PROTO=LL\0",
            "EMPTY=\0",
            "a place",
            "--api-key s3cr3tkey it's $x",
        ] {
            assert!(log.contains(part), "{part} in {log:?}");
        }
        assert!(
            !log.contains("SSH_CONNECTION="),
            "nothing of the connection is added"
        );
        let stopped = host
            .host
            .stop("again", &again.identity, Duration::from_secs(1))
            .await;
        assert!(stopped.expect("stopped").left.is_empty());
        assert!(matches!(
            host.over("again", &again.identity).await,
            ProcessStatus::Killed { .. }
        ));
    }
}

#[tokio::test]
async fn what_is_kept_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let host = support::local();
    let spawned = host.sh("server", "exec sleep 60").await;
    host.host
        .keep_process("kept", spawned.identity.pid)
        .await
        .expect("kept");
    let mode = fs::metadata(host.folder("kept").join("kept"))
        .expect("facts")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    host.host
        .stop("server", &spawned.identity, Duration::from_secs(1))
        .await
        .expect("stopped");
    let error = host
        .host
        .keep_process("kept", spawned.identity.pid)
        .await
        .expect_err("gone");
    assert_eq!(error.word(), "no_such_process");
    let error = host
        .host
        .respawn_kept("again", "nothing")
        .await
        .expect_err("nothing kept");
    assert_eq!(error.word(), "no_such_folder");
}
