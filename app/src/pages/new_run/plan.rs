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
#[derive(Debug, Clone, PartialEq, Default)]
struct Sums {
    stages: u64,
    /// Of stages with a known number of requests only, as are the tokens.
    requests: u64,
    warmups: u64,
    tokens: u64,
    /// Stages in which as many are sent as are answered in so many seconds.
    timed: Vec<Timed>,
}

/// Stages whose number of requests is what is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Timed {
    seconds: f64,
    stages: u64,
}

/// The plan in a sentence.
pub(in crate::pages) fn sentence(workload: &Workload) -> String {
    let sums = sums(workload);
    let stages = text::plural(sums.stages, "stage", "stages");
    let warmups = text::plural(sums.warmups, "warm-up request", "warm-up requests");
    if let [timed] = sums.timed[..]
        && timed.stages == sums.stages
    {
        return format!("{stages} of {}, and {warmups}.", timed.requests());
    }
    let timed: Vec<String> = sums.timed.iter().map(Timed::said).collect();
    let timed = timed.join(" and ");
    let requests = text::plural(sums.requests, "request", "requests");
    let tokens = text::plural(sums.tokens, "completion token", "completion tokens");
    if sums.timed.is_empty() {
        return format!("{stages}: {requests} and {warmups}, up to {tokens} in all.");
    }
    format!("{stages}: {requests} and {warmups}, up to {tokens}; besides, {timed}.")
}

impl Timed {
    fn requests(self) -> String {
        format!("as many requests as are answered in {} s", self.seconds)
    }

    fn said(&self) -> String {
        let stages = text::plural(self.stages, "stage", "stages");
        format!("in {stages} {}", self.requests())
    }
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
                _ => {
                    sums.add_timed(seconds);
                    0
                }
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

impl Sums {
    fn add_timed(&mut self, seconds: f64) {
        let same = |timed: &&mut Timed| timed.seconds.total_cmp(&seconds).is_eq();
        match self.timed.iter_mut().find(same) {
            Some(timed) => timed.stages += 1,
            None => self.timed.push(Timed { seconds, stages: 1 }),
        }
    }
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
    fn a_timed_closed_loop_has_no_number_of_requests() {
        let form = WorkloadForm {
            preset: None,
            single_stream: None,
            concurrencies: "8, 32".to_owned(),
            seconds: Some(60.0),
            repeats: 1,
            ..WorkloadForm::default()
        };
        let timed = form.workload().expect("a workload");
        assert_eq!(
            sentence(&timed),
            "2 stages of as many requests as are answered in 60 s, and 40 warm-up requests."
        );
        let mixed = WorkloadForm {
            single_stream: Some(3),
            output_tokens: 100,
            ..form
        };
        let workload = mixed.workload().expect("a workload");
        // 3 requests of 100 tokens, and 41 warm-ups of 16.
        assert_eq!(
            sentence(&workload),
            "3 stages: 3 requests and 41 warm-up requests, up to 956 completion tokens; besides, in 2 stages as many requests as are answered in 60 s."
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
