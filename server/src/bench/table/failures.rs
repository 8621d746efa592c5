//! Why requests failed: the commonest sentences, with how often each was said.

use std::collections::BTreeMap;

use tokdyno_domain::{result_file::ResultStage, text};

use crate::bench::terminal::name;

/// Sentences that are shown. More of them say no more.
const SHOWN: usize = 5;

/// A reason, and the requests that failed for it.
pub(super) struct Reason<'a> {
    pub(super) sentence: &'a str,
    pub(super) requests: u64,
}

/// Why requests of these stages failed, the commonest reason first. Requests that were
/// stopped by us did not fail.
pub(super) fn reasons(stages: &[ResultStage]) -> Vec<Reason<'_>> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let records = stages.iter().flat_map(|stage| &stage.records);
    for request in records.filter(|request| !request.record.is_cancelled()) {
        if let Some(failure) = &request.record.failure {
            *counts.entry(failure.message.as_str()).or_default() += 1;
        }
    }
    let mut reasons: Vec<_> = counts
        .into_iter()
        .map(|(sentence, requests)| Reason { sentence, requests })
        .collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.requests));
    reasons
}

/// The section below the table; nothing where nothing failed.
pub(super) fn said(stages: &[ResultStage]) -> String {
    let reasons = reasons(stages);
    if reasons.is_empty() {
        return String::new();
    }
    let mut out = "\nWhy requests failed\n".to_owned();
    for reason in reasons.iter().take(SHOWN) {
        out.push_str(&format!(
            "  {}: {}\n",
            requests(reason.requests),
            name(reason.sentence)
        ));
    }
    if let Some(others) = reasons.get(SHOWN..).filter(|others| !others.is_empty()) {
        let count = others.iter().map(|reason| reason.requests).sum();
        out.push_str(&format!("  {}: other reasons\n", requests(count)));
    }
    out
}

/// `1 request`, `12 requests`.
pub(super) fn requests(count: u64) -> String {
    text::plural(count, "request", "requests")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokdyno_domain::{
        conditions::StageConditions, meter::RequestEvent, metrics::StageFigures,
        workload::StageKind,
    };

    use super::*;

    /// A stage whose requests failed so: kind and sentence of each.
    fn stage(failures: &[(&str, String)]) -> ResultStage {
        let record = |(kind, message): &(&str, String)| {
            let failure = json!({"kind": kind, "message": message, "http_status": null});
            let record = json!({
                "stage": 0, "seq": 0, "prompt": 0, "sent_ns": 0, "end_ns": 1, "chunks": 0,
                "coalesced_chunks": 0, "counted_by": "usage", "done_seen": false,
                "finish_reason": null, "simulated": false, "failure": failure,
            });
            RequestEvent {
                record: serde_json::from_value(record).expect("a record"),
                trace: None,
            }
        };
        ResultStage {
            index: 0,
            kind: StageKind::SingleStream,
            repeat: 0,
            complete: true,
            figures: StageFigures::default(),
            conditions: StageConditions::default(),
            histograms: None,
            records: failures.iter().map(record).collect(),
        }
    }

    #[test]
    fn the_commonest_reasons_are_counted_over_all_stages() {
        let of = |text: &str| ("status", text.to_owned());
        let first = stage(&[of("rare"), of("fu\u{7}ll"), of("fu\u{7}ll")]);
        let second = stage(&[of("fu\u{7}ll"), ("cancelled", "stopped".to_owned())]);
        assert_eq!(
            said(&[first, second]),
            "\nWhy requests failed\n  3 requests: fu␇ll\n  1 request: rare\n"
        );
        assert_eq!(said(&[stage(&[])]), "");
    }

    #[test]
    fn many_reasons_are_summed_up() {
        let many: Vec<_> = (0..SHOWN + 3).map(|n| ("broken", format!("{n}"))).collect();
        let text = said(&[stage(&many)]);
        assert!(
            text.ends_with("  1 request: 4\n  3 requests: other reasons\n"),
            "{text}"
        );
    }
}
