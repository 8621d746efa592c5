//! What is typed, as signals, and what is meant by it.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;
use tokdyno_domain::{
    endpoint::TlsTrust,
    meter::ApiKey,
    views::measure::{EndpointForm, NewRun, NewRunError, WorkloadForm},
    workload::{Api, Preset, Workload},
};

use super::{
    field::{Field, Wrong, field_of},
    load::LoadFields,
    more::MoreFields,
    prompts::PromptFields,
};

/// The fields of the form.
#[derive(Clone, Copy)]
pub(in crate::pages) struct Form {
    pub(in crate::pages) url: RwSignal<String>,
    pub(in crate::pages) key: RwSignal<String>,
    pub(in crate::pages) trust: RwSignal<Trust>,
    pub(in crate::pages) pem: RwSignal<String>,
    /// Blank means the first the server lists.
    pub(in crate::pages) model: RwSignal<String>,
    pub(in crate::pages) name: RwSignal<String>,
    /// Somebody typed the name, so no suggestion may replace it.
    pub(in crate::pages) name_typed: RwSignal<bool>,
    pub(in crate::pages) hardware: RwSignal<String>,
    /// None for the fields below.
    pub(in crate::pages) preset: RwSignal<Option<Preset>>,
    pub(in crate::pages) api: RwSignal<Api>,
    pub(super) load: LoadFields,
    pub(super) prompts: PromptFields,
    pub(super) more: MoreFields,
}

/// Whose certificates are believed, as chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pages) enum Trust {
    System,
    Ca,
    AcceptAny,
}

impl Form {
    /// Filled in from the address, where it says something.
    pub(in crate::pages) fn from_query(query: &ParamsMap) -> Self {
        let usual = WorkloadForm::default();
        let word = |key: &str| query.get(key).unwrap_or_default();
        let preset = match query.get("preset").as_deref() {
            Some("custom") => None,
            Some(word) => Preset::ALL
                .into_iter()
                .find(|preset| preset.word() == word)
                .or(usual.preset),
            None => usual.preset,
        };
        let api = if word("api") == "chat" {
            Api::Chat
        } else {
            usual.api
        };
        Self {
            url: RwSignal::new(word("url")),
            key: RwSignal::new(String::new()),
            trust: RwSignal::new(Trust::System),
            pem: RwSignal::new(String::new()),
            model: RwSignal::new(word("model")),
            name_typed: RwSignal::new(!word("name").is_empty()),
            name: RwSignal::new(word("name")),
            hardware: RwSignal::new(word("hardware")),
            preset: RwSignal::new(preset),
            api: RwSignal::new(api),
            load: LoadFields::from_query(query, &usual),
            prompts: PromptFields::from_query(query),
            more: MoreFields::from_query(query),
        }
    }

    /// Where, as typed.
    pub(in crate::pages) fn endpoint(self) -> EndpointForm {
        EndpointForm {
            url: self.url.get(),
            api_key: ApiKey::new(&self.key.get()),
            tls: match self.trust.get() {
                Trust::System => TlsTrust::System,
                Trust::Ca => TlsTrust::Ca {
                    pem: self.pem.get(),
                },
                Trust::AcceptAny => TlsTrust::AcceptAny,
            },
        }
    }

    /// What is sent, as typed, and what that comes to.
    pub(in crate::pages) fn workload(self) -> Result<(WorkloadForm, Workload), Wrong> {
        let form = self.workload_form()?;
        match form.workload() {
            Ok(workload) => Ok((form, workload)),
            Err(error) => Err(Wrong {
                field: field_of(&error, &form),
                sentence: error.to_string(),
            }),
        }
    }

    fn workload_form(self) -> Result<WorkloadForm, Wrong> {
        let mut form = WorkloadForm {
            preset: self.preset.get(),
            api: self.api.get(),
            ..WorkloadForm::default()
        };
        self.prompts.fill(&mut form)?;
        self.more.fill(&mut form)?;
        if form.preset.is_none() {
            self.load.fill(&mut form)?;
        }
        Ok(form)
    }

    /// The whole measurement, checked as far as it can be without the server.
    pub(in crate::pages) fn new_run(self) -> Result<NewRun, Wrong> {
        let endpoint = self.endpoint();
        let (workload, _) = self.workload()?;
        let model = self.model.get();
        let run = NewRun {
            endpoint,
            model: (!model.is_empty()).then_some(model),
            configuration: self.name.get(),
            hardware: self.hardware.get(),
            workload,
        };
        match run.check() {
            Ok(_) => Ok(run),
            Err(error) => Err(Wrong {
                field: match &error {
                    NewRunError::Endpoint(_) => Field::Url,
                    NewRunError::Workload(error) => field_of(error, &run.workload),
                    NewRunError::TooLong { what, .. } if what.contains("hardware") => {
                        Field::Hardware
                    }
                    NewRunError::TooLong { .. } => Field::Name,
                },
                sentence: error.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use leptos::reactive::owner::Owner;

    use super::*;
    use crate::pages::new_run::prompts::Prompts;
    use tokdyno_domain::views::measure::LoadForm;

    fn custom() -> Form {
        let mut query = ParamsMap::new();
        query.insert("url", "gpu1:8000".to_owned());
        query.insert("preset", "custom".to_owned());
        Form::from_query(&query)
    }

    #[test]
    fn the_address_fills_the_form() {
        Owner::new().with(|| {
            let mut query = ParamsMap::new();
            for (key, value) in [
                ("url", "gpu1:8000"),
                ("model", "kimi"),
                ("name", "tuned"),
                ("preset", "standard"),
                ("api", "chat"),
            ] {
                query.insert(key, value.to_owned());
            }
            let run = Form::from_query(&query).new_run().expect("a measurement");
            assert_eq!(run.endpoint.url, "gpu1:8000");
            assert_eq!(run.model.as_deref(), Some("kimi"));
            assert_eq!(run.configuration, "tuned");
            assert_eq!(run.workload.preset, Some(Preset::Standard));
            assert_eq!(run.workload.api, Api::Chat);
        });
    }

    #[test]
    fn an_error_stands_beside_its_field() {
        Owner::new().with(|| {
            let wrong = |change: &dyn Fn(Form)| {
                let form = custom();
                change(form);
                form.new_run().expect_err("something wrong").field
            };
            assert_eq!(wrong(&|form| form.url.set(String::new())), Field::Url);
            assert_eq!(
                wrong(&|form| form.load.concurrencies.set("1, x".to_owned())),
                Field::Concurrencies
            );
            assert_eq!(
                wrong(&|form| form.load.concurrencies.set("100000".to_owned())),
                Field::Concurrencies
            );
            assert_eq!(
                wrong(&|form| form.load.single.set("0".to_owned())),
                Field::Single
            );
            assert_eq!(
                wrong(&|form| form.load.requests.set("4".to_owned())),
                Field::Requests
            );
            assert_eq!(
                wrong(&|form| form.load.requests.set("many".to_owned())),
                Field::Requests
            );
            assert_eq!(
                wrong(&|form| form.load.tokens.set(String::new())),
                Field::Tokens
            );
            assert_eq!(
                wrong(&|form| form.load.repeats.set("0".to_owned())),
                Field::Repeats
            );
            assert_eq!(
                wrong(&|form| form.load.warmup.set("9999".to_owned())),
                Field::Warmup
            );
            assert_eq!(
                wrong(&|form| form.prompts.chosen.set(Prompts::File)),
                Field::Prompts
            );
            assert_eq!(
                wrong(&|form| form.hardware.set("x".repeat(201))),
                Field::Hardware
            );
        });
    }

    #[test]
    fn fields_of_another_choice_do_not_matter() {
        Owner::new().with(|| {
            let form = custom();
            form.load.concurrencies.set("nonsense".to_owned());
            form.preset.set(Some(Preset::Quick));
            assert!(form.new_run().is_ok());
        });
    }

    #[test]
    fn rates_and_saturation_have_fields_of_their_own() {
        Owner::new().with(|| {
            let form = custom();
            form.load.shape().set(LoadForm::Rates);
            form.load.single.set(String::new());
            form.load.rates.set("0.5, 2".to_owned());
            form.load.concurrencies.set("nonsense".to_owned());
            let (_, workload) = form.workload().expect("a workload");
            assert!(workload.levels.iter().all(|level| level.kind.is_open()));
            let wrong = || form.workload().expect_err("something wrong").field;
            form.load.rates.set("fast".to_owned());
            assert_eq!(wrong(), Field::Rates);
            form.load.rates.set(String::new());
            assert_eq!(wrong(), Field::Rates);
            form.load.rates.set("1".to_owned());
            form.load.seconds.set("1e9".to_owned());
            assert_eq!(wrong(), Field::Seconds);
            form.load.requests.set("8".to_owned());
            assert_eq!(wrong(), Field::Seconds);

            form.load.seconds.set(String::new());
            form.load.shape().set(LoadForm::Saturation);
            let (_, workload) = form.workload().expect("a workload");
            assert_eq!(
                (workload.levels.len(), workload.saturation.is_some()),
                (9, true)
            );
            form.load.up_to.set("1".to_owned());
            assert_eq!(wrong(), Field::UpTo);
            form.load.up_to.set("8".to_owned());
            form.load.gain.set("90".to_owned());
            assert_eq!(wrong(), Field::Gain);
        });
    }

    #[test]
    fn bounds_and_thinking_go_with_any_preset() {
        Owner::new().with(|| {
            let mut query = ParamsMap::new();
            for (key, value) in [
                ("good_ttft", "500"),
                ("thinking", "off"),
                ("prompts", "random"),
                ("prompt_tokens", "64"),
            ] {
                query.insert(key, value.to_owned());
            }
            let form = Form::from_query(&query);
            let (_, workload) = form.workload().expect("a workload");
            assert_eq!(
                workload.goodput.and_then(|bounds| bounds.ttft_ms),
                Some(500.0)
            );
            assert_eq!(workload.thinking, None, "no chat, no thinking");
            form.api.set(Api::Chat);
            let (_, workload) = form.workload().expect("a workload");
            assert_eq!(workload.thinking, Some(false));
            form.more.e2el.set("-1".to_owned());
            let wrong = form.workload().expect_err("something wrong");
            assert_eq!(wrong.field, Field::GoodE2el);
            form.more.e2el.set(String::new());
            form.prompts.tokens.set("many".to_owned());
            let wrong = form.workload().expect_err("something wrong");
            assert_eq!(wrong.field, Field::PromptTokens);
        });
    }

    #[test]
    fn a_blank_single_stream_leaves_it_out() {
        Owner::new().with(|| {
            let form = custom();
            form.load.single.set(" ".to_owned());
            let (_, workload) = form.workload().expect("a workload");
            assert_eq!(workload.levels.len(), 4);
        });
    }
}
