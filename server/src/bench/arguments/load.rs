//! The shape of the load: how many requests at once, or when each is sent.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use tokdyno_domain::workload::{
    Arrivals, LoadLevel, Preset, Saturation, StageKind, StageSize, Thousandths, Workload,
    WorkloadError, parse_concurrencies,
};

use super::values::{self, RampRates, Rates};

/// Requests of the single stream where nobody says otherwise.
const SINGLE_STREAM_REQUESTS: u32 = 5;
/// Concurrencies where nobody says otherwise.
const CONCURRENCIES: [u32; 4] = [1, 8, 32, 128];
/// Seconds of a stage with a rate where nobody says otherwise.
const OPEN_LOOP_SECONDS: f64 = 60.0;

/// How the load is shaped.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Load",
    group = ArgGroup::new("by_rate").args(["rate", "ramp"]).multiple(true)
)]
#[group(conflicts_with_all = ["compare", "recover", "help_metrics"])]
pub(crate) struct LoadArguments {
    /// Measure one request after another and nothing else.
    #[arg(long, conflicts_with_all = ["concurrency", "saturation", "rate", "ramp", "replay", "quick", "preset"])]
    pub(super) single_stream_only: bool,

    /// Do not measure the single stream, only the stages of concurrent requests.
    #[arg(long, conflicts_with_all = ["single_stream_only", "quick", "preset"])]
    pub(super) no_single_stream: bool,

    /// Requests in flight, one stage for each number, after the single stream.
    /// Usually C = 1, 8, 32, 128.
    #[arg(long, value_name = "C,C,…", conflicts_with_all = ["quick", "preset"])]
    pub(super) concurrency: Option<String>,

    /// Double the requests in flight, from 1 on, until throughput rises no more.
    #[arg(long, conflicts_with_all = ["concurrency", "quick", "preset"])]
    pub(super) saturation: bool,

    /// With --saturation: go no further than this many in flight.
    #[arg(long, value_name = "N", requires = "saturation", default_value_t = 512)]
    pub(super) max_concurrency: u32,

    /// With --saturation: a step that raises output_tps by less than this is the
    /// last.
    #[arg(
        long,
        value_name = "PERCENT",
        requires = "saturation",
        default_value_t = 5
    )]
    pub(super) min_gain: u32,

    /// Requests per second, one stage for each number: each is sent when it is its
    /// time, however many are in flight.
    #[arg(long, value_name = "R,R,…", value_parser = values::rates, conflicts_with_all = ["quick", "preset"])]
    pub(super) rate: Option<Rates>,

    /// One stage whose rate changes evenly from the first to the second number of
    /// requests per second.
    #[arg(long, value_name = "FROM:TO", value_parser = values::ramp, conflicts_with_all = ["quick", "preset"])]
    pub(super) ramp: Option<RampRates>,

    /// With --rate or --ramp: how the gaps between requests are spread. Usually
    /// poisson; gamma needs --burstiness.
    #[arg(long, value_enum, requires = "by_rate")]
    pub(super) arrivals: Option<ArrivalsName>,

    /// Shape of gamma arrivals: below 1 in bursts, 1 is Poisson, above 1 more even.
    #[arg(long, value_name = "B", value_parser = values::positive, requires = "by_rate")]
    pub(super) burstiness: Option<Thousandths>,

    /// Send at the times of a recorded trace: lines of JSON or CSV with the time and
    /// the tokens of each request and its answer.
    #[arg(long, value_name = "TRACE_FILE", conflicts_with_all = ["concurrency", "saturation", "rate", "ramp", "set", "quick", "preset", "no_single_stream"])]
    pub(super) replay: Option<PathBuf>,

    /// With --replay: how many times faster than recorded.
    #[arg(long, value_name = "X", value_parser = values::positive, requires = "replay")]
    pub(super) speed: Option<Thousandths>,

    /// Requests of each stage. Usually four per slot, and 5 for the single stream.
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "quick", "preset"])]
    pub(super) requests: Option<u32>,

    /// Issue requests for this many seconds in each stage, instead of a number
    /// of them. With --rate and --ramp usually 60.
    #[arg(long, value_name = "S", conflicts_with_all = ["quick", "preset"])]
    pub(super) duration: Option<f64>,

    /// Requests before each stage that do not count; usually one per slot.
    #[arg(long, value_name = "N")]
    pub(super) warmup: Option<u32>,

    /// How often all stages are run; three or more show the spread.
    #[arg(long, value_name = "N")]
    pub(super) repeats: Option<u32>,

    /// The same as --preset quick.
    #[arg(long, conflicts_with = "preset")]
    pub(super) quick: bool,

    /// A ready-made workload.
    #[arg(long, value_enum)]
    pub(super) preset: Option<PresetName>,
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

/// How gaps are spread, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalsName {
    /// All gaps equal.
    Constant,
    /// Requests that know nothing of each other.
    Poisson,
    /// In bursts or more even, as --burstiness says.
    Gamma,
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

/// Options of the load that do not go together.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("--arrivals gamma needs a shape. Give --burstiness, such as 0.5 for bursts.")]
    NoBurstiness,
    #[error(
        "--burstiness is the shape of gamma arrivals and says nothing of {0} ones. Leave one of the two out."
    )]
    Burstiness(&'static str),
}

impl LoadArguments {
    /// The ready-made workload that was asked for.
    pub(super) fn preset(&self) -> Option<Preset> {
        if self.quick {
            Some(Preset::Quick)
        } else {
            self.preset.map(Preset::from)
        }
    }

    /// The rule by which a ladder ends.
    pub(super) fn saturation(&self) -> Option<Saturation> {
        self.saturation.then_some(Saturation {
            min_gain_percent: self.min_gain,
        })
    }

    /// The load levels, `trace_requests` being the number in the trace, if there is
    /// one.
    pub(super) fn levels(
        &self,
        trace_requests: Option<u32>,
    ) -> Result<Vec<LoadLevel>, super::ArgumentError> {
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
        if let Some(requests) = trace_requests {
            return Ok(vec![LoadLevel {
                kind: StageKind::Replay {
                    speed: self.speed.unwrap_or(Thousandths::ONE),
                },
                size: size.unwrap_or(StageSize::Requests { requests }),
            }]);
        }
        let open = self.open_levels(size)?;
        let concurrencies = self.concurrencies(!open.is_empty())?;
        // A number or time of requests is meant for the concurrencies; the single
        // stream needs few.
        let single_stream =
            (!self.no_single_stream && !concurrencies.is_empty()).then_some(SINGLE_STREAM_REQUESTS);
        let mut levels = Workload::levels(single_stream, &concurrencies, size);
        levels.extend(open);
        Ok(levels)
    }

    fn concurrencies(&self, by_rate: bool) -> Result<Vec<u32>, WorkloadError> {
        if self.saturation {
            return Ok(ladder(self.max_concurrency));
        }
        match &self.concurrency {
            Some(list) => parse_concurrencies(list),
            None if by_rate => Ok(Vec::new()),
            None => Ok(CONCURRENCIES.to_vec()),
        }
    }

    fn open_levels(&self, size: Option<StageSize>) -> Result<Vec<LoadLevel>, LoadError> {
        let arrivals = self.spread()?;
        let size = size.unwrap_or(StageSize::Duration {
            seconds: OPEN_LOOP_SECONDS,
        });
        let rates = self.rate.iter().flat_map(|rates| &rates.0);
        let steady = rates.map(|rate| StageKind::OpenLoop {
            rate: *rate,
            arrivals,
        });
        let ramp = self.ramp.map(|ramp| StageKind::Ramp {
            from: ramp.from,
            to: ramp.to,
            arrivals,
        });
        Ok(steady
            .chain(ramp)
            .map(|kind| LoadLevel { kind, size })
            .collect())
    }

    fn spread(&self) -> Result<Arrivals, LoadError> {
        match (self.arrivals, self.burstiness) {
            (None | Some(ArrivalsName::Gamma), Some(burstiness)) => {
                Ok(Arrivals::Gamma { burstiness })
            }
            (Some(ArrivalsName::Gamma), None) => Err(LoadError::NoBurstiness),
            (Some(ArrivalsName::Constant), Some(_)) => Err(LoadError::Burstiness("constant")),
            (Some(ArrivalsName::Poisson), Some(_)) => Err(LoadError::Burstiness("Poisson")),
            (Some(ArrivalsName::Constant), None) => Ok(Arrivals::Constant),
            (None | Some(ArrivalsName::Poisson), None) => Ok(Arrivals::Poisson),
        }
    }
}

/// 1, 2, 4 … and the last.
fn ladder(last: u32) -> Vec<u32> {
    let mut steps: Vec<u32> = std::iter::successors(Some(1_u32), |step| step.checked_mul(2))
        .take_while(|step| *step < last)
        .collect();
    steps.push(last);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ladder_doubles_up_to_its_last_step() {
        assert_eq!(ladder(8), [1, 2, 4, 8]);
        assert_eq!(ladder(12), [1, 2, 4, 8, 12]);
        assert_eq!(ladder(1), [1]);
        assert_eq!(ladder(0), [0], "which is refused as a concurrency");
    }
}
