//! Several tokens in a chunk: replies with known times, and the figures that must
//! come of them. No clock and no socket.

use proptest::prelude::*;
use tokdyno_domain::{
    metrics::{StageAsked, StageFigures, stage_figures},
    workload::StageKind,
};
use tokdyno_loadgen::Replay;

const MS: u64 = 1_000_000;
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// Is the running count told with each chunk?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    Running,
    AtTheEnd,
}

/// The figures of one reply whose chunks carry so many tokens, each token due
/// `step_ns` after its predecessor, the first after `ttft_ns`; a chunk comes when
/// its last token is due. `together` chunks are read at a time.
fn figures(
    packing: &[u32],
    ttft_ns: u64,
    step_ns: u64,
    together: usize,
    counts: Counts,
) -> StageFigures {
    let total: u32 = packing.iter().sum();
    let mut reply = Replay::new(total);
    reply.read(HEAD.as_bytes(), MS);
    let (mut sent, mut at_ns) = (0, 0);
    let mut waiting = String::new();
    for (place, tokens) in packing.iter().enumerate() {
        sent += tokens;
        at_ns = ttft_ns + step_ns * u64::from(sent - packing[0]);
        let text = "a".repeat(*tokens as usize);
        let usage = match counts {
            Counts::Running => format!(r#","usage":{{"completion_tokens":{sent}}}"#),
            Counts::AtTheEnd => String::new(),
        };
        waiting += &format!("data: {{\"choices\":[{{\"text\":\"{text}\"}}]{usage}}}\n\n");
        // The first comes by itself, as it does from an engine.
        if place == 0 || place % together == 0 || place + 1 == packing.len() {
            reply.read(waiting.as_bytes(), at_ns);
            waiting.clear();
        }
    }
    let end = format!(
        "data: {{\"choices\":[],\"usage\":{{\"completion_tokens\":{total}}}}}\n\ndata: [DONE]\n\n"
    );
    reply.read(end.as_bytes(), at_ns + MS);
    let traced = reply.finish(at_ns + 2 * MS);
    assert!(traced.0.is_success(), "{:?}", traced.0);
    let asked = StageAsked {
        kind: StageKind::SingleStream,
        output_tokens: total,
        exact_length: true,
        complete: true,
        prompt_tokens: None,
        goodput: None,
        cold_prompts: true,
    };
    stage_figures(&asked, &[traced])
}

fn close(figure: Option<f64>, expected: f64) {
    let figure = figure.expect("a figure");
    assert!(
        (figure / expected - 1.0).abs() < 0.01,
        "{figure} instead of {expected}"
    );
}

#[test]
fn one_four_and_mixed_tokens_a_chunk_have_the_same_speed() {
    let one = vec![1; 128];
    let four: Vec<u32> = std::iter::once(1)
        .chain(std::iter::repeat_n(4, 31))
        .chain([3])
        .collect();
    let mixed: Vec<u32> = (0..60).map(|place| [1, 3, 2, 4, 1][place % 5]).collect();
    for packing in [one, four, mixed] {
        let figures = figures(&packing, 50 * MS, 10 * MS, 1, Counts::Running);
        close(figures.ttft_ms.mean, 50.0);
        close(figures.tpot_ms.mean, 10.0);
        close(figures.itl_ms.mean, 10.0);
        close(figures.itl_ms.min, 10.0);
        close(figures.itl_ms.max, 10.0);
        let later: u32 = packing[1..].iter().sum();
        assert_eq!(figures.itl_ms.count, u64::from(later));
    }
}

#[test]
fn a_first_chunk_of_four_is_not_counted_as_one() {
    let packing = [4; 32];
    let told = figures(&packing, 50 * MS, 10 * MS, 1, Counts::Running);
    close(told.tpot_ms.mean, 10.0);
    // Where nobody tells, the first is taken as one token, and it is said.
    let untold = figures(&packing, 50 * MS, 10 * MS, 1, Counts::AtTheEnd);
    close(untold.tpot_ms.mean, 10.0 * 124.0 / 127.0);
    assert_eq!(untold.itl_ms.count, 0, "no counts, no figure");
    assert!(
        untold
            .flags
            .iter()
            .any(|flag| flag.sentence().contains("approximate"))
    );
}

proptest! {
    #[test]
    fn neither_packing_nor_reading_together_changes_the_speed(
        packing in prop::collection::vec(1_u32..9, 3..60),
        together in 1_usize..6,
        step_ms in 1_u64..50,
    ) {
        let figures = figures(&packing, 50 * MS, step_ms * MS, together, Counts::Running);
        close(figures.tpot_ms.mean, step_ms as f64);
        close(figures.itl_ms.mean, step_ms as f64);
        close(figures.itl_ms.min, step_ms as f64);
        close(figures.itl_ms.max, step_ms as f64);
    }
}
