//! A throwaway PostgreSQL for the time of a command.
//!
//! It is owned by a process of its own that ends it when a pipe closes, so
//! that nothing is left behind, however this process ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use tokdyno_pgcluster::{Cluster, Config, Durability};

use crate::commands;

/// A database that lives as long as this value.
pub(crate) struct ThrowawayDb {
    holder: Child,
    lifeline: Option<ChildStdin>,
    /// A superuser's address: it may create databases.
    pub(crate) url: String,
    /// Where psql lies.
    pub(crate) bin_dir: String,
}

impl ThrowawayDb {
    /// Starts one, empty.
    ///
    /// # Errors
    /// There is no PostgreSQL, or it does not start; the reason was printed.
    pub(crate) fn start() -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("tokdyno-db-")
            // PostgreSQL runs as another user where we are root.
            .permissions(std::fs::Permissions::from_mode(0o711))
            .tempdir()
            .context("no directory for a throwaway database")?
            .keep();
        // Not by its name: a build may have replaced this program's file meanwhile.
        let mut holder = Command::new("/proc/self/exe")
            .arg("hold-db")
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C ends us and thereby closes the pipe.
            .process_group(0)
            .spawn()
            .context("the owner of the throwaway database cannot be started")?;
        let lifeline = holder.stdin.take();
        let mut lines = BufReader::new(holder.stdout.take().context("no pipe")?).lines();
        let (Some(Ok(url)), Some(Ok(bin_dir))) = (lines.next(), lines.next()) else {
            bail!("the throwaway database did not start");
        };
        Ok(Self {
            holder,
            lifeline,
            url,
            bin_dir,
        })
    }
}

impl Drop for ThrowawayDb {
    fn drop(&mut self) {
        self.lifeline = None;
        if let Err(error) = self.holder.wait() {
            eprintln!("xtask: the throwaway database's owner: {error}");
        }
    }
}

/// Runs a command with `DATABASE_URL` and returns its exit code.
///
/// # Errors
/// The database or the command cannot be started.
pub(crate) fn run(command: &[String]) -> Result<ExitCode> {
    let (program, arguments) = command.split_first().context("no command was given")?;
    let database = ThrowawayDb::start()?;
    let status = commands::status(
        Command::new(program)
            .args(arguments)
            .env("DATABASE_URL", &database.url),
    )?;
    // A command that a signal ended has no code; 1 stands for it.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Owns a cluster below `directory` until standard input ends, then removes both.
///
/// # Errors
/// It does not start or stop.
pub(crate) fn hold(directory: &Path) -> Result<()> {
    let outcome = hold_cluster(directory);
    std::fs::remove_dir_all(directory)
        .with_context(|| format!("{} cannot be removed", directory.display()))?;
    outcome
}

fn hold_cluster(directory: &Path) -> Result<()> {
    let cluster = Cluster::ensure(&Config {
        durability: Durability::Throwaway,
        ..Config::new(directory)
    })?;
    println!("{}", cluster.url().as_str());
    println!("{}", cluster.bin_dir().display());
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    cluster.stop()?;
    Ok(())
}
