//! Reading rules, with a sentence for whatever is none.

use std::str::FromStr;

use super::{
    Comparison, Demand, Figure, Level, METRICS, Place, Rule, Statistic, metric::names,
    near::nearest,
};

/// Most rules of a gate.
pub const MOST_RULES: usize = 50;

/// Longest rule, in characters.
const LONGEST: usize = 200;

/// A rule of each sort, for people who write one.
pub const EXAMPLES: [&str; 5] = [
    "single.e2e_tps_p50 >= 85",
    "c128.tpot_p99 <= 60",
    "accept_length >= 2.5",
    "failures <= 0",
    "c128.output_tps not worse than 2 %",
];

/// How a bound is written, the longer signs first.
const SIGNS: [(&str, Comparison); 6] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("at most", Comparison::LessOrEqual),
    ("at least", Comparison::GreaterOrEqual),
];

/// What makes a rule one on the baseline.
const NOT_WORSE: &str = "not worse";

/// Words between that and the number, which people may leave out.
const FILLING: [&str; 5] = ["than", "the", "baseline", "by", "more"];

/// Why something is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Nothing is compared.
    #[error(
        "`{0}` is no rule. Write [LEVEL.]METRIC, one of < <= > >=, and a number, such as c128.output_tps>=2000, or [LEVEL.]METRIC not worse than 2 %."
    )]
    Form(String),
    /// No number at its end.
    #[error("`{0}` is no number. A rule ends with one, such as tpot_p99<=12.")]
    Number(String),
    /// Not so many percent.
    #[error(
        "`{0}` is no percentage from 0 to below 100. Write such as c128.output_tps not worse than 2 %."
    )]
    Percent(String),
    /// No level of this name.
    #[error(
        "`{0}` is no load level. Write single, c and a concurrency (c128), r and a rate (r4), ramp or replay."
    )]
    Level(String),
    /// No metric of this name.
    #[error("There is no metric `{name}`.{} `tokdyno bench --help-metrics` lists all of them.", suggested(.near))]
    Metric {
        /// What was typed.
        name: String,
        /// What may have been meant.
        near: Vec<String>,
    },
    /// Neither more nor less of it is better, or it may be zero.
    #[error(
        "`{0}` is not compared as a ratio, so it cannot be worse by so many percent. Give it a bound, such as failures<=0."
    )]
    NoRatio(String),
    /// Too long to be meant.
    #[error(
        "A rule of {0} characters is too long; at most {LONGEST} are read. Write one rule a line."
    )]
    Long(usize),
}

/// Why lines are no gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// A line is no rule.
    #[error("Line {line}: {error}")]
    Rule {
        /// Which, from 1.
        line: usize,
        /// Why.
        error: RuleError,
    },
    /// There is none.
    #[error("There is no rule. Write one a line, such as {}.", EXAMPLES[0])]
    Empty,
    /// There are too many.
    #[error("There are {0} rules; a gate has at most {MOST_RULES}. Leave some out.")]
    TooMany(usize),
}

fn suggested(near: &[String]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!(" Near it are {}.", near.join(", "))
    }
}

/// One rule a line; blank lines and those that begin with `#` are passed over.
///
/// # Errors
/// [`LineError`], a sentence with the line.
pub fn parse_lines(text: &str) -> Result<Vec<Rule>, LineError> {
    let rules = text
        .lines()
        .zip(1..)
        .map(|(rule, line)| (rule.trim(), line))
        .filter(|(rule, _)| !rule.is_empty() && !rule.starts_with('#'))
        .map(|(rule, line)| {
            rule.parse()
                .map_err(|error| LineError::Rule { line, error })
        })
        .collect::<Result<Vec<Rule>, LineError>>()?;
    match rules.len() {
        0 => Err(LineError::Empty),
        1..=MOST_RULES => Ok(rules),
        many => Err(LineError::TooMany(many)),
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let length = text.chars().count();
        if length > LONGEST {
            return Err(RuleError::Long(length));
        }
        if let Some((left, right)) = text.split_once(NOT_WORSE) {
            return not_worse(left.trim(), right);
        }
        let (left, comparison, number) =
            bound(text).ok_or_else(|| RuleError::Form(text.to_owned()))?;
        let bound = number
            .parse()
            .ok()
            .filter(|bound: &f64| bound.is_finite())
            .ok_or_else(|| RuleError::Number(number.to_owned()))?;
        let (level, name) = place(left)?;
        Ok(Self {
            level,
            figure: exact(name)?,
            demand: Demand::Bound { comparison, bound },
        })
    }
}

/// The sides of a bound.
fn bound(text: &str) -> Option<(&str, Comparison, &str)> {
    let (at, sign, comparison) = SIGNS
        .iter()
        .filter_map(|(sign, comparison)| Some((text.find(sign)?, *sign, *comparison)))
        // The first of those that begin earliest is the longest.
        .min_by_key(|(at, ..)| *at)?;
    let (left, right) = text.split_at(at);
    Some((left.trim(), comparison, right.get(sign.len()..)?.trim()))
}

fn not_worse(left: &str, right: &str) -> Result<Rule, RuleError> {
    let words: Vec<&str> = right
        .split_whitespace()
        .skip_while(|word| FILLING.contains(word))
        .collect();
    let said = words.join(" ");
    let (share, within_launches) = said
        .strip_suffix("within launches")
        .map_or((said.as_str(), false), |share| (share, true));
    let percent = share
        .trim()
        .trim_end_matches('%')
        .trim_end()
        .parse()
        .ok()
        .filter(|percent: &f64| (0.0..100.0).contains(percent))
        .ok_or_else(|| RuleError::Percent(said.clone()))?;
    let (level, name) = place(left)?;
    // As on Compare, the median speaks where no statistic is named.
    let figure = METRICS
        .iter()
        .find(|metric| metric.name == name && matches!(metric.place, Place::Distribution(_)))
        .map_or_else(
            || exact(name),
            |metric| {
                Ok(Figure {
                    metric,
                    statistic: Some(Statistic::P50),
                })
            },
        )?;
    if figure.metric.better.is_none() {
        return Err(RuleError::NoRatio(name.to_owned()));
    }
    Ok(Rule {
        level,
        figure,
        demand: Demand::NotWorse {
            percent,
            within_launches,
        },
    })
}

fn place(left: &str) -> Result<(Option<Level>, &str), RuleError> {
    Ok(match left.rsplit_once('.') {
        Some((level, name)) => (Some(level.parse()?), name),
        None => (None, left),
    })
}

/// The figure of exactly this name.
fn exact(name: &str) -> Result<Figure, RuleError> {
    METRICS
        .iter()
        .find_map(|metric| metric.figure(name))
        .ok_or_else(|| RuleError::Metric {
            name: name.to_owned(),
            near: nearest(name, &names()),
        })
}
