//! What is seen while it runs: a block that moves on a terminal, a line per stage
//! elsewhere. On standard error, so that results can be piped.

mod latency;

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use tokdyno_domain::{
    meter::{MeterEventKind, Phase, Progress},
    metrics::StageFigures,
    text,
    workload::{StagePlan, StageSize},
};

use self::latency::Latencies;
use super::terminal::{clean, name, tell};

/// Characters of the bar of requests.
const BAR: usize = 24;

/// Shows how far it is.
pub(crate) struct Display {
    /// None: lines alone.
    bar: Option<ProgressBar>,
    plan: Vec<StagePlan>,
    latencies: Latencies,
    /// When the present stage began to measure, in seconds of the meter.
    measuring_since: Option<f64>,
}

impl Display {
    /// For standard error: live if that is a terminal and `live` is wanted.
    pub(crate) fn new(plan: Vec<StagePlan>, live: bool) -> Self {
        let bar = (live && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            // All of it in one message: a change is drawn once, so nothing flickers.
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            plan,
            latencies: Latencies::default(),
            measuring_since: None,
        }
    }

    /// What prints a line from another thread without tearing the block.
    pub(crate) fn speaker(&self) -> impl Fn(&str) + Send + 'static {
        let bar = self.bar.clone();
        move |line| say(bar.as_ref(), line)
    }

    /// Shows an event.
    pub(crate) fn show(&mut self, event: &MeterEventKind) {
        match event {
            MeterEventKind::Started { model, .. } => {
                self.line(&format!("Measuring `{}`.", name(model)));
            }
            MeterEventKind::StageStarted { .. } => {
                self.latencies = Latencies::default();
                self.measuring_since = None;
            }
            MeterEventKind::Request(request) => self.latencies.take(&request.record),
            MeterEventKind::Progress(progress) => self.draw(progress),
            MeterEventKind::StageFinished { stage, figures, .. } => {
                self.line(&over(
                    *stage,
                    self.plan.len(),
                    self.planned(*stage),
                    figures,
                ));
            }
            MeterEventKind::StageSkipped { stage, reason } => {
                self.line(&left_out(
                    *stage,
                    self.plan.len(),
                    self.planned(*stage),
                    reason,
                ));
            }
            MeterEventKind::Finished { .. } => self.clear(),
        }
    }

    fn draw(&mut self, progress: &Progress) {
        if progress.phase != Phase::WarmUp {
            self.measuring_since.get_or_insert(progress.elapsed_s);
        }
        let Some(bar) = &self.bar else {
            return;
        };
        let plan = self.planned(progress.stage);
        bar.set_message(format!(
            "{}\n{} {}",
            heading(plan, progress),
            drawn(share_done(plan, progress, self.measuring_since)),
            details(progress, &self.latencies)
        ));
    }

    fn planned(&self, stage: u32) -> Option<&StagePlan> {
        self.plan.iter().find(|plan| plan.index == stage)
    }

    fn line(&self, line: &str) {
        say(self.bar.as_ref(), line);
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Display {
    /// Whatever comes after must not stand behind half a block.
    fn drop(&mut self) {
        self.clear();
    }
}

fn say(bar: Option<&ProgressBar>, line: &str) {
    match bar {
        Some(bar) if !bar.is_finished() => bar.println(clean(line)),
        _ => tell(line),
    }
}

/// `━━━━━━────`
fn drawn(share: f64) -> String {
    // Saturates, and is 0 for what is no number.
    let done = ((share.clamp(0.0, 1.0) * BAR as f64) as usize).min(BAR);
    format!("{}{}", "━".repeat(done), "─".repeat(BAR - done))
}

/// How much of the stage is done, 0 to 1.
fn share_done(plan: Option<&StagePlan>, progress: &Progress, since: Option<f64>) -> f64 {
    match (progress.planned, plan.map(|plan| plan.level.size)) {
        (Some(planned), _) if planned > 0 => progress.done as f64 / planned as f64,
        (_, Some(StageSize::Duration { seconds })) => {
            since.map_or(0.0, |since| (progress.elapsed_s - since) / seconds)
        }
        _ => 0.0,
    }
}

/// `stage 2/5 · C = 8 · measuring`
fn heading(plan: Option<&StagePlan>, progress: &Progress) -> String {
    let mut parts = vec![format!("stage {}/{}", progress.stage + 1, progress.stages)];
    if let Some(plan) = plan {
        parts.push(plan.level.kind.to_string());
    }
    parts.push(
        match progress.phase {
            Phase::WarmUp => "warming up",
            Phase::Measuring => "measuring",
            Phase::Draining => "draining",
        }
        .to_owned(),
    );
    parts.join(" · ")
}

/// What stands behind the bar, and the two lines below it.
fn details(progress: &Progress, latencies: &Latencies) -> String {
    let mut beside = vec![match progress.planned {
        Some(planned) => format!(
            "{} of {}",
            text::count(progress.done),
            text::plural(planned, "request", "requests")
        ),
        None => text::plural(progress.done, "request", "requests"),
    }];
    if let Some(left) = progress.left_s {
        beside.push(format!("{} left in all", text::duration(left)));
    }
    let mut now = vec![format!("{} in flight", progress.in_flight)];
    if let Some(current) = progress.current_tps {
        now.push(format!("{} tok/s now", text::figure(current)));
    }
    if progress.failed > 0 {
        now.push(format!("{} failed", text::count(progress.failed)));
    }
    format!(
        "{}\n{}\n{}",
        beside.join(" · "),
        now.join(" · "),
        latencies.line()
    )
}

/// `stage 2/5: C = 8, 32 requests, 0 failed, 512.0 tok/s, TTFT p50 20.1 ms, TPOT p50 11.11 ms`
fn over(index: u32, stages: usize, plan: Option<&StagePlan>, figures: &StageFigures) -> String {
    let kind = plan.map_or_else(String::new, |plan| format!(" {},", plan.level.kind));
    let mut line = format!(
        "stage {}/{stages}:{kind} {}, {} failed, {} tok/s",
        index + 1,
        text::plural(figures.requests, "request", "requests"),
        text::count(figures.failed),
        text::optional(figures.output_tps),
    );
    for (name, value) in [("TTFT", figures.ttft_ms.p50), ("TPOT", figures.tpot_ms.p50)] {
        if let Some(value) = value {
            line.push_str(&format!(", {name} p50 {} ms", text::figure(value)));
        }
    }
    line
}

/// `stage 5/5: C = 16 left out. Throughput …`
fn left_out(index: u32, stages: usize, plan: Option<&StagePlan>, reason: &str) -> String {
    let kind = plan.map_or_else(String::new, |plan| format!(" {}", plan.level.kind));
    format!("stage {}/{stages}:{kind} left out. {reason}", index + 1)
}

#[cfg(test)]
mod tests;
