//! What is sent: prompts, lengths, and the further fields of a request.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tokdyno_domain::{
    goodput::Bounds,
    prompts::PromptSet,
    workload::{Api, CachePolicy, Workload, WorkloadError},
};

use super::{
    ArgumentError, text,
    values::{self, Beginnings, Fields},
};

/// What is sent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
#[group(conflicts_with_all = ["compare", "recover", "help_metrics"])]
pub(crate) struct ContentArguments {
    /// Use /v1/chat/completions instead of /v1/completions. Chats and
    /// conversations do so by themselves.
    #[arg(long)]
    chat: bool,

    /// Tokens to ask for in each reply. Usually 256; a trace has its own.
    #[arg(long, value_name = "N")]
    output_tokens: Option<u32>,

    /// `varied` (usual), `founding` (the three of the founding notes), or a file:
    /// on each line a prompt, a JSON object with a "prompt", or a chat; ShareGPT
    /// files are recognised.
    #[arg(long, value_name = "FILE|founding|varied", group = "set")]
    prompts: Option<PathBuf>,

    /// Prompts of random words, this many tokens long by the server's count.
    #[arg(long, value_name = "TOKENS", visible_alias = "input-tokens", value_parser = values::tokens, group = "set")]
    random_prompts: Option<u32>,

    /// Random prompts in GROUPS that share a beginning of PREFIX tokens, followed by
    /// TOKENS of their own: what the prefix cache is worth.
    #[arg(long, value_name = "GROUPS:PREFIX:TOKENS", value_parser = values::beginnings, group = "set")]
    shared_prefix: Option<Beginnings>,

    /// Conversations of several turns, each question sent after the answer to the
    /// one before: a ShareGPT file, or lists of questions as lines of JSON.
    #[arg(long, value_name = "FILE", group = "set")]
    conversations: Option<PathBuf>,

    /// Switch the model's thinking on or off, where its chat template has a switch.
    #[arg(long, value_enum)]
    thinking: Option<OnOff>,

    /// Further fields of every request, such as '{"top_k": 1}'.
    #[arg(long, value_name = "JSON", value_parser = values::fields)]
    extra_body: Option<Fields>,

    /// Ask the engine to clear its prefix cache before each stage.
    #[arg(long)]
    reset_cache: bool,

    /// Count requests that are good enough: upper bounds in ms of ttft, tpot, e2el.
    #[arg(long, value_name = "ttft:MS,tpot:MS,e2el:MS", value_parser = values::bounds)]
    goodput: Option<Bounds>,

    /// Draws prompts and arrival times. Without it every run draws anew, so that no
    /// engine finds the last run's prompts in its cache; the seed is printed and
    /// kept, and giving it sends the same again.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Give a request up when no byte came for this many seconds.
    #[arg(long, value_name = "S")]
    idle_timeout: Option<f64>,
}

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnOff {
    /// On.
    On,
    /// Off.
    Off,
}

impl ContentArguments {
    /// Puts what is sent into the workload, `trace` being the file to replay.
    pub(super) fn put_into(
        &self,
        workload: &mut Workload,
        trace: Option<PromptSet>,
        fresh_seed: u64,
    ) -> Result<(), ArgumentError> {
        if let Some(prompts) = self.prompt_set(trace)? {
            workload.prompts = prompts;
        }
        if self.chat || workload.prompts.needs_chat() {
            workload.api = Api::Chat;
        }
        if let Some(tokens) = self.output_tokens {
            workload.output_tokens = tokens;
        }
        if let Some(seconds) = self.idle_timeout {
            workload.idle_timeout_s = seconds;
        }
        if self.reset_cache {
            workload.cache = CachePolicy::ResetBeforeStage;
        }
        workload.thinking = self.thinking.map(|switch| switch == OnOff::On);
        workload.goodput = self.goodput;
        if let Some(Fields(fields)) = &self.extra_body {
            workload.extra_body.clone_from(fields);
        }
        workload.seed = self.seed.unwrap_or(fresh_seed);
        Ok(())
    }

    fn prompt_set(&self, trace: Option<PromptSet>) -> Result<Option<PromptSet>, ArgumentError> {
        if trace.is_some() {
            return Ok(trace);
        }
        if let Some(named) = &self.prompts {
            return named_set(named).map(Some);
        }
        if let Some(path) = &self.conversations {
            let set = PromptSet::conversations_from_file(&short_name(path), &text(path)?);
            return Ok(Some(set.map_err(WorkloadError::Prompts)?));
        }
        let shared = self.shared_prefix.map(|shared| PromptSet::SharedPrefix {
            groups: shared.groups,
            prefix_tokens: shared.prefix_tokens,
            tokens: shared.tokens,
        });
        let random = self
            .random_prompts
            .map(|tokens| PromptSet::Random { tokens });
        Ok(shared.or(random))
    }
}

/// Reads a trace.
///
/// # Errors
/// It cannot be read or used.
pub(super) fn trace(path: &Path) -> Result<PromptSet, ArgumentError> {
    let set = PromptSet::trace_from_file(&short_name(path), &text(path)?);
    Ok(set.map_err(WorkloadError::Prompts)?)
}

fn named_set(named: &Path) -> Result<PromptSet, ArgumentError> {
    match named.to_str() {
        Some("varied") => return Ok(PromptSet::Varied),
        Some("founding") => return Ok(PromptSet::Founding),
        _ => {}
    }
    let set = PromptSet::from_file(&short_name(named), &text(named)?);
    Ok(set.map_err(WorkloadError::Prompts)?)
}

/// The file's name without its folder, which is nobody's business.
fn short_name(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}
