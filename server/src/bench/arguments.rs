//! What `tokdyno bench` is asked for, and the workload that is meant by it.

mod content;
mod load;
mod server;
mod values;

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use tokdyno_domain::{
    endpoint::{EndpointUrl, EndpointUrlError},
    meter::Certify,
    prompts::PromptSet,
    result_file::{MAX_ADDRESS, MAX_MODEL},
    views::measure::MAX_NAME,
    workload::{Workload, WorkloadError},
};

pub(crate) use self::load::PresetName;
use self::{
    content::ContentArguments,
    load::{LoadArguments, LoadError},
    server::{KeyError, ServerArguments},
};
use super::{
    input::read_whole,
    rules::{FailIf, FailIfError},
};

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[command(flatten)]
    pub(crate) task: Task,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    #[command(flatten)]
    load: LoadArguments,
    #[command(flatten)]
    content: ContentArguments,
    #[command(flatten)]
    pub(crate) result: ResultArguments,
}

/// What is to be done: one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Task {
    /// Measure the server at this base address, such as http://127.0.0.1:8000.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// Measure nothing: compare two results, the second against the first.
    #[arg(long, num_args = 2, value_names = ["A.json", "B.json"])]
    pub(crate) compare: Option<Vec<PathBuf>>,

    /// Measure nothing: make the result of a measurement that died, from the events
    /// that it left beside its result's place.
    #[arg(long, value_name = "FILE.events.jsonl", requires = "json")]
    pub(crate) recover: Option<PathBuf>,

    /// Say what each metric means, in a line.
    #[arg(long)]
    pub(crate) help_metrics: bool,
}

/// What becomes of the result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Result")]
pub(crate) struct ResultArguments {
    /// Write the result to this file; `-` writes it to standard output, and
    /// nothing else there.
    #[arg(long, value_name = "FILE", conflicts_with = "help_metrics")]
    pub(crate) json: Option<PathBuf>,

    /// End with exit code 4 if this holds, such as 'tpot_p99>12' for any stage or
    /// 'c128.output_tps<2000' for one. May be given several times.
    #[arg(long, value_name = "[LEVEL.]METRIC<NUMBER", value_parser = str::parse::<FailIf>, conflicts_with_all = ["compare", "recover", "help_metrics"])]
    pub(crate) fail_if: Vec<FailIf>,

    /// Print a line for each stage instead of the live view.
    #[arg(long, conflicts_with_all = ["compare", "recover", "help_metrics"])]
    pub(crate) no_progress: bool,

    /// Before each stage, find out what this machine can time truthfully at all:
    /// unless it is remembered, anew, or not at all.
    #[arg(long, value_enum, default_value_t = CertifyName::Remembered, conflicts_with_all = ["compare", "recover", "help_metrics"])]
    certify: CertifyName,
}

/// Whether the meter measures itself, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CertifyName {
    /// Unless it did so on this machine not long ago.
    Remembered,
    /// In any case.
    Anew,
    /// No.
    Off,
}

/// Arguments that do not go together or cannot be used (exit code 2).
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    #[error(transparent)]
    Url(#[from] EndpointUrlError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Rule(#[from] FailIfError),
    #[error("The file {path} cannot be read ({reason}). Check its name and its permissions.")]
    File { path: String, reason: io::Error },
    #[error("The file {0} is not text in UTF-8. Save it as UTF-8 and try again.")]
    NotText(String),
    #[error("The model name is blank. Leave --model out to take the first that the server lists.")]
    BlankModel,
    #[error(
        "--{option} is {length} characters long, and at most {most} are kept. Choose a shorter one."
    )]
    LongName {
        option: &'static str,
        length: usize,
        most: usize,
    },
}

impl BenchArguments {
    /// Whether the meter measures itself.
    pub(crate) const fn certify(&self) -> Certify {
        match self.result.certify {
            CertifyName::Remembered => Certify::Remembered,
            CertifyName::Anew => Certify::Anew,
            CertifyName::Off => Certify::Off,
        }
    }

    /// Refuses names that no result may have: not after the measurement.
    ///
    /// # Errors
    /// One is too long.
    pub(crate) fn check_names(&self) -> Result<(), ArgumentError> {
        let server = &self.server;
        for (option, name, most) in [
            ("name", &server.name, MAX_NAME),
            ("hardware", &server.hardware, MAX_NAME),
            ("model", &server.model, MAX_MODEL),
        ] {
            let length = name.as_ref().map_or(0, |name| name.trim().chars().count());
            if length > most {
                return Err(ArgumentError::LongName {
                    option,
                    length,
                    most,
                });
            }
        }
        Ok(())
    }

    /// The workload that is meant, checked; `fresh_seed` is taken where none is
    /// given.
    ///
    /// # Errors
    /// It cannot be run, or the prompt file cannot be read.
    pub(crate) fn workload(&self, fresh_seed: u64) -> Result<Workload, ArgumentError> {
        let trace = self.load.replay.as_deref().map(content::trace);
        let trace = trace.transpose()?;
        let trace_requests = match &trace {
            Some(PromptSet::Trace { requests, .. }) => {
                Some(u32::try_from(requests.len()).unwrap_or(u32::MAX))
            }
            _ => None,
        };
        let mut workload = match self.load.preset() {
            Some(preset) => preset.workload(),
            None => Workload::with_levels("custom", self.load.levels(trace_requests)?),
        };
        if let Some(repeats) = self.load.repeats {
            workload.repeats = repeats;
        }
        if self.load.warmup.is_some() {
            workload.warmup_requests = self.load.warmup;
        }
        workload.saturation = self.load.saturation();
        self.content.put_into(&mut workload, trace, fresh_seed)?;
        workload.validate()?;
        for rule in &self.result.fail_if {
            rule.check(&workload)?;
        }
        Ok(workload)
    }
}

/// The address, read.
///
/// # Errors
/// It cannot be used, or is too long to be kept.
pub(crate) fn endpoint(url: &str) -> Result<EndpointUrl, ArgumentError> {
    let endpoint: EndpointUrl = url.parse()?;
    let length = endpoint.to_string().chars().count();
    if length > MAX_ADDRESS {
        return Err(ArgumentError::LongName {
            option: "url",
            length,
            most: MAX_ADDRESS,
        });
    }
    Ok(endpoint)
}

fn text(path: &Path) -> Result<String, ArgumentError> {
    let shown = || path.display().to_string();
    let bytes = read_whole(path).map_err(|reason| ArgumentError::File {
        path: shown(),
        reason,
    })?;
    String::from_utf8(bytes).map_err(|_| ArgumentError::NotText(shown()))
}

#[cfg(test)]
mod tests;
