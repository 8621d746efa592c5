//! What went on around the load levels: what the engine said of itself, and how the
//! measuring machine fared.

use leptos::prelude::*;
use tokdyno_domain::{
    conditions::{Certificate, EngineReport, Speculation},
    text::{self, NO_FIGURE},
    views::run::LevelView,
};

use super::data::RunData;
use crate::components::table::TableBox;

/// A column: its heading, and what stands in it, if anything does.
type Column = (&'static str, fn(&LevelView) -> Option<String>);

const ENGINE: [Column; 11] = [
    ("Running, mean", |level| {
        level.engine.as_ref()?.running_mean.map(text::figure)
    }),
    ("Running at most", |level| {
        level.engine.as_ref()?.running_max.map(text::figure)
    }),
    ("Waiting at most", |level| {
        level.engine.as_ref()?.waiting_max.map(text::figure)
    }),
    ("KV cache at most", |level| {
        level.engine.as_ref()?.kv_use_max.map(share)
    }),
    ("Prefix cache hits", |level| {
        level.engine.as_ref()?.prefix_hit_rate().map(share)
    }),
    ("Thrown out", |level| {
        level.engine.as_ref()?.preemptions.map(text::count)
    }),
    ("Accept length", |level| {
        speculation(level)?.accept_length().map(two_places)
    }),
    ("Accept rate", |level| {
        speculation(level)?.accept_rate().map(share)
    }),
    ("By place in the draft", |level| {
        let rates = speculation(level)?.rates_at();
        (!rates.is_empty()).then(|| {
            let rates: Vec<String> = rates.into_iter().map(share).collect();
            rates.join(", ")
        })
    }),
    ("TTFT by its clock, ms", |level| {
        level.engine.as_ref()?.ttft_mean_ms.map(text::figure)
    }),
    ("TTFT by ours, ms", |level| {
        level.ttft_beside_engine_ms.map(text::figure)
    }),
];

const MACHINE: [Column; 8] = [
    ("Chunks per second", |level| {
        level.chunks_per_s.map(text::figure)
    }),
    ("Timed truthfully up to", |level| {
        level.certificate.as_ref().map(certified)
    }),
    ("Busy", |level| {
        level.client.as_ref()?.thread_busy.map(share)
    }),
    ("Woken late, p99, ms", |level| {
        level.client.as_ref()?.wake_lag_p99_ms.map(two_places)
    }),
    ("At most, ms", |level| {
        level.client.as_ref()?.wake_lag_max_ms.map(two_places)
    }),
    ("Sent late, p99, ms", |level| {
        level.client.as_ref()?.send_lag_p99_ms.map(two_places)
    }),
    ("Lost to neighbours", |level| {
        level.client.as_ref()?.stolen.map(share)
    }),
    ("Times from the kernel", |level| {
        level.client.as_ref()?.kernel_times.map(share)
    }),
];

/// What the engine said of itself, a row per level.
#[component]
pub(super) fn EngineMeanwhile(data: RunData) -> impl IntoView {
    let levels = data.part(|view| view.levels.clone());
    let table = Memo::new(move |_| levels.with(|levels| table(levels, &ENGINE, told)));
    let cap = Memo::new(move |_| {
        levels.with(|levels| {
            let cap = |level: &LevelView| level.engine.as_ref()?.max_running;
            levels.iter().filter_map(cap).min()
        })
    });
    view! {
        <Show when=move || table.with(Option::is_some)>
            <section aria-labelledby="engine-title">
                <h2 id="engine-title">"Engine meanwhile"</h2>
                <TableView label="What the engine said of itself at each load level" table/>
                <p class="muted">
                    "By the engine's own metrics, read while each stage ran; its warm-up is left out. Accept length is tokens per verify step, the bonus token included; accept rate is accepted over drafted tokens. "
                    {move || {
                        cap.get()
                            .map(|cap| {
                                format!("It runs at most {} requests at once.", text::count(cap))
                            })
                    }}
                </p>
            </section>
        </Show>
    }
}

/// How the measuring machine fared, a row per level.
#[component]
pub(super) fn MeasuringMachine(data: RunData) -> impl IntoView {
    let levels = data.part(|view| view.levels.clone());
    let table = Memo::new(move |_| {
        levels.with(|levels| {
            table(levels, &MACHINE, |level| {
                level.client.is_some() || level.certificate.is_some()
            })
        })
    });
    let said = Memo::new(move |_| {
        levels.with(|levels| levels.iter().filter_map(sentence).collect::<Vec<_>>())
    });
    view! {
        <Show when=move || table.with(Option::is_some)>
            <section aria-labelledby="machine-title">
                <h2 id="machine-title">"Measuring machine"</h2>
                <TableView label="How the measuring machine fared at each load level" table/>
                <ul class="muted">
                    {move || {
                        said.get()
                            .into_iter()
                            .map(|sentence| view! { <li>{sentence}</li> })
                            .collect_view()
                    }}
                </ul>
            </section>
        </Show>
    }
}

/// Headings and rows, columns without an entry left out.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Table {
    headings: Vec<&'static str>,
    rows: Vec<(String, Vec<String>)>,
}

#[component]
fn TableView(label: &'static str, table: Memo<Option<Table>>) -> impl IntoView {
    let headings = move || {
        let table = table.get();
        let headings = table.into_iter().flat_map(|table| table.headings);
        headings
            .map(|heading| view! { <th scope="col" class="num">{heading}</th> })
            .collect_view()
    };
    let rows = move || {
        let table = table.get();
        let rows = table.into_iter().flat_map(|table| table.rows);
        rows.map(|(level, cells)| {
            let cells = cells.into_iter();
            view! {
                <tr>
                    <th scope="row">{level}</th>
                    {cells.map(|cell| view! { <td class="num">{cell}</td> }).collect_view()}
                </tr>
            }
        })
        .collect_view()
    };
    view! {
        <TableBox label=label>
            <table class="data one-line">
                <thead>
                    <tr>
                        <th scope="col">"Level"</th>
                        {headings}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </TableBox>
    }
}

/// The table over the levels of which there is anything to say.
fn table(
    levels: &[LevelView],
    columns: &[Column],
    is_told: fn(&LevelView) -> bool,
) -> Option<Table> {
    let told: Vec<&LevelView> = levels.iter().filter(|level| is_told(level)).collect();
    let columns: Vec<&Column> = columns
        .iter()
        .filter(|(_, cell)| told.iter().any(|level| cell(level).is_some()))
        .collect();
    (!columns.is_empty()).then(|| Table {
        headings: columns.iter().map(|(heading, _)| *heading).collect(),
        rows: told
            .iter()
            .map(|level| {
                let cells = columns
                    .iter()
                    .map(|(_, cell)| cell(level).unwrap_or_else(|| NO_FIGURE.to_owned()))
                    .collect();
                (level.kind.to_string(), cells)
            })
            .collect(),
    })
}

/// Did the engine say anything that a column shows?
fn told(level: &LevelView) -> bool {
    level
        .engine
        .as_ref()
        .is_some_and(|engine| *engine != EngineReport::default())
}

fn speculation(level: &LevelView) -> Option<&Speculation> {
    level.engine.as_ref()?.speculation.as_ref()
}

fn certified(certificate: &Certificate) -> String {
    let chunks = text::count(certificate.chunks_per_s as u64);
    if certificate.is_limit {
        chunks
    } else {
        format!("{chunks} or more")
    }
}

/// What the certificate means for a level.
fn sentence(level: &LevelView) -> Option<String> {
    let certificate = level.certificate.as_ref()?;
    let had = level.chunks_per_s.map_or_else(String::new, |had| {
        format!("; the stage had {}", text::count(had.round() as u64))
    });
    let remembered = if certificate.remembered {
        " Found out before an earlier run."
    } else {
        ""
    };
    Some(format!(
        "{}: this machine times {} chunks/s truthfully over {}{had}. There, a first token was read {} ms late, median, and {} ms at p99.{remembered}",
        crate::components::figures::capital(&level.kind.to_string()),
        certified(certificate),
        text::plural(certificate.concurrency.into(), "stream", "streams"),
        two_places(certificate.ttft_error_p50_ms),
        two_places(certificate.ttft_error_p99_ms),
    ))
}

/// `12.5 %`.
fn share(share: f64) -> String {
    format!("{} %", text::figure(share * 100.0))
}

fn two_places(value: f64) -> String {
    format!("{value:.2}")
}
