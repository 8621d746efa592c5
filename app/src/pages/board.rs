//! The Board: the answer first.

use leptos::{form::ActionForm, prelude::*};
use leptos_meta::Title;
use leptos_router::{
    NavigateOptions,
    hooks::{use_navigate, use_query_map},
};
use tokdyno_domain::{
    statistics::Estimate,
    text,
    views::board::{Answer, BoardFilter, BoardRow, BoardView, ThroughputMetric},
};

use crate::{
    api::{self, LoadFounding},
    components::{
        Chart, ChartSkeleton, EmptyState, EngineName, ErrorBanner, ErrorNote, EstablishedBadge,
        EstimateCell, FlagNote, Glyph, Icon, ImportDrop, PickBar, PickForm, RelativeTime, Skeleton,
        SourceBadge, StampBadge, TableBox,
    },
    query,
};

/// The page.
#[component]
pub fn BoardPage() -> impl IntoView {
    let address = use_query_map();
    let filter = Memo::new(move |_| address.with(query::board_filter));
    let load = ServerAction::<LoadFounding>::new();
    let board = Resource::new(
        move || (filter.get(), load.version().get()),
        |(filter, _)| api::board(filter),
    );
    view! {
        <Title text="Board"/>
        <div class="page-head">
            <h1>"Board"</h1>
            <ImportDrop/>
        </div>
        <Transition fallback=BoardSkeleton>
            {move || Suspend::new(async move {
                match board.await {
                    Ok(view) if view.empty => view! { <Nothing load=load/> }.into_any(),
                    Ok(view) => view! { <Body view=view asked=filter load=load/> }.into_any(),
                    Err(error) => {
                        view! {
                            <ErrorBanner error=error retry=Callback::new(move |()| board.refetch())/>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

#[component]
fn BoardSkeleton() -> impl IntoView {
    view! {
        <Skeleton lines=6/>
        <ChartSkeleton/>
    }
}

/// What to do first.
#[component]
fn Nothing(load: ServerAction<LoadFounding>) -> impl IntoView {
    view! {
        <EmptyState title="Nothing is measured yet">
            <ol class="next-steps">
                <li>
                    <h3>"Measure a server"</h3>
                    <p>
                        "Give the address of a running vLLM, SGLang or other OpenAI-compatible server. The quick workload takes about a minute."
                    </p>
                    <p>
                        <a class="button button-primary" href="/runs/new">
                            <Icon glyph=Glyph::Plus/>
                            "New measurement"
                        </a>
                    </p>
                </li>
                <li>
                    <h3>"Look at real figures"</h3>
                    <p>
                        "The founding figures are eight RTX PRO 6000 GPUs serving Kimi-K2.5, written down by hand: recorded, not measured by Tokdyno."
                    </p>
                    <FoundingButton load=load/>
                </li>
                <li>
                    <h3>"Bring a result file"</h3>
                    <p>
                        "Drop a file made with " <code>"tokdyno bench --json FILE"</code>
                        " anywhere on this page, or run " <code>"tokdyno import FILE"</code> "."
                    </p>
                </li>
            </ol>
        </EmptyState>
    }
}

/// Loads the founding figures; an ordinary form before WASM has loaded.
#[component]
fn FoundingButton(load: ServerAction<LoadFounding>) -> impl IntoView {
    let error = Signal::derive(move || load.value().get().and_then(Result::err));
    view! {
        <ActionForm action=load>
            <button type="submit" class="button" prop:disabled=load.pending()>
                {move || if load.pending().get() { "Loading …" } else { "Load the founding figures" }}
            </button>
        </ActionForm>
        <ErrorNote error=error/>
    }
}

#[component]
fn Body(
    view: BoardView,
    asked: Memo<BoardFilter>,
    load: ServerAction<LoadFounding>,
) -> impl IntoView {
    let files = query::board_query(&view.filter);
    let concurrency = view.filter.concurrency;
    let metric = view.filter.metric;
    let founding = view.founding_missing.then(|| {
        view! {
            <div class="founding-offer">
                <p class="muted">"The founding figures are not loaded."</p>
                <FoundingButton load=load/>
            </div>
        }
    });
    let age = view.as_of.map(|at| {
        view! {
            <p class="muted board-age">"Newest figure: " <RelativeTime at=at/></p>
        }
    });
    let nothing_here = view.rows.is_empty().then(|| {
        view! {
            <EmptyState title="No figures for this choice">
                <p>"Choose another workload or concurrency above, or measure one."</p>
                <p>
                    <a class="button button-primary" href="/runs/new">
                        "New measurement"
                    </a>
                </p>
            </EmptyState>
        }
    });
    let chart = view.chart.map(|chart| {
        view! { <Chart view=Signal::stored(chart) base=Some("/board/charts".to_owned()) query=files/> }
    });
    view! {
        <Filters view_choices=view.choices filter=view.filter asked=asked/>
        <section class="answers" aria-label="The answers">
            <AnswerCard answer=view.best_single/>
            <AnswerCard answer=view.best_throughput/>
        </section>
        {age}
        {nothing_here}
        {chart}
        <Rows rows=view.rows concurrency=concurrency metric=metric/>
        {founding}
    }
}

/// An answer in large.
#[component]
fn AnswerCard(answer: Answer) -> impl IntoView {
    let known = answer.leader.is_some();
    let figure = answer.figure.map(|figure| {
        view! {
            <p class="answer-figure">
                <span class="answer-number">{text::figure(figure.mean)}</span>
                <span class="unit">" tok/s"</span>
                <span class="spread">{spread(&figure)}</span>
            </p>
        }
    });
    let badges = known.then(|| {
        view! {
            <p class="cluster">
                <EstablishedBadge established=answer.established/>
                {answer.source.map(|source| view! { <SourceBadge source=source/> })}
            </p>
        }
    });
    view! {
        <article class="answer" class:is-open=!answer.established>
            <h2 class="answer-question">{answer.question}</h2>
            {figure}
            <p class="answer-leader">
                {answer.leader.unwrap_or_else(|| "No figure".to_owned())}
            </p>
            {badges}
            <p class="answer-because">{answer.because}</p>
        </article>
    }
}

fn spread(figure: &Estimate) -> String {
    match figure.bar() {
        Some((low, high)) => format!(
            "min–max {}–{}, n = {}",
            text::figure(low),
            text::figure(high),
            figure.n
        ),
        None => format!("n = {}", figure.n),
    }
}

/// The choices: a form that sends itself, and works as one without scripts.
#[component]
fn Filters(
    view_choices: tokdyno_domain::views::board::BoardChoices,
    filter: BoardFilter,
    asked: Memo<BoardFilter>,
) -> impl IntoView {
    let choices = view_choices;
    let navigate = use_navigate();
    let chosen = move |event: leptos::ev::Event| {
        let (name, value) = control(&event);
        let next = query::board_choice(&asked.get_untracked(), &name, &value);
        let query = query::board_query(&next);
        let address = if query.is_empty() {
            "/".to_owned()
        } else {
            format!("/?{query}")
        };
        navigate(
            &address,
            NavigateOptions {
                scroll: false,
                ..NavigateOptions::default()
            },
        );
    };
    let simulated = filter.simulated;
    let switch = (choices.has_simulated).then(|| {
        view! {
            <fieldset class="switch">
                <legend>"Figures"</legend>
                <label>
                    <input
                        type="radio"
                        name="simulated"
                        value="false"
                        checked=!simulated
                        prop:checked=!simulated
                    />
                    <span>"Real"</span>
                </label>
                <label>
                    <input
                        type="radio"
                        name="simulated"
                        value="true"
                        checked=simulated
                        prop:checked=simulated
                    />
                    <span>"Simulated"</span>
                </label>
            </fieldset>
        }
    });
    let model = filter.model.clone().unwrap_or_default();
    let hardware = filter.hardware.clone().unwrap_or_default();
    let workload = filter
        .workload
        .as_ref()
        .map(|hash| hash.0.clone())
        .unwrap_or_default();
    let concurrency = filter
        .concurrency
        .map(|c| c.to_string())
        .unwrap_or_default();
    let models = choices.models.into_iter().map(|name| (name.clone(), name));
    let machines = choices.hardware.into_iter().map(|name| {
        let shown = if name.is_empty() {
            "not stated".to_owned()
        } else {
            name.clone()
        };
        (name, shown)
    });
    let workloads = choices
        .workloads
        .into_iter()
        .map(|(hash, name, line)| (hash.0, format!("{name}: {line}")));
    let metrics = [
        (ThroughputMetric::OutputTps, "whole stage"),
        (ThroughputMetric::SteadyOutputTps, "steady window"),
    ]
    .into_iter()
    .map(|(metric, name)| (metric.word().to_owned(), name.to_owned()));
    let levels = choices
        .concurrencies
        .into_iter()
        .map(|c| (c.to_string(), format!("C = {c}")));
    view! {
        <form class="filters" method="get" action="/" on:change=chosen aria-label="What is shown">
            <Select name="model" label="Model" options=models.collect() chosen=model/>
            <Select name="hardware" label="Hardware" options=machines.collect() chosen=hardware/>
            <Select name="workload" label="Workload" options=workloads.collect() chosen=workload/>
            <Select
                name="metric"
                label="Throughput"
                options=metrics.collect()
                chosen=filter.metric.word().to_owned()
            />
            <Select
                name="concurrency"
                label="Concurrency"
                options=levels.collect()
                chosen=concurrency
            />
            {switch}
            <button type="submit" class="button until-live">
                "Apply"
            </button>
        </form>
    }
}

#[component]
fn Select(
    name: &'static str,
    label: &'static str,
    options: Vec<(String, String)>,
    chosen: String,
) -> impl IntoView {
    let single = options.len() < 2;
    view! {
        <label class="field" class:is-single=single>
            <span class="field-label">{label}</span>
            <select name=name autocomplete="off">
                {options
                    .into_iter()
                    .map(|(value, shown)| {
                        let is = value == chosen;
                        view! {
                            <option value=value selected=is prop:selected=is>
                                {shown}
                            </option>
                        }
                    })
                    .collect_view()}
            </select>
        </label>
    }
}

/// Name and value of the control that was changed.
fn control(event: &leptos::ev::Event) -> (String, String) {
    #[cfg(feature = "hydrate")]
    {
        use wasm_bindgen::JsCast;
        let target = event.target();
        if let Some(select) = target
            .as_ref()
            .and_then(|target| target.dyn_ref::<web_sys::HtmlSelectElement>())
        {
            return (select.name(), select.value());
        }
        if let Some(input) = target
            .as_ref()
            .and_then(|target| target.dyn_ref::<web_sys::HtmlInputElement>())
        {
            return (input.name(), input.value());
        }
    }
    #[cfg(not(feature = "hydrate"))]
    let _ = event;
    Default::default()
}

/// The same as a table; its checkboxes lead to a comparison, also without scripts.
#[component]
fn Rows(rows: Vec<BoardRow>, concurrency: Option<u32>, metric: ThroughputMetric) -> impl IntoView {
    if rows.is_empty() {
        return ().into_any();
    }
    let throughput = match concurrency {
        Some(c) => format!("{} at C = {c}", metric.word()),
        None => metric.word().to_owned(),
    };
    view! {
        <section class="section">
            <h2>"Configurations"</h2>
            <PickForm>
                <TableBox label="Configurations">
                    <table class="data board-table">
                        <thead>
                            <tr>
                                <th scope="col">"Configuration"</th>
                                <th scope="col" class="num">
                                    "Single stream"
                                    <span class="row-note">"e2e_tps, tok/s"</span>
                                </th>
                                <th scope="col" class="num">
                                    "Throughput"
                                    <span class="row-note">{throughput} ", tok/s"</span>
                                </th>
                                <th scope="col">"Acceptance"</th>
                                <th scope="col" class="num">
                                    "Launches"
                                </th>
                                <th scope="col">"Source"</th>
                                <th scope="col">"Runs"</th>
                            </tr>
                        </thead>
                        <tbody>{rows.into_iter().map(row).collect_view()}</tbody>
                    </table>
                </TableBox>
                <PickBar/>
            </PickForm>
        </section>
    }
    .into_any()
}

/// Runs named before the rest is counted.
const NAMED_RUNS: usize = 3;

fn row(row: BoardRow) -> AnyView {
    let label = format!("Compare {}", row.configuration);
    let newest = row.runs.first().map(ToString::to_string);
    let more = row.runs.len().saturating_sub(NAMED_RUNS);
    let runs = row
        .runs
        .iter()
        .take(NAMED_RUNS)
        .map(|id| {
            view! {
                <a href=format!("/runs/{id}")>{format!("#{id}")}</a>
                " "
            }
        })
        .collect_view();
    let acceptance = match row.acceptance {
        Some((figure, definition)) => view! {
            <details class="definition">
                <summary>{figure}</summary>
                <p>{definition}</p>
            </details>
        }
        .into_any(),
        None => view! { <span class="muted">{text::NO_FIGURE}</span> }.into_any(),
    };
    let second_source = row
        .throughput_source
        .filter(|source| *source != row.source)
        .map(|source| {
            view! {
                <span class="estimate-source">
                    <SourceBadge source=source/>
                </span>
            }
        });
    let remarks = (!row.remarks.is_empty()).then(|| {
        let count = text::plural(row.remarks.len() as u64, "remark", "remarks");
        view! {
            <tr class="remark-row">
                <td colspan="7">
                    <details class="fold">
                        <summary>{count} <span class="visually-hidden">" on " {row.configuration.clone()}</span></summary>
                        <ul class="remarks">
                            {row
                                .remarks
                                .into_iter()
                                .map(|remark| view! { <li><FlagNote text=remark/></li> })
                                .collect_view()}
                        </ul>
                    </details>
                </td>
            </tr>
        }
    });
    let has_remarks = remarks.is_some();
    view! {
        <tr class:has-remarks=has_remarks>
            <th scope="row">
                // In the column that stays in view on narrow screens.
                <label class="tick-row">
                    {newest
                        .map(|id| {
                            view! { <input type="checkbox" name="runs" value=id aria-label=label/> }
                        })}
                    <span>
                        <span class="configuration">{row.configuration}</span>
                        <EngineName engine=row.engine/>
                    </span>
                </label>
            </th>
            <td class="num">
                <EstimateCell estimate=row.single_stream doubtful=row.single_doubtful/>
            </td>
            <td class="num">
                <EstimateCell estimate=row.throughput doubtful=row.throughput_doubtful/>
                {second_source}
            </td>
            <td>{acceptance}</td>
            <td class="num">{row.launches}</td>
            <td>
                <SourceBadge source=row.source/>
                {row
                    .stamp
                    .map(|stamp| {
                        view! {
                            <div class="run-stamp">
                                <StampBadge stamp=stamp/>
                            </div>
                        }
                    })}
            </td>
            <td class="run-links">
                {runs} {(more > 0).then(|| view! { <span class="muted">{format!("and {more} more")}</span> })}
            </td>
        </tr>
        {remarks}
    }
    .into_any()
}
