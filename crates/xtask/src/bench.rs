//! How exactly the meter measures: `tokdyno bench` against the stand-in engine,
//! and its figures against the stand-in's log of when it really sent what.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::commands::{self, root, target_dir};

/// The levels that are measured.
const CONCURRENCIES: [usize; 4] = [1, 32, 128, 512];

/// Tokens of each reply.
const OUTPUT_TOKENS: u64 = 128;

/// Requests of a level: enough for a steady state, few enough for a minute.
const REQUESTS_PER_SLOT: usize = 4;
const FEWEST_REQUESTS: usize = 16;

/// Up to this level the figures must agree with the truth within [`BOUND_MS`].
const BOUNDED_CONCURRENCY: usize = 128;
const BOUND_MS: f64 = 1.0;

/// Ticks of the kernel's CPU times per second (`USER_HZ`, the same everywhere on Linux).
const TICKS_PER_SECOND: f64 = 100.0;

/// What the stand-in wrote about a request. Its first line is about the engine.
#[derive(Debug, Clone, Deserialize)]
struct Truth {
    received_ns: u64,
    tokens: u64,
    outcome: String,
    first_sent_ns: Option<u64>,
    last_sent_ns: Option<u64>,
    chunk_tokens: Vec<u64>,
}

impl Truth {
    fn ttft_ms(&self) -> Option<f64> {
        Some(milliseconds(self.received_ns, self.first_sent_ns?))
    }

    /// As the product defines it: the tokens after the first chunk's.
    fn tpot_ms(&self) -> Option<f64> {
        let after_first = self.tokens.checked_sub(*self.chunk_tokens.first()?)?;
        (after_first > 0).then_some(())?;
        Some(milliseconds(self.first_sent_ns?, self.last_sent_ns?) / after_first as f64)
    }
}

/// What is read of the result file.
#[derive(Debug, Deserialize)]
struct ResultFile {
    stages: Vec<Stage>,
}

#[derive(Debug, Deserialize)]
struct Stage {
    completed: u64,
    failed: u64,
    output_tokens: u64,
    ttft_ms: Summary,
    tpot_ms: Summary,
}

/// Mean and two percentiles, null where undefined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
struct Summary {
    mean: Option<f64>,
    p50: Option<f64>,
    p99: Option<f64>,
}

impl Summary {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Self {
            mean: (!sorted.is_empty()).then_some(mean),
            p50: percentile(&sorted, 0.5),
            p99: percentile(&sorted, 0.99),
        }
    }

    /// Meter − truth for the mean and the median.
    fn errors(self, truth: Self) -> [Option<f64>; 2] {
        [
            Some(self.mean.zip(truth.mean)),
            Some(self.p50.zip(truth.p50)),
        ]
        .map(|pair| pair.flatten().map(|(measured, true_)| measured - true_))
    }
}

/// Measures every level, prints a table, and fails where a bound does not hold.
///
/// # Errors
/// The programs are not built, or do not work.
pub(crate) fn run() -> Result<ExitCode> {
    let program = std::env::var_os("TOKDYNO_BIN")
        .map_or_else(|| target_dir().join("release/tokdyno"), PathBuf::from);
    if !program.exists() {
        bail!("the program is not built: run `make bench`");
    }
    println!(
        "| C | requests | TTFT truth | TTFT meter | error | TPOT truth | TPOT meter | error | tokens | CPU s / 1,000 tokens |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|:--|--:|");
    let mut good = true;
    for concurrency in CONCURRENCIES {
        good &= level(&program, concurrency)?;
    }
    println!(
        "\nMilliseconds, medians over requests. {}: up to C = {BOUNDED_CONCURRENCY} means and medians within {BOUND_MS} ms of the truth, and at every C no failures and the exact token counts.",
        if good { "Holds" } else { "DOES NOT HOLD" }
    );
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Measures one level and prints its row. Returns whether the bounds hold.
fn level(program: &Path, concurrency: usize) -> Result<bool> {
    let work = tempfile::tempdir()?;
    let log = work.path().join("truth.jsonl");
    let result = work.path().join("result.json");
    let requests = (concurrency * REQUESTS_PER_SLOT).max(FEWEST_REQUESTS);

    let engine = StandIn::start(program, &log)?;
    let cpu_before = cpu_seconds_of_children()?;
    let output = Command::new(program)
        .current_dir(root())
        .args(["bench", "--url", &engine.url])
        .args(["--no-single-stream", "--concurrency"])
        .arg(concurrency.to_string())
        .args(["--requests", &requests.to_string()])
        .args(["--output-tokens", &OUTPUT_TOKENS.to_string()])
        .args(["--warmup", "0", "--repeats", "1", "--json"])
        .arg(&result)
        .output()
        .context("tokdyno bench cannot be run")?;
    let cpu = cpu_seconds_of_children()? - cpu_before;
    if !output.status.success() {
        bail!(
            "tokdyno bench at C = {concurrency} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    // Ended first, so that its log is complete.
    engine.stop()?;

    let file: ResultFile = serde_json::from_slice(&std::fs::read(&result)?)?;
    let [stage] = file.stages.as_slice() else {
        bail!("one stage was asked for, and {} came", file.stages.len());
    };
    let truths = read_truths(&log, requests)?;
    let true_ttft = Summary::of(truths.iter().filter_map(Truth::ttft_ms));
    let true_tpot = Summary::of(truths.iter().filter_map(Truth::tpot_ms));
    let true_tokens: u64 = truths.iter().map(|truth| truth.tokens).sum();
    let exact = stage.output_tokens == true_tokens
        && stage.failed == 0
        && stage.completed == requests as u64;
    let ttft = stage.ttft_ms.errors(true_ttft);
    let tpot = stage.tpot_ms.errors(true_tpot);
    let close = concurrency > BOUNDED_CONCURRENCY
        || ttft
            .iter()
            .chain(&tpot)
            .all(|error| error.is_some_and(|error| error.abs() <= BOUND_MS));
    println!(
        "| {concurrency} | {requests} | {} | {} | {} | {} | {} | {} | {} | {:.4} |",
        shown(true_ttft.p50),
        shown(stage.ttft_ms.p50),
        shown(ttft[1]),
        shown(true_tpot.p50),
        shown(stage.tpot_ms.p50),
        shown(tpot[1]),
        if exact { "exact" } else { "DIFFER" },
        1000.0 * cpu / true_tokens as f64,
    );
    Ok(exact && close)
}

/// A stand-in engine on a port of its own.
struct StandIn {
    child: Child,
    url: String,
}

impl StandIn {
    fn start(program: &Path, log: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["simulate", "sglang", "--model-path", "stand-in"])
            .args(["--tp-size", "8", "--port", "0"])
            // A known schedule, whatever the batch: a token each 10 ms after 50 ms.
            .args(["--sim-ttft-ms", "50", "--sim-step-ms", "10", "--sim-log"])
            .arg(log)
            .stdout(Stdio::piped())
            .spawn()
            .context("the stand-in engine cannot be started")?;
        let mut lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        let url = lines
            .next()
            .transpose()?
            .and_then(|line| Some(line.split_once("listening on ")?.1.trim().to_owned()));
        // Whatever else it says is read and dropped: a full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        match url {
            Some(url) => Ok(Self { child, url }),
            None => {
                child.kill()?;
                child.wait()?;
                bail!("the stand-in engine did not say its address");
            }
        }
    }

    /// Ends it in order.
    fn stop(mut self) -> Result<()> {
        commands::interrupt(&self.child)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        // Already ended in the usual case, which is no error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last `requests` complete replies: what came before was the check of the
/// address, not the measurement.
fn read_truths(log: &Path, requests: usize) -> Result<Vec<Truth>> {
    let text = std::fs::read_to_string(log)?;
    let mut truths: Vec<Truth> = text
        .lines()
        .skip(1)
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .context("the stand-in's log cannot be read")?;
    truths.retain(|truth| truth.outcome == "complete" && truth.tokens == OUTPUT_TOKENS);
    truths.sort_by_key(|truth| truth.received_ns);
    if truths.len() < requests {
        bail!(
            "the stand-in answered {} of {requests} requests in full",
            truths.len()
        );
    }
    Ok(truths.split_off(truths.len() - requests))
}

/// CPU time of all children that have ended, and of theirs (`proc(5)`, fields
/// 16 and 17 of `stat`).
fn cpu_seconds_of_children() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name in brackets may hold blanks; the numbers begin behind it.
    let (_, numbers) = stat.rsplit_once(')').context("/proc/self/stat")?;
    let ticks: u64 = numbers
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(str::parse::<u64>)
        .sum::<Result<_, _>>()?;
    Ok(ticks as f64 / TICKS_PER_SECOND)
}

fn milliseconds(from_ns: u64, to_ns: u64) -> f64 {
    (to_ns as f64 - from_ns as f64) / 1e6
}

/// Linear interpolation between the two nearest ranks.
fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share * last as f64;
    let below = sorted.get(place.floor() as usize)?;
    let above = sorted.get(place.ceil() as usize)?;
    Some(below + (above - below) * place.fract())
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_follows_the_definitions() {
        let truth = Truth {
            received_ns: 1_000_000,
            tokens: 11,
            outcome: "complete".into(),
            first_sent_ns: Some(3_000_000),
            last_sent_ns: Some(23_000_000),
            chunk_tokens: vec![1, 5, 5],
        };
        assert_eq!(truth.ttft_ms(), Some(2.0));
        assert_eq!(truth.tpot_ms(), Some(2.0));
        let all_at_once = Truth {
            chunk_tokens: vec![11],
            ..truth
        };
        assert_eq!(all_at_once.tpot_ms(), None);
    }

    #[test]
    fn summaries_interpolate_and_have_no_figure_for_nothing() {
        let summary = Summary::of([1.0, 2.0, 3.0, 4.0].into_iter());
        assert_eq!(summary.p50, Some(2.5));
        assert_eq!(Summary::of(std::iter::empty()), Summary::default());
    }

    #[test]
    fn only_the_last_complete_replies_count() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let line = |received: u64, tokens: u64, outcome: &str| {
            format!(
                r#"{{"received_ns":{received},"tokens":{tokens},"outcome":"{outcome}","first_sent_ns":9,"last_sent_ns":9,"chunk_tokens":[1]}}"#
            )
        };
        let lines = [
            r#"{"log":"tokdyno-stand-in"}"#.to_owned(),
            line(3, OUTPUT_TOKENS, "complete"),
            line(1, OUTPUT_TOKENS, "complete"),
            line(2, 1, "complete"),
            line(4, OUTPUT_TOKENS, "cut"),
            line(5, OUTPUT_TOKENS, "complete"),
        ];
        std::fs::write(&log, lines.join("\n")).unwrap();
        let times: Vec<u64> = read_truths(&log, 2)
            .unwrap()
            .iter()
            .map(|truth| truth.received_ns)
            .collect();
        assert_eq!(times, [3, 5]);
        assert!(read_truths(&log, 4).is_err());
    }

    #[test]
    fn cpu_time_of_children_is_read() {
        let before = cpu_seconds_of_children().unwrap();
        let status = Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])
            .status()
            .unwrap();
        assert!(status.success());
        assert!(cpu_seconds_of_children().unwrap() > before);
    }
}
