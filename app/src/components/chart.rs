//! A chart: a picture from the server at once, plotly.js once it is there, and
//! always the same numbers as a table.

use leptos::{html::Div, prelude::*, task::spawn_local};
use tokdyno_domain::{
    chart::{ChartSpec, Point},
    text,
    views::ChartView,
};

use super::{figures::capital, time::RelativeTime};
use crate::{Surface, query};

/// Rows of the table in the page; the CSV has all.
const MOST_ROWS: usize = 400;

/// Several charts, each keyed by its id: new data keeps the plot, its zoom and
/// what was open.
#[component]
pub fn Charts(
    /// The charts.
    #[prop(into)]
    views: Signal<Vec<ChartView>>,
    /// Path below which their files lie, such as `/runs/7/charts`; none for no links.
    base: Option<String>,
    /// Query of those files, without `?`.
    #[prop(optional, into)]
    query: String,
) -> impl IntoView {
    let ids = Memo::new(move |_| {
        views.with(|views| {
            views
                .iter()
                .map(|view| view.spec.id.clone())
                .collect::<Vec<_>>()
        })
    });
    view! {
        <div class="charts">
            <For each=move || ids.get() key=Clone::clone let:id>
                {
                    let base = base.clone();
                    let query = query.clone();
                    // A chart that leaves the list is taken away; until then its
                    // last state stands.
                    let view = Memo::new(move |last: Option<&Option<ChartView>>| {
                        views
                            .with(|views| views.iter().find(|view| view.spec.id == id).cloned())
                            .or_else(|| last.cloned().flatten())
                    });
                    view.get_untracked()
                        .map(|first| {
                            let view = Signal::derive(move || {
                                view.get().unwrap_or_else(|| first.clone())
                            });
                            view! { <Chart view=view base=base query=query/> }
                        })
                }
            </For>
        </div>
    }
}

/// A chart.
#[component]
pub fn Chart(
    /// What it shows.
    #[prop(into)]
    view: Signal<ChartView>,
    /// Path below which its files lie, such as `/runs/7/charts`; none for no links.
    base: Option<String>,
    /// Query of those files, without `?`.
    #[prop(optional, into)]
    query: String,
) -> impl IntoView {
    let id = view.with_untracked(|view| view.spec.id.clone());
    let anchor = format!("chart-{id}");
    let summary_id = format!("{anchor}-summary");
    let title_id = format!("{anchor}-title");
    let title = Memo::new(move |_| view.with(|view| view.spec.title.clone()));
    let summary = Memo::new(move |_| view.with(|view| view.spec.summary.clone()));
    let bars = Memo::new(move |_| view.with(|view| view.spec.bars.clone()));
    let notes = Memo::new(move |_| view.with(|view| view.spec.notes.clone()));
    let as_of = Memo::new(move |_| view.with(|view| view.spec.as_of));
    let svg = Memo::new(move |_| view.with(|view| view.svg.clone()));
    let figure = Memo::new(move |_| view.with(|view| view.figure.clone()));
    let spec = Memo::new(move |_| view.with(|view| view.spec.clone()));

    let plot = NodeRef::<Div>::new();
    let drawn = RwSignal::new(false);
    let revision = RwSignal::new(0_u32);
    draw_in_browser(plot, figure.into(), revision, drawn);

    view! {
        <figure class="chart" id=anchor class:is-drawn=drawn>
            <figcaption class="chart-caption">
                <h3 id=title_id.clone()>{title}</h3>
                <p id=summary_id.clone() class="chart-summary">
                    {summary}
                </p>
            </figcaption>
            <div class="chart-box" role="img" aria-labelledby=title_id aria-describedby=summary_id>
                <div class="chart-picture" inner_html=svg></div>
                <div class="chart-plot" node_ref=plot></div>
            </div>
            <p class="chart-meaning">
                {move || bars.get().map(|bars| view! { <span>{capital(bars.trim_end_matches('.'))}". "</span> })}
                {move || {
                    as_of
                        .get()
                        .map(|at| view! { <span>"Newest figure: " <RelativeTime at=at/> "."</span> })
                }}
            </p>
            {move || {
                let notes = notes.get();
                (!notes.is_empty())
                    .then(|| {
                        view! {
                            <ul class="chart-notes">
                                {notes
                                    .into_iter()
                                    .map(|note| view! { <li>{note}</li> })
                                    .collect_view()}
                            </ul>
                        }
                    })
            }}
            <div class="chart-foot">
                <details class="chart-table">
                    <summary>"Table"</summary>
                    <ChartTable spec=spec/>
                </details>
                <ChartTools id=id base=base query=query title=title
                    figure=figure revision=revision drawn=drawn/>
            </div>
        </figure>
    }
}

/// Downloads, and the way back from a zoom.
#[component]
fn ChartTools(
    id: String,
    base: Option<String>,
    query: String,
    #[prop(into)] title: Signal<String>,
    #[prop(into)] figure: Signal<String>,
    revision: RwSignal<u32>,
    drawn: RwSignal<bool>,
) -> impl IntoView {
    let failed = RwSignal::new(false);
    let name = format!("{id}.png");
    let save = move |_| {
        let name = name.clone();
        spawn_local(async move {
            let done = save_png(&figure.get_untracked(), &title.get_untracked(), &name).await;
            let _ = failed.try_set(!done);
        });
    };
    let address = move |extension: &str| {
        base.as_ref().map(|base| {
            let mark = if query.is_empty() { "" } else { "?" };
            format!("{base}/{id}.{extension}{mark}{query}")
        })
    };
    let link = move |extension: &str, label: &'static str| {
        address(extension).map(|address| {
            view! {
                <a class="tool" href=address rel="external" download="">
                    {label}
                </a>
            }
        })
    };
    view! {
        <div class="chart-tools">
            <span role="status" class="chart-status">
                {move || failed.get().then_some("The picture could not be made; the SVG has it.")}
            </span>
            <button
                type="button"
                class="tool tool-live"
                class:is-ready=drawn
                on:click=move |_| revision.update(|revision| *revision += 1)
            >
                "Reset zoom"
            </button>
            <button type="button" class="tool tool-live" class:is-ready=drawn on:click=save>
                "PNG"
            </button>
            {link("svg", "SVG")}
            {link("csv", "CSV")}
        </div>
    }
}

/// The same numbers.
#[component]
fn ChartTable(#[prop(into)] spec: Signal<ChartSpec>) -> impl IntoView {
    let label = move || spec.with(|spec| format!("{}: the numbers", spec.title));
    let leads_on = use_context::<Surface>().unwrap_or_default() == Surface::Full;
    let traced = move || leads_on && spec.with(has_records);
    view! {
        <div class="table-box" role="region" aria-label=label tabindex="0">
            <table class="data">
                <thead>
                    <tr>
                        <th scope="col">"Series"</th>
                        <th scope="col" class="num">
                            {move || spec.with(|spec| spec.x.title())}
                        </th>
                        <th scope="col" class="num">
                            {move || spec.with(|spec| spec.y.title())}
                        </th>
                        <th scope="col" class="num">
                            "Bar"
                        </th>
                        <th scope="col" class="num">
                            "n"
                        </th>
                        <th scope="col">"Source"</th>
                        <th scope="col">"Note"</th>
                        {move || traced().then(|| view! { <th scope="col">"Records"</th> })}
                    </tr>
                </thead>
                <tbody>{move || spec.with(|spec| rows(spec, traced()))}</tbody>
            </table>
        </div>
        {move || {
            let points = spec
                .with(|spec| spec.series.iter().map(|series| series.points.len()).sum::<usize>());
            (points > MOST_ROWS)
                .then(|| {
                    view! {
                        <p class="muted">
                            {format!(
                                "The first {MOST_ROWS} of {} points; the CSV has them all.",
                                text::count(points as u64),
                            )}
                        </p>
                    }
                })
        }}
    }
}

/// Is it known of any point which request records it was made from?
fn has_records(spec: &ChartSpec) -> bool {
    let mut points = spec.series.iter().flat_map(|series| &series.points);
    points.any(|point| !point.behind.is_empty())
}

/// A link per run and load level that a point was made from.
fn records(point: &Point) -> AnyView {
    point
        .behind
        .iter()
        .enumerate()
        .map(|(place, behind)| {
            view! {
                {(place > 0).then_some(", ")}
                <a href=query::records_address(behind.run, behind.kind)>
                    {format!("run {}, {}", behind.run, behind.kind)}
                </a>
            }
        })
        .collect_view()
        .into_any()
}

fn rows(spec: &ChartSpec, traced: bool) -> Vec<AnyView> {
    spec.series
        .iter()
        .flat_map(|series| series.points.iter().map(move |point| (series, point)))
        .take(MOST_ROWS)
        .map(|(series, point)| {
            view! {
                <tr>
                    <th scope="row">{series.name.clone()}</th>
                    <td class="num">{text::figure(point.x)}</td>
                    <td class="num">{text::figure(point.y)}</td>
                    <td class="num">{bar(point)}</td>
                    <td class="num">
                        {point.n.map_or_else(|| text::NO_FIGURE.to_owned(), |n| n.to_string())}
                    </td>
                    <td>{series.source.word()}</td>
                    <td>{note(point)}</td>
                    {traced.then(|| view! { <td>{records(point)}</td> })}
                </tr>
            }
            .into_any()
        })
        .collect()
}

fn bar(point: &Point) -> String {
    let ends = |(low, high): (f64, f64)| format!("{}–{}", text::figure(low), text::figure(high));
    match (point.x_bar, point.y_bar) {
        (None, None) => text::NO_FIGURE.to_owned(),
        (None, Some(up)) => ends(up),
        (Some(across), None) => format!("across {}", ends(across)),
        (Some(across), Some(up)) => format!("across {}, up {}", ends(across), ends(up)),
    }
}

fn note(point: &Point) -> String {
    match (point.hollow, &point.note) {
        (false, note) => note.clone().unwrap_or_default(),
        (true, None) => "flagged or disputed".to_owned(),
        (true, Some(note)) => format!("flagged or disputed; {note}"),
    }
}

fn draw_in_browser(
    plot: NodeRef<Div>,
    figure: Signal<String>,
    revision: RwSignal<u32>,
    drawn: RwSignal<bool>,
) {
    #[cfg(feature = "hydrate")]
    crate::plot::keep_drawn(plot, figure, revision, drawn);
    #[cfg(not(feature = "hydrate"))]
    let _ = (plot, figure, revision, drawn);
}

/// Saves the figure as a picture; whether that was possible.
async fn save_png(figure: &str, title: &str, name: &str) -> bool {
    #[cfg(feature = "hydrate")]
    {
        match crate::plot::png(figure, title).await {
            Ok(address) => {
                crate::browser::save_as(&address, name);
                true
            }
            Err(_) => false,
        }
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = (figure, title, name);
        std::future::ready(false).await
    }
}
