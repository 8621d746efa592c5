//! The measuring process: started, told to stop, waited for.

use std::{
    fs::File,
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokdyno_domain::meter::{CANCEL_WORD, MeterSpec};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, Command},
    time::Instant,
};

/// How long a meter may take to stop after it was told to.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// How long it may take to read its specification.
const SPECIFICATION: Duration = Duration::from_secs(10);

/// A measuring process.
pub(crate) struct Meter {
    child: Child,
    /// Its end tells the meter that its parent is gone.
    stdin: Option<ChildStdin>,
    kill_at: Option<Instant>,
    status: Option<ExitStatus>,
}

impl Meter {
    /// Starts a meter and hands it its specification.
    pub(crate) async fn start(program: &Path, spec: &MeterSpec, log: File) -> io::Result<Self> {
        let mut line = serde_json::to_vec(spec)?;
        line.push(b'\n');
        let mut child = Command::new(program)
            // Its own group: an interrupt from the keyboard must not end it before
            // the server has said so.
            .process_group(0)
            // Holds a password, and the meter knows no database.
            .env_remove("DATABASE_URL")
            .stdin(Stdio::piped())
            // The spool file has the same lines.
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(false)
            .spawn()?;
        let mut stdin = child.stdin.take();
        if let Some(pipe) = &mut stdin {
            let written = tokio::time::timeout(SPECIFICATION, async {
                pipe.write_all(&line).await?;
                pipe.flush().await
            })
            .await;
            // A meter that died meanwhile is found dead by the caller; its log
            // says more than a broken pipe.
            if written.is_err() {
                stdin = None;
            }
        }
        Ok(Self {
            child,
            stdin,
            kill_at: None,
            status: None,
        })
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    /// Tells it to stop. If it has not within the grace, it is killed.
    pub(crate) async fn cancel(&mut self) {
        if self.kill_at.is_some() {
            return;
        }
        self.kill_at = Some(Instant::now() + GRACE);
        if let Some(pipe) = &mut self.stdin {
            let word = format!("{CANCEL_WORD}\n");
            // A meter that reads no more is killed below.
            let _ = tokio::time::timeout(Duration::from_secs(1), async {
                pipe.write_all(word.as_bytes()).await?;
                pipe.flush().await
            })
            .await;
        }
    }

    /// Tells it that its parent is going.
    pub(crate) fn leave(&mut self) {
        self.stdin = None;
    }

    /// Kills it if it was told to stop and has not.
    pub(crate) fn kill_if_overdue(&mut self) {
        if self.status.is_none() && self.kill_at.is_some_and(|at| Instant::now() >= at) {
            let _ = self.child.start_kill();
        }
    }

    /// Stops it, whatever it is doing, and waits until it is gone.
    pub(crate) async fn stop(&mut self) {
        self.cancel().await;
        self.leave();
        if tokio::time::timeout(GRACE, self.child.wait())
            .await
            .is_err()
        {
            let _ = self.child.start_kill();
            let _ = self.child.wait().await;
        }
    }
}

/// Why a meter that said nothing about its end has ended.
pub(crate) fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}

/// Is the process with this number a meter of this program, and alive? Numbers
/// are used again, hence the look at its command line.
pub(crate) fn is_alive(pid: u32, program: &Path) -> bool {
    let Some(process) = process(pid) else {
        return false;
    };
    if test_kill_process(process).is_err() {
        return false;
    }
    let Ok(command) = std::fs::read(format!("/proc/{pid}/cmdline")) else {
        return false;
    };
    // A zombie's is empty. A script's is that of its interpreter, then its own.
    command
        .split(|byte| *byte == 0)
        .take(2)
        .any(|word| word == program.as_os_str().as_encoded_bytes())
}

/// Kills a meter that a former life of this program left behind.
pub(crate) fn kill(pid: u32) {
    if let Some(process) = process(pid) {
        let _ = kill_process(process, Signal::KILL);
    }
}

fn process(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
