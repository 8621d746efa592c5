//! The raw records, a page at a time, fetched when somebody opens them. An address
//! with `level=` names a load level, whose records stand open and alone.

use leptos::{html, prelude::*, task::spawn_local};
use leptos_router::hooks::use_query_map;
use tokdyno_domain::{
    metrics::request_figures,
    record::RequestRecord,
    text,
    views::run::{RecordPage, StageView},
    workload::StageKind,
};

use super::data::RunData;
use crate::{
    AppError, api,
    components::{feedback::ErrorBanner, table::TableBox},
};

/// Nanoseconds to milliseconds.
const MS: f64 = 1e6;

/// The records and the files that hold them all.
#[component]
pub(super) fn Records(data: RunData) -> impl IntoView {
    let id = data.id;
    let count = data.part(|view| view.records);
    let stages = data.part(|view| view.stages.clone());
    let node = NodeRef::<html::Details>::new();
    let open = RwSignal::new(false);
    let page = RwSignal::new(0_u32);
    let again = RwSignal::new(0_u32);
    let shown = RwSignal::new(None::<Result<RecordPage, AppError>>);
    let newest = StoredValue::new(0_u32);
    let address = use_query_map();
    let level = Memo::new(move |_| address.with(|address| address.get("level")));
    let only = Memo::new(move |_| {
        level.with(|level| {
            let slug = level.as_deref()?;
            stages
                .with(|stages| of_level(stages.iter().map(|stage| (stage.index, stage.kind)), slug))
        })
    });
    Effect::new(move |_| {
        level.track();
        page.set(0);
    });
    // Fetched again when more records have come, but only while somebody looks.
    Effect::new(move |_| {
        let (page, _, _) = (page.get(), count.get(), again.get());
        if !open.get() {
            return;
        }
        let asked = newest.get_value().wrapping_add(1);
        newest.set_value(asked);
        let stages = only.get().map(|level| level.stages).unwrap_or_default();
        spawn_local(async move {
            let answer = api::records(id, page, stages).await;
            if newest.try_get_value() == Some(asked) {
                shown.try_set(Some(answer));
            }
        });
    });
    // It may have been opened before WASM had loaded.
    Effect::new(move |_| {
        if let Some(details) = node.get() {
            open.set(details.has_attribute("open"));
        }
    });
    // Whoever was sent here for one level wants to see it.
    Effect::new(move |_| {
        if let Some(details) = node.get()
            && only.with(Option::is_some)
        {
            // That it cannot be opened is nothing that a reader could mend.
            let _ = details.set_attribute("open", "");
            details.scroll_into_view();
        }
    });
    view! {
        <Show when=move || { count.get() == 0 && level.with(Option::is_some) }>
            <p id="records" class="muted">
                "There are no request records behind these figures: they were not measured request by request, or came without."
            </p>
        </Show>
        <Show when=move || { count.get() > 0 }>
            <details
                id="records"
                class="section-fold"
                open=only.get_untracked().is_some()
                node_ref=node
                on:toggle=move |_| {
                    if let Some(details) = node.get_untracked() {
                        open.set(details.has_attribute("open"));
                    }
                }
            >
                <summary>
                    <h2>{move || format!("Request records ({})", text::count(count.get()))}</h2>
                </summary>
                <p>
                    <a href=format!("/runs/{id}/records.csv") download rel="external">
                        "All records as CSV"
                    </a>
                    " · "
                    <a href=format!("/runs/{id}.json") download rel="external">
                        "The whole result as JSON"
                    </a>
                </p>
                {move || {
                    only.get()
                        .map(|level| {
                            view! {
                                <p>
                                    {format!("Only those of {}. ", level.name)}
                                    <a href=format!("/runs/{id}")>"Show all"</a>
                                </p>
                            }
                        })
                }}
                {move || match shown.get() {
                    None => view! { <p class="loading">"Loading the records …"</p> }.into_any(),
                    Some(Err(error)) => view! { <ErrorBanner error retry=Callback::new(move |()| again.update(|n| *n += 1))/> }.into_any(),
                    Some(Ok(records)) => {
                        view! { <Table records stages page/> }.into_any()
                    }
                }}
            </details>
        </Show>
    }
}

/// A load level with its stages.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Level {
    name: String,
    stages: Vec<u32>,
}

/// The level of a run's stages that an address names; none if there is no such level.
fn of_level(stages: impl Iterator<Item = (u32, StageKind)>, slug: &str) -> Option<Level> {
    let mut found = stages
        .filter(|(_, kind)| kind.slug() == slug)
        .map(|(index, kind)| (kind.to_string(), index));
    let (name, first) = found.next()?;
    Some(Level {
        name,
        stages: std::iter::once(first)
            .chain(found.map(|(_, index)| index))
            .collect(),
    })
}

#[component]
fn Table(records: RecordPage, stages: Memo<Vec<StageView>>, page: RwSignal<u32>) -> impl IntoView {
    let shown = records.page;
    let pages = pages(records.total, records.page_size);
    let rows = stages.with_untracked(|stages| {
        records
            .records
            .iter()
            .map(|record| row(record, stages).into_any())
            .collect_view()
    });
    view! {
        <TableBox label="Request records">
            <table class="data">
                <thead>
                    <tr>
                        <th scope="col">"Stage"</th>
                        <th scope="col" class="num">"No."</th>
                        <th scope="col" class="num">"Sent, s"</th>
                        <th scope="col" class="num">"Prompt tokens"</th>
                        <th scope="col" class="num">"Tokens"</th>
                        <th scope="col" class="num">"Chunks"</th>
                        <th scope="col" class="num">"TTFT, ms"</th>
                        <th scope="col" class="num">"TPOT, ms"</th>
                        <th scope="col" class="num">"End to end, ms"</th>
                        <th scope="col" class="num">"tok/s"</th>
                        <th scope="col">"Outcome"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </TableBox>
        <nav class="pager" aria-label="Pages of records">
            <button
                type="button"
                class="button"
                disabled=shown == 0
                on:click=move |_| page.set(shown.saturating_sub(1))
            >
                "Previous"
            </button>
            <span role="status">
                {format!("Page {} of {}", text::count((shown + 1).into()), text::count(pages.into()))}
            </span>
            <button
                type="button"
                class="button"
                disabled=shown + 1 >= pages
                on:click=move |_| page.set(shown + 1)
            >
                "Next"
            </button>
        </nav>
    }
}

fn row(record: &RequestRecord, stages: &[StageView]) -> impl IntoView + use<> {
    let figures = request_figures(record);
    let stage = stages
        .iter()
        .find(|stage| stage.index == record.stage)
        .map_or_else(
            || format!("{}", record.stage + 1),
            |stage| format!("{}, repeat {}", stage.kind, stage.repeat + 1),
        );
    let outcome = match &record.failure {
        None => record
            .finish_reason
            .clone()
            .unwrap_or_else(|| "success".to_owned()),
        Some(failure) => format!("{}: {}", failure.kind, failure.message),
    };
    let number = |value: Option<u32>| {
        value.map_or_else(
            || text::NO_FIGURE.to_owned(),
            |value| text::count(value.into()),
        )
    };
    view! {
        <tr class:doubtful=record.failure.is_some()>
            <th scope="row">{stage}</th>
            <td class="num">{text::count((record.seq + 1).into())}</td>
            <td class="num">{format!("{:.3}", record.sent_ns as f64 / (MS * 1000.0))}</td>
            <td class="num">{number(record.prompt_tokens)}</td>
            <td class="num">{number(record.completion_tokens)}</td>
            <td class="num">{text::count(record.chunks.into())}</td>
            <td class="num">{text::optional(record.ttft_ns.map(|ns| ns as f64 / MS))}</td>
            <td class="num">{text::optional(figures.and_then(|figures| figures.tpot_ms))}</td>
            <td class="num">{text::optional(record.e2el_ns.map(|ns| ns as f64 / MS))}</td>
            <td class="num">{text::optional(figures.and_then(|figures| figures.e2e_tps))}</td>
            <td class="remark">{outcome}</td>
        </tr>
    }
}

/// Pages it takes, at least one.
pub(in crate::pages) fn pages(total: u64, page_size: u32) -> u32 {
    u32::try_from(total.div_ceil(u64::from(page_size.max(1))))
        .unwrap_or(u32::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_all_repeats_of_a_level() {
        let closed = |concurrency| StageKind::ClosedLoop { concurrency };
        let stages = [
            (0, StageKind::SingleStream),
            (1, closed(8)),
            (2, StageKind::SingleStream),
            (3, closed(8)),
        ];
        let level = |slug| of_level(stages.into_iter(), slug);
        assert_eq!(
            level("c-8"),
            Some(Level {
                name: "C = 8".to_owned(),
                stages: vec![1, 3]
            })
        );
        assert_eq!(
            level("single-stream").map(|level| level.stages),
            Some(vec![0, 2])
        );
        assert_eq!(level("c-80"), None);
    }

    #[test]
    fn the_last_page_may_be_short() {
        assert_eq!(pages(0, 50), 1);
        assert_eq!(pages(50, 50), 1);
        assert_eq!(pages(51, 50), 2);
        assert_eq!(pages(51, 0), 51);
    }
}
