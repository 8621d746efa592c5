//! Factors and their levels, to be ticked and typed.

use leptos::prelude::*;
use tokdyno_domain::experiment::{AS_IT_IS, LL128_CAUTION, WITH, WITHOUT};

use super::factors::{DOUBTFUL_LEVEL, FactorFields, OwnFactor, ReadyFactor};
use crate::components::{Glyph, Icon};

/// NCCL's factors, a drafter, and whatever else.
#[component]
pub(super) fn Factors(factors: FactorFields) -> impl IntoView {
    let ready = factors.ready.get_value();
    view! {
        <div class="factors">
            {ready.into_iter().map(|ready| view! { <Ready ready/> }).collect_view()}
            <Drafter factors/>
        </div>
        <Own factors/>
        <p class="muted">
            "The first level of a factor is the one that the others are compared with. Concurrency is no factor: every launch is measured at all levels of the workload."
        </p>
    }
}

#[component]
fn Ready(ready: ReadyFactor) -> impl IntoView {
    let on = ready.on;
    let name = ready.factor.name.clone();
    let id = format!("vary-{name}");
    let doubtful = ready
        .factor
        .levels
        .iter()
        .zip(&ready.levels)
        .find(|(level, _)| level.label == DOUBTFUL_LEVEL)
        .map(|(_, ticked)| *ticked);
    let levels = ready
        .factor
        .levels
        .iter()
        .zip(ready.levels)
        .enumerate()
        .map(|(place, (level, ticked))| {
            let id = format!("vary-{name}-{place}");
            view! {
                <p class="choice">
                    <input
                        id=id.clone()
                        type="checkbox"
                        disabled=move || !on.get()
                        checked=ticked.get_untracked()
                        prop:checked=ticked
                        on:change=move |event| ticked.set(event_target_checked(&event))
                    />
                    <label for=id>{level.label.clone()}</label>
                </p>
            }
        })
        .collect_view();
    let caution =
        move || (on.get() && doubtful.is_some_and(|ticked| ticked.get())).then_some(LL128_CAUTION);
    view! {
        <fieldset class="factor">
            <legend class="visually-hidden">{name.clone()}</legend>
            <p class="choice">
                <input
                    id=id.clone()
                    type="checkbox"
                    checked=on.get_untracked()
                    prop:checked=on
                    on:change=move |event| on.set(event_target_checked(&event))
                />
                <label for=id>
                    "Vary " <strong>{name}</strong>
                </label>
            </p>
            <div class="factor-levels">{levels}</div>
            <p class="caution" role="status">
                {caution}
            </p>
        </fieldset>
    }
}

#[component]
fn Drafter(factors: FactorFields) -> impl IntoView {
    let on = factors.with_drafter;
    view! {
        <fieldset class="factor">
            <legend class="visually-hidden">"drafter"</legend>
            <p class="choice">
                <input
                    id="vary-drafter"
                    type="checkbox"
                    checked=on.get_untracked()
                    prop:checked=on
                    on:change=move |event| on.set(event_target_checked(&event))
                />
                <label for="vary-drafter">
                    "Vary the " <strong>"drafter"</strong> ": off and on"
                </label>
            </p>
            <p class="field">
                <label for="vary-drafter-model">"Drafter: path on the host, or name"</label>
                <input
                    id="vary-drafter-model"
                    type="text"
                    autocomplete="off"
                    spellcheck="false"
                    disabled=move || !on.get()
                    value=factors.drafter.get_untracked()
                    prop:value=factors.drafter
                    on:input=move |event| factors.drafter.set(event_target_value(&event))
                />
            </p>
        </fieldset>
    }
}

/// Any argument or variable.
#[component]
fn Own(factors: FactorFields) -> impl IntoView {
    view! {
        <div class="stack">
            <For each=move || factors.own.get() key=|row| row.id let:row>
                <OwnRow factors row/>
            </For>
            <div>
                <button type="button" class="button" on:click=move |_| factors.add("", "")>
                    <Icon glyph=Glyph::Plus/>
                    "Vary an argument or a variable"
                </button>
            </div>
        </div>
    }
}

#[component]
fn OwnRow(factors: FactorFields, row: OwnFactor) -> impl IntoView {
    let name_id = format!("own-{}-name", row.id);
    let levels_id = format!("own-{}-levels", row.id);
    let help_id = format!("own-{}-help", row.id);
    let placeholder = format!("{AS_IT_IS}, 4, 8");
    let help = format!(
        "With commas. `{AS_IT_IS}` leaves the profile as it is, `{WITHOUT}` takes it out, `{WITH}` is a flag without a value."
    );
    view! {
        <fieldset class="own-factor">
            <legend class="visually-hidden">"Another factor"</legend>
            <p class="field">
                <label for=name_id.clone()>"Argument or variable"</label>
                <input
                    id=name_id
                    type="text"
                    autocomplete="off"
                    autocapitalize="off"
                    spellcheck="false"
                    placeholder="--num-continuous-decode-steps"
                    value=row.name.get_untracked()
                    prop:value=row.name
                    on:input=move |event| row.name.set(event_target_value(&event))
                />
            </p>
            <p class="field own-factor-levels">
                <label for=levels_id.clone()>"Levels"</label>
                <input
                    id=levels_id
                    type="text"
                    autocomplete="off"
                    autocapitalize="off"
                    spellcheck="false"
                    placeholder=placeholder
                    aria-describedby=help_id.clone()
                    value=row.levels.get_untracked()
                    prop:value=row.levels
                    on:input=move |event| row.levels.set(event_target_value(&event))
                />
                <span id=help_id class="field-help">
                    {help}
                </span>
            </p>
            <button
                type="button"
                class="icon-button"
                aria-label=move || format!("Do not vary {}", row.name.get())
                on:click=move |_| factors.remove(row.id)
            >
                <Icon glyph=Glyph::Cross/>
            </button>
        </fieldset>
    }
}
