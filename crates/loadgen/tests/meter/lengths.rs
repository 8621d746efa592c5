//! Prompts of a wanted length, by the server's own count.

use std::net::TcpStream;

use crate::support::{Asked, Server, Then, done, event, level, proper, run, stream_head};
use tokdyno_domain::{meter::MeterOutcome, prompts::PromptSet, workload::Api};

/// Answers, and counts the prompt as a server does: so many tokens on top, and
/// `per_ten` tokens for ten words.
fn counting(overhead: usize, per_ten: usize) -> impl Fn(&Asked, &mut TcpStream) -> Then {
    move |asked, stream| {
        let prompt = match &asked.body["messages"] {
            serde_json::Value::Array(messages) => &messages[0]["content"],
            _ => &asked.body["prompt"],
        };
        let words = prompt.as_str().expect("a text").split(' ').count();
        let tokens = overhead + words * per_ten / 10;
        stream_head(stream);
        for token in 1..=asked.body["max_tokens"].as_u64().expect("a number") {
            event(
                stream,
                &format!(
                    r#"{{"choices":[{{"text":" a"}}],"usage":{{"prompt_tokens":{tokens},"completion_tokens":{token}}}}}"#
                ),
            );
        }
        done(stream)
    }
}

/// The prompt tokens of a stage whose server counts like this.
fn lengths(prompts: PromptSet, api: Api, overhead: usize, per_ten: usize) -> Vec<u32> {
    let server = Server::start(counting(overhead, per_ten));
    let mut spec = server.spec(vec![level(2, 8)]);
    spec.workload.prompts = prompts;
    spec.workload.api = api;
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let records = told.records();
    let lengths = records.iter().map(|record| record.prompt_tokens);
    lengths.map(|tokens| tokens.expect("told")).collect()
}

#[test]
fn random_prompts_are_as_long_as_asked() {
    let random = |tokens| PromptSet::Random { tokens };
    assert_eq!(lengths(random(100), Api::Completions, 0, 10), [100; 8]);
    assert_eq!(lengths(random(100), Api::Completions, 1, 10), [100; 8]);
    // A chat template around it.
    assert_eq!(lengths(random(2000), Api::Chat, 37, 10), [2000; 8]);
    // A tokenizer that makes more than one token of some words: as near as a
    // rounded line comes.
    for tokens in lengths(random(500), Api::Completions, 5, 13) {
        assert!(tokens.abs_diff(500) <= 2, "{tokens}");
    }
}

#[test]
fn beginnings_are_shared_and_the_whole_is_as_long_as_asked() {
    let shared = PromptSet::SharedPrefix {
        groups: 2,
        prefix_tokens: 60,
        tokens: 40,
    };
    assert_eq!(lengths(shared, Api::Completions, 4, 10), [100; 8]);
}

#[test]
fn a_server_that_does_not_count_prompts_is_asked_once() {
    let server = Server::start(|asked, stream| {
        stream_head(stream);
        for token in 1..=asked.body["max_tokens"].as_u64().expect("a number") {
            let usage = format!(r#"{{"completion_tokens":{token}}}"#);
            event(
                stream,
                &format!(r#"{{"choices":[{{"text":" a"}}],"usage":{usage}}}"#),
            );
        }
        done(stream)
    });
    let mut spec = server.spec(vec![level(1, 2)]);
    spec.workload.prompts = PromptSet::Random { tokens: 30 };
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let words: Vec<usize> = server
        .bodies()
        .iter()
        .map(|body| body["prompt"].as_str().expect("a text").split(' ').count())
        .collect();
    // The trial, the first question, the warm-up and the stage: a token a word.
    assert_eq!(words, [30, 15, 30, 30, 30]);
}

#[test]
fn a_server_that_fails_when_asked_ends_the_run_with_its_words() {
    let server = Server::start(|asked, stream| {
        if asked.number == 0 {
            return proper(asked, stream);
        }
        crate::support::json(stream, 500, r#"{"detail":"out of memory"}"#)
    });
    let mut spec = server.spec(vec![level(1, 2)]);
    spec.workload.prompts = PromptSet::Random { tokens: 30 };
    let told = run(spec);
    assert!(told.reason().contains("out of memory"), "{}", told.reason());
    assert_eq!(told.events.len(), 1);
}
