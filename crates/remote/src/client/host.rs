//! A host, as the rest of Tokdyno sees it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use tokdyno_domain::host::{Inventory, ProcessFacts, ProcessIdentity, Reach};
use tokio::{sync::Mutex, time::timeout};

use super::{
    asking::{QUICK, SLOW},
    error::RemoteError,
    forward::Forward,
    program::{self, Piped, RemoteProgram},
    session::AHEAD,
    stream::{Follow, Samples},
    transport::{Local, Ssh, Transport},
};
use crate::wire::{
    FileFacts, Hello, Leftover, Order, Output, PortUse, ProcessStatus, RawCommand, RunHead, Signal,
    Spawn, Spawned, Stopped,
};

/// What stopping may take beyond its grace.
const STOPPING: Duration = Duration::from_secs(60);
/// What a command may take unless its caller says otherwise.
const RUNNING: Duration = Duration::from_secs(600);

/// Where the programs are that reach hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteConfig {
    /// The agent's file, `tokdyno-agent`.
    pub agent: PathBuf,
    /// OpenSSH's client.
    pub ssh: PathBuf,
    /// Its configuration, if not the user's own.
    pub ssh_config: Option<PathBuf>,
    /// Variables that the local agent gets besides its own, such as a state folder
    /// of a test. They become part of the login environment of this machine.
    pub local_environment: Vec<(OsString, OsString)>,
}

impl RemoteConfig {
    /// `ssh` from the PATH, with the user's configuration.
    #[must_use]
    pub fn new(agent: PathBuf) -> Self {
        Self {
            agent,
            ssh: PathBuf::from("ssh"),
            ssh_config: None,
            local_environment: Vec::new(),
        }
    }
}

/// A host. Clones are the same host.
#[derive(Debug, Clone)]
pub struct Host(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) transport: Arc<dyn Transport>,
    is_local: bool,
    /// Held while the agent is copied, so that it is copied once.
    pub(super) storing: Mutex<()>,
}

/// What a test of the connection found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// From an order to its answer on an open connection.
    pub round_trip: Duration,
    /// Architecture, such as `x86_64`.
    pub arch: String,
    /// The host's own name.
    pub hostname: String,
    /// User that commands run as.
    pub user: String,
    /// Was the agent copied just now?
    pub uploaded: bool,
}

impl Host {
    /// A host that is reached as `reach` says. Nothing is done yet.
    #[must_use]
    pub fn open(config: &RemoteConfig, reach: &Reach) -> Self {
        let agent = config.agent.clone();
        let transport: Arc<dyn Transport> = match reach {
            Reach::Local => Arc::new(Local {
                agent,
                environment: config.local_environment.clone(),
            }),
            Reach::Ssh { destination } => Arc::new(Ssh {
                agent,
                ssh: config.ssh.clone(),
                ssh_config: config.ssh_config.clone(),
                destination: destination.clone(),
                knows_session_options: OnceLock::new(),
            }),
        };
        Self(Arc::new(Inner {
            transport,
            is_local: matches!(reach, Reach::Local),
            storing: Mutex::new(()),
        }))
    }

    pub(super) fn is_local(&self) -> bool {
        self.0.is_local
    }

    pub(super) fn transport(&self) -> &Arc<dyn Transport> {
        &self.0.transport
    }

    /// For messages: `this machine`, or the destination.
    #[must_use]
    pub fn label(&self) -> &str {
        self.0.transport.label()
    }

    /// Connects, copies the agent if it is not there, and measures a round trip.
    ///
    /// # Errors
    /// [`RemoteError`], as all of these.
    pub async fn check(&self) -> Result<Checked, RemoteError> {
        let (mut session, uploaded) = self.session(AHEAD).await?;
        let order = self.order(&Order::Hello)?.finish();
        let hello = async {
            let sent = Instant::now();
            session.send(&[&order]).await?;
            let hello: Hello = session.reply().await?;
            Ok(Checked {
                round_trip: sent.elapsed(),
                arch: hello.arch,
                hostname: hello.hostname,
                user: hello.user,
                uploaded,
            })
        };
        let result = timeout(QUICK, hello).await;
        result.unwrap_or_else(|_| Err(session.timed_out(QUICK)))
    }

    /// Everything worth knowing about the machine.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn inventory(&self) -> Result<Inventory, RemoteError> {
        self.ask(&Order::Inventory, SLOW).await
    }

    /// Processes that look like engines or hold GPU memory, each by the top of its
    /// tree.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn engines(&self) -> Result<Vec<ProcessFacts>, RemoteError> {
        self.ask(&Order::Engines, SLOW).await
    }

    /// One process, with variables `names` allowed beside the allow-list; none if
    /// there is no such process. Names of secrets are never allowed.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn process(
        &self,
        pid: u32,
        names: &[String],
    ) -> Result<Option<ProcessFacts>, RemoteError> {
        let names = names.to_vec();
        self.ask(&Order::Process { pid, names }, SLOW).await
    }

    /// Runs a command to its end, for at most ten minutes. As [`Self::run_within`].
    ///
    /// # Errors
    /// [`RemoteError`]; a command that ran and failed is none.
    pub async fn run(&self, command: &RawCommand, stdin: &[u8]) -> Result<Output, RemoteError> {
        self.run_within(command, stdin, RUNNING).await
    }

    /// Runs a command to its end, for at most `limit` once the host is reached. Its
    /// process group ends with it, with this future, and with the connection.
    ///
    /// # Errors
    /// [`RemoteError`], [`RemoteError::CommandTimedOut`] at the limit; a command that
    /// ran and failed is none.
    pub async fn run_within(
        &self,
        command: &RawCommand,
        stdin: &[u8],
        limit: Duration,
    ) -> Result<Output, RemoteError> {
        let (mut session, _) = self.session(AHEAD).await?;
        let order = Order::Run {
            stdin: stdin.len() as u64,
        };
        let block = self.order(&order)?.command(command);
        let block = block.map_err(|failure| self.refused(failure))?.finish();
        let answer = async {
            session.send(&[&block, stdin]).await?;
            let _beating = session.beat();
            let head: RunHead = session.reply().await?;
            Ok(Output {
                status: head.status,
                stdout: session.bytes(head.stdout).await?,
                stderr: session.bytes(head.stderr).await?,
                truncated: head.truncated,
            })
        };
        let result = timeout(limit, answer).await;
        result.unwrap_or_else(|_| {
            Err(RemoteError::CommandTimedOut {
                host: self.label().to_owned(),
                seconds: limit.as_secs(),
            })
        })
    }

    /// Starts a program that goes on whatever becomes of the connection and of the
    /// dashboard. Returns once it runs; its output is appended to the file `log` of
    /// the folder.
    ///
    /// # Errors
    /// [`RemoteError`]; then nothing is left running.
    pub async fn spawn(&self, spawn: &Spawn) -> Result<Spawned, RemoteError> {
        let order = Order::Spawn {
            folder: spawn.folder.clone(),
        };
        let block = self.order(&order)?.command(&spawn.command);
        let block = block.map_err(|failure| self.refused(failure))?.finish();
        self.exchange(&[&block], SLOW).await
    }

    /// How a launch is.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn status(
        &self,
        folder: &str,
        identity: &ProcessIdentity,
    ) -> Result<ProcessStatus, RemoteError> {
        let order = Order::Status {
            folder: folder.to_owned(),
            identity: identity.clone(),
        };
        self.ask(&order, QUICK).await
    }

    /// Ends a launch: asks its leader to end, waits for `grace`, kills what is left,
    /// and looks. Goes on by itself if the connection is cut meanwhile.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn stop(
        &self,
        folder: &str,
        identity: &ProcessIdentity,
        grace: Duration,
    ) -> Result<Stopped, RemoteError> {
        let order = Order::Stop {
            folder: folder.to_owned(),
            identity: identity.clone(),
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        };
        self.ask(&order, grace.saturating_add(STOPPING)).await
    }

    /// Signals a process, or its group. False if it is not there any more, or if
    /// another process has its number now.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn signal(
        &self,
        identity: &ProcessIdentity,
        signal: Signal,
        group: bool,
    ) -> Result<bool, RemoteError> {
        let order = Order::Signal {
            identity: identity.clone(),
            signal,
            group,
        };
        self.ask(&order, QUICK).await
    }

    /// Follows a file of a folder from a byte on, while it grows.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn follow(
        &self,
        folder: &str,
        file: &str,
        offset: u64,
    ) -> Result<Follow, RemoteError> {
        let order = Order::Follow {
            folder: folder.to_owned(),
            file: file.to_owned(),
            offset,
        };
        let (session, beating) = self.streaming(&order).await?;
        Ok(Follow::new(session, beating, offset))
    }

    /// The first `most` bytes of a file of a folder; none if it is not there.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn read(
        &self,
        folder: &str,
        file: &str,
        most: u64,
    ) -> Result<Option<Vec<u8>>, RemoteError> {
        self.file(&Order::Read {
            folder: folder.to_owned(),
            file: file.to_owned(),
            most,
        })
        .await
    }

    /// The first `most` bytes of any file, by its absolute path; none if it is not
    /// there.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn read_path(&self, path: &str, most: u64) -> Result<Option<Vec<u8>>, RemoteError> {
        self.file(&Order::ReadPath {
            path: path.to_owned(),
            most,
        })
        .await
    }

    /// Writes a file of a folder, for its owner only; readers see all of it or none.
    /// The folder is made if it is not there.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn write(&self, folder: &str, file: &str, bytes: &[u8]) -> Result<(), RemoteError> {
        let order = Order::Write {
            folder: folder.to_owned(),
            file: file.to_owned(),
            size: bytes.len() as u64,
        };
        let block = self.order(&order)?.finish();
        self.exchange(&[&block, bytes], SLOW).await
    }

    /// Files of a folder, by name.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn list(&self, folder: &str) -> Result<Vec<FileFacts>, RemoteError> {
        let order = Order::List {
            folder: folder.to_owned(),
        };
        self.ask(&order, QUICK).await
    }

    /// Saves how a process was started into a folder on the host, the whole
    /// environment with it, for [`Self::respawn_kept`]. Only what passes the filter
    /// comes back.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn keep_process(&self, folder: &str, pid: u32) -> Result<ProcessFacts, RemoteError> {
        let order = Order::Keep {
            folder: folder.to_owned(),
            pid,
        };
        self.ask(&order, SLOW).await
    }

    /// Starts again, as a launch in `folder`, what [`Self::keep_process`] saved in the
    /// folder `kept`, with the environment it had.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn respawn_kept(&self, folder: &str, kept: &str) -> Result<Spawned, RemoteError> {
        let order = Order::Respawn {
            folder: folder.to_owned(),
            kept: kept.to_owned(),
        };
        self.ask(&order, SLOW).await
    }

    /// The host's state each second, until what is returned is dropped.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn sample(&self) -> Result<Samples, RemoteError> {
        let (session, beating) = self.streaming(&Order::Sample).await?;
        Ok(Samples::new(session, beating))
    }

    /// A way from here to a port that is open on the host's loopback.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn forward(&self, port: u16) -> Result<Forward, RemoteError> {
        Forward::open(self, port).await
    }

    /// Copies a program to the host unless it is there already; its content is
    /// compared there. On this machine the file itself is used.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn ensure_program(&self, local: &Path) -> Result<RemoteProgram, RemoteError> {
        program::ensure(self, local).await
    }

    /// A program on the host with its own standard streams.
    #[must_use]
    pub fn program(&self, program: &RemoteProgram, arguments: &[&str]) -> Piped {
        Piped::new(self.clone(), program, arguments)
    }

    /// Is a TCP port of the host free?
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn port_free(&self, port: u16) -> Result<PortUse, RemoteError> {
        self.ask(&Order::PortFree { port }, QUICK).await
    }

    /// Launches, in folders whose names begin with `prefix`, of which processes still
    /// live.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn leftovers(&self, prefix: &str) -> Result<Vec<Leftover>, RemoteError> {
        let order = Order::Leftovers {
            prefix: prefix.to_owned(),
        };
        self.ask(&order, SLOW).await
    }

    /// Removes the folder of a launch that is over.
    ///
    /// # Errors
    /// [`RemoteError`]; also if processes of it still live.
    pub async fn remove(&self, folder: &str) -> Result<(), RemoteError> {
        let order = Order::Remove {
            folder: folder.to_owned(),
        };
        self.ask(&order, QUICK).await
    }
}
