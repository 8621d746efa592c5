//! The figures side by side. Each leads to the request records that it was made from.

use leptos::prelude::*;
use tokdyno_domain::{
    ids::RunId,
    text,
    views::compare::{CompareCell, CompareGroup, CompareRow, GroupCell},
    workload::StageKind,
};

use super::{Ties, heads};
use crate::{
    components::{
        figures::{EstimateCell, capital},
        table::TableBox,
    },
    query,
};

/// Element id of the first row of a load level.
pub(super) fn anchor(kind: StageKind) -> String {
    format!("figures-{}", kind.slug())
}

/// The figures of the runs, with each one's ratio to the baseline's.
#[component]
pub(super) fn Figures(
    rows: Vec<CompareRow>,
    names: Vec<String>,
    /// The runs, in the order of the columns.
    runs: Vec<RunId>,
    ties: Ties,
) -> impl IntoView {
    let body = lines(rows, Some(anchor), move |row| {
        let kind = row.kind;
        row.cells
            .iter()
            .zip(&runs)
            .map(|(figure, run)| cell(*figure, *run, kind, ties))
            .collect_view()
            .into_any()
    });
    let trace = (ties != Ties::Shared)
        .then_some(" Each figure leads to the request records that it was made from.");
    view! {
        <section class="section">
            <h2>"Figures"</h2>
            <FigureTable label="Figures with their ratio to the baseline" names=names body=body/>
            <p class="muted">
                "Mean over repeats, their smallest and largest, and their number. The change is against the baseline and is no verdict: the verdicts stand above."
                {trace}
            </p>
        </section>
    }
}

/// The figures of the configurations over their launches; nothing where each is a
/// single run, whose figures stand below.
#[component]
pub(super) fn GroupFigures(
    rows: Vec<CompareRow>,
    groups: Vec<CompareGroup>,
    /// The runs, in the order of the rows' cells.
    runs: Vec<RunId>,
    ties: Ties,
) -> impl IntoView {
    let worth_telling = groups.len() > 1 && groups.iter().any(|group| group.runs.len() > 1);
    worth_telling.then(move || {
        let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        let body = lines(rows, None, move |row| {
            row.groups
                .iter()
                .zip(&groups)
                .map(|(figure, group)| {
                    let figure = figure.clone().map(|figure| {
                        let behind = behind(&figure, row, group, &runs);
                        (figure, behind)
                    });
                    group_cell(figure, row.kind, ties)
                })
                .collect_view()
                .into_any()
        });
        view! {
            <section class="section">
                <h2>"Figures of the configurations"</h2>
                <FigureTable
                    label="Figures of the configurations with their ratio to the baseline"
                    names=names
                    body=body
                />
                <p class="muted">
                    "Mean over launches, each the geometric mean of its repeats; of a single launch, over its repeats."
                </p>
            </section>
        }
    })
}

/// The rows beneath the names of those whose figures they are.
#[component]
fn FigureTable(label: &'static str, names: Vec<String>, body: Vec<AnyView>) -> impl IntoView {
    view! {
        <TableBox label=label>
            <table class="data">
                <thead>
                    <tr>
                        <th scope="col">"Metric"</th>
                        {heads(&names, "num")}
                    </tr>
                </thead>
                <tbody>{body}</tbody>
            </table>
        </TableBox>
    }
}

/// A row per figure; the first of each load level is set apart, and bears its anchor.
fn lines(
    rows: Vec<CompareRow>,
    anchor: Option<fn(StageKind) -> String>,
    cells: impl Fn(&CompareRow) -> AnyView,
) -> Vec<AnyView> {
    let mut above = None;
    rows.into_iter()
        .map(|row| {
            let first = above != Some(row.kind);
            above = Some(row.kind);
            let id = anchor.filter(|_| first).map(|anchor| anchor(row.kind));
            let sense = if row.more_is_better {
                "more is better"
            } else {
                "less is better"
            };
            let cells = cells(&row);
            view! {
                <tr id=id class:group-start=first>
                    <th scope="row">
                        <span>{capital(&row.metric)}</span>
                        <span class="row-note">
                            {row.kind.to_string()} " · " {row.unit} ", " {sense}
                        </span>
                    </th>
                    {cells}
                </tr>
            }
            .into_any()
        })
        .collect()
}

fn cell(cell: Option<CompareCell>, run: RunId, kind: StageKind, ties: Ties) -> AnyView {
    let Some(cell) = cell else {
        return view! { <td class="num"><EstimateCell estimate=None/></td> }.into_any();
    };
    let change = cell
        .ratio
        .map(|ratio| view! { <span class="change">{text::change(ratio)}</span> });
    let figure = view! { <EstimateCell estimate=Some(cell.estimate) doubtful=cell.doubtful/> };
    let figure = if ties == Ties::Shared {
        figure.into_any()
    } else {
        view! {
            <a
                class="trace"
                href=query::records_address(run, kind)
                title=format!("Request records of run {run}, {kind}")
            >
                {figure}
            </a>
        }
        .into_any()
    };
    view! {
        <td class="num">
            {figure}
            {change}
        </td>
    }
    .into_any()
}

fn group_cell(cell: Option<(GroupCell, Vec<RunId>)>, kind: StageKind, ties: Ties) -> AnyView {
    let Some((cell, behind)) = cell else {
        return view! { <td class="num"><EstimateCell estimate=None/></td> }.into_any();
    };
    let change = cell
        .ratio
        .map(|ratio| view! { <span class="change">{text::change(ratio)}</span> });
    view! {
        <td class="num">
            <EstimateCell estimate=Some(cell.estimate) doubtful=cell.doubtful/>
            {change}
            <span class="row-note">{text::plural(cell.launches.into(), "launch", "launches")}</span>
            {traces(&behind, kind, ties)}
        </td>
    }
    .into_any()
}

/// The runs that a configuration's figure is of. An older document does not tell them:
/// then those of the configuration that have one.
fn behind(
    figure: &GroupCell,
    row: &CompareRow,
    group: &CompareGroup,
    runs: &[RunId],
) -> Vec<RunId> {
    if !figure.runs.is_empty() {
        return figure.runs.clone();
    }
    row.cells
        .iter()
        .zip(runs)
        .filter(|(cell, run)| cell.is_some() && group.runs.contains(run))
        .map(|(_, run)| *run)
        .collect()
}

/// `Records: run 3, run 4`, each a link; nothing where links lead nowhere.
pub(super) fn traces(runs: &[RunId], kind: StageKind, ties: Ties) -> Option<impl IntoView + use<>> {
    let links = runs
        .iter()
        .enumerate()
        .map(|(place, run)| {
            view! {
                {(place > 0).then_some(", ")}
                <a href=query::records_address(*run, kind)>{format!("run {run}")}</a>
            }
        })
        .collect_view();
    (ties != Ties::Shared && !runs.is_empty())
        .then(|| view! { <span class="row-note">"Records: " {links}</span> })
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use tokdyno_domain::statistics::Estimate;

    const LEVEL: StageKind = StageKind::ClosedLoop { concurrency: 8 };

    fn row(figures: &[Option<f64>]) -> CompareRow {
        let cells = figures.iter().map(|figure| {
            Some(CompareCell {
                estimate: Estimate::of(*figure)?,
                ratio: None,
                doubtful: false,
            })
        });
        CompareRow {
            kind: LEVEL,
            metric: "output throughput (output_tps)".to_owned(),
            unit: "tok/s".to_owned(),
            more_is_better: true,
            cells: cells.collect(),
            groups: vec![
                Estimate::of(figures.iter().copied().flatten()).map(|estimate| GroupCell {
                    estimate,
                    launches: 2,
                    ratio: None,
                    doubtful: false,
                    runs: Vec::new(),
                }),
                None,
            ],
        }
    }

    fn shown(rows: Vec<CompareRow>, ties: Ties) -> String {
        let runs = vec![RunId(7), RunId(9), RunId(11)];
        let names = ["a", "a", "b"].map(str::to_owned).to_vec();
        let group = |name: &str, runs: &[i64]| CompareGroup {
            name: name.to_owned(),
            runs: runs.iter().map(|run| RunId(*run)).collect(),
            launches: 2,
            notes: Vec::new(),
        };
        let groups = vec![group("a", &[7, 9]), group("b", &[11])];
        Owner::new().with(|| {
            view! {
                <GroupFigures rows=rows.clone() groups=groups runs=runs.clone() ties=ties/>
                <Figures rows=rows names=names runs=runs ties=ties/>
            }
            .to_html()
        })
    }

    #[test]
    fn every_figure_leads_to_its_records() {
        let html = shown(vec![row(&[Some(100.0), Some(102.0), None])], Ties::Live);
        for run in [7, 9] {
            let address = format!("href=\"/runs/{run}?level=c-8#records\"");
            // Of the run itself, and of its configuration.
            assert_eq!(html.matches(&address).count(), 2, "{html}");
        }
        assert!(!html.contains("/runs/11"), "it has no figure: {html}");
        assert!(html.contains("id=\"figures-c-8\""), "{html}");
    }

    #[test]
    fn a_configuration_leads_only_to_the_runs_that_its_figure_is_of() {
        let mut row = row(&[Some(100.0), Some(102.0), None]);
        if let Some(cell) = &mut row.groups[0] {
            cell.runs = vec![RunId(9)];
        }
        let html = shown(vec![row], Ties::Live);
        let links = |run| {
            html.matches(&format!("href=\"/runs/{run}?level=c-8#records\""))
                .count()
        };
        assert_eq!((links(7), links(9)), (1, 2), "{html}");
    }

    #[test]
    fn a_shared_comparison_leads_nowhere() {
        let html = shown(vec![row(&[Some(100.0), None, None])], Ties::Shared);
        assert!(!html.contains("href"), "{html}");
    }
}
