//! The program that works on a host. See [`tokdyno_remote::agent`].

use std::process::ExitCode;

fn main() -> ExitCode {
    tokdyno_remote::agent::main(std::env::args_os())
}
