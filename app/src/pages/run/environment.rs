//! Under what circumstances it was measured: client machine, engine settings.

use leptos::prelude::*;
use tokdyno_domain::text;

use super::data::RunData;
use crate::components::table::TableBox;

/// Client and settings, each in a table that can be searched.
#[component]
pub(super) fn Environment(data: RunData) -> impl IntoView {
    let environment = data.part(|view| view.environment.clone());
    let settings = data.part(|view| view.settings.clone());
    view! {
        <Show when=move || environment.with(|pairs| !pairs.is_empty())>
            <details class="section-fold">
                <summary>
                    <h2>"Environment"</h2>
                </summary>
                <Pairs pairs=environment.into() label="Environment"/>
            </details>
        </Show>
        <Show when=move || settings.with(|pairs| !pairs.is_empty())>
            <details class="section-fold">
                <summary>
                    <h2>
                        {move || {
                            format!(
                                "Settings the engine reported ({})",
                                text::count(settings.with(Vec::len) as u64),
                            )
                        }}
                    </h2>
                </summary>
                <Search pairs=settings/>
            </details>
        </Show>
    }
}

/// A field above the settings that leaves those it is found in.
#[component]
fn Search(pairs: Memo<Vec<(String, String)>>) -> impl IntoView {
    let typed = RwSignal::new(String::new());
    let found = Memo::new(move |_| {
        let wanted = typed.get().trim().to_lowercase();
        pairs.with(|pairs| {
            pairs
                .iter()
                .filter(|(name, value)| {
                    name.to_lowercase().contains(&wanted) || value.to_lowercase().contains(&wanted)
                })
                .cloned()
                .collect::<Vec<_>>()
        })
    });
    view! {
        <p class="field">
            <label for="settings-search">"Find a setting"</label>
            <input id="settings-search" type="search" bind:value=typed/>
        </p>
        <p class="muted" role="status">
            {move || {
                (!typed.with(|typed| typed.trim().is_empty()))
                    .then(|| {
                        format!(
                            "{} of {} match.",
                            text::count(found.with(Vec::len) as u64),
                            text::count(pairs.with(Vec::len) as u64),
                        )
                    })
            }}
        </p>
        <Pairs pairs=found.into() label="Settings"/>
        <p class="muted">"Values that look like secrets are masked before they are stored."</p>
    }
}

#[component]
fn Pairs(pairs: Signal<Vec<(String, String)>>, label: &'static str) -> impl IntoView {
    view! {
        <TableBox label>
            <table class="pairs">
                <tbody>
                    {move || {
                        pairs
                            .get()
                            .into_iter()
                            .map(|(name, value)| {
                                view! {
                                    <tr>
                                        <th scope="row">{name}</th>
                                        <td>{value}</td>
                                    </tr>
                                }
                            })
                            .collect_view()
                    }}
                </tbody>
            </table>
        </TableBox>
    }
}
