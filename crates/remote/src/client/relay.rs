//! A port here whose connections are carried to a unix socket.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

/// Most connections at once, whatever the system allows.
const MOST: u64 = 4096;
/// Fewest, whatever the system allows.
const FEWEST: u64 = 64;
/// Open files that are left to the rest of the process.
const OTHER_FILES: u64 = 256;
/// How long nothing is accepted after the system has refused to.
const PAUSE: Duration = Duration::from_millis(50);

/// Holds its port from the beginning, so that nobody else can ever answer there.
/// The port and all connections are closed when it is dropped.
#[derive(Debug)]
pub(super) struct Relay {
    local: SocketAddr,
    target: watch::Sender<Option<PathBuf>>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(super) async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let local = listener.local_addr()?;
        let (target, seen) = watch::channel(None);
        let task = tokio::spawn(serve(listener, seen, room()));
        Ok(Self {
            local,
            target,
            task,
        })
    }

    pub(super) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Where connections are carried from now on; with none, they are closed at once.
    pub(super) fn lead_to(&self, socket: Option<PathBuf>) {
        self.target.send_replace(socket);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connections that fit into the limit of open files. Each takes two.
fn room() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let room = limit.map_or(MOST, |files| files.saturating_sub(OTHER_FILES) / 2);
    usize::try_from(room.clamp(FEWEST, MOST)).unwrap_or(usize::MAX)
}

async fn serve(listener: TcpListener, target: watch::Receiver<Option<PathBuf>>, most: usize) {
    let mut carried = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = carried.join_next() => {}
            accepted = listener.accept(), if carried.len() < most => match accepted {
                Ok((stream, _)) => {
                    if let Some(socket) = target.borrow().clone() {
                        carried.spawn(carry(stream, socket));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to a forwarded port was not accepted");
                    sleep(PAUSE).await;
                }
            },
        }
    }
}

async fn carry(mut here: TcpStream, socket: PathBuf) {
    let carried = async {
        let mut there = UnixStream::connect(socket).await?;
        // Tokens come in small pieces; waiting to fill a packet would show in times.
        here.set_nodelay(true)?;
        copy_bidirectional(&mut here, &mut there).await
    };
    if let Err(error) = carried.await {
        tracing::debug!(%error, "a forwarded connection was cut");
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::UnixListener,
        time::timeout,
    };

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn without_a_target_a_connection_ends_and_the_port_stays_taken() {
        let relay = Relay::open().await.expect("a port");
        let mut stream = TcpStream::connect(relay.local()).await.expect("accepted");
        let mut got = Vec::new();
        let read = timeout(SOON, stream.read_to_end(&mut got)).await;
        // Closed or reset: nothing came.
        drop(read.expect("ended"));
        assert_eq!(got, b"");
        let other = TcpListener::bind(relay.local()).await;
        assert_eq!(other.expect_err("held").kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn connections_beyond_the_bound_wait_for_a_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s");
        let behind = UnixListener::bind(&socket).expect("a socket");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let local = listener.local_addr().expect("bound");
        let (_target, seen) = watch::channel(Some(socket));
        let serving = tokio::spawn(serve(listener, seen, 1));

        let first = TcpStream::connect(local).await.expect("connects");
        let (held, _) = behind.accept().await.expect("carried");
        let mut second = TcpStream::connect(local).await.expect("connects");
        second.write_all(b"late").await.expect("written");
        let early = timeout(Duration::from_millis(200), behind.accept()).await;
        assert!(early.is_err(), "the second one waits");
        drop((first, held));
        let carried = timeout(SOON, behind.accept()).await.expect("in time");
        let (mut carried, _) = carried.expect("carried");
        let mut got = [0; 4];
        carried.read_exact(&mut got).await.expect("read");
        assert_eq!(&got, b"late");

        serving.abort();
        let mut rest = Vec::new();
        let ended = timeout(SOON, carried.read_to_end(&mut rest)).await;
        ended.expect("closed with the relay").expect("read");
    }
}
