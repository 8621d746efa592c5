//! Conversations: a turn follows the answer to the one before.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::{
    Asked, Server, Then, done, event, json as reply_json, level, run, stream_head,
};
use tokdyno_domain::{
    meter::{MeterOutcome, MeterSpec},
    prompts::PromptSet,
    workload::Api,
};

/// Answers with what it was told last, after some reasoning.
fn echo(asked: &Asked, stream: &mut std::net::TcpStream) -> Then {
    let messages = asked.body["messages"].as_array().expect("a chat");
    let last = messages.last().expect("a message")["content"]
        .as_str()
        .expect("a text");
    stream_head(stream);
    let chunk = |delta: Value, count: u32| {
        json!({"choices": [{"delta": delta}], "usage": {"prompt_tokens": 7, "completion_tokens": count}})
            .to_string()
    };
    event(
        stream,
        &chunk(json!({"role": "assistant", "content": ""}), 0),
    );
    event(stream, &chunk(json!({"reasoning_content": "hm"}), 1));
    event(stream, &chunk(json!({"content": "You said \""}), 2));
    event(stream, &chunk(json!({"content": last}), 3));
    event(stream, &chunk(json!({"content": "\"."}), 4));
    done(stream)
}

fn spec(server: &Server, slots: u32, requests: u32, conversations: &[&[&str]]) -> MeterSpec {
    let mut spec = server.spec(vec![level(slots, requests)]);
    spec.workload.api = Api::Chat;
    spec.workload.warmup_requests = Some(0);
    spec.workload.prompts = PromptSet::Conversations {
        name: "talks.jsonl".to_owned(),
        conversations: conversations
            .iter()
            .map(|turns| turns.iter().map(|turn| (*turn).to_owned()).collect())
            .collect(),
    };
    spec
}

/// The last question of a request and how many messages came before.
fn asked(body: &Value) -> (String, usize) {
    let messages = body["messages"].as_array().expect("a chat");
    let last = messages.last().expect("a message");
    assert_eq!(last["role"], "user");
    (
        last["content"].as_str().expect("a text").to_owned(),
        messages.len() - 1,
    )
}

#[test]
fn each_turn_carries_what_was_said() {
    let server = Server::start(echo);
    let told = run(spec(&server, 1, 5, &[&["a", "b", "c"], &["x", "y"]]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let seen: Vec<(u64, Option<u32>)> = told
        .records()
        .iter()
        .map(|record| (record.prompt, record.turn))
        .collect();
    assert_eq!(
        seen,
        [
            (0, Some(0)),
            (0, Some(1)),
            (0, Some(2)),
            (1, Some(0)),
            (1, Some(1)),
        ]
    );
    assert!(told.records().iter().all(|record| record.is_success()));
    let bodies = server.bodies();
    assert_eq!(
        bodies[3]["messages"],
        json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "You said \"a\"."},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": "You said \"b\"."},
            {"role": "user", "content": "c"},
        ]),
        "content alone, no reasoning"
    );
    assert_eq!(asked(&bodies[4]), ("x".to_owned(), 0));
}

#[test]
fn a_failed_turn_ends_its_conversation() {
    let server = Server::start(|asked, stream| {
        // The second turn of the first conversation.
        if asked.number == 2 {
            return reply_json(stream, 500, r#"{"detail":"no"}"#);
        }
        echo(asked, stream)
    });
    let told = run(spec(&server, 1, 4, &[&["a", "b", "c"], &["x", "y"]]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let seen: Vec<(u64, Option<u32>, bool)> = told
        .records()
        .iter()
        .map(|record| (record.prompt, record.turn, record.is_success()))
        .collect();
    assert_eq!(
        seen,
        [
            (0, Some(0), true),
            (0, Some(1), false),
            (1, Some(0), true),
            (1, Some(1), true),
        ]
    );
}

#[test]
fn turns_count_as_requests_and_every_slot_has_its_own_conversation() {
    let server = Server::start(echo);
    // Seven turns: the last conversation is broken off.
    let mut spec = spec(&server, 3, 7, &[&["a", "b", "c"], &["x", "y"]]);
    spec.workload.warmup_requests = Some(3);
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert_eq!(told.records().len(), 7);
    let turns: HashSet<(u64, u32)> = told
        .records()
        .iter()
        .map(|record| (record.prompt, record.turn.expect("a turn")))
        .collect();
    assert_eq!(turns.len(), 7, "no turn comes twice");
    let prompts: HashSet<u64> = turns.iter().map(|(prompt, _)| *prompt).collect();
    assert!(prompts.len() >= 3, "{prompts:?}");
    // A turn comes after those before it.
    for (prompt, turn) in &turns {
        assert!((0..*turn).all(|earlier| turns.contains(&(*prompt, earlier))));
    }
    // The third conversation is the first one in its second pass.
    let firsts: HashSet<String> = server
        .bodies()
        .iter()
        .skip(4)
        .map(asked)
        .filter(|(_, before)| *before == 0)
        .map(|(question, _)| question)
        .collect();
    assert!(firsts.contains("(2) a"), "{firsts:?}");
}
