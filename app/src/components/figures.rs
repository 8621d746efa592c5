//! Numbers as pages show them: right-aligned, tabular, with their unit.

use leptos::prelude::*;
use tokdyno_domain::{
    statistics::Estimate,
    text::{self, NO_FIGURE},
    workload::StageKind,
};

use super::icon::{Glyph, Icon};

/// A number with its unit.
#[component]
pub fn Figure(
    /// The number.
    value: f64,
    /// Its unit; empty where the heading has it.
    #[prop(optional, into)]
    unit: String,
) -> impl IntoView {
    view! { <OptionalFigure value=Some(value) unit=unit/> }
}

/// A number with its unit, or a dash: what is unknown is never 0.
#[component]
pub fn OptionalFigure(
    /// The number, where there is one.
    value: Option<f64>,
    /// Its unit; empty where the heading has it.
    #[prop(optional, into)]
    unit: String,
) -> impl IntoView {
    let unit = (value.is_some() && !unit.is_empty())
        .then(|| view! { <span class="unit">" "{unit}</span> });
    view! { <span class="figure">{text::optional(value)} {unit}</span> }
}

/// A mean with the spread and the number of values behind it.
#[component]
pub fn EstimateCell(
    /// The figure, where there is one.
    estimate: Option<Estimate>,
    /// Its unit; empty where the heading has it.
    #[prop(optional, into)]
    unit: String,
    /// Flagged or disputed.
    #[prop(optional)]
    doubtful: bool,
) -> impl IntoView {
    let Some(estimate) = estimate else {
        return view! { <span class="estimate none">{NO_FIGURE}</span> }.into_any();
    };
    let spread = match estimate.bar() {
        Some((low, high)) => format!(
            "min–max {}–{} · n = {}",
            text::figure(low),
            text::figure(high),
            estimate.n
        ),
        None => format!("n = {}", estimate.n),
    };
    view! {
        <span class="estimate">
            <span class="estimate-mean">
                {doubtful
                    .then(|| {
                        view! {
                            <span class="doubt" title="Flagged or disputed: never best.">
                                <Icon glyph=Glyph::Flag/>
                                <span class="visually-hidden">"flagged: "</span>
                            </span>
                        }
                    })}
                <Figure value=estimate.mean unit=unit/>
            </span>
            <span class="spread">{spread}</span>
        </span>
    }
    .into_any()
}

/// The highest throughput of a run, or what its highest rate came to where it has no
/// other load.
#[component]
pub fn PeakCell(
    /// C and tok/s.
    peak: Option<(u32, Estimate)>,
    /// The rate and the requests per second that were answered.
    rate: Option<(StageKind, Option<Estimate>)>,
    /// Class of the line below: at which load.
    note_class: &'static str,
) -> impl IntoView {
    let (estimate, unit, load) = match (peak, rate) {
        (Some((concurrency, estimate)), _) => {
            (Some(estimate), "", Some(format!("at C = {concurrency}")))
        }
        (None, Some((kind, answered))) => (answered, "req/s", Some(format!("at {kind}"))),
        (None, None) => (None, "", None),
    };
    view! {
        <EstimateCell estimate unit/>
        {load.map(|load| view! { <span class=note_class>{load}</span> })}
    }
}

/// A phrase as the beginning of a sentence.
#[must_use]
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::capital;

    #[test]
    fn sentences_begin_with_a_capital() {
        assert_eq!(capital("bars: min–max"), "Bars: min–max");
        assert_eq!(capital("élan"), "Élan");
        assert_eq!(capital(""), "");
    }
}
