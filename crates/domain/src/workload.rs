//! What is sent: prompts, lengths, sampling, load shape, warm-up, repeats.
//!
//! A workload is immutable and known by the hash of its canonical form, so that
//! "the same workload" is a fact and not an opinion.

mod error;
mod extra;
mod level;
pub mod limits;
mod preset;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::{
    error::WorkloadError,
    level::{Arrivals, LoadLevel, StageKind, StageSize, Thousandths},
    preset::Preset,
};
use crate::{goodput::Bounds, ids::ContentHash, prompts::PromptSet};

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

/// What is done about the engine's prefix cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CachePolicy {
    /// No prompt is sent twice, so nothing but a common template can be cached.
    #[default]
    FreshPrompts,
    /// The engine is asked to clear its prefix cache before each stage. Where it
    /// cannot, the stage says so.
    ResetBeforeStage,
}

/// When a ladder of concurrencies has been climbed far enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saturation {
    /// A step that raises `output_tps` by less than this many percent is the last:
    /// the levels above it are skipped, in all repeats.
    pub min_gain_percent: u32,
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
    /// Bounds a request has to meet to count as good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Bounds>,
    /// Climb the concurrencies until throughput rises no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturation: Option<Saturation>,
    /// Switches the model's thinking on or off, where its chat template knows a
    /// switch (`chat_template_kwargs`: `thinking` and `enable_thinking`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// Further fields of the request's body, sent as they are.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
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

/// Fields of a request that the workload itself sets.
const OWN_FIELDS: [&str; 8] = [
    "temperature",
    "ignore_eos",
    "model",
    "prompt",
    "messages",
    "max_tokens",
    "stream",
    "stream_options",
];
/// Version of the varied prompts: since 2 each begins with a number under every
/// seed, and is thus another prompt than before.
const VARIED_VERSION: u32 = 2;
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
            goodput: None,
            saturation: None,
            thinking: None,
            extra_body: Map::new(),
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

    /// The hash by which two workloads are the same: everything but the name and
    /// the seed, in a form that does not depend on the order of fields in memory.
    /// The seed only draws which of the set's prompts are sent and when; if it
    /// told workloads apart, no two runs that spare each other's cache could be
    /// compared.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.remove("name");
            // Not removed: hashes that were stored for seed 0 stay what they are.
            object.insert("seed".to_owned(), 0.into());
            if self.prompts == PromptSet::Varied {
                object.insert("prompts_version".to_owned(), VARIED_VERSION.into());
            }
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
            level.validate()?;
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
        self.validate_fields()?;
        self.validate_together()
    }

    /// What goes beside the prompt.
    fn validate_fields(&self) -> Result<(), WorkloadError> {
        if let Some(bounds) = &self.goodput {
            bounds.validate().map_err(WorkloadError::Bounds)?;
        }
        if let Some(field) = self.extra_body.keys().find(|field| {
            OWN_FIELDS.contains(&field.as_str())
                    // Ours where the thinking switch is.
                    || (self.thinking.is_some() && *field == "chat_template_kwargs")
        }) {
            return Err(WorkloadError::ExtraField(field.clone()));
        }
        for (field, value) in &self.extra_body {
            extra::check(field, value)?;
        }
        if self.thinking.is_some() && self.api != Api::Chat {
            return Err(WorkloadError::ThinkingWithoutChat);
        }
        Ok(())
    }

    /// Do prompts, route and load fit each other?
    fn validate_together(&self) -> Result<(), WorkloadError> {
        if self.prompts.needs_chat() && self.api != Api::Chat {
            return Err(WorkloadError::ChatNeeded(self.prompts.title()));
        }
        let is_trace = matches!(self.prompts, PromptSet::Trace { .. });
        for level in &self.levels {
            let replays = matches!(level.kind, StageKind::Replay { .. });
            if replays && !is_trace {
                return Err(WorkloadError::NoTrace);
            }
            if matches!(self.prompts, PromptSet::Conversations { .. }) && level.kind.is_open() {
                return Err(WorkloadError::OpenConversations);
            }
        }
        if let Some(saturation) = self.saturation {
            if !(1..=50).contains(&saturation.min_gain_percent) {
                return Err(WorkloadError::Saturation(saturation.min_gain_percent));
            }
            let ladder: Vec<u32> = self
                .levels
                .iter()
                .filter_map(|level| match level.kind {
                    StageKind::ClosedLoop { concurrency } => Some(concurrency),
                    _ => None,
                })
                .collect();
            if ladder.len() < 2 || !ladder.is_sorted() {
                return Err(WorkloadError::NoLadder);
            }
        }
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
                let warmup_requests = self.warmup_requests.unwrap_or(level.kind.slots());
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

    /// Is every prompt meant to be new to the engine? Shared prefixes and earlier turns
    /// are meant to be found in its cache.
    #[must_use]
    pub const fn has_cold_prompts(&self) -> bool {
        !matches!(
            self.prompts,
            PromptSet::SharedPrefix { .. } | PromptSet::Conversations { .. }
        )
    }

    /// One line for people: `256 tokens, completions, single stream and C = 1, 8; 3 repeats`.
    #[must_use]
    pub fn describe(&self) -> String {
        let api = match self.api {
            Api::Completions => "completions",
            Api::Chat => "chat",
        };
        let loops: Vec<String> = self
            .levels
            .iter()
            .filter_map(|level| match level.kind {
                StageKind::ClosedLoop { concurrency } => Some(concurrency.to_string()),
                _ => None,
            })
            .collect();
        let loops = (!loops.is_empty()).then(|| format!("C = {}", loops.join(", ")));
        let others = self
            .levels
            .iter()
            .filter(|level| !matches!(level.kind, StageKind::ClosedLoop { .. }))
            .map(|level| level.kind.to_string());
        let parts: Vec<String> = others.chain(loops).collect();
        let load = match parts.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        };
        let repeats = match self.repeats {
            1 => "1 repeat".to_owned(),
            n => format!("{n} repeats"),
        };
        let lengths = match self.prompts {
            PromptSet::Trace { .. } => "as many tokens as recorded".to_owned(),
            _ => format!("{} tokens", self.output_tokens),
        };
        format!("{lengths}, {api}, {load}; {repeats}")
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

/// Reads `0.5,2,10`, requests per second.
///
/// # Errors
/// A part that is no number, or a rate out of bounds.
pub fn parse_rates(text: &str) -> Result<Vec<Thousandths>, WorkloadError> {
    text.split([',', ' '])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| {
            let value: f64 = part
                .parse()
                .map_err(|_| WorkloadError::RateList(text.to_owned()))?;
            Thousandths::new(value)
                .filter(|rate| rate.get() <= limits::RATE)
                .ok_or(WorkloadError::Rate(value))
        })
        .collect()
}

/// The rungs of a ladder of concurrencies: 1, 2, 4 … and `top` itself.
#[must_use]
pub fn ladder(top: u32) -> Vec<u32> {
    let mut rungs: Vec<u32> = std::iter::successors(Some(1_u32), |rung| rung.checked_mul(2))
        .take_while(|rung| *rung < top)
        .collect();
    rungs.push(top);
    rungs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_rungs() {
        let rates = parse_rates("0.5, 2 10").expect("rates");
        assert_eq!(
            rates.iter().map(|rate| rate.get()).collect::<Vec<_>>(),
            [0.5, 2.0, 10.0]
        );
        assert_eq!(parse_rates("0"), Err(WorkloadError::Rate(0.0)));
        assert_eq!(parse_rates("20000"), Err(WorkloadError::Rate(20_000.0)));
        assert!(matches!(parse_rates("NaN"), Err(WorkloadError::Rate(_))));
        assert!(matches!(
            parse_rates("1;2"),
            Err(WorkloadError::RateList(_))
        ));
        assert_eq!(ladder(1), [1]);
        assert_eq!(ladder(8), [1, 2, 4, 8]);
        assert_eq!(ladder(12), [1, 2, 4, 8, 12]);
    }

    #[test]
    fn presets_are_valid_and_named() {
        for preset in Preset::ALL {
            let workload = preset.workload();
            assert_eq!(workload.validate(), Ok(()), "{preset:?}");
            assert_eq!(workload.name, preset.word());
        }
    }

    #[test]
    fn a_replay_claims_no_length_of_its_own() {
        let level = LoadLevel {
            kind: StageKind::Replay {
                speed: Thousandths::ONE,
            },
            size: StageSize::Requests { requests: 1 },
        };
        let mut workload = Workload::with_levels("w", vec![level]);
        workload.prompts = PromptSet::trace_from_file(
            "t",
            r#"{"timestamp": 0, "input_length": 1, "output_length": 2}"#,
        )
        .expect("a trace");
        let said = workload.describe();
        assert!(said.starts_with("as many tokens as recorded, "), "{said}");
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
    fn the_hash_knows_content_and_neither_name_nor_seed() {
        let one = Preset::Quick.workload();
        let mut two = one.clone();
        two.name = "another name".to_owned();
        two.seed = 7;
        assert_eq!(one.hash(), two.hash());
        two.output_tokens += 1;
        assert_ne!(one.hash(), two.hash());
    }

    #[test]
    fn only_varied_prompts_have_another_hash_than_before() {
        let before = |workload: &Workload| {
            let mut value = serde_json::to_value(workload).expect("serialises");
            let object = value.as_object_mut().expect("an object");
            object.remove("name");
            object.insert("seed".to_owned(), 0.into());
            ContentHash::of(value.to_string().as_bytes())
        };
        let mut workload = Preset::Quick.workload();
        workload.seed = 7;
        assert_eq!(workload.prompts, PromptSet::Varied);
        assert_ne!(workload.hash(), before(&workload));
        for prompts in [PromptSet::Founding, PromptSet::Random { tokens: 9 }] {
            workload.prompts = prompts;
            assert_eq!(workload.hash(), before(&workload));
        }
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
