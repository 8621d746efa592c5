//! `tokdyno import FILE…`: stores result files.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use tokdyno_domain::access::Actor;
use tokdyno_lab::{Lab, LabError};

use crate::{
    cli::ImportArguments,
    data_dir,
    database::{Database, DatabaseError, open_without_worker},
    logging,
    safety::body,
};

/// Why nothing could be imported at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    #[error(transparent)]
    DataDir(#[from] data_dir::NoDataDir),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(
        "The program could not be started ({0}). Look at the machine's limits on processes and memory."
    )]
    Runtime(io::Error),
}

/// Why one file was not imported.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("It cannot be read ({0}). Check its name and its permissions.")]
    Read(#[from] io::Error),
    #[error("It is larger than {} MiB, which is more than is taken. Write it with fewer requests or repeats.", body::IMPORT >> 20)]
    TooLarge,
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// Stores each file; success only if all are stored.
///
/// # Errors
/// [`ImportError`] when there is no store to put them into.
pub(crate) fn run(arguments: &ImportArguments) -> Result<ExitCode, ImportError> {
    logging::start();
    let data_dir = data_dir::choose(arguments.store.data_dir.as_deref())?;
    let runtime = tokio::runtime::Runtime::new().map_err(ImportError::Runtime)?;
    let database = Database::for_command(arguments.store.database_url.as_deref(), &data_dir)?;
    let outcome = runtime.block_on(import_all(&database, data_dir, &arguments.files));
    runtime.shutdown_background();
    database.stop();
    outcome
}

async fn import_all(
    database: &Database,
    data_dir: PathBuf,
    files: &[PathBuf],
) -> Result<ExitCode, ImportError> {
    let lab = open_without_worker(database, data_dir).await?;
    let mut code = ExitCode::SUCCESS;
    for file in files {
        match import_one(&lab, file).await {
            Ok(sentence) => println!("{}: {sentence}", file.display()),
            Err(error) => {
                eprintln!("tokdyno: {} was not imported. {error}", file.display());
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

async fn import_one(lab: &Lab, file: &Path) -> Result<String, FileError> {
    let bytes = read(file)?;
    let imported = lab.import(&Actor::LOCAL, &bytes).await?;
    Ok(if imported.already_there {
        format!("already there as run {}", imported.run)
    } else {
        format!("stored as run {}", imported.run)
    })
}

fn read(file: &Path) -> Result<Vec<u8>, FileError> {
    let source: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(file)?)
    };
    let mut bytes = Vec::new();
    source
        .take(body::IMPORT as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > body::IMPORT {
        return Err(FileError::TooLarge);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_says_so() {
        let error = read(Path::new("/nowhere/result.json")).expect_err("missing");
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }
}
