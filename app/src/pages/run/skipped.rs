//! Stages of the plan that a rule of the workload left out.

use leptos::prelude::*;
use tokdyno_domain::{text, views::run::SkippedStage};

use super::data::RunData;

/// Where a file said only which.
const NO_REASON: &str = "The rule of its workload left it out.";

/// What was left out, and why.
#[component]
pub(super) fn Skipped(data: RunData) -> impl IntoView {
    let skipped = data.part(|view| grouped(&view.skipped));
    view! {
        <Show when=move || skipped.with(|skipped| !skipped.is_empty())>
            <section aria-labelledby="skipped-title">
                <h2 id="skipped-title">"Stages left out"</h2>
                <ul>
                    {move || {
                        skipped
                            .get()
                            .into_iter()
                            .map(|(stages, reason)| {
                                view! {
                                    <li>
                                        <strong>{stages}</strong>
                                        ": "
                                        {reason}
                                    </li>
                                }
                            })
                            .collect_view()
                    }}
                </ul>
            </section>
        </Show>
    }
}

/// Stages that were left out for one reason stand together: which, and why.
fn grouped(skipped: &[SkippedStage]) -> Vec<(String, String)> {
    let mut groups: Vec<(String, Vec<&SkippedStage>)> = Vec::new();
    for stage in skipped {
        let reason = stage.reason.clone().unwrap_or_else(|| NO_REASON.to_owned());
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, stages)) => stages.push(stage),
            None => groups.push((reason, vec![stage])),
        }
    }
    groups
        .into_iter()
        .map(|(reason, stages)| {
            let mut kinds: Vec<String> = Vec::new();
            for stage in &stages {
                let kind = stage.kind.to_string();
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            let count = text::plural(stages.len() as u64, "stage", "stages");
            (format!("{} ({count})", kinds.join(", ")), reason)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::workload::StageKind;

    use super::*;

    #[test]
    fn one_reason_is_said_once() {
        let skipped = |index, concurrency, repeat, reason: Option<&str>| SkippedStage {
            index,
            kind: StageKind::ClosedLoop { concurrency },
            repeat,
            reason: reason.map(str::to_owned),
        };
        let why = Some("C = 8 gained less than 5 %.");
        assert_eq!(
            grouped(&[
                skipped(4, 16, 0, why),
                skipped(5, 32, 0, why),
                skipped(10, 16, 1, why),
                skipped(11, 32, 1, None),
            ]),
            [
                (
                    "C = 16, C = 32 (3 stages)".to_owned(),
                    "C = 8 gained less than 5 %.".to_owned()
                ),
                ("C = 32 (1 stage)".to_owned(), NO_REASON.to_owned()),
            ]
        );
    }
}
