//! Other programs, asked for facts: for a bounded time, with a bounded answer.

use std::{
    env,
    ffi::OsStr,
    io::Read,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long a question may take. A driver in trouble answers after minutes, or never.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
const MOST: u64 = 4 << 20;

/// Where a program lies, if it is on the host.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    super::execute::find(
        OsStr::new(program),
        env::var_os("PATH").as_deref(),
        Path::new("/"),
    )
    .ok()
}

/// Standard output of a program that ended well.
///
/// # Errors
/// A sentence that says what it said instead.
pub(super) fn ask(program: &Path, arguments: &[&str], limit: Duration) -> Result<String, String> {
    let name = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy()
        .into_owned();
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{name} could not be started: {error}."))?;
    let (send, receive) = mpsc::sync_channel(1);
    if let Some(pipe) = child.stdout.take() {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = pipe.take(MOST).read_to_end(&mut bytes).map(|_| bytes);
            // The asker may have given up.
            let _ = send.try_send(read);
        });
    }
    let until = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => break None,
        }
    };
    let Some(status) = status else {
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        // Reaped here unless it hangs in the driver, where not even a kill helps.
        thread::sleep(Duration::from_millis(20));
        let _ = child.try_wait();
        return Err(format!(
            "{name} did not answer within {} s and was stopped.",
            limit.as_secs()
        ));
    };
    let bytes = receive
        .recv_timeout(Duration::from_secs(1))
        .map_err(|_| format!("{name} left its output open."))?
        .map_err(|error| format!("{name}'s output could not be read: {error}."))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if status.success() {
        Ok(text)
    } else {
        let said = text.lines().map(str::trim).find(|line| !line.is_empty());
        Err(format!(
            "{name} failed: {}.",
            said.unwrap_or("it said nothing").trim_end_matches('.')
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_failures_and_hangs_are_told_apart() {
        let sh = find("sh").expect("a shell");
        assert_eq!(ask(&sh, &["-c", "echo 7"], LIMIT), Ok("7\n".to_owned()));
        let failed = ask(&sh, &["-c", "echo no field; exit 2"], LIMIT).expect_err("failed");
        assert!(failed.contains("no field"), "{failed}");
        let began = Instant::now();
        let hung = ask(&sh, &["-c", "sleep 30 & wait"], Duration::from_millis(200));
        assert!(hung.expect_err("hung").contains("did not answer"));
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(find("no-such-program-anywhere"), None);
    }
}
