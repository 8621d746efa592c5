//! A workload as typed.

mod again;

use serde::{Deserialize, Serialize};

use crate::{
    goodput::Bounds,
    prompts::PromptSet,
    workload::{
        Api, Arrivals, CachePolicy, LoadLevel, Preset, Saturation, StageKind, StageSize,
        Thousandths, Workload, WorkloadError, ladder, parse_concurrencies, parse_rates,
    },
};

/// Seconds of a stage at a rate where nobody says otherwise.
const RATE_SECONDS: f64 = 60.0;

/// A workload as typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadForm {
    /// A preset, or none for the fields that follow, up to the warm-up.
    pub preset: Option<Preset>,
    /// Which route. Also with a preset, as are prompts, bounds, cache and thinking.
    pub api: Api,
    /// How load is laid on.
    #[serde(default)]
    pub load: LoadForm,
    /// Requests of the single stream; none leaves it out.
    pub single_stream: Option<u32>,
    /// Concurrencies as typed, such as `1, 8, 32, 128`; may be blank.
    pub concurrencies: String,
    /// Top of the ladder, to find saturation.
    #[serde(default = "usual_top")]
    pub up_to: u32,
    /// A rung that raises throughput by less than this many percent is the last.
    #[serde(default = "usual_gain")]
    pub min_gain_percent: u32,
    /// Rates as typed, in requests per second, such as `0.5, 2, 10`.
    #[serde(default = "usual_rates")]
    pub rates: String,
    /// How the gaps between requests are spread, at a rate.
    #[serde(default)]
    pub arrivals: ArrivalsForm,
    /// The shape of gamma arrivals.
    #[serde(default = "usual_burstiness")]
    pub burstiness: f64,
    /// Requests a stage; none for four per slot, or for a time. None to find
    /// saturation.
    pub requests: Option<u32>,
    /// Seconds a stage instead of requests; at a rate, none for a minute.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Completion tokens asked for.
    pub output_tokens: u32,
    /// Repeats.
    pub repeats: u32,
    /// Warm-up requests a stage; none for one per slot.
    pub warmup_requests: Option<u32>,
    /// Prompts from a file: its name and text; none for the built-in ones.
    pub prompt_file: Option<(String, String)>,
    /// The three founding prompts instead of varied ones.
    pub founding_prompts: bool,
    /// Random words of so many tokens instead.
    #[serde(default)]
    pub random_tokens: Option<u32>,
    /// Prompts with common beginnings instead.
    #[serde(default)]
    pub shared_prefix: Option<SharedPrefixForm>,
    /// Bounds of goodput; all blank for none.
    #[serde(default)]
    pub goodput: Bounds,
    /// Ask the engine to clear its prefix cache before each stage.
    #[serde(default)]
    pub reset_cache: bool,
    /// Switch the model's thinking; none leaves it as the model has it.
    #[serde(default)]
    pub thinking: Option<bool>,
}

/// How load is laid on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadForm {
    /// So many requests in flight at once.
    #[default]
    Concurrencies,
    /// Concurrencies in doublings until throughput rises no more.
    Saturation,
    /// So many requests per second, however many are in flight.
    Rates,
}

/// How gaps are spread; see [`Arrivals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalsForm {
    /// All equal.
    Constant,
    /// Exponential.
    #[default]
    Poisson,
    /// Gamma.
    Gamma,
}

/// Prompts with common beginnings; see [`PromptSet::SharedPrefix`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPrefixForm {
    /// Number of different beginnings.
    pub groups: u32,
    /// Tokens of a beginning.
    pub prefix_tokens: u32,
    /// Tokens of the rest.
    pub tokens: u32,
}

const fn usual_top() -> u32 {
    256
}

const fn usual_gain() -> u32 {
    5
}

fn usual_rates() -> String {
    "1, 4".to_owned()
}

const fn usual_burstiness() -> f64 {
    1.0
}

impl Default for WorkloadForm {
    fn default() -> Self {
        Self {
            preset: Some(Preset::Quick),
            api: Api::Completions,
            load: LoadForm::default(),
            single_stream: Some(5),
            concurrencies: "1, 8, 32, 128".to_owned(),
            up_to: usual_top(),
            min_gain_percent: usual_gain(),
            rates: usual_rates(),
            arrivals: ArrivalsForm::default(),
            burstiness: usual_burstiness(),
            requests: None,
            seconds: None,
            output_tokens: 256,
            repeats: 3,
            warmup_requests: None,
            prompt_file: None,
            founding_prompts: false,
            random_tokens: None,
            shared_prefix: None,
            goodput: Bounds::default(),
            reset_cache: false,
            thinking: None,
        }
    }
}

impl WorkloadForm {
    /// The workload that is meant.
    ///
    /// # Errors
    /// A field that cannot be run; see [`WorkloadError`].
    pub fn workload(&self) -> Result<Workload, WorkloadError> {
        let mut workload = match self.preset {
            Some(preset) => preset.workload(),
            None => self.custom()?,
        };
        workload.api = self.api;
        workload.prompts = self.prompts()?;
        workload.goodput = (self.goodput != Bounds::default()).then_some(self.goodput);
        if self.reset_cache {
            workload.cache = CachePolicy::ResetBeforeStage;
        }
        workload.thinking = self.thinking;
        workload.validate()?;
        Ok(workload)
    }

    fn prompts(&self) -> Result<PromptSet, WorkloadError> {
        if let Some((name, text)) = &self.prompt_file {
            return Ok(PromptSet::from_file(name, text)?);
        }
        Ok(
            match (
                self.founding_prompts,
                self.random_tokens,
                self.shared_prefix,
            ) {
                (true, _, _) => PromptSet::Founding,
                (false, Some(tokens), _) => PromptSet::Random { tokens },
                (false, None, Some(shared)) => PromptSet::SharedPrefix {
                    groups: shared.groups,
                    prefix_tokens: shared.prefix_tokens,
                    tokens: shared.tokens,
                },
                (false, None, None) => PromptSet::Varied,
            },
        )
    }

    fn custom(&self) -> Result<Workload, WorkloadError> {
        let size = match (self.requests, self.seconds) {
            (Some(_), Some(_)) => return Err(WorkloadError::TwoSizes),
            (Some(requests), None) => Some(StageSize::Requests { requests }),
            (None, Some(seconds)) => Some(StageSize::Duration { seconds }),
            (None, None) => None,
        };
        let levels = match self.load {
            LoadForm::Concurrencies => Workload::levels(
                self.single_stream,
                &parse_concurrencies(&self.concurrencies)?,
                size,
            ),
            LoadForm::Saturation => {
                let top = self.up_to;
                if !(1..=crate::workload::limits::CONCURRENCY).contains(&top) {
                    return Err(WorkloadError::Concurrency(top.into()));
                }
                // Every rung needs as many requests as it has slots, so one number
                // for all of them would be too few above or too many below.
                if matches!(size, Some(StageSize::Requests { .. })) {
                    return Err(WorkloadError::RequestsOnLadder);
                }
                Workload::levels(self.single_stream, &ladder(top), size)
            }
            LoadForm::Rates => self.at_rates(size)?,
        };
        Ok(Workload {
            output_tokens: self.output_tokens,
            repeats: self.repeats,
            warmup_requests: self.warmup_requests,
            saturation: (self.load == LoadForm::Saturation).then_some(Saturation {
                min_gain_percent: self.min_gain_percent,
            }),
            ..Workload::with_levels("custom", levels)
        })
    }

    fn at_rates(&self, size: Option<StageSize>) -> Result<Vec<LoadLevel>, WorkloadError> {
        let arrivals = match self.arrivals {
            ArrivalsForm::Constant => Arrivals::Constant,
            ArrivalsForm::Poisson => Arrivals::Poisson,
            ArrivalsForm::Gamma => Arrivals::Gamma {
                burstiness: Thousandths::new(self.burstiness)
                    .ok_or(WorkloadError::Burstiness(self.burstiness))?,
            },
        };
        let size = size.unwrap_or(StageSize::Duration {
            seconds: RATE_SECONDS,
        });
        let mut levels = Workload::levels(self.single_stream, &[], None);
        levels.extend(parse_rates(&self.rates)?.into_iter().map(|rate| LoadLevel {
            kind: StageKind::OpenLoop { rate, arrivals },
            size,
        }));
        Ok(levels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn custom() -> WorkloadForm {
        WorkloadForm {
            preset: None,
            single_stream: None,
            ..WorkloadForm::default()
        }
    }

    #[test]
    fn what_older_scripts_send_means_what_it_did() {
        let old = serde_json::json!({
            "preset": null, "api": "completions", "single_stream": 5,
            "concurrencies": "1, 8", "requests": null, "output_tokens": 64, "repeats": 2,
            "warmup_requests": null, "prompt_file": null, "founding_prompts": true,
        });
        let form: WorkloadForm = serde_json::from_value(old).expect("reads");
        let workload = form.workload().expect("a workload");
        assert_eq!(workload.levels, Workload::levels(Some(5), &[1, 8], None));
        assert_eq!(workload.prompts, PromptSet::Founding);
        assert_eq!((workload.goodput, workload.saturation), (None, None));
        assert_eq!(workload.cache, CachePolicy::FreshPrompts);
    }

    #[test]
    fn a_ladder_stops_by_its_rule() {
        let form = WorkloadForm {
            load: LoadForm::Saturation,
            up_to: 12,
            ..custom()
        };
        let workload = form.workload().expect("a workload");
        let rungs: Vec<_> = workload
            .levels
            .iter()
            .filter_map(|level| level.kind.closed_loop())
            .collect();
        assert_eq!(rungs, [1, 2, 4, 8, 12]);
        let rule = workload.saturation.expect("a rule");
        assert_eq!(rule.min_gain_percent, 5);
        let wrong = |change: &dyn Fn(&mut WorkloadForm)| {
            let mut form = form.clone();
            change(&mut form);
            form.workload().expect_err("a refusal")
        };
        assert_eq!(wrong(&|form| form.up_to = 0), WorkloadError::Concurrency(0));
        assert_eq!(wrong(&|form| form.up_to = 1), WorkloadError::NoLadder);
        assert_eq!(
            wrong(&|form| form.requests = Some(40)),
            WorkloadError::RequestsOnLadder
        );
        assert_eq!(
            wrong(&|form| form.min_gain_percent = 0),
            WorkloadError::Saturation(0)
        );
    }

    #[test]
    fn rates_last_a_minute_where_nobody_says_otherwise() {
        let form = WorkloadForm {
            load: LoadForm::Rates,
            rates: "2, 0.5".to_owned(),
            ..custom()
        };
        let workload = form.workload().expect("a workload");
        assert!(workload.levels.iter().all(
            |level| level.kind.is_open() && level.size == StageSize::Duration { seconds: 60.0 }
        ));
        let gamma = WorkloadForm {
            arrivals: ArrivalsForm::Gamma,
            burstiness: 0.25,
            requests: Some(3),
            ..form.clone()
        };
        let level = gamma.workload().expect("a workload").levels[0];
        assert_eq!(level.size, StageSize::Requests { requests: 3 });
        assert_eq!(level.kind.to_string(), "2 req/s (gamma, burstiness 0.25)");
        let both = WorkloadForm {
            requests: Some(3),
            seconds: Some(1.0),
            ..form
        };
        assert_eq!(both.workload(), Err(WorkloadError::TwoSizes));
    }

    #[test]
    fn bounds_prompts_and_switches_go_with_a_preset_too() {
        let form = WorkloadForm {
            api: Api::Chat,
            random_tokens: Some(1000),
            goodput: Bounds {
                ttft_ms: Some(500.0),
                ..Bounds::default()
            },
            reset_cache: true,
            thinking: Some(false),
            ..WorkloadForm::default()
        };
        let workload = form.workload().expect("a workload");
        assert_eq!(workload.prompts, PromptSet::Random { tokens: 1000 });
        assert_eq!(workload.goodput, Some(form.goodput));
        assert_eq!(workload.cache, CachePolicy::ResetBeforeStage);
        assert_eq!(workload.thinking, Some(false));
        let plain = WorkloadForm {
            api: Api::Completions,
            ..form
        };
        assert_eq!(plain.workload(), Err(WorkloadError::ThinkingWithoutChat));
    }
}
