//! The tool's command line.

use std::time::Duration;

use crate::nvidia_smi::SmiError;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// The table that it shows without arguments.
    Overview,
    /// `-L`.
    List,
    /// `topo -m`.
    Topology,
    /// `--version`.
    Version,
    /// `--query-gpu=…`.
    Gpus(Vec<String>),
    /// `--query-compute-apps=…`.
    Processes(Vec<String>),
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Csv {
    pub(super) header: bool,
    pub(super) units: bool,
}

/// The whole command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) asked: Asked,
    pub(super) csv: Csv,
    /// GPUs by number, UUID or bus id; none means all.
    pub(super) ids: Vec<String>,
    /// Time between answers, if there is to be more than one.
    pub(super) interval: Option<Duration>,
}

/// `-l` without a number.
const USUAL_SECONDS: u64 = 5;

impl Options {
    pub(super) fn read(args: &[String]) -> Result<Self, SmiError> {
        let mut options = Self {
            asked: Asked::Overview,
            csv: Csv {
                header: true,
                units: true,
            },
            ids: Vec::new(),
            interval: None,
        };
        let mut format = None;
        let mut words = args.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let (flag, inline) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (word, None),
            };
            let mut value = || {
                inline
                    .or_else(|| words.next_if(|next| !next.starts_with('-')))
                    .ok_or_else(|| SmiError::Usage(format!("{flag} needs a value")))
            };
            match flag {
                "--query-gpu" => options.asked = Asked::Gpus(list(value()?)),
                "--query-compute-apps" => options.asked = Asked::Processes(list(value()?)),
                "--format" => format = Some(value()?),
                "-i" | "--id" => options.ids = list(value()?),
                "-l" | "--loop" => {
                    let seconds = value().map_or(Ok(USUAL_SECONDS), |text| number(flag, text))?;
                    options.interval = Some(Duration::from_secs(seconds));
                }
                "-lms" | "--loop-ms" => {
                    options.interval = Some(Duration::from_millis(number(flag, value()?)?));
                }
                "-L" | "--list-gpus" => options.asked = Asked::List,
                "--version" => options.asked = Asked::Version,
                "topo" => match words.next() {
                    Some("-m" | "--matrix") => options.asked = Asked::Topology,
                    _ => return Err(SmiError::Usage("only `topo -m` is answered".to_owned())),
                },
                other => return Err(SmiError::Usage(format!("`{other}` is not known"))),
            }
        }
        if matches!(options.asked, Asked::Gpus(_) | Asked::Processes(_)) {
            let format = format.map(list).unwrap_or_default();
            if !format.iter().any(|word| word == "csv") {
                return Err(SmiError::Usage("a query needs --format=csv".to_owned()));
            }
            for word in &format {
                match word.as_str() {
                    "csv" => {}
                    "noheader" => options.csv.header = false,
                    "nounits" => options.csv.units = false,
                    other => return Err(SmiError::Usage(format!("no such format: {other}"))),
                }
            }
        }
        Ok(options)
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|word| word.trim().to_owned()).collect()
}

/// A positive number: an interval of nothing would be a busy loop.
fn number(flag: &str, text: &str) -> Result<u64, SmiError> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| SmiError::Usage(format!("{flag} needs a whole number from 1, not `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Options, SmiError> {
        let args: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
        Options::read(&args)
    }

    #[test]
    fn loops_are_read_in_all_their_spellings() {
        for (args, ms) in [
            (&["-l", "2"][..], 2000),
            (&["-l"], 5000),
            (&["--loop=3"], 3000),
            (&["-lms", "50"], 50),
            (&["--loop-ms=250", "-L"], 250),
        ] {
            let options = read(args).expect("understood");
            assert_eq!(
                options.interval,
                Some(Duration::from_millis(ms)),
                "{args:?}"
            );
        }
        assert_eq!(read(&[]).expect("understood").interval, None);
        for bad in [&["-lms", "0"][..], &["-lms"], &["-l", "x"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
