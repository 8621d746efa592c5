//! What is sent: prompts, lengths, sampling, load shape, warm-up, repeats.
//!
//! A workload is immutable and known by the hash of its canonical form, so that
//! "the same workload" is a fact and not an opinion.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ids::ContentHash, prompts::PromptSet};

/// Which route is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `/v1/completions`: the prompt as it is, no chat template.
    #[default]
    Completions,
    /// `/v1/chat/completions`: the prompt as one user message.
    Chat,
}

impl Api {
    /// The route below the base address.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

/// The kind of a stage: how many requests are in flight, and why.
///
/// A single stream and C = 1 send alike; they differ in what is made of it: the
/// single stream yields the median speed of a request, C = 1 a throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StageKind {
    /// Requests strictly one after another.
    SingleStream,
    /// Closed loop: always this many in flight.
    ClosedLoop {
        /// C, the number of requests in flight.
        concurrency: u32,
    },
}

impl StageKind {
    /// Requests in flight.
    #[must_use]
    pub const fn concurrency(self) -> u32 {
        match self {
            Self::SingleStream => 1,
            Self::ClosedLoop { concurrency } => concurrency,
        }
    }
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SingleStream => f.write_str("single stream"),
            Self::ClosedLoop { concurrency } => write!(f, "C = {concurrency}"),
        }
    }
}

/// When a stage stops issuing requests. What is in flight then is always
/// waited for (the stage drains).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "until")]
pub enum StageSize {
    /// After this many requests.
    Requests {
        /// How many are sent.
        requests: u32,
    },
    /// After this long.
    Duration {
        /// Seconds during which requests are issued.
        seconds: f64,
    },
}

/// One load level of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadLevel {
    /// How many at once.
    #[serde(flatten)]
    pub kind: StageKind,
    /// How many in all.
    #[serde(flatten)]
    pub size: StageSize,
}

/// What is done about the engine's prefix cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CachePolicy {
    /// No prompt is sent twice, so nothing but a common template can be cached.
    #[default]
    FreshPrompts,
}

/// A workload. Build one with a preset or field by field, then
/// [`validate`](Self::validate) it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// The name people see.
    pub name: String,
    /// Which route.
    pub api: Api,
    /// What is asked.
    pub prompts: PromptSet,
    /// Completion tokens asked for per request.
    pub output_tokens: u32,
    /// Ask the engine to go on past its end token, so that lengths are equal.
    pub ignore_eos: bool,
    /// Sampling temperature.
    pub temperature: f64,
    /// Load levels, in the order in which they are run within a repeat.
    pub levels: Vec<LoadLevel>,
    /// How often all levels are run.
    pub repeats: u32,
    /// Requests sent and thrown away before each stage, at its concurrency;
    /// none given means one per slot.
    pub warmup_requests: Option<u32>,
    /// Completion tokens asked for by a warm-up request.
    pub warmup_output_tokens: u32,
    /// What is done about the prefix cache.
    pub cache: CachePolicy,
    /// Seed of the prompt order.
    pub seed: u64,
    /// A request that delivers no event for this long is *stalled*.
    pub idle_timeout_s: f64,
}

/// Bounds of what a workload may ask for. Beyond them a typing error is likelier
/// than an intention.
pub mod limits {
    /// Most requests in flight.
    pub const CONCURRENCY: u32 = 8192;
    /// Most requests in a stage.
    pub const REQUESTS: u32 = 1_000_000;
    /// Longest stage in seconds: a day.
    pub const DURATION_S: f64 = 86_400.0;
    /// Most completion tokens of a request.
    pub const OUTPUT_TOKENS: u32 = 1_000_000;
    /// Most repeats.
    pub const REPEATS: u32 = 100;
    /// Most load levels.
    pub const LEVELS: usize = 64;
}

/// Why a workload cannot be run. Each says the cause and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// Out of 1..=[`limits::CONCURRENCY`].
    #[error("A concurrency of {0} cannot be measured. Choose 1 to {max} requests at once.", max = limits::CONCURRENCY)]
    Concurrency(u64),
    /// A list of concurrencies that does not read.
    #[error(
        "`{0}` is not a list of concurrencies. Write whole numbers with commas, such as 1,8,32,128."
    )]
    ConcurrencyList(String),
    /// The same level twice.
    #[error(
        "The load level {0} is asked for twice. Name each once and use repeats to run it more often."
    )]
    DuplicateLevel(StageKind),
    /// Nothing to do.
    #[error(
        "The workload has no load level. Choose the single stream or at least one concurrency."
    )]
    NoLevels,
    /// Too many levels.
    #[error("{0} load levels are too many. Choose at most {max}.", max = limits::LEVELS)]
    TooManyLevels(usize),
    /// Out of 1..=[`limits::REQUESTS`].
    #[error("A stage of {0} requests cannot be run. Choose 1 to {max}.", max = limits::REQUESTS)]
    Requests(u64),
    /// Fewer requests than slots.
    #[error(
        "{requests} requests cannot keep {concurrency} in flight. Ask for at least {concurrency}; four times as many give a steady figure."
    )]
    FewerRequestsThanSlots {
        /// Requests of the stage.
        requests: u32,
        /// Slots of the stage.
        concurrency: u32,
    },
    /// Not a positive, finite number within a day.
    #[error("A stage of {0} seconds cannot be run. Choose more than 0 and at most 86400.")]
    Duration(f64),
    /// Out of 1..=[`limits::OUTPUT_TOKENS`].
    #[error("{0} output tokens cannot be asked for. Choose 1 to {max}.", max = limits::OUTPUT_TOKENS)]
    OutputTokens(u64),
    /// Out of 1..=[`limits::REPEATS`].
    #[error("{0} repeats cannot be run. Choose 1 to {max}; three or more show the spread.", max = limits::REPEATS)]
    Repeats(u64),
    /// Too many warm-ups.
    #[error("{0} warm-up requests are too many. Choose 0 to {max}.", max = limits::CONCURRENCY)]
    Warmup(u64),
    /// Negative or not finite.
    #[error("A temperature of {0} is not possible. Choose 0 (the default) up to 2.")]
    Temperature(f64),
    /// Not positive or not finite.
    #[error("An idle time-out of {0} seconds is not possible. Choose 1 to 86400.")]
    IdleTimeout(f64),
    /// No prompt in a file.
    #[error(transparent)]
    Prompts(#[from] crate::prompts::PromptFileError),
}

/// A stage as planned: a load level in one repeat, with its prompts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StagePlan {
    /// Place in the order of execution, from 0.
    pub index: u32,
    /// What it is.
    #[serde(flatten)]
    pub level: LoadLevel,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Index of its first prompt; the i-th request sends prompt `first + i`.
    pub first_prompt: u64,
    /// Index of its first warm-up prompt.
    pub first_warmup_prompt: u64,
    /// Warm-up requests before it.
    pub warmup_requests: u32,
}

/// Prompts set aside for a stage that is bounded by time.
const PROMPTS_PER_TIMED_STAGE: u64 = 1 << 24;
/// Warm-up prompts are taken from here on, where no stage takes any.
const WARMUP_PROMPTS_FROM: u64 = 1 << 40;

impl Workload {
    /// The usual workload around these load levels: temperature 0, `ignore_eos`,
    /// a varied prompt each, 256 tokens, one repeat, one warm-up per slot.
    #[must_use]
    pub fn with_levels(name: &str, levels: Vec<LoadLevel>) -> Self {
        Self {
            name: name.to_owned(),
            api: Api::default(),
            prompts: PromptSet::Varied,
            output_tokens: 256,
            ignore_eos: true,
            temperature: 0.0,
            levels,
            repeats: 1,
            warmup_requests: None,
            warmup_output_tokens: 16,
            cache: CachePolicy::default(),
            seed: 0,
            idle_timeout_s: 120.0,
        }
    }

    /// The levels *single stream* (if `single` requests are asked for) and the
    /// given concurrencies, each with `requests` or the default 4C.
    #[must_use]
    pub fn levels(
        single: Option<u32>,
        concurrencies: &[u32],
        size: Option<StageSize>,
    ) -> Vec<LoadLevel> {
        let single = single.map(|requests| LoadLevel {
            kind: StageKind::SingleStream,
            size: StageSize::Requests { requests },
        });
        let loops = concurrencies.iter().map(|&concurrency| LoadLevel {
            kind: StageKind::ClosedLoop { concurrency },
            size: size.unwrap_or(StageSize::Requests {
                requests: default_requests(concurrency),
            }),
        });
        single.into_iter().chain(loops).collect()
    }

    /// The hash by which two workloads are the same: everything but the name,
    /// in a form that does not depend on the order of fields in memory.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.remove("name");
        }
        // serde_json keeps objects sorted by key (no `preserve_order`).
        ContentHash::of(value.to_string().as_bytes())
    }

    /// Checks every bound.
    ///
    /// # Errors
    /// The first [`WorkloadError`] found, a sentence with cause and remedy.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        if self.levels.is_empty() {
            return Err(WorkloadError::NoLevels);
        }
        if self.levels.len() > limits::LEVELS {
            return Err(WorkloadError::TooManyLevels(self.levels.len()));
        }
        for (index, level) in self.levels.iter().enumerate() {
            validate_level(*level)?;
            if self
                .levels
                .iter()
                .take(index)
                .any(|earlier| earlier.kind == level.kind)
            {
                return Err(WorkloadError::DuplicateLevel(level.kind));
            }
        }
        in_range(self.output_tokens, limits::OUTPUT_TOKENS).map_err(WorkloadError::OutputTokens)?;
        in_range(self.warmup_output_tokens, limits::OUTPUT_TOKENS)
            .map_err(WorkloadError::OutputTokens)?;
        in_range(self.repeats, limits::REPEATS).map_err(WorkloadError::Repeats)?;
        if let Some(warmup) = self.warmup_requests
            && warmup > limits::CONCURRENCY
        {
            return Err(WorkloadError::Warmup(warmup.into()));
        }
        if !(0.0..=2.0).contains(&self.temperature) {
            return Err(WorkloadError::Temperature(self.temperature));
        }
        if !(1.0..=86_400.0).contains(&self.idle_timeout_s) {
            return Err(WorkloadError::IdleTimeout(self.idle_timeout_s));
        }
        self.prompts.validate()?;
        Ok(())
    }

    /// The stages in the order in which they are run: all levels of the first
    /// repeat, then all of the second, so that a slow drift of the machine falls
    /// on every level alike. No two stages share a prompt.
    #[must_use]
    pub fn plan(&self) -> Vec<StagePlan> {
        let mut first_prompt = 0;
        let mut first_warmup_prompt = WARMUP_PROMPTS_FROM;
        let mut stages = Vec::new();
        for repeat in 0..self.repeats {
            for level in &self.levels {
                let warmup_requests = self.warmup_requests.unwrap_or(level.kind.concurrency());
                stages.push(StagePlan {
                    index: u32::try_from(stages.len()).unwrap_or(u32::MAX),
                    level: *level,
                    repeat,
                    first_prompt,
                    first_warmup_prompt,
                    warmup_requests,
                });
                first_prompt += match level.size {
                    StageSize::Requests { requests } => u64::from(requests),
                    StageSize::Duration { .. } => PROMPTS_PER_TIMED_STAGE,
                };
                first_warmup_prompt += u64::from(warmup_requests);
            }
        }
        stages
    }

    /// One line for people: `256 tokens, completions, single stream and C = 1, 8; 3 repeats`.
    #[must_use]
    pub fn describe(&self) -> String {
        let api = match self.api {
            Api::Completions => "completions",
            Api::Chat => "chat",
        };
        let single = self
            .levels
            .iter()
            .any(|level| level.kind == StageKind::SingleStream);
        let loops: Vec<String> = self
            .levels
            .iter()
            .filter(|level| level.kind != StageKind::SingleStream)
            .map(|level| level.kind.concurrency().to_string())
            .collect();
        let load = match (single, loops.is_empty()) {
            (true, true) => "single stream".to_owned(),
            (true, false) => format!("single stream and C = {}", loops.join(", ")),
            (false, _) => format!("C = {}", loops.join(", ")),
        };
        let repeats = match self.repeats {
            1 => "1 repeat".to_owned(),
            n => format!("{n} repeats"),
        };
        format!("{} tokens, {api}, {load}; {repeats}", self.output_tokens)
    }
}

/// Requests of a closed-loop stage where nobody says otherwise: four waves, and
/// never fewer than four.
#[must_use]
pub fn default_requests(concurrency: u32) -> u32 {
    concurrency.saturating_mul(4)
}

fn in_range(value: u32, max: u32) -> Result<(), u64> {
    if (1..=max).contains(&value) {
        Ok(())
    } else {
        Err(value.into())
    }
}

fn validate_level(level: LoadLevel) -> Result<(), WorkloadError> {
    let concurrency = level.kind.concurrency();
    in_range(concurrency, limits::CONCURRENCY).map_err(WorkloadError::Concurrency)?;
    match level.size {
        StageSize::Requests { requests } => {
            in_range(requests, limits::REQUESTS).map_err(WorkloadError::Requests)?;
            if requests < concurrency {
                return Err(WorkloadError::FewerRequestsThanSlots {
                    requests,
                    concurrency,
                });
            }
        }
        StageSize::Duration { seconds } => {
            if !(seconds > 0.0 && seconds <= limits::DURATION_S) {
                return Err(WorkloadError::Duration(seconds));
            }
        }
    }
    Ok(())
}

/// Reads `1,8,32,128`.
///
/// # Errors
/// A part that is no whole number, or a number out of bounds.
pub fn parse_concurrencies(text: &str) -> Result<Vec<u32>, WorkloadError> {
    text.split([',', ' '])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| {
            let value: u64 = part
                .parse()
                .map_err(|_| WorkloadError::ConcurrencyList(text.to_owned()))?;
            u32::try_from(value)
                .ok()
                .filter(|value| (1..=limits::CONCURRENCY).contains(value))
                .ok_or(WorkloadError::Concurrency(value))
        })
        .collect()
}

/// Ready-made workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// About a minute on a server of 80 tok/s: a first impression.
    Quick,
    /// About ten minutes: every level three times, so that spread shows.
    Standard,
    /// An hour and more: a fine ladder, five times.
    Thorough,
}

impl Preset {
    /// All of them, quickest first.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Standard, Self::Thorough];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Thorough => "thorough",
        }
    }

    /// One line of help.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Quick => {
                "Single stream (3 requests) and C = 8, 32, once. About a minute: a first impression, no spread."
            }
            Self::Standard => {
                "Single stream (5 requests) and C = 1, 8, 32, 128, three repeats. The one to compare with."
            }
            Self::Thorough => {
                "Single stream (10 requests) and C = 1 to 256 in doublings, five repeats. For decisions."
            }
        }
    }

    /// The workload of this preset.
    #[must_use]
    pub fn workload(self) -> Workload {
        let (single, concurrencies, repeats): (u32, &[u32], u32) = match self {
            Self::Quick => (3, &[8, 32], 1),
            Self::Standard => (5, &[1, 8, 32, 128], 3),
            Self::Thorough => (10, &[1, 2, 4, 8, 16, 32, 64, 128, 256], 5),
        };
        let levels = Workload::levels(Some(single), concurrencies, None);
        Workload {
            repeats,
            ..Workload::with_levels(self.word(), levels)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_named() {
        for preset in Preset::ALL {
            let workload = preset.workload();
            assert_eq!(workload.validate(), Ok(()), "{preset:?}");
            assert_eq!(workload.name, preset.word());
        }
    }

    #[test]
    fn no_prompt_stands_in_two_stages() {
        let mut workload = Preset::Standard.workload();
        workload.levels.push(LoadLevel {
            kind: StageKind::ClosedLoop { concurrency: 3 },
            size: StageSize::Duration { seconds: 1.0 },
        });
        let plan = workload.plan();
        assert_eq!(plan.len(), 18);
        for (earlier, later) in plan.iter().zip(plan.iter().skip(1)) {
            let used = match earlier.level.size {
                StageSize::Requests { requests } => u64::from(requests),
                StageSize::Duration { .. } => PROMPTS_PER_TIMED_STAGE,
            };
            assert_eq!(earlier.first_prompt + used, later.first_prompt);
            assert!(earlier.first_warmup_prompt < later.first_warmup_prompt);
        }
        assert!(
            plan.iter()
                .all(|stage| stage.first_prompt < WARMUP_PROMPTS_FROM)
        );
    }

    #[test]
    fn the_hash_knows_content_and_not_the_name() {
        let one = Preset::Quick.workload();
        let mut two = one.clone();
        two.name = "another name".to_owned();
        assert_eq!(one.hash(), two.hash());
        two.output_tokens += 1;
        assert_ne!(one.hash(), two.hash());
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let with = |change: &dyn Fn(&mut Workload)| {
            let mut workload = Preset::Quick.workload();
            change(&mut workload);
            workload.validate().expect_err("a refusal")
        };
        assert_eq!(with(&|w| w.levels.clear()), WorkloadError::NoLevels);
        assert_eq!(with(&|w| w.repeats = 0), WorkloadError::Repeats(0));
        assert_eq!(
            with(&|w| w.output_tokens = 0),
            WorkloadError::OutputTokens(0)
        );
        assert!(matches!(
            with(&|w| w.temperature = f64::NAN),
            WorkloadError::Temperature(_)
        ));
        assert!(matches!(
            with(&|w| w.idle_timeout_s = 0.0),
            WorkloadError::IdleTimeout(_)
        ));
        assert!(matches!(
            with(&|w| w.levels = vec![w.levels[0]; 2]),
            WorkloadError::DuplicateLevel(_)
        ));
        let level = |concurrency, size| LoadLevel {
            kind: StageKind::ClosedLoop { concurrency },
            size,
        };
        assert_eq!(
            with(&|w| w.levels = vec![level(0, StageSize::Requests { requests: 1 })]),
            WorkloadError::Concurrency(0)
        );
        assert_eq!(
            with(&|w| w.levels = vec![level(8, StageSize::Requests { requests: 7 })]),
            WorkloadError::FewerRequestsThanSlots {
                requests: 7,
                concurrency: 8
            }
        );
        assert!(matches!(
            with(&|w| w.levels = vec![level(8, StageSize::Duration { seconds: f64::NAN })]),
            WorkloadError::Duration(_)
        ));
    }

    #[test]
    fn lists_of_concurrencies() {
        assert_eq!(parse_concurrencies("1, 8,32 128,"), Ok(vec![1, 8, 32, 128]));
        assert_eq!(parse_concurrencies("0"), Err(WorkloadError::Concurrency(0)));
        assert_eq!(
            parse_concurrencies("100000"),
            Err(WorkloadError::Concurrency(100_000))
        );
        assert_eq!(
            parse_concurrencies("1,two"),
            Err(WorkloadError::ConcurrencyList("1,two".to_owned()))
        );
    }
}
