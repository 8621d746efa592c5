//! A new profile: from a pasted command, a built-in one, an engine that was found, or
//! nothing.

use leptos::{prelude::*, task::spawn_local};
use leptos_meta::Title;
use leptos_router::{
    NavigateOptions,
    hooks::{use_navigate, use_query_map},
    params::ParamsMap,
};
use tokdyno_domain::{
    engine::EngineKind,
    ids::HostId,
    profile::{Activation, Parameters, ProfileSpec, READY_TIMEOUT_S},
};

use super::profile_editor::{Editor, EditorFields, Preview};
use crate::{
    AppError,
    api::{self, NamedDraft},
    components::{ErrorBanner, ErrorNote, OperatorNote, Skeleton, Who},
};

/// What it begins with, as the address says.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Source {
    /// A command is pasted.
    Paste,
    /// A built-in profile.
    Builtin(String),
    /// An engine that runs on a host, by its process number.
    Found(HostId, u32),
    /// Nothing.
    Blank,
}

impl Source {
    fn read(query: &ParamsMap) -> Self {
        let number = |key: &str| query.get(key).and_then(|text| text.parse::<i64>().ok());
        if let Some(id) = query.get("builtin") {
            return Self::Builtin(id);
        }
        if let (Some(host), Some(pid)) = (
            number("host"),
            query.get("pid").and_then(|pid| pid.parse().ok()),
        ) {
            return Self::Found(HostId(host), pid);
        }
        if query.get("blank").is_some() {
            Self::Blank
        } else {
            Self::Paste
        }
    }

    /// The profile to begin with; none where something is to be pasted first.
    async fn load(self) -> Result<Option<NamedDraft>, AppError> {
        match self {
            Self::Paste => Ok(None),
            Self::Blank => Ok(Some(NamedDraft {
                draft: api::draft(blank()).await?,
                name: String::new(),
            })),
            Self::Builtin(id) => {
                let builtin = api::profiles()
                    .await?
                    .builtins
                    .into_iter()
                    .find(|builtin| builtin.id == id)
                    .ok_or_else(|| missing(format!("There is no built-in profile `{id}`.")))?;
                Ok(Some(NamedDraft {
                    draft: api::draft(builtin.spec).await?,
                    name: builtin.id,
                }))
            }
            Self::Found(host, pid) => {
                let engine = api::running_on(host)
                    .await?
                    .found
                    .into_iter()
                    .find(|engine| engine.process.identity.pid == pid)
                    .ok_or_else(|| {
                        missing(format!(
                            "Process {pid} does not run on the host any more. Look again on the host's page."
                        ))
                    })?;
                api::found_profile(engine).await.map(Some)
            }
        }
    }
}

fn missing(sentence: String) -> AppError {
    let error = AppError::new(404, sentence);
    #[cfg(feature = "ssr")]
    let error = error.with_status();
    error
}

/// A profile that says nothing yet.
fn blank() -> ProfileSpec {
    ProfileSpec {
        engine: EngineKind::Sglang,
        program: String::new(),
        arguments: Vec::new(),
        environment: Vec::new(),
        parameters: Parameters {
            model: String::new(),
            drafter: None,
            tensor_parallel: 1,
            port: 8000,
            served_name: String::new(),
        },
        directory: None,
        activation: Activation::None,
        ready_timeout_s: READY_TIMEOUT_S,
        notes: String::new(),
    }
}

/// The page.
#[component]
pub fn NewProfilePage() -> impl IntoView {
    let query = use_query_map();
    let source = Memo::new(move |_| query.with(Source::read));
    let first = Resource::new_blocking(move || source.get(), Source::load);
    view! {
        <Title text="New profile"/>
        <nav aria-label="Breadcrumb" class="breadcrumb">
            <a href="/profiles">"Profiles"</a>
            <span aria-hidden="true">" / "</span>
            <span>"new"</span>
        </nav>
        <h1>"New profile"</h1>
        <Transition fallback=|| view! { <Skeleton lines=8/> }>
            {move || Suspend::new(async move {
                let may_operate = Who::may_operate().await;
                match first.await {
                    _ if !may_operate => {
                        view! { <OperatorNote what="Adding a profile"/> }.into_any()
                    }
                    Ok(first) => {
                        let builtin = match source.get_untracked() {
                            Source::Builtin(id) => Some(id),
                            _ => None,
                        };
                        view! { <Begin first=first builtin=builtin/> }.into_any()
                    }
                    Err(error) => {
                        view! {
                            <ErrorBanner error=error retry=Callback::new(move |()| first.refetch())/>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

/// The place to paste into, until there is something to edit.
#[component]
fn Begin(first: Option<NamedDraft>, builtin: Option<String>) -> impl IntoView {
    let draft = RwSignal::new(first);
    view! {
        {move || match draft.get() {
            None => view! { <Paste draft/> }.into_any(),
            Some(named) => {
                let builtin = builtin.clone();
                view! { <Create named=named builtin=builtin/> }.into_any()
            }
        }}
    }
}

#[component]
fn Paste(draft: RwSignal<Option<NamedDraft>>) -> impl IntoView {
    let text = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let error = RwSignal::new(None::<AppError>);
    let read = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        error.set(None);
        spawn_local(async move {
            let outcome = api::paste_profile(text.get_untracked()).await;
            busy.try_set(false);
            match outcome {
                Ok(named) => {
                    draft.try_set(Some(named));
                }
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <noscript>
            <div class="banner banner-wait">
                <p>
                    "Pasting needs JavaScript and WebAssembly, which are off in this browser. On the command line: "
                    <code>"tokdyno profiles paste --name NAME FILE"</code> "."
                </p>
            </div>
        </noscript>
        <form class="panel stack" on:submit=read>
            <p class="field">
                <label for="paste-text">"The command that starts your server"</label>
                <textarea
                    id="paste-text"
                    class="mono paste-text"
                    rows="10"
                    spellcheck="false"
                    autocapitalize="off"
                    placeholder="export NCCL_PROTO=LL\nNCCL_ALGO=Ring python3 -m sglang.launch_server \\\n  --model-path /models/kimi --tp-size 8 \\\n  --port 8000"
                    aria-describedby="paste-help"
                    prop:value=text
                    on:input=move |event| text.set(event_target_value(&event))
                ></textarea>
                <span id="paste-help" class="field-help">
                    "As you would type it into a shell: variables before the command or exported, quotes, lines that go on with a backslash, docker run. It is read, not run."
                </span>
            </p>
            <div>
                <button
                    type="submit"
                    class="button button-primary"
                    disabled=move || busy.get() || text.with(|text| text.trim().is_empty())
                >
                    {move || if busy.get() { "Reading …" } else { "Make a profile of it" }}
                </button>
                <ErrorNote error=error/>
            </div>
        </form>
        <p class="muted">
            "Or take one of the " <a href="/profiles">"built-in profiles"</a>
            ", an engine that runs on one of your " <a href="/hosts">"hosts"</a> ", or "
            <a href="/profiles/new?blank=1">"start from nothing"</a> "."
        </p>
    }
}

/// Name, editor, and the button that keeps it.
#[component]
fn Create(named: NamedDraft, builtin: Option<String>) -> impl IntoView {
    let editor = Editor::new(named.draft);
    let name = RwSignal::new(named.name);
    let busy = RwSignal::new(false);
    let error = RwSignal::new(None::<AppError>);
    let navigate = use_navigate();
    let save = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        let spec = match untrack(|| editor.spec()) {
            Ok(spec) => spec,
            Err(wrong) => {
                error.set(Some(AppError::new(422, wrong.sentence)));
                return;
            }
        };
        busy.set(true);
        error.set(None);
        let wanted = name.get_untracked().trim().to_owned();
        let builtin = builtin.clone();
        let navigate = navigate.clone();
        spawn_local(async move {
            match api::add_profile(wanted.clone(), spec, builtin).await {
                Ok(_) => navigate(&format!("/profiles/{wanted}"), NavigateOptions::default()),
                Err(why) => {
                    busy.try_set(false);
                    error.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <form class="editor-columns" on:submit=save>
            <div class="stack">
                <p class="panel field">
                    <label for="profile-name">"Name of the profile"</label>
                    <input
                        id="profile-name"
                        type="text"
                        autocomplete="off"
                        autocapitalize="off"
                        spellcheck="false"
                        required
                        aria-describedby="profile-name-help"
                        prop:value=name
                        on:input=move |event| name.set(event_target_value(&event))
                    />
                    <span id="profile-name-help" class="field-help">
                        "Letters, digits, dot, dash and underscore: it stands in addresses."
                    </span>
                </p>
                <EditorFields editor/>
            </div>
            <Preview editor>
                <ErrorNote error=error/>
                <div>
                    <button type="submit" class="button button-primary" disabled=move || busy.get()>
                        {move || if busy.get() { "Saving …" } else { "Save profile" }}
                    </button>
                </div>
            </Preview>
        </form>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_says_what_it_begins_with() {
        let query = |pairs: &[(&'static str, &str)]| {
            let params: ParamsMap = pairs
                .iter()
                .map(|(key, value)| (*key, (*value).to_owned()))
                .collect();
            Source::read(&params)
        };
        assert_eq!(query(&[]), Source::Paste);
        assert_eq!(
            query(&[("builtin", "sglang-base")]),
            Source::Builtin("sglang-base".to_owned())
        );
        assert_eq!(
            query(&[("host", "3"), ("pid", "4711")]),
            Source::Found(HostId(3), 4711)
        );
        assert_eq!(query(&[("host", "3"), ("pid", "x")]), Source::Paste);
        assert_eq!(query(&[("blank", "1")]), Source::Blank);
    }
}
