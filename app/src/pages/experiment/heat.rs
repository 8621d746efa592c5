//! Heat maps: a figure over the configurations, as a table whose fields are coloured by
//! the change. What the colour says stands in words as well.

mod field;

use leptos::prelude::*;
use tokdyno_domain::{
    experiment::results::{Facet, HeatEntry, HeatMap, Layout},
    statistics::Better,
    text,
};

use self::field::{Behind, Scale, against, field, figure, tint};
use super::data::ExperimentData;
use crate::components::{TableBox, figures::capital};

/// The figures that are judged, and folded away the others.
#[component]
pub(super) fn HeatMaps(data: ExperimentData) -> impl IntoView {
    let split = move |judged: bool| {
        data.found(move |found| {
            found
                .heat_maps
                .iter()
                .filter(|map| is_judged(map) == judged)
                .cloned()
                .collect::<Vec<_>>()
        })
    };
    let (judged, others) = (split(true), split(false));
    let shown = move |maps: Memo<Vec<HeatMap>>| {
        move || {
            maps.get()
                .into_iter()
                .map(|map| view! { <Map data map/> })
                .collect_view()
        }
    };
    let count = Memo::new(move |_| others.with(Vec::len));
    view! {
        {shown(judged)}
        <Show when=move || { count.get() > 0 }>
            <details class="section-fold">
                <summary>
                    <h2>
                        {move || text::plural(count.get() as u64, "further figure", "further figures")}
                    </h2>
                </summary>
                <p class="muted">
                    "These are shown with their intervals and are not judged: every further family of verdicts is a further chance to err."
                </p>
                {shown(others)}
            </details>
        </Show>
    }
}

/// Are verdicts given on this figure?
fn is_judged(map: &HeatMap) -> bool {
    map.entries.iter().any(|entry| entry.verdict.is_some())
}

#[component]
fn Map(data: ExperimentData, map: HeatMap) -> impl IntoView {
    let relevant = data.fresh.view.with_untracked(|view| view.relevant_effect);
    let scale = Scale {
        data,
        better: map.better,
        relevant,
        reference: map.reference,
    };
    let reference = map
        .entries
        .iter()
        .find(|entry| entry.cell == map.reference)
        .map(|entry| entry.title.clone())
        .unwrap_or_default();
    let sense = match map.better {
        Better::Higher => "more is better",
        Better::Lower => "less is better",
    };
    let title = capital(&map.title);
    let legend = format!(
        "Each figure is the geometric mean over launches with its {} interval, each by itself; below it the change against {reference}, taken within blocks. Fields are tinted green where it is better by {} or more, red where it is worse, and palely where that is not established.",
        text::share(map.confidence),
        text::percent(relevant),
    );
    let unit = if map.unit.is_empty() {
        sense.to_owned()
    } else {
        format!("{}, {sense}", map.unit)
    };
    let entries = map.entries;
    let body = match map.layout {
        Layout::List => {
            let label = format!("{title}: every configuration");
            view! { <List scale entries label/> }.into_any()
        }
        Layout::Grid {
            row_factor,
            rows,
            column_factor,
            columns,
            facets,
        } => {
            let axes = Axes {
                row_factor,
                rows,
                column_factor,
                columns,
            };
            facets
                .into_iter()
                .map(|facet| grid(scale, &axes, facet, &entries, &title))
                .collect_view()
                .into_any()
        }
    };
    let heading = title.clone();
    view! {
        <section class="section heat-map" aria-label=title>
            <h2>
                {heading} " " <span class="muted heat-unit">{unit}</span>
            </h2>
            {body}
            <p class="muted">{legend}</p>
        </section>
    }
}

/// The two factors of a grid.
struct Axes {
    row_factor: String,
    rows: Vec<String>,
    column_factor: String,
    columns: Vec<String>,
}

/// One grid; its caption says at which levels of the other factors.
fn grid(
    scale: Scale,
    axes: &Axes,
    facet: Facet,
    entries: &[HeatEntry],
    title: &str,
) -> impl IntoView + use<> {
    let at: Vec<String> = facet
        .levels
        .iter()
        .map(|(factor, level)| format!("{factor}: {level}"))
        .collect();
    let at = at.join(", ");
    // The section around it has the title alone as its name.
    let label = if at.is_empty() {
        format!("{title}: {} and {}", axes.row_factor, axes.column_factor)
    } else {
        format!("{title}, {at}")
    };
    let find = |cell: Option<u32>| {
        entries
            .iter()
            .find(|entry| Some(entry.cell) == cell)
            .cloned()
    };
    let rows = axes
        .rows
        .iter()
        .zip(facet.cells)
        .map(|(row, cells)| {
            let fields = cells
                .into_iter()
                .map(|cell| field(scale, find(cell)))
                .collect_view();
            view! {
                <tr>
                    <th scope="row">{row.clone()}</th>
                    {fields}
                </tr>
            }
        })
        .collect_view();
    let columns = axes
        .columns
        .iter()
        .map(|column| view! { <th scope="col">{column.clone()}</th> })
        .collect_view();
    let corner = format!("{} ↓ {} →", axes.row_factor, axes.column_factor);
    view! {
        {(!at.is_empty()).then(|| view! { <h3>{at}</h3> })}
        <TableBox label=label>
            <table class="data heat">
                <thead>
                    <tr>
                        <th scope="col">{corner}</th>
                        {columns}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </TableBox>
    }
}

/// A configuration a line.
#[component]
fn List(scale: Scale, entries: Vec<HeatEntry>, label: String) -> impl IntoView {
    view! {
        <TableBox label=label>
            <table class="data heat">
                <thead>
                    <tr>
                        <th scope="col">"Configuration"</th>
                        <th scope="col" class="num">"Figure"</th>
                        <th scope="col">"Change"</th>
                        <th scope="col">"From"</th>
                    </tr>
                </thead>
                <tbody>
                    {entries
                        .into_iter()
                        .map(|entry| {
                            let class = format!("heat-field {}", tint(scale, &entry));
                            view! {
                                <tr>
                                    <th scope="row">{entry.title.clone()}</th>
                                    <td class="num">{figure(&entry)}</td>
                                    <td class=class>{against(scale, &entry)}</td>
                                    <td>
                                        <Behind scale entry/>
                                    </td>
                                </tr>
                            }
                        })
                        .collect_view()}
                </tbody>
            </table>
        </TableBox>
    }
}
