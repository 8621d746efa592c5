//! Forwards and time limits, under configurations that were made for people.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tokdyno_remote::{
    RawCommand,
    testing::{TestSshd, children},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
};

use crate::support;

/// A port that says `served` to everybody.
async fn serving() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // Who only looks does not wait for it.
            let _ = stream.write_all(b"served").await;
        }
    });
    port
}

async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("bound").port()
}

async fn said_at(address: impl tokio::net::ToSocketAddrs) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connects");
    let mut got = String::new();
    let reading = tokio::time::timeout(Duration::from_secs(10), stream.read_to_string(&mut got));
    // A reset says nothing, too.
    let _ = reading.await.expect("in time");
    got
}

fn configure(sshd: &TestSshd, lines: &str) {
    let mut configuration = fs::read_to_string(sshd.ssh_config()).expect("read");
    configuration.push_str(lines);
    fs::write(sshd.ssh_config(), configuration).expect("written");
}

/// Processes and control sockets of the connections that this process has opened for forwards.
fn own_connections() -> Vec<(u32, PathBuf)> {
    children(std::process::id())
        .into_iter()
        .filter_map(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let words: Vec<_> = words
                .split(|byte| *byte == 0)
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect();
            let at = words.iter().position(|word| word == "-S")?;
            words
                .contains(&"-N".to_owned())
                .then(|| (pid, PathBuf::from(&words[at + 1])))
        })
        .collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("facts").permissions().mode() & 0o777
}

#[tokio::test]
async fn a_forward_is_private_on_its_way_to_ssh_and_leaves_nothing() {
    let host = support::remote("/bin/bash");
    let forward = host.host.forward(serving().await).await.expect("a forward");
    assert_eq!(said_at(forward.local()).await, "served");
    let connections = own_connections();
    let [(pid, control)] = connections.as_slice() else {
        panic!("one connection: {connections:?}");
    };
    let folder = control.parent().expect("a folder").to_owned();
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("port")), 0o600);
    drop(forward);
    assert!(!folder.exists());
    assert!(support::gone(*pid).await);
}

#[tokio::test]
async fn a_forward_keeps_its_port_while_the_host_is_away() {
    let host = support::remote("/bin/bash");
    let sshd = host.sshd.as_ref().expect("an sshd");
    let mut forward = host.host.forward(serving().await).await.expect("a forward");
    let local = forward.local();
    sshd.refuse_key().expect("refused");
    sshd.cut();
    let until = Instant::now() + Duration::from_secs(10);
    let error = loop {
        if let Err(error) = forward.ensure().await {
            break error;
        }
        assert!(Instant::now() < until, "the end of ssh is seen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(error.word(), "refused");
    assert_eq!(forward.local(), local);
    let taken = TcpListener::bind(local).await.expect_err("still held");
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(said_at(local).await, "");
}

#[tokio::test]
async fn a_forward_and_a_run_do_as_they_should_whatever_the_configuration_says() {
    let host = support::remote("/bin/bash");
    let sshd = host.sshd.as_ref().expect("an sshd");
    let port = serving().await;
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let taken = (taken.local_addr().expect("bound").port(), taken);
    let free = free_port().await;
    configure(
        sshd,
        &format!(
            "  LocalForward 127.0.0.1:{} 127.0.0.1:{port}\n  LocalForward 127.0.0.1:{free} 127.0.0.1:{port}\n  RemoteForward 127.0.0.1:{} 127.0.0.1:{port}\n  DynamicForward 127.0.0.1:{}\n  ExitOnForwardFailure yes\n  ForkAfterAuthentication yes\n  StdinNull yes\n  SessionType none\n  Tunnel yes\n  IgnoreUnknown UseKeychain\n  UseKeychain yes\n",
            taken.0, taken.0, taken.0
        ),
    );
    host.host.check().await.expect("reached");
    let command = RawCommand::new(["cat"]);
    let output = host.host.run(&command, b"fed").await.expect("runs");
    assert_eq!(output.stdout, b"fed");
    let forward = host.host.forward(port).await.expect("a forward");
    assert_eq!(said_at(forward.local()).await, "served");
    let unasked = TcpStream::connect(("127.0.0.1", free)).await;
    assert!(unasked.is_err(), "only the forward that was asked for");
}

#[tokio::test]
async fn a_forward_over_a_shared_connection_takes_only_itself_back() {
    let host = support::remote("/bin/bash");
    let sshd = host.sshd.as_ref().expect("an sshd");
    let port = serving().await;
    let users = free_port().await;
    configure(
        sshd,
        &format!(
            "  ControlPath {}\n  LocalForward 127.0.0.1:{users} 127.0.0.1:{port}\n",
            host.home.join("shared_100%%").display()
        ),
    );
    let mut master = Command::new("ssh")
        .arg("-F")
        .arg(sshd.ssh_config())
        .args(["-M", "-N", sshd.destination()])
        .kill_on_drop(true)
        .spawn()
        .expect("a shared connection");
    let socket = host.home.join("shared_100%");
    let until = Instant::now() + Duration::from_secs(10);
    while !socket.exists() {
        assert!(Instant::now() < until, "the connection is shared");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // It is the only way in from now on.
    sshd.refuse_key().expect("refused");

    let mut forward = host.host.forward(port).await.expect("a forward");
    assert_eq!(own_connections(), []);
    assert_eq!(said_at(forward.local()).await, "served");
    forward.ensure().await.expect("open");
    drop(forward);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(said_at(("127.0.0.1", users)).await, "served");

    let mut forward = host.host.forward(port).await.expect("another");
    master.kill().await.expect("ended");
    let error = forward.ensure().await.expect_err("no way any more");
    assert_eq!(error.word(), "refused");
    assert_eq!(said_at(forward.local()).await, "");
}

#[tokio::test]
async fn a_run_that_takes_too_long_ends_on_the_host_and_says_so() {
    for host in support::both() {
        let file = host.home.join("pids");
        let script = format!("sleep 60 & echo $$ $! > {}; wait", file.display());
        let command = RawCommand::new(["sh", "-c", &script]);
        host.host.check().await.expect("reached");
        let began = Instant::now();
        let limit = Duration::from_secs(3);
        let error = host
            .host
            .run_within(&command, b"", limit)
            .await
            .expect_err("too long");
        assert!(began.elapsed() >= limit && began.elapsed() < Duration::from_secs(30));
        assert_eq!(error.word(), "timed_out");
        // The host answers: to ask again at once would only take as long.
        assert!(!error.is_connection());
        assert!(error.to_string().contains("after 3 s"), "{error}");
        let pids = fs::read_to_string(&file).expect("it ran");
        assert_eq!(pids.split_ascii_whitespace().count(), 2);
        for pid in pids.split_ascii_whitespace() {
            assert!(support::gone(pid.parse().expect("a number")).await, "{pid}");
        }
    }
}
