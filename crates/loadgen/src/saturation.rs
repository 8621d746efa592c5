//! Climbing the concurrencies until throughput rises no more.

use tokdyno_domain::workload::Saturation;

/// The steps of the first repeat so far.
#[derive(Debug)]
pub(crate) struct Ladder {
    rule: Option<Saturation>,
    /// The highest step with a throughput: C and tok/s.
    before: Option<(u32, f64)>,
    top: Option<Top>,
}

/// The step that raised throughput by too little.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Top {
    from: u32,
    to: u32,
    gain_percent: f64,
}

impl Ladder {
    /// One that follows the workload's rule; without one no level is skipped.
    pub(crate) const fn new(rule: Option<Saturation>) -> Self {
        Self {
            rule,
            before: None,
            top: None,
        }
    }

    /// Takes the throughput of a closed loop of the first repeat, in tok/s. A step
    /// without one, or with one that cannot be trusted, decides nothing.
    pub(crate) fn note(&mut self, concurrency: u32, output_tps: Option<f64>) {
        let (Some(rule), None, Some(tps)) = (self.rule, self.top, output_tps) else {
            return;
        };
        if let Some((from, before)) = self.before.replace((concurrency, tps))
            && concurrency > from
            && before > 0.0
        {
            let gain_percent = (tps / before - 1.0) * 100.0;
            if gain_percent < f64::from(rule.min_gain_percent) {
                self.top = Some(Top {
                    from,
                    to: concurrency,
                    gain_percent,
                });
            }
        }
    }

    /// Why a closed loop is left out, if it is.
    pub(crate) fn skips(&self, concurrency: u32) -> Option<String> {
        let (rule, top) = (self.rule?, self.top?);
        let Top {
            from,
            to,
            gain_percent,
        } = top;
        (concurrency > to).then(|| {
            let how = if gain_percent < 0.0 {
                format!("fell by {:.1} %", -gain_percent)
            } else {
                format!("rose by only {gain_percent:.1} %")
            };
            format!(
                "From C = {from} to C = {to} throughput {how}, less than the {} % a step has to bring: higher concurrencies are left out.",
                rule.min_gain_percent
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels that are skipped after these steps.
    fn skipped(min_gain_percent: u32, steps: &[(u32, Option<f64>)]) -> Vec<u32> {
        let mut ladder = Ladder::new(Some(Saturation { min_gain_percent }));
        for (concurrency, tps) in steps {
            assert_eq!(
                ladder.skips(*concurrency),
                None,
                "C = {concurrency} was run"
            );
            ladder.note(*concurrency, *tps);
        }
        (0..=10)
            .map(|power| 1 << power)
            .filter(|concurrency| ladder.skips(*concurrency).is_some())
            .collect()
    }

    #[test]
    fn it_climbs_while_throughput_rises() {
        let rising = [(1, Some(80.0)), (8, Some(500.0)), (32, Some(1500.0))];
        assert_eq!(skipped(5, &rising), Vec::<u32>::new());
        assert_eq!(skipped(5, &[(1, Some(80.0))]), Vec::<u32>::new());
    }

    #[test]
    fn the_step_that_brings_too_little_is_the_last() {
        let flat = [(64, Some(2000.0)), (128, Some(2099.0))];
        assert_eq!(skipped(5, &flat), [256, 512, 1024]);
        // Exactly as much as it has to bring is enough.
        let enough = [(64, Some(2000.0)), (128, Some(2100.0))];
        assert_eq!(skipped(5, &enough), Vec::<u32>::new());
        let falling = [(64, Some(2000.0)), (128, Some(1500.0))];
        assert_eq!(skipped(5, &falling), [256, 512, 1024]);
    }

    #[test]
    fn a_step_without_throughput_decides_nothing() {
        let steps = [(32, Some(1000.0)), (64, None), (128, Some(1010.0))];
        assert_eq!(skipped(5, &steps), [256, 512, 1024]);
        assert_eq!(skipped(5, &steps[..2]), Vec::<u32>::new());
        let from_nothing = [(1, Some(0.0)), (2, Some(0.0)), (4, Some(1.0))];
        assert_eq!(skipped(5, &from_nothing), Vec::<u32>::new());
    }

    #[test]
    fn without_a_rule_nothing_is_skipped() {
        let mut ladder = Ladder::new(None);
        ladder.note(1, Some(100.0));
        ladder.note(2, Some(1.0));
        assert_eq!(ladder.skips(4), None);
    }

    #[test]
    fn the_reason_names_the_step() {
        let mut ladder = Ladder::new(Some(Saturation {
            min_gain_percent: 5,
        }));
        ladder.note(64, Some(2000.0));
        ladder.note(128, Some(2016.0));
        // What later repeats measure changes nothing.
        ladder.note(1, Some(80.0));
        let reason = ladder.skips(256).expect("skipped");
        assert_eq!(
            reason,
            "From C = 64 to C = 128 throughput rose by only 0.8 %, less than the 5 % a step has to bring: higher concurrencies are left out."
        );
        assert_eq!(ladder.skips(128), None);
        assert_eq!(ladder.skips(1), None);
    }
}
