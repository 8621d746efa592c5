//! The stand-in as a server on a socket.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    thread,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, oneshot},
    task::{JoinHandle, JoinSet},
};

use crate::{
    config::SimConfig,
    engine::EngineHandle,
    http::{self, Connection, ReadError},
    routes::{self, State, Then},
    truth::{Clock, TruthLog},
};

/// Connections at once.
const MAX_CONNECTIONS: usize = 8192;

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

/// A running stand-in. It stops when this is dropped.
#[derive(Debug)]
pub struct Simulator {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Simulator {
    /// Starts a stand-in in the current tokio runtime and returns once it
    /// listens. It prints nothing.
    ///
    /// # Errors
    /// The address is taken or not ours, the log cannot be written, or no thread
    /// could be started.
    pub async fn spawn(config: SimConfig) -> Result<Self, SimError> {
        Self::start(config, None).await
    }

    /// As [`Self::spawn`], and prints what an engine would log.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub async fn spawn_with_log(config: SimConfig) -> Result<Self, SimError> {
        let lines = printer().map_err(SimError::Thread)?;
        Self::start(config, Some(lines)).await
    }

    async fn start(config: SimConfig, lines: Option<SyncSender<String>>) -> Result<Self, SimError> {
        let wanted = format!("{}:{}", config.host, config.port);
        let listen = |source| SimError::Listen {
            address: wanted.clone(),
            source,
        };
        let listener = TcpListener::bind((config.host.as_str(), config.port))
            .await
            .map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
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
        let config = Arc::new(config);
        let engine = EngineHandle::start(Arc::clone(&config), clock, log, lines)
            .map_err(SimError::Thread)?;
        let state = Arc::new(State::new(config, engine, clock));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(accept(listener, state, stopped));
        Ok(Self {
            address,
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
        format!("http://{}", self.address)
    }

    /// Stops it: open connections are closed.
    pub async fn stop(self) {
        drop(self.stop);
        // A task that panicked has closed its sockets too.
        let _ = self.task.await;
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, mut stopped: oneshot::Receiver<()>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // Sent or dropped: both mean stop.
            _ = &mut stopped => return,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Out of descriptors, most likely: let others close first.
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
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
fn printer() -> io::Result<SyncSender<String>> {
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
