//! What is kept of a single request. Everything else is derived from these.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a request yielded no figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No connection (refused, unreachable, name unknown, TLS).
    Connect,
    /// An HTTP status other than 200.
    Status,
    /// The connection broke in mid-reply, or the stream ended without `[DONE]`
    /// and without finish reason and usage.
    Broken,
    /// No event within the idle time-out; comments are none.
    Stalled,
    /// A reply that is no event stream, no JSON, or carries an error object.
    BadReply,
    /// A proper reply without a token.
    Empty,
    /// Stopped by us.
    Cancelled,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Connect,
        Self::Status,
        Self::Broken,
        Self::Stalled,
        Self::BadReply,
        Self::Empty,
        Self::Cancelled,
    ];

    /// The word as stored and shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Status => "status",
            Self::Broken => "broken",
            Self::Stalled => "stalled",
            Self::BadReply => "bad_reply",
            Self::Empty => "empty",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.word().replace('_', " "))
    }
}

/// A failure, with what there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which kind.
    pub kind: FailureKind,
    /// A sentence for people; at most a few hundred characters, no secrets.
    pub message: String,
    /// The HTTP status, where one came.
    pub http_status: Option<u16>,
}

/// Who counted the completion tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenCount {
    /// The server's `usage`.
    #[default]
    Usage,
    /// Nobody: chunks were counted, which is not the same. Such figures carry a
    /// mark and are never compared with others.
    Chunks,
}

/// One request. All durations in nanoseconds from `sent` (just before the first
/// byte of the request was written on an open connection), on one monotonic
/// clock; `sent_ns` itself counts from the start of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Index of the stage in the plan.
    pub stage: u32,
    /// Number within the stage, from 0, in the order of sending.
    pub seq: u32,
    /// Which prompt of the set.
    pub prompt: u64,
    /// When it was sent, since the start of the run.
    pub sent_ns: u64,
    /// When it was to be sent, since the start of the run: open loops only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_ns: Option<u64>,
    /// Which turn of its conversation, from 0: conversations only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Completion tokens asked for, where the workload does not ask the same of
    /// every request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_tokens: Option<u32>,
    /// How long connecting took, if this request had to connect. Not part of any
    /// latency below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ns: Option<u64>,
    /// Until the response head was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers_ns: Option<u64>,
    /// Until the first token chunk: `ttft`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ns: Option<u64>,
    /// Until the first chunk with answer text (content or tool call, not reasoning).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_answer_ns: Option<u64>,
    /// Until the last token chunk: `e2el`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e2el_ns: Option<u64>,
    /// Until the reply was over, or the failure was noticed.
    pub end_ns: u64,
    /// Prompt tokens by the server's count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u32>,
    /// Completion tokens *n*, counted as [`Self::counted_by`] says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u32>,
    /// Tokens *n₁* of the first token chunk, where running usage told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_chunk_tokens: Option<u32>,
    /// Prompt tokens that came from the prefix cache, where the server tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u32>,
    /// Reasoning tokens, where the server tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u32>,
    /// Token chunks received.
    pub chunks: u32,
    /// Token chunks that came in one read with the one before.
    pub coalesced_chunks: u32,
    /// Who counted.
    pub counted_by: TokenCount,
    /// Was `[DONE]` seen?
    pub done_seen: bool,
    /// Why the engine stopped, in its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// The stand-in's marker was on the reply.
    #[serde(default)]
    pub simulated: bool,
    /// Why there is no figure; none for a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl RequestRecord {
    /// Did it succeed?
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.failure.is_none()
    }

    /// Was it stopped by us (neither a success nor the server's failure)?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.failure
            .as_ref()
            .is_some_and(|failure| failure.kind == FailureKind::Cancelled)
    }

    /// Did all token chunks come in a single read?
    #[must_use]
    pub fn in_one_read(&self) -> bool {
        self.chunks.checked_sub(1) == Some(self.coalesced_chunks)
    }
}

/// When the token chunks of a request came. Kept apart from the record: it is
/// the bulk of the data, and may be dropped after a while.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChunkTrace {
    /// Microseconds: the first entry since `sent`, each further one since its
    /// predecessor. Zero for a chunk read together with its predecessor.
    pub gaps_us: Vec<u32>,
    /// Tokens of each chunk, where running usage told; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<u32>,
}

impl ChunkTrace {
    /// Arrival times since `sent`, in microseconds, one per chunk.
    pub fn arrivals_us(&self) -> impl Iterator<Item = u64> + '_ {
        self.gaps_us.iter().scan(0_u64, |at, gap| {
            *at += u64::from(*gap);
            Some(*at)
        })
    }

    /// Tokens of the chunk with this index, where known.
    #[must_use]
    pub fn tokens_of(&self, chunk: usize) -> Option<u32> {
        self.tokens.get(chunk).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_words_read_back_and_match_the_wire() {
        for kind in FailureKind::ALL {
            assert_eq!(FailureKind::from_word(kind.word()), Some(kind));
            assert_eq!(serde_json::to_value(kind).expect("a word"), kind.word());
        }
    }

    #[test]
    fn one_read_is_told_from_any_counts() {
        let in_one_read = |chunks: u32, coalesced: u32| {
            let record = serde_json::json!({
                "stage": 0, "seq": 0, "prompt": 0, "sent_ns": 0, "end_ns": 1,
                "chunks": chunks, "coalesced_chunks": coalesced,
                "counted_by": "usage", "done_seen": true,
            });
            let record: RequestRecord = serde_json::from_value(record).expect("a record");
            record.in_one_read()
        };
        assert!(in_one_read(1, 0) && in_one_read(8, 7));
        assert!(!in_one_read(8, 6) && !in_one_read(0, 0));
        // Counts that a file may hold all the same.
        assert!(!in_one_read(0, u32::MAX) && !in_one_read(u32::MAX, u32::MAX));
    }

    #[test]
    fn arrivals_add_up() {
        let trace = ChunkTrace {
            gaps_us: vec![50, 10, 0, 10],
            tokens: vec![],
        };
        assert_eq!(trace.arrivals_us().collect::<Vec<_>>(), [50, 60, 60, 70]);
        assert_eq!(trace.tokens_of(0), None);
    }
}
