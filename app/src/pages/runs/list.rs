//! The list itself: a row per run, to be chosen for a comparison.

use std::collections::HashMap;

use leptos::prelude::*;
use leptos_router::{NavigateOptions, hooks::use_navigate};
use tokdyno_domain::{
    comparison::RUNS,
    ids::RunId,
    run::RunState,
    views::run::{RunFilter, RunPage, RunSummary},
};

use super::address;
use crate::{
    components::{
        badges::{SourceBadge, StampBadge, StateBadge},
        figures::{EstimateCell, PeakCell},
        icon::{Glyph, Icon},
        table::TableBox,
        time::RelativeTime,
    },
    pages::run::{engine_title, pages},
    query::compare_text,
};

/// What the list shares with its rows.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    /// Runs chosen for a comparison, in the order of choosing.
    pub(super) chosen: RwSignal<Vec<RunId>>,
    /// How far the running ones are, from 0 to 1.
    pub(super) progress: RwSignal<HashMap<RunId, f64>>,
}

/// The table, its pager and the button that compares. A plain GET form until WASM
/// has loaded.
#[component]
pub(super) fn RunTable(page: RunPage, filter: RunFilter, shared: Shared) -> impl IntoView {
    let navigate = use_navigate();
    let chosen = shared.chosen;
    let rows = page
        .runs
        .iter()
        .map(|run| row(run, shared).into_any())
        .collect_view();
    view! {
        <form
            method="get"
            action="/compare"
            on:submit=move |event| {
                event.prevent_default();
                let runs = chosen.get_untracked();
                if RUNS.contains(&runs.len()) {
                    navigate(
                        &format!("/compare?{}", compare_text(&runs)),
                        NavigateOptions::default(),
                    );
                }
            }
        >
            <CompareBar chosen/>
            <TableBox label="Runs">
                <table class="data run-list">
                    <thead>
                        <tr>
                            <th scope="col">"Configuration"</th>
                            <th scope="col">"State"</th>
                            <th scope="col">"Source"</th>
                            <th scope="col">"Engine and model"</th>
                            <th scope="col">"Workload"</th>
                            <th scope="col" class="num">"Single stream, tok/s"</th>
                            <th scope="col" class="num">"Peak output, tok/s"</th>
                            <th scope="col">"When"</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </TableBox>
        </form>
        <Pager page filter/>
    }
}

/// How many are chosen, why they cannot be compared yet, and the button.
#[component]
fn CompareBar(chosen: RwSignal<Vec<RunId>>) -> impl IntoView {
    // Before WASM has loaded nobody counts, and the form is sent as it is.
    let counted = RwSignal::new(false);
    Effect::new(move |_| counted.set(true));
    let number = Memo::new(move |_| chosen.with(Vec::len));
    view! {
        <div class="compare-bar">
            <button
                type="submit"
                class="button"
                disabled=move || counted.get() && !RUNS.contains(&number.get())
                aria-describedby="compare-hint"
            >
                "Compare"
            </button>
            <span id="compare-hint" class="muted" role="status">
                {move || hint(number.get())}
            </span>
            <Show when=move || { number.get() > 0 }>
                <button
                    type="button"
                    class="button button-quiet"
                    on:click=move |_| chosen.set(Vec::new())
                >
                    "Choose none"
                </button>
            </Show>
        </div>
    }
}

fn hint(number: usize) -> String {
    match number {
        0 => format!(
            "Choose {} to {} runs. The first one chosen is the baseline.",
            RUNS.start(),
            RUNS.end()
        ),
        1 => "1 run chosen: it is the baseline. Choose at least one more.".to_owned(),
        _ if RUNS.contains(&number) => format!("{number} runs chosen."),
        _ => format!(
            "{number} runs chosen; at most {} can be compared. Leave some out.",
            RUNS.end()
        ),
    }
}

fn row(run: &RunSummary, shared: Shared) -> impl IntoView + use<> {
    let id = run.id;
    let chosen = shared.chosen;
    let name = run.configuration.clone();
    let when = run.finished_at.or(run.started_at).unwrap_or(run.created_at);
    let toggle = move |_| {
        chosen.update(|chosen| {
            if let Some(place) = chosen.iter().position(|run| *run == id) {
                chosen.remove(place);
            } else {
                chosen.push(id);
            }
        });
    };
    view! {
        <tr>
            <th scope="row">
                <span class="run-name">
                    <input
                        type="checkbox"
                        name="runs"
                        value=id.to_string()
                        aria-label=format!("Compare run {id}, {name}")
                        checked=chosen.with_untracked(|chosen| chosen.contains(&id))
                        prop:checked=move || chosen.with(|chosen| chosen.contains(&id))
                        on:change=toggle
                    />
                    <a href=format!("/runs/{id}")>{name.clone()}</a>
                </span>
                {run
                    .launch
                    .as_ref()
                    .map(|launch| {
                        let text = format!(
                            "{} r{} on {}",
                            launch.profile.1,
                            launch.profile.2,
                            launch.host.1,
                        );
                        view! {
                            <span class="row-note">
                                <a class="quiet-link" href=format!("/servers/{}", launch.launch)>
                                    {text}
                                </a>
                            </span>
                        }
                    })}
            </th>
            <td>
                {state(run, shared)}
                {run
                    .flagged
                    .then(|| {
                        view! {
                            <span
                                class="run-flag"
                                title="Some of its stages carry a flag, or figures of it are in dispute."
                            >
                                <Icon glyph=Glyph::Flag/>
                                " flagged"
                            </span>
                        }
                    })}
            </td>
            <td>
                {run.known_source().map(|source| view! { <SourceBadge source/> })}
                {run
                    .launch
                    .as_ref()
                    .and_then(|launch| Some((launch.launch, launch.stamp.clone()?)))
                    .map(|(launch, stamp)| {
                        view! {
                            <div class="run-stamp">
                                <StampBadge stamp=stamp launch=launch/>
                            </div>
                        }
                    })}
            </td>
            <td class="run-engine-cell">
                {engine_title(run)} <span class="row-note">{run.model.clone()}</span>
            </td>
            <td>
                <span title=run.workload_text.clone()>{run.workload_name.clone()}</span>
            </td>
            <td class="num">
                <EstimateCell estimate=run.single_stream/>
            </td>
            <td class="num">
                <PeakCell peak=run.peak_output rate=run.peak_rate note_class="run-peak"/>
            </td>
            <td>
                <RelativeTime at=when/>
            </td>
        </tr>
    }
}

/// The badge, and below it how far it is or how long it waits.
fn state(run: &RunSummary, shared: Shared) -> impl IntoView + use<> {
    let id = run.id;
    let below = match run.state {
        RunState::Queued => {
            let said = match run.queue_place {
                None | Some(0) => "next in line".to_owned(),
                Some(before) => format!("{before} before it"),
            };
            Some(view! { <span class="run-below">{said}</span> }.into_any())
        }
        RunState::Running => Some(
            view! {
                <progress
                    class="run-bar"
                    max="1"
                    aria-label="Progress"
                    prop:value=move || {
                        shared.progress.with(|all| all.get(&id).copied().unwrap_or_default())
                    }
                ></progress>
            }
            .into_any(),
        ),
        _ => None,
    };
    view! {
        <StateBadge state=run.state cancel_requested=run.cancel_requested/>
        {below}
    }
}

/// Which page, and the ways to the others.
#[component]
fn Pager(page: RunPage, filter: RunFilter) -> impl IntoView {
    let last = pages(page.total.into(), page.page_size);
    let to = |number: u32| {
        address::write(&RunFilter {
            page: number,
            ..filter.clone()
        })
    };
    let shown = page.page;
    let earlier = (shown > 0).then(|| to(shown - 1));
    let later = (shown + 1 < last).then(|| to(shown + 1));
    view! {
        <nav class="pager" aria-label="Pages of runs">
            {earlier.map(|href| view! { <a class="button" href=href rel="prev">"Newer"</a> })}
            <span>
                {format!(
                    "Page {} of {last}, {}",
                    shown + 1,
                    tokdyno_domain::text::plural(page.total.into(), "run", "runs"),
                )}
            </span>
            {later.map(|href| view! { <a class="button" href=href rel="next">"Older"</a> })}
        </nav>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_says_why_not() {
        assert!(hint(0).starts_with("Choose 2 to 12 runs"));
        assert!(hint(1).contains("at least one more"));
        assert_eq!(hint(2), "2 runs chosen.");
        assert_eq!(hint(12), "12 runs chosen.");
        assert!(hint(13).contains("at most 12"));
    }
}
