//! The founding figures: what the team wrote down before there was a tool.
//!
//! They are *recorded*, with every remark that belongs to them. No request
//! records stand behind them, each rests on one launch, and where notes disagree
//! the figure is marked as disputed and never called best.

use crate::{
    engine::EngineKind,
    source::Source,
    workload::{StageKind, StageSize, Workload},
};

/// The model of the founding notes.
pub const MODEL: &str = "Kimi-K2.5 INT4";
/// The hardware of the founding notes.
pub const HARDWARE: &str = "8 × RTX PRO 6000 Blackwell";

/// A configuration as the notes record it.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedConfiguration {
    /// Stable identity, so that loading twice stores once.
    pub id: &'static str,
    /// Name of the configuration.
    pub name: &'static str,
    /// Its engine.
    pub engine: EngineKind,
    /// Single-stream speed in tok/s.
    pub single_stream: Option<RecordedFigure>,
    /// Output tokens per second at C = 128.
    pub output_at_128: Option<RecordedFigure>,
    /// Acceptance of drafted tokens.
    pub acceptance: Option<RecordedAcceptance>,
    /// What a reader must know.
    pub remarks: &'static [&'static str],
    /// Single requests that the notes print.
    pub requests: &'static [RecordedRequest],
}

/// A figure as recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordedFigure {
    /// In tok/s.
    pub value: f64,
    /// *Recorded*, or *estimated* where the notes call it so.
    pub source: Source,
    /// Notes disagree about it.
    pub disputed: bool,
    /// Why.
    pub remark: Option<&'static str>,
}

/// An acceptance as recorded, with the definition it was read under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedAcceptance {
    /// As written in the notes.
    pub text: &'static str,
    /// What that number means.
    pub definition: &'static str,
}

/// A single request that the notes print.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct RecordedRequest {
    /// Prompt tokens.
    pub prompt_tokens: u32,
    /// Completion tokens.
    pub completion_tokens: u32,
    /// Wall time in seconds, rounded as printed.
    pub seconds: f64,
    /// Printed time per token in ms; by the arithmetic it includes the first token.
    pub ms_per_token: f64,
    /// Printed speed in tok/s.
    pub tps: f64,
}

const fn recorded(value: f64) -> Option<RecordedFigure> {
    Some(RecordedFigure {
        value,
        source: Source::Recorded,
        disputed: false,
        remark: None,
    })
}

/// The rate that SGLang of that time logged counts the bonus token of every step,
/// so with four draft tokens it cannot fall below 25 %.
const LOGGED_RATE: &str = "rate as SGLang 0.5.8–0.5.9 logged it: (accepted + 1 bonus token per step) / (steps × draft tokens). With 4 draft tokens it cannot fall below 25 %, which means that no drafted token was accepted";

const CAP_48: &str = "SGLang runs at most 48 requests at once under EAGLE unless --max-running-requests is given; the C = 128 figure was probably measured under that cap.";
const ONE_LAUNCH: &str =
    "One launch; three prompts of 256 tokens for the single stream; no spread was recorded.";
const DRAFT_SETTINGS: &str = "Steps, top-k and draft tokens are not recorded; 3 / 1 / 4 is the drafter's published recommendation.";

/// All of them, in the order of the notes.
pub const CONFIGURATIONS: [RecordedConfiguration; 6] = [
    RecordedConfiguration {
        id: "vllm-baseline",
        name: "vLLM baseline",
        engine: EngineKind::Vllm,
        single_stream: recorded(82.5),
        output_at_128: recorded(1536.0),
        acceptance: None,
        remarks: &[
            ONE_LAUNCH,
            "Environment unknown: one note says the NCCL variables were vLLM's tuning, another that vLLM was not tuned with them. vLLM with the NCCL variables was not recorded apart.",
        ],
        requests: &[],
    },
    RecordedConfiguration {
        id: "sglang-base",
        name: "SGLang, CUDA graphs, triton, untuned",
        engine: EngineKind::Sglang,
        single_stream: recorded(63.6),
        output_at_128: recorded(2370.0),
        acceptance: None,
        remarks: &[ONE_LAUNCH],
        requests: &[],
    },
    RecordedConfiguration {
        id: "sglang-nccl-cd4",
        name: "SGLang, NCCL tuning + --num-continuous-decode-steps 4",
        engine: EngineKind::Sglang,
        single_stream: recorded(90.0),
        output_at_128: Some(RecordedFigure {
            value: 2320.0,
            source: Source::Estimated,
            disputed: true,
            remark: Some(
                "One note shows 2,320 as a measurement, another calls it an estimate: only the single stream was run.",
            ),
        }),
        acceptance: None,
        remarks: &[
            ONE_LAUNCH,
            "Two changes at once: the NCCL variables and --num-continuous-decode-steps 4. The flag has no effect in SGLang 0.3.6 to 0.5.23 as read, so the gain is the variables' alone.",
            "The printed requests give 256 tokens in 2.84 s, which is 90.0 tok/s with the time to the first token included.",
        ],
        requests: &[
            RecordedRequest {
                prompt_tokens: 18,
                completion_tokens: 256,
                seconds: 2.84,
                ms_per_token: 11.1,
                tps: 90.0,
            },
            RecordedRequest {
                prompt_tokens: 20,
                completion_tokens: 256,
                seconds: 2.85,
                ms_per_token: 11.1,
                tps: 89.9,
            },
            RecordedRequest {
                prompt_tokens: 19,
                completion_tokens: 256,
                seconds: 2.85,
                ms_per_token: 11.1,
                tps: 90.0,
            },
        ],
    },
    RecordedConfiguration {
        id: "sglang-aqmedai-eagle3",
        name: "SGLang + AQ-MedAI EAGLE-3 drafter",
        engine: EngineKind::Sglang,
        single_stream: recorded(62.9),
        output_at_128: recorded(849.0),
        acceptance: Some(RecordedAcceptance {
            text: "~42 %",
            definition: LOGGED_RATE,
        }),
        remarks: &[
            ONE_LAUNCH,
            CAP_48,
            DRAFT_SETTINGS,
            "If 4 tokens were drafted per step, ~42 % means an accept length of about 1.68: some 23 % of the drafted tokens were accepted.",
        ],
        requests: &[],
    },
    RecordedConfiguration {
        id: "sglang-custom-eagle3",
        name: "SGLang + own K2.5 EAGLE-3 drafter",
        engine: EngineKind::Sglang,
        single_stream: recorded(40.8),
        output_at_128: recorded(597.0),
        acceptance: Some(RecordedAcceptance {
            text: "25 % (\"broken\")",
            definition: LOGGED_RATE,
        }),
        remarks: &[ONE_LAUNCH, CAP_48, DRAFT_SETTINGS],
        requests: &[],
    },
    RecordedConfiguration {
        id: "vllm-eagle3",
        name: "vLLM + EAGLE-3 drafter",
        engine: EngineKind::Vllm,
        single_stream: None,
        output_at_128: None,
        acceptance: Some(RecordedAcceptance {
            text: "~15 %",
            definition: "definition not recorded; vLLM counts accepted / drafted, bonus tokens left out",
        }),
        remarks: &[
            "Only a ratio is recorded: 0.66 × the throughput of vLLM without the drafter, at an acceptance of about 15 %. No absolute figure.",
        ],
        requests: &[],
    },
];

/// The workload of the founding notes, as far as they state it: three prompts of
/// 256 tokens one after another, and C = 128 with four waves.
#[must_use]
pub fn workload() -> Workload {
    let levels = Workload::levels(Some(3), &[128], Some(StageSize::Requests { requests: 512 }));
    Workload {
        prompts: crate::prompts::PromptSet::Founding,
        ..Workload::with_levels("founding notes", levels)
    }
}

impl RecordedConfiguration {
    /// The figures with the stage they belong to.
    #[must_use]
    pub fn stages(&self) -> Vec<(StageKind, RecordedFigure)> {
        let single = self
            .single_stream
            .map(|figure| (StageKind::SingleStream, figure));
        let many = self
            .output_at_128
            .map(|figure| (StageKind::ClosedLoop { concurrency: 128 }, figure));
        single.into_iter().chain(many).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notes_are_complete_and_the_disputed_figure_is_marked() {
        let figures: Vec<_> = CONFIGURATIONS
            .iter()
            .map(|c| {
                (
                    c.single_stream.map(|f| f.value),
                    c.output_at_128.map(|f| f.value),
                )
            })
            .collect();
        assert_eq!(
            figures,
            [
                (Some(82.5), Some(1536.0)),
                (Some(63.6), Some(2370.0)),
                (Some(90.0), Some(2320.0)),
                (Some(62.9), Some(849.0)),
                (Some(40.8), Some(597.0)),
                (None, None),
            ]
        );
        let disputed: Vec<f64> = CONFIGURATIONS
            .iter()
            .flat_map(RecordedConfiguration::stages)
            .filter(|(_, figure)| figure.disputed)
            .map(|(_, figure)| figure.value)
            .collect();
        assert_eq!(disputed, [2320.0]);
        assert_eq!(workload().validate(), Ok(()));
    }

    #[test]
    fn the_printed_requests_agree_with_their_speed() {
        for request in CONFIGURATIONS.iter().flat_map(|c| c.requests) {
            let tps = f64::from(request.completion_tokens) / request.seconds;
            // Times are printed to 0.01 s, so speeds to about 0.2 %.
            assert!((tps - request.tps).abs() / request.tps < 0.003, "{tps}");
        }
    }
}
