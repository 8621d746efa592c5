//! What is asked of the answers, of the prefix cache and of the model's thinking.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;
use tokdyno_domain::{goodput::Bounds, views::measure::WorkloadForm, workload::Api};

use super::{
    field::{Field, Wrong, decimal},
    input::{Fold, Kind, choice, field},
};

/// The fields about goodput, cache and thinking.
#[derive(Clone, Copy)]
pub(super) struct MoreFields {
    pub(super) ttft: RwSignal<String>,
    tpot: RwSignal<String>,
    pub(super) e2el: RwSignal<String>,
    reset_cache: RwSignal<bool>,
    pub(super) thinking: RwSignal<Option<bool>>,
}

impl MoreFields {
    /// Filled in from the address, where it says something.
    pub(super) fn from_query(query: &ParamsMap) -> Self {
        let word = |key: &str| RwSignal::new(query.get(key).unwrap_or_default());
        Self {
            ttft: word("good_ttft"),
            tpot: word("good_tpot"),
            e2el: word("good_e2el"),
            reset_cache: RwSignal::new(query.get("cache").as_deref() == Some("reset")),
            thinking: RwSignal::new(match query.get("thinking").as_deref() {
                Some("on") => Some(true),
                Some("off") => Some(false),
                _ => None,
            }),
        }
    }

    /// Puts what is typed into the form, whose route is set already.
    pub(super) fn fill(self, form: &mut WorkloadForm) -> Result<(), Wrong> {
        form.goodput = Bounds {
            ttft_ms: decimal(Field::GoodTtft, &self.ttft.get())?,
            tpot_ms: decimal(Field::GoodTpot, &self.tpot.get())?,
            e2el_ms: decimal(Field::GoodE2el, &self.e2el.get())?,
        };
        form.reset_cache = self.reset_cache.get();
        form.thinking = self.thinking.get().filter(|_| form.api == Api::Chat);
        Ok(())
    }
}

/// Folded away: most measurements need none of it.
#[component]
pub(super) fn More(
    more: MoreFields,
    api: RwSignal<Api>,
    wrong: Signal<Option<Wrong>>,
) -> impl IntoView {
    let bounds = [more.ttft, more.tpot, more.e2el];
    let filled = bounds.iter().any(|bound| !bound.get_untracked().is_empty())
        || more.reset_cache.get_untracked()
        || more.thinking.get_untracked().is_some();
    let thinking = move |this: Option<bool>, id: &'static str, label: &'static str| {
        choice("thinking", id, more.thinking, this, label)
    };
    view! {
        <Fold
            title="Goodput, prefix cache, thinking"
            open=filled
            fields=&[Field::GoodTtft, Field::GoodTpot, Field::GoodE2el]
            wrong
        >
            <p class="muted">
                "Goodput counts the requests per second that meet every bound given here. Blank is no bound."
            </p>
            <div class="measure-fields">
                {field(
                    Field::GoodTtft,
                    "First token within, ms",
                    "Longest time to first token of a good request.",
                    more.ttft,
                    Kind::Decimal,
                    wrong,
                )}
                {field(
                    Field::GoodTpot,
                    "Each further token within, ms",
                    "Longest time per output token of a good request.",
                    more.tpot,
                    Kind::Decimal,
                    wrong,
                )}
                {field(
                    Field::GoodE2el,
                    "Whole answer within, ms",
                    "Longest end-to-end latency of a good request.",
                    more.e2el,
                    Kind::Decimal,
                    wrong,
                )}
            </div>
            <p class="choice">
                <input
                    id="cache-reset"
                    type="checkbox"
                    aria-describedby="cache-reset-help"
                    checked=more.reset_cache.get_untracked()
                    prop:checked=more.reset_cache
                    on:change=move |event| more.reset_cache.set(event_target_checked(&event))
                />
                <label for="cache-reset">"Clear the prefix cache before each stage"</label>
            </p>
            <p id="cache-reset-help" class="muted">
                "The engine is asked to; where it cannot, the stage says so. Others who use it lose their cache too."
            </p>
            <Show when=move || api.get() == Api::Chat>
                <fieldset class="choices">
                    <legend>"Thinking"</legend>
                    {thinking(None, "thinking-as-is", "As the model does by itself")}
                    {thinking(Some(true), "thinking-on", "On")}
                    {thinking(Some(false), "thinking-off", "Off")}
                    <p class="muted">
                        "A switch of the chat template (thinking, enable_thinking). Templates without one ignore it."
                    </p>
                </fieldset>
            </Show>
        </Fold>
    }
}
