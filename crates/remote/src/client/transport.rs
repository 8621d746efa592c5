//! How the agent's process is started: the one difference between hosts.

use std::{ffi::OsString, fmt, io, path::PathBuf, process::Stdio, sync::Arc};

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

    /// A command that carries `port` of the host to `local` here. None where there
    /// is nothing to carry.
    fn forward(&self, local: u16, port: u16) -> Option<Command>;

    /// A command that takes such a forward back from a shared connection.
    fn cancel_forward(&self, local: u16, port: u16) -> Option<Command>;

    /// What it means that a started command ended without an answer.
    fn explain(&self, ending: &Ending) -> RemoteError;

    /// What it means that a command could not be started.
    fn not_started(&self, error: &io::Error) -> RemoteError;
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

    fn forward(&self, _local: u16, _port: u16) -> Option<Command> {
        None
    }

    fn cancel_forward(&self, _local: u16, _port: u16) -> Option<Command> {
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
}

impl Ssh {
    /// ssh with its options, up to and without the destination.
    fn ssh(&self) -> Command {
        const OPTIONS: [&str; 10] = [
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
        ];
        let mut command = Command::new(&self.ssh);
        command.arg("-T");
        for option in OPTIONS {
            command.args(["-o", option]);
        }
        if let Some(file) = &self.ssh_config {
            command.arg("-F").arg(file);
        }
        command
    }

    fn with_stub(&self, stub: &str) -> Command {
        let mut command = self.ssh();
        command.arg("--").arg(&self.destination).arg(stub);
        piped(command)
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

    fn forward(&self, local: u16, port: u16) -> Option<Command> {
        let mut command = self.ssh();
        command
            // A shared connection is used, but none is opened for others: it would
            // end with this forward.
            .args([
                "-N",
                "-o",
                "ExitOnForwardFailure=yes",
                "-o",
                "ControlMaster=no",
                "-L",
            ])
            .arg(forwarded(local, port))
            .arg("--")
            .arg(&self.destination);
        let mut command = piped(command);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Some(command)
    }

    fn cancel_forward(&self, local: u16, port: u16) -> Option<Command> {
        let mut command = self.ssh();
        command
            .args(["-O", "cancel", "-L"])
            .arg(forwarded(local, port))
            .arg("--")
            .arg(&self.destination)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
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

fn forwarded(local: u16, port: u16) -> String {
    format!("127.0.0.1:{local}:127.0.0.1:{port}")
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
