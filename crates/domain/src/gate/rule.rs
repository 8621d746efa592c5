//! A rule, and what by its plan a run cannot have.

use std::fmt;

use super::{Figure, Level, Statistic};
use crate::{
    metrics::P99_NEEDS,
    workload::{StagePlan, StageSize, Workload},
};

/// A rule: what must hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Where it applies; none means every stage that can have the figure.
    pub level: Option<Level>,
    /// Of what.
    pub figure: Figure,
    /// What is demanded of it.
    pub demand: Demand,
}

/// What is demanded of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Demand {
    /// Every stage must keep within a bound.
    Bound {
        /// How the figure must stand to the bound.
        comparison: Comparison,
        /// The bound, in the metric's unit.
        bound: f64,
    },
    /// It must not be worse than the baseline's by more than this.
    NotWorse {
        /// In percent of the baseline's figure, 0 to below 100.
        percent: f64,
        /// It is enough if that is so of these very launches, by the spread of their
        /// repeats; nothing is claimed of the next ones.
        within_launches: bool,
    },
}

/// How a figure stands to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`, at most
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`, at least
    GreaterOrEqual,
}

/// Why no stage of a workload can have what a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// It has no such level.
    #[error("names a load level that is not measured. Leave the level out, or measure it")]
    NotMeasured,
    /// Its stages are not made for it.
    #[error("can never be met: {0}")]
    Never(&'static str),
}

impl Comparison {
    /// Does it hold between a figure and a bound?
    #[must_use]
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Less => value < bound,
            Self::LessOrEqual => value <= bound,
            Self::Greater => value > bound,
            Self::GreaterOrEqual => value >= bound,
        }
    }

    /// Is `one` nearer to breaking it than `other`, or further beyond?
    #[must_use]
    pub fn is_worse(self, one: f64, other: f64) -> bool {
        match self {
            Self::Less | Self::LessOrEqual => one > other,
            Self::Greater | Self::GreaterOrEqual => one < other,
        }
    }

    /// What holds exactly where this does not.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }

    /// As it is written.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl Rule {
    /// Why no stage of this workload can keep the rule, if so. Asked before an hour of
    /// measuring.
    #[must_use]
    pub fn obstacle(&self, workload: &Workload) -> Option<Obstacle> {
        let mut found = Obstacle::NotMeasured;
        for stage in workload.plan().iter().filter(|stage| self.is_meant(stage)) {
            found = Obstacle::Never(self.obstacle_at(stage, workload)?);
        }
        Some(found)
    }

    /// Does it speak of this stage?
    pub(super) fn is_meant(&self, stage: &StagePlan) -> bool {
        self.level.is_none_or(|level| level.is(stage.level.kind))
    }

    /// Why a stage cannot have the figure by its very plan.
    pub(super) fn obstacle_at(
        &self,
        stage: &StagePlan,
        workload: &Workload,
    ) -> Option<&'static str> {
        let requests = match stage.level.size {
            StageSize::Requests { requests } => Some(requests as usize),
            StageSize::Duration { .. } => None,
        };
        let kind = stage.level.kind;
        match self.figure.metric.name {
            "goodput" if workload.goodput.is_none() => {
                Some("goodput needs bounds in the workload (--goodput)")
            }
            "ttft_intended" if !kind.is_open() => {
                Some("only requests at a rate have an intended time")
            }
            "steady_output_tps"
                if kind
                    .concurrency()
                    .is_none_or(|slots| requests.is_some_and(|n| n < 2 * slots as usize)) =>
            {
                Some("a steady state needs a concurrency and twice as many requests")
            }
            _ if self.figure.statistic == Some(Statistic::P99)
                && requests.is_some_and(|n| n < P99_NEEDS) =>
            {
                Some("p99 needs at least 100 requests in a stage")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Rule {
    /// As it reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(level) = self.level {
            write!(f, "{level}.")?;
        }
        match self.demand {
            Demand::Bound { comparison, bound } => {
                write!(f, "{} {} {bound}", self.figure, comparison.sign())
            }
            Demand::NotWorse {
                percent,
                within_launches,
            } => {
                write!(f, "{} not worse than {percent} %", self.figure)?;
                if within_launches {
                    f.write_str(" within launches")?;
                }
                Ok(())
            }
        }
    }
}
