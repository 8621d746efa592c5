//! One streamed reply, from its bytes to its record. No I/O and no clock: times
//! are passed in, in nanoseconds since `sent`.

use tokdyno_domain::record::{ChunkTrace, Failure, FailureKind, RequestRecord, TokenCount};

use crate::{
    chunk::{self, Tally},
    http::{Decoder, Head, Piece},
    looping::Looping,
    sse::Parser,
};

/// Most characters of a failure's message.
const MAX_MESSAGE: usize = 300;
/// Most bytes kept of a reply that is no stream.
const MAX_OTHER_BODY: usize = 64 << 10;
/// A reply may bring so many times the token chunks it was asked for: some
/// servers overshoot, and some split a token.
const OVERSHOOT: u32 = 4;
/// And so many more, whatever was asked for.
const OVERSHOOT_FREE: u32 = 1000;
/// Most bytes kept of an answer that is part of the next prompt. The chunk that goes
/// beyond is kept whole.
const MAX_TEXT: usize = 1 << 20;
/// Chunks for which there is room from the start: enough for most replies, and
/// little enough for thousands of streams.
const ROOM: u32 = 1024;

/// Where and when a request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) stage: u32,
    pub(crate) seq: u32,
    pub(crate) prompt: u64,
    pub(crate) sent_ns: u64,
    pub(crate) intended_ns: Option<u64>,
    pub(crate) turn: Option<u32>,
    pub(crate) asked_tokens: Option<u32>,
    pub(crate) connect_ns: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
enum Mode {
    Head,
    Stream,
    /// A body that is no stream; kept for the message in it.
    Other(Vec<u8>),
}

/// What is to be said of a reply that its record does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// It says the same over and over; none of a reply too short to tell.
    pub(crate) looping: Option<bool>,
    /// `[DONE]` came, and the end of the body did not.
    pub(crate) left_open: bool,
    /// Its running counts fell, or do not add up to the count at its end.
    pub(crate) odd_usage: bool,
}

/// A reply in the making.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Tokens that were asked for.
    asked: u32,
    /// The head or something new came since the last look.
    heard: bool,
    decoder: Decoder,
    events: Parser,
    tally: Tally,
    mode: Mode,
    head: Option<Head>,
    headers_ns: Option<u64>,
    ttft_ns: Option<u64>,
    first_answer_ns: Option<u64>,
    last_token_ns: Option<u64>,
    done_ns: Option<u64>,
    left_open: bool,
    last_byte_ns: u64,
    first_chunk_tokens: Option<u32>,
    chunks: u32,
    coalesced: u32,
    gaps_us: Vec<u32>,
    tokens: Vec<u32>,
    /// Every token chunk so far told its count.
    counted: bool,
    fresh_tokens: u32,
    end_ns: Option<u64>,
    reusable: bool,
    failure: Option<Failure>,
    /// The answer's text, where it is wanted.
    text: Option<String>,
    looping: Looping,
}

impl Reply {
    /// The reply to a request for `asked` tokens.
    pub(crate) fn new(asked: u32) -> Self {
        Self {
            asked,
            heard: false,
            decoder: Decoder::new(),
            events: Parser::default(),
            tally: Tally::default(),
            mode: Mode::Head,
            head: None,
            headers_ns: None,
            ttft_ns: None,
            first_answer_ns: None,
            last_token_ns: None,
            done_ns: None,
            left_open: false,
            last_byte_ns: 0,
            first_chunk_tokens: None,
            chunks: 0,
            coalesced: 0,
            gaps_us: Vec::with_capacity(asked.min(ROOM) as usize),
            tokens: Vec::with_capacity(asked.min(ROOM) as usize),
            counted: true,
            fresh_tokens: 0,
            end_ns: None,
            reusable: false,
            failure: None,
            text: None,
            looping: Looping::default(),
        }
    }

    /// Keeps the text of the answer, up to [`MAX_TEXT`] bytes of it. It takes memory
    /// and time for every chunk, so only conversations ask for it.
    pub(crate) fn keep_text(&mut self) {
        self.text.get_or_insert_default();
    }

    /// The text that was kept: content alone, no reasoning.
    pub(crate) fn take_text(&mut self) -> String {
        self.text.take().unwrap_or_default()
    }

    /// What its record does not hold, once it is over.
    pub(crate) fn seen(&self) -> Seen {
        // Where a chunk came without a count, the rest may be in it. Counts that never
        // rose tell nothing, and nothing wrong.
        let told: u64 = self.tokens.iter().map(|count| u64::from(*count)).sum();
        let total = u64::from(self.tally.completion_tokens.unwrap_or(0));
        let falls_short = self.counted && told > 0 && told < total;
        Seen {
            looping: self.looping.is_looping(),
            left_open: self.left_open,
            odd_usage: !self.tally.running_fits() || falls_short,
        }
    }

    /// Takes the bytes of one read, all stamped `at_ns`.
    pub(crate) fn on_bytes(&mut self, bytes: &[u8], at_ns: u64) {
        self.last_byte_ns = at_ns;
        let mut input = bytes;
        while self.end_ns.is_none() {
            match self.decoder.next(&mut input) {
                Ok(Some(Piece::Head(head))) => self.on_head(head, at_ns),
                Ok(Some(Piece::Body(body))) => self.on_body(body, at_ns),
                Ok(Some(Piece::End)) => self.on_end(at_ns, input.is_empty()),
                Ok(None) => break,
                Err(error) => self.fail(FailureKind::BadReply, error.to_string(), at_ns),
            }
        }
    }

    /// The connection ended: orderly (`error` none) or not.
    pub(crate) fn on_eof(&mut self, error: Option<&std::io::Error>, at_ns: u64) {
        if self.end_ns.is_some() {
            return;
        }
        if error.is_none() && self.decoder.ends_with_connection() {
            self.on_end(at_ns, false);
            return;
        }
        let how = error.map_or_else(|| "closed".to_owned(), |error| format!("broken ({error})"));
        let message = match (&self.head, self.chunks) {
            (None, _) => format!(
                "The connection was {how} before a reply came. Look at the server's log; it may have restarted or refused the request."
            ),
            (Some(_), chunks) => format!(
                "The connection was {how} in mid-reply, after {chunks} token chunks. Look at the server's log and at proxies in between."
            ),
        };
        if matches!(self.mode, Mode::Stream) && self.is_whole() {
            self.succeed(at_ns);
        } else if let Mode::Other(_) = &self.mode {
            self.on_end(at_ns, false);
        } else {
            self.fail(FailureKind::Broken, message, at_ns);
        }
        self.reusable = false;
    }

    /// Neither head nor anything new came for the idle time-out, or nothing for the time granted after `[DONE]`.
    pub(crate) fn on_idle(&mut self, idle_s: f64, at_ns: u64) {
        if self.end_ns.is_some() {
            return;
        }
        if let Some(done_ns) = self.done_ns {
            // The reply was over; only the end of its body never came.
            self.left_open = true;
            self.succeed(done_ns);
        } else {
            let message = format!(
                "Nothing new came of the reply for {idle_s} seconds, after {} token chunks; comments and events without text do not count. Look at the server's load and log, or raise the idle time-out.",
                self.chunks
            );
            self.fail(FailureKind::Stalled, message, at_ns);
        }
        self.reusable = false;
    }

    /// Stopped by us.
    pub(crate) fn on_cancel(&mut self, at_ns: u64) {
        if self.end_ns.is_none() {
            let message = "Stopped before the reply was over.".to_owned();
            self.fail(FailureKind::Cancelled, message, at_ns);
            self.reusable = false;
        }
    }

    /// The request could not even be sent.
    pub(crate) fn on_connect_failure(&mut self, message: String) {
        self.fail(FailureKind::Connect, message, 0);
    }

    /// Is the reply over?
    pub(crate) const fn is_over(&self) -> bool {
        self.end_ns.is_some()
    }

    /// Was `[DONE]` seen?
    pub(crate) const fn is_done(&self) -> bool {
        self.done_ns.is_some()
    }

    /// May the connection carry another request?
    pub(crate) const fn is_reusable(&self) -> bool {
        self.reusable
    }

    /// Did the head, a token, a finish reason or a higher count come since the last
    /// call? Bytes alone are no sign of life, and neither are events that say nothing:
    /// a server may send them for ever.
    pub(crate) fn take_heard(&mut self) -> bool {
        std::mem::take(&mut self.heard)
    }

    /// Tokens since the last call, as well as can be told while they come.
    pub(crate) fn take_fresh_tokens(&mut self) -> u32 {
        std::mem::take(&mut self.fresh_tokens)
    }

    /// The record and the chunk times. `secret` is blotted out of messages.
    pub(crate) fn into_record(
        self,
        sent: &Sent,
        secret: Option<&str>,
    ) -> (RequestRecord, Option<ChunkTrace>) {
        let counted_by = if self.tally.completion_tokens.is_none() && self.chunks > 0 {
            TokenCount::Chunks
        } else {
            TokenCount::Usage
        };
        let completion_tokens = match counted_by {
            TokenCount::Usage => self.tally.completion_tokens,
            TokenCount::Chunks => Some(self.chunks),
        };
        // Counts that fall, or exceed the total, are not the counts of this reply.
        let fits = self.tally.running_fits();
        let failure = self.failure.map(|failure| Failure {
            message: presentable(&failure.message, secret),
            ..failure
        });
        let record = RequestRecord {
            stage: sent.stage,
            seq: sent.seq,
            prompt: sent.prompt,
            sent_ns: sent.sent_ns,
            intended_ns: sent.intended_ns,
            turn: sent.turn,
            asked_tokens: sent.asked_tokens,
            connect_ns: sent.connect_ns,
            headers_ns: self.headers_ns,
            ttft_ns: self.ttft_ns,
            first_answer_ns: self.first_answer_ns,
            e2el_ns: self.last_token_ns,
            end_ns: self.end_ns.unwrap_or(self.last_byte_ns),
            prompt_tokens: self.tally.prompt_tokens,
            completion_tokens,
            first_chunk_tokens: self.first_chunk_tokens.filter(|_| fits),
            cached_tokens: self.tally.cached_tokens(),
            reasoning_tokens: self.tally.reasoning_tokens,
            chunks: self.chunks,
            coalesced_chunks: self.coalesced,
            counted_by,
            done_seen: self.done_ns.is_some(),
            finish_reason: self.tally.finish_reason,
            simulated: self.head.is_some_and(|head| head.simulated),
            failure,
        };
        let trace = (!self.gaps_us.is_empty()).then_some(ChunkTrace {
            gaps_us: self.gaps_us,
            tokens: if self.counted && fits {
                self.tokens
            } else {
                Vec::new()
            },
        });
        (record, trace)
    }

    fn on_head(&mut self, head: Head, at_ns: u64) {
        self.headers_ns = Some(at_ns);
        self.heard = true;
        let stream = head.content_type.as_deref() == Some("text/event-stream");
        self.mode = if head.status == 200 && stream {
            Mode::Stream
        } else {
            Mode::Other(Vec::new())
        };
        let encoding = head.encoding.clone().filter(|_| head.status == 200);
        self.head = Some(head);
        if let Some(encoding) = encoding {
            let message = format!(
                "The reply is compressed ({encoding}) although it was asked for uncompressed, and compression hides when tokens come. Switch it off in the server or in the proxy before it."
            );
            self.fail(FailureKind::BadReply, message, at_ns);
        }
    }

    fn on_body(&mut self, body: &[u8], at_ns: u64) {
        match &mut self.mode {
            Mode::Stream => self.on_stream(body, at_ns),
            Mode::Other(kept) => {
                let room = MAX_OTHER_BODY - kept.len();
                kept.extend_from_slice(body.get(..room.min(body.len())).unwrap_or_default());
                if body.len() > room {
                    self.judge_other(at_ns);
                }
            }
            Mode::Head => {}
        }
    }

    fn on_stream(&mut self, body: &[u8], at_ns: u64) {
        let mut events = std::mem::take(&mut self.events);
        let mut input = body;
        while self.end_ns.is_none() && self.done_ns.is_none() {
            match events.next(&mut input) {
                Ok(Some(event)) => self.on_event(event.name, event.data, at_ns),
                Ok(None) => break,
                Err(error) => self.fail(FailureKind::BadReply, error.to_string(), at_ns),
            }
        }
        self.events = events;
    }

    fn on_event(&mut self, name: &[u8], data: &[u8], at_ns: u64) {
        if data == b"[DONE]" {
            self.heard = true;
            self.done_ns = Some(at_ns);
            return;
        }
        let meaning = match self.tally.take(data) {
            Ok(meaning) => meaning,
            // Named events are extras, and need not be JSON; an error is one.
            Err(chunk::ChunkError::NotJson(_)) if !matches!(name, b"" | b"message" | b"error") => {
                return;
            }
            Err(error) => return self.fail(FailureKind::BadReply, error.to_string(), at_ns),
        };
        self.heard |= meaning.news;
        if !meaning.token {
            return;
        }
        let at_us = at_ns / 1000;
        let before_us = self.last_token_ns.map_or(0, |before| before / 1000);
        self.gaps_us
            .push(u32::try_from(at_us.saturating_sub(before_us)).unwrap_or(u32::MAX));
        if self.chunks > 0 && self.last_token_ns == Some(at_ns) {
            self.coalesced += 1;
            // The time to the first token is that of its whole read: what came with
            // it is part of n₁, or the time per token would come out too short.
            if self.ttft_ns == Some(at_ns) {
                self.first_chunk_tokens = self
                    .first_chunk_tokens
                    .zip(meaning.tokens)
                    .map(|(first, more)| first.saturating_add(more));
            }
        }
        if self.chunks == 0 {
            self.ttft_ns = Some(at_ns);
            // A count that has not risen yet tells nothing about this chunk.
            self.first_chunk_tokens = meaning.tokens.filter(|tokens| *tokens > 0);
        }
        if meaning.answer && self.first_answer_ns.is_none() {
            self.first_answer_ns = Some(at_ns);
        }
        self.looping.take(meaning.text.as_bytes());
        if let Some(kept) = &mut self.text
            && kept.len() < MAX_TEXT
        {
            kept.push_str(&chunk::content(data));
        }
        match meaning.tokens {
            Some(tokens) if self.counted => self.tokens.push(tokens),
            Some(_) => {}
            None => self.counted = false,
        }
        self.chunks += 1;
        self.last_token_ns = Some(at_ns);
        // The server's numbers may be anything; this one is for show.
        self.fresh_tokens = self
            .fresh_tokens
            .saturating_add(meaning.tokens.unwrap_or(1));
        let most = self
            .asked
            .saturating_mul(OVERSHOOT)
            .saturating_add(OVERSHOOT_FREE);
        if self.chunks > most {
            let message = format!(
                "The reply went on far beyond the {} tokens that were asked for; the server ignores max_tokens. Let the server, or the proxy before it, respect max_tokens.",
                self.asked
            );
            self.fail(FailureKind::BadReply, message, at_ns);
        }
    }

    /// The body is over. `clean`: nothing came behind it.
    fn on_end(&mut self, at_ns: u64, clean: bool) {
        self.reusable = clean && self.head.as_ref().is_some_and(|head| head.keep_alive);
        if self.mode != Mode::Stream {
            return self.judge_other(at_ns);
        }
        // A last event without its blank line: taken if it is whole.
        let mut events = std::mem::take(&mut self.events);
        if self.done_ns.is_none()
            && let Some(event) = events.finish()
            && (event.data == b"[DONE]"
                || serde_json::from_slice::<serde::de::IgnoredAny>(event.data).is_ok())
        {
            self.on_event(event.name, event.data, self.last_byte_ns);
        }
        if self.end_ns.is_some() {
            return;
        }
        if self.is_whole() {
            self.succeed(at_ns);
        } else {
            let message = format!(
                "The stream ended without [DONE], and without finish reason and usage, after {} token chunks. Look at the server's log.",
                self.chunks
            );
            self.fail(FailureKind::Broken, message, at_ns);
        }
    }

    /// Did everything come that makes a reply?
    fn is_whole(&self) -> bool {
        self.done_ns.is_some()
            || (self.tally.finish_reason.is_some() && self.tally.completion_tokens.is_some())
    }

    /// A whole stream; what is in it decides.
    fn succeed(&mut self, at_ns: u64) {
        if let Some(reason @ ("abort" | "error")) = self.tally.finish_reason.as_deref() {
            let message = format!(
                "The engine gave the request up (finish reason `{reason}`) after {} token chunks. Look at the server's log.",
                self.chunks
            );
            return self.fail_with(FailureKind::BadReply, message, at_ns);
        }
        if self.chunks == 0 || self.tally.completion_tokens == Some(0) {
            let message = "The reply is proper but holds no token. Check the prompt, the model and ignore_eos.".to_owned();
            return self.fail_with(FailureKind::Empty, message, at_ns);
        }
        self.end_ns = Some(at_ns);
    }

    /// A reply that is no stream is a failure; which one, its head and body tell.
    fn judge_other(&mut self, at_ns: u64) {
        let Mode::Other(body) = std::mem::replace(&mut self.mode, Mode::Head) else {
            return;
        };
        let Some(head) = &self.head else { return };
        let said = chunk::error_message(&body);
        let (kind, message) = if head.status != 200 {
            (
                FailureKind::Status,
                status_message(head, said.as_deref(), &body),
            )
        } else if let Some(said) = said {
            (
                FailureKind::BadReply,
                format!("The server reported an error: {said}"),
            )
        } else {
            (FailureKind::BadReply, no_stream_message(head, &body))
        };
        self.fail_with(kind, message, at_ns);
    }

    /// Fails where the rest of the reply will not be read.
    fn fail(&mut self, kind: FailureKind, message: String, at_ns: u64) {
        self.reusable = false;
        self.fail_with(kind, message, at_ns);
    }

    fn fail_with(&mut self, kind: FailureKind, message: String, at_ns: u64) {
        self.failure = Some(Failure {
            kind,
            message,
            http_status: self.head.as_ref().map(|head| head.status),
        });
        self.end_ns = Some(at_ns);
    }
}

fn status_message(head: &Head, said: Option<&str>, body: &[u8]) -> String {
    let status = head.status;
    if (300..400).contains(&status) {
        let to = head.location.as_deref().unwrap_or("another address");
        return format!(
            "The server answered {status} and points to {to}. Measure that address instead; redirects are not followed."
        );
    }
    let said = said.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    let wait = head
        .retry_after
        .as_deref()
        .map_or_else(String::new, |wait| {
            format!(" (Retry-After: {wait}, which is not waited for)")
        });
    if said.trim().is_empty() {
        format!("The server answered {status} without a message{wait}.")
    } else {
        format!("The server answered {status}{wait}: {said}")
    }
}

fn no_stream_message(head: &Head, body: &[u8]) -> String {
    if serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() {
        return "The server answered without streaming, so there is no time to first token. Let the server, or the proxy before it, support \"stream\": true.".to_owned();
    }
    let kind = head
        .content_type
        .as_deref()
        .unwrap_or("something without a content type");
    format!(
        "The server answered with {kind} instead of an event stream. Check that the address is an OpenAI-compatible server."
    )
}

/// One line of at most [`MAX_MESSAGE`] characters, without the secret.
pub(crate) fn presentable(message: &str, secret: Option<&str>) -> String {
    let clean = match secret {
        Some(secret) if !secret.is_empty() => message.replace(secret, "•••"),
        _ => message.to_owned(),
    };
    let words: Vec<&str> = clean
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    if line.chars().count() <= MAX_MESSAGE {
        return line;
    }
    line.chars().take(MAX_MESSAGE - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SENT: Sent = Sent {
        stage: 1,
        seq: 2,
        prompt: 3,
        sent_ns: 4,
        intended_ns: None,
        turn: None,
        asked_tokens: None,
        connect_ns: None,
    };
    const HEAD: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

    type Recorded = (RequestRecord, Option<ChunkTrace>);

    /// The record of a reply whose pieces come a millisecond apart, then EOF.
    fn record(pieces: &[&[u8]]) -> Recorded {
        let mut reply = Reply::new(256);
        for (at, piece) in (1_u64..).zip(pieces) {
            if !reply.is_over() {
                reply.on_bytes(piece, at * 1_000_000);
            }
        }
        reply.on_eof(None, 1_000_000_000);
        reply.into_record(&SENT, Some("sk-key"))
    }

    fn stream(body: &str) -> Recorded {
        record(&[HEAD.as_bytes(), body.as_bytes()])
    }

    fn kind(recorded: &Recorded) -> Option<FailureKind> {
        recorded.0.failure.as_ref().map(|failure| failure.kind)
    }

    fn events(text: &str) -> Vec<Vec<u8>> {
        let mut pieces = vec![HEAD.as_bytes().to_vec()];
        pieces.extend(
            text.split_inclusive("\n\n")
                .map(|event| event.as_bytes().to_vec()),
        );
        pieces
    }

    fn recorded_sample(text: &str) -> Recorded {
        let pieces = events(text);
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        record(&pieces)
    }

    #[test]
    fn sglang_chat_with_running_usage() {
        let (record, trace) = recorded_sample(include_str!(
            "../tests/fixtures/sglang_chat_running_usage.sse"
        ));
        assert_eq!(record.failure, None);
        // The head and the role chunk come first: the first token is in piece 3.
        assert_eq!(record.headers_ns, Some(1_000_000));
        assert_eq!(record.ttft_ns, Some(3_000_000));
        assert_eq!(record.first_answer_ns, Some(3_000_000));
        assert_eq!(record.e2el_ns, Some(6_000_000));
        assert_eq!(record.completion_tokens, Some(4));
        assert_eq!(record.first_chunk_tokens, Some(1));
        assert_eq!(record.prompt_tokens, Some(5));
        assert_eq!(record.reasoning_tokens, Some(0));
        assert_eq!(record.cached_tokens, None);
        assert_eq!((record.chunks, record.coalesced_chunks), (4, 0));
        assert_eq!(record.counted_by, TokenCount::Usage);
        assert!(record.done_seen);
        assert_eq!(record.finish_reason.as_deref(), Some("length"));
        let trace = trace.expect("a trace");
        assert_eq!(trace.gaps_us, [3000, 1000, 1000, 1000]);
        assert_eq!(trace.tokens, [1, 1, 1, 1]);
    }

    #[test]
    fn sglang_completions_with_usage_at_the_end() {
        let (record, trace) =
            recorded_sample(include_str!("../tests/fixtures/sglang_completions.sse"));
        assert_eq!(record.failure, None);
        // One of the four chunks is empty: it is no token chunk.
        assert_eq!(record.chunks, 3);
        assert_eq!(record.completion_tokens, Some(4));
        assert_eq!(record.first_chunk_tokens, None);
        assert_eq!(record.ttft_ns, Some(2_000_000));
        assert_eq!(record.e2el_ns, Some(5_000_000));
        let trace = trace.expect("a trace");
        assert_eq!(trace.gaps_us, [2000, 1000, 2000]);
        assert!(trace.tokens.is_empty());
    }

    #[test]
    fn vllm_chat_with_usage_at_the_end() {
        let (record, _) = recorded_sample(include_str!("../tests/fixtures/vllm_chat.sse"));
        assert_eq!(record.failure, None);
        assert_eq!((record.chunks, record.completion_tokens), (6, Some(6)));
        assert_eq!(record.ttft_ns, Some(3_000_000));
        assert_eq!(record.e2el_ns, Some(8_000_000));
    }

    #[test]
    fn chunks_of_one_read_share_its_stamp() {
        let chunk = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
        let two = chunk.repeat(2);
        let (record, trace) = record(&[
            HEAD.as_bytes(),
            chunk.as_bytes(),
            two.as_bytes(),
            b"data: [DONE]\n\n",
        ]);
        assert_eq!((record.chunks, record.coalesced_chunks), (3, 1));
        assert_eq!(trace.expect("a trace").gaps_us, [2000, 1000, 0]);
        assert_eq!(record.counted_by, TokenCount::Chunks);
        assert_eq!(record.completion_tokens, Some(3));
    }

    #[test]
    fn what_came_with_the_first_token_is_counted_with_it() {
        let chunk = |count: u32| {
            format!(
                "data: {{\"choices\":[{{\"text\":\"a\"}}],\"usage\":{{\"completion_tokens\":{count}}}}}\n\n"
            )
        };
        let first = [chunk(1), chunk(3), chunk(4)].concat();
        let (record, _) = record(&[
            HEAD.as_bytes(),
            first.as_bytes(),
            chunk(5).as_bytes(),
            b"data: [DONE]\n\n",
        ]);
        assert_eq!(record.failure, None);
        assert_eq!((record.chunks, record.coalesced_chunks), (4, 2));
        assert_eq!(record.first_chunk_tokens, Some(4));
        assert_eq!(record.completion_tokens, Some(5));
    }

    #[test]
    fn thinking_comes_before_the_answer() {
        let (record, _) = record(&[
            HEAD.as_bytes(),
            b"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
            b"data: {\"choices\":[{\"delta\":{\"content\":\"yes\"}}]}\n\n",
            b"data: [DONE]\n\n",
        ]);
        assert_eq!(record.ttft_ns, Some(2_000_000));
        assert_eq!(record.first_answer_ns, Some(3_000_000));
    }

    #[test]
    fn the_text_is_kept_where_it_is_wanted() {
        let body = concat!(
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"a \\\"b\\\"\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":null}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\n\\u00e9\"},\"finish_reason\":\"stop\"}]}\n\n",
            "data: [DONE]\n\n",
        );
        let text = |keep: bool| {
            let mut reply = Reply::new(256);
            if keep {
                reply.keep_text();
            }
            reply.on_bytes(HEAD.as_bytes(), 1);
            reply.on_bytes(body.as_bytes(), 2);
            reply.take_text()
        };
        assert_eq!(text(true), "a \"b\"\né");
        assert_eq!(text(false), "");
        // A server that writes without end fills no memory.
        let mut reply = Reply::new(256);
        reply.keep_text();
        reply.on_bytes(HEAD.as_bytes(), 1);
        let long = format!(
            "data: {{\"choices\":[{{\"text\":\"{}\"}}]}}\n\n",
            "x".repeat(MAX_TEXT - 1)
        );
        for _ in 0..4 {
            reply.on_bytes(long.as_bytes(), 2);
        }
        assert_eq!(reply.take_text().len(), 2 * (MAX_TEXT - 1));
    }

    #[test]
    fn a_count_that_has_not_risen_is_no_count_of_the_first_chunk() {
        let chunk = |count: u32| {
            format!(
                "data: {{\"choices\":[{{\"text\":\"a\"}}],\"usage\":{{\"completion_tokens\":{count}}}}}\n\n"
            )
        };
        let (late, trace) = stream(&[chunk(0), chunk(2), chunk(4)].concat());
        assert_eq!(late.first_chunk_tokens, None);
        assert_eq!(late.completion_tokens, Some(4));
        assert_eq!(trace.expect("a trace").tokens, [0, 2, 2]);
    }

    #[test]
    fn counts_beyond_the_total_are_dropped() {
        let chunk = |usage: &str| {
            format!(
                "data: {{\"choices\":[{{\"text\":\"a\"}}],\"usage\":{{\"completion_tokens\":{usage}}}}}\n\n"
            )
        };
        let total =
            "data: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";
        // Up, down, and up again: what rose is counted once, and never negative.
        let text = chunk("4294967295") + &chunk("1") + &chunk("null") + total;
        let mut reply = Reply::new(256);
        reply.on_bytes(HEAD.as_bytes(), 1);
        reply.on_bytes(text.as_bytes(), 2);
        assert_eq!(reply.take_fresh_tokens(), u32::MAX);
        reply.on_eof(None, 3);
        let (record, trace) = reply.into_record(&SENT, None);
        assert_eq!(record.failure, None);
        assert_eq!(record.completion_tokens, Some(3));
        assert_eq!(record.first_chunk_tokens, None);
        let trace = trace.expect("a trace");
        assert_eq!((trace.gaps_us.len(), trace.tokens.len()), (3, 0));
    }

    #[test]
    fn running_counts_that_are_none_are_told_and_dropped() {
        let seen = |running: &[Option<u32>], total: u32| {
            let mut text = String::new();
            for count in running {
                let usage = count.map_or_else(
                    || "null".to_owned(),
                    |count| format!("{{\"completion_tokens\":{count}}}"),
                );
                text +=
                    &format!("data: {{\"choices\":[{{\"text\":\"a\"}}],\"usage\":{usage}}}\n\n");
            }
            text += &format!(
                "data: {{\"choices\":[],\"usage\":{{\"completion_tokens\":{total}}}}}\n\ndata: [DONE]\n\n"
            );
            let mut reply = Reply::new(256);
            reply.on_bytes(HEAD.as_bytes(), 1);
            // A chunk a read, so that n₁ is that of the first.
            for (event, at_ns) in text.split_inclusive("\n\n").zip(2..) {
                reply.on_bytes(event.as_bytes(), at_ns);
            }
            reply.on_eof(None, 99);
            let odd = reply.seen().odd_usage;
            let (record, trace) = reply.into_record(&SENT, None);
            assert_eq!(record.completion_tokens, Some(total));
            let tokens = trace.expect("a trace").tokens;
            (odd, record.first_chunk_tokens, tokens)
        };
        let all = |counts: &[u32]| counts.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(
            seen(&all(&[2, 3, 5]), 5),
            (false, Some(2), vec![2, 1, 2]),
            "as it should be"
        );
        let dropped = (true, None, vec![]);
        assert_eq!(seen(&all(&[100, 200, 300]), 3), dropped, "beyond the end");
        assert_eq!(seen(&all(&[1, 2, 100]), 3), dropped, "in the end");
        assert_eq!(seen(&all(&[3, 2, 1]), 3), dropped, "falling");
        assert_eq!(seen(&all(&[2, 1, 3]), 3), dropped, "to and fro");
        assert_eq!(seen(&all(&[1, 2, 0]), 3), dropped, "to nothing");
        // One count tells enough where it cannot be.
        assert_eq!(seen(&[None, Some(100), None], 3), dropped);
        assert_eq!(seen(&[Some(2), None, Some(1)], 3), dropped);
        // Counts that fall short are a part all the same.
        assert_eq!(seen(&all(&[1, 2, 2]), 3), (true, Some(1), vec![1, 1, 0]));
        assert_eq!(seen(&[Some(1), None, None], 3), (false, Some(1), vec![]));
        assert_eq!(seen(&[None, None, None], 3), (false, None, vec![]));
        assert_eq!(seen(&all(&[0, 0, 0]), 3), (false, None, vec![0, 0, 0]));
    }

    #[test]
    fn a_missing_done_needs_reason_and_usage() {
        let text = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n";
        let usage = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\n";
        let whole = stream(&format!("{text}{usage}"));
        assert_eq!(kind(&whole), None);
        assert!(!whole.0.done_seen);
        assert_eq!(kind(&stream(text)), Some(FailureKind::Broken));
        assert_eq!(kind(&stream(usage)), Some(FailureKind::Broken));
        // Without its last blank line.
        assert!(stream(&format!("{text}data: [DONE]")).0.done_seen);
        // In the middle of an event.
        assert_eq!(kind(&stream(&text[..20])), Some(FailureKind::Broken));
    }

    #[test]
    fn replies_without_tokens() {
        let empty = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n";
        let usage = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":0}}\n\n";
        let done = "data: [DONE]\n\n";
        assert_eq!(
            kind(&stream(&format!("{empty}{usage}{done}"))),
            Some(FailureKind::Empty)
        );
        assert_eq!(kind(&stream(done)), Some(FailureKind::Empty));
    }

    #[test]
    fn errors_within_the_stream() {
        let text = "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"error\":{\"message\":\"out of\\nmemory for sk-key\"}}\n\ndata: [DONE]\n\n";
        let (record, _) = stream(text);
        let failure = record.failure.expect("a failure");
        assert_eq!(failure.kind, FailureKind::BadReply);
        assert!(
            failure.message.ends_with("out of memory for •••"),
            "{}",
            failure.message
        );
        assert_eq!(failure.http_status, Some(200));
        let aborted = "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"abort\"}]}\n\ndata: [DONE]\n\n";
        assert_eq!(kind(&stream(aborted)), Some(FailureKind::BadReply));
        // Extras that are no JSON do no harm.
        let extra =
            "event: extra\ndata: 1,2\n\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n";
        assert_eq!(kind(&stream(extra)), None);
    }

    #[test]
    fn replies_that_are_no_stream() {
        let whole = |text: &str| record(&[text.as_bytes()]);
        let moved = whole(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://b/\r\nContent-Length: 0\r\n\r\n",
        );
        assert_eq!(kind(&moved), Some(FailureKind::Status));
        assert!(
            moved
                .0
                .failure
                .expect("a failure")
                .message
                .contains("https://b/")
        );
        let refused =
            whole("HTTP/1.1 404 Not Found\r\nContent-Length: 20\r\n\r\n{\"detail\":\"no such\"}");
        let failure = refused.0.failure.expect("a failure");
        assert_eq!(
            (failure.kind, failure.http_status),
            (FailureKind::Status, Some(404))
        );
        assert_eq!(failure.message, "The server answered 404: no such");
        let at_once = whole(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"choices\":[]}",
        );
        assert!(
            at_once
                .0
                .failure
                .expect("a failure")
                .message
                .contains("without streaming")
        );
        let page =
            whole("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>");
        assert_eq!(kind(&page), Some(FailureKind::BadReply));
        let packed = whole(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\nxx",
        );
        assert!(
            packed
                .0
                .failure
                .expect("a failure")
                .message
                .contains("compressed")
        );
        assert_eq!(kind(&record(&[])), Some(FailureKind::Broken));
    }

    #[test]
    fn what_follows_done_is_not_waited_for() {
        let mut reply = Reply::new(256);
        reply.on_bytes(HEAD.as_bytes(), 1);
        reply.on_bytes(
            b"data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n",
            5,
        );
        assert!(reply.is_done() && !reply.is_over());
        assert!(!reply.seen().left_open);
        reply.on_idle(9.0, 2_000_000_005);
        assert!(reply.seen().left_open && !reply.is_reusable());
        let (record, _) = reply.into_record(&SENT, None);
        assert_eq!((record.failure, record.end_ns), (None, 5));
    }

    #[test]
    fn stalled_and_cancelled() {
        let mut reply = Reply::new(256);
        reply.on_bytes(HEAD.as_bytes(), 1);
        reply.on_idle(9.0, 7);
        assert_eq!(
            kind(&reply.into_record(&SENT, None)),
            Some(FailureKind::Stalled)
        );
        let mut reply = Reply::new(256);
        reply.on_cancel(7);
        let (record, _) = reply.into_record(&SENT, None);
        assert!(record.is_cancelled());
        assert_eq!(record.end_ns, 7);
    }

    #[test]
    fn a_reply_far_beyond_what_was_asked_for_is_cut_off() {
        let chunk = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
        let reply_of = |chunks: usize| {
            let mut reply = Reply::new(10);
            reply.on_bytes(HEAD.as_bytes(), 1);
            reply.on_bytes(chunk.repeat(chunks).as_bytes(), 2);
            reply
        };
        assert!(!reply_of(1040).is_over());
        let reply = reply_of(2000);
        assert!(reply.is_over() && !reply.is_reusable());
        let (record, _) = reply.into_record(&SENT, None);
        assert_eq!(record.chunks, 1041);
        let failure = record.failure.expect("a failure");
        assert_eq!(failure.kind, FailureKind::BadReply);
        assert!(
            failure.message.contains("beyond the 10 tokens"),
            "{}",
            failure.message
        );
        // No overflow, whatever was asked for.
        let mut reply = Reply::new(u32::MAX);
        reply.on_bytes(HEAD.as_bytes(), 1);
        reply.on_bytes(chunk.as_bytes(), 2);
        assert!(!reply.is_over());
    }

    #[test]
    fn comments_and_events_that_say_nothing_are_no_sign_of_life() {
        let mut reply = Reply::new(10);
        let mut heard = |text: &str| {
            reply.on_bytes(text.as_bytes(), 1);
            reply.take_heard()
        };
        assert!(!heard(&HEAD[..20]));
        assert!(heard(&HEAD[20..]));
        assert!(!heard(": ping\n\n"));
        assert!(!heard("data: {\"choices\":[]}\n\n"));
        assert!(!heard(
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n"
        ));
        assert!(!heard("event: extra\ndata: 1,2\n\n"));
        assert!(!heard("data: {\"choices\":[{\"text\""));
        assert!(heard(":\"a\"}]}\n\n"));
        assert!(!heard(": ping\n\n"));
        assert!(heard("data: [DONE]\n\n"));
    }

    #[test]
    fn messages_are_cut_between_characters() {
        let long = presentable(&"é".repeat(400), None);
        assert_eq!(long.chars().count(), MAX_MESSAGE);
    }

    /// A stream of events as a server might send it, in chunks of any size.
    fn framed(events: &[(u8, String)], sizes: &[usize], extension: bool) -> Vec<u8> {
        let mut body = Vec::new();
        for ((kind, text), count) in events.iter().zip(1_u32..) {
            let json = serde_json::to_string(text).expect("text");
            body.extend_from_slice(
                match kind % 6 {
                    0 => format!(
                        "data: {{\"choices\":[{{\"text\":{json}}}],\"usage\":{{\"completion_tokens\":{count}}}}}\n\n"
                    ),
                    1 => format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{json}}}}}]}}\r\n\r\n"),
                    2 => format!(": {}\n\n", text.replace(['\r', '\n'], " ")),
                    3 => format!("event: extra\rdata: {json}\r\r"),
                    4 => "data: {\"choices\":[],\ndata: \"usage\":null}\n\n".to_owned(),
                    _ => format!(
                        "id: 1\r\ndata: {{\"choices\":[{{\"delta\":{{\"reasoning\":{json},\"tool_calls\":[]}}}}]}}\n\n"
                    ),
                }
                .as_bytes(),
            );
        }
        body.extend_from_slice(b"data: [DONE]\n\n");
        let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        let mut sizes = sizes.iter().cycle();
        let mut rest = body.as_slice();
        while !rest.is_empty() {
            let size = sizes.next().map_or(1, |size| (*size).clamp(1, rest.len()));
            let (chunk, after) = rest.split_at(size);
            let note = if extension { ";a=b" } else { "" };
            bytes.extend_from_slice(format!("{size:x}{note}\r\n").as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
            rest = after;
        }
        bytes.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
        bytes
    }

    /// The record of bytes that all came at the same time, in these pieces.
    fn at_once<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Recorded {
        let mut reply = Reply::new(64);
        for piece in pieces {
            reply.on_bytes(piece, 5_000_000);
        }
        assert!(reply.is_over());
        reply.into_record(&SENT, None)
    }

    proptest! {
        #[test]
        fn no_split_and_no_framing_changes_what_is_decoded(
            events in prop::collection::vec((any::<u8>(), ".{0,8}"), 0..20),
            sizes in prop::collection::vec(1_usize..300, 1..8),
            extension in any::<bool>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let bytes = framed(&events, &sizes, extension);
            let whole = at_once([bytes.as_slice()]);
            prop_assert_eq!(&at_once(bytes.chunks(1)), &whole);
            prop_assert_eq!(&at_once([framed(&events, &[usize::MAX], false).as_slice()]), &whole);
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            prop_assert_eq!(&at_once(at.windows(2).map(|pair| &bytes[pair[0]..pair[1]])), &whole);
        }

        #[test]
        fn splits_change_times_and_nothing_else(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
            let text = format!("{HEAD}{}", include_str!("../tests/fixtures/sglang_chat_running_usage.sse"));
            let bytes = text.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let (record, trace) = record(&pieces);
            prop_assert_eq!(record.failure, None);
            prop_assert_eq!((record.chunks, record.completion_tokens), (4, Some(4)));
            let trace = trace.expect("a trace");
            prop_assert_eq!(trace.tokens, vec![1, 1, 1, 1]);
            let sum: u32 = trace.gaps_us.iter().sum();
            prop_assert_eq!(Some(u64::from(sum) * 1000), record.e2el_ns);
        }
    }
}
