//! One request, one answer.

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use serde::Serialize;

use super::{
    engines, files, folder::Folder, inventory, launch, liveness::Client, ports, programs, restore,
    run, sample, stop, users,
};
use crate::wire::{Failure, FailureWord, Fields, GREETING, Hello, Order, Reply, RunHead};

/// Greets, reads one request from standard input, and answers it.
pub(super) fn serve_one() -> ExitCode {
    // Unbuffered: what follows the request may belong to another program.
    let duplicate = |fd: io::Result<std::os::fd::OwnedFd>| fd.map(File::from);
    let input = duplicate(std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned());
    let output = duplicate(std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned());
    let (Ok(input), Ok(output)) = (input, output) else {
        return ExitCode::FAILURE;
    };
    match answer(input, output) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody listens any more; there is nobody to tell.
        Err(_) => ExitCode::FAILURE,
    }
}

fn reply<T: Serialize>(out: &mut File, result: Result<T, Failure>) -> io::Result<()> {
    let reply = match result {
        Ok(value) => Reply::Ok(value),
        Err(failure) => Reply::Failed(failure),
    };
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    out.write_all(&line)
}

fn answer(mut input: File, mut out: File) -> io::Result<()> {
    // On a line of its own, even after a banner without an end.
    out.write_all(format!("\n{GREETING}\n").as_bytes())?;
    let mut fields = Fields::read(&mut input)?;
    let order = match fields.order::<Order>() {
        Ok(order) => order,
        Err(failure) => return reply::<()>(&mut out, Err(failure)),
    };
    match order {
        Order::Hello => reply(
            &mut out,
            Ok(Hello {
                hostname: inventory::hostname(),
                user: users::own(),
                arch: std::env::consts::ARCH.to_owned(),
            }),
        ),
        Order::Inventory => reply(&mut out, Ok(inventory::take())),
        Order::Engines => reply(&mut out, Ok(engines::find())),
        Order::Process { pid, names } => reply(&mut out, engines::facts(pid, &names)),
        Order::Run { stdin } => {
            let done = fields
                .command()
                .and_then(|command| Ok((command, run::payload(&mut input, stdin)?)))
                .and_then(|(command, stdin)| run::run(&command, stdin, Client::new(input)));
            match done {
                Ok(output) => {
                    let head = RunHead {
                        status: output.status,
                        stdout: output.stdout.len() as u64,
                        stderr: output.stderr.len() as u64,
                        truncated: output.truncated,
                    };
                    reply(&mut out, Ok(head))?;
                    out.write_all(&output.stdout)?;
                    out.write_all(&output.stderr)
                }
                Err(failure) => reply::<()>(&mut out, Err(failure)),
            }
        }
        Order::Exec => {
            let mut announced = false;
            let failure = match fields.command() {
                Ok(command) => run::become_program(&command, || {
                    announced = true;
                    reply(&mut out, Ok(()))
                }),
                Err(failure) => failure,
            };
            if announced {
                // Standard output belongs to the program from there on.
                eprintln!("{failure}");
                Err(io::Error::other(failure))
            } else {
                reply::<()>(&mut out, Err(failure))
            }
        }
        Order::Spawn { folder } => {
            let spawned = fields
                .command()
                .and_then(|command| launch::spawn(&folder, &command, false));
            reply(&mut out, spawned)
        }
        Order::Status { folder, identity } => reply(&mut out, launch::status(&folder, &identity)),
        Order::Stop {
            folder,
            identity,
            grace_ms,
        } => {
            let grace = Duration::from_millis(grace_ms);
            reply(&mut out, stop::stop(&folder, &identity, grace))
        }
        Order::Signal {
            identity,
            signal,
            group,
        } => reply(&mut out, Ok(stop::signal(&identity, signal, group))),
        Order::Follow {
            folder,
            file,
            offset,
        } => match Folder::existing(&folder).and_then(|folder| folder.file(&file)) {
            Ok(path) => {
                reply(&mut out, Ok(()))?;
                files::follow(&path, offset, &mut out, &mut Client::new(input))
            }
            Err(failure) => reply::<()>(&mut out, Err(failure)),
        },
        Order::Read { folder, file, most } => {
            let bytes = Folder::named(&folder)
                .and_then(|folder| folder.file(&file))
                .and_then(|path| files::read(&path, most));
            send_file(&mut out, bytes)
        }
        Order::ReadPath { path, most } => {
            let path = PathBuf::from(path);
            let bytes = if path.is_absolute() {
                files::read(&path, most)
            } else {
                Err(Failure::new(
                    FailureWord::BadRequest,
                    format!(
                        "{} is no absolute path. Begin it with a slash.",
                        path.display()
                    ),
                ))
            };
            send_file(&mut out, bytes)
        }
        Order::Write { folder, file, size } => {
            let written = run::payload(&mut input, size)
                .and_then(|bytes| Folder::made(&folder)?.write(&file, &mut bytes.as_slice()));
            reply(&mut out, written)
        }
        Order::List { folder } => {
            let files = Folder::existing(&folder).and_then(|folder| files::list(&folder));
            reply(&mut out, files)
        }
        Order::Keep { folder, pid } => reply(&mut out, restore::keep(&folder, pid)),
        Order::Respawn { folder, kept } => reply(&mut out, restore::respawn(&folder, &kept)),
        Order::Sample => {
            reply(&mut out, Ok(()))?;
            sample::stream(&mut out, &mut Client::new(input))
        }
        Order::HasProgram { sha256 } => reply(&mut out, programs::have(&sha256)),
        Order::PutProgram { sha256, size } => {
            let stored =
                run::payload(&mut input, size).and_then(|bytes| programs::put(&sha256, &bytes));
            reply(&mut out, stored)
        }
        Order::PortFree { port } => reply(&mut out, Ok(ports::usage(port))),
        Order::Leftovers { prefix } => reply(&mut out, launch::leftovers(&prefix)),
        Order::Remove { folder } => reply(&mut out, launch::remove(&folder)),
    }
}

fn send_file(out: &mut File, bytes: Result<Option<Vec<u8>>, Failure>) -> io::Result<()> {
    match bytes {
        Ok(Some(bytes)) => {
            reply(out, Ok(Some(bytes.len() as u64)))?;
            out.write_all(&bytes)
        }
        Ok(None) => reply::<Option<u64>>(out, Ok(None)),
        Err(failure) => reply::<()>(out, Err(failure)),
    }
}
