//! Owns the cluster below a directory until its standard input ends. It is the
//! process that the tests kill, and a way to try a cluster by hand:
//! `tokdyno-pgcluster-owner DIRECTORY`. Prints the postmaster's process id.

use std::io::{Read, Write};
use std::process::ExitCode;

use tokdyno_pgcluster::{Cluster, Config};

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1) else {
        eprintln!("Name a directory: tokdyno-pgcluster-owner DIRECTORY");
        return ExitCode::from(2);
    };
    match own(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn own(directory: &std::ffi::OsStr) -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::ensure(&Config::new(directory))?;
    println!("{}", cluster.pid());
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    cluster.stop()?;
    Ok(())
}
