//! What speculative decoding brings, level by level.

use leptos::prelude::*;
use tokdyno_domain::{
    ids::RunId,
    text::{self, NO_FIGURE},
    views::compare::{BreakEven, SpeculationLevel, SpeculationView},
};

use super::{Ties, figures::traces};
use crate::components::{figures::EstimateCell, table::TableBox};

/// A table per speculative configuration; nothing where none speculates.
#[component]
pub(super) fn Acceptance(views: Vec<SpeculationView>, ties: Ties) -> impl IntoView {
    (!views.is_empty()).then(|| {
        let tables = views
            .into_iter()
            .map(|view| table(view, ties))
            .collect_view();
        view! {
            <section class="section">
                <h2>"Speculative decoding"</h2>
                {tables}
                <p class="muted">
                    "Accept length is tokens per verify step, the bonus token included. Break-even is the time of a verify step (accept length × mean time per output token) over that of a step without speculation: with that accept length both are equally fast. By place: the share of steps in which the draft was accepted up to there."
                </p>
            </section>
        }
    })
}

fn table(view: SpeculationView, ties: Ties) -> AnyView {
    let SpeculationView {
        name,
        runs,
        base,
        levels,
    } = view;
    let (heading, behind) = match base {
        Some((base, its)) => (format!("{name} against {base}"), [runs, its].concat()),
        None => (
            format!("{name}: nothing without speculation to compare with"),
            runs,
        ),
    };
    let sentences: Vec<String> = levels
        .iter()
        .filter_map(|level| Some(level.break_even.as_ref()?.sentence.clone()))
        .collect();
    let by_place = levels.iter().any(|level| !level.accepted_at.is_empty());
    let rows = levels
        .into_iter()
        .map(|level| row(&level, by_place, &behind, ties))
        .collect_view();
    view! {
        <h3>{heading.clone()}</h3>
        <TableBox label=heading>
            <table class="data">
                <thead>
                    <tr>
                        <th scope="col">"Level"</th>
                        <th scope="col" class="num">"Accept length"</th>
                        <th scope="col" class="num">"Break-even"</th>
                        <th scope="col" class="num">"Verify step, ms"</th>
                        <th scope="col" class="num">"Step without, ms"</th>
                        <th scope="col">"Pays"</th>
                        {by_place.then(|| view! { <th scope="col" class="num">"By place"</th> })}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </TableBox>
        <ul class="sentences">
            {sentences.into_iter().map(|sentence| view! { <li>{sentence}</li> }).collect_view()}
        </ul>
    }
    .into_any()
}

fn row(level: &SpeculationLevel, by_place: bool, behind: &[RunId], ties: Ties) -> AnyView {
    let figure = |of: fn(&BreakEven) -> f64| {
        let value = level.break_even.as_ref().map(of);
        text::optional(value)
    };
    let pays = level.break_even.as_ref().map_or(NO_FIGURE, |found| {
        found
            .pays
            .map_or("not established", |pays| if pays { "yes" } else { "no" })
    });
    let places: Vec<String> = level
        .accepted_at
        .iter()
        .map(|share| text::share(*share))
        .collect();
    let interval = level
        .break_even
        .as_ref()
        .and_then(|found| found.accept_length.low.zip(found.accept_length.high))
        .map(|(low, high)| {
            view! {
                <span class="spread">{format!("{}–{}", text::figure(low), text::figure(high))}</span>
            }
        });
    view! {
        <tr>
            <th scope="row">
                <span>{level.kind.to_string()}</span>
                {traces(behind, level.kind, ties)}
            </th>
            <td class="num">
                <EstimateCell estimate=Some(level.accept_length) doubtful=level.doubtful/>
            </td>
            <td class="num">{figure(|found| found.accept_length.ratio)} {interval}</td>
            <td class="num">{figure(|found| found.step_ms)}</td>
            <td class="num">{figure(|found| found.plain_step_ms)}</td>
            <td>{pays}</td>
            {by_place.then(|| view! { <td class="num">{places.join(", ")}</td> })}
        </tr>
    }
    .into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use tokdyno_domain::{
        statistics::{Estimate, RatioInterval},
        workload::StageKind,
    };

    #[test]
    fn what_pays_is_said_with_its_records() {
        let level = |concurrency, pays, accepted_at: &[f64]| SpeculationLevel {
            kind: StageKind::ClosedLoop { concurrency },
            accept_length: Estimate::of([2.2]).expect("a figure"),
            doubtful: false,
            accepted_at: accepted_at.to_vec(),
            break_even: Some(BreakEven {
                step_ms: 17.6,
                plain_step_ms: 10.0,
                accept_length: RatioInterval {
                    ratio: 1.76,
                    low: Some(1.7),
                    high: Some(1.8),
                },
                pays,
                sentence: "It pays.".to_owned(),
            }),
        };
        let shown = SpeculationView {
            name: "drafter".to_owned(),
            runs: vec![RunId(4)],
            base: Some(("plain".to_owned(), vec![RunId(1)])),
            levels: vec![
                level(1, Some(true), &[0.8, 0.4]),
                level(8, Some(false), &[0.8, 0.4]),
                level(32, None, &[]),
            ],
        };
        let html = Owner::new()
            .with(|| view! { <Acceptance views=vec![shown] ties=Ties::Live/> }.to_html());
        for text in [
            "drafter against plain",
            ">1.76",
            "1.70–1.80",
            "80 %, 40 %",
            ">yes<",
            ">no<",
            ">not established<",
            "/runs/4?level=c-8#records",
            "/runs/1?level=c-32#records",
        ] {
            assert!(html.contains(text), "{text}: {html}");
        }
        let none = Owner::new()
            .with(|| view! { <Acceptance views=Vec::new() ties=Ties::Live/> }.to_html());
        assert!(!none.contains("Speculative"), "{none}");
    }
}
