//! Recorded bytes through the path that live ones take.

use tokdyno_domain::record::{ChunkTrace, RequestRecord};

use crate::reply::{Reply, Sent};

/// A reply under way whose bytes and times are given instead of read: for
/// measuring the decoding by itself, and for looking at a recorded stream with
/// the meter's eyes. There is no clock in it.
#[derive(Debug)]
pub struct Replay(Reply);

impl Replay {
    /// The reply to a request for `asked` tokens.
    #[must_use]
    pub fn new(asked: u32) -> Self {
        Self(Reply::new(asked))
    }

    /// The bytes of one read, head and framing included, `at_ns` after the
    /// request was sent. What follows the end of the reply is ignored.
    pub fn read(&mut self, bytes: &[u8], at_ns: u64) {
        self.0.on_bytes(bytes, at_ns);
    }

    /// What the meter would have recorded, had the server hung up now.
    #[must_use]
    pub fn finish(mut self, at_ns: u64) -> (RequestRecord, Option<ChunkTrace>) {
        self.0.on_eof(None, at_ns);
        let sent = Sent {
            stage: 0,
            seq: 0,
            prompt: 0,
            sent_ns: 0,
            intended_ns: None,
            turn: None,
            asked_tokens: None,
            connect_ns: None,
        };
        self.0.into_record(&sent, None)
    }
}
