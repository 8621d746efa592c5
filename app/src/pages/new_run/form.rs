//! What is typed, as signals, and what is meant by it.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;
use tokdyno_domain::{
    endpoint::TlsTrust,
    meter::ApiKey,
    views::measure::{EndpointForm, NewRun, NewRunError, WorkloadForm},
    workload::{Api, Preset, Workload, WorkloadError},
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
    pub(in crate::pages) single: RwSignal<String>,
    pub(in crate::pages) concurrencies: RwSignal<String>,
    pub(in crate::pages) requests: RwSignal<String>,
    pub(in crate::pages) tokens: RwSignal<String>,
    pub(in crate::pages) repeats: RwSignal<String>,
    pub(in crate::pages) warmup: RwSignal<String>,
    pub(in crate::pages) prompts: RwSignal<Prompts>,
    /// Name and text of the prompt file.
    pub(in crate::pages) file: RwSignal<Option<(String, String)>>,
}

/// Whose certificates are believed, as chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pages) enum Trust {
    System,
    Ca,
    AcceptAny,
}

/// Which prompts, as chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pages) enum Prompts {
    Varied,
    Founding,
    File,
}

/// A field that can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pages) enum Field {
    Url,
    Name,
    Hardware,
    Single,
    Concurrencies,
    Requests,
    Tokens,
    Repeats,
    Warmup,
    Prompts,
}

impl Field {
    /// Element id of its input; the note about it has the same with `-error`.
    pub(in crate::pages) const fn id(self) -> &'static str {
        match self {
            Self::Url => "run-url",
            Self::Name => "run-name",
            Self::Hardware => "run-hardware",
            Self::Single => "run-single",
            Self::Concurrencies => "run-concurrencies",
            Self::Requests => "run-requests",
            Self::Tokens => "run-tokens",
            Self::Repeats => "run-repeats",
            Self::Warmup => "run-warmup",
            Self::Prompts => "run-prompts",
        }
    }
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pages) struct Wrong {
    pub(in crate::pages) field: Field,
    pub(in crate::pages) sentence: String,
}

impl Form {
    /// Filled in from the address, where it says something.
    pub(in crate::pages) fn from_query(query: &ParamsMap) -> Self {
        let usual = WorkloadForm::default();
        let word = |key: &str| query.get(key).unwrap_or_default();
        let or = |key: &str, usual: String| query.get(key).unwrap_or(usual);
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
        let usual_single = usual
            .single_stream
            .map_or_else(String::new, |n| n.to_string());
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
            single: RwSignal::new(or("single", usual_single)),
            concurrencies: RwSignal::new(or("c", usual.concurrencies)),
            requests: RwSignal::new(word("requests")),
            tokens: RwSignal::new(or("tokens", usual.output_tokens.to_string())),
            repeats: RwSignal::new(or("repeats", usual.repeats.to_string())),
            warmup: RwSignal::new(String::new()),
            prompts: RwSignal::new(Prompts::Varied),
            file: RwSignal::new(None),
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
        let preset = self.preset.get();
        let usual = WorkloadForm::default();
        let prompt_file = match self.prompts.get() {
            Prompts::File => Some(self.file.get().ok_or_else(|| {
                Wrong {
                    field: Field::Prompts,
                    sentence:
                        "No prompt file has been chosen. Choose one, or take the varied prompts."
                            .to_owned(),
                }
            })?),
            Prompts::Varied | Prompts::Founding => None,
        };
        let chosen = WorkloadForm {
            preset,
            api: self.api.get(),
            prompt_file,
            founding_prompts: self.prompts.get() == Prompts::Founding,
            ..usual
        };
        if preset.is_some() {
            return Ok(chosen);
        }
        Ok(WorkloadForm {
            single_stream: number(Field::Single, &self.single.get())?,
            concurrencies: self.concurrencies.get(),
            requests: number(Field::Requests, &self.requests.get())?,
            output_tokens: required(Field::Tokens, &self.tokens.get())?,
            repeats: required(Field::Repeats, &self.repeats.get())?,
            warmup_requests: number(Field::Warmup, &self.warmup.get())?,
            ..chosen
        })
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

/// The field that an error belongs to.
fn field_of(error: &WorkloadError, form: &WorkloadForm) -> Field {
    match error {
        WorkloadError::Concurrency(_)
        | WorkloadError::ConcurrencyList(_)
        | WorkloadError::DuplicateLevel(_)
        | WorkloadError::NoLevels
        | WorkloadError::TooManyLevels(_) => Field::Concurrencies,
        // The single stream's requests and a stage's share a bound.
        WorkloadError::Requests(requests)
            if form.single_stream.map(u64::from) == Some(*requests) =>
        {
            Field::Single
        }
        WorkloadError::Requests(_)
        | WorkloadError::FewerRequestsThanSlots { .. }
        | WorkloadError::Duration(_) => Field::Requests,
        WorkloadError::OutputTokens(_)
        | WorkloadError::Temperature(_)
        | WorkloadError::IdleTimeout(_) => Field::Tokens,
        WorkloadError::Repeats(_) => Field::Repeats,
        WorkloadError::Warmup(_) => Field::Warmup,
        WorkloadError::Prompts(_) => Field::Prompts,
    }
}

/// A whole number, or none where nothing stands.
fn number(field: Field, text: &str) -> Result<Option<u32>, Wrong> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| Wrong {
        field,
        sentence: format!(
            "`{text}` is not a whole number that can be used here. Write digits only, such as 8."
        ),
    })
}

fn required(field: Field, text: &str) -> Result<u32, Wrong> {
    number(field, text)?.ok_or_else(|| Wrong {
        field,
        sentence: "A number is needed here.".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use leptos::reactive::owner::Owner;

    use super::*;

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
                wrong(&|form| form.concurrencies.set("1, x".to_owned())),
                Field::Concurrencies
            );
            assert_eq!(
                wrong(&|form| form.concurrencies.set("100000".to_owned())),
                Field::Concurrencies
            );
            assert_eq!(
                wrong(&|form| form.single.set("0".to_owned())),
                Field::Single
            );
            assert_eq!(
                wrong(&|form| form.requests.set("4".to_owned())),
                Field::Requests
            );
            assert_eq!(
                wrong(&|form| form.requests.set("many".to_owned())),
                Field::Requests
            );
            assert_eq!(wrong(&|form| form.tokens.set(String::new())), Field::Tokens);
            assert_eq!(
                wrong(&|form| form.repeats.set("0".to_owned())),
                Field::Repeats
            );
            assert_eq!(
                wrong(&|form| form.warmup.set("9999".to_owned())),
                Field::Warmup
            );
            assert_eq!(
                wrong(&|form| form.prompts.set(Prompts::File)),
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
            form.concurrencies.set("nonsense".to_owned());
            form.preset.set(Some(Preset::Quick));
            assert!(form.new_run().is_ok());
        });
    }

    #[test]
    fn a_blank_single_stream_leaves_it_out() {
        Owner::new().with(|| {
            let form = custom();
            form.single.set(" ".to_owned());
            let (_, workload) = form.workload().expect("a workload");
            assert_eq!(workload.levels.len(), 4);
        });
    }
}
