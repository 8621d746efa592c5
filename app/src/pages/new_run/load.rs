//! How load is laid on: so many at once, ever more until nothing is gained, or so
//! many per second.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;
use tokdyno_domain::views::measure::{ArrivalsForm, LoadForm, WorkloadForm};

use super::{
    field::{Field, Wrong, decimal, number, required},
    input::{Fold, Kind, choice, field},
};

/// The fields of a load that somebody lays on by hand.
#[derive(Clone, Copy)]
pub(super) struct LoadFields {
    shape: RwSignal<LoadForm>,
    pub(super) single: RwSignal<String>,
    pub(super) concurrencies: RwSignal<String>,
    pub(super) up_to: RwSignal<String>,
    pub(super) gain: RwSignal<String>,
    pub(super) rates: RwSignal<String>,
    arrivals: RwSignal<ArrivalsForm>,
    pub(super) burstiness: RwSignal<String>,
    pub(super) requests: RwSignal<String>,
    pub(super) seconds: RwSignal<String>,
    pub(super) tokens: RwSignal<String>,
    pub(super) repeats: RwSignal<String>,
    pub(super) warmup: RwSignal<String>,
}

impl LoadFields {
    /// Filled in from the address, where it says something.
    pub(super) fn from_query(query: &ParamsMap, usual: &WorkloadForm) -> Self {
        let or = |key: &str, usual: String| RwSignal::new(query.get(key).unwrap_or(usual));
        let single = usual
            .single_stream
            .map_or_else(String::new, |n| n.to_string());
        Self {
            shape: RwSignal::new(match query.get("load").as_deref() {
                Some("saturation") => LoadForm::Saturation,
                Some("rates") => LoadForm::Rates,
                _ => usual.load,
            }),
            single: or("single", single),
            concurrencies: or("c", usual.concurrencies.clone()),
            up_to: or("up_to", usual.up_to.to_string()),
            gain: or("gain", usual.min_gain_percent.to_string()),
            rates: or("rates", usual.rates.clone()),
            arrivals: RwSignal::new(match query.get("arrivals").as_deref() {
                Some("constant") => ArrivalsForm::Constant,
                Some("gamma") => ArrivalsForm::Gamma,
                _ => usual.arrivals,
            }),
            burstiness: or("burstiness", usual.burstiness.to_string()),
            requests: or("requests", String::new()),
            seconds: or("seconds", String::new()),
            tokens: or("tokens", usual.output_tokens.to_string()),
            repeats: or("repeats", usual.repeats.to_string()),
            warmup: or("warmup", String::new()),
        }
    }

    /// Puts what is typed into the form. Fields of another shape do not matter.
    pub(super) fn fill(self, form: &mut WorkloadForm) -> Result<(), Wrong> {
        form.load = self.shape.get();
        form.single_stream = number(Field::Single, &self.single.get())?;
        form.seconds = decimal(Field::Seconds, &self.seconds.get())?;
        match form.load {
            LoadForm::Concurrencies => form.concurrencies = self.concurrencies.get(),
            LoadForm::Saturation => {
                form.up_to = required(Field::UpTo, number, &self.up_to.get())?;
                form.min_gain_percent = required(Field::Gain, number, &self.gain.get())?;
            }
            LoadForm::Rates => {
                form.rates = self.rates.get();
                form.arrivals = self.arrivals.get();
                if form.arrivals == ArrivalsForm::Gamma {
                    form.burstiness = required(Field::Burstiness, decimal, &self.burstiness.get())?;
                }
            }
        }
        if form.load != LoadForm::Saturation {
            form.requests = number(Field::Requests, &self.requests.get())?;
        }
        form.output_tokens = required(Field::Tokens, number, &self.tokens.get())?;
        form.repeats = required(Field::Repeats, number, &self.repeats.get())?;
        form.warmup_requests = number(Field::Warmup, &self.warmup.get())?;
        Ok(())
    }

    #[cfg(test)]
    pub(super) const fn shape(self) -> RwSignal<LoadForm> {
        self.shape
    }
}

/// The numbers by hand.
#[component]
pub(super) fn Custom(load: LoadFields, wrong: Signal<Option<Wrong>>) -> impl IntoView {
    let is = move |shape: LoadForm| load.shape.get() == shape;
    view! {
        <fieldset class="choices">
            <legend>"Load"</legend>
            {choice(
                "load",
                "load-at-once",
                load.shape,
                LoadForm::Concurrencies,
                "So many requests at once: each slot sends its next one when the last is answered",
            )}
            {choice(
                "load",
                "load-saturation",
                load.shape,
                LoadForm::Saturation,
                "Find saturation: twice as many each time, until throughput rises no more",
            )}
            {choice(
                "load",
                "load-rates",
                load.shape,
                LoadForm::Rates,
                "So many requests per second, whether or not the last ones are answered",
            )}
        </fieldset>
        <div class="measure-fields">
            <Show when=move || is(LoadForm::Concurrencies)>
                {field(
                    Field::Concurrencies,
                    "Concurrencies",
                    "Requests in flight at once, with commas: 1, 8, 32. Blank for none.",
                    load.concurrencies,
                    Kind::Text,
                    wrong,
                )}
            </Show>
            <Show when=move || is(LoadForm::Saturation)>
                {field(
                    Field::UpTo,
                    "Up to how many at once",
                    "1, 2, 4 … and at most this many.",
                    load.up_to,
                    Kind::Whole,
                    wrong,
                )}
                {field(
                    Field::Gain,
                    "Stop when a step gains less than, %",
                    "What lies above is skipped, in all repeats.",
                    load.gain,
                    Kind::Whole,
                    wrong,
                )}
            </Show>
            <Show when=move || is(LoadForm::Rates)>
                <Rates load wrong/>
            </Show>
            {field(
                Field::Tokens,
                "Output tokens per request",
                "Asked for with ignore_eos, so that all replies are of one length.",
                load.tokens,
                Kind::Whole,
                wrong,
            )}
            {field(
                Field::Repeats,
                "Repeats",
                "All levels, this often. Three or more show the spread.",
                load.repeats,
                Kind::Whole,
                wrong,
            )}
            {field(
                Field::Single,
                "Single-stream requests",
                "One after another. Blank leaves the single stream out.",
                load.single,
                Kind::Whole,
                wrong,
            )}
        </div>
        <Sizes load wrong/>
    }
}

#[component]
fn Rates(load: LoadFields, wrong: Signal<Option<Wrong>>) -> impl IntoView {
    view! {
        {field(
            Field::Rates,
            "Requests per second",
            "A stage for each, with commas: 0.5, 2, 10.",
            load.rates,
            Kind::Text,
            wrong,
        )}
        <fieldset class="choices">
            <legend>"Arrivals"</legend>
            {choice(
                "arrivals",
                "arrivals-poisson",
                load.arrivals,
                ArrivalsForm::Poisson,
                "Poisson: as people come who know nothing of each other",
            )}
            {choice(
                "arrivals",
                "arrivals-constant",
                load.arrivals,
                ArrivalsForm::Constant,
                "Evenly spaced",
            )}
            {choice(
                "arrivals",
                "arrivals-gamma",
                load.arrivals,
                ArrivalsForm::Gamma,
                "Gamma: in bursts, or more even than Poisson",
            )}
        </fieldset>
        <Show when=move || load.arrivals.get() == ArrivalsForm::Gamma>
            {field(
                Field::Burstiness,
                "Burstiness",
                "1 is Poisson; less comes in bursts, more is more even.",
                load.burstiness,
                Kind::Decimal,
                wrong,
            )}
        </Show>
    }
}

/// How large a stage is: rarely changed.
#[component]
fn Sizes(load: LoadFields, wrong: Signal<Option<Wrong>>) -> impl IntoView {
    let typed = !(load.requests.get_untracked().is_empty()
        && load.seconds.get_untracked().is_empty()
        && load.warmup.get_untracked().is_empty());
    view! {
        <Fold
            title="Size of a stage"
            open=typed
            fields=&[Field::Requests, Field::Seconds, Field::Warmup]
            wrong
        >
            <div class="measure-fields">
                <Show when=move || load.shape.get() != LoadForm::Saturation>
                    {field(
                        Field::Requests,
                        "Requests per stage",
                        "Blank takes four per slot, which gives a steady figure; at a rate, a minute's.",
                        load.requests,
                        Kind::Whole,
                        wrong,
                    )}
                </Show>
                {field(
                    Field::Seconds,
                    "Seconds per stage",
                    "Instead of a number of requests. What is in flight at the end is waited for.",
                    load.seconds,
                    Kind::Decimal,
                    wrong,
                )}
                {field(
                    Field::Warmup,
                    "Warm-up requests per stage",
                    "Sent first and thrown away. Blank takes one per slot.",
                    load.warmup,
                    Kind::Whole,
                    wrong,
                )}
            </div>
        </Fold>
    }
}
