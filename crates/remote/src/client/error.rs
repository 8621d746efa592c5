//! What can go wrong on the way to a host, in words for people.

use crate::wire::Failure;

/// Why something could not be done on a host. `said` is what ssh, or whatever stood
/// in its place, printed last.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Nobody has accepted this host's key yet.
    #[error(
        "The host key of {host} is not known, so it is not certain who answers there. Connect once with `ssh {host}` as the user that runs Tokdyno, compare the fingerprint, and accept it."
    )]
    UnknownHostKey {
        /// Which host.
        host: String,
        /// ssh's last lines.
        said: String,
    },
    /// The host has another key than the accepted one.
    #[error(
        "The host key of {host} is not the one that was accepted before: the host was installed anew, or somebody else answers in its place. Ask its administrator; if the change is meant, remove the old key with `ssh-keygen -R {host}` and connect once with `ssh {host}`."
    )]
    ChangedHostKey {
        /// Which host.
        host: String,
        /// ssh's last lines.
        said: String,
    },
    /// The host does not let this user in.
    #[error(
        "{host} refuses the login: none of the keys that ssh offers is accepted there. Tokdyno never asks for a password. Load the key into the SSH agent or name it in ~/.ssh/config, and add its public half to the account's authorized_keys."
    )]
    Refused {
        /// Which host.
        host: String,
        /// ssh's last lines.
        said: String,
    },
    /// No such name.
    #[error(
        "The name {host} leads nowhere: no address is known for it. Check the spelling, or give it an alias with a HostName in ~/.ssh/config."
    )]
    UnknownName {
        /// Which host.
        host: String,
        /// ssh's last lines.
        said: String,
    },
    /// Nobody answers.
    #[error(
        "{host} cannot be reached: nobody answers at its address and port. Check that the machine is on, that its SSH server runs, and that no firewall or VPN is in the way."
    )]
    Unreachable {
        /// Which host.
        host: String,
        /// ssh's last lines.
        said: String,
    },
    /// ssh does not take its configuration.
    #[error("ssh does not accept its configuration for {host}. Correct what it names: {said}")]
    Configuration {
        /// Which host.
        host: String,
        /// ssh's last lines.
        said: String,
    },
    /// No `ssh` here.
    #[error(
        "The program {program} could not be started ({reason}). Install OpenSSH's client on the machine that runs Tokdyno, or name its path in the settings."
    )]
    SshMissing {
        /// Program that was tried.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// No agent to be started or copied.
    #[error(
        "Tokdyno's agent {program} cannot be used ({reason}). It lies beside the program `tokdyno`; install it there again."
    )]
    AgentMissing {
        /// File that was tried.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// The connection was there and is not any more.
    #[error(
        "The connection to {host} was cut. What runs there goes on; it is found again as soon as the host can be reached."
    )]
    Cut {
        /// Which host.
        host: String,
        /// ssh's last lines.
        said: String,
    },
    /// The agent does not run on such a machine.
    #[error(
        "{host} is a machine of another kind: it is {theirs}, and the agent at hand is built for {ours}. Build the agent for {theirs}."
    )]
    OtherArchitecture {
        /// Which host.
        host: String,
        /// What the host is.
        theirs: String,
        /// What the agent was built for.
        ours: String,
    },
    /// No place on the host from where the agent could run.
    #[error(
        "There is no place on {host} for the agent: neither the cache folder in the home directory nor /tmp can be written and executed from ({reason}). Free some space there, or set XDG_CACHE_HOME to a place on a file system without noexec."
    )]
    NoPlace {
        /// Which host.
        host: String,
        /// What was tried.
        reason: String,
    },
    /// The agent lies there and does not start.
    #[error(
        "The agent does not start on {host}: {said}. Use a statically linked build of the agent, and check that the account's login shell runs commands."
    )]
    AgentBroken {
        /// Which host.
        host: String,
        /// What was printed instead.
        said: String,
    },
    /// The agent did not do it.
    #[error("{failure}")]
    Agent {
        /// Which host.
        host: String,
        /// What it said.
        failure: Failure,
    },
    /// Agent and dashboard do not understand each other.
    #[error(
        "The agent on {host} answered something unexpected ({detail}). Start the dashboard again, so that both are of one version."
    )]
    Protocol {
        /// Which host.
        host: String,
        /// What was wrong.
        detail: String,
    },
    /// It took too long.
    #[error(
        "{host} did not answer within {seconds} s. It may be overloaded, or its file system or driver may hang. Look at it, then try again."
    )]
    TimedOut {
        /// Which host.
        host: String,
        /// The limit, in seconds.
        seconds: u64,
    },
    /// A command was still running at the end of its time.
    #[error(
        "The command on {host} had not ended after {seconds} s, so it was stopped there. Look what it waits for, then try again."
    )]
    CommandTimedOut {
        /// Which host.
        host: String,
        /// The limit, in seconds.
        seconds: u64,
    },
    /// The host is reached, but not its port.
    #[error(
        "No way to port {port} of {host} could be opened ({reason}). Check that ssh may forward ports there and that the folder for temporary files here can be written, then try again."
    )]
    NoForward {
        /// Which host.
        host: String,
        /// Its port.
        port: u16,
        /// What ssh or the system said.
        reason: String,
    },
}

impl RemoteError {
    /// The kind, as stored.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::UnknownHostKey { .. } => "unknown_host_key",
            Self::ChangedHostKey { .. } => "changed_host_key",
            Self::Refused { .. } => "refused",
            Self::UnknownName { .. } => "unknown_name",
            Self::Unreachable { .. } => "unreachable",
            Self::Configuration { .. } => "configuration",
            Self::SshMissing { .. } => "ssh_missing",
            Self::AgentMissing { .. } => "agent_missing",
            Self::Cut { .. } => "cut",
            Self::OtherArchitecture { .. } => "other_architecture",
            Self::NoPlace { .. } => "no_place",
            Self::AgentBroken { .. } => "agent_broken",
            Self::Agent { failure, .. } => failure.word.word(),
            Self::Protocol { .. } => "protocol",
            Self::TimedOut { .. } | Self::CommandTimedOut { .. } => "timed_out",
            Self::NoForward { .. } => "no_forward",
        }
    }

    /// What ssh printed last, for whoever looks closer.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::UnknownHostKey { said, .. }
            | Self::ChangedHostKey { said, .. }
            | Self::Refused { said, .. }
            | Self::UnknownName { said, .. }
            | Self::Unreachable { said, .. }
            | Self::Configuration { said, .. }
            | Self::Cut { said, .. }
            | Self::AgentBroken { said, .. } => Some(said).filter(|said| !said.is_empty()),
            Self::NoPlace { reason, .. } | Self::NoForward { reason, .. } => Some(reason),
            Self::Protocol { detail, .. } => Some(detail),
            _ => None,
        }
        .map(String::as_str)
    }

    /// Was the host out of reach, so that trying again later may help, and what runs
    /// there may well go on?
    #[must_use]
    pub const fn is_connection(&self) -> bool {
        matches!(
            self,
            Self::UnknownName { .. }
                | Self::Unreachable { .. }
                | Self::Cut { .. }
                | Self::TimedOut { .. }
        )
    }

    /// What the agent said, if it was the agent that refused.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Agent { failure, .. } => Some(failure),
            _ => None,
        }
    }
}
