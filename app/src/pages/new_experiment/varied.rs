//! What is varied: the design, and the factors or profiles of it.

use leptos::prelude::*;
use tokdyno_domain::{ids::ProfileId, views::profiles::ProfileCard};

use super::{
    super::{
        new_launch::ProfileChoice,
        new_run::{Field, Note, Wrong, choice, note_id},
    },
    form::{Fields, Kind},
    levels::Factors,
};

/// The design and what it needs.
#[component]
pub(super) fn Varied(
    fields: Fields,
    profiles: Vec<ProfileCard>,
    wrong: Signal<Option<Wrong>>,
) -> impl IntoView {
    let kind = fields.kind;
    let design =
        move |this: Kind, label: &'static str| choice("design", id_of(this), kind, this, label);
    let cards = StoredValue::new(profiles);
    view! {
        <fieldset class="panel" aria-describedby=note_id(Field::Varied)>
            <legend>"What is varied"</legend>
            <fieldset class="choices">
                <legend>"Design"</legend>
                {design(
                    Kind::OneAtATime,
                    "One factor at a time: cheap, and blind to what two do together",
                )}
                {design(Kind::FullGrid, "Full grid: every level with every other")}
                {design(
                    Kind::Ablation,
                    "Ablation: from the base to another profile, step by step, to see what each step is worth",
                )}
                {design(Kind::Profiles, "Given profiles, as they are")}
            </fieldset>
            {move || match kind.get() {
                Kind::OneAtATime | Kind::FullGrid => {
                    view! { <Factors factors=fields.factors/> }.into_any()
                }
                Kind::Ablation => {
                    view! {
                        <ProfileChoice
                            id="experiment-to"
                            label="To which profile"
                            chosen=fields.to
                            profiles=cards.get_value()
                        />
                        <p class="muted">
                            "All NCCL variables are one step, so is everything about speculation; anything else is a step of its own. The steps stand in the preview."
                        </p>
                    }
                        .into_any()
                }
                Kind::Profiles => view! { <Others fields profiles=cards.get_value()/> }.into_any(),
            }}
            // Leads here when something about the design is wrong.
            <div id=Field::Varied.id() tabindex="-1">
                <Note field=Field::Varied wrong/>
            </div>
        </fieldset>
    }
}

const fn id_of(kind: Kind) -> &'static str {
    match kind {
        Kind::OneAtATime => "design-one-at-a-time",
        Kind::FullGrid => "design-full-grid",
        Kind::Ablation => "design-ablation",
        Kind::Profiles => "design-profiles",
    }
}

/// Profiles that the base is compared with.
#[component]
fn Others(fields: Fields, profiles: Vec<ProfileCard>) -> impl IntoView {
    let others = fields.others;
    let row = move |id: ProfileId, name: String| {
        let element = format!("experiment-other-{id}");
        let toggle = move |event| {
            let wanted = event_target_checked(&event);
            others.update(|others| {
                others.retain(|other| *other != id);
                if wanted {
                    others.push(id);
                }
            });
        };
        view! {
            <p class="choice">
                <input
                    id=element.clone()
                    type="checkbox"
                    checked=others.with_untracked(|others| others.contains(&id))
                    prop:checked=move || others.with(|others| others.contains(&id))
                    disabled=move || fields.base.get() == Some(id)
                    on:change=toggle
                />
                <label for=element>{name}</label>
            </p>
        }
    };
    view! {
        <fieldset class="choices">
            <legend>"Compared with the base"</legend>
            {profiles
                .into_iter()
                .filter(|card| !card.archived)
                .map(|card| row(card.id, card.name))
                .collect_view()}
        </fieldset>
    }
}
