//! What `tokdyno gate` is asked for.

use std::{io, path::PathBuf};

use clap::Args;
use tokdyno_domain::{
    gate::{GateError, LineError, MOST_RULES, Rule, parse_lines},
    ids::RunId,
};

use crate::client::ServerArguments;

#[derive(Debug, Args)]
pub(crate) struct GateArguments {
    /// What is judged: `run` and the number of a run of the server, or a result file.
    /// Of several the first is the baseline.
    #[arg(value_name = "run NUMBER… | FILE…", required = true)]
    subject: Vec<String>,

    /// What it is held against, beside the subject: a run's number or a result file.
    /// May be given several times for several launches of one configuration.
    #[arg(long, value_name = "NUMBER|FILE")]
    baseline: Vec<String>,

    /// A rule that must hold, such as 'c128.output_tps >= 2000' or 'c128.output_tps not
    /// worse than 2 %'. May be given several times.
    #[arg(long = "rule", value_name = "RULE", value_parser = str::parse::<Rule>, required_unless_present = "rules")]
    rule: Vec<Rule>,

    /// A file with a rule on each line.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    /// Keep what it came to on the server.
    #[arg(long)]
    pub(crate) record: bool,

    /// End with exit code 0, and not 5, where a rule is not established and none is
    /// broken.
    #[arg(long)]
    pub(crate) not_established_passes: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// What is judged; of several the first is the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Runs of a server.
    Runs(Vec<RunId>),
    /// Result files.
    Files(Vec<PathBuf>),
}

/// Arguments that cannot be used (exit code 2).
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentError {
    #[error(
        "`{0}` is not a run's number. Write `run` and numbers, or result files without that word."
    )]
    Number(String),
    #[error("No run is named. Write its number after `run`.")]
    NoRun,
    #[error(
        "Only runs of a server can be recorded. Bring the files there with `tokdyno import`, and name the runs."
    )]
    Record,
    #[error("The rules in {path} cannot be read ({reason}). Check its name and its permissions.")]
    File { path: String, reason: io::Error },
    #[error("{path}: {reason}")]
    Lines { path: String, reason: LineError },
    #[error("There are {0} rules; a gate has at most {MOST_RULES}. Leave some out.")]
    TooMany(usize),
    #[error(transparent)]
    Gate(#[from] GateError),
}

impl GateArguments {
    /// What is judged.
    ///
    /// # Errors
    /// Numbers that are none, or files that are to be recorded.
    pub(crate) fn subject(&self) -> Result<Subject, ArgumentError> {
        let after = match self.subject.split_first() {
            Some((word, numbers)) if word == "run" || word == "runs" => numbers,
            _ if self.record => return Err(ArgumentError::Record),
            _ => {
                let all = self.baseline.iter().chain(&self.subject);
                return Ok(Subject::Files(all.map(PathBuf::from).collect()));
            }
        };
        if after.is_empty() {
            return Err(ArgumentError::NoRun);
        }
        self.baseline
            .iter()
            .chain(after)
            .map(|number| {
                number
                    .parse()
                    .map_err(|_| ArgumentError::Number(number.clone()))
            })
            .collect::<Result<_, _>>()
            .map(Subject::Runs)
    }

    /// The rules of the command line, then those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no rules; or there are too many.
    pub(crate) fn rules(&self) -> Result<Vec<Rule>, ArgumentError> {
        let mut rules = self.rule.clone();
        if let Some(file) = &self.rules {
            let path = file.display().to_string();
            let text = std::fs::read_to_string(file).map_err(|reason| ArgumentError::File {
                path: path.clone(),
                reason,
            })?;
            rules.extend(
                parse_lines(&text).map_err(|reason| ArgumentError::Lines { path, reason })?,
            );
        }
        if rules.len() > MOST_RULES {
            return Err(ArgumentError::TooMany(rules.len()));
        }
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        gate: GateArguments,
    }

    fn line(words: &[&str]) -> Result<GateArguments, clap::Error> {
        let rule = ["tokdyno", "--rule", "failures <= 0"];
        Line::try_parse_from([&rule[..], words].concat()).map(|line| line.gate)
    }

    fn subject(words: &[&str]) -> Result<Subject, String> {
        line(words)
            .expect("parsed")
            .subject()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn runs_are_numbers_after_a_word_and_everything_else_is_a_file() {
        let runs = |ids: &[i64]| Ok(Subject::Runs(ids.iter().map(|id| RunId(*id)).collect()));
        let files = |names: &[&str]| Ok(Subject::Files(names.iter().map(PathBuf::from).collect()));
        assert_eq!(subject(&["run", "7"]), runs(&[7]));
        assert_eq!(subject(&["runs", "5", "7"]), runs(&[5, 7]));
        assert_eq!(
            subject(&["--baseline", "1", "--baseline", "2", "run", "7"]),
            runs(&[1, 2, 7])
        );
        assert_eq!(subject(&["a.json", "b.json"]), files(&["a.json", "b.json"]));
        assert_eq!(
            subject(&["--baseline", "base.json", "new.json"]),
            files(&["base.json", "new.json"])
        );
        for (words, says) in [
            (&["run"][..], "No run is named"),
            (&["run", "seven"], "`seven` is not a run's number"),
            (
                &["--baseline", "base.json", "run", "7"],
                "`base.json` is not",
            ),
            (&["--record", "a.json"], "tokdyno import"),
        ] {
            let error = subject(words).expect_err("refused");
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_bad_rule_is_refused_with_its_sentence() {
        let error = line(&["--rule", "speed >= 1", "a.json"]).expect_err("refused");
        assert!(
            error.to_string().contains("There is no metric `speed`"),
            "{error}"
        );
        let bare = Line::try_parse_from(["tokdyno", "a.json"]).expect_err("refused");
        assert!(bare.to_string().contains("--rule"), "{bare}");
    }

    #[test]
    fn rules_of_a_file_come_after_those_of_the_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("rules.txt");
        let name = file.to_str().expect("a path");
        std::fs::write(&file, "# of the release\nc8.output_tps >= 100\n").expect("written");
        let gate = line(&["--rules", name, "a.json"]).expect("parsed");
        let rules: Vec<String> = gate
            .rules()
            .expect("rules")
            .iter()
            .map(Rule::to_string)
            .collect();
        assert_eq!(rules, ["failures <= 0", "c8.output_tps >= 100"]);
        std::fs::write(&file, "speed >= 100\n").expect("written");
        let error = gate.rules().expect_err("refused").to_string();
        assert!(
            error.contains("rules.txt: Line 1: There is no metric"),
            "{error}"
        );
    }
}
