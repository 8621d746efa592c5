//! The server: the stand-in engine with a known schedule.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::process;
use crate::commands;

/// A stand-in engine on a port of its own.
pub(super) struct StandIn {
    child: Child,
    /// `http://host:port`.
    pub(super) url: String,
}

impl StandIn {
    /// Starts it on a core, with these arguments besides the usual ones.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn start(
        program: &Path,
        core: usize,
        log: &Path,
        arguments: &[String],
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(["sglang", "--model-path", "stand-in", "--tp-size", "8"])
            .args(["--port", "0", "--max-running-requests", "4096"])
            .args(arguments)
            .arg("--sim-log")
            .arg(log)
            .stdout(Stdio::piped());
        let mut child = process::spawn_on(core, &mut command)?;
        let mut lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        let url = lines
            .next()
            .transpose()?
            .and_then(|line| Some(line.split_once("listening on ")?.1.trim().to_owned()));
        // Whatever else it says is read and dropped: a full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        match url {
            Some(url) => Ok(Self { child, url }),
            None => {
                child.kill()?;
                child.wait()?;
                bail!("the stand-in engine did not say its address");
            }
        }
    }

    /// Ends it in order, so that its log is complete.
    pub(super) fn stop(mut self) -> Result<()> {
        commands::interrupt(&self.child)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        // Already ended in the usual case, which is no error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
