//! Rules a measurement must not break: `--fail-if 'c128.output_tps<2000'`.

mod near;

use std::str::FromStr;

use tokdyno_domain::{
    metrics::{P99_NEEDS, StageFlag},
    result_file::{ResultFile, ResultStage},
    text,
    workload::{StageKind, StagePlan, StageSize, Thousandths, Workload},
};

use self::near::nearest;
use super::catalogue::{METRICS, Metric, Place, Statistic};

/// A rule. It is broken where its comparison holds.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// As it was typed.
    text: String,
    /// Where it applies; none means every stage that can have the figure.
    level: Option<Level>,
    metric: &'static Metric,
    /// Of a distribution.
    statistic: Option<Statistic>,
    comparison: Comparison,
    bound: f64,
}

/// A load level by its short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Single,
    Closed(u32),
    Rate(Thousandths),
    Ramp,
    Replay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What a rule came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// It is broken.
    pub(crate) broken: bool,
    /// The rule, the value seen, and what follows.
    pub(crate) sentence: String,
}

/// Why a rule cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuleError {
    #[error(
        "`{0}` is no rule. Write [LEVEL.]METRIC, one of < <= > >=, and a number, such as c128.output_tps<2000."
    )]
    Form(String),
    #[error("`{0}` is no number. A rule ends with one, such as tpot_p99>12.")]
    Number(String),
    #[error(
        "`{0}` is no load level. Write single, c and a concurrency (c128), r and a rate (r4), ramp or replay."
    )]
    Level(String),
    #[error("There is no metric `{name}`.{} `tokdyno bench --help-metrics` lists all of them.", suggested(.near))]
    Metric { name: String, near: Vec<String> },
    #[error(
        "The rule `{0}` names a load level that is not measured. Leave the level out, or measure it."
    )]
    NotMeasured(String),
    #[error("The rule `{rule}` can never be met: {reason}.")]
    Impossible { rule: String, reason: &'static str },
}

fn suggested(near: &[String]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!(" Near it are {}.", near.join(", "))
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(rule: &str) -> Result<Self, RuleError> {
        let form = || RuleError::Form(rule.to_owned());
        let at = rule.find(['<', '>']).ok_or_else(form)?;
        let (left, right) = rule.split_at(at);
        let (comparison, number) = if let Some(number) = right.strip_prefix("<=") {
            (Comparison::LessOrEqual, number)
        } else if let Some(number) = right.strip_prefix(">=") {
            (Comparison::GreaterOrEqual, number)
        } else if let Some(number) = right.strip_prefix('<') {
            (Comparison::Less, number)
        } else if let Some(number) = right.strip_prefix('>') {
            (Comparison::Greater, number)
        } else {
            return Err(form());
        };
        let number = number.trim();
        let bound: f64 = number
            .parse()
            .ok()
            .filter(|bound: &f64| bound.is_finite())
            .ok_or_else(|| RuleError::Number(number.to_owned()))?;
        let (level, name) = match left.trim().rsplit_once('.') {
            Some((level, name)) => (Some(level.parse()?), name),
            None => (None, left.trim()),
        };
        let (metric, statistic) = find(name)?;
        Ok(Self {
            text: rule.trim().to_owned(),
            level,
            metric,
            statistic,
            comparison,
            bound,
        })
    }
}

impl FromStr for Level {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let number = |prefix: char| text.strip_prefix(prefix);
        match text {
            "single" => Some(Self::Single),
            "ramp" => Some(Self::Ramp),
            "replay" => Some(Self::Replay),
            _ => {
                let closed = number('c').and_then(|number| number.parse().ok());
                let rate = number('r')
                    .and_then(|number| number.parse().ok())
                    .and_then(Thousandths::new);
                closed.map(Self::Closed).or(rate.map(Self::Rate))
            }
        }
        .ok_or_else(|| RuleError::Level(text.to_owned()))
    }
}

impl Level {
    fn is(self, kind: StageKind) -> bool {
        match (self, kind) {
            (Self::Single, StageKind::SingleStream)
            | (Self::Ramp, StageKind::Ramp { .. })
            | (Self::Replay, StageKind::Replay { .. }) => true,
            (Self::Closed(asked), StageKind::ClosedLoop { concurrency }) => asked == concurrency,
            (Self::Rate(asked), StageKind::OpenLoop { rate, .. }) => asked == rate,
            _ => false,
        }
    }
}

impl Comparison {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Less => value < bound,
            Self::LessOrEqual => value <= bound,
            Self::Greater => value > bound,
            Self::GreaterOrEqual => value >= bound,
        }
    }

    /// Is `one` nearer to breaking the rule than `other`?
    fn is_worse(self, one: f64, other: f64) -> bool {
        match self {
            Self::Less | Self::LessOrEqual => one < other,
            Self::Greater | Self::GreaterOrEqual => one > other,
        }
    }
}

impl Rule {
    /// Can the rule be met at all by this workload? Asked before an hour of
    /// measuring.
    ///
    /// # Errors
    /// The level is not measured, or nothing that is measured has the figure.
    pub(crate) fn check(&self, workload: &Workload) -> Result<(), RuleError> {
        let plan = workload.plan();
        let mut reason = None;
        let mut measured = false;
        for stage in plan.iter().filter(|stage| self.is_meant(stage)) {
            measured = true;
            match self.obstacle(stage, workload) {
                None => return Ok(()),
                Some(obstacle) => reason = Some(obstacle),
            }
        }
        Err(match reason {
            Some(reason) if measured => RuleError::Impossible {
                rule: self.text.clone(),
                reason,
            },
            _ => RuleError::NotMeasured(self.text.clone()),
        })
    }

    /// What the rule comes to. A figure that is not defined breaks it, and so does one
    /// of a stage on which no verdict may rest: nobody can say that it was met.
    pub(crate) fn judge(&self, result: &ResultFile) -> Judgement {
        let mut worst: Option<(f64, String)> = None;
        for planned in result.workload.plan() {
            // Without a level, stages that cannot have the figure are not meant.
            if !self.is_meant(&planned)
                || self.level.is_none() && self.obstacle(&planned, &result.workload).is_some()
                || self.level.is_none() && result.skipped.contains(&planned.index)
            {
                continue;
            }
            let stage = result
                .stages
                .iter()
                .find(|stage| stage.index == planned.index);
            let place = format!("stage {} ({})", planned.index + 1, planned.level.kind);
            let Some(stage) = stage else {
                return self.undefined(&format!("{place} was not measured"));
            };
            let Some(value) = self.value(stage) else {
                return self.undefined(&format!("it is not defined in {place}"));
            };
            if !self.is_count() && !stage.figures.supports_verdict() {
                return self.unsupported(stage, &place);
            }
            if worst
                .as_ref()
                .is_none_or(|(worst, _)| self.comparison.is_worse(value, *worst))
            {
                worst = Some((value, place));
            }
        }
        let Some((value, place)) = worst else {
            return self.undefined("no stage was measured");
        };
        let broken = self.comparison.holds(value, self.bound);
        let unit = match self.metric.unit {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        Judgement {
            broken,
            sentence: format!(
                "{}: {}, {}{unit} in {place}.",
                self.text,
                if broken { "BROKEN" } else { "ok" },
                text::figure(value)
            ),
        }
    }

    fn undefined(&self, why: &str) -> Judgement {
        Judgement {
            broken: true,
            sentence: format!(
                "{}: BROKEN, because {why}, so nobody can say that it was met.",
                self.text
            ),
        }
    }

    fn unsupported(&self, stage: &ResultStage, place: &str) -> Judgement {
        let flags = &stage.figures.flags;
        let why = flags
            .iter()
            .find(|flag| flag.forbids_verdict())
            .map_or_else(|| "No request succeeded.".to_owned(), StageFlag::sentence);
        Judgement {
            broken: true,
            sentence: format!(
                "{}: BROKEN, because no verdict may rest on {place}. {why}",
                self.text
            ),
        }
    }

    /// Does it count requests? Then what forbids a verdict on speed is the very thing
    /// that is asked for.
    fn is_count(&self) -> bool {
        matches!(
            self.metric.name,
            "requests" | "completed" | "failures" | "failure_share"
        )
    }

    fn is_meant(&self, stage: &StagePlan) -> bool {
        self.level.is_none_or(|level| level.is(stage.level.kind))
    }

    fn value(&self, stage: &ResultStage) -> Option<f64> {
        match (self.metric.place, self.statistic) {
            (Place::Value(value), _) => value(stage),
            (Place::Distribution(of), Some(statistic)) => statistic.of(of(&stage.figures)),
            (Place::Distribution(_), None) => None,
        }
    }

    /// Why a stage cannot have the figure by its very plan.
    fn obstacle(&self, stage: &StagePlan, workload: &Workload) -> Option<&'static str> {
        let requests = match stage.level.size {
            StageSize::Requests { requests } => Some(requests as usize),
            StageSize::Duration { .. } => None,
        };
        let kind = stage.level.kind;
        match self.metric.name {
            "goodput" if workload.goodput.is_none() => Some("goodput needs bounds, see --goodput"),
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
            // Gaps are many a request.
            "itl" | "icl" => None,
            _ if self.statistic == Some(Statistic::P99)
                && requests.is_some_and(|n| n < P99_NEEDS) =>
            {
                Some("p99 needs at least 100 requests in a stage")
            }
            _ => None,
        }
    }
}

fn find(name: &str) -> Result<(&'static Metric, Option<Statistic>), RuleError> {
    for metric in METRICS {
        match metric.place {
            Place::Value(_) if metric.name == name => return Ok((metric, None)),
            Place::Value(_) => {}
            Place::Distribution(_) => {
                let rest = name.strip_prefix(metric.name);
                let word = rest.and_then(|rest| rest.strip_prefix('_'));
                if let Some((_, statistic)) = Statistic::ALL
                    .iter()
                    .find(|(known, _)| Some(*known) == word)
                {
                    return Ok((metric, Some(*statistic)));
                }
            }
        }
    }
    Err(RuleError::Metric {
        name: name.to_owned(),
        near: nearest(name, &names()),
    })
}

/// Every name that a rule may use.
fn names() -> Vec<String> {
    METRICS
        .iter()
        .flat_map(|metric| match metric.place {
            Place::Value(_) => vec![metric.name.to_owned()],
            Place::Distribution(_) => Statistic::ALL
                .iter()
                .map(|(word, _)| format!("{}_{word}", metric.name))
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
