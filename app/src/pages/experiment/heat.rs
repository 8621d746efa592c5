//! Heat maps: a figure over the configurations, as a table whose fields are coloured by
//! the change. What the colour says stands in words as well.

use leptos::prelude::*;
use tokdyno_domain::{
    experiment::results::{EntryState, Facet, HeatEntry, HeatMap, Layout},
    statistics::{Better, RatioInterval},
    text,
};

use super::{
    data::ExperimentData,
    number::{Change, Mean},
    traces::Traces,
};
use crate::components::{EntryBadge, FlagNote, TableBox, VerdictBadge, figures::capital};

/// Where the colour becomes stronger: multiples of the smallest effect that matters.
const STEPS: [f64; 4] = [1.0, 2.5, 5.0, 12.5];

/// What the fields of one map share.
#[derive(Clone, Copy)]
struct Scale {
    data: ExperimentData,
    better: Better,
    /// Smallest effect that matters, as a share.
    relevant: f64,
    reference: u32,
}

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
        "Each figure is the geometric mean over launches with its {} interval, each by itself; below it the change against {reference}, taken within blocks. Fields are tinted green where it is better by {} or more, red where it is worse.",
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

/// One field of a grid.
fn field(scale: Scale, entry: Option<HeatEntry>) -> AnyView {
    let Some(entry) = entry else {
        return view! { <td class="muted">"not part of the plan"</td> }.into_any();
    };
    let class = format!(
        "heat-field {}",
        tint(scale.better, scale.relevant, entry.ratio)
    );
    let against = against(scale, &entry);
    view! {
        <td class=class>
            {figure(&entry)}
            {against}
            <Behind scale entry/>
        </td>
    }
    .into_any()
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
                            let class = format!("heat-field {}", tint(scale.better, scale.relevant, entry.ratio));
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

/// The figure, or why there is none.
fn figure(entry: &HeatEntry) -> AnyView {
    match entry.figure {
        Some(mean) => view! {
            <span class="heat-figure">
                <Mean mean/>
            </span>
        }
        .into_any(),
        None => view! { <EntryBadge state=entry.state/> }.into_any(),
    }
}

/// The change against the reference, and what may be said of it.
fn against(scale: Scale, entry: &HeatEntry) -> Option<AnyView> {
    if entry.cell == scale.reference {
        return Some(view! { <span class="heat-reference">"compared with"</span> }.into_any());
    }
    if entry.state != EntryState::Measured {
        return None;
    }
    let verdict = entry.verdict.clone().map(|verdict| {
        view! {
            <span class="heat-verdict" title=verdict.sentence>
                <VerdictBadge kind=verdict.kind/>
            </span>
        }
    });
    Some(
        view! {
            <span class="heat-change">
                <Change ratio=entry.ratio/>
            </span>
            {verdict}
        }
        .into_any(),
    )
}

/// Launches, runs and flags behind a figure.
#[component]
fn Behind(scale: Scale, entry: HeatEntry) -> impl IntoView {
    let launches = (entry.launches > 0).then(|| {
        view! {
            <span class="heat-launches">
                {text::plural(entry.launches.into(), "launch", "launches")} ": "
                <Traces data=scale.data cell=entry.cell/>
            </span>
        }
    });
    view! {
        {launches}
        {entry
            .flags
            .into_iter()
            .map(|flag| view! { <FlagNote text=flag/> })
            .collect_view()}
    }
}

/// The class that tints a field: how far the ratio is on which side.
fn tint(better: Better, relevant: f64, ratio: Option<RatioInterval>) -> String {
    let Some(change) = ratio.map(|ratio| better.turned(ratio.ratio.ln())) else {
        return String::new();
    };
    let strength = STEPS
        .iter()
        .take_while(|step| change.abs() >= (*step * relevant).ln_1p())
        .count();
    match strength {
        0 => String::new(),
        strength if change > 0.0 => format!("heat-better-{strength}"),
        strength => format!("heat-worse-{strength}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_what_is_better() {
        let tint = |better, ratio| {
            let ratio = RatioInterval {
                ratio,
                low: None,
                high: None,
            };
            super::tint(better, 0.02, Some(ratio))
        };
        assert_eq!(tint(Better::Higher, 1.015), "");
        assert_eq!(tint(Better::Higher, 1.03), "heat-better-1");
        assert_eq!(tint(Better::Higher, 1.415), "heat-better-4");
        assert_eq!(tint(Better::Higher, 0.90), "heat-worse-3");
        assert_eq!(tint(Better::Lower, 0.5), "heat-better-4");
        assert_eq!(super::tint(Better::Higher, 0.02, None), "");
    }
}
