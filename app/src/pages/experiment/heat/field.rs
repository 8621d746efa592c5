//! What stands in one field of a heat map: the figure, its change, and what is behind it.

use leptos::prelude::*;
use tokdyno_domain::{
    experiment::results::{EntryState, HeatEntry},
    statistics::{Better, RatioInterval},
    text,
    verdict::{Verdict, VerdictKind},
};

use super::super::{
    data::ExperimentData,
    number::{Change, Mean},
    traces::Traces,
};
use crate::components::{EntryBadge, FlagNote, VerdictBadge};

/// Where the colour becomes stronger: multiples of the smallest effect that matters.
const STEPS: [f64; 4] = [1.0, 2.5, 5.0, 12.5];

/// What the fields of one map share.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) data: ExperimentData,
    pub(super) better: Better,
    /// Smallest effect that matters, as a share.
    pub(super) relevant: f64,
    pub(super) reference: u32,
}

/// One field of a grid.
pub(super) fn field(scale: Scale, entry: Option<HeatEntry>) -> AnyView {
    let Some(entry) = entry else {
        return view! { <td class="muted">"not part of the plan"</td> }.into_any();
    };
    let class = format!("heat-field {}", tint(scale, &entry));
    let against = against(scale, &entry);
    view! {
        <td class=class>
            {figure(&entry)}
            {against}
            <Behind scale entry/>
        </td>
    }
    .into_any()
}

/// The figure, or why there is none.
pub(super) fn figure(entry: &HeatEntry) -> AnyView {
    match entry.figure {
        Some(mean) => view! {
            <span class="heat-figure">
                <Mean mean/>
            </span>
        }
        .into_any(),
        None => view! { <EntryBadge state=entry.state/> }.into_any(),
    }
}

/// The change against the reference, and what may be said of it.
pub(super) fn against(scale: Scale, entry: &HeatEntry) -> Option<AnyView> {
    if entry.cell == scale.reference {
        return Some(view! { <span class="heat-reference">"compared with"</span> }.into_any());
    }
    if entry.state != EntryState::Measured {
        return None;
    }
    let verdict = entry.verdict.clone().map(|verdict| {
        view! {
            <span class="heat-verdict" title=verdict.sentence>
                <VerdictBadge kind=verdict.kind/>
            </span>
        }
    });
    Some(
        view! {
            <span class="heat-change">
                <Change ratio=entry.ratio/>
            </span>
            {verdict}
        }
        .into_any(),
    )
}

/// Launches, runs and flags behind a figure.
#[component]
pub(super) fn Behind(scale: Scale, entry: HeatEntry) -> impl IntoView {
    let launches = (entry.launches > 0).then(|| {
        view! {
            <span class="heat-launches">
                {text::plural(entry.launches.into(), "launch", "launches")} ": "
                <Traces data=scale.data cell=entry.cell/>
            </span>
        }
    });
    view! {
        {launches}
        {entry
            .flags
            .into_iter()
            .map(|flag| view! { <FlagNote text=flag/> })
            .collect_view()}
    }
}

/// The class that tints a field: how far the ratio is on which side, but pale where that
/// is not established.
pub(super) fn tint(scale: Scale, entry: &HeatEntry) -> String {
    let open = !is_established(entry.verdict.as_ref());
    shade(scale.better, scale.relevant, open, entry.ratio)
}

/// Nothing is established of a figure that is never judged.
fn is_established(verdict: Option<&Verdict>) -> bool {
    verdict.is_some_and(|verdict| matches!(verdict.kind, VerdictKind::Better | VerdictKind::Worse))
}

fn shade(better: Better, relevant: f64, open: bool, ratio: Option<RatioInterval>) -> String {
    let Some(change) = ratio.map(|ratio| better.turned(ratio.ratio.ln())) else {
        return String::new();
    };
    let most = if open { 1 } else { STEPS.len() };
    let strength = STEPS
        .iter()
        .take_while(|step| change.abs() >= (*step * relevant).ln_1p())
        .count()
        .min(most);
    match strength {
        0 => String::new(),
        strength if change > 0.0 => format!("heat-better-{strength}"),
        strength => format!("heat-worse-{strength}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_what_is_better_and_what_is_established() {
        let shade = |better, open, ratio| {
            let ratio = RatioInterval {
                ratio,
                low: None,
                high: None,
            };
            super::shade(better, 0.02, open, Some(ratio))
        };
        assert_eq!(shade(Better::Higher, false, 1.015), "");
        assert_eq!(shade(Better::Higher, false, 1.03), "heat-better-1");
        assert_eq!(shade(Better::Higher, false, 1.415), "heat-better-4");
        assert_eq!(shade(Better::Higher, true, 1.415), "heat-better-1");
        assert_eq!(shade(Better::Higher, false, 0.90), "heat-worse-3");
        assert_eq!(shade(Better::Lower, false, 0.5), "heat-better-4");
        assert_eq!(super::shade(Better::Higher, 0.02, false, None), "");
    }
}
