//! Which prompts are sent.

use leptos::{html, prelude::*, task::spawn_local};
use leptos_router::params::ParamsMap;
use tokdyno_domain::views::measure::{SharedPrefixForm, WorkloadForm};

use super::{
    field::{Field, Wrong, number, required},
    file::read_chosen,
    input::{Kind, choice, field},
    note::{Note, invalid, note_id},
};

/// Which prompts, as chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pages) enum Prompts {
    Varied,
    Founding,
    Random,
    Shared,
    File,
}

/// The fields about prompts.
#[derive(Clone, Copy)]
pub(super) struct PromptFields {
    pub(super) chosen: RwSignal<Prompts>,
    pub(super) tokens: RwSignal<String>,
    groups: RwSignal<String>,
    prefix: RwSignal<String>,
    rest: RwSignal<String>,
    /// Name and text of the prompt file.
    file: RwSignal<Option<(String, String)>>,
}

impl PromptFields {
    /// Filled in from the address, where it says something.
    pub(super) fn from_query(query: &ParamsMap) -> Self {
        let or =
            |key: &str, usual: &str| RwSignal::new(query.get(key).unwrap_or_else(|| usual.into()));
        Self {
            chosen: RwSignal::new(match query.get("prompts").as_deref() {
                Some("founding") => Prompts::Founding,
                Some("random") => Prompts::Random,
                Some("shared") => Prompts::Shared,
                _ => Prompts::Varied,
            }),
            tokens: or("prompt_tokens", "1000"),
            groups: or("groups", "4"),
            prefix: or("prefix_tokens", "1000"),
            rest: or("rest_tokens", "100"),
            file: RwSignal::new(None),
        }
    }

    /// Puts what is chosen into the form.
    pub(super) fn fill(self, form: &mut WorkloadForm) -> Result<(), Wrong> {
        match self.chosen.get() {
            Prompts::Varied => {}
            Prompts::Founding => form.founding_prompts = true,
            Prompts::Random => {
                let tokens = required(Field::PromptTokens, number, &self.tokens.get())?;
                form.random_tokens = Some(tokens);
            }
            Prompts::Shared => {
                form.shared_prefix = Some(SharedPrefixForm {
                    groups: required(Field::Groups, number, &self.groups.get())?,
                    prefix_tokens: required(Field::PrefixTokens, number, &self.prefix.get())?,
                    tokens: required(Field::RestTokens, number, &self.rest.get())?,
                });
            }
            Prompts::File => {
                let file = self.file.get().ok_or_else(|| Wrong {
                    field: Field::Prompts,
                    sentence:
                        "No prompt file has been chosen. Choose one, or take the varied prompts."
                            .to_owned(),
                })?;
                form.prompt_file = Some(file);
            }
        }
        Ok(())
    }
}

/// Which prompts.
#[component]
pub(super) fn PromptChoice(prompts: PromptFields, wrong: Signal<Option<Wrong>>) -> impl IntoView {
    let one_of = move |this: Prompts, id: &'static str, label: &'static str| {
        choice("prompts", id, prompts.chosen, this, label)
    };
    let is = move |this: Prompts| prompts.chosen.get() == this;
    view! {
        <fieldset class="choices">
            <legend>"Prompts"</legend>
            {one_of(Prompts::Varied, "prompts-varied", "Varied questions, none sent twice")}
            {one_of(Prompts::Founding, "prompts-founding", "The three founding prompts")}
            {one_of(Prompts::Random, "prompts-random", "Random words of a given length")}
            {one_of(
                Prompts::Shared,
                "prompts-shared",
                "Common beginnings, to measure the prefix cache",
            )}
            {one_of(Prompts::File, "prompts-file", "From a file")}
            <Show when=move || is(Prompts::Random)>
                {field(
                    Field::PromptTokens,
                    "Prompt tokens",
                    "By the server's own count: words are added until it fits.",
                    prompts.tokens,
                    Kind::Whole,
                    wrong,
                )}
            </Show>
            <Show when=move || is(Prompts::Shared)>
                {field(
                    Field::Groups,
                    "Different beginnings",
                    "Taken in turn. Each is new to the engine the first time only.",
                    prompts.groups,
                    Kind::Whole,
                    wrong,
                )}
                {field(
                    Field::PrefixTokens,
                    "Tokens of a beginning",
                    "What the prefix cache can spare the engine.",
                    prompts.prefix,
                    Kind::Whole,
                    wrong,
                )}
                {field(
                    Field::RestTokens,
                    "Tokens after it",
                    "Random, and shared with no other prompt.",
                    prompts.rest,
                    Kind::Whole,
                    wrong,
                )}
            </Show>
            <Show when=move || is(Prompts::File)>
                <FileChoice prompts wrong/>
            </Show>
        </fieldset>
    }
}

#[component]
fn FileChoice(prompts: PromptFields, wrong: Signal<Option<Wrong>>) -> impl IntoView {
    let input = NodeRef::<html::Input>::new();
    let trouble = RwSignal::new(None::<String>);
    let read = move |_| {
        let Some(input) = input.get_untracked() else {
            return;
        };
        spawn_local(async move {
            match read_chosen(input).await {
                Ok(chosen) => {
                    trouble.try_set(None);
                    prompts.file.try_set(chosen);
                }
                Err(sentence) => {
                    trouble.try_set(Some(sentence));
                }
            }
        });
    };
    view! {
        <div class="field">
            <label for=Field::Prompts.id()>
                "Prompt file: a prompt on each line, JSONL, chats, or ShareGPT's JSON"
            </label>
            <input
                id=Field::Prompts.id()
                type="file"
                accept=".txt,.jsonl,.json,text/plain"
                aria-describedby=format!("run-prompts-help {}", note_id(Field::Prompts))
                aria-invalid=invalid(Field::Prompts, wrong)
                node_ref=input
                on:change=read
            />
            <span id="run-prompts-help" class="muted">
                "Which of them it is shows in the file itself. Chats need the chat route."
            </span>
            <span class="field-error" role="alert">
                {move || trouble.get()}
            </span>
            <Note field=Field::Prompts wrong/>
        </div>
    }
}
