//! The stand-in as a server on a socket.

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Semaphore, oneshot},
    task::{JoinHandle, JoinSet},
};

use crate::{
    config::SimConfig,
    engine::EngineHandle,
    http::{self, Connection, ReadError},
    routes::{self, Phase, State, Then},
    truth::{Clock, TruthLog},
};

/// Connections at once.
const MAX_CONNECTIONS: usize = 8192;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// How often it is looked whether the last request is over.
const DRAIN_STEP: Duration = Duration::from_millis(10);

/// Why a stand-in does not start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The address.
    #[error(
        "The stand-in cannot listen on {address}: {source}. Choose another --port, or 0 for a free one."
    )]
    Listen {
        /// Which.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The log of true send times.
    #[error("The log {path} cannot be written: {source}. Name a file in a folder that exists.")]
    Log {
        /// Which.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A thread.
    #[error("The stand-in's thread did not start: {0}. Free resources of the machine.")]
    Thread(io::Error),
}

/// An address that is taken and refuses connections until it is listened on, as
/// vLLM's while the model loads.
#[derive(Debug)]
pub(crate) struct Bound {
    socket: TcpSocket,
    wanted: String,
    pub(crate) address: SocketAddr,
}

impl Bound {
    /// Takes the address of a configuration.
    pub(crate) async fn take(config: &SimConfig) -> Result<Self, SimError> {
        let wanted = format!("{}:{}", config.host, config.port);
        let listen = |source| SimError::Listen {
            address: wanted.clone(),
            source,
        };
        let addresses = tokio::net::lookup_host((config.host.as_str(), config.port))
            .await
            .map_err(listen)?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in addresses {
            match bound(address) {
                Ok(socket) => {
                    let address = socket.local_addr().map_err(listen)?;
                    return Ok(Self {
                        socket,
                        wanted,
                        address,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(listen(last))
    }

    fn listen(self) -> Result<TcpListener, SimError> {
        // Connections inherit it: what is left of them does not keep the next
        // stand-in from the address.
        self.socket
            .set_reuseaddr(true)
            .and_then(|()| self.socket.listen(BACKLOG))
            .map_err(|source| SimError::Listen {
                address: self.wanted,
                source,
            })
    }
}

/// Takes an address for itself alone. Two sockets that both allow reuse could
/// share one until the first listens, so reuse is allowed only where there is no
/// other way, and otherwise just before listening.
fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    match bound_with(address, false) {
        // Connections of one that ended a moment ago do not stand in the way.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => bound_with(address, true),
        other => other,
    }
}

fn bound_with(address: SocketAddr, reuse: bool) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(reuse)?;
    socket.bind(address)?;
    Ok(socket)
}

/// A running stand-in. It stops when this is dropped.
pub struct Simulator {
    address: SocketAddr,
    state: Arc<State>,
    refuse: Option<oneshot::Sender<()>>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Simulator {
    /// Starts a stand-in in the current tokio runtime and returns once it
    /// listens and is ready. It prints nothing, and what belongs to a process
    /// (start-up, start faults but `wrong-model`, GPUs) does not happen.
    ///
    /// # Errors
    /// The address is taken or not ours, the log cannot be written, or no thread
    /// could be started.
    pub async fn spawn(config: SimConfig) -> Result<Self, SimError> {
        let bound = Bound::take(&config).await?;
        Self::start(bound, Arc::new(config), None, Phase::Ready)
    }

    /// Listens on an address and serves; `lines` takes what an engine would log.
    pub(crate) fn start(
        bound: Bound,
        config: Arc<SimConfig>,
        lines: Option<SyncSender<String>>,
        phase: Phase,
    ) -> Result<Self, SimError> {
        let address = bound.address;
        let clock = Clock::start();
        let log = match &config.sim.log {
            Some(path) => {
                Some(
                    TruthLog::open(path, &config, clock).map_err(|source| SimError::Log {
                        path: path.display().to_string(),
                        source,
                    })?,
                )
            }
            None => None,
        };
        let engine = EngineHandle::start(Arc::clone(&config), clock, log, lines)
            .map_err(SimError::Thread)?;
        let listener = bound.listen()?;
        let state = Arc::new(State::new(config, engine, clock, phase));
        let (stop, stopped) = oneshot::channel();
        let (refuse, refused) = oneshot::channel();
        let task = tokio::spawn(accept(listener, Arc::clone(&state), refused, stopped));
        Ok(Self {
            address,
            state,
            refuse: Some(refuse),
            stop,
            task,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a URL without path.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.address)
    }

    /// From now on it is in this phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.state.enter(phase);
    }

    /// Requests that run or wait.
    pub(crate) fn in_flight(&self) -> u32 {
        let stats = self.state.engine.stats();
        stats.running + stats.waiting
    }

    /// Takes no more requests and waits until none is left, at most so long. Says
    /// how many are left.
    pub(crate) async fn drain(&mut self, limit: Duration) -> u32 {
        self.enter(Phase::Stopping);
        // The other end is gone if the task is.
        let _ = self.refuse.take().map(|refuse| refuse.send(()));
        let wait = async {
            while self.in_flight() > 0 {
                tokio::time::sleep(DRAIN_STEP).await;
            }
            // A whole reply is written by its connection after the last token.
            tokio::time::sleep(DRAIN_STEP).await;
        };
        // Whether in time or not is seen by what is left.
        let _ = tokio::time::timeout(limit, wait).await;
        self.in_flight()
    }

    /// Stops it: open connections are closed.
    pub async fn stop(self) {
        drop(self.stop);
        // A task that panicked has closed its sockets too.
        let _ = self.task.await;
    }
}

/// An address as a URL without path.
pub(crate) fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

async fn accept(
    listener: TcpListener,
    state: Arc<State>,
    mut refused: oneshot::Receiver<()>,
    mut stopped: oneshot::Receiver<()>,
) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // Sent or dropped: both mean stop.
            _ = &mut stopped => return,
            _ = &mut refused => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Out of descriptors, most likely: let others close first.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                // Beyond the limit a connection is closed at once.
                if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
                    let state = Arc::clone(&state);
                    connections.spawn(async move {
                        // A broken connection concerns its client alone.
                        let _ = serve_connection(&state, stream).await;
                        drop(slot);
                    });
                }
            }
        }
    }
    // What is open is served to its end.
    drop(listener);
    let _ = stopped.await;
}

async fn serve_connection(state: &State, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = Connection::new(stream);
    loop {
        match connection.request().await {
            Ok(Some(request)) => {
                if routes::answer(state, &mut connection, &request).await? == Then::Close {
                    return Ok(());
                }
            }
            Ok(None) => return Ok(()),
            Err(ReadError::Io(error)) => return Err(error),
            Err(ReadError::Refused(status, message)) => {
                let reply = http::whole(status, "text/plain", message.as_bytes(), false);
                return http::write_all(&connection.stream, &reply).await;
            }
        }
    }
}

/// A thread that prints lines, so that a slow terminal stops nobody.
pub(crate) fn printer() -> io::Result<SyncSender<String>> {
    let (sender, receiver) = sync_channel::<String>(256);
    thread::Builder::new()
        .name("sim-print".to_owned())
        .spawn(move || {
            use io::Write as _;
            while let Ok(line) = receiver.recv() {
                // Nobody reads any more: nothing to say it to.
                let _ = writeln!(io::stdout(), "{line}");
            }
        })?;
    Ok(sender)
}
