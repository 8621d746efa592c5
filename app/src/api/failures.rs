//! The failures of a run, those alike taken together.

use leptos::{prelude::*, server_fn::codec::Json};
use serde::{Deserialize, Serialize};
use tokdyno_domain::{ids::RunId, record::FailureKind};

use crate::AppError;

/// Requests that failed alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureGroup {
    /// Which kind.
    pub kind: FailureKind,
    /// What was said; alike in all of them.
    pub message: String,
    /// How many.
    pub count: u64,
    /// Stages in which it came up, in order.
    pub stages: Vec<u32>,
}

/// Most groups that are sent: messages that hold numbers would else fill the page.
#[cfg(any(feature = "ssr", test))]
const MOST_GROUPS: usize = 50;

/// The failures of a run by kind and message, commonest first, at most fifty groups.
///
/// # Errors
/// No such run, the database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "failures", input = Json)]
pub async fn failures(run: RunId) -> Result<Vec<FailureGroup>, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    let mut groups = Groups::default();
    let mut page = 0;
    loop {
        let found = lab
            .records(&actor, run, page)
            .await
            .map_err(super::context::answer)?;
        if found.records.is_empty() {
            break;
        }
        for record in &found.records {
            groups.add(record);
        }
        page += 1;
        if u64::from(page) * u64::from(found.page_size) >= found.total {
            break;
        }
    }
    Ok(groups.finish())
}

#[cfg(any(feature = "ssr", test))]
#[derive(Default)]
struct Groups(std::collections::BTreeMap<(FailureKind, String), FailureGroup>);

#[cfg(any(feature = "ssr", test))]
impl Groups {
    fn add(&mut self, record: &tokdyno_domain::record::RequestRecord) {
        let Some(failure) = &record.failure else {
            return;
        };
        let group = self
            .0
            .entry((failure.kind, failure.message.clone()))
            .or_insert_with(|| FailureGroup {
                kind: failure.kind,
                message: failure.message.clone(),
                count: 0,
                stages: Vec::new(),
            });
        group.count += 1;
        if !group.stages.contains(&record.stage) {
            group.stages.push(record.stage);
        }
    }

    fn finish(self) -> Vec<FailureGroup> {
        let mut groups: Vec<FailureGroup> = self.0.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        groups.truncate(MOST_GROUPS);
        groups
    }
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::record::{Failure, RequestRecord, TokenCount};

    use super::*;

    fn failed(stage: u32, kind: FailureKind, message: &str) -> RequestRecord {
        RequestRecord {
            stage,
            seq: 0,
            prompt: 0,
            sent_ns: 0,
            connect_ns: None,
            headers_ns: None,
            ttft_ns: None,
            first_answer_ns: None,
            e2el_ns: None,
            end_ns: 1,
            prompt_tokens: None,
            completion_tokens: None,
            first_chunk_tokens: None,
            cached_tokens: None,
            reasoning_tokens: None,
            chunks: 0,
            coalesced_chunks: 0,
            counted_by: TokenCount::Usage,
            done_seen: false,
            finish_reason: None,
            simulated: false,
            failure: Some(Failure {
                kind,
                message: message.to_owned(),
                http_status: None,
            }),
        }
    }

    #[test]
    fn alike_failures_are_one_group_and_the_commonest_comes_first() {
        let mut groups = Groups::default();
        groups.add(&failed(0, FailureKind::Connect, "refused"));
        for stage in [1, 1, 3] {
            groups.add(&failed(stage, FailureKind::Status, "HTTP 500"));
        }
        let mut success = failed(0, FailureKind::Broken, "");
        success.failure = None;
        groups.add(&success);
        let groups = groups.finish();
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].kind, FailureKind::Status);
        assert_eq!(
            (groups[0].count, groups[0].stages.as_slice()),
            (3, &[1, 3][..])
        );
        assert_eq!(
            (groups[1].count, groups[1].message.as_str()),
            (1, "refused")
        );
    }

    #[test]
    fn no_more_groups_than_a_page_can_hold() {
        let mut groups = Groups::default();
        for number in 0..200 {
            groups.add(&failed(
                0,
                FailureKind::Broken,
                &format!("at byte {number}"),
            ));
        }
        assert_eq!(groups.finish().len(), MOST_GROUPS);
    }
}
