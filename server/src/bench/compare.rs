//! Two result files beside each other: what differs, by how much, and what may be
//! said of it.

pub(super) mod facts;
mod shown;

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;
use tokdyno_domain::{
    analysis,
    comparison::Difference,
    gate::Measured,
    result_file::{ResultFile, ResultFileError, TOOL},
    verdict::Verdict,
    views::compare::{CompareRow, ComparisonClass},
    workload::Workload,
};

use super::input::read_whole;

/// Version of the comparison's form as JSON.
const COMPARED_SCHEMA: u32 = 1;

/// The comparison, as `--json` writes it.
#[derive(Debug, Serialize)]
pub(crate) struct Compared {
    schema_version: u32,
    tool: &'static str,
    tool_version: &'static str,
    /// At least one of the two was measured from the stand-in.
    simulated: bool,
    /// The results, in the order given.
    results: Vec<ComparedResult>,
    /// How far they can be compared.
    class: ComparisonClass,
    /// What differs of configuration, environment and definitions.
    differences: Vec<Difference>,
    /// How many keys are equal.
    equal_settings: u32,
    /// Where the workloads differ, field by field.
    workload_differences: Vec<FieldDifference>,
    /// A figure a row.
    rows: Vec<CompareRow>,
    /// What may be said.
    verdicts: Vec<Verdict>,
    /// Where curves cross.
    crossovers: Vec<String>,
}

/// One of the two.
#[derive(Debug, Serialize)]
struct ComparedResult {
    file: String,
    configuration: Option<String>,
    url: String,
    model: String,
    engine: String,
    simulated: bool,
    workload_hash: String,
    metric_version: u32,
    #[serde(flatten)]
    outcome: tokdyno_domain::meter::MeterOutcome,
}

/// A field in which two workloads differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct FieldDifference {
    field: String,
    values: [Value; 2],
}

/// Why two files are not compared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompareError {
    #[error("The file {path} cannot be read ({reason}). Check its name and its permissions.")]
    Read { path: String, reason: io::Error },
    #[error("{path}: {reason}")]
    File {
        path: String,
        reason: ResultFileError,
    },
    #[error("{0}")]
    Analysis(String),
}

/// Compares the second file with the first.
///
/// # Errors
/// A file cannot be read, or is no result.
pub(crate) fn compare(files: &[PathBuf]) -> Result<Compared, CompareError> {
    let results = files
        .iter()
        .map(|file| Ok((file.display().to_string(), read(file)?)))
        .collect::<Result<Vec<_>, CompareError>>()?;
    of_results(&results)
}

/// A result file as a gate looks at it; `number` tells it from others of its name.
///
/// # Errors
/// It cannot be read, or is no result.
pub(crate) fn measured(file: &Path, number: i64) -> Result<Measured, CompareError> {
    Ok(facts::measured(&read(file)?, number))
}

fn read(path: &Path) -> Result<ResultFile, CompareError> {
    let shown = || path.display().to_string();
    let bytes = read_whole(path).map_err(|reason| CompareError::Read {
        path: shown(),
        reason,
    })?;
    ResultFile::parse(&bytes).map_err(|reason| CompareError::File {
        path: shown(),
        reason,
    })
}

fn of_results(results: &[(String, ResultFile)]) -> Result<Compared, CompareError> {
    let runs: Vec<_> = results
        .iter()
        .zip(1..)
        .map(|((_, result), number)| facts::of(result, number))
        .collect();
    let view = analysis::compare(&runs).map_err(CompareError::Analysis)?;
    let workload_differences = match results {
        [(_, one), (_, other)] if one.workload.hash() != other.workload.hash() => {
            field_differences(&one.workload, &other.workload)
        }
        _ => Vec::new(),
    };
    Ok(Compared {
        schema_version: COMPARED_SCHEMA,
        tool: TOOL,
        tool_version: env!("CARGO_PKG_VERSION"),
        simulated: results.iter().any(|(_, result)| result.endpoint.simulated),
        results: results
            .iter()
            .map(|(file, result)| ComparedResult::new(file, result))
            .collect(),
        class: view.class,
        differences: view.differences,
        equal_settings: view.equal_settings,
        workload_differences,
        rows: view.rows,
        verdicts: view.verdicts,
        crossovers: view.crossovers,
    })
}

impl ComparedResult {
    fn new(file: &str, result: &ResultFile) -> Self {
        Self {
            file: file.to_owned(),
            configuration: result.configuration.clone(),
            url: result.endpoint.url.clone(),
            model: result.endpoint.model.clone(),
            engine: super::table::engine(result),
            simulated: result.endpoint.simulated,
            workload_hash: result.workload.hash().short().to_owned(),
            metric_version: result.metric_version,
            outcome: result.outcome.clone(),
        }
    }
}

/// The fields that make the workloads two, those left out of the hash not among
/// them.
fn field_differences(one: &Workload, other: &Workload) -> Vec<FieldDifference> {
    let fields = |workload: &Workload| {
        let mut value = serde_json::to_value(workload).unwrap_or_default();
        value
            .as_object_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    };
    let (one, other) = (fields(one), fields(other));
    let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    names
        .into_iter()
        .filter(|name| !matches!(name.as_str(), "name" | "seed"))
        .filter(|name| one.get(*name) != other.get(*name))
        .map(|name| FieldDifference {
            field: name.clone(),
            values: [&one, &other].map(|fields| fields.get(name).cloned().unwrap_or_default()),
        })
        .collect()
}

#[cfg(test)]
mod tests;
