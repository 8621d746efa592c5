//! The failed requests, those alike taken together, fetched when there are any.

use leptos::{prelude::*, task::spawn_local};
use tokdyno_domain::{text, views::run::RunView};

use super::data::RunData;
use crate::{
    AppError,
    api::{self, FailureGroup},
    components::{feedback::ErrorBanner, table::TableBox},
};

/// Failures by kind and message; nothing where none failed.
#[component]
pub(super) fn Failures(data: RunData) -> impl IntoView {
    let id = data.id;
    let failed = data.part(failed);
    let has_records = data.part(|view| view.records > 0);
    let again = RwSignal::new(0_u32);
    let shown = RwSignal::new(None::<Result<Vec<FailureGroup>, AppError>>);
    Effect::new(move |_| {
        again.track();
        if failed.get() == 0 || !has_records.get() {
            return;
        }
        spawn_local(async move {
            let answer = api::failures(id).await;
            shown.try_set(Some(answer));
        });
    });
    view! {
        <Show when=move || { failed.get() > 0 }>
            <section aria-labelledby="failures-title">
                <h2 id="failures-title">
                    {move || format!("Failures ({})", text::count(failed.get()))}
                </h2>
                {move || match shown.get() {
                    None if has_records.get() => {
                        view! { <p class="loading">"Loading the failures …"</p> }.into_any()
                    }
                    None => {
                        view! {
                            <p class="muted">
                                "Which requests failed, and why, was not stored with this run."
                            </p>
                        }
                            .into_any()
                    }
                    Some(Err(error)) => view! { <ErrorBanner error retry=Callback::new(move |()| again.update(|n| *n += 1))/> }.into_any(),
                    Some(Ok(groups)) => view! { <Groups groups data/> }.into_any(),
                }}
            </section>
        </Show>
    }
}

#[component]
fn Groups(groups: Vec<FailureGroup>, data: RunData) -> impl IntoView {
    let rows = groups
        .into_iter()
        .map(|group| {
            let stages = data.view.with_untracked(|view| stage_names(&group, view));
            view! {
                <tr>
                    <th scope="row">{group.kind.to_string()}</th>
                    <td class="num">{text::count(group.count)}</td>
                    <td class="remark">{group.message}</td>
                    <td class="remark">{stages}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <TableBox label="Failures">
            <table class="data">
                <thead>
                    <tr>
                        <th scope="col">"Kind"</th>
                        <th scope="col" class="num">"Requests"</th>
                        <th scope="col">"What was said"</th>
                        <th scope="col">"Where"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </TableBox>
    }
}

/// Failed requests, those stopped by us not counted.
fn failed(view: &RunView) -> u64 {
    view.stages.iter().map(|stage| stage.failed).sum()
}

/// The load levels in which it came up, each once.
fn stage_names(group: &FailureGroup, view: &RunView) -> String {
    let mut names: Vec<String> = Vec::new();
    for index in &group.stages {
        let name = view
            .stages
            .iter()
            .find(|stage| stage.index == *index)
            .map_or_else(
                || format!("stage {}", index + 1),
                |stage| stage.kind.to_string(),
            );
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("; ")
}
