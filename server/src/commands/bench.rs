//! `tokdyno bench`: measures a server from the command line.
//!
//! Exit codes: 0 complete, 1 failed, 2 bad arguments, 3 cancelled.

use std::process::ExitCode;

use tokdyno_domain::{
    meter::{METER_SCHEMA, MeterOutcome, MeterSpec},
    result_file::ResultFile,
};

use crate::{
    bench::{
        ArgumentError, BenchArguments, Circumstances, Collected, Destination, Display, OutputError,
        SpecError, Subject, SubjectError, ask, measure, report,
    },
    logging,
};

const BAD_ARGUMENTS: u8 = 2;
const CANCELLED: u8 = 3;

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
    #[error(
        "The program could not be started ({0}). Look at the machine's limits on processes and memory."
    )]
    Runtime(std::io::Error),
}

/// Measures and says what came of it.
pub(crate) fn run(arguments: BenchArguments) -> ExitCode {
    logging::start();
    match bench(arguments) {
        Ok(MeterOutcome::Complete) => ExitCode::SUCCESS,
        Ok(MeterOutcome::Cancelled) => ExitCode::from(CANCELLED),
        Ok(MeterOutcome::Failed { reason }) => {
            eprintln!("tokdyno: {reason}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tokdyno: {error}");
            match error {
                BenchError::Arguments(_) | BenchError::Spec(_) => ExitCode::from(BAD_ARGUMENTS),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn bench(arguments: BenchArguments) -> Result<MeterOutcome, BenchError> {
    let spec = MeterSpec {
        schema: METER_SCHEMA,
        endpoint: arguments.endpoint()?,
        model: arguments.model()?,
        tls: arguments.trust()?,
        api_key: arguments.key(|name| std::env::var(name).ok())?,
        workload: arguments.workload()?,
        spool: None,
    };
    let destination = Destination::named(arguments.json.as_deref());
    destination.check()?;
    let subject = who_is_there(&spec)?;
    for note in &subject.notes {
        eprintln!("{note}");
    }
    if subject.info.as_ref().is_some_and(|info| info.simulated) {
        eprintln!("SIMULATED: this is the stand-in engine; its figures say nothing about a GPU.");
    }

    let mut collected = Collected::default();
    let mut display = Display::new();
    let around = Circumstances {
        url: spec.endpoint.to_string(),
        subject: &subject,
        workload: spec.workload.clone(),
        configuration: arguments.name,
        hardware: arguments.hardware,
    };
    let outcome = measure(spec, |event| {
        display.show(&event.kind);
        collected.take(event);
    })?;
    for field in collected.dropped_fields() {
        eprintln!("The server refused `{field}`, so it was not sent.");
    }
    let result = collected.result(outcome.clone(), around);
    say(&destination, &result);
    // A measurement that never began leaves no file that looks like one.
    if !(result.stages.is_empty() && matches!(outcome, MeterOutcome::Failed { .. })) {
        destination.write(&result)?;
        if let Destination::File(path) = &destination {
            println!("The result is in {}.", path.display());
        }
    }
    Ok(outcome)
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

/// The table goes where the result does not.
fn say(destination: &Destination, result: &ResultFile) {
    let text = report(result);
    match destination {
        Destination::StandardOutput => eprint!("\n{text}"),
        Destination::Table | Destination::File(_) => print!("\n{text}"),
    }
}
