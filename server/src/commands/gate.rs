//! `tokdyno gate`: holds runs of a server, or result files, to rules.
//!
//! Exit codes: 0 every rule holds, 1 failed, 2 bad arguments, 4 a rule is broken, 5 none
//! is broken and one is not established.

use std::{path::PathBuf, process::ExitCode};

use serde_json::json;
use tokdyno_domain::{
    analysis::History,
    gate::{Demand, GateError, GateOutcome, Outcome, Rule, evaluate},
    ids::RunId,
    views::gates::GateView,
};

use super::client::ask;
use crate::{
    bench::{CompareError, measured, put, tell},
    client::{ClientError, json as print_json},
    gate::{ArgumentError, GateArguments, Said, Subject, text},
};

const BAD_ARGUMENTS: u8 = 2;
const BROKEN: u8 = 4;
const NOT_ESTABLISHED: u8 = 5;

/// Why nothing was judged.
#[derive(Debug, thiserror::Error)]
enum GateFailure {
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    #[error(transparent)]
    File(#[from] CompareError),
    #[error(transparent)]
    Server(#[from] ClientError),
    #[error("The outcome cannot be put into JSON ({0}). Report this with the command you gave.")]
    Json(#[from] serde_json::Error),
}

/// Judges, and says what it came to.
pub(crate) fn run(arguments: &GateArguments) -> ExitCode {
    judge(arguments).unwrap_or_else(|failure| {
        tell(&format!("tokdyno: {failure}"));
        match failure {
            GateFailure::Arguments(_) => ExitCode::from(BAD_ARGUMENTS),
            _ => ExitCode::FAILURE,
        }
    })
}

fn judge(arguments: &GateArguments) -> Result<ExitCode, GateFailure> {
    let rules = arguments.rules()?;
    let said = match arguments.subject()? {
        Subject::Files(files) => Said {
            gate: None,
            outcome: of_files(&rules, &files)?,
        },
        Subject::Runs(runs) => of_runs(arguments, &rules, &runs)?,
    };
    if arguments.server.json {
        print_json(&serde_json::to_value(&said)?)?;
    } else {
        put(&text(&said)).map_err(ClientError::Output)?;
    }
    Ok(match said.outcome.outcome {
        Outcome::Holds => ExitCode::SUCCESS,
        Outcome::Broken => ExitCode::from(BROKEN),
        Outcome::NotEstablished if arguments.not_established_passes => ExitCode::SUCCESS,
        Outcome::NotEstablished => ExitCode::from(NOT_ESTABLISHED),
    })
}

fn of_files(rules: &[Rule], files: &[PathBuf]) -> Result<GateOutcome, GateFailure> {
    let runs = files
        .iter()
        .zip(1..)
        .map(|(file, number)| measured(file, number))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(evaluate(rules, &runs, &History::default()).map_err(ArgumentError::from)?)
}

fn of_runs(arguments: &GateArguments, rules: &[Rule], runs: &[RunId]) -> Result<Said, GateFailure> {
    // The server would refuse it as well, and not as an argument.
    let against = |rule: &&Rule| matches!(rule.demand, Demand::NotWorse { .. });
    if let ([_], Some(rule)) = (runs, rules.iter().find(against)) {
        return Err(ArgumentError::from(GateError::NoBaseline(rule.to_string())).into());
    }
    let written: Vec<String> = rules.iter().map(Rule::to_string).collect();
    let body = json!({ "runs": runs, "rules": written, "record": arguments.record });
    Ok(ask(&arguments.server, async |asked| {
        let answer = asked.connection.post(&["gates"], &body).await?;
        if arguments.record {
            let view: GateView = asked.connection.parsed(answer)?;
            Ok(Said {
                gate: Some(view.id),
                outcome: view.outcome,
            })
        } else {
            Ok(Said {
                gate: None,
                outcome: asked.connection.parsed(answer)?,
            })
        }
    })?)
}
