//! Gates: rules that a run, or a comparison, must keep. One language for the page,
//! `tokdyno gate`, REST and `tokdyno bench --fail-if`; `docs/gates.md` explains it.
//!
//! A rule is judged with three outcomes. *Not established* is one of them: a figure
//! that is missing or in doubt neither keeps a rule nor breaks it.

mod bound;
mod evaluate;
mod level;
mod margin;
mod metric;
mod near;
mod outcome;
mod parse;
mod rule;

pub use bound::judge_bound;
pub use evaluate::{GateError, Measured, evaluate};
pub use level::Level;
pub use metric::{Figure, METRICS, Metric, Place, Statistic, explained};
pub use outcome::{GateOutcome, Judgement, Outcome};
pub use parse::{EXAMPLES, LineError, MOST_RULES, RuleError, parse_lines};
pub use rule::{Comparison, Demand, Obstacle, Rule};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
