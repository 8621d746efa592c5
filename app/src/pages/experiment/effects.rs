//! What each level of a factor does, and which configuration is best.

use leptos::prelude::*;
use tokdyno_domain::{
    experiment::{
        FigureKey,
        results::{Best, Front, FrontCell, LevelEffect},
    },
    text,
    workload::StageKind,
};

use super::{
    data::ExperimentData,
    number::{Change, Mean},
    traces::Traces,
};
use crate::components::{
    Badge, EstablishedBadge, FlagNote, Glyph, TableBox, Tone, VerdictBadge, figures::capital,
};

/// A figure's name as the results call it.
pub(super) fn name(key: &FigureKey) -> String {
    match (key.metric.as_str(), key.level) {
        ("e2e_tps", StageKind::SingleStream) => "Single-stream speed".to_owned(),
        ("output_tps", level @ StageKind::ClosedLoop { .. }) => format!("Throughput at {level}"),
        (metric, level) => format!("{metric} at {level}"),
    }
}

/// Every level against the first of its factor.
#[component]
pub(super) fn Effects(data: ExperimentData) -> impl IntoView {
    let effects = data.found(|found| found.effects.clone());
    let any = Memo::new(move |_| effects.with(|effects| !effects.is_empty()));
    view! {
        <Show when=move || any.get()>
            <section class="section" aria-labelledby="effects-title">
                <h2 id="effects-title">"What each level does"</h2>
                <TableBox label="Levels against the first of their factor">
                    <table class="data">
                        <thead>
                            <tr>
                                <th scope="col">"Level"</th>
                                <th scope="col">"Figure"</th>
                                <th scope="col">"Change"</th>
                                <th scope="col">"Verdict"</th>
                                <th scope="col">"Averaged over"</th>
                            </tr>
                        </thead>
                        <tbody>
                            {move || {
                                effects
                                    .get()
                                    .into_iter()
                                    .flat_map(|effects| {
                                        let figure = name(&effects.key);
                                        let (factor, base) = (effects.factor, effects.base);
                                        effects
                                            .levels
                                            .into_iter()
                                            .map(move |level| row(&factor, &base, &figure, level))
                                    })
                                    .collect_view()
                            }}
                        </tbody>
                    </table>
                </TableBox>
                <p class="muted">
                    "Of a full grid it is the mean over the levels of the other factors. A mean hides what two factors do together; the figures of single configurations, above, show it."
                </p>
            </section>
        </Show>
    }
}

fn row(factor: &str, base: &str, figure: &str, effect: LevelEffect) -> impl IntoView + use<> {
    let over = match (effect.combinations, effect.of) {
        (used, of) if used == of => text::plural(of.into(), "combination", "combinations"),
        (used, of) => format!(
            "{used} of {}",
            text::plural(of.into(), "combination", "combinations")
        ),
    };
    view! {
        <tr>
            <th scope="row">
                {format!("{factor}: {}", effect.level)}
                <span class="row-note">{format!("against {base}")}</span>
            </th>
            <td>{figure.to_owned()}</td>
            <td>
                <Change ratio=effect.verdict.across_launches.or(effect.verdict.within_launch)/>
            </td>
            <td>
                <VerdictBadge kind=effect.verdict.kind/>
                <span class="row-note verdict-words">{effect.verdict.sentence}</span>
            </td>
            <td>{over}</td>
        </tr>
    }
}

/// Who leads by each figure, and who was not told apart.
#[component]
pub(super) fn BestCells(data: ExperimentData) -> impl IntoView {
    let best = data.found(|found| found.best.clone());
    let any = Memo::new(move |_| best.with(|best| !best.is_empty()));
    view! {
        <Show when=move || any.get()>
            <section class="section" aria-labelledby="best-title">
                <h2 id="best-title">"Best configurations"</h2>
                <TableBox label="Who leads by each figure">
                    <table class="data">
                        <thead>
                            <tr>
                                <th scope="col">"By"</th>
                                <th scope="col">"Leads"</th>
                                <th scope="col" class="num">"Figure"</th>
                                <th scope="col">"Is it best?"</th>
                                <th scope="col">"Not told apart from"</th>
                            </tr>
                        </thead>
                        <tbody>
                            {move || {
                                best.get()
                                    .into_iter()
                                    .map(|best| view! { <BestRow data best/> })
                                    .collect_view()
                            }}
                        </tbody>
                    </table>
                </TableBox>
            </section>
        </Show>
    }
}

#[component]
fn BestRow(data: ExperimentData, best: Best) -> impl IntoView {
    let open = if best.open.is_empty() {
        view! { <span class="muted">{text::NO_FIGURE}</span> }.into_any()
    } else {
        view! {
            <ul class="rivals">
                {best
                    .open
                    .into_iter()
                    .map(|rival| {
                        view! {
                            <li title=rival.verdict.sentence>
                                {title(data, rival.cell)} " "
                                <VerdictBadge kind=rival.verdict.kind/>
                            </li>
                        }
                    })
                    .collect_view()}
            </ul>
        }
        .into_any()
    };
    view! {
        <tr>
            <th scope="row">{name(&best.key)}</th>
            <td>
                {title(data, best.leader)}
                <span class="row-note">
                    <Traces data cell=best.leader/>
                </span>
            </td>
            <td class="num">
                <Mean mean=best.figure/>
            </td>
            <td>
                <EstablishedBadge established=best.established/>
            </td>
            <td>{open}</td>
        </tr>
    }
}

/// What people see of a cell.
pub(super) fn title(data: ExperimentData, cell: u32) -> String {
    data.fresh.view.with_untracked(|view| {
        view.cells
            .iter()
            .find(|candidate| candidate.index == cell)
            .map(|cell| cell.title.clone())
            .unwrap_or_default()
    })
}

/// The cells in two dimensions, as a table that leads to their runs. The chart stands
/// above it.
#[component]
pub(super) fn FrontTable(data: ExperimentData) -> impl IntoView {
    let front = data.found(|found| found.front.clone());
    let any = Memo::new(move |_| front.with(Option::is_some));
    view! {
        <Show when=move || any.get()>
            <details class="section-fold">
                <summary>
                    <h2>"Speed for one user and throughput, with their runs"</h2>
                </summary>
                {move || front.get().map(|front| view! { <FrontRows data front/> })}
            </details>
        </Show>
    }
}

#[component]
fn FrontRows(data: ExperimentData, front: Front) -> impl IntoView {
    let row = move |cell: FrontCell| {
        let badge = if cell.undominated {
            view! { <Badge tone=Tone::Ok glyph=Glyph::Check text="not dominated"/> }
        } else {
            view! { <Badge glyph=Glyph::Down text="dominated beyond doubt"/> }
        };
        view! {
            <tr>
                <th scope="row">{cell.title}</th>
                <td class="num">
                    <Mean mean=cell.up/>
                </td>
                <td class="num">
                    <Mean mean=cell.across/>
                </td>
                <td>
                    {badge}
                    {cell
                        .doubtful
                        .then(|| view! { <FlagNote text="no verdict rests on it"/> })}
                </td>
                <td>
                    {text::plural(cell.launches.into(), "launch", "launches")} ": "
                    <Traces data cell=cell.cell/>
                </td>
            </tr>
        }
    };
    view! {
        <TableBox label="Speed for one user and throughput">
            <table class="data">
                <thead>
                    <tr>
                        <th scope="col">"Configuration"</th>
                        <th scope="col" class="num">{capital(&name(&front.up))}</th>
                        <th scope="col" class="num">{capital(&name(&front.across))}</th>
                        <th scope="col">"On the front"</th>
                        <th scope="col">"From"</th>
                    </tr>
                </thead>
                <tbody>{front.cells.into_iter().map(row).collect_view()}</tbody>
            </table>
        </TableBox>
        <p class="muted">
            {format!(
                "Intervals at {}, each by itself. A configuration is on the front unless another one beats it in both beyond doubt.",
                text::share(front.confidence),
            )}
        </p>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_names_for_people() {
        let key = |metric: &str, level| FigureKey {
            metric: metric.to_owned(),
            level,
        };
        let loop_of_2 = StageKind::ClosedLoop { concurrency: 2 };
        assert_eq!(
            name(&key("e2e_tps", StageKind::SingleStream)),
            "Single-stream speed"
        );
        assert_eq!(name(&key("output_tps", loop_of_2)), "Throughput at C = 2");
        assert_eq!(name(&key("ttft", loop_of_2)), "ttft at C = 2");
    }
}
