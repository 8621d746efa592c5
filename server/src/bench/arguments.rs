//! What `tokdyno bench` is asked for, and the workload that is meant by it.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::{ArgAction, Args, ValueEnum};
use tokdyno_domain::{
    endpoint::{EndpointUrl, EndpointUrlError, TlsTrust},
    meter::ApiKey,
    prompts::PromptSet,
    workload::{
        Api, LoadLevel, Preset, StageKind, StageSize, Workload, WorkloadError, parse_concurrencies,
    },
};

/// Requests of the single stream where nobody says otherwise.
const SINGLE_STREAM_REQUESTS: u32 = 5;
/// Concurrencies where nobody says otherwise.
const CONCURRENCIES: [u32; 4] = [1, 8, 32, 128];
/// The variable of `--api-key-env` without a value.
const USUAL_KEY_VARIABLE: &str = "OPENAI_API_KEY";

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Base address of the server, such as http://127.0.0.1:8000.
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,

    /// Model name to send; usually the first that the server lists.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Use /v1/chat/completions instead of /v1/completions.
    #[arg(long)]
    pub(crate) chat: bool,

    /// Measure one request after another and nothing else.
    #[arg(long, conflicts_with_all = ["concurrency", "quick", "preset"])]
    pub(crate) single_stream_only: bool,

    /// Do not measure the single stream, only the stages of concurrent requests.
    #[arg(long, conflicts_with_all = ["single_stream_only", "quick", "preset"])]
    pub(crate) no_single_stream: bool,

    /// Requests in flight, one stage for each number, after the single stream.
    /// Usually C = 1, 8, 32, 128.
    #[arg(long, value_name = "C,C,…", conflicts_with_all = ["quick", "preset"])]
    pub(crate) concurrency: Option<String>,

    /// Requests of each stage. Usually four per slot, and 5 for the single stream.
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "quick", "preset"])]
    pub(crate) requests: Option<u32>,

    /// Issue requests for this many seconds in each stage, instead of a number
    /// of them.
    #[arg(long, value_name = "S", conflicts_with_all = ["quick", "preset"])]
    pub(crate) duration: Option<f64>,

    /// Tokens to ask for in each reply.
    #[arg(long, value_name = "N")]
    pub(crate) output_tokens: Option<u32>,

    /// `varied` (usual), `founding` (the three of the founding notes), or a file
    /// with a prompt or a JSON object with a "prompt" on each line.
    #[arg(long, value_name = "FILE|founding|varied")]
    pub(crate) prompts: Option<PathBuf>,

    /// Requests before each stage that do not count; usually one per slot.
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<u32>,

    /// How often all stages are run; three or more show the spread.
    #[arg(long, value_name = "N")]
    pub(crate) repeats: Option<u32>,

    /// The same as --preset quick.
    #[arg(long, conflicts_with = "preset")]
    pub(crate) quick: bool,

    /// A ready-made workload.
    #[arg(long, value_enum)]
    pub(crate) preset: Option<PresetName>,

    /// What the measured configuration is called; kept in the result.
    #[arg(long, value_name = "CONFIGURATION")]
    pub(crate) name: Option<String>,

    /// The hardware the server runs on, in words; kept in the result.
    #[arg(long, value_name = "TEXT")]
    pub(crate) hardware: Option<String>,

    /// Send the key that stands in this environment variable (OPENAI_API_KEY if
    /// none is named). Without this option no key is sent.
    #[arg(long, value_name = "VAR", num_args = 0..=1, default_missing_value = USUAL_KEY_VARIABLE)]
    pub(crate) api_key_env: Option<String>,

    /// Certificates (PEM) to believe besides the machine's.
    #[arg(long, value_name = "PEM", conflicts_with = "insecure")]
    pub(crate) ca_file: Option<PathBuf>,

    /// Accept any certificate: encrypted, but nobody knows with whom.
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Write the result to this file; `-` writes it to standard output, and
    /// nothing else there.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Seed of the prompts' order.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Give a request up when no byte came for this many seconds.
    #[arg(long, value_name = "S", action = ArgAction::Set)]
    pub(crate) idle_timeout: Option<f64>,
}

/// A ready-made workload by name.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PresetName {
    /// Single stream (3 requests) and C = 8, 32, once. About a minute.
    Quick,
    /// Single stream (5) and C = 1, 8, 32, 128, three repeats.
    Standard,
    /// Single stream (10) and C = 1 to 256 in doublings, five repeats.
    Thorough,
}

impl From<PresetName> for Preset {
    fn from(name: PresetName) -> Self {
        match name {
            PresetName::Quick => Self::Quick,
            PresetName::Standard => Self::Standard,
            PresetName::Thorough => Self::Thorough,
        }
    }
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
    #[error("The file {path} cannot be read ({reason}). Check its name and its permissions.")]
    File { path: String, reason: io::Error },
    #[error("The file {0} is not text in UTF-8. Save it as UTF-8 and try again.")]
    NotText(String),
    #[error("The model name is blank. Leave --model out to take the first that the server lists.")]
    BlankModel,
}

/// A key that was asked for and is not there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error(
        "--api-key-env names the environment variable {0}, which is not set or blank. Set it, or leave the option out if the server wants no key."
    )]
    Missing(String),
}

impl BenchArguments {
    /// The address.
    ///
    /// # Errors
    /// It cannot be used.
    pub(crate) fn endpoint(&self) -> Result<EndpointUrl, ArgumentError> {
        Ok(self.url.parse()?)
    }

    /// The model that is asked for.
    ///
    /// # Errors
    /// It is blank.
    pub(crate) fn model(&self) -> Result<Option<String>, ArgumentError> {
        match self.model.as_deref().map(str::trim) {
            Some("") => Err(ArgumentError::BlankModel),
            model => Ok(model.map(str::to_owned)),
        }
    }

    /// Whose certificates are believed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn trust(&self) -> Result<TlsTrust, ArgumentError> {
        Ok(match (&self.ca_file, self.insecure) {
            (Some(path), _) => TlsTrust::Ca { pem: text(path)? },
            (None, true) => TlsTrust::AcceptAny,
            (None, false) => TlsTrust::System,
        })
    }

    /// The key, from the variable that was named.
    ///
    /// # Errors
    /// The variable is not set.
    pub(crate) fn key(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<ApiKey>, ArgumentError> {
        let Some(name) = &self.api_key_env else {
            return Ok(None);
        };
        match variable(name).as_deref().and_then(ApiKey::new) {
            Some(key) => Ok(Some(key)),
            None => Err(KeyError::Missing(name.clone()).into()),
        }
    }

    /// The workload that is meant, checked.
    ///
    /// # Errors
    /// It cannot be run, or the prompt file cannot be read.
    pub(crate) fn workload(&self) -> Result<Workload, ArgumentError> {
        let preset = if self.quick {
            Some(Preset::Quick)
        } else {
            self.preset.map(Preset::from)
        };
        let mut workload = match preset {
            Some(preset) => preset.workload(),
            None => Workload::with_levels("custom", self.levels()?),
        };
        if self.chat {
            workload.api = Api::Chat;
        }
        if let Some(tokens) = self.output_tokens {
            workload.output_tokens = tokens;
        }
        if let Some(repeats) = self.repeats {
            workload.repeats = repeats;
        }
        if self.warmup.is_some() {
            workload.warmup_requests = self.warmup;
        }
        if let Some(seconds) = self.idle_timeout {
            workload.idle_timeout_s = seconds;
        }
        workload.seed = self.seed;
        if let Some(prompts) = &self.prompts {
            workload.prompts = prompt_set(prompts)?;
        }
        workload.validate()?;
        Ok(workload)
    }

    fn levels(&self) -> Result<Vec<LoadLevel>, WorkloadError> {
        let size = match (self.requests, self.duration) {
            (Some(requests), _) => Some(StageSize::Requests { requests }),
            (None, Some(seconds)) => Some(StageSize::Duration { seconds }),
            (None, None) => None,
        };
        if self.single_stream_only {
            return Ok(vec![LoadLevel {
                kind: StageKind::SingleStream,
                size: size.unwrap_or(StageSize::Requests {
                    requests: SINGLE_STREAM_REQUESTS,
                }),
            }]);
        }
        let concurrencies = match &self.concurrency {
            Some(list) => parse_concurrencies(list)?,
            None => CONCURRENCIES.to_vec(),
        };
        // A number or time of requests is meant for the concurrencies; the single
        // stream needs few.
        let single_stream = (!self.no_single_stream).then_some(SINGLE_STREAM_REQUESTS);
        Ok(Workload::levels(single_stream, &concurrencies, size))
    }
}

fn prompt_set(named: &Path) -> Result<PromptSet, ArgumentError> {
    match named.to_str() {
        Some("varied") => return Ok(PromptSet::Varied),
        Some("founding") => return Ok(PromptSet::Founding),
        _ => {}
    }
    let name = named.file_name().map_or_else(
        || named.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    let set = PromptSet::from_file(&name, &text(named)?);
    Ok(set.map_err(WorkloadError::Prompts)?)
}

fn text(path: &Path) -> Result<String, ArgumentError> {
    let shown = || path.display().to_string();
    let bytes = std::fs::read(path).map_err(|reason| ArgumentError::File {
        path: shown(),
        reason,
    })?;
    String::from_utf8(bytes).map_err(|_| ArgumentError::NotText(shown()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArguments,
    }

    fn parsed(words: &[&str]) -> BenchArguments {
        let line = ["bench", "--url", "http://127.0.0.1:8000"]
            .iter()
            .chain(words);
        Line::try_parse_from(line).expect("arguments").bench
    }

    fn shape(words: &[&str]) -> Vec<(u32, String)> {
        let levels = parsed(words).workload().expect("a workload").levels;
        let shown = |size| match size {
            StageSize::Requests { requests } => format!("{requests}"),
            StageSize::Duration { seconds } => format!("{seconds} s"),
        };
        levels
            .iter()
            .map(|level| {
                let concurrency = match level.kind {
                    StageKind::SingleStream => 0,
                    StageKind::ClosedLoop { concurrency } => concurrency,
                };
                (concurrency, shown(level.size))
            })
            .collect()
    }

    fn levels(expected: &[(u32, &str)]) -> Vec<(u32, String)> {
        expected
            .iter()
            .map(|(c, size)| (*c, (*size).to_owned()))
            .collect()
    }

    #[test]
    fn what_is_measured_where_nothing_is_said() {
        assert_eq!(
            shape(&[]),
            levels(&[(0, "5"), (1, "4"), (8, "32"), (32, "128"), (128, "512")])
        );
        let workload = parsed(&[]).workload().expect("a workload");
        assert_eq!((workload.output_tokens, workload.repeats), (256, 1));
        assert_eq!(workload.prompts, PromptSet::Varied);
    }

    #[test]
    fn the_single_stream_is_measured_unless_it_is_left_out() {
        assert_eq!(shape(&["--single-stream-only"]), levels(&[(0, "5")]));
        assert_eq!(
            shape(&["--single-stream-only", "--requests", "3"]),
            levels(&[(0, "3")])
        );
        assert_eq!(
            shape(&["--concurrency", "4,2", "--requests", "9"]),
            levels(&[(0, "5"), (4, "9"), (2, "9")])
        );
        let alone = ["--no-single-stream", "--concurrency", "4"];
        assert_eq!(
            shape(&[&alone[..], &["--duration", "2.5"]].concat()),
            levels(&[(4, "2.5 s")])
        );
        assert_eq!(
            shape(&["--no-single-stream"]),
            levels(&[(1, "4"), (8, "32"), (32, "128"), (128, "512")])
        );
        assert_eq!(
            shape(&["--duration", "2"])[0],
            (0, "5".to_owned()),
            "the single stream stays a number of requests"
        );
    }

    #[test]
    fn presets_can_be_refined() {
        let workload = parsed(&[
            "--quick",
            "--output-tokens",
            "16",
            "--repeats",
            "2",
            "--chat",
        ])
        .workload()
        .expect("a workload");
        assert_eq!(workload.levels, Preset::Quick.workload().levels);
        assert_eq!(
            (workload.output_tokens, workload.repeats, workload.api),
            (16, 2, Api::Chat)
        );
        for words in [
            &["--quick", "--concurrency", "1"][..],
            &["--quick", "--requests", "9"],
            &["--quick", "--no-single-stream"],
            &["--single-stream-only", "--no-single-stream"],
        ] {
            let line = ["bench", "--url", "x"].iter().chain(words);
            assert!(Line::try_parse_from(line).is_err(), "{words:?}");
        }
    }

    #[test]
    fn impossible_ones_say_why() {
        let refused = |words: &[&str]| parsed(words).workload().expect_err("refused").to_string();
        assert!(refused(&["--concurrency", "0"]).contains("concurrency of 0"));
        assert!(refused(&["--concurrency", "100000"]).contains("100000"));
        assert!(refused(&["--concurrency", "a"]).contains("list of concurrencies"));
        assert!(refused(&["--requests", "8"]).contains("cannot keep 32"));
        assert!(refused(&["--repeats", "0"]).contains("0 repeats"));
        assert!(refused(&["--prompts", "/nowhere/p"]).contains("cannot be read"));
    }

    #[test]
    fn an_empty_prompt_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("empty.txt");
        std::fs::write(&path, "\n\n").expect("written");
        let arguments = parsed(&["--prompts", path.to_str().expect("a path")]);
        let error = arguments.workload().expect_err("refused").to_string();
        assert!(error.contains("holds no prompt"), "{error}");
        assert!(!error.contains(folder.path().to_str().expect("a path")));
    }

    #[test]
    fn a_key_is_sent_only_when_asked_for() {
        let variable = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk".to_owned());
        assert_eq!(parsed(&[]).key(variable).expect("none"), None);
        let key = parsed(&["--api-key-env"]).key(variable).expect("a key");
        assert_eq!(key, ApiKey::new("sk"));
        let error = parsed(&["--api-key-env", "MINE"])
            .key(variable)
            .expect_err("missing");
        assert!(error.to_string().contains("MINE"));
    }
}
