//! What a workload comes to: stages, requests, tokens, and about how long it takes.

use tokdyno_domain::{
    text,
    workload::{StageSize, Workload},
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
            // Bounded by time: how many that comes to is what is measured.
            StageSize::Duration { .. } => 0,
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
        let concurrency = f64::from(stage.level.kind.concurrency());
        let speed = (concurrency * speeds.single).min(peak);
        let warmup = f64::from(stage.warmup_requests) * f64::from(workload.warmup_output_tokens);
        seconds += warmup / speed
            + match stage.level.size {
                StageSize::Requests { requests } => {
                    f64::from(requests) * f64::from(workload.output_tokens) / speed
                }
                StageSize::Duration { seconds } => seconds,
            };
    }
    (seconds.is_finite() && seconds > 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::workload::Preset;

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
