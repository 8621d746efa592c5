//! The shape of the load: how many requests at once, or when each is sent.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{WorkloadError, limits};

/// A positive number with three decimals: a rate, a shape, a factor. Kept whole,
/// so that two of them are equal or not, and nothing in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "f64", try_from = "f64")]
pub struct Thousandths(u32);

impl Thousandths {
    /// One.
    pub const ONE: Self = Self(1000);

    /// The nearest one to `value`; none below a half thousandth, above four
    /// million, or if it is not finite.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        let whole = (value * 1000.0).round();
        (1.0..=4e9).contains(&whole).then_some(Self(whole as u32))
    }

    /// Of so many thousandths, at least one.
    #[must_use]
    pub const fn of_thousandths(count: u32) -> Option<Self> {
        if count == 0 { None } else { Some(Self(count)) }
    }

    /// How many thousandths.
    #[must_use]
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl From<Thousandths> for f64 {
    fn from(value: Thousandths) -> Self {
        value.get()
    }
}

impl TryFrom<f64> for Thousandths {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        Self::new(value).ok_or_else(|| {
            format!("{value} is out of range: choose 0.001 to 4000000, with up to three decimals")
        })
    }
}

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// How the gaps between the requests of an open loop are spread, their mean being
/// one over the rate.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case", tag = "arrivals")]
pub enum Arrivals {
    /// All equal.
    Constant,
    /// Exponential: requests that know nothing of each other.
    #[default]
    Poisson,
    /// Gamma with this shape, `vllm bench serve`'s burstiness: 1 is Poisson, less
    /// comes in bursts, more is more even.
    Gamma {
        /// The shape parameter.
        burstiness: Thousandths,
    },
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("evenly spaced"),
            Self::Poisson => f.write_str("Poisson"),
            Self::Gamma { burstiness } => write!(f, "gamma, burstiness {burstiness}"),
        }
    }
}

/// The kind of a stage: how many requests are in flight, or when they are sent.
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
    /// Open loop: requests are sent when it is their time, however many are in
    /// flight.
    OpenLoop {
        /// Requests per second.
        rate: Thousandths,
        /// How their gaps are spread.
        #[serde(flatten)]
        arrivals: Arrivals,
    },
    /// Open loop whose rate rises (or falls) evenly in time over the stage.
    Ramp {
        /// Requests per second at its beginning.
        from: Thousandths,
        /// Requests per second at its end.
        to: Thousandths,
        /// How their gaps are spread.
        #[serde(flatten)]
        arrivals: Arrivals,
    },
    /// Open loop at the times of a recorded trace, which is the prompt set.
    Replay {
        /// How many times faster than recorded.
        speed: Thousandths,
    },
}

impl StageKind {
    /// Requests in flight, where the load fixes them.
    #[must_use]
    pub const fn concurrency(self) -> Option<u32> {
        match self {
            Self::SingleStream => Some(1),
            Self::ClosedLoop { concurrency } => Some(concurrency),
            Self::OpenLoop { .. } | Self::Ramp { .. } | Self::Replay { .. } => None,
        }
    }

    /// C of a closed loop; none for anything else, the single stream included.
    #[must_use]
    pub const fn closed_loop(self) -> Option<u32> {
        match self {
            Self::ClosedLoop { concurrency } => Some(concurrency),
            _ => None,
        }
    }

    /// Does a schedule say when requests are sent?
    #[must_use]
    pub const fn is_open(self) -> bool {
        self.concurrency().is_none()
    }

    /// Connections that are opened, and warmed up, before the stage: C, or for an
    /// open loop a second's worth of requests, within 1 to 64.
    #[must_use]
    pub fn slots(self) -> u32 {
        let second = |rate: f64| (rate.ceil() as u32).clamp(1, 64);
        match self {
            Self::SingleStream => 1,
            Self::ClosedLoop { concurrency } => concurrency,
            Self::OpenLoop { rate, .. } => second(rate.get()),
            Self::Ramp { from, to, .. } => second(from.get().max(to.get())),
            Self::Replay { .. } => 16,
        }
    }

    /// The word as stored.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SingleStream => "single_stream",
            Self::ClosedLoop { .. } => "closed_loop",
            Self::OpenLoop { .. } => "open_loop",
            Self::Ramp { .. } => "ramp",
            Self::Replay { .. } => "replay",
        }
    }

    /// Its words as a part of an address or of an element's id: `single-stream`,
    /// `c-8`, `12.5-req-s-poisson`.
    #[must_use]
    pub fn slug(self) -> String {
        self.to_string()
            .to_ascii_lowercase()
            .split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '.'))
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("-")
    }
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SingleStream => f.write_str("single stream"),
            Self::ClosedLoop { concurrency } => write!(f, "C = {concurrency}"),
            Self::OpenLoop { rate, arrivals } => write!(f, "{rate} req/s ({arrivals})"),
            Self::Ramp { from, to, arrivals } => {
                write!(f, "{from} to {to} req/s ({arrivals})")
            }
            Self::Replay { speed } if *speed == Thousandths::ONE => f.write_str("trace"),
            Self::Replay { speed } => write!(f, "trace, {speed} times as fast"),
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
    /// How many at once, or when.
    #[serde(flatten)]
    pub kind: StageKind,
    /// How many in all.
    #[serde(flatten)]
    pub size: StageSize,
}

impl LoadLevel {
    /// Checks every bound.
    ///
    /// # Errors
    /// The first [`WorkloadError`] found.
    pub(super) fn validate(self) -> Result<(), WorkloadError> {
        match self.kind {
            StageKind::SingleStream | StageKind::ClosedLoop { .. } => {
                super::in_range(self.kind.slots(), limits::CONCURRENCY)
                    .map_err(WorkloadError::Concurrency)?;
            }
            StageKind::OpenLoop { rate, arrivals } => validate_open(&[rate], arrivals)?,
            StageKind::Ramp { from, to, arrivals } => validate_open(&[from, to], arrivals)?,
            StageKind::Replay { speed } => {
                if !(limits::SPEED.0..=limits::SPEED.1).contains(&speed.get()) {
                    return Err(WorkloadError::Speed(speed.get()));
                }
            }
        }
        match self.size {
            StageSize::Requests { requests } => {
                super::in_range(requests, limits::REQUESTS).map_err(WorkloadError::Requests)?;
                if let Some(concurrency) = self.kind.concurrency()
                    && requests < concurrency
                {
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
}

fn validate_open(rates: &[Thousandths], arrivals: Arrivals) -> Result<(), WorkloadError> {
    if let Some(rate) = rates.iter().find(|rate| rate.get() > limits::RATE) {
        return Err(WorkloadError::Rate(rate.get()));
    }
    if let Arrivals::Gamma { burstiness } = arrivals
        && !(limits::BURSTINESS.0..=limits::BURSTINESS.1).contains(&burstiness.get())
    {
        return Err(WorkloadError::Burstiness(burstiness.get()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_and_old_ones_look_as_before() {
        let rate = Thousandths::new(12.5).expect("a rate");
        for (kind, json) in [
            (
                StageKind::ClosedLoop { concurrency: 8 },
                r#"{"kind":"closed_loop","concurrency":8}"#,
            ),
            (
                StageKind::OpenLoop {
                    rate,
                    arrivals: Arrivals::Poisson,
                },
                r#"{"kind":"open_loop","rate":12.5,"arrivals":"poisson"}"#,
            ),
            (
                StageKind::Ramp {
                    from: Thousandths::ONE,
                    to: rate,
                    arrivals: Arrivals::Gamma {
                        burstiness: Thousandths::new(0.5).expect("a shape"),
                    },
                },
                r#"{"kind":"ramp","from":1.0,"to":12.5,"arrivals":"gamma","burstiness":0.5}"#,
            ),
            (
                StageKind::Replay {
                    speed: Thousandths::ONE,
                },
                r#"{"kind":"replay","speed":1.0}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&kind).expect("serialises"), json);
            assert_eq!(
                serde_json::from_str::<StageKind>(json).expect("reads back"),
                kind
            );
        }
    }

    #[test]
    fn addresses_tell_levels_apart() {
        let rate = |value| StageKind::OpenLoop {
            rate: Thousandths::new(value).expect("a rate"),
            arrivals: Arrivals::Poisson,
        };
        let slugs = [
            StageKind::SingleStream,
            StageKind::ClosedLoop { concurrency: 8 },
            rate(1.25),
            rate(125.0),
        ]
        .map(StageKind::slug);
        assert_eq!(
            slugs,
            [
                "single-stream",
                "c-8",
                "1.25-req-s-poisson",
                "125-req-s-poisson"
            ]
        );
    }

    #[test]
    fn thousandths_have_bounds() {
        assert_eq!(Thousandths::new(0.0), None);
        assert_eq!(Thousandths::new(f64::NAN), None);
        assert_eq!(Thousandths::new(-3.0), None);
        assert_eq!(Thousandths::new(1e12), None);
        assert_eq!(Thousandths::new(2.0004).map(Thousandths::get), Some(2.0));
        assert!(serde_json::from_str::<Thousandths>("0").is_err());
        assert_eq!(Thousandths::new(2.5).expect("one").to_string(), "2.5");
    }

    #[test]
    fn impossible_rates_are_refused() {
        let level = |kind| LoadLevel {
            kind,
            size: StageSize::Requests { requests: 10 },
        };
        let fast = Thousandths::new(1e6).expect("one");
        let refused = level(StageKind::OpenLoop {
            rate: fast,
            arrivals: Arrivals::Constant,
        });
        assert_eq!(refused.validate(), Err(WorkloadError::Rate(1e6)));
        let bursty = Arrivals::Gamma { burstiness: fast };
        let refused = level(StageKind::Ramp {
            from: Thousandths::ONE,
            to: Thousandths::ONE,
            arrivals: bursty,
        });
        assert_eq!(refused.validate(), Err(WorkloadError::Burstiness(1e6)));
        let refused = level(StageKind::Replay { speed: fast });
        assert_eq!(refused.validate(), Err(WorkloadError::Speed(1e6)));
    }
}
