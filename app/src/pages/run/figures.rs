//! The headline: what this run says, in a handful of figures, and what must be
//! known with them.

use leptos::prelude::*;
use tokdyno_domain::{
    statistics::Estimate,
    text,
    views::run::{LevelView, RunView},
    workload::StageKind,
};

use super::data::RunData;

/// A figure of the headline.
#[derive(Debug, Clone, PartialEq)]
struct Headline {
    label: String,
    estimate: Estimate,
    unit: &'static str,
    /// Flagged or disputed.
    doubtful: bool,
    note: String,
}

/// Headline figures, remarks, acceptance, requests as recorded.
#[component]
pub(super) fn Figures(data: RunData) -> impl IntoView {
    let figures = data.part(headline);
    let remarks = data.part(remarks);
    let acceptance = data.part(|view| view.acceptance.clone());
    let recorded = data.part(|view| view.recorded_requests.clone());
    view! {
        <Show when=move || figures.with(|figures| !figures.is_empty())>
            <section aria-labelledby="figures-title">
                <h2 id="figures-title" class="visually-hidden">"Figures"</h2>
                <dl class="headline">
                    {move || figures.get().into_iter().map(card).collect_view()}
                </dl>
            </section>
        </Show>
        <Show when=move || remarks.with(|remarks| !remarks.is_empty())>
            <section class="run-remarks" aria-labelledby="remarks-title">
                <h2 id="remarks-title">"What to know about these figures"</h2>
                <ul>
                    {move || {
                        remarks.get().into_iter().map(|remark| view! { <li>{remark}</li> }).collect_view()
                    }}
                </ul>
            </section>
        </Show>
        {move || {
            acceptance
                .get()
                .map(|acceptance| {
                    view! {
                        <section aria-labelledby="acceptance-title">
                            <h2 id="acceptance-title">"Acceptance of drafted tokens"</h2>
                            <p>
                                <strong>{acceptance.text}</strong>
                            </p>
                            <p class="muted">{acceptance.definition}</p>
                        </section>
                    }
                })
        }}
        <Show when=move || recorded.with(|recorded| !recorded.is_empty())>
            <section aria-labelledby="recorded-title">
                <h2 id="recorded-title">"Requests as the notes print them"</h2>
                <ul>
                    {move || {
                        recorded.get().into_iter().map(|line| view! { <li>{line}</li> }).collect_view()
                    }}
                </ul>
            </section>
        </Show>
    }
}

fn card(figure: Headline) -> impl IntoView {
    view! {
        <div class="headline-card" class:doubtful=figure.doubtful>
            <dt>{figure.label}</dt>
            <dd>
                <span class="headline-figure">{text::figure(figure.estimate.mean)}</span>
                " "
                <span class="headline-unit">{figure.unit}</span>
                <span class="headline-note">
                    {spread(&figure.estimate)} {figure.note}
                    {figure.doubtful.then_some(" · doubtful: see the remarks")}
                </span>
            </dd>
        </div>
    }
}

/// `89.5–90.4 over 3 repeats`, or that there is one value only.
fn spread(estimate: &Estimate) -> String {
    match estimate.bar() {
        Some((low, high)) => format!(
            "{}–{} (min–max over {} repeats)",
            text::figure(low),
            text::figure(high),
            estimate.n
        ),
        None => "one value: spread unknown".to_owned(),
    }
}

/// Single stream, highest throughput, and there the speed of each user.
fn headline(view: &RunView) -> Vec<Headline> {
    let mut figures = Vec::new();
    if let Some(level) = level(view, |level| level.kind == StageKind::SingleStream)
        && let Some(estimate) = level.single_stream
    {
        figures.push(Headline {
            label: "Single stream".to_owned(),
            estimate,
            unit: "tok/s",
            doubtful: level.is_doubtful(),
            note: level
                .decode_tps
                .map(|decode| {
                    format!(
                        " · {} tok/s after the first token",
                        text::figure(decode.mean)
                    )
                })
                .unwrap_or_default(),
        });
    }
    let mut loops: Vec<&LevelView> = view
        .levels
        .iter()
        .filter(|level| level.kind.closed_loop().is_some())
        .collect();
    loops.sort_by(|a, b| {
        let mean = |level: &LevelView| level.output_tps.map_or(f64::NEG_INFINITY, |e| e.mean);
        mean(b).total_cmp(&mean(a))
    });
    if let Some(peak) = loops.first()
        && let Some(estimate) = peak.output_tps
    {
        let at = peak.kind;
        figures.push(Headline {
            label: format!("Highest throughput, at {at}"),
            estimate,
            unit: "tok/s",
            doubtful: peak.is_doubtful(),
            note: String::new(),
        });
        if let Some(estimate) = peak.decode_tps {
            figures.push(Headline {
                label: format!("Speed of each user, at {at}"),
                estimate,
                unit: "tok/s",
                doubtful: peak.is_doubtful(),
                note: String::new(),
            });
        }
        if let Some(estimate) = peak.ttft_ms {
            figures.push(Headline {
                label: format!("Time to first token, at {at}"),
                estimate,
                unit: "ms",
                doubtful: peak.is_doubtful(),
                note: " · median".to_owned(),
            });
        }
    }
    if let Some(level) = view.levels.iter().rfind(|level| level.kind.is_open()) {
        rate(level, &mut figures);
    }
    figures
}

/// What a load at a rate says: whether it was answered, and how soon.
fn rate(level: &LevelView, figures: &mut Vec<Headline>) {
    let at = level.kind;
    for (label, estimate, unit, note) in [
        (
            format!("Answered, at {at}"),
            level.request_throughput,
            "req/s",
            "",
        ),
        (
            format!("Time to first token from schedule, at {at}"),
            level.ttft_intended_ms,
            "ms",
            " · median",
        ),
        (format!("Goodput, at {at}"), level.goodput, "req/s", ""),
    ] {
        figures.extend(estimate.map(|estimate| Headline {
            label,
            estimate,
            unit,
            doubtful: level.is_doubtful(),
            note: note.to_owned(),
        }));
    }
}

fn level(view: &RunView, is: impl Fn(&LevelView) -> bool) -> Option<&LevelView> {
    view.levels.iter().find(|level| is(level))
}

/// The run's remarks, and each level's flags with the level they belong to.
fn remarks(view: &RunView) -> Vec<String> {
    let flags = view.levels.iter().flat_map(|level| {
        level
            .flags
            .iter()
            .map(move |flag| format!("{}: {flag}", sentence_start(&level.kind.to_string())))
    });
    view.remarks.iter().cloned().chain(flags).collect()
}

fn sentence_start(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(characters).collect()
    })
}
