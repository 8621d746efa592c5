//! Programs of ours on a host: copied once, then run with their own streams.

use std::{path::Path, time::Duration};

use tokio::{process::Child, time::timeout};

use super::{build::Build, error::RemoteError, host::Host};
use crate::wire::{Order, RawCommand};

/// How long a program may take to be copied.
const COPY: Duration = Duration::from_secs(600);
/// How long it may take to be started.
const START: Duration = Duration::from_secs(30);

/// A program on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteProgram {
    /// Its path there.
    pub path: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

pub(super) async fn ensure(host: &Host, local: &Path) -> Result<RemoteProgram, RemoteError> {
    let missing = |reason: String| RemoteError::AgentMissing {
        program: local.display().to_string(),
        reason,
    };
    let path = local.to_owned();
    let build = tokio::task::spawn_blocking(move || Build::of(&path))
        .await
        .map_err(|error| missing(error.to_string()))?
        .map_err(|error| missing(error.to_string()))?;
    let sha256 = build.sha256;
    if host.is_local() {
        let path = std::path::absolute(local).map_err(|error| missing(error.to_string()))?;
        return Ok(RemoteProgram {
            path: path.display().to_string(),
            sha256,
        });
    }
    let asked = Order::HasProgram {
        sha256: sha256.clone(),
    };
    if let Some(path) = host.ask::<Option<String>>(&asked, START).await? {
        return Ok(RemoteProgram { path, sha256 });
    }
    let content = tokio::fs::read(local)
        .await
        .map_err(|error| missing(error.to_string()))?;
    let order = Order::PutProgram {
        sha256: sha256.clone(),
        size: content.len() as u64,
    };
    let block = host.order(&order)?.finish();
    let path = host.exchange(&[&block, &content], COPY).await?;
    Ok(RemoteProgram { path, sha256 })
}

/// A program that is about to run on a host, as if it were a child of this process:
/// what is written to its standard input arrives there, and its output comes here,
/// nothing added. It ends as its own standard input ends, if it heeds that.
#[derive(Debug)]
pub struct Piped {
    host: Host,
    command: RawCommand,
}

impl Piped {
    pub(super) fn new(host: Host, program: &RemoteProgram, arguments: &[&str]) -> Self {
        let words = std::iter::once(program.path.as_str()).chain(arguments.iter().copied());
        Self {
            host,
            command: RawCommand::new(words),
        }
    }

    /// Sets a variable of the program.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command
            .environment
            .push((name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        self
    }

    /// Starts it. All three streams of the child are pipes, and the program's own.
    /// Locally the child is the program itself, over SSH it is `ssh`. It is not killed
    /// when dropped.
    ///
    /// # Errors
    /// [`RemoteError`], as reaching a host and starting a program.
    pub async fn spawn(self) -> Result<Child, RemoteError> {
        // One byte at a time: what follows the answer is the program's output.
        let (mut session, _) = self.host.session(1).await?;
        let block = self.host.order(&Order::Exec)?.command(&self.command);
        let block = block
            .map_err(|failure| self.host.refused(failure))?
            .finish();
        let answer = async {
            session.send(&[&block]).await?;
            session.reply::<()>().await
        };
        match timeout(START, answer).await {
            Ok(answer) => answer?,
            Err(_) => return Err(session.timed_out(START)),
        }
        session.into_child().await
    }
}
