//! The requests of a run as a table: a line per request.

use futures::{Stream, StreamExt, stream};
use tokdyno_domain::{
    access::Actor,
    ids::RunId,
    record::{RequestRecord, TokenCount},
};
use tokdyno_figures::csv_field;
use tokdyno_lab::{Lab, LabError};

const HEAD: &str = "stage,seq,prompt,sent_ns,connect_ns,headers_ns,ttft_ns,first_answer_ns,e2el_ns,end_ns,prompt_tokens,completion_tokens,first_chunk_tokens,cached_tokens,reasoning_tokens,chunks,coalesced_chunks,counted_by,done_seen,finish_reason,simulated,failure,http_status,message,intended_ns,turn,asked_tokens\n";

/// All records, read on from one page to the next while they are sent: a run may have
/// more than fit into memory or could be written before a reader gives up. The first
/// page is read before anything is sent, so that a run that is not there is an error.
pub(crate) async fn csv(
    lab: &Lab,
    actor: Actor,
    run: RunId,
) -> Result<impl Stream<Item = Result<String, LabError>> + use<>, LabError> {
    let first = lab.records_after(&actor, run, None).await?;
    let head = stream::iter([Ok(HEAD.to_owned())]);
    let pages = stream::try_unfold((lab.clone(), first), move |(lab, records)| async move {
        let Some(last) = records.last() else {
            return Ok(None);
        };
        let last = Some((last.stage, last.seq));
        let mut text = String::new();
        for record in &records {
            push(&mut text, record);
        }
        let next = lab.records_after(&actor, run, last).await?;
        Ok(Some((text, (lab, next))))
    });
    Ok(head.chain(pages))
}

fn push(text: &mut String, record: &RequestRecord) {
    fn or_empty<T: ToString>(value: Option<T>) -> String {
        value.map_or_else(String::new, |value| value.to_string())
    }
    let failure = record.failure.as_ref();
    let fields = [
        record.stage.to_string(),
        record.seq.to_string(),
        record.prompt.to_string(),
        record.sent_ns.to_string(),
        or_empty(record.connect_ns),
        or_empty(record.headers_ns),
        or_empty(record.ttft_ns),
        or_empty(record.first_answer_ns),
        or_empty(record.e2el_ns),
        record.end_ns.to_string(),
        or_empty(record.prompt_tokens),
        or_empty(record.completion_tokens),
        or_empty(record.first_chunk_tokens),
        or_empty(record.cached_tokens),
        or_empty(record.reasoning_tokens),
        record.chunks.to_string(),
        record.coalesced_chunks.to_string(),
        match record.counted_by {
            TokenCount::Usage => "usage".to_owned(),
            TokenCount::Chunks => "chunks".to_owned(),
        },
        record.done_seen.to_string(),
        csv_field(record.finish_reason.as_deref().unwrap_or_default()),
        record.simulated.to_string(),
        failure.map_or_else(String::new, |failure| failure.kind.word().to_owned()),
        or_empty(failure.and_then(|failure| failure.http_status)),
        csv_field(failure.map_or("", |failure| &failure.message)),
        or_empty(record.intended_ns),
        or_empty(record.turn),
        or_empty(record.asked_tokens),
    ];
    text.push_str(&fields.join(","));
    text.push('\n');
}
