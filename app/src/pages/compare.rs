//! Two to twelve runs side by side, as they are now.

use leptos::{form::ActionForm, prelude::*};
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;
use tokdyno_domain::{
    comparison::{self, RUNS},
    ids::{ComparisonSlug, RunId},
    views::{
        compare::{CompareQuery, CompareView},
        run::{RunFilter, RunSummary},
    },
};

use crate::{
    api::{self, Share},
    browser,
    components::{
        CloseButton, CopyButton, Dialog, DialogButton, EmptyState, EngineName, ErrorBanner,
        ErrorNote, EstimateCell, GateSection, Glyph, Icon, PeakCell, PickBar, PickForm,
        RelativeTime, Skeleton, SourceBadge, StateBadge, TableBox,
        comparison::{Comparison, Ties},
    },
    query,
};

/// Element id of the dialog that shares.
const SHARE: &str = "share";

/// The page.
#[component]
pub fn ComparePage() -> impl IntoView {
    let address = use_query_map();
    let asked = Memo::new(move |_| address.with(query::compare_query));
    let enough = Memo::new(move |_| asked.with(|asked| asked.runs.len() >= *RUNS.start()));
    view! {
        <Title text="Compare"/>
        {move || {
            if enough.get() {
                view! { <Chosen asked=asked/> }.into_any()
            } else {
                view! { <Choose asked=asked/> }.into_any()
            }
        }}
    }
}

/// The comparison of what the address names.
#[component]
fn Chosen(asked: Memo<CompareQuery>) -> impl IntoView {
    let view = Resource::new(move || asked.get(), api::compare);
    view! {
        <Transition fallback=|| view! { <Skeleton lines=8/> }>
            {move || Suspend::new(async move {
                match view.await {
                    Ok(view) => view! { <Live view=view/> }.into_any(),
                    Err(error) => {
                        view! {
                            <h1>"Compare"</h1>
                            <ErrorBanner
                                error=error
                                retry=Callback::new(move |()| view.refetch())
                            />
                            <p>
                                <a class="button" href="/compare">
                                    "Choose other runs"
                                </a>
                            </p>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

#[component]
fn Live(view: CompareView) -> impl IntoView {
    let runs: Vec<RunId> = view.runs.iter().map(|run| run.id).collect();
    let names: Vec<&str> = view
        .runs
        .iter()
        .map(|run| run.configuration.as_str())
        .collect();
    let title = suggested(&names);
    let in_spite_of = comparison::to_override(&view);
    view! {
        <div class="page-head">
            <h1>"Compare"</h1>
            <div class="cluster">
                <a class="button" href="/compare">
                    "Choose other runs"
                </a>
                <DialogButton dialog=SHARE class="button button-primary">
                    <Icon glyph=Glyph::Link/>
                    "Share"
                </DialogButton>
            </div>
        </div>
        <p class="muted lead">
            "A live view: it changes when runs are renamed or deleted. Share freezes it under a link that always says the same."
        </p>
        <ShareDialog runs=runs.clone() suggested=title in_spite_of=in_spite_of/>
        <Comparison view=view ties=Ties::Live/>
        <GateSection runs=runs/>
    }
}

/// `B, C against A`.
fn suggested(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [baseline, others @ ..] => format!("{} against {baseline}", others.join(", ")),
    }
}

/// Longest suggestion, in characters; people may write more.
const SUGGESTION: usize = 120;

/// Freezes the comparison; without WASM an ordinary form that leads to the page.
#[component]
fn ShareDialog(
    runs: Vec<RunId>,
    suggested: String,
    /// What an override would be in spite of; none where there is nothing to override.
    in_spite_of: Option<String>,
) -> impl IntoView {
    let share = ServerAction::<Share>::new();
    let error = Signal::derive(move || share.value().get().and_then(Result::err));
    let slug = Memo::new(move |_| share.value().get().and_then(Result::ok));
    let suggested: String = suggested.chars().take(SUGGESTION).collect();
    let fields = runs
        .iter()
        .enumerate()
        .map(|(place, run)| {
            view! {
                <input type="hidden" name=format!("query[runs][{place}]") value=run.to_string()/>
            }
        })
        .collect_view();
    view! {
        <Dialog id=SHARE title="Share this comparison">
            <div hidden=move || slug.get().is_some()>
                <p>
                    "Runs, figures, charts and verdicts are frozen as they are now. Whoever has the link can read it; it cannot be guessed."
                </p>
                <ActionForm action=share>
                    {fields}
                    <label class="field">
                        <span class="field-label">"Title"</span>
                        <input type="text" name="title" maxlength="200" required value=suggested/>
                    </label>
                    {in_spite_of.as_deref().map(override_fields)}
                    <ErrorNote error=error/>
                    <div class="dialog-buttons">
                        <CloseButton dialog=SHARE>"Cancel"</CloseButton>
                        <button
                            type="submit"
                            class="button button-primary"
                            prop:disabled=share.pending()
                        >
                            {move || if share.pending().get() { "Freezing …" } else { "Freeze and get the link" }}
                        </button>
                    </div>
                </ActionForm>
            </div>
            <div role="status">{move || slug.get().map(|slug| view! { <Shared slug=slug/> })}</div>
        </Dialog>
    }
}

/// For whoever has a reason to compare all the same, and signs it.
fn override_fields(in_spite_of: &str) -> impl IntoView + use<> {
    view! {
        <fieldset class="override-fields">
            <legend>"Override"</legend>
            <p class="muted">
                {format!(
                    "If you have a reason to compare in spite of {in_spite_of}, write it down and sign it. It is frozen with the comparison and shown wherever that is. Verdicts stay as they are. Leave it blank for no override.",
                )}
            </p>
            <label class="field">
                <span class="field-label">"Reason"</span>
                <input type="text" name="reason" maxlength="500"/>
            </label>
            <label class="field">
                <span class="field-label">"Your name"</span>
                <input type="text" name="name" maxlength="200"/>
            </label>
        </fieldset>
    }
}

/// The link.
#[component]
fn Shared(slug: ComparisonSlug) -> impl IntoView {
    let link = format!("{}/c/{slug}", browser::origin());
    view! {
        <p>"Frozen. This link always shows what you see now:"</p>
        <p>
            <input class="link-text" type="text" readonly aria-label="Link" value=link.clone()/>
        </p>
        <div class="dialog-buttons">
            <CloseButton dialog=SHARE>"Close"</CloseButton>
            <CopyButton text=Signal::stored(link) label="Copy link"/>
            <a class="button button-primary" href=format!("/c/{slug}")>
                "Open"
            </a>
        </div>
    }
}

/// Fewer than two runs are named: what a comparison is, and recent runs to tick.
#[component]
fn Choose(asked: Memo<CompareQuery>) -> impl IntoView {
    let ticked = asked.get_untracked().runs;
    let one = Memo::new(move |_| asked.with(|asked| asked.runs.len() == 1));
    let runs = Resource::new(|| (), |()| api::runs(RunFilter::default()));
    view! {
        <div class="page-head">
            <h1>"Compare"</h1>
        </div>
        <p class="lead">
            "Tick two to twelve runs. You get what differs between their configurations first, then how far the figures can be compared, a verdict in words, the figures side by side and the curves over each other."
        </p>
        <div role="status">
            {move || {
                one.get()
                    .then(|| {
                        view! {
                            <p class="error-note">
                                <Icon glyph=Glyph::Warning/>
                                <span>"One run is ticked. Tick at least one more."</span>
                            </p>
                        }
                    })
            }}
        </div>
        <Suspense fallback=|| view! { <Skeleton lines=8/> }>
            {move || {
                let ticked = ticked.clone();
                Suspend::new(async move {
                    match runs.await {
                        Ok(page) if page.runs.is_empty() => {
                            view! {
                                <EmptyState title="There is nothing to compare yet">
                                    <p>"Measure two configurations with the same workload first."</p>
                                    <p>
                                        <a class="button button-primary" href="/runs/new">
                                            "New measurement"
                                        </a>
                                    </p>
                                </EmptyState>
                            }
                                .into_any()
                        }
                        Ok(page) => view! { <Recent runs=page.runs ticked=ticked/> }.into_any(),
                        Err(error) => {
                            view! {
                                <ErrorBanner
                                    error=error
                                    retry=Callback::new(move |()| runs.refetch())
                                />
                            }
                                .into_any()
                        }
                    }
                })
            }}
        </Suspense>
    }
}

#[component]
fn Recent(runs: Vec<RunSummary>, ticked: Vec<RunId>) -> impl IntoView {
    let rows = runs
        .into_iter()
        .map(|run| {
            let is_ticked = ticked.contains(&run.id);
            let label = format!("Compare run {}, {}", run.id, run.configuration);
            let peak = view! { <PeakCell peak=run.peak_output rate=run.peak_rate note_class="row-note"/> };
            view! {
                <tr>
                    <th scope="row">
                        <label class="tick-row">
                            <input
                                type="checkbox"
                                name="runs"
                                value=run.id.to_string()
                                checked=is_ticked
                                aria-label=label
                            />
                            <span>
                                <span class="configuration">{run.configuration}</span>
                                <span class="row-note">{format!("#{} · {}", run.id, run.model)}</span>
                            </span>
                        </label>
                    </th>
                    <td>
                        <EngineName engine=run.engine/>
                    </td>
                    <td>{run.workload_name}</td>
                    <td class="num">
                        <EstimateCell estimate=run.single_stream/>
                    </td>
                    <td class="num">
                        {peak}
                    </td>
                    <td>
                        <StateBadge state=run.state/>
                    </td>
                    <td>
                        <SourceBadge source=run.source/>
                    </td>
                    <td>
                        <RelativeTime at=run.created_at/>
                    </td>
                </tr>
            }
            .into_any()
        })
        .collect_view();
    view! {
        <PickForm>
            <TableBox label="Recent runs">
                <table class="data">
                    <thead>
                        <tr>
                            <th scope="col">"Configuration"</th>
                            <th scope="col">"Engine"</th>
                            <th scope="col">"Workload"</th>
                            <th scope="col" class="num">
                                "Single stream"
                                <span class="row-note">"tok/s"</span>
                            </th>
                            <th scope="col" class="num">
                                "Peak throughput"
                                <span class="row-note">"tok/s"</span>
                            </th>
                            <th scope="col">"State"</th>
                            <th scope="col">"Source"</th>
                            <th scope="col">"Asked for"</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </TableBox>
            <PickBar/>
        </PickForm>
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn an_override_asks_for_a_reason_and_a_name() {
        let html = Owner::new().with(|| override_fields("different workloads").to_html());
        for part in [
            "in spite of different workloads",
            "name=\"reason\"",
            "name=\"name\"",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
