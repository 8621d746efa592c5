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
use tokdyno_remote::{Host, RemoteError, RemoteProgram};
use tokio::{
    io::{AsyncRead, AsyncWriteExt},
    process::{Child, ChildStdin, Command},
    task::JoinHandle,
    time::Instant,
};

/// How long a meter may take to stop after it was told to.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// How long it may take to read its specification.
const SPECIFICATION: Duration = Duration::from_secs(10);
/// How long the last lines may be under way from a host.
const LAST_LINES: Duration = Duration::from_secs(10);

/// Why a meter did not start on a host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The spool file here.
    #[error(
        "The spool file cannot be written ({0}). Check the data directory's permissions and space."
    )]
    Spool(#[from] io::Error),
    /// The host.
    #[error(transparent)]
    Host(#[from] RemoteError),
}

/// A measuring process.
pub(crate) struct Meter {
    child: Child,
    /// Its end tells the meter that its parent is gone.
    stdin: Option<ChildStdin>,
    kill_at: Option<Instant>,
    status: Option<ExitStatus>,
    /// Of one on a host: brings its lines into the spool file here.
    copying: Option<Copying>,
    /// Why its lines are not all here; a sentence without its end.
    not_copied: Option<String>,
}

struct Copying {
    task: JoinHandle<io::Result<()>>,
    /// When the program had ended, and lines could still be under way.
    ended_at: Option<Instant>,
}

impl Copying {
    fn begin(lines: impl AsyncRead + Unpin + Send + 'static, spool: File) -> Self {
        Self {
            task: tokio::spawn(copy(lines, tokio::fs::File::from_std(spool))),
            ended_at: None,
        }
    }
}

impl Meter {
    /// Starts a meter and hands it its specification.
    pub(crate) async fn start(program: &Path, spec: &MeterSpec, log: File) -> io::Result<Self> {
        let mut line = serde_json::to_vec(spec)?;
        line.push(b'\n');
        let child = Command::new(program)
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
        Ok(Self::with_specification(child, &line, None).await)
    }

    /// Starts a meter on a host. It writes its lines to its standard output; they
    /// are appended to the spool file here.
    pub(crate) async fn start_on(
        host: &Host,
        program: &RemoteProgram,
        spec: &MeterSpec,
        spool: &Path,
        log: File,
    ) -> Result<Self, StartError> {
        let mut line = serde_json::to_vec(spec).map_err(io::Error::from)?;
        line.push(b'\n');
        let file = std::fs::OpenOptions::new().append(true).open(spool)?;
        let mut child = host.program(program, &[]).spawn().await?;
        if let Some(errors) = child.stderr.take() {
            // Ends with the program's own end of it, or is of no interest any more.
            tokio::spawn(copy(errors, tokio::fs::File::from_std(log)));
        }
        let copying = child.stdout.take().map(|lines| Copying::begin(lines, file));
        Ok(Self::with_specification(child, &line, copying).await)
    }

    async fn with_specification(mut child: Child, line: &[u8], copying: Option<Copying>) -> Self {
        let mut stdin = child.stdin.take();
        if let Some(pipe) = &mut stdin {
            let written = tokio::time::timeout(SPECIFICATION, async {
                pipe.write_all(line).await?;
                pipe.flush().await
            })
            .await;
            // A meter that died meanwhile is found dead by the caller; its log
            // says more than a broken pipe.
            if written.is_err() {
                stdin = None;
            }
        }
        Self {
            child,
            stdin,
            kill_at: None,
            status: None,
            copying,
            not_copied: None,
        }
    }

    /// How it ended, if it has. One whose lines cannot be kept is told to stop.
    pub(crate) async fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        let Some(mut copying) = self.copying.take() else {
            return Ok(self.status);
        };
        if copying.task.is_finished() {
            self.not_copied = match copying.task.await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(error) => Some(error.to_string()),
            };
            if self.not_copied.is_some() && self.status.is_none() {
                self.cancel().await;
            }
            return Ok(self.status);
        }
        // Not before its last line is here.
        if self.status.is_some() {
            let ended_at = *copying.ended_at.get_or_insert_with(Instant::now);
            if ended_at.elapsed() >= LAST_LINES {
                self.not_copied = Some(format!(
                    "its last lines did not come within {} s",
                    LAST_LINES.as_secs()
                ));
                copying.task.abort();
                return Ok(self.status);
            }
        }
        self.copying = Some(copying);
        Ok(None)
    }

    /// Why the lines of one on a host are not all here, if they are not.
    pub(crate) fn not_copied(&self) -> Option<&str> {
        self.not_copied.as_deref()
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

/// Copies until the end, so that each piece can be read at once.
async fn copy(mut from: impl AsyncRead + Unpin, mut to: tokio::fs::File) -> io::Result<()> {
    tokio::io::copy(&mut from, &mut to).await?;
    to.flush().await
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn over(meter: &mut Meter) -> ExitStatus {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = meter.ended().await.expect("watched") {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
            meter.kill_if_overdue();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn copying_to(spool: File, script: &str) -> Meter {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("started");
        let lines = child.stdout.take().expect("piped");
        let copying = Some(Copying::begin(lines, spool));
        Meter::with_specification(child, b"{}\n", copying).await
    }

    #[tokio::test]
    async fn a_meter_whose_lines_cannot_be_kept_is_told_to_stop_and_says_why() {
        let full = std::fs::OpenOptions::new()
            .append(true)
            .open("/dev/full")
            .expect("opened");
        // It goes on until it is told to stop.
        let script = "read -r spec; echo line; read -r word; exit 0";
        let mut meter = copying_to(full, script).await;
        over(&mut meter).await;
        let why = meter.not_copied().expect("a reason");
        assert!(why.contains("space"), "{why}");
    }

    #[tokio::test]
    async fn a_meter_has_ended_once_its_last_line_is_here() {
        let file = tempfile::NamedTempFile::new().expect("made");
        let spool = file.reopen().expect("opened");
        let mut meter = copying_to(spool, "read -r spec; echo first; echo last").await;
        assert!(over(&mut meter).await.success());
        assert_eq!(meter.not_copied(), None);
        let kept = std::fs::read_to_string(file.path()).expect("read");
        assert_eq!(kept, "first\nlast\n");
    }
}
