//! Reaching a host, and every way in which it fails.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use tokdyno_domain::host::Reach;
use tokdyno_remote::{
    FailureWord, Host, RawCommand, RemoteConfig, RemoteError, testing, testing::TestSshd,
};
use tokio::process::Command;

use crate::support::{self, TestHost, agent};

async fn refused(host: &TestHost) -> RemoteError {
    let error = host.host.check().await.expect_err("refused");
    let sentence = error.to_string();
    assert!(sentence.ends_with('.') && sentence.len() > 40, "{sentence}");
    error
}

#[tokio::test]
async fn the_agent_is_copied_once_and_then_used() {
    let host = support::remote("/bin/bash");
    let first = host.host.check().await.expect("reached");
    assert!(first.uploaded);
    assert_eq!(first.arch, std::env::consts::ARCH);
    assert!(first.round_trip > Duration::ZERO && first.round_trip < Duration::from_secs(5));
    let second = host.host.check().await.expect("reached");
    assert!(!second.uploaded);
    assert_eq!((second.hostname, second.user), (first.hostname, first.user));
    let stored: Vec<_> = fs::read_dir(host.sshd.as_ref().expect("an sshd").cache())
        .expect("a cache")
        .flatten()
        .collect();
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(
        stored[0].metadata().expect("facts").permissions().mode() & 0o777,
        0o700
    );
}

#[tokio::test]
async fn orders_given_at_once_copy_the_agent_once_and_all_succeed() {
    let host = support::remote("/bin/dash");
    let checks = (0..6).map(|_| {
        let host = host.host.clone();
        tokio::spawn(async move { host.check().await })
    });
    let mut copied = 0;
    for check in checks.collect::<Vec<_>>() {
        copied += usize::from(check.await.expect("joined").expect("reached").uploaded);
    }
    assert_eq!(copied, 1);
}

#[tokio::test]
async fn this_machine_is_reached_without_copying() {
    let host = support::local();
    let checked = host.host.check().await.expect("reached");
    assert!(!checked.uploaded && !checked.hostname.is_empty());
}

#[tokio::test]
async fn an_unknown_host_key_is_named() {
    let host = support::remote("/bin/bash");
    host.sshd
        .as_ref()
        .expect("an sshd")
        .forget_host_key()
        .expect("forgotten");
    assert_eq!(refused(&host).await.word(), "unknown_host_key");
}

#[tokio::test]
async fn a_changed_host_key_is_named() {
    let host = support::remote("/bin/bash");
    host.sshd
        .as_ref()
        .expect("an sshd")
        .mistake_host_key()
        .expect("mistaken");
    let error = refused(&host).await;
    assert_eq!(error.word(), "changed_host_key");
    assert!(error.detail().is_some());
}

#[tokio::test]
async fn a_refused_key_is_named() {
    let host = support::remote("/bin/bash");
    host.sshd
        .as_ref()
        .expect("an sshd")
        .refuse_key()
        .expect("refused");
    assert_eq!(refused(&host).await.word(), "refused");
}

fn reaching(destination: &str, configuration: &str) -> (tempfile::TempDir, Host) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config");
    fs::write(&file, configuration).expect("written");
    let config = RemoteConfig {
        ssh_config: Some(file),
        ..RemoteConfig::new(agent().to_owned())
    };
    let reach = Reach::ssh(destination).expect("a destination");
    let host = Host::open(&config, &reach);
    (folder, host)
}

#[tokio::test]
async fn a_closed_port_and_an_unknown_name_are_told_apart() {
    // Port 1 of loopback: nobody listens there.
    let (_folder, host) = reaching("h", "Host h\n  HostName 127.0.0.1\n  Port 1\n");
    let error = host.check().await.expect_err("closed");
    assert_eq!(error.word(), "unreachable");
    assert!(error.is_connection());
    // Names under .invalid exist nowhere (RFC 2606); no question leaves the machine
    // for a name that is no name at all.
    let (_folder, host) = reaching("h", "Host h\n  HostName no..such..name.invalid\n");
    assert_eq!(
        host.check().await.expect_err("no name").word(),
        "unknown_name"
    );
}

#[tokio::test]
async fn a_broken_configuration_and_a_missing_ssh_are_told_apart() {
    let (_folder, host) = reaching("h", "Host h\n  NoSuchOption yes\n");
    assert_eq!(
        host.check().await.expect_err("broken").word(),
        "configuration"
    );
    let config = RemoteConfig {
        ssh: PathBuf::from("/no/such/ssh"),
        ..RemoteConfig::new(agent().to_owned())
    };
    let host = Host::open(&config, &Reach::ssh("h").expect("a destination"));
    assert_eq!(
        host.check().await.expect_err("missing").word(),
        "ssh_missing"
    );
}

#[tokio::test]
async fn a_missing_agent_is_named_before_anything_is_tried() {
    for reach in [Reach::Local, Reach::ssh("h").expect("a destination")] {
        let host = Host::open(&RemoteConfig::new(PathBuf::from("/no/such/agent")), &reach);
        let error = host.check().await.expect_err("missing");
        assert_eq!(error.word(), "agent_missing");
        assert!(error.to_string().contains("/no/such/agent"));
    }
}

#[tokio::test]
async fn an_agent_for_other_machines_is_not_copied() {
    let sshd = TestSshd::start().expect("an sshd");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agent");
    // The head of a program for RISC-V, and nothing else.
    let mut content = vec![0; 64];
    content[..4].copy_from_slice(b"\x7fELF");
    content[18] = 243;
    fs::write(&file, &content).expect("written");
    let error = Host::open(&sshd.config(&file), &sshd.reach())
        .check()
        .await
        .expect_err("another architecture");
    assert_eq!(error.word(), "other_architecture");
    let sentence = error.to_string();
    assert!(
        sentence.contains("riscv64") && sentence.contains(std::env::consts::ARCH),
        "{sentence}"
    );
    assert!(!sshd.cache().exists());
}

#[tokio::test]
async fn an_agent_that_does_not_run_there_is_told_from_one_that_cannot_be_reached() {
    let sshd = TestSshd::start().expect("an sshd");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agent");
    fs::write(
        &file,
        "#!/bin/sh\necho 'version GLIBC_2.99 not found' >&2\nexit 1\n",
    )
    .expect("written");
    let error = Host::open(&sshd.config(&file), &sshd.reach())
        .check()
        .await
        .expect_err("broken");
    assert_eq!(error.word(), "agent_broken");
    assert!(error.to_string().contains("GLIBC_2.99"));
}

#[tokio::test]
async fn half_an_agent_never_gets_its_name() {
    let host = support::remote("/bin/bash");
    let sshd = host.sshd.as_ref().expect("an sshd");
    // Bytes trickle, so that the connection can be cut in the middle.
    host.install(
        "cat",
        "#!/bin/sh\n/bin/dd bs=1000 count=100 2>/dev/null; sleep 2; exec /bin/cat\n",
    );
    let checking = tokio::spawn({
        let host = host.host.clone();
        async move { host.check().await }
    });
    let part = |name: &str| name.starts_with(".agent-");
    let names = || -> Vec<String> {
        fs::read_dir(sshd.cache())
            .map(|entries| {
                entries
                    .flatten()
                    .filter_map(|entry| entry.file_name().into_string().ok())
                    .collect()
            })
            .unwrap_or_default()
    };
    let mut begun = false;
    for _ in 0..500 {
        begun = names().iter().any(|name| part(name));
        if begun {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(begun, "the copy has begun");
    sshd.cut();
    let error = checking.await.expect("joined").expect_err("cut");
    assert!(error.is_connection(), "{error:?}");
    // The stub on the host goes on until it sees that what came is not whole.
    for _ in 0..500 {
        if names().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(names(), Vec::<String>::new());
    fs::remove_file(host.home.join("bin/cat")).expect("removed");
    assert!(host.host.check().await.expect("whole at last").uploaded);
}

#[tokio::test]
async fn where_the_home_cannot_be_written_another_place_is_found_or_its_lack_named() {
    let host = support::remote("/bin/bash");
    // A file where the folder should be: nobody, root included, can write below it.
    fs::write(host.home.join(".cache"), "").expect("written");
    let uid = rustix::process::getuid().as_raw();
    let place = PathBuf::from(format!("/tmp/tokdyno-{uid}"));
    let was_there = place.exists();
    let checked = host.host.check().await.expect("reached");
    assert!(place.is_dir());
    let mode = fs::metadata(&place).expect("facts").permissions().mode();
    assert_eq!(mode & 0o022, 0);
    if !was_there {
        assert!(checked.uploaded);
        fs::remove_dir_all(&place).expect("removed");
    }
}

#[tokio::test]
async fn failures_of_the_host_are_typed_and_leave_nothing() {
    for host in support::both() {
        host.install("text", "no program\n");
        fs::set_permissions(
            host.home.join("bin/text"),
            fs::Permissions::from_mode(0o644),
        )
        .expect("set");
        host.install("lost", "#!/no/such/interpreter\n");
        let mut nowhere = RawCommand::new(["true"]);
        nowhere.directory = Some(b"/no/such/directory".to_vec());
        for (command, word) in [
            (
                RawCommand::new(["no-such-program"]),
                FailureWord::NoSuchProgram,
            ),
            (
                RawCommand::new(["/no/such/program"]),
                FailureWord::NoSuchProgram,
            ),
            (nowhere, FailureWord::NoSuchDirectory),
            (RawCommand::new(["text"]), FailureWord::NotExecutable),
            (RawCommand::new(["lost"]), FailureWord::NotExecutable),
            (RawCommand::new(["/etc"]), FailureWord::NotExecutable),
            (
                RawCommand::new(vec!["true".to_owned(), "x".repeat(3 << 20)]),
                FailureWord::TooLong,
            ),
            (RawCommand::new(["a\0b"]), FailureWord::BadRequest),
        ] {
            let ran = host.host.run(&command, b"").await.expect_err("no run");
            assert_eq!(
                ran.failure().map(|failure| failure.word),
                Some(word),
                "{ran}"
            );
            let spawn = tokdyno_remote::Spawn {
                folder: "failed".to_owned(),
                command,
            };
            let spawned = host.host.spawn(&spawn).await.expect_err("no launch");
            assert_eq!(
                spawned.failure().map(|failure| failure.word),
                Some(word),
                "{spawned}"
            );
            assert_eq!(host.host.leftovers("").await.expect("a list"), []);
        }
    }
}

#[tokio::test]
async fn a_command_ends_with_whoever_waits_for_it() {
    for host in support::both() {
        let file = host.home.join("pids");
        let script = format!("sleep 60 & echo $$ $! > {}; wait", file.display());
        let running = tokio::spawn({
            let host = host.host.clone();
            async move { host.run(&RawCommand::new(["sh", "-c", &script]), b"").await }
        });
        let pids = loop {
            let text = fs::read_to_string(&file).unwrap_or_default();
            if text.ends_with('\n') {
                break text;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        running.abort();
        for pid in pids.split_ascii_whitespace() {
            assert!(support::gone(pid.parse().expect("a number")).await, "{pid}");
        }
    }
}

#[tokio::test]
async fn a_command_ends_with_its_connection() {
    let host = support::remote("/bin/bash");
    let file = host.home.join("pid");
    let script = format!("echo $$ > {}; sleep 60", file.display());
    let running = tokio::spawn({
        let host = host.host.clone();
        async move { host.run(&RawCommand::new(["sh", "-c", &script]), b"").await }
    });
    let pid = loop {
        let text = fs::read_to_string(&file).unwrap_or_default();
        if let Ok(pid) = text.trim().parse() {
            break pid;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    host.sshd.as_ref().expect("an sshd").cut();
    let error = running.await.expect("joined").expect_err("cut");
    assert_eq!(error.word(), "cut");
    assert!(support::gone(pid).await);
}

#[tokio::test]
async fn a_forward_leads_to_the_port_and_is_made_anew() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // Connections that only look whether the port is open just end.
            let _ = stream.write_all(b"served").await;
        }
    });
    for host in support::both() {
        let mut forward = host.host.forward(port).await.expect("a forward");
        for again in [false, true] {
            if let (true, Some(sshd)) = (again, &host.sshd) {
                sshd.cut();
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            forward.ensure().await.expect("made anew");
            let mut stream = tokio::net::TcpStream::connect(forward.local())
                .await
                .expect("connects");
            let mut got = String::new();
            stream.read_to_string(&mut got).await.expect("read");
            assert_eq!(got, "served");
        }
        let local = forward.local();
        assert_eq!(host.sshd.is_none(), local.port() == port);
        drop(forward);
        if host.sshd.is_some() {
            let mut closed = false;
            for _ in 0..100 {
                closed = tokio::net::TcpStream::connect(local).await.is_err();
                if closed {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            assert!(closed);
        }
    }
}

#[tokio::test]
async fn a_forward_to_an_unknown_host_says_why() {
    let host = support::remote("/bin/bash");
    host.sshd
        .as_ref()
        .expect("an sshd")
        .forget_host_key()
        .expect("forgotten");
    let error = host.host.forward(1).await.expect_err("refused");
    assert_eq!(error.word(), "unknown_host_key");
}

#[tokio::test]
async fn only_the_constant_stub_is_ever_a_command_line() {
    let host = support::remote("/bin/bash");
    host.host.check().await.expect("reached");
    let secret = "s3cr3t-value-of-a-variable";
    let word = "a-word-only-the-program-may-have";
    // More than one command: a shell becomes the last one, and loses its words.
    let mut command = RawCommand::new(["sh", "-c", "sleep 3; true", word]);
    command.environment = vec![(b"HF_TOKEN".to_vec(), secret.as_bytes().to_vec())];
    let spawn = tokdyno_remote::Spawn {
        folder: "secret".to_owned(),
        command,
    };
    let spawning = tokio::spawn({
        let host = host.host.clone();
        async move { host.spawn(&spawn).await }
    });
    let mut with_word = std::collections::BTreeSet::new();
    let mut looks = 0;
    loop {
        // Asked before the look: one look at least is at the started program.
        let started = spawning.is_finished();
        looks += 1;
        for entry in fs::read_dir("/proc").expect("processes").flatten() {
            let Ok(bytes) = fs::read(entry.path().join("cmdline")) else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert!(!text.contains(secret), "{text}");
            if text.contains(word) {
                with_word.insert(text);
            }
        }
        if started && looks >= 50 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let spawned = spawning.await.expect("joined").expect("started");
    assert_eq!(with_word.len(), 1, "only the program itself: {with_word:?}");
    let stopped = host
        .host
        .stop("secret", &spawned.identity, Duration::from_secs(1))
        .await;
    assert!(stopped.expect("stopped").left.is_empty());
    assert_eq!(testing::children(spawned.identity.pid), Vec::<u32>::new());
}

#[tokio::test]
async fn shared_connections_are_used_and_never_waited_for() {
    for persist in ["no", "5"] {
        let host = support::remote("/bin/bash");
        let sshd = host.sshd.as_ref().expect("an sshd");
        let mut configuration = fs::read_to_string(sshd.ssh_config()).expect("read");
        configuration.push_str(&format!(
            "  ControlMaster auto\n  ControlPath {}\n  ControlPersist {persist}\n",
            host.home.join("shared").display()
        ));
        fs::write(sshd.ssh_config(), configuration).expect("written");
        let began = std::time::Instant::now();
        host.host.check().await.expect("reached");
        let follow = {
            host.host.write("f", "log", b"x").await.expect("written");
            host.host.follow("f", "log", 0).await.expect("follows")
        };
        for _ in 0..5 {
            let output = host
                .host
                .run(&RawCommand::new(["echo", "x"]), b"")
                .await
                .expect("runs");
            assert_eq!(output.stdout, b"x\n");
        }
        let failed = host
            .host
            .run(&RawCommand::new(["no-such-program"]), b"")
            .await;
        assert_eq!(failed.expect_err("not there").word(), "no_such_program");
        assert!(began.elapsed() < Duration::from_secs(30));
        assert!(
            host.home.join("shared").exists(),
            "the connection was shared"
        );

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let forward = host.host.forward(port).await.expect("a forward");
        let local = forward.local();
        drop(forward);
        let mut closed = false;
        for _ in 0..100 {
            closed = tokio::net::TcpStream::connect(local).await.is_err();
            if closed {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(closed, "the shared connection gave the port back");
        drop(follow);
        let ssh = Command::new("ssh")
            .arg("-F")
            .arg(sshd.ssh_config())
            .args(["-O", "exit", sshd.destination()])
            .output()
            .await;
        ssh.expect("the shared connection ends");
    }
}
