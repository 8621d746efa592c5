//! What is seen while it runs: a line that moves on a terminal, a line per stage
//! elsewhere. On standard error, so that results can be piped.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use tokdyno_domain::{
    meter::{MeterEventKind, Phase, Progress},
    metrics::StageFigures,
    text,
    workload::StagePlan,
};

/// Shows how far it is.
pub(crate) struct Display {
    bar: Option<ProgressBar>,
    stages: u32,
    current: Option<StagePlan>,
}

impl Display {
    /// For standard error, whatever that is.
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            stages: 0,
            current: None,
        }
    }

    /// Shows an event.
    pub(crate) fn show(&mut self, event: &MeterEventKind) {
        match event {
            MeterEventKind::Started { stages, model, .. } => {
                self.stages = *stages;
                self.line(&format!("Measuring `{model}`."));
            }
            MeterEventKind::StageStarted { stage } => self.current = Some(*stage),
            MeterEventKind::Progress(progress) => {
                if let Some(bar) = &self.bar {
                    bar.set_message(moving(self.current.as_ref(), progress));
                    bar.tick();
                }
            }
            MeterEventKind::StageFinished { stage, figures } => {
                let plan = self.current.filter(|plan| plan.index == *stage);
                self.line(&over(*stage, self.stages, plan.as_ref(), figures));
            }
            MeterEventKind::Finished { .. } => {
                if let Some(bar) = &self.bar {
                    bar.finish_and_clear();
                }
            }
            MeterEventKind::Request(_) => {}
        }
    }

    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }
}

/// `stage 2/5 · C = 8 · measuring · 12 of 32 requests · 8 in flight · 512.0 tok/s · 1 failed · 20 s left`
fn moving(plan: Option<&StagePlan>, progress: &Progress) -> String {
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
    parts.push(match progress.planned {
        Some(planned) => format!(
            "{} of {}",
            text::count(progress.done),
            text::plural(planned, "request", "requests")
        ),
        None => text::plural(progress.done, "request", "requests"),
    });
    parts.push(format!("{} in flight", progress.in_flight));
    if let Some(current) = progress.current_tps {
        parts.push(format!("{} tok/s", text::figure(current)));
    }
    if progress.failed > 0 {
        parts.push(format!("{} failed", text::count(progress.failed)));
    }
    if let Some(left) = progress.left_s {
        parts.push(format!("{} left", text::duration(left)));
    }
    parts.join(" · ")
}

/// `stage 2/5: C = 8, 32 requests, 0 failed, 512.0 tok/s`
fn over(index: u32, stages: u32, plan: Option<&StagePlan>, figures: &StageFigures) -> String {
    let kind = plan.map_or_else(String::new, |plan| format!(" {},", plan.level.kind));
    format!(
        "stage {}/{stages}:{kind} {}, {} failed, {} tok/s",
        index + 1,
        text::plural(figures.requests, "request", "requests"),
        text::count(figures.failed),
        text::optional(figures.output_tps),
    )
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::workload::{LoadLevel, StageKind, StageSize, Workload};

    use super::*;

    fn plan() -> StagePlan {
        let level = LoadLevel {
            kind: StageKind::ClosedLoop { concurrency: 8 },
            size: StageSize::Requests { requests: 32 },
        };
        Workload::with_levels("w", vec![level]).plan()[0]
    }

    #[test]
    fn the_moving_line_says_what_is_known() {
        let progress = Progress {
            stage: 1,
            stages: 5,
            phase: Phase::Measuring,
            done: 12,
            failed: 1,
            planned: Some(32),
            in_flight: 8,
            current_tps: Some(512.0),
            elapsed_s: 9.0,
            left_s: Some(20.0),
        };
        assert_eq!(
            moving(Some(&plan()), &progress),
            "stage 2/5 · C = 8 · measuring · 12 of 32 requests · 8 in flight · 512.0 tok/s · 1 failed · 20 s left"
        );
        let unknown = Progress {
            failed: 0,
            planned: None,
            current_tps: None,
            left_s: None,
            phase: Phase::WarmUp,
            ..progress
        };
        assert_eq!(
            moving(None, &unknown),
            "stage 2/5 · warming up · 12 requests · 8 in flight"
        );
    }

    #[test]
    fn the_line_of_a_finished_stage() {
        let figures = StageFigures {
            requests: 32,
            output_tps: Some(512.0),
            ..Default::default()
        };
        assert_eq!(
            over(1, 5, Some(&plan()), &figures),
            "stage 2/5: C = 8, 32 requests, 0 failed, 512.0 tok/s"
        );
    }
}
