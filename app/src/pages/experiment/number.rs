//! Figures and changes with their intervals, as the results write them.

use leptos::prelude::*;
use tokdyno_domain::{
    statistics::{MeanInterval, RatioInterval},
    text,
};

/// `+41.5 %`, and below it `+41.0 to +42.0 %`; a dash where there is nothing to say.
#[component]
pub(super) fn Change(
    /// The ratio, where there is one.
    ratio: Option<RatioInterval>,
) -> impl IntoView {
    let Some(ratio) = ratio else {
        return view! { <span class="muted">{text::NO_FIGURE}</span> }.into_any();
    };
    view! {
        <span class="figure">{text::change(ratio.ratio)}</span>
        {change_ends(&ratio).map(|ends| view! { <span class="interval">{ends}</span> })}
    }
    .into_any()
}

/// A mean with its unit, and below it its interval.
#[component]
pub(super) fn Mean(
    /// The mean.
    mean: MeanInterval,
    /// Its unit; empty where the heading has it.
    #[prop(optional, into)]
    unit: String,
) -> impl IntoView {
    let unit = (!unit.is_empty()).then(|| view! { <span class="unit">" "{unit}</span> });
    view! {
        <span class="figure">{text::figure(mean.mean)} {unit}</span>
        {mean_ends(&mean).map(|ends| view! { <span class="interval">{ends}</span> })}
    }
}

/// `+41.0 to +42.0 %`.
pub(super) fn change_ends(ratio: &RatioInterval) -> Option<String> {
    let (low, high) = ratio.low.zip(ratio.high)?;
    Some(format!("{} to {}", text::change(low), text::change(high)))
}

/// `63.1 to 64.2`.
pub(super) fn mean_ends(mean: &MeanInterval) -> Option<String> {
    let (low, high) = mean.low.zip(mean.high)?;
    Some(format!("{} to {}", text::figure(low), text::figure(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_written_only_where_there_are_any() {
        let ratio = |ends: Option<(f64, f64)>| RatioInterval {
            ratio: 1.415,
            low: ends.map(|(low, _)| low),
            high: ends.map(|(_, high)| high),
        };
        assert_eq!(change_ends(&ratio(None)), None);
        assert_eq!(
            change_ends(&ratio(Some((1.41, 1.42)))).as_deref(),
            Some("+41.0 % to +42.0 %")
        );
        let mean = MeanInterval {
            mean: 63.6,
            low: Some(63.1),
            high: None,
        };
        assert_eq!(mean_ends(&mean), None);
    }
}
