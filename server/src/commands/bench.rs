//! `tokdyno bench`: measures a server from the command line, and what belongs to
//! it: comparing two results, and making the result of a measurement that died.
//!
//! Exit codes: 0 complete, 1 failed, 2 bad arguments, 3 cancelled, 4 a rule of
//! --fail-if broken.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use tokdyno_domain::{
    gate::explained,
    meter::{METER_SCHEMA, MeterOutcome, MeterSpec},
    result_file::ResultFile,
};

use crate::{
    bench::{
        ArgumentError, BenchArguments, Circumstances, Collected, CompareError, Destination,
        Display, FailIf, OutputError, SeedError, SpecError, Spool, SpoolError, Subject,
        SubjectError, ask, compare, endpoint, fresh_seed, judge, measure, put, recover, report,
        same_file, tell, width,
    },
    logging,
};

const BAD_ARGUMENTS: u8 = 2;
const CANCELLED: u8 = 3;
const RULE_BROKEN: u8 = 4;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Subject(#[from] SubjectError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Seed(#[from] SeedError),
    #[error(
        "{} is one of the files that are read. Name another file with --json.", .0.display()
    )]
    OverSource(PathBuf),
    #[error(
        "The program could not be started ({0}). Look at the machine's limits on processes and memory."
    )]
    Runtime(io::Error),
}

/// Does what was asked, and says what came of it.
pub(crate) fn run(arguments: BenchArguments) -> ExitCode {
    logging::start();
    let task = &arguments.task;
    let destination = Destination::named(arguments.result.json.as_deref());
    let done = if task.help_metrics {
        put(&explained());
        Ok(ExitCode::SUCCESS)
    } else if let Some(files) = &task.compare {
        compare_files(files, &destination)
    } else if let Some(events) = &task.recover {
        recover_result(events, &destination)
    } else {
        bench(arguments, &destination)
    };
    done.unwrap_or_else(|error| {
        tell(&format!("tokdyno: {error}"));
        match error {
            BenchError::Arguments(_) | BenchError::Spec(_) | BenchError::OverSource(_) => {
                ExitCode::from(BAD_ARGUMENTS)
            }
            _ => ExitCode::FAILURE,
        }
    })
}

fn bench(arguments: BenchArguments, destination: &Destination) -> Result<ExitCode, BenchError> {
    arguments.check_names()?;
    let fresh = fresh_seed()?;
    let url = arguments.task.url.as_deref().unwrap_or_default();
    let mut spec = MeterSpec {
        schema: METER_SCHEMA,
        endpoint: endpoint(url)?,
        model: arguments.server.model()?,
        tls: arguments.server.trust()?,
        api_key: arguments.server.key(|name| std::env::var(name).ok())?,
        workload: arguments.workload(fresh)?,
        certify: arguments.certify(),
        spool: None,
    };
    destination.check()?;
    let subject = who_is_there(&spec)?;
    for note in &subject.notes {
        tell(note);
    }
    if subject.info.as_ref().is_some_and(|info| info.simulated) {
        tell("SIMULATED: this is the stand-in engine; its figures say nothing about a GPU.");
    }
    let around = Circumstances {
        configuration: arguments.server.name,
        hardware: arguments.server.hardware,
        ..Circumstances::new(spec.endpoint.to_string(), &subject, spec.workload.clone())
    };
    let spool = destination
        .regular_file()
        .map(|file| Spool::begin(&file, &around))
        .transpose()?;
    spec.spool = spool.as_ref().map(Spool::events).transpose()?;
    tell(&format!(
        "Seed {0}: --seed {0} sends the same prompts again.",
        spec.workload.seed
    ));

    let mut collected = Collected::default();
    let mut display = Display::new(spec.workload.plan(), !arguments.result.no_progress);
    let measured = measure(spec, display.speaker(), |event| {
        display.show(&event.kind);
        collected.take(event);
    });
    drop(display);
    let outcome = match measured {
        Ok(outcome) => outcome,
        Err(error) => {
            if let Some(spool) = spool {
                spool.abandon();
            }
            return Err(error.into());
        }
    };
    for field in collected.dropped_fields() {
        tell(&format!(
            "The server refused `{field}`, so it was not sent."
        ));
    }
    let result = collected.result(outcome.clone(), around);
    // A measurement that never began leaves no file that looks like one.
    if !(result.stages.is_empty() && matches!(outcome, MeterOutcome::Failed { .. })) {
        let written = write(destination, &result);
        if let (Err(_), Some(spool)) = (&written, &spool) {
            tell(&format!(
                "What was measured is kept in {}: `tokdyno bench --recover` makes the result of it.",
                spool.events()?
            ));
        }
        written?;
    }
    if let Some(spool) = spool {
        spool.remove();
    }
    say(destination, &report(&result, room(destination)));
    let broken = say_rules(&arguments.result.fail_if, &result, destination);
    let nothing = result
        .stages
        .iter()
        .all(|stage| stage.figures.completed == 0);
    Ok(match outcome {
        MeterOutcome::Complete if nothing => {
            tell(
                "tokdyno: Not one request succeeded. The table says why; look at the server's log.",
            );
            ExitCode::FAILURE
        }
        MeterOutcome::Complete if broken => ExitCode::from(RULE_BROKEN),
        MeterOutcome::Complete => ExitCode::SUCCESS,
        MeterOutcome::Cancelled => ExitCode::from(CANCELLED),
        MeterOutcome::Failed { reason } => {
            tell(&format!("tokdyno: {reason}"));
            ExitCode::FAILURE
        }
    })
}

/// Prints what each rule came to, and says whether any is broken.
fn say_rules(rules: &[FailIf], result: &ResultFile, destination: &Destination) -> bool {
    let judgements = judge(rules, result);
    if !judgements.is_empty() {
        let lines: String = judgements
            .iter()
            .map(|judgement| format!("{}\n", judgement.sentence))
            .collect();
        say(destination, &lines);
    }
    judgements.iter().any(|judgement| judgement.broken)
}

fn compare_files(files: &[PathBuf], destination: &Destination) -> Result<ExitCode, BenchError> {
    let compared = compare(files)?;
    if let Some(file) = destination.regular_file()
        && files.iter().any(|source| same_file(source, &file))
    {
        return Err(BenchError::OverSource(file));
    }
    say(destination, &compared.text());
    destination.write(&compared)?;
    Ok(ExitCode::SUCCESS)
}

fn recover_result(events: &Path, destination: &Destination) -> Result<ExitCode, BenchError> {
    let recovered = recover(events)?;
    destination.check()?;
    if let Some(file) = destination.regular_file()
        && recovered.spool.holds(&file)
    {
        return Err(BenchError::OverSource(file));
    }
    write(destination, &recovered.result)?;
    say(destination, &report(&recovered.result, room(destination)));
    // A pipe or a terminal may not have kept what it was given.
    if destination.regular_file().is_some() {
        recovered.spool.remove();
    }
    Ok(ExitCode::SUCCESS)
}

fn write(destination: &Destination, result: &ResultFile) -> Result<(), BenchError> {
    destination.write(result)?;
    if let Destination::File(path) = destination {
        put(&format!("The result is in {}.\n", path.display()));
    }
    Ok(())
}

fn who_is_there(spec: &MeterSpec) -> Result<Subject, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::Runtime)?;
    let asked = runtime.block_on(ask(
        &spec.endpoint,
        spec.model.as_deref(),
        spec.api_key.as_ref(),
        &spec.tls,
    ));
    // A name look-up that hangs must not hold us up.
    runtime.shutdown_background();
    Ok(asked?)
}

/// Text goes where the result does not.
fn say(destination: &Destination, text: &str) {
    match destination {
        Destination::StandardOutput => tell(&format!("\n{}", text.trim_end_matches('\n'))),
        Destination::Table | Destination::File(_) => put(&format!("\n{text}")),
    }
}

/// Characters a line of that text has room for.
fn room(destination: &Destination) -> Option<usize> {
    match destination {
        Destination::StandardOutput => width(io::stderr()),
        Destination::Table | Destination::File(_) => width(io::stdout()),
    }
}
