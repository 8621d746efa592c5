//! What is typed, as signals, and the profile that is meant by it.

use std::time::Duration;

use leptos::{leptos_dom::helpers::TimeoutHandle, prelude::*, task::spawn_local};
use tokdyno_domain::{
    engine::EngineKind,
    profile::{Activation, Parameters, ProfileSpec, rows as rows_of},
    views::profiles::Draft,
};

use super::rows::{Row, Way, first_word, insert_after, shift};
use crate::{AppError, api, browser};

/// How long after the last keystroke the server is asked what it comes to.
const PAUSE: Duration = Duration::from_millis(400);

/// Which activation, as chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    None,
    VirtualEnvironment,
    Container,
    Script,
}

/// A number that does not read: element id of its field, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pages) struct Wrong {
    pub(super) field: &'static str,
    pub(in crate::pages) sentence: String,
}

/// The fields.
#[derive(Clone, Copy)]
pub(in crate::pages) struct Editor {
    pub(super) engine: RwSignal<EngineKind>,
    pub(super) program: RwSignal<String>,
    pub(super) model: RwSignal<String>,
    pub(super) drafter: RwSignal<String>,
    pub(super) tensor_parallel: RwSignal<String>,
    pub(super) port: RwSignal<String>,
    pub(super) served_name: RwSignal<String>,
    pub(super) directory: RwSignal<String>,
    pub(super) timeout: RwSignal<String>,
    pub(super) notes: RwSignal<String>,
    pub(super) kind: RwSignal<Kind>,
    pub(super) environment_path: RwSignal<String>,
    pub(super) runtime: RwSignal<String>,
    pub(super) image: RwSignal<String>,
    /// A word on each line.
    pub(super) container_arguments: RwSignal<String>,
    pub(super) script: RwSignal<String>,
    pub(super) arguments: RwSignal<Vec<Row>>,
    pub(super) variables: RwSignal<Vec<Row>>,
    /// What it comes to, as the server said last.
    pub(super) draft: RwSignal<Draft>,
    /// The server has not yet said what the newest state comes to.
    pub(super) waiting: RwSignal<bool>,
    /// Why the server could not be asked.
    pub(super) trouble: RwSignal<Option<AppError>>,
    next_id: StoredValue<u32>,
    timer: StoredValue<Option<TimeoutHandle>>,
}

impl Editor {
    /// Begins with a draft, and asks the server whenever something was typed.
    pub(in crate::pages) fn new(draft: Draft) -> Self {
        let text = || RwSignal::new(String::new());
        let spec = draft.spec.clone();
        let editor = Self {
            engine: RwSignal::new(spec.engine),
            program: text(),
            model: text(),
            drafter: text(),
            tensor_parallel: text(),
            port: text(),
            served_name: text(),
            directory: text(),
            timeout: text(),
            notes: text(),
            kind: RwSignal::new(Kind::None),
            environment_path: text(),
            runtime: RwSignal::new("docker".to_owned()),
            image: text(),
            container_arguments: text(),
            script: text(),
            arguments: RwSignal::new(Vec::new()),
            variables: RwSignal::new(Vec::new()),
            draft: RwSignal::new(draft),
            waiting: RwSignal::new(false),
            trouble: RwSignal::new(None),
            next_id: StoredValue::new(1),
            timer: StoredValue::new(None),
        };
        editor.fill(&spec);
        editor.ask_when_typed();
        editor
    }

    /// Takes over what a profile says.
    pub(in crate::pages) fn fill(self, spec: &ProfileSpec) {
        let parameters = &spec.parameters;
        self.engine.set(spec.engine);
        self.program.set(spec.program.clone());
        self.model.set(parameters.model.clone());
        self.drafter
            .set(parameters.drafter.clone().unwrap_or_default());
        self.tensor_parallel
            .set(parameters.tensor_parallel.to_string());
        self.port.set(parameters.port.to_string());
        self.served_name.set(parameters.served_name.clone());
        self.directory
            .set(spec.directory.clone().unwrap_or_default());
        self.timeout.set(spec.ready_timeout_s.to_string());
        self.notes.set(spec.notes.clone());
        match &spec.activation {
            Activation::None => self.kind.set(Kind::None),
            Activation::VirtualEnvironment { path } => {
                self.kind.set(Kind::VirtualEnvironment);
                self.environment_path.set(path.clone());
            }
            Activation::Container {
                runtime,
                image,
                arguments,
            } => {
                self.kind.set(Kind::Container);
                self.runtime.set(runtime.clone());
                self.image.set(image.clone());
                self.container_arguments.set(arguments.join("\n"));
            }
            Activation::Script { text } => {
                self.kind.set(Kind::Script);
                self.script.set(text.clone());
            }
        }
        let arguments = rows_of(&spec.arguments)
            .into_iter()
            .map(|words| self.row(words))
            .collect();
        self.arguments.set(arguments);
        let variables = spec
            .environment
            .iter()
            .map(|(name, value)| self.row(vec![name.clone(), value.clone()]))
            .collect();
        self.variables.set(variables);
    }

    /// The profile that is meant.
    ///
    /// # Errors
    /// A number that does not read.
    pub(in crate::pages) fn spec(self) -> Result<ProfileSpec, Wrong> {
        let filled = |text: String| (!text.trim().is_empty()).then_some(text);
        Ok(ProfileSpec {
            engine: self.engine.get(),
            program: self.program.get(),
            arguments: self
                .arguments
                .with(|rows| rows.iter().flat_map(|row| row.words.clone()).collect()),
            environment: self.variables.with(|rows| {
                rows.iter()
                    .map(|row| {
                        let word = |place: usize| row.words.get(place).cloned().unwrap_or_default();
                        (word(0), word(1))
                    })
                    .collect()
            }),
            parameters: Parameters {
                model: self.model.get(),
                drafter: filled(self.drafter.get()),
                tensor_parallel: number("profile-tp", &self.tensor_parallel.get())?,
                port: number("profile-port", &self.port.get())?,
                served_name: self.served_name.get(),
            },
            directory: filled(self.directory.get()),
            activation: match self.kind.get() {
                Kind::None => Activation::None,
                Kind::VirtualEnvironment => Activation::VirtualEnvironment {
                    path: self.environment_path.get(),
                },
                Kind::Container => Activation::Container {
                    runtime: self.runtime.get(),
                    image: self.image.get(),
                    arguments: self
                        .container_arguments
                        .get()
                        .lines()
                        .filter(|word| !word.is_empty())
                        .map(str::to_owned)
                        .collect(),
                },
                Kind::Script => Activation::Script {
                    text: self.script.get(),
                },
            },
            ready_timeout_s: number("profile-timeout", &self.timeout.get())?,
            notes: self.notes.get(),
        })
    }

    /// A row with a number of its own.
    pub(super) fn row(self, words: Vec<String>) -> Row {
        let id = self.next_id.get_value();
        self.next_id.set_value(id + 1);
        Row { id, words }
    }

    /// Adds a row after another or at the end, and leads to it.
    pub(super) fn add(self, rows: RwSignal<Vec<Row>>, after: Option<u32>, words: Vec<String>) {
        let row = self.row(words);
        let id = row.id;
        rows.update(|rows| insert_after(rows, after, row));
        focus_soon(word_id(id, 0));
    }

    /// Where a row's first word stands among the arguments.
    pub(super) fn first_word(self, id: u32) -> Option<usize> {
        self.arguments.with(|rows| first_word(rows, id))
    }

    fn ask_when_typed(self) {
        let spec = Memo::new(move |_| self.spec());
        Effect::new(move |before: Option<()>| {
            let now = spec.get();
            // What it begins with, the server has said already.
            if before.is_none() {
                return;
            }
            self.forget();
            let Ok(now) = now else {
                return;
            };
            self.waiting.set(true);
            let handle = set_timeout_with_handle(move || self.ask(now.clone()), PAUSE);
            self.timer.set_value(handle.ok());
        });
        on_cleanup(move || self.forget());
    }

    fn forget(self) {
        if let Some(handle) = self.timer.try_update_value(Option::take).flatten() {
            handle.clear();
        }
    }

    fn ask(self, spec: ProfileSpec) {
        spawn_local(async move {
            let answer = api::draft(spec.clone()).await;
            // Something else was typed meanwhile: that is asked about as well.
            if self.draft.is_disposed() || untrack(|| self.spec()) != Ok(spec) {
                return;
            }
            self.waiting.try_set(false);
            match answer {
                Ok(draft) => {
                    self.draft.try_set(draft);
                    self.trouble.try_set(None);
                }
                Err(error) => {
                    self.trouble.try_set(Some(error));
                }
            }
        });
    }
}

/// Moves a row and keeps the focus on what moved it.
pub(super) fn move_row(rows: RwSignal<Vec<Row>>, id: u32, way: Way, focus: String) {
    let mut moved = false;
    rows.update(|rows| moved = shift(rows, id, way));
    if moved {
        focus_soon(focus);
    }
}

/// Element id of a word's field.
pub(super) fn word_id(row: u32, word: usize) -> String {
    format!("word-{row}-{word}")
}

/// Leads to an element, once it is there.
pub(super) fn focus_soon(id: String) {
    request_animation_frame(move || browser::focus(&id));
}

fn number<T: std::str::FromStr>(field: &'static str, text: &str) -> Result<T, Wrong> {
    let text = text.trim();
    text.parse().map_err(|_| Wrong {
        field,
        sentence: format!("`{text}` is not a number that fits here. Write digits only, such as 8."),
    })
}

#[cfg(test)]
mod tests {
    use leptos::reactive::owner::Owner;

    use super::*;

    fn draft() -> Draft {
        Draft {
            spec: ProfileSpec {
                engine: EngineKind::Sglang,
                program: "python3".to_owned(),
                arguments: ["-m", "sglang.launch_server", "--bs", "1", "2", "", "a b\nc"]
                    .map(str::to_owned)
                    .to_vec(),
                environment: vec![
                    ("NCCL_PROTO".to_owned(), "LL".to_owned()),
                    ("EMPTY".to_owned(), String::new()),
                ],
                parameters: Parameters {
                    model: "m".to_owned(),
                    drafter: Some("d".to_owned()),
                    tensor_parallel: 8,
                    port: 8000,
                    served_name: String::new(),
                },
                directory: Some("/srv".to_owned()),
                activation: Activation::Container {
                    runtime: "podman".to_owned(),
                    image: "i".to_owned(),
                    arguments: vec!["--gpus".to_owned(), "all".to_owned()],
                },
                ready_timeout_s: 60,
                notes: "n".to_owned(),
            },
            command: String::new(),
            cautions: Vec::new(),
            known: Vec::new(),
            left_out: Vec::new(),
            error: None,
        }
    }

    #[test]
    fn what_goes_in_comes_out_word_by_word() {
        Owner::new().with(|| {
            let editor = Editor::new(draft());
            assert_eq!(editor.spec(), Ok(draft().spec));
        });
    }

    #[test]
    fn a_number_that_does_not_read_names_its_field() {
        Owner::new().with(|| {
            let editor = Editor::new(draft());
            editor.port.set("80000".to_owned());
            let wrong = editor.spec().expect_err("too large for a port");
            assert_eq!(wrong.field, "profile-port");
            assert!(wrong.sentence.contains("80000"));
        });
    }
}
