//! The form for another gate: one rule a line.

use leptos::{form::ActionForm, prelude::*};
use tokdyno_domain::{
    gate::{Demand, EXAMPLES, GateError, LineError, explained, parse_lines},
    ids::RunId,
};

use crate::{api::RecordGate, components::feedback::ErrorNote};

/// Rules, what is wrong with them while they are typed, and help.
#[component]
pub(super) fn GateEditor(
    /// One run, or several, the baseline first.
    runs: Vec<RunId>,
    /// Judges and records.
    record: ServerAction<RecordGate>,
) -> impl IntoView {
    let compared = runs.len() > 1;
    let typed = RwSignal::new(String::new());
    let wrong = Memo::new(move |_| typed.with(|typed| complaint(typed, compared)));
    let error = Signal::derive(move || record.value().get().and_then(Result::err));
    let fields = runs
        .into_iter()
        .enumerate()
        .map(|(place, run)| {
            view! {
                <input type="hidden" name=format!("form[runs][{place}]") value=run.to_string()/>
            }
        })
        .collect_view();
    view! {
        <details class="fold">
            <summary>"Another gate"</summary>
            <ActionForm action=record attr:class="stack">
                {fields}
                <p class="field">
                    <label for="gate-rules">"Rules that must hold, one a line"</label>
                    <textarea
                        id="gate-rules"
                        name="form[rules]"
                        class="mono"
                        rows="4"
                        required
                        spellcheck="false"
                        autocapitalize="off"
                        placeholder=placeholder(compared)
                        aria-describedby="gate-rules-help gate-rules-error"
                        on:input=move |event| typed.set(event_target_value(&event))
                    ></textarea>
                    <span id="gate-rules-help" class="field-help">
                        "[LEVEL.]METRIC, then one of < <= > >= and a number; or, against a baseline, not worse than so many %. LEVEL is single, c128, r4, ramp or replay; without it every stage is meant."
                    </span>
                    <span id="gate-rules-error" class="field-error" role="alert">
                        {move || wrong.get()}
                    </span>
                </p>
                <ErrorNote error=error/>
                <button
                    type="submit"
                    class="button button-primary"
                    prop:disabled=move || record.pending().get() || wrong.with(Option::is_some)
                >
                    {move || if record.pending().get() { "Judging …" } else { "Judge and record" }}
                </button>
            </ActionForm>
            <details class="fold">
                <summary>"Examples, and all metrics"</summary>
                <pre class="verbatim">{EXAMPLES.join("\n")}</pre>
                <pre class="verbatim">{explained()}</pre>
            </details>
        </details>
    }
}

/// Two rules that fit the page.
fn placeholder(compared: bool) -> String {
    let wanted = |rule: &&&str| rule.contains("not worse") == compared;
    EXAMPLES
        .iter()
        .filter(wanted)
        .take(2)
        .copied()
        .collect::<Vec<_>>()
        .join("\n")
}

/// What is wrong with the rules as they are typed; nothing while there are none.
fn complaint(typed: &str, compared: bool) -> Option<String> {
    match parse_lines(typed) {
        Ok(rules) => rules
            .iter()
            .find(|rule| !compared && matches!(rule.demand, Demand::NotWorse { .. }))
            .map(|rule| GateError::NoBaseline(rule.to_string()).to_string()),
        Err(LineError::Empty) => None,
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_rule_is_named_while_it_is_typed() {
        assert_eq!(complaint("", false), None);
        assert_eq!(
            complaint("failures <= 0\n\nsingle.e2e_tps_p50 >= 85", false),
            None
        );
        let wrong = complaint("failures <= 0\nspeed >= 1", false).expect("a complaint");
        assert!(
            wrong.starts_with("Line 2: There is no metric `speed`"),
            "{wrong}"
        );
    }

    #[test]
    fn a_run_alone_has_no_baseline() {
        let rule = "c128.output_tps not worse than 2 %";
        assert_eq!(complaint(rule, true), None);
        let wrong = complaint(rule, false).expect("a complaint");
        assert!(wrong.contains("needs a baseline"), "{wrong}");
    }

    #[test]
    fn what_is_suggested_is_a_gate_of_its_page() {
        for compared in [false, true] {
            let suggested = placeholder(compared);
            assert!(!suggested.is_empty());
            assert_eq!(complaint(&suggested, compared), None, "{suggested}");
        }
    }
}
