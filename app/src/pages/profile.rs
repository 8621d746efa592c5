//! A profile: its newest revision in the editor, all revisions, and its launches.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod actions;
mod revisions;

use leptos::{prelude::*, task::spawn_local};
use leptos_meta::Title;
use leptos_router::hooks::{use_params_map, use_query_map};
use tokdyno_domain::{
    text,
    views::profiles::{Draft, ProfileView},
};

use self::{
    actions::Actions,
    revisions::{Asked, Revisions},
};
use super::{
    profile_editor::{Editor, EditorFields, Preview},
    profiles::{ParameterFacts, launch_buttons},
};
use crate::{
    AppError, api,
    components::{
        Badge, CautionBadges, CautionList, CopyButton, EngineName, ErrorNote, Glyph, LaunchTable,
        MissingPage, OperatorNote, Skeleton, Tone,
    },
};

/// The page of a profile.
#[component]
pub fn ProfilePage() -> impl IntoView {
    let params = use_params_map();
    let query = use_query_map();
    let name = Memo::new(move |_| params.with(|params| params.get("name").unwrap_or_default()));
    let asked = Memo::new(move |_| query.with(Asked::read));
    let profile = Resource::new_blocking(move || name.get(), api::profile);
    let again = Callback::new(move |()| profile.refetch());
    let said = RwSignal::new(String::new());
    view! {
        <Transition fallback=|| view! { <Skeleton lines=10/> }>
            {move || Suspend::new(async move {
                match profile.await {
                    Ok(view) => {
                        view! { <Body view=view asked=asked said=said again=again/> }.into_any()
                    }
                    Err(error) => view! { <MissingPage error again=again what="profile" list="/profiles" to_list="To the profiles"/> }.into_any(),
                }
            })}
        </Transition>
    }
}

#[component]
fn Body(
    view: ProfileView,
    asked: Memo<Asked>,
    said: RwSignal<String>,
    again: Callback<()>,
) -> impl IntoView {
    let card = view.card.clone();
    let may_operate = view.may_operate;
    let launches = if view.launches.is_empty() {
        view! { <p class="muted">"It was never launched."</p> }.into_any()
    } else {
        view! { <LaunchTable launches=view.launches.clone() label="Launches of this profile"/> }
            .into_any()
    };
    let editing = if may_operate && !card.archived {
        view! { <Edit view=view.clone() asked=asked said=said again=again/> }.into_any()
    } else {
        view! { <Shown view=view.clone()/> }.into_any()
    };
    view! {
        <Title text=card.name.clone()/>
        <header class="run-head">
            <nav aria-label="Breadcrumb" class="breadcrumb">
                <a href="/profiles">"Profiles"</a>
                <span aria-hidden="true">" / "</span>
                <span>{card.name.clone()}</span>
            </nav>
            <div class="run-title">
                <h1>{card.name.clone()}</h1>
                {may_operate.then(|| view! { <Actions card=card.clone() again=again/> })}
            </div>
            <p class="run-badges">
                <EngineName engine=card.spec.engine/>
                <span class="muted">
                    {format!("revision {} ", card.number)}
                    <code title="First digits of the revision's hash: equal digits, equal profile.">
                        {card.hash.short().to_owned()}
                    </code>
                </span>
                {card.archived.then(|| view! { <Badge glyph=Glyph::Lock text="archived"/> })}
                {(card.alive > 0)
                    .then(|| {
                        let servers = text::plural(card.alive.into(), "server", "servers");
                        view! {
                            <a class="badge-link" href="/servers">
                                <Badge tone=Tone::Info glyph=Glyph::Pulse text=servers/>
                            </a>
                        }
                    })}
                <CautionBadges cautions=card.cautions.clone()/>
            </p>
            {card
                .builtin
                .clone()
                .map(|builtin| {
                    view! { <p class="muted">{format!("Made from the built-in profile {builtin}.")}</p> }
                })}
            {(may_operate && !card.archived)
                .then(|| launch_buttons(&card.name))}
            {(!may_operate).then(|| view! { <OperatorNote what="Editing and launching"/> })}
        </header>
        {editing}
        <Revisions
            name=card.name.clone()
            revisions=view.revisions
            asked=asked
            may_edit=may_operate && !card.archived
        />
        <section class="section">
            <h2>"Launches"</h2>
            {launches}
        </section>
    }
}

/// The newest revision, for reading.
#[component]
fn Shown(view: ProfileView) -> impl IntoView {
    let card = view.card;
    view! {
        <section class="section">
            <div class="section-head">
                <h2>"What will run"</h2>
                <CopyButton text=Signal::stored(card.command.clone()) label="Copy"/>
            </div>
            <pre class="verbatim" tabindex="0">{card.command}</pre>
            <ParameterFacts spec=card.spec.clone()/>
            <CautionList cautions=card.cautions arguments=card.spec.arguments/>
            {(!card.spec.notes.is_empty()).then(|| view! { <p>{card.spec.notes}</p> })}
        </section>
    }
}

/// The editor; saving makes a revision.
#[component]
fn Edit(
    view: ProfileView,
    asked: Memo<Asked>,
    said: RwSignal<String>,
    again: Callback<()>,
) -> impl IntoView {
    let card = view.card;
    let profile = card.id;
    let number = card.number;
    let kept = card.spec.clone();
    let editor = Editor::new(Draft {
        spec: card.spec,
        command: card.command,
        cautions: card.cautions,
        known: view.known,
        left_out: Vec::new(),
        error: None,
    });
    let changed = Memo::new(move |_| editor.spec().is_ok_and(|spec| spec != kept));
    let busy = RwSignal::new(false);
    let error = RwSignal::new(None::<AppError>);
    // An older revision is taken into the editor by its address.
    let numbers: Vec<_> = view
        .revisions
        .iter()
        .map(|revision| (revision.number, revision.id))
        .collect();
    Effect::new(move |_| {
        let Some(wanted) = asked.get().edit else {
            return;
        };
        let Some((_, id)) = numbers
            .iter()
            .find(|(number, _)| *number == wanted)
            .copied()
        else {
            return;
        };
        spawn_local(async move {
            match api::revision_spec(id).await {
                Ok(spec) if !editor_is_gone(said) => editor.fill(&spec),
                Ok(_) => {}
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    });
    let save = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() || !changed.get_untracked() {
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
        said.set(String::new());
        spawn_local(async move {
            let outcome = api::save_profile(profile, spec).await;
            busy.try_set(false);
            match outcome {
                Ok(_) => {
                    said.try_set("Saved.".to_owned());
                    again.try_run(());
                }
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <form class="editor-columns" on:submit=save>
            <EditorFields editor/>
            <Preview editor>
                <ErrorNote error=error/>
                <div class="cluster">
                    <button
                        type="submit"
                        class="button button-primary"
                        disabled=move || busy.get() || !changed.get()
                    >
                        {move || {
                            if busy.get() {
                                "Saving …".to_owned()
                            } else {
                                format!("Save as revision {}", number + 1)
                            }
                        }}
                    </button>
                    <span class="muted" role="status">
                        {move || {
                            if changed.get() {
                                "Not saved yet.".to_owned()
                            } else {
                                said.get()
                            }
                        }}
                    </span>
                </div>
            </Preview>
        </form>
    }
}

/// Has the page been left, so that its signals are gone?
fn editor_is_gone(signal: RwSignal<String>) -> bool {
    signal.is_disposed()
}
