//! Replies that say the same over and over.

use crate::support::{Server, done, event, level, run, stream_head};
use tokdyno_domain::conditions::RepliesSeen;

/// What is seen of a server whose replies have so many tokens; every fourth of them
/// loops.
fn seen(tokens: u32) -> Option<RepliesSeen> {
    let server = Server::start(move |asked, stream| {
        stream_head(stream);
        for token in 1..=tokens {
            let word = if asked.number % 4 == 3 {
                0
            } else {
                token * 7919 + asked.number
            };
            event(
                stream,
                &format!(
                    r#"{{"choices":[{{"text":" {word:05}"}}],"usage":{{"completion_tokens":{token}}}}}"#
                ),
            );
        }
        done(stream)
    });
    let mut spec = server.spec(vec![level(1, 8)]);
    spec.workload.output_tokens = tokens;
    spec.workload.ignore_eos = false;
    // Numbers are counted from the first that counts.
    spec.workload.warmup_requests = Some(0);
    run(spec).conditions()[0].replies
}

#[test]
fn loops_are_counted_among_replies_long_enough_to_judge() {
    let replies = seen(100).expect("judged");
    assert_eq!(replies.judged, 8);
    assert!(replies.looping == 2, "{replies:?}");
    assert_eq!(seen(20), None);
}
