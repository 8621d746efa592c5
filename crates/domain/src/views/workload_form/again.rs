//! From a workload back to the form that says it.

use super::{ArrivalsForm, LoadForm, SharedPrefixForm, WorkloadForm};
use crate::{
    prompts::PromptSet,
    workload::{
        Arrivals, CachePolicy, LoadLevel, Preset, StageKind, StageSize, Workload, default_requests,
    },
};

impl WorkloadForm {
    /// The form that says this workload in all but its name and seed; none where no
    /// form can, and none for prompts that came from a file: their text would have to
    /// be typed again.
    #[must_use]
    pub fn of(workload: &Workload) -> Option<Self> {
        let mut form = Self {
            preset: Preset::ALL
                .into_iter()
                .find(|preset| is_of(&preset.workload(), workload)),
            api: workload.api,
            output_tokens: workload.output_tokens,
            repeats: workload.repeats,
            warmup_requests: workload.warmup_requests,
            goodput: workload.goodput.unwrap_or_default(),
            reset_cache: workload.cache == CachePolicy::ResetBeforeStage,
            thinking: workload.thinking,
            ..Self::default()
        };
        match &workload.prompts {
            PromptSet::Founding => form.founding_prompts = true,
            PromptSet::Random { tokens } => form.random_tokens = Some(*tokens),
            PromptSet::SharedPrefix {
                groups,
                prefix_tokens,
                tokens,
            } => {
                form.shared_prefix = Some(SharedPrefixForm {
                    groups: *groups,
                    prefix_tokens: *prefix_tokens,
                    tokens: *tokens,
                });
            }
            PromptSet::Varied => {}
            PromptSet::File { .. }
            | PromptSet::Chats { .. }
            | PromptSet::Conversations { .. }
            | PromptSet::Trace { .. } => return None,
        }
        if form.preset.is_none() {
            form.fill_levels(workload)?;
        }
        // Only what comes out again as it went in is the same workload.
        let again = Workload {
            name: workload.name.clone(),
            seed: workload.seed,
            ..form.workload().ok()?
        };
        (again == *workload).then_some(form)
    }

    fn fill_levels(&mut self, workload: &Workload) -> Option<()> {
        let (single, others): (Vec<&LoadLevel>, Vec<&LoadLevel>) = workload
            .levels
            .iter()
            .partition(|level| level.kind == StageKind::SingleStream);
        self.single_stream = single.first().and_then(|level| match level.size {
            StageSize::Requests { requests } => Some(requests),
            StageSize::Duration { .. } => None,
        });
        self.concurrencies = String::new();
        let Some(&first) = others.first() else {
            return Some(());
        };
        let usual = |level: &&LoadLevel| {
            level.kind.closed_loop().map(default_requests)
                == match level.size {
                    StageSize::Requests { requests } => Some(requests),
                    StageSize::Duration { .. } => None,
                }
        };
        match first.size {
            _ if others.iter().all(usual) => {}
            StageSize::Requests { requests } => self.requests = Some(requests),
            StageSize::Duration { seconds } => self.seconds = Some(seconds),
        }
        if let StageKind::OpenLoop { arrivals, .. } = first.kind {
            self.load = LoadForm::Rates;
            self.arrivals = match arrivals {
                Arrivals::Constant => ArrivalsForm::Constant,
                Arrivals::Poisson => ArrivalsForm::Poisson,
                Arrivals::Gamma { burstiness } => {
                    self.burstiness = burstiness.get();
                    ArrivalsForm::Gamma
                }
            };
            self.rates = listed(others.iter().filter_map(|level| match level.kind {
                StageKind::OpenLoop { rate, .. } => Some(rate.to_string()),
                _ => None,
            }));
            return Some(());
        }
        let concurrencies = others.iter().filter_map(|level| level.kind.closed_loop());
        self.concurrencies = listed(concurrencies.clone().map(|c| c.to_string()));
        if let Some(rule) = workload.saturation {
            self.load = LoadForm::Saturation;
            self.up_to = concurrencies.max()?;
            self.min_gain_percent = rule.min_gain_percent;
        }
        Some(())
    }
}

/// Is this the preset's load?
fn is_of(preset: &Workload, workload: &Workload) -> bool {
    preset.levels == workload.levels
        && preset.repeats == workload.repeats
        && preset.output_tokens == workload.output_tokens
        && preset.warmup_requests == workload.warmup_requests
        && workload.saturation.is_none()
}

fn listed(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Thousandths;

    fn custom() -> WorkloadForm {
        WorkloadForm {
            preset: None,
            single_stream: None,
            ..WorkloadForm::default()
        }
    }

    #[test]
    fn a_form_finds_itself_again_in_its_workload() {
        let shared = SharedPrefixForm {
            groups: 4,
            prefix_tokens: 1000,
            tokens: 100,
        };
        for form in [
            WorkloadForm::default(),
            custom(),
            WorkloadForm {
                requests: Some(500),
                single_stream: Some(7),
                ..custom()
            },
            WorkloadForm {
                load: LoadForm::Saturation,
                up_to: 12,
                min_gain_percent: 3,
                seconds: Some(20.0),
                shared_prefix: Some(shared),
                ..custom()
            },
            WorkloadForm {
                load: LoadForm::Rates,
                rates: "0.5, 2".to_owned(),
                arrivals: ArrivalsForm::Gamma,
                burstiness: 0.25,
                requests: Some(20),
                reset_cache: true,
                ..custom()
            },
        ] {
            let workload = form.workload().expect("a workload");
            let again = WorkloadForm::of(&workload).expect("a form");
            assert_eq!(again.workload(), Ok(workload));
        }
        let ramp = Workload::with_levels(
            "custom",
            vec![LoadLevel {
                kind: StageKind::Ramp {
                    from: Thousandths::ONE,
                    to: Thousandths::ONE,
                    arrivals: Arrivals::Poisson,
                },
                size: StageSize::Duration { seconds: 1.0 },
            }],
        );
        assert_eq!(WorkloadForm::of(&ramp), None, "the form knows no ramp");
    }

    #[test]
    fn what_the_form_cannot_say_has_no_form() {
        let with = |change: &dyn Fn(&mut Workload)| {
            let mut workload = custom().workload().expect("a workload");
            change(&mut workload);
            WorkloadForm::of(&workload)
        };
        let plain = with(&|_| {});
        assert!(plain.is_some());
        assert_eq!(with(&|w| w.name = "another".to_owned()), plain);
        assert_eq!(with(&|w| w.seed = 7), plain);
        assert_eq!(with(&|w| w.temperature = 0.7), None);
        assert_eq!(with(&|w| w.ignore_eos = false), None);
        assert_eq!(with(&|w| w.warmup_output_tokens = 1), None);
        assert_eq!(with(&|w| w.idle_timeout_s = 5.0), None);
        let field = |w: &mut Workload| {
            w.extra_body.insert("top_k".to_owned(), 1.into());
        };
        assert_eq!(with(&field), None);
        let mut preset = Preset::Quick.workload();
        assert!(WorkloadForm::of(&preset).is_some());
        preset.temperature = 0.7;
        assert_eq!(WorkloadForm::of(&preset), None);
    }

    #[test]
    fn prompts_from_a_file_have_no_form() {
        let name = || "p".to_owned();
        for prompts in [
            PromptSet::File {
                name: name(),
                prompts: vec!["a".to_owned()],
            },
            PromptSet::Conversations {
                name: name(),
                conversations: vec![vec!["a".to_owned()]],
            },
        ] {
            let mut workload = Preset::Quick.workload();
            workload.prompts = prompts;
            assert_eq!(WorkloadForm::of(&workload), None);
        }
    }
}
