//! What was asked of a stage.

use crate::{
    goodput::Bounds,
    prompts::PromptSet,
    workload::{StageKind, Workload},
};

/// What was asked of a stage, as far as its figures need it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageAsked {
    /// Kind, and with it C.
    pub kind: StageKind,
    /// Completion tokens asked for.
    pub output_tokens: u32,
    /// Were equal lengths asked for (`ignore_eos`)?
    pub exact_length: bool,
    /// Did the stage run to its end?
    pub complete: bool,
    /// Prompt tokens asked for, where all requests ask the same.
    pub prompt_tokens: Option<u32>,
    /// Bounds of goodput.
    pub goodput: Option<Bounds>,
    /// Is every prompt meant to be new to the engine?
    pub cold_prompts: bool,
}

impl StageAsked {
    /// What the workload asks of a stage of this kind.
    #[must_use]
    pub fn of(workload: &Workload, kind: StageKind, complete: bool) -> Self {
        Self {
            kind,
            output_tokens: workload.output_tokens,
            exact_length: workload.ignore_eos,
            complete,
            prompt_tokens: match &workload.prompts {
                PromptSet::Trace { .. } => None,
                prompts => prompts.asked_prompt_tokens(0),
            },
            goodput: workload.goodput,
            cold_prompts: workload.has_cold_prompts(),
        }
    }
}
