//! What a workload comes to: stages, requests, tokens, and about how long it takes.

use tokdyno_domain::{
    text,
    workload::{StageKind, StageSize, Workload},
};

/// Speeds seen before at the same endpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::pages) struct Speeds {
    /// Of a single stream, in tok/s.
    pub(in crate::pages) single: f64,
    /// The highest throughput, in tok/s; none means nobody knows.
    pub(in crate::pages) peak: Option<f64>,
}

/// Sums over all stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sums {
    stages: u64,
    requests: u64,
    warmups: u64,
    tokens: u64,
}

/// The plan in a sentence.
pub(in crate::pages) fn sentence(workload: &Workload) -> String {
    let sums = sums(workload);
    format!(
        "{}: {} and {}, up to {} in all.",
        text::plural(sums.stages, "stage", "stages"),
        text::plural(sums.requests, "request", "requests"),
        text::plural(sums.warmups, "warm-up request", "warm-up requests"),
        text::plural(sums.tokens, "completion token", "completion tokens"),
    )
}

fn sums(workload: &Workload) -> Sums {
    let mut sums = Sums::default();
    for stage in workload.plan() {
        let requests = match stage.level.size {
            StageSize::Requests { requests } => u64::from(requests),
            // At a rate the schedule tells, on average; in a closed loop, how many it
            // comes to is what is measured.
            StageSize::Duration { seconds } => match stage.level.kind {
                StageKind::OpenLoop { rate, .. } => (rate.get() * seconds).round() as u64,
                StageKind::Ramp { from, to, .. } => {
                    ((from.get() + to.get()) / 2.0 * seconds).round() as u64
                }
                _ => 0,
            },
        };
        let warmups = u64::from(stage.warmup_requests);
        sums.stages += 1;
        sums.requests += requests;
        sums.warmups += warmups;
        sums.tokens += requests * u64::from(workload.output_tokens)
            + warmups * u64::from(workload.warmup_output_tokens);
    }
    sums
}

/// About how long it takes, in seconds: each stage's tokens at C times the speed of a
/// single stream, but never faster than the highest throughput seen. A rough guess:
/// prompts take time too, and a batch slows everybody down before the peak.
pub(in crate::pages) fn rough_seconds(workload: &Workload, speeds: Speeds) -> Option<f64> {
    let peak = speeds.peak.unwrap_or(f64::INFINITY).max(speeds.single);
    let mut seconds = 0.0;
    for stage in workload.plan() {
        let kind = stage.level.kind;
        let speed = (f64::from(kind.slots()) * speeds.single).min(peak);
        let warmup = f64::from(stage.warmup_requests) * f64::from(workload.warmup_output_tokens);
        seconds += warmup / speed
            + match (stage.level.size, kind) {
                (StageSize::Duration { seconds }, _) => seconds,
                // The schedule says when the last one is sent, and it must be answered.
                (StageSize::Requests { requests }, StageKind::OpenLoop { rate, .. }) => {
                    let last = f64::from(requests) / rate.get();
                    last.max(f64::from(requests) * f64::from(workload.output_tokens) / peak)
                        + f64::from(workload.output_tokens) / speeds.single
                }
                (StageSize::Requests { requests }, _) => {
                    f64::from(requests) * f64::from(workload.output_tokens) / speed
                }
            };
    }
    (seconds.is_finite() && seconds > 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::{
        views::measure::{LoadForm, WorkloadForm},
        workload::Preset,
    };

    use super::*;

    #[test]
    fn the_plan_of_the_quick_preset() {
        // 3 + 32 + 128 requests of 256 tokens; 1 + 8 + 32 warm-ups of 16.
        assert_eq!(
            sentence(&Preset::Quick.workload()),
            "3 stages: 163 requests and 41 warm-up requests, up to 42,384 completion tokens in all."
        );
    }

    #[test]
    fn a_rate_says_how_many_and_how_long() {
        let form = WorkloadForm {
            preset: None,
            load: LoadForm::Rates,
            single_stream: None,
            rates: "2".to_owned(),
            seconds: Some(30.0),
            output_tokens: 100,
            repeats: 1,
            ..WorkloadForm::default()
        };
        let workload = form.workload().expect("a workload");
        assert!(sentence(&workload).starts_with("1 stage: 60 requests and 2 warm-up"));
        let speeds = Speeds {
            single: 100.0,
            peak: None,
        };
        // Two warm-ups of 16 tokens at once, and half a minute.
        let seconds = rough_seconds(&workload, speeds).expect("a guess");
        assert!((seconds - (0.16 + 30.0)).abs() < 1e-9, "{seconds}");
        let counted = WorkloadForm {
            requests: Some(20),
            seconds: None,
            ..form
        };
        let workload = counted.workload().expect("a workload");
        // The last is sent after ten seconds and answered a second later.
        let seconds = rough_seconds(&workload, speeds).expect("a guess");
        assert!((seconds - (0.16 + 10.0 + 1.0)).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn a_guess_never_beats_the_peak() {
        let workload = Preset::Quick.workload();
        let fast = Speeds {
            single: 100.0,
            peak: None,
        };
        let capped = Speeds {
            peak: Some(400.0),
            ..fast
        };
        let seconds = rough_seconds(&workload, fast).expect("a guess");
        // 784/100 + 8320/800 + 33280/3200 seconds.
        assert!((seconds - (7.84 + 10.4 + 10.4)).abs() < 1e-9, "{seconds}");
        let seconds = rough_seconds(&workload, capped).expect("a guess");
        assert!((seconds - (7.84 + 20.8 + 83.2)).abs() < 1e-9, "{seconds}");
        let unknown = Speeds {
            single: 0.0,
            peak: None,
        };
        assert_eq!(rough_seconds(&workload, unknown), None);
    }
}
