//! How the agent's process is started: the one difference between hosts.

use std::{
    ffi::OsString,
    fmt, io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, OnceLock},
};

use tokio::process::Command;

use super::{
    build::Build,
    error::RemoteError,
    stub,
    trouble::{self, Ending},
};

/// Starts agents on one host.
pub(super) trait Transport: fmt::Debug + Send + Sync {
    /// The host, for messages.
    fn label(&self) -> &str;

    /// The command that starts the agent. May read files.
    fn start(&self) -> Result<Command, RemoteError>;

    /// The command that stores the agent, and what to feed it. None where nothing is
    /// to be stored. May read files.
    fn upload(&self) -> Result<Option<Upload>, RemoteError>;

    /// A command that opens a connection and listens for requests to it on the unix
    /// socket `control`. None where there is nothing to connect to. May run programs.
    fn connection(&self, control: &Path) -> Option<Command>;

    /// A command that prints the user's configuration for the host, a name and a
    /// value on each line. None where there is none. May run programs.
    fn configuration(&self) -> Option<Command>;

    /// A command that makes a request about carrying the unix socket `from` to `port`
    /// of the host, to the connection that listens on `control`.
    fn request(&self, control: &Path, request: Request, from: &Path, port: u16) -> Option<Command>;

    /// What it means that a started command ended without an answer.
    fn explain(&self, ending: &Ending) -> RemoteError;

    /// What it means that a command could not be started.
    fn not_started(&self, error: &io::Error) -> RemoteError;
}

/// What a connection is asked to do with a forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Open,
    Cancel,
}

/// A copy that is to be made.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) command: Command,
    pub(super) content: Vec<u8>,
    pub(super) arch: Option<&'static str>,
}

/// Pipes for all three streams, and a process group of its own: a Ctrl-C meant for
/// the dashboard is none for its children.
fn piped(mut command: Command) -> Command {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(false);
    command
}

/// This machine.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) agent: PathBuf,
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl Transport for Local {
    fn label(&self) -> &str {
        "this machine"
    }

    fn start(&self) -> Result<Command, RemoteError> {
        let mut command = Command::new(&self.agent);
        command.arg("serve-one");
        // What configures the dashboard, its database's password above all, is no
        // business of the programs that are launched from here.
        for (name, _) in std::env::vars_os() {
            let own = name.to_str().is_some_and(|name| {
                (name.starts_with("TOKDYNO_") && !name.starts_with("TOKDYNO_SIM_"))
                    || name == "DATABASE_URL"
                    || name == "PGPASSWORD"
            });
            if own {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(piped(command))
    }

    fn upload(&self) -> Result<Option<Upload>, RemoteError> {
        Ok(None)
    }

    fn connection(&self, _control: &Path) -> Option<Command> {
        None
    }

    fn configuration(&self) -> Option<Command> {
        None
    }

    fn request(&self, _: &Path, _: Request, _: &Path, _: u16) -> Option<Command> {
        None
    }

    fn explain(&self, ending: &Ending) -> RemoteError {
        let host = self.label().to_owned();
        let said = ending.said();
        if ending.greeted {
            RemoteError::Cut { host, said }
        } else {
            RemoteError::AgentBroken { host, said }
        }
    }

    fn not_started(&self, error: &io::Error) -> RemoteError {
        RemoteError::AgentMissing {
            program: self.agent.display().to_string(),
            reason: error.to_string(),
        }
    }
}

/// A host behind the system's OpenSSH client.
#[derive(Debug)]
pub(super) struct Ssh {
    pub(super) agent: PathBuf,
    pub(super) ssh: PathBuf,
    pub(super) ssh_config: Option<PathBuf>,
    pub(super) destination: String,
    /// Does this ssh have [`SESSION_OPTIONS`]? Unknown until first needed.
    pub(super) knows_session_options: OnceLock<bool>,
}

/// Undo what a configuration may say about sessions that are not for people. OpenSSH
/// has them since 8.7 and refuses to start on an option it does not know.
/// `IgnoreUnknown` is no way around: ours would replace the user's.
const SESSION_OPTIONS: [&str; 2] = ["ForkAfterAuthentication=no", "StdinNull=no"];
/// Of the same age, but at odds with `-N`.
const SESSION_TYPE: &str = "SessionType=default";

impl Ssh {
    /// ssh with its options, up to and without the destination.
    fn ssh(&self) -> Command {
        const OPTIONS: [&str; 12] = [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ConnectTimeout=10",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            "ForwardAgent=no",
            "ForwardX11=no",
            "RemoteCommand=none",
            "PermitLocalCommand=no",
            "EscapeChar=none",
            "ClearAllForwardings=yes",
            "Tunnel=no",
        ];
        let mut command = Command::new(&self.ssh);
        command.arg("-T");
        for option in OPTIONS {
            command.args(["-o", option]);
        }
        if self.knows_session_options() {
            for option in SESSION_OPTIONS {
                command.args(["-o", option]);
            }
        }
        if let Some(file) = &self.ssh_config {
            command.arg("-F").arg(file);
        }
        command
    }

    fn with_stub(&self, stub: &str) -> Command {
        let mut command = self.ssh();
        if self.knows_session_options() {
            command.args(["-o", SESSION_TYPE]);
        }
        command.arg("--").arg(&self.destination).arg(stub);
        piped(command)
    }

    fn knows_session_options(&self) -> bool {
        *self.knows_session_options.get_or_init(|| {
            let mut command = std::process::Command::new(&self.ssh);
            // Reads the options and no file, and connects to nothing.
            command.args(["-G", "-T", "-F", "none"]);
            for option in SESSION_OPTIONS.into_iter().chain([SESSION_TYPE]) {
                command.args(["-o", option]);
            }
            command
                .args(["--", "host"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })
    }

    fn build(&self) -> Result<Build, RemoteError> {
        Build::of(&self.agent).map_err(|error| self.no_agent(&error))
    }

    fn no_agent(&self, error: &io::Error) -> RemoteError {
        RemoteError::AgentMissing {
            program: self.agent.display().to_string(),
            reason: error.to_string(),
        }
    }
}

impl Transport for Ssh {
    fn label(&self) -> &str {
        &self.destination
    }

    fn start(&self) -> Result<Command, RemoteError> {
        Ok(self.with_stub(&stub::start(&self.build()?)))
    }

    fn upload(&self) -> Result<Option<Upload>, RemoteError> {
        let content = std::fs::read(&self.agent).map_err(|error| self.no_agent(&error))?;
        let build = Build::from_bytes(&content);
        Ok(Some(Upload {
            command: self.with_stub(&stub::upload(&build)),
            content,
            arch: build.arch,
        }))
    }

    fn connection(&self, control: &Path) -> Option<Command> {
        let mut command = self.ssh();
        command.arg("-N");
        for option in [
            "ControlMaster=yes",
            "ControlPersist=no",
            "ExitOnForwardFailure=yes",
            "StreamLocalBindMask=0177",
        ] {
            command.args(["-o", option]);
        }
        command
            .arg("-S")
            .arg(unexpanded(control))
            .arg("--")
            .arg(&self.destination);
        let mut command = piped(command);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        Some(command)
    }

    fn configuration(&self) -> Option<Command> {
        let mut command = self.ssh();
        command.args(["-G", "--"]).arg(&self.destination);
        let mut command = piped(command);
        command.stdin(Stdio::null()).kill_on_drop(true);
        Some(command)
    }

    fn request(&self, control: &Path, request: Request, from: &Path, port: u16) -> Option<Command> {
        let mut command = Command::new(&self.ssh);
        let word = match request {
            Request::Open => "forward",
            Request::Cancel => "cancel",
        };
        let mut forward = from.as_os_str().to_owned();
        forward.push(format!(":127.0.0.1:{port}"));
        command
            // ssh sends the forwards of its configuration along with the one asked
            // for. Without a configuration there are none.
            .args(["-T", "-F", "none", "-o", "BatchMode=yes", "-S"])
            .arg(unexpanded(control))
            .args(["-O", word, "-L"])
            .arg(forward)
            .arg("--")
            .arg(&self.destination);
        let mut command = piped(command);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        Some(command)
    }

    fn explain(&self, ending: &Ending) -> RemoteError {
        trouble::explain(&self.destination, ending)
    }

    fn not_started(&self, error: &io::Error) -> RemoteError {
        RemoteError::SshMissing {
            program: self.ssh.display().to_string(),
            reason: error.to_string(),
        }
    }
}

/// A path that ssh, which replaces what follows a percent sign, takes as it is.
fn unexpanded(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    let mut escaped = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        escaped.push(byte);
        if byte == b'%' {
            escaped.push(byte);
        }
    }
    OsString::from_vec(escaped)
}

/// Runs a transport's function where reading files may take its time.
pub(super) async fn apart<T: Send + 'static>(
    transport: &Arc<dyn Transport>,
    work: impl FnOnce(&dyn Transport) -> Result<T, RemoteError> + Send + 'static,
) -> Result<T, RemoteError> {
    let shared = Arc::clone(transport);
    tokio::task::spawn_blocking(move || work(shared.as_ref()))
        .await
        .unwrap_or_else(|error| {
            Err(RemoteError::Protocol {
                host: transport.label().to_owned(),
                detail: error.to_string(),
            })
        })
}
