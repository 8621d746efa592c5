//! How many chunks a second one core decodes, without any socket: HTTP chunks,
//! server-sent events, JSON, tallies, times. Prints a line of JSON per kind of
//! stream.

use std::time::Instant;

use tokdyno_loadgen::Replay;

/// Chunks of a reply.
const CHUNKS: u32 = 1000;
/// Replies of a round.
const REPLIES: u32 = 50;
/// Rounds; the median counts.
const ROUNDS: usize = 7;

fn main() {
    for (name, head, tail) in [
        (
            "chat",
            r#"{"id":"chatcmpl-stand-in-simulated-1234","object":"chat.completion.chunk","created":1790000000,"model":"stand-in","choices":[{"index":0,"delta":{"reasoning_content":null,"content":" word"},"logprobs":null,"finish_reason":null,"matched_stop":null}]"#,
            r#","prompt_tokens_details":null,"reasoning_tokens":0,"completion_tokens_details":null}}"#,
        ),
        (
            "completions",
            r#"{"id":"cmpl-stand-in-simulated-1234","object":"text_completion","created":1790000000,"model":"stand-in","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":null}]"#,
            "}}",
        ),
    ] {
        let pieces = pieces(head, tail);
        let mut rates: Vec<f64> = (0..ROUNDS).map(|_| rate(&pieces)).collect();
        rates.sort_by(f64::total_cmp);
        let bytes: usize = pieces.iter().map(Vec::len).sum();
        println!(
            "{}",
            serde_json::json!({
                "stream": name,
                "chunks_per_s": rates.get(ROUNDS / 2),
                "bytes_per_chunk": bytes / pieces.len(),
            })
        );
    }
}

/// A reply as it comes from a socket: the head, then a read for each chunk.
fn pieces(head: &str, tail: &str) -> Vec<Vec<u8>> {
    let chunk = |data: &str| format!("{:x}\r\ndata: {data}\n\n\r\n", data.len() + 8).into_bytes();
    let mut pieces = vec![
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec(),
    ];
    pieces.extend((1..=CHUNKS).map(|count| {
        chunk(&format!(
            r#"{head},"usage":{{"prompt_tokens":128,"total_tokens":{},"completion_tokens":{count}{tail}"#,
            128 + count
        ))
    }));
    pieces.push(chunk("[DONE]"));
    pieces.push(b"0\r\n\r\n".to_vec());
    pieces
}

/// Chunks a second of one round.
fn rate(pieces: &[Vec<u8>]) -> f64 {
    let began = Instant::now();
    let mut chunks = 0;
    for _ in 0..REPLIES {
        let mut reply = Replay::new(CHUNKS);
        for (piece, at_ms) in pieces.iter().zip(1_u64..) {
            reply.read(piece, at_ms * 1_000_000);
        }
        let (record, trace) = reply.finish(u64::MAX);
        assert!(record.is_success(), "{record:?}");
        chunks += trace.map_or(0, |trace| trace.tokens.len());
    }
    chunks as f64 / began.elapsed().as_secs_f64()
}
