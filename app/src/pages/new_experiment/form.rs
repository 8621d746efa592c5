//! What is chosen, as signals, and what is meant by it.

use leptos::prelude::*;
use tokdyno_domain::{
    experiment::MOST_LAUNCHES_PER_CELL,
    ids::{HostId, LaunchId, ProfileId},
    views::{
        experiments::{DesignForm, ExperimentForm},
        measure::WorkloadForm,
    },
    workload::Workload,
};

use super::{
    super::{
        new_launch::give_back_at,
        new_run::{Field, Wrong, decimal, number, required},
    },
    check::check,
    factors::FactorFields,
};

/// Longest name that is suggested, in characters.
const LONGEST_NAME: usize = 80;

/// How configurations are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    OneAtATime,
    FullGrid,
    Ablation,
    Profiles,
}

/// The fields of the form, the workload's apart.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    /// Blank takes a suggestion.
    pub(super) name: RwSignal<String>,
    pub(super) base: RwSignal<Option<ProfileId>>,
    pub(super) host: RwSignal<Option<HostId>>,
    pub(super) kind: RwSignal<Kind>,
    pub(super) factors: FactorFields,
    /// Where an ablation leads.
    pub(super) to: RwSignal<Option<ProfileId>>,
    /// What the base is compared with as it is.
    pub(super) others: RwSignal<Vec<ProfileId>>,
    pub(super) launches: RwSignal<String>,
    pub(super) looks: RwSignal<String>,
    pub(super) gpu_minutes: RwSignal<String>,
    /// `HH:MM` by the browser's clock; blank for no agreement.
    pub(super) give_back: RwSignal<String>,
    pub(super) restore: RwSignal<Option<LaunchId>>,
    pub(super) through_forward: RwSignal<bool>,
    /// In percent.
    pub(super) effect: RwSignal<String>,
    /// Blank draws one.
    pub(super) seed: RwSignal<String>,
    pub(super) skip_measured: RwSignal<bool>,
    /// Names of profiles.
    pub(super) profile_names: StoredValue<Vec<(ProfileId, String)>>,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [
        Self::OneAtATime,
        Self::FullGrid,
        Self::Ablation,
        Self::Profiles,
    ];

    /// The word in an address.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::OneAtATime => "one_at_a_time",
            Self::FullGrid => "full_grid",
            Self::Ablation => "ablation",
            Self::Profiles => "profiles",
        }
    }
}

impl Fields {
    /// The experiment that is meant, checked as far as it can be without the server.
    ///
    /// # Errors
    /// The first thing found wrong, and where.
    pub(super) fn form(
        self,
        (workload, planned): (WorkloadForm, Workload),
    ) -> Result<ExperimentForm, Wrong> {
        let launches = required(Field::Launches, number, &self.launches.get())?;
        let percent = required(Field::Effect, decimal, &self.effect.get())?;
        let form = ExperimentForm {
            name: self.chosen_name(),
            host: self
                .host
                .get()
                .ok_or_else(|| varied("No host is chosen. Choose one from the list."))?,
            base: self.base.get().ok_or_else(|| {
                varied("No base profile is chosen. Choose the one that changes are made to.")
            })?,
            design: self.design()?,
            workload,
            launches_per_cell: launches,
            looks: looks(&self.looks.get())?,
            gpu_minutes: decimal(Field::Budget, &self.gpu_minutes.get())?,
            give_back_at: give_back_at(&self.give_back.get()).map_err(|sentence| Wrong {
                field: Field::GiveBack,
                sentence,
            })?,
            restore: self.restore.get(),
            through_forward: self.through_forward.get(),
            relevant_effect_percent: percent,
            seed: seed(&self.seed.get())?,
            skip_measured: self.skip_measured.get(),
        };
        check(&form, planned)?;
        Ok(form)
    }

    /// The name as typed, or the suggestion.
    pub(super) fn chosen_name(self) -> String {
        let typed = self.name.get();
        if typed.trim().is_empty() {
            self.suggested_name()
        } else {
            typed
        }
    }

    /// What the experiment is about, in a few words.
    pub(super) fn suggested_name(self) -> String {
        let name = |id: Option<ProfileId>| {
            self.profile_names.with_value(|names| {
                names
                    .iter()
                    .find(|(known, _)| Some(*known) == id)
                    .map_or_else(|| "…".to_owned(), |(_, name)| name.clone())
            })
        };
        let base = name(self.base.get());
        let factors = || -> Vec<String> {
            self.factors
                .factors()
                .into_iter()
                .map(|factor| factor.name)
                .collect()
        };
        let suggested = match self.kind.get() {
            Kind::OneAtATime => format!("{} on {base}", factors().join(", ")),
            Kind::FullGrid => format!("{} on {base}", factors().join(" × ")),
            Kind::Ablation => format!("{base} to {}", name(self.to.get())),
            Kind::Profiles => {
                let others: Vec<String> = self
                    .others
                    .get()
                    .into_iter()
                    .map(|id| name(Some(id)))
                    .collect();
                format!("{base} against {}", others.join(", "))
            }
        };
        suggested.trim().chars().take(LONGEST_NAME).collect()
    }

    fn design(self) -> Result<DesignForm, Wrong> {
        Ok(match self.kind.get() {
            Kind::OneAtATime => DesignForm::OneAtATime {
                factors: self.factors.factors(),
            },
            Kind::FullGrid => DesignForm::FullGrid {
                factors: self.factors.factors(),
            },
            Kind::Ablation => DesignForm::Ablation {
                to: self
                    .to
                    .get()
                    .filter(|to| Some(*to) != self.base.get())
                    .ok_or_else(|| {
                        varied("Choose the profile that the ablation leads to, another one than the base.")
                    })?,
                // The usual grouping.
                steps: Vec::new(),
            },
            Kind::Profiles => {
                let base = self.base.get();
                let profiles: Vec<ProfileId> = self
                    .others
                    .get()
                    .into_iter()
                    .filter(|id| Some(*id) != base)
                    .collect();
                if profiles.is_empty() {
                    return Err(varied(
                        "Choose one profile or more that the base is compared with.",
                    ));
                }
                DesignForm::Profiles { profiles }
            }
        })
    }
}

fn varied(sentence: &str) -> Wrong {
    Wrong {
        field: Field::Varied,
        sentence: sentence.to_owned(),
    }
}

/// Whole numbers with commas between them.
fn looks(text: &str) -> Result<Vec<u32>, Wrong> {
    text.split(',')
        .filter_map(|part| number(Field::Looks, part).transpose())
        .collect()
}

fn seed(text: &str) -> Result<Option<u64>, Wrong> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| Wrong {
        field: Field::Seed,
        sentence: format!(
            "`{text}` is not a seed. Write a whole number, or nothing to have one drawn."
        ),
    })
}

/// Help for the number of launches.
pub(super) fn launches_help() -> String {
    format!(
        "1 to {MOST_LAUNCHES_PER_CELL}. Each is a fresh start of the engine: two measurements of one launch share its luck. Three show the spread between launches."
    )
}

#[cfg(test)]
mod tests {
    use leptos::reactive::owner::Owner;
    use leptos_router::params::ParamsMap;
    use tokdyno_domain::workload::Preset;

    use super::{super::samples, *};

    fn fields(query: &[(&str, &str)]) -> Fields {
        let query: ParamsMap = query
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        samples::fields(&query)
    }

    fn form(fields: Fields) -> Result<ExperimentForm, Wrong> {
        fields.form((WorkloadForm::default(), Preset::Quick.workload()))
    }

    #[test]
    fn a_grid_of_ticked_levels() {
        Owner::new().with(|| {
            let fields = fields(&[
                ("design", "full_grid"),
                ("NCCL_PROTO", "as NCCL chooses,LL"),
                ("NCCL_ALGO", "as NCCL chooses,Ring,Tree"),
            ]);
            let form = form(fields).expect("an experiment");
            let DesignForm::FullGrid { factors } = &form.design else {
                panic!("{:?}", form.design);
            };
            let levels: Vec<usize> = factors.iter().map(|factor| factor.levels.len()).collect();
            assert_eq!(levels, [2, 3]);
            assert_eq!(form.launches_per_cell, 3);
            assert_eq!(form.name, "NCCL_PROTO × NCCL_ALGO on base");
            assert_eq!((form.seed, form.gpu_minutes), (None, None));
            assert!((form.relevant_effect_percent - 2.0).abs() < 1e-9);
        });
    }

    #[test]
    fn an_error_stands_beside_its_field() {
        Owner::new().with(|| {
            let wrong = |change: &dyn Fn(Fields)| {
                let fields = fields(&[("NCCL_PROTO", "LL,Simple"), ("looks", "2")]);
                change(fields);
                form(fields).expect_err("something wrong").field
            };
            assert_eq!(
                wrong(&|form| form.launches.set("31".into())),
                Field::Launches
            );
            assert_eq!(
                wrong(&|form| form.launches.set(String::new())),
                Field::Launches
            );
            assert_eq!(wrong(&|form| form.looks.set("3".into())), Field::Looks);
            assert_eq!(wrong(&|form| form.looks.set("two".into())), Field::Looks);
            assert_eq!(
                wrong(&|form| form.gpu_minutes.set("-1".into())),
                Field::Budget
            );
            assert_eq!(wrong(&|form| form.effect.set("60".into())), Field::Effect);
            assert_eq!(wrong(&|form| form.seed.set("x".into())), Field::Seed);
            assert_eq!(
                wrong(&|form| form.give_back.set("25:00".into())),
                Field::GiveBack
            );
            assert_eq!(
                wrong(&|form| form.name.set("x".repeat(81))),
                Field::ExperimentName
            );
            assert_eq!(
                wrong(&|form| form.factors.add("no-dash=", "1,2")),
                Field::Varied
            );
            assert_eq!(
                wrong(&|form| form.factors.add("NCCL_X", "1")),
                Field::Varied
            );
            assert_eq!(wrong(&|form| form.host.set(None)), Field::Varied);
        });
    }

    #[test]
    fn an_ablation_leads_somewhere_else() {
        Owner::new().with(|| {
            let fields = fields(&[("to", "tuned")]);
            assert_eq!(fields.kind.get_untracked(), Kind::Ablation);
            let made = form(fields).expect("an experiment");
            assert_eq!(made.name, "base to tuned");
            assert!(matches!(
                made.design,
                DesignForm::Ablation { to: ProfileId(2), steps } if steps.is_empty()
            ));
            fields.to.set(fields.base.get_untracked());
            assert_eq!(form(fields).expect_err("the same").field, Field::Varied);
        });
    }

    #[test]
    fn profiles_are_compared_with_the_base_once() {
        Owner::new().with(|| {
            let fields = fields(&[("profiles", "base,tuned")]);
            let made = form(fields).expect("an experiment");
            assert!(matches!(
                &made.design,
                DesignForm::Profiles { profiles } if profiles.as_slice() == [ProfileId(2)]
            ));
            fields.others.set(Vec::new());
            assert_eq!(form(fields).expect_err("none").field, Field::Varied);
        });
    }
}
