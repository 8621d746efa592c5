//! `tokdyno set-password`: the operator's password, for launching from elsewhere.

use std::io;

use tokdyno_domain::access::Actor;
use tokdyno_lab::LabError;

use crate::{
    cli::SetPasswordArguments,
    data_dir,
    database::{Database, DatabaseError, open_without_worker},
    logging,
    password::{self, PasswordError},
};

/// Why the password was not set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetPasswordError {
    #[error(transparent)]
    Password(#[from] PasswordError),
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

/// Asks for it and stores its hash. Whoever is signed in has to sign in again.
///
/// # Errors
/// [`SetPasswordError`] with its remedy.
pub(crate) fn run(arguments: &SetPasswordArguments) -> Result<(), SetPasswordError> {
    logging::start();
    let password = if arguments.stdin {
        password::from_input(io::stdin().lock())?
    } else {
        password::from_terminal()?
    };
    let data_dir = data_dir::choose(arguments.store.data_dir.as_deref())?;
    let runtime = tokio::runtime::Runtime::new().map_err(SetPasswordError::Runtime)?;
    let database = Database::for_command(arguments.store.database_url.as_deref(), &data_dir)?;
    let outcome = runtime.block_on(async {
        let lab = open_without_worker(&database, data_dir).await?;
        let set = lab.set_password(&Actor::LOCAL, &password);
        tokdyno_lab::acting_from("the command line", set).await
    });
    runtime.shutdown_background();
    database.stop();
    outcome?;
    println!("The operator's password is set. Sign in with it at /sign-in.");
    Ok(())
}
