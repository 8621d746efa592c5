//! Rules a measurement must not break: `--fail-if 'c128.output_tps<2000'`. The language
//! is that of gates, turned round: what a gate demands, this forbids.

use std::str::FromStr;

use tokdyno_domain::{
    gate::{Comparison, Demand, Measured, Obstacle, Outcome, Rule, RuleError, judge_bound},
    result_file::ResultFile,
    workload::Workload,
};

use super::compare::facts;

/// What must not be. It is broken where its comparison holds.
#[derive(Debug, Clone)]
pub(crate) struct FailIf {
    /// As it was typed.
    text: String,
    /// As a gate demands it.
    rule: Rule,
    comparison: Comparison,
    bound: f64,
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
pub(crate) enum FailIfError {
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(
        "`{0}` needs a baseline, and a measurement has none. Give a bound here, or hold the result against another one with `tokdyno gate`."
    )]
    NoBaseline(String),
    #[error("The rule `{rule}` {obstacle}.")]
    Obstacle { rule: String, obstacle: Obstacle },
}

impl FromStr for FailIf {
    type Err = FailIfError;

    fn from_str(text: &str) -> Result<Self, FailIfError> {
        let text = text.trim().to_owned();
        let forbidden: Rule = text.parse()?;
        let Demand::Bound { comparison, bound } = forbidden.demand else {
            return Err(FailIfError::NoBaseline(text));
        };
        let comparison = comparison.opposite();
        Ok(Self {
            text,
            rule: Rule {
                demand: Demand::Bound { comparison, bound },
                ..forbidden
            },
            comparison,
            bound,
        })
    }
}

impl FailIf {
    /// Can the rule be met at all by this workload? Asked before an hour of
    /// measuring.
    ///
    /// # Errors
    /// The level is not measured, or nothing that is measured has the figure.
    pub(crate) fn check(&self, workload: &Workload) -> Result<(), FailIfError> {
        match self.rule.obstacle(workload) {
            None => Ok(()),
            Some(obstacle) => Err(FailIfError::Obstacle {
                rule: self.text.clone(),
                obstacle,
            }),
        }
    }

    /// What the rule comes to. What is not established breaks it: nobody can say that
    /// it was met.
    fn judge(&self, run: &Measured) -> Judgement {
        let judged = judge_bound(&self.rule, self.comparison, self.bound, run);
        let said = match judged.outcome {
            Outcome::Holds => format!("ok, {}", judged.sentence),
            Outcome::Broken => format!("BROKEN, {}", judged.sentence),
            Outcome::NotEstablished => format!("BROKEN. {}", judged.sentence),
        };
        Judgement {
            broken: judged.outcome != Outcome::Holds,
            sentence: format!("{}: {said}", self.text),
        }
    }
}

/// What each rule comes to.
pub(crate) fn judge(rules: &[FailIf], result: &ResultFile) -> Vec<Judgement> {
    let run = facts::measured(result, 1);
    rules.iter().map(|rule| rule.judge(&run)).collect()
}

#[cfg(test)]
mod tests;
