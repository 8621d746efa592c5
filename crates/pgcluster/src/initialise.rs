//! Making a cluster that is complete or not there at all.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::account::Account;
use crate::binaries::Binaries;
use crate::layout::{Layout, write_private};
use crate::{ClusterError, Config, DATABASE_NAME, Durability};

/// Settings of a new cluster. They are the user's to change afterwards; what
/// must hold at every start is given on the command line instead.
const SETTINGS: &str = "\n# Set when tokdyno made this cluster.\n\
    max_connections = 60\n\
    shared_buffers = 128MB\n";

/// Settings of a cluster that a test throws away: many tests share it.
const THROWAWAY_SETTINGS: &str = "\n# A cluster for tests.\n\
    max_connections = 200\n\
    shared_buffers = 128MB\n";

/// How much of a failed program's output goes into a message.
const SHOWN_OUTPUT: usize = 600;

/// Locales in order of preference: the first sorts and folds case by Unicode's
/// rules, the second exists everywhere.
const LOCALES: &[&str] = &["C.UTF-8", "C"];

/// The password of the cluster's superuser; made up and kept if there is none.
///
/// Returns it with whether it is new.
///
/// # Errors
/// The file cannot be read or written, or there are no random bytes.
pub(crate) fn password(layout: &Layout, account: &Account) -> Result<(String, bool), ClusterError> {
    let path = layout.password_file();
    if let Some(password) = read_password(layout)? {
        return Ok((password, false));
    }
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(ClusterError::Random)?;
    let password = hex::encode(bytes);
    write_private(&path, &password, account)?;
    Ok((password, true))
}

/// The password in its file, or `None` where there is no file.
///
/// # Errors
/// The file is there and cannot be read.
pub(crate) fn read_password(layout: &Layout) -> Result<Option<String>, ClusterError> {
    let path = layout.password_file();
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ClusterError::io("Reading", &path)(error)),
    }
}

/// Makes the cluster with its database. It is prepared under another name and
/// renamed at the end, so that a crash on the way leaves none.
///
/// # Errors
/// A step failed.
pub(crate) fn create_cluster(
    config: &Config,
    layout: &Layout,
    account: &Account,
    binaries: &Binaries,
) -> Result<(), ClusterError> {
    let unfinished = layout.unfinished_dir();
    initdb(config, layout, account, binaries)?;
    let settings = match config.durability {
        Durability::Durable => SETTINGS,
        Durability::Throwaway => THROWAWAY_SETTINGS,
    };
    let file = unfinished.join("postgresql.conf");
    std::fs::OpenOptions::new()
        .append(true)
        .open(&file)
        .and_then(|mut file| file.write_all(settings.as_bytes()))
        .map_err(ClusterError::io("Writing", &file))?;
    single_user(
        layout,
        account,
        binaries,
        &unfinished,
        &format!("CREATE DATABASE {DATABASE_NAME}\n"),
    )?;
    let cluster = layout.cluster_dir();
    std::fs::rename(&unfinished, &cluster).map_err(ClusterError::io("Making", &cluster))?;
    std::fs::File::open(&layout.home)
        .and_then(|directory| directory.sync_all())
        .map_err(ClusterError::io("Writing", &layout.home))
}

/// Gives the superuser this password, in a cluster that does not run.
///
/// # Errors
/// PostgreSQL refused.
pub(crate) fn set_password(
    layout: &Layout,
    account: &Account,
    binaries: &Binaries,
    password: &str,
) -> Result<(), ClusterError> {
    single_user(
        layout,
        account,
        binaries,
        &layout.cluster_dir(),
        &format!("ALTER ROLE {DATABASE_NAME} PASSWORD '{password}'\n"),
    )
}

fn initdb(
    config: &Config,
    layout: &Layout,
    account: &Account,
    binaries: &Binaries,
) -> Result<(), ClusterError> {
    let unfinished = layout.unfinished_dir();
    let program = binaries.bin_dir.join("initdb");
    let mut said = String::new();
    for locale in LOCALES {
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished)
                .map_err(ClusterError::io("Removing", &unfinished))?;
        }
        let mut command = account.command(&program, &layout.home);
        command
            .arg("--pgdata")
            .arg(&unfinished)
            .arg("--pwfile")
            .arg(layout.password_file())
            .args(["--username", DATABASE_NAME])
            .args(["--auth", "scram-sha-256"])
            .args(["--encoding", "UTF8"])
            .args(["--locale", locale]);
        if config.durability == Durability::Throwaway {
            command.arg("--no-sync");
        }
        let output = run(command, &program, account, "")?;
        if output.status.success() {
            return Ok(());
        }
        said = last_words(&output);
    }
    Err(ClusterError::Initialise {
        step: "initdb",
        output: said,
    })
}

/// Runs one statement in PostgreSQL's single-user mode.
fn single_user(
    layout: &Layout,
    account: &Account,
    binaries: &Binaries,
    cluster: &Path,
    statement: &str,
) -> Result<(), ClusterError> {
    let program = binaries.bin_dir.join("postgres");
    let mut command = account.command(&program, &layout.home);
    command
        .arg("--single")
        .arg("-D")
        .arg(cluster)
        .args(["-c", "exit_on_error=true"])
        // A failed statement must not put a password into the output.
        .args(["-c", "log_min_error_statement=panic"])
        .arg("postgres");
    let output = run(command, &program, account, statement)?;
    if output.status.success() {
        Ok(())
    } else {
        Err(ClusterError::Initialise {
            step: "PostgreSQL's single-user mode",
            output: last_words(&output),
        })
    }
}

/// Runs a short-lived program, feeding it `input`.
fn run(
    mut command: Command,
    program: &Path,
    account: &Account,
    input: &str,
) -> Result<Output, ClusterError> {
    let cannot = |source| ClusterError::CannotRun {
        program: program.to_path_buf(),
        user: account.other_name().map(str::to_owned),
        source,
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ended without reading has said why on its output.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(cannot)
}

fn last_words(output: &Output) -> String {
    let text = [&*output.stdout, &*output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    let start = text
        .char_indices()
        .map(|(index, _)| index)
        .rev()
        .take(SHOWN_OUTPUT)
        .last()
        .unwrap_or(0);
    format!("{} ({})", &text[start..], output.status)
}
