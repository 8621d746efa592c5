//! Two to twelve runs side by side: the same body for the live and the frozen page.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod figures;
mod separate;
mod speculation;

use leptos::prelude::*;
use tokdyno_domain::{
    comparison::{Difference, DifferenceKind, Override},
    effective::Stamp,
    ids::LaunchId,
    text,
    timestamp::Timestamp,
    verdict::{Verdict, VerdictKind},
    views::{
        compare::{ClassKind, CompareGroup, CompareView, ComparisonClass},
        run::RunSummary,
    },
    workload::StageKind,
};

use self::{
    figures::{Figures, GroupFigures, anchor},
    separate::Ablations,
    speculation::Acceptance,
};
use super::{
    badges::{ClassBadge, EngineName, SourceBadge, StampBadge, VerdictBadge},
    chart::Charts,
    figures::capital,
    table::TableBox,
    time::RelativeTime,
};
use crate::query;

/// How a comparison is tied into the rest of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// Live: runs lead to their pages, the baseline can be chosen, charts have files.
    Live,
    /// Frozen, inside the tool: runs lead to their pages.
    Frozen,
    /// Frozen and shared: leads nowhere.
    Shared,
}

/// The comparison.
#[component]
pub fn Comparison(
    /// What it shows.
    view: CompareView,
    /// How it is tied into the rest.
    ties: Ties,
    /// Who vouches for it in spite of its class.
    #[prop(optional_no_strip)]
    overridden: Option<Override>,
) -> impl IntoView {
    let ablations = separate::ablations(&view);
    let kinds: Vec<StageKind> = view.rows.iter().map(|row| row.kind).collect();
    let CompareView {
        runs,
        rows,
        differences,
        equal_settings,
        class,
        verdicts,
        crossovers,
        charts,
        groups,
        separating,
        speculation,
    } = view;
    let ids: Vec<_> = runs.iter().map(|run| run.id).collect();
    let base = (ties == Ties::Live).then(|| "/compare/charts".to_owned());
    let files = query::compare_text(&ids);
    let charts = Signal::stored(charts);
    let names: Vec<String> = runs.iter().map(|run| run.configuration.clone()).collect();
    view! {
        <ClassBanner class=class separating=separating overridden=overridden/>
        <Ablations ablations=ablations ties=ties/>
        <Verdicts verdicts=verdicts kinds=kinds/>
        <RunCards runs=runs ties=ties/>
        <Groups groups=groups.clone()/>
        <Differences differences=differences equal=equal_settings names=names.clone()/>
        <GroupFigures rows=rows.clone() groups=groups runs=ids.clone() ties=ties/>
        <Figures rows=rows names=names runs=ids ties=ties/>
        <Crossovers sentences=crossovers/>
        <Acceptance views=speculation ties=ties/>
        <section class="section">
            <h2>"Charts"</h2>
            <Charts views=charts base=base query=files/>
        </section>
    }
}

/// May these be compared at all? Stands before every figure.
#[component]
fn ClassBanner(
    class: ComparisonClass,
    /// What would separate the factors.
    separating: Vec<String>,
    /// Who vouches for it all the same.
    overridden: Option<Override>,
) -> impl IntoView {
    let tone = match class.kind {
        ClassKind::Controlled | ClassKind::Repeat => "class-banner",
        ClassKind::Confounded => "class-banner class-warn",
        ClassKind::Invalid => "class-banner class-bad",
    };
    view! {
        <div class=tone>
            <ClassBadge kind=class.kind/>
            <div>
                <p>{capital(&class.sentence)}</p>
                {(!separating.is_empty()).then(|| view! {
                    <ul class="plain-list">
                        {separating
                            .into_iter()
                            .map(|sentence| view! { <li>{sentence}</li> })
                            .collect_view()}
                    </ul>
                })}
                {overridden.map(|overridden| view! {
                    <p class="override">
                        <strong>"Overridden. "</strong>
                        {overridden.sentence()}
                    </p>
                })}
            </div>
        </div>
    }
}

/// Which runs were taken together as launches of one configuration; nothing where
/// each stands for itself and nothing is to be said of it.
#[component]
fn Groups(groups: Vec<CompareGroup>) -> impl IntoView {
    let worth_telling = groups
        .iter()
        .any(|group| group.runs.len() > 1 || !group.notes.is_empty());
    worth_telling.then(|| {
        let lines = groups
            .into_iter()
            .map(|group| {
                let runs: Vec<String> = group.runs.iter().map(ToString::to_string).collect();
                let word = if runs.len() == 1 { "run" } else { "runs" };
                let launches = text::plural(group.launches.into(), "launch", "launches");
                let notes = group.notes.join(" ");
                view! {
                    <li>
                        <strong>{group.name}</strong>
                        {format!(": {launches}, {word} {}. {notes}", runs.join(", "))}
                    </li>
                }
            })
            .collect_view();
        view! {
            <section class="section">
                <h2>"Launches behind the verdicts"</h2>
                <ul class="plain-list">{lines}</ul>
            </section>
        }
    })
}

#[component]
fn Verdicts(
    verdicts: Vec<Verdict>,
    /// Load levels that the tables below have.
    kinds: Vec<StageKind>,
) -> impl IntoView {
    // What is decided comes first; what is missing last.
    let (said, missing): (Vec<_>, Vec<_>) = verdicts
        .into_iter()
        .partition(|verdict| verdict.kind != VerdictKind::Missing);
    let line = move |verdict: Verdict| {
        let figures = level_of(&verdict, &kinds).map(|kind| {
            view! {
                " "
                <a class="small-link" href=format!("#{}", anchor(kind))>
                    "Figures"
                </a>
            }
        });
        view! {
            <li class="verdict">
                <VerdictBadge kind=verdict.kind/>
                <p>{verdict.sentence} {figures}</p>
            </li>
        }
    };
    let missing = (!missing.is_empty()).then(|| {
        view! {
            <details class="fold">
                <summary>
                    {text::plural(missing.len() as u64, "pair has no figure", "pairs have no figure")}
                </summary>
                <ul class="verdicts">{missing.into_iter().map(line.clone()).collect_view()}</ul>
            </details>
        }
    });
    view! {
        <section class="section">
            <h2>"Verdicts"</h2>
            <ul class="verdicts">{said.into_iter().map(line).collect_view()}</ul>
            {missing}
        </section>
    }
}

#[component]
fn RunCards(runs: Vec<RunSummary>, ties: Ties) -> impl IntoView {
    let ids: Vec<_> = runs.iter().map(|run| run.id).collect();
    let cards = runs
        .into_iter()
        .enumerate()
        .map(|(place, run)| {
            let id = run.id;
            let name = if ties == Ties::Shared {
                view! { <span>{run.configuration}</span> }.into_any()
            } else {
                view! { <a href=format!("/runs/{id}")>{run.configuration}</a> }.into_any()
            };
            let role = if place == 0 {
                view! { <span class="baseline-mark">"Baseline"</span> }.into_any()
            } else if ties == Ties::Live {
                let address = format!(
                    "/compare?{}",
                    query::compare_text(&query::with_baseline(&ids, id))
                );
                view! { <a class="small-link" href=address>"Make baseline"</a> }.into_any()
            } else {
                ().into_any()
            };
            let without = (ties == Ties::Live && ids.len() > 2).then(|| {
                let others: Vec<_> = ids.iter().copied().filter(|other| *other != id).collect();
                let address = format!("/compare?{}", query::compare_text(&others));
                view! { <a class="small-link" href=address>"Leave out"</a> }
            });
            let version = run
                .engine_version
                .map(|version| view! { <span class="muted">" " {version}</span> });
            view! {
                <li class="run-card">
                    <p class="run-card-name">
                        <span class="run-card-key" aria-hidden="true">{letter(place)}</span>
                        {name}
                    </p>
                    <p class="cluster">
                        <EngineName engine=run.engine/> {version} <SourceBadge source=run.source/>
                        {run
                            .launch
                            .and_then(|launch| Some((launch.launch, launch.stamp?)))
                            .map(|(launch, stamp)| stamp_badge(stamp, launch, ties))}
                    </p>
                    <p class="muted run-card-facts">
                        {facts(&run.model, &run.hardware)} {" · "}
                        {moment(run.created_at, ties)}
                    </p>
                    <p class="cluster">{role} {without}</p>
                </li>
            }
            .into_any()
        })
        .collect_view();
    view! {
        <section class="section">
            <h2>"Compared runs"</h2>
            <ul class="run-cards">{cards}</ul>
        </section>
    }
}

/// The stamp, with a way to the launch where the page leads anywhere.
fn stamp_badge(stamp: Stamp, launch: LaunchId, ties: Ties) -> impl IntoView {
    if ties == Ties::Shared {
        view! { <StampBadge stamp=stamp/> }.into_any()
    } else {
        view! { <StampBadge stamp=stamp launch=launch/> }.into_any()
    }
}

/// What differs, and how much does not.
#[component]
fn Differences(differences: Vec<Difference>, equal: u32, names: Vec<String>) -> impl IntoView {
    let unknown = differences
        .iter()
        .any(|difference| difference.values.iter().any(Option::is_none));
    let equal = match equal {
        0 => "Nothing else is known of both sides.".to_owned(),
        1 => "1 other known key is equal in all of them.".to_owned(),
        n => format!(
            "{} other known keys are equal in all of them.",
            text::count(n.into())
        ),
    };
    let body = if differences.is_empty() {
        view! { <p>"Nothing that is known differs."</p> }.into_any()
    } else {
        let rows = differences
            .into_iter()
            .map(|difference| {
                view! {
                    <tr>
                        <th scope="row">
                            <code>{difference.key}</code>
                            <span class="row-note">{kind(difference.kind)}</span>
                        </th>
                        {difference
                            .values
                            .into_iter()
                            .map(|value| match value {
                                Some(value) => view! { <td><code>{value}</code></td> }.into_any(),
                                None => view! { <td class="muted">"not known"</td> }.into_any(),
                            })
                            .collect_view()}
                    </tr>
                }
                .into_any()
            })
            .collect_view();
        view! {
            <TableBox label="What differs">
                <table class="data differences">
                    <thead>
                        <tr>
                            <th scope="col">"What"</th>
                            {heads(&names, "")}
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </TableBox>
        }
        .into_any()
    };
    view! {
        <section class="section">
            <h2>"What differs"</h2>
            {body}
            <p class="muted">
                {equal}
                {unknown
                    .then_some(
                        " Where a value is not known, the server or the notes did not tell; it may be equal or not.",
                    )}
            </p>
        </section>
    }
}

/// The load level whose figures a verdict is on.
fn level_of(verdict: &Verdict, kinds: &[StageKind]) -> Option<StageKind> {
    let named = |kind: &StageKind| {
        verdict.metric.eq_ignore_ascii_case(&kind.to_string())
            || verdict.metric.ends_with(&format!(" at {kind}"))
    };
    kinds.iter().copied().find(named)
}

#[component]
fn Crossovers(sentences: Vec<String>) -> impl IntoView {
    (!sentences.is_empty()).then(|| {
        view! {
            <section class="section">
                <h2>"Where the curves cross"</h2>
                <ul class="sentences">
                    {sentences.into_iter().map(|sentence| view! { <li>{sentence}</li> }).collect_view()}
                </ul>
                <p>
                    <a class="small-link" href="#chart-throughput">"The curves"</a>
                </p>
            </section>
        }
    })
}

/// A column's head per run: its letter and its name.
fn heads(names: &[String], class: &'static str) -> impl IntoView + use<> {
    names
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let note = (place == 0).then(|| view! { <span class="row-note">"baseline"</span> });
            view! {
                <th scope="col" class=class>
                    <span class="column-name">
                        <span class="run-card-key" aria-hidden="true">{letter(place)}</span>
                        {name.clone()}
                    </span>
                    {note}
                </th>
            }
        })
        .collect_view()
}

/// `A` for the baseline, then on through the alphabet.
fn letter(place: usize) -> String {
    u8::try_from(place)
        .ok()
        .and_then(|place| b'A'.checked_add(place))
        .map_or_else(String::new, |letter| char::from(letter).to_string())
}

const fn kind(kind: DifferenceKind) -> &'static str {
    match kind {
        DifferenceKind::Definition => "definition",
        DifferenceKind::Environment => "environment",
        DifferenceKind::Setting => "setting",
    }
}

/// Live pages say how long ago; a frozen one says the same for ever.
fn moment(at: Timestamp, ties: Ties) -> AnyView {
    if ties == Ties::Live {
        view! { <RelativeTime at=at/> }.into_any()
    } else {
        view! { <time datetime=at.to_string()>{at.exact()}</time> }.into_any()
    }
}

fn facts(model: &str, hardware: &str) -> String {
    if hardware.is_empty() {
        model.to_owned()
    } else {
        format!("{model} · {hardware}")
    }
}
