//! `tokdyno bench`: measures a server from the command line, and what belongs to
//! it: comparing two results, and making the result of a measurement that died.
//!
//! Exit codes: 0 complete, 1 failed, 2 bad arguments, 3 cancelled, 4 a rule of
//! --fail-if broken.

use std::{
    fs, io,
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
        Display, FailIf, Kept, OutputError, SeedError, SpecError, Spool, SpoolError, Subject,
        SubjectError, ask, compare, endpoint, fresh_seed, judge, measure, nothing_succeeded, put,
        recover, report, same_file, tell, width,
    },
    logging,
    safety::body,
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
        put(&explained())
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| OutputError::Table(error).into())
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
            BenchError::Subject(error) if error.is_of_arguments() => ExitCode::from(BAD_ARGUMENTS),
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
    let began = !(result.stages.is_empty() && matches!(outcome, MeterOutcome::Failed { .. }));
    let written = if began {
        destination.write(&result)
    } else {
        Ok(())
    };
    // What was measured is said in any case: the table may be all that is left of it.
    let said = say_all(
        &result,
        &arguments.result.fail_if,
        destination,
        began && written.is_ok(),
    );
    if let Some(spool) = spool {
        match written {
            Ok(()) => spool.remove(),
            Err(_) => leave(spool)?,
        }
    }
    if let MeterOutcome::Failed { reason } = &outcome {
        tell(&format!("tokdyno: {reason}"));
    }
    written?;
    let broken = said?;
    let nothing = result
        .stages
        .iter()
        .all(|stage| stage.figures.completed == 0);
    Ok(match outcome {
        MeterOutcome::Complete if nothing => {
            tell(&format!("tokdyno: {}", nothing_succeeded(&result)));
            ExitCode::FAILURE
        }
        MeterOutcome::Complete if broken => ExitCode::from(RULE_BROKEN),
        MeterOutcome::Complete => ExitCode::SUCCESS,
        MeterOutcome::Cancelled => ExitCode::from(CANCELLED),
        MeterOutcome::Failed { .. } => ExitCode::FAILURE,
    })
}

/// Says what of a measurement is in its files, now that its result is not.
fn leave(spool: Spool) -> Result<(), SpoolError> {
    let events = spool.events()?;
    let way = format!("`tokdyno bench --recover {events} --json FILE` makes a result of it.");
    match spool.kept() {
        Kept::Whole => tell(&format!("What was measured is kept in {events}: {way}")),
        Kept::Part => tell(&format!(
            "{events} could not be written to the end. It holds what was finished before: {way}"
        )),
        Kept::Nothing => {
            tell("No file holds what was measured: the table is all there is of it.");
            spool.abandon();
        }
    }
    Ok(())
}

/// Prints where the result is, if it was written; the table; and what each rule came
/// to. Says whether any rule is broken.
fn say_all(
    result: &ResultFile,
    rules: &[FailIf],
    destination: &Destination,
    is_written: bool,
) -> Result<bool, OutputError> {
    if let (Destination::File(path), true) = (destination, is_written) {
        put(&format!("The result is in {}.\n", path.display())).map_err(OutputError::Table)?;
        if fs::metadata(path).is_ok_and(|file| file.len() > body::IMPORT as u64) {
            tell(&format!(
                "It is larger than the {} MiB that `tokdyno import` takes. `--compare` reads it; to import one, measure with fewer requests or repeats.",
                body::IMPORT >> 20
            ));
        }
    }
    say(destination, &report(result, room(destination)))?;
    let judgements = judge(rules, result);
    if !judgements.is_empty() {
        let lines: String = judgements
            .iter()
            .map(|judgement| format!("{}\n", judgement.sentence))
            .collect();
        say(destination, &lines)?;
    }
    Ok(judgements.iter().any(|judgement| judgement.broken))
}

fn compare_files(files: &[PathBuf], destination: &Destination) -> Result<ExitCode, BenchError> {
    let compared = compare(files)?;
    if let Some(file) = destination.regular_file()
        && files.iter().any(|source| same_file(source, &file))
    {
        return Err(BenchError::OverSource(file));
    }
    let said = say(destination, &compared.text());
    destination.write(&compared)?;
    said?;
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
    let written = destination.write(&recovered.result);
    let said = say_all(&recovered.result, &[], destination, written.is_ok());
    written?;
    // A pipe or a terminal may not have kept what it was given.
    if destination.regular_file().is_some() {
        recovered.spool.remove();
    }
    said?;
    Ok(ExitCode::SUCCESS)
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
fn say(destination: &Destination, text: &str) -> Result<(), OutputError> {
    match destination {
        Destination::StandardOutput => {
            tell(&format!("\n{}", text.trim_end_matches('\n')));
            Ok(())
        }
        Destination::Table | Destination::File(_) => {
            put(&format!("\n{text}")).map_err(OutputError::Table)
        }
    }
}

/// Characters a line of that text has room for.
fn room(destination: &Destination) -> Option<usize> {
    match destination {
        Destination::StandardOutput => width(io::stderr()),
        Destination::Table | Destination::File(_) => width(io::stdout()),
    }
}
