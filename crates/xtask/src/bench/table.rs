//! The rows, and what holds of the aims.

use std::fmt;

use tokdyno_domain::workload::Api;

use super::clients::{Client, Report, Task};
use super::truth::Figures;

/// The head of the main table. Each figure has the truth in brackets.
pub(super) const HEAD: &str = "\
| client | API | C | TTFT ms (true) | p99 TTFT (true) | TPOT ms (true) | tok/s (of ideal) | coalesced | CPU ms / 1,000 tokens | × bare | peak MiB |
|:--|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|";
/// The head of the table of chunks with several tokens.
pub(super) const PACKING_HEAD: &str = "\
| tokens per chunk | TPOT ms (true) | error | ITL ms (true) | error | p50 ITL ms (true) | error |
|:--|--:|--:|--:|--:|--:|--:|";

/// From this C on the aims apply.
const AIMED_FROM: u32 = 512;
const TTFT_MS: f64 = 3.0;
const TTFT_P99_MS: f64 = 10.0;
const TPOT_SHARE: f64 = 0.004;
const OF_IDEAL: f64 = 0.985;
const TIMES_BARE: f64 = 1.6;
const MEMORY_MIB: f64 = 64.0;
const PACKING_SHARE: f64 = 0.01;
const CHUNKS_PER_S: f64 = 100_000.0;

/// A client at a level.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) client: Client,
    pub(super) task: Task,
    pub(super) report: Report,
    pub(super) truth: Figures,
    pub(super) ideal_tps: f64,
}

impl Row {
    fn cpu_ms_per_1000(&self) -> f64 {
        // ms per 1,000 tokens is s per token, times a million.
        self.report.cost.cpu_s * 1e6 / self.truth.tokens as f64
    }

    fn of_ideal(&self) -> Option<f64> {
        self.report.output_tps.map(|tps| tps / self.ideal_tps)
    }

    /// CPU beside that of the bare reader of the same bytes.
    fn times(&self, bare: &Self) -> Option<f64> {
        let own = bare.cpu_ms_per_1000();
        (own > 0.0).then(|| self.cpu_ms_per_1000() / own)
    }

    /// Does the client count what the server counts?
    fn is_exact(&self) -> bool {
        self.report
            .counts
            .is_none_or(|counts| counts == (u64::from(self.task.requests), self.truth.tokens))
    }

    pub(super) fn line(&self, bare: &Self) -> String {
        let (report, truth) = (&self.report, &self.truth);
        format!(
            "| {} | {} | {} | {} ({}) | {} ({}) | {} ({}) | {} ({} %) | {} % | {:.1} | {} | {:.0} |",
            self.client.name(),
            api(self.task.api),
            self.task.concurrency,
            shown(report.ttft_ms, 2),
            shown(truth.ttft.mean, 2),
            shown(report.ttft_p99_ms, 2),
            shown(truth.ttft.p99, 2),
            shown(report.tpot_ms, 3),
            shown(truth.tpot.mean, 3),
            shown(report.output_tps, 0),
            shown(self.of_ideal().map(|share| share * 100.0), 1),
            shown(report.coalesced.map(|share| share * 100.0), 2),
            self.cpu_ms_per_1000(),
            shown(self.times(bare), 2),
            report.cost.memory_mib,
        )
    }

    pub(super) fn packing_line(&self, name: &str) -> String {
        let cells: Vec<String> = self
            .packing()
            .map(|(measured, truth)| {
                let error = share(measured, truth).map(|share| share * 100.0);
                format!(
                    "{} ({}) | {} %",
                    shown(measured, 3),
                    shown(truth, 3),
                    shown(error, 2)
                )
            })
            .to_vec();
        format!("| {name} | {} |", cells.join(" | "))
    }

    /// Measured and true: TPOT, ITL, its median.
    fn packing(&self) -> [(Option<f64>, Option<f64>); 3] {
        let (report, truth) = (&self.report, &self.truth);
        [
            (report.tpot_ms, truth.tpot.mean),
            (report.itl_ms, truth.itl.mean),
            (report.itl_p50_ms, truth.itl.p50),
        ]
    }
}

/// What holds of the aims, and what does not.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    lines: Vec<(bool, String)>,
    inexact: bool,
}

impl Verdicts {
    pub(super) fn judge(&mut self, meter: &Row, bare: &Row) {
        let at = format!("C = {}, {}", meter.task.concurrency, api(meter.task.api));
        self.count(meter, &at);
        if meter.task.concurrency < AIMED_FROM {
            return;
        }
        let (report, truth) = (&meter.report, &meter.truth);
        let ttft = difference(report.ttft_ms, truth.ttft.mean);
        self.add(
            ttft.is_some_and(|ms| ms.abs() <= TTFT_MS),
            format!(
                "{at}: mean TTFT within {TTFT_MS} ms of the truth ({} ms)",
                signed(ttft, 2)
            ),
        );
        let p99 = difference(report.ttft_p99_ms, truth.ttft.p99);
        self.add(
            p99.is_some_and(|ms| ms.abs() <= TTFT_P99_MS),
            format!(
                "{at}: p99 TTFT within {TTFT_P99_MS} ms ({} ms)",
                signed(p99, 2)
            ),
        );
        let tpot = share(report.tpot_ms, truth.tpot.mean);
        self.add(
            tpot.is_some_and(|share| share.abs() <= TPOT_SHARE),
            format!(
                "{at}: mean TPOT within {} % ({} %)",
                TPOT_SHARE * 100.0,
                signed(tpot.map(|share| share * 100.0), 3)
            ),
        );
        let ideal = meter.of_ideal();
        self.add(
            ideal.is_some_and(|share| share >= OF_IDEAL),
            format!(
                "{at}: at least {} % of the ideal ({} %; the bare reader {} %)",
                OF_IDEAL * 100.0,
                shown(ideal.map(|share| share * 100.0), 2),
                shown(bare.of_ideal().map(|share| share * 100.0), 2)
            ),
        );
        let times = meter.times(bare);
        self.add(
            times.is_some_and(|times| times <= TIMES_BARE),
            format!(
                "{at}: CPU at most {TIMES_BARE} × the bare reader's ({} ×)",
                shown(times, 2)
            ),
        );
        let memory = report.cost.memory_mib;
        self.add(
            memory < MEMORY_MIB,
            format!("{at}: memory under {MEMORY_MIB} MiB ({memory:.0} MiB)"),
        );
    }

    pub(super) fn judge_packing(&mut self, row: &Row, name: &str) {
        let at = format!("{name} tokens a chunk");
        self.count(row, &at);
        for (what, (measured, truth)) in ["TPOT", "ITL", "p50 ITL"].iter().zip(row.packing()) {
            let error = share(measured, truth);
            self.add(
                error.is_some_and(|share| share.abs() <= PACKING_SHARE),
                format!(
                    "{at}: {what} right to {} % ({} %)",
                    PACKING_SHARE * 100.0,
                    signed(error.map(|share| share * 100.0), 2)
                ),
            );
        }
    }

    pub(super) fn judge_parser(&mut self, stream: &str, chunks_per_s: f64) {
        self.add(
            chunks_per_s >= CHUNKS_PER_S,
            format!("parser, {stream}: at least {CHUNKS_PER_S} chunks/s ({chunks_per_s:.0})"),
        );
    }

    /// Were all requests answered and all tokens counted, everywhere?
    pub(super) const fn counts_are_exact(&self) -> bool {
        !self.inexact
    }

    fn count(&mut self, row: &Row, at: &str) {
        let exact = row.is_exact();
        self.inexact |= !exact;
        self.add(
            exact,
            format!("{at}: no failures, and the server's token counts"),
        );
    }

    fn add(&mut self, holds: bool, what: String) {
        self.lines.push((holds, what));
    }
}

impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (holds, what) in &self.lines {
            let verdict = if *holds { "holds" } else { "DOES NOT HOLD" };
            writeln!(f, "{verdict}: {what}")?;
        }
        Ok(())
    }
}

const fn api(api: Api) -> &'static str {
    match api {
        Api::Chat => "chat",
        Api::Completions => "completions",
    }
}

fn difference(measured: Option<f64>, truth: Option<f64>) -> Option<f64> {
    Some(measured? - truth?)
}

fn share(measured: Option<f64>, truth: Option<f64>) -> Option<f64> {
    Some(measured? / truth? - 1.0)
}

fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

fn signed(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:+.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::super::process::Cost;
    use super::super::truth::Summary;
    use super::*;

    fn row(client: Client, ttft_ms: f64, cpu_s: f64) -> Row {
        let of = |mean| Summary {
            mean: Some(mean),
            p50: Some(mean),
            p99: Some(mean),
        };
        Row {
            client,
            task: Task {
                api: Api::Chat,
                concurrency: 512,
                requests: 2048,
                tokens: 128,
            },
            report: Report {
                ttft_ms: Some(ttft_ms),
                ttft_p99_ms: Some(ttft_ms),
                tpot_ms: Some(10.02),
                itl_ms: Some(10.0),
                itl_p50_ms: None,
                output_tps: Some(990.0),
                coalesced: Some(0.001),
                counts: Some((2048, 262_144)),
                cost: Cost {
                    cpu_s,
                    memory_mib: 30.0,
                },
            },
            truth: Figures {
                tokens: 262_144,
                ttft: of(50.0),
                tpot: of(10.0),
                itl: of(10.0),
            },
            ideal_tps: 1000.0,
        }
    }

    fn judged(meter: &Row, bare: &Row) -> (String, bool) {
        let mut verdicts = Verdicts::default();
        verdicts.judge(meter, bare);
        (verdicts.to_string(), verdicts.counts_are_exact())
    }

    #[test]
    fn a_row_shows_the_truth_beside_each_figure() {
        let bare = row(Client::Bare, 51.0, 2.0);
        let meter = row(Client::Meter, 52.0, 3.0);
        assert_eq!(
            meter.line(&bare),
            "| tokdyno | chat | 512 | 52.00 (50.00) | 52.00 (50.00) | 10.020 (10.000) | 990 (99.0 %) | 0.10 % | 11.4 | 1.50 | 30 |"
        );
        assert_eq!(
            meter.packing_line("4"),
            "| 4 | 10.020 (10.000) | 0.20 % | 10.000 (10.000) | 0.00 % | – (10.000) | – % |"
        );
    }

    #[test]
    fn what_is_late_dear_or_unknown_does_not_hold() {
        let bare = row(Client::Bare, 51.0, 2.0);
        let (good, exact) = judged(&row(Client::Meter, 52.9, 3.1), &bare);
        assert!(exact && !good.contains("NOT"), "{good}");
        let (late, _) = judged(&row(Client::Meter, 53.1, 3.3), &bare);
        let broken: Vec<&str> = late.lines().filter(|line| line.contains("NOT")).collect();
        assert_eq!(broken.len(), 2, "{late}");
        let mut unknown = row(Client::Meter, 51.0, 2.0);
        unknown.report.tpot_ms = None;
        unknown.report.counts = Some((2047, 262_016));
        let (text, exact) = judged(&unknown, &bare);
        assert!(!exact && text.matches("NOT").count() == 2, "{text}");
    }

    #[test]
    fn below_the_aims_only_counts_are_judged() {
        let bare = row(Client::Bare, 51.0, 2.0);
        let mut few = row(Client::Meter, 99.0, 9.0);
        few.task.concurrency = 128;
        let (text, _) = judged(&few, &bare);
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
