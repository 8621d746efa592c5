//! The commands that ask a running server.
//!
//! Exit codes: 0 done (with `--wait`: ready or finished), 1 failed, with a sentence on
//! standard error, 2 bad arguments.

use std::{
    io::{self, Read},
    path::Path,
};

use serde_json::{Map, Value, json};
use tokdyno_domain::{
    ids::{LaunchId, RunId},
    views::{
        experiments::{ExperimentList, ExperimentView},
        hosts::{HostCheck, HostSummary},
        profiles::{Draft, ProfileList, ProfileView},
        servers::LaunchView,
    },
    workload::Preset,
};

use crate::client::{
    AddBuiltinArguments, ClientError, Connection, Ending, ExperimentsArguments, ExperimentsCommand,
    HostsArguments, HostsCommand, LaunchArguments, MeasureArguments, ProfilesArguments,
    ProfilesCommand, ServerArguments, StopArguments, builtins, card, follow_launch, follow_run,
    follow_stop, json as print_json, living_launch, profiles as profile_table,
    servers as server_table,
};

/// Most bytes of a pasted command.
const MOST_PASTED: u64 = 1 << 20;

/// `tokdyno hosts`.
///
/// # Errors
/// [`ClientError`] with its remedy.
pub(crate) fn hosts(arguments: HostsArguments) -> Result<(), ClientError> {
    let command = arguments.command.unwrap_or(HostsCommand::List);
    ask(&arguments.server, async |asked| match command {
        HostsCommand::List => {
            let answer = asked.connection.get(&["hosts"]).await?;
            asked.show(answer, |hosts: Vec<HostSummary>| {
                crate::client::hosts(&hosts)
            })
        }
        HostsCommand::Add {
            destination,
            local,
            name,
            notes,
        } => {
            let body = json!({
                "name": name.unwrap_or_default(),
                "destination": destination.unwrap_or_default(),
                "local": local,
                "notes": notes.unwrap_or_default(),
            });
            let answer = asked.connection.post(&["hosts"], &body).await?;
            let host = asked.connection.number(&answer, "host")?;
            asked.tell(&answer, || {
                format!(
                    "Host {host} was added. `tokdyno hosts check {host}` tests the connection.\n"
                )
            })
        }
        HostsCommand::Check { host } => {
            let path = ["hosts", &host, "check"];
            let answer = asked.connection.post(&path, &json!({})).await?;
            let check: HostCheck = asked.connection.parsed(answer.clone())?;
            match check {
                HostCheck::Reachable {
                    round_trip_ms,
                    inventory,
                } => asked.tell(&answer, || {
                    format!(
                        "{} answers after {round_trip_ms:.1} ms: {}, {} CPUs, {} GPUs.\n",
                        inventory.hostname,
                        inventory.os,
                        inventory.cpus,
                        inventory.gpus.len()
                    )
                }),
                HostCheck::Unreachable { reason, .. } => {
                    if asked.json {
                        print_json(&answer)?;
                    }
                    Err(ClientError::Failed(reason))
                }
            }
        }
    })
}

/// `tokdyno experiments`.
///
/// # Errors
/// [`ClientError`] with its remedy.
pub(crate) fn experiments(arguments: ExperimentsArguments) -> Result<(), ClientError> {
    let command = arguments.command.unwrap_or(ExperimentsCommand::List);
    ask(&arguments.server, async |asked| match command {
        ExperimentsCommand::List => {
            let answer = asked.connection.get(&["experiments"]).await?;
            asked.show(answer, |list: ExperimentList| {
                crate::client::experiments(&list.experiments)
            })
        }
        ExperimentsCommand::Show { experiment } => {
            let answer = asked.connection.get(&["experiments", &experiment]).await?;
            asked.show(answer, |view: ExperimentView| {
                crate::client::experiment(&view)
            })
        }
    })
}

/// `tokdyno profiles`.
///
/// # Errors
/// [`ClientError`] with its remedy.
pub(crate) fn profiles(arguments: ProfilesArguments) -> Result<(), ClientError> {
    let command = arguments.command.unwrap_or(ProfilesCommand::List);
    ask(&arguments.server, async |asked| match command {
        ProfilesCommand::List => {
            let answer = asked.connection.get(&["profiles"]).await?;
            asked.show(answer, |list: ProfileList| {
                format!(
                    "{}\n{}",
                    profile_table(&list.profiles),
                    builtins(&list.builtins)
                )
            })
        }
        ProfilesCommand::Show { profile } => {
            let answer = asked.connection.get(&["profiles", &profile]).await?;
            asked.show(answer, |view: ProfileView| card(&view.card))
        }
        ProfilesCommand::Paste { name, file } => {
            let text = pasted(&file)?;
            let path = ["profiles", "paste"];
            let answer = asked
                .connection
                .post(&path, &json!({ "text": text }))
                .await?;
            let draft: Draft = asked.connection.parsed(answer)?;
            for left_out in &draft.left_out {
                eprintln!("Left out: {left_out}");
            }
            if let Some(error) = draft.error {
                return Err(ClientError::Failed(error));
            }
            let body = json!({ "name": name.unwrap_or_default(), "spec": draft.spec });
            added(&asked, &body).await
        }
        ProfilesCommand::AddBuiltin(builtin) => added(&asked, &of_builtin(&builtin)).await,
    })
}

/// `tokdyno launch`.
///
/// # Errors
/// [`ClientError`] with its remedy.
pub(crate) fn launch(arguments: &LaunchArguments) -> Result<(), ClientError> {
    ask(&arguments.server, async |asked| {
        let restore = match &arguments.restore {
            Some(named) => Some(living_launch(&asked.connection, named).await?),
            None => None,
        };
        let body = json!({
            "profile": arguments.profile,
            "host": arguments.host,
            "measure": arguments.preset().map(workload),
            "configuration": arguments.configuration.clone().unwrap_or_default(),
            "through_forward": arguments.through_forward,
            "verify_nccl": arguments.verify_nccl,
            "afterwards": if arguments.stop { "stop" } else { "keep" },
            "restore": restore,
            "give_back_at": arguments.give_back_by,
        });
        let answer = asked.connection.post(&["launches"], &body).await?;
        let launch = LaunchId(asked.connection.number(&answer, "launch")?);
        let page = asked.connection.page(&format!("/servers/{launch}"));
        if !arguments.wait {
            return asked.tell(&answer, || {
                format!("Launch {launch} is queued. Watch it at {page}\n")
            });
        }
        eprintln!("Launch {launch}: {page}");
        let ending = follow_launch(&asked.connection, launch).await?;
        asked.finish(ending, of_launch)
    })
}

/// `tokdyno stop`.
///
/// # Errors
/// [`ClientError`] with its remedy.
pub(crate) fn stop(arguments: &StopArguments) -> Result<(), ClientError> {
    ask(&arguments.server, async |asked| {
        let launch = living_launch(&asked.connection, &arguments.launch).await?;
        let number = launch.to_string();
        let path = ["launches", &number, "stop"];
        let answer = asked.connection.post(&path, &json!({})).await?;
        if !arguments.wait {
            return asked.tell(&answer, || format!("Launch {launch} was asked to stop.\n"));
        }
        let ending = follow_stop(&asked.connection, launch).await?;
        asked.finish(ending, of_launch)
    })
}

/// `tokdyno measure`.
///
/// # Errors
/// [`ClientError`] with its remedy.
pub(crate) fn measure(arguments: &MeasureArguments) -> Result<(), ClientError> {
    ask(&arguments.server, async |asked| {
        let launch = living_launch(&asked.connection, &arguments.launch).await?;
        let number = launch.to_string();
        let body = json!({
            "workload": workload(Preset::from(arguments.preset)),
            "configuration": arguments.configuration.clone().unwrap_or_default(),
            "through_forward": arguments.through_forward,
        });
        let path = ["launches", &number, "measure"];
        let answer = asked.connection.post(&path, &body).await?;
        let run = RunId(asked.connection.number(&answer, "run")?);
        let page = asked.connection.page(&format!("/runs/{run}"));
        if !arguments.wait {
            return asked.tell(&answer, || {
                format!("Run {run} is queued. Watch it at {page}\n")
            });
        }
        eprintln!("Run {run}: {page}");
        let ending = follow_run(&asked.connection, run).await?;
        asked.finish(ending, |_: Value| {
            format!("Run {run} is finished: {page}\n")
        })
    })
}

fn of_launch(view: LaunchView) -> String {
    let runs: String = view
        .runs
        .iter()
        .map(|run| format!("Run {}: {}, {}\n", run.id, run.configuration, run.state))
        .collect();
    format!("{}{runs}", server_table(&[view.summary]))
}

fn workload(preset: Preset) -> Value {
    json!({ "preset": preset })
}

async fn added(asked: &Asked, body: &Value) -> Result<(), ClientError> {
    let answer = asked.connection.post(&["profiles"], body).await?;
    let name = answer["name"].as_str().unwrap_or_default().to_owned();
    let view: ProfileView = asked.connection.read(&["profiles", &name]).await?;
    asked.tell(&answer, || {
        format!("The profile was added.\n\n{}", card(&view.card))
    })
}

fn of_builtin(builtin: &AddBuiltinArguments) -> Value {
    let mut parameters = Map::new();
    let named = [
        ("model", builtin.model.clone().map(Value::from)),
        ("drafter", builtin.drafter.clone().map(Value::from)),
        ("tensor_parallel", builtin.tensor_parallel.map(Value::from)),
        ("port", builtin.port.map(Value::from)),
        ("served_name", builtin.served_name.clone().map(Value::from)),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            parameters.insert(name.to_owned(), value);
        }
    }
    json!({
        "name": builtin.name.clone().unwrap_or_default(),
        "builtin": builtin.id,
        "parameters": parameters,
    })
}

fn pasted(file: &Path) -> Result<String, ClientError> {
    let name = file.display().to_string();
    let failed = |reason| ClientError::File {
        name: if name == "-" {
            "Standard input".to_owned()
        } else {
            format!("The file {name}")
        },
        reason,
    };
    let source: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(file).map_err(failed)?)
    };
    let mut text = String::new();
    source
        .take(MOST_PASTED)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(text)
}

/// The server that is asked, and how its answers are shown.
pub(super) struct Asked {
    pub(super) connection: Connection,
    json: bool,
}

impl Asked {
    /// The answer: as it is, or as `table` puts it.
    fn show<T: serde::de::DeserializeOwned>(
        &self,
        answer: Value,
        table: impl FnOnce(T) -> String,
    ) -> Result<(), ClientError> {
        if self.json {
            return print_json(&answer);
        }
        let text = table(self.connection.parsed(answer)?);
        print(&text)
    }

    /// The answer, or a sentence about it.
    fn tell(&self, answer: &Value, sentence: impl FnOnce() -> String) -> Result<(), ClientError> {
        if self.json {
            print_json(answer)
        } else {
            print(&sentence())
        }
    }

    /// The last answer, and failure where something went wrong.
    fn finish<T: serde::de::DeserializeOwned>(
        &self,
        ending: Ending,
        table: impl FnOnce(T) -> String,
    ) -> Result<(), ClientError> {
        self.show(ending.answer, table)?;
        match ending.trouble {
            None => Ok(()),
            Some(trouble) => Err(ClientError::Failed(trouble)),
        }
    }
}

fn print(text: &str) -> Result<(), ClientError> {
    use io::Write;

    io::stdout()
        .write_all(text.as_bytes())
        .map_err(ClientError::Output)
}

/// Asks a server.
pub(super) fn ask<T>(
    server: &ServerArguments,
    command: impl AsyncFnOnce(Asked) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ClientError::Runtime)?;
    let asked = Asked {
        connection: Connection::new(&server.server)?,
        json: server.json,
    };
    let outcome = runtime.block_on(command(asked));
    // A name look-up that hangs must not hold us up.
    runtime.shutdown_background();
    outcome
}
