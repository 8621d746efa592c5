//! Reading an engine's command line as the engine itself would: known flags,
//! unique beginnings of them, and a refusal of all others.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::Engine;

/// The arguments of SGLang and their defaults, as its server info lists them.
pub(crate) const SGLANG_ARGUMENTS: &str = include_str!("../data/sglang-arguments.json");

/// Exit code of an engine that does not understand its command line.
pub const USAGE_EXIT_CODE: u8 = 2;

/// Why a command line was not understood. The first words are the engines' own,
/// which start-up diagnosis looks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// A flag or word that the engine does not have.
    #[error(
        "error: unrecognized arguments: {0}. {1} has no such argument in the version that is stood in for; correct or remove it."
    )]
    Unrecognized(String, Engine),
    /// The beginning of several flags.
    #[error("error: ambiguous option: {0} could match {1}. Write the one you mean in full.")]
    Ambiguous(String, String),
    /// No value.
    #[error("error: argument {0}: expected one argument. Add the value after the flag.")]
    NoValue(String),
    /// A value where there is none to give.
    #[error("error: argument {0}: ignored explicit argument. Write the flag without a value.")]
    UnwantedValue(String),
    /// A value that does not fit.
    #[error("error: argument {flag}: invalid value: '{value}': {reason}")]
    BadValue {
        /// The flag.
        flag: String,
        /// What was given.
        value: String,
        /// What would fit.
        reason: String,
    },
}

/// What follows a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arity {
    None,
    One,
    Many,
    /// A flag that also exists as `--no-…`.
    Switch,
}

/// A command line, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Words that belong to no flag.
    pub positionals: Vec<String>,
    /// Values by the flag's full name without the leading dashes. A flag without
    /// value has none; of a repeated one the last counts, except for the stand-in's
    /// own, which have all.
    pub values: BTreeMap<String, Vec<String>>,
    /// Switches that were turned off (`--no-…`).
    pub off: Vec<String>,
}

impl Parsed {
    /// The last value of a flag.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str)
    }

    /// Was the flag given?
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The last value, read as a number or the like.
    ///
    /// # Errors
    /// The value does not parse; `what` says what was expected.
    pub fn number<T: std::str::FromStr>(
        &self,
        name: &str,
        what: &str,
    ) -> Result<Option<T>, FlagError> {
        let Some(text) = self.last(name) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| FlagError::BadValue {
            flag: format!("--{name}"),
            value: text.to_owned(),
            reason: what.to_owned(),
        })
    }
}

const SIM_FLAGS: [(&str, Arity); 15] = [
    ("sim-seed", Arity::One),
    ("sim-noise-launch", Arity::One),
    ("sim-noise-repeat", Arity::One),
    ("sim-noise-request", Arity::One),
    ("sim-speed", Arity::One),
    ("sim-log", Arity::One),
    ("sim-fault", Arity::One),
    ("sim-step-ms", Arity::One),
    ("sim-ttft-ms", Arity::One),
    ("sim-engine-version", Arity::One),
    ("sim-startup-ms", Arity::One),
    ("sim-start-fault", Arity::One),
    ("sim-resolve", Arity::One),
    ("sim-children", Arity::One),
    ("sim-ignore-term", Arity::None),
];

/// The names of the stand-in's own flags.
#[cfg(test)]
pub(crate) fn sim_flags() -> impl Iterator<Item = &'static str> {
    SIM_FLAGS.into_iter().map(|(name, _)| name)
}

const VLLM_SWITCHES: &str = "trust-remote-code enable-prefix-caching disable-custom-all-reduce \
    enforce-eager async-scheduling enable-prompt-tokens-details enable-per-request-metrics \
    enable-auto-tool-choice enable-force-include-usage enable-server-load-tracking \
    enable-chunked-prefill enable-expert-parallel enable-lora enable-sleep-mode \
    disable-log-stats disable-log-requests enable-log-requests enable-log-outputs \
    disable-uvicorn-access-log disable-fastapi-docs disable-cascade-attn skip-tokenizer-init \
    enable-prompt-embeds enable-request-id-headers enable-tokenizer-info-endpoint \
    return-tokens-as-token-ids allow-credentials enable-ssl-refresh enable-eplb enable-dbo \
    calculate-kv-scales disable-hybrid-kv-cache-manager disable-sliding-window \
    disable-chunked-mm-input language-model-only enable-mfu-metrics enable-scale-out \
    kv-cache-metrics headless data-parallel-hybrid-lb data-parallel-external-lb \
    log-config-file-only use-tqdm-on-load";

const VLLM_VALUES: &str = "host port api-key model tokenizer tokenizer-mode revision \
    tensor-parallel-size pipeline-parallel-size data-parallel-size data-parallel-rank \
    data-parallel-address data-parallel-rpc-port data-parallel-backend device-ids \
    gpu-memory-utilization max-num-seqs max-num-batched-tokens max-model-len \
    attention-backend attention-config speculative-config spec-method spec-model spec-tokens \
    compilation-config optimization-level max-cudagraph-capture-size performance-mode \
    stream-interval per-request-spec-decode-metrics tool-call-parser reasoning-parser \
    mm-encoder-tp-mode dtype quantization kv-cache-dtype load-format download-dir seed \
    block-size swap-space cpu-offload-gb num-gpu-blocks-override kv-cache-memory-bytes \
    prefix-caching-hash-algo distributed-executor-backend max-parallel-loading-workers \
    hf-overrides hf-config-path generation-config override-generation-config chat-template \
    chat-template-content-format response-role config-format model-impl runner convert \
    limit-mm-per-prompt mm-processor-kwargs media-io-kwargs allowed-local-media-path \
    kv-transfer-config kv-events-config additional-config structured-outputs-config \
    observability-config profiler-config logits-processor-pattern scheduling-policy \
    scheduler-cls long-prefill-token-threshold max-num-partial-prefills \
    max-long-partial-prefills max-logprobs max-lora-rank max-loras max-cpu-loras \
    api-server-count uvicorn-log-level root-path ssl-keyfile ssl-certfile ssl-ca-certs \
    ssl-cert-reqs log-config-file max-log-len shutdown-timeout sse-keep-alive-interval \
    disable-log-stats-interval nnodes node-rank master-addr master-port all2all-backend \
    eplb-config pooler-config worker-cls safetensors-load-strategy \
    model-loader-extra-config code-revision tokenizer-revision config stream-options-default \
    h11-max-incomplete-event-size h11-max-header-count linear-backend moe-backend";

const VLLM_MANY: &str = "served-model-name cudagraph-capture-sizes lora-modules middleware \
    allowed-origins allowed-methods allowed-headers logits-processors";

const VLLM_ALIASES: [(&str, &str); 10] = [
    ("-tp", "tensor-parallel-size"),
    ("-pp", "pipeline-parallel-size"),
    ("-dp", "data-parallel-size"),
    ("-ac", "attention-config"),
    ("-sc", "speculative-config"),
    ("-cc", "compilation-config"),
    ("-q", "quantization"),
    ("-n", "nnodes"),
    ("-r", "node-rank"),
    ("-asc", "api-server-count"),
];

const SGLANG_ALIASES: [(&str, &str); 9] = [
    ("--model", "model-path"),
    ("--tensor-parallel-size", "tp-size"),
    ("--pipeline-parallel-size", "pp-size"),
    ("--data-parallel-size", "dp-size"),
    ("--expert-parallel-size", "ep-size"),
    ("--ep", "ep-size"),
    ("--tp", "tp-size"),
    ("--speculative-draft-model", "speculative-draft-model-path"),
    ("--nccl-init-addr", "dist-init-addr"),
];

/// Arguments of SGLang that take several values but have no list as default.
const SGLANG_MANY: [&str; 6] = [
    "cuda-graph-bs-decode",
    "cuda-graph-bs-prefill",
    "return-aux-hidden-state-layer-ids",
    "lora-paths",
    "lora-target-modules",
    "warmups",
];

struct Table {
    engine: Engine,
    flags: BTreeMap<String, Arity>,
    aliases: &'static [(&'static str, &'static str)],
}

impl Table {
    fn of(engine: Engine) -> Self {
        let mut flags: BTreeMap<String, Arity> = SIM_FLAGS
            .iter()
            .map(|(name, arity)| ((*name).to_owned(), *arity))
            .collect();
        let aliases: &[_] = match engine {
            Engine::Vllm => {
                for (names, arity) in [
                    (VLLM_SWITCHES, Arity::Switch),
                    (VLLM_VALUES, Arity::One),
                    (VLLM_MANY, Arity::Many),
                ] {
                    flags.extend(
                        names
                            .split_ascii_whitespace()
                            .map(|name| (name.to_owned(), arity)),
                    );
                }
                &VLLM_ALIASES
            }
            Engine::Sglang => {
                for (key, default) in sglang_defaults() {
                    let name = key.replace('_', "-");
                    let switch = name.starts_with("enable-") || name.starts_with("disable-");
                    let arity = match default {
                        Value::Bool(_) => Arity::None,
                        Value::Null if switch => Arity::None,
                        Value::Array(_) => Arity::Many,
                        _ if SGLANG_MANY.contains(&name.as_str()) => Arity::Many,
                        _ => Arity::One,
                    };
                    flags.insert(name, arity);
                }
                &SGLANG_ALIASES
            }
        };
        Self {
            engine,
            flags,
            aliases,
        }
    }

    /// The full name of what was written, with dashes in front, and whether it
    /// turns a switch off. None for a flag that is not known.
    fn resolve(&self, written: &str) -> Result<Option<(String, Arity, bool)>, FlagError> {
        if let Some((_, name)) = self.aliases.iter().find(|(alias, _)| *alias == written) {
            let arity = self.flags.get(*name).copied().unwrap_or(Arity::One);
            return Ok(Some(((*name).to_owned(), arity, false)));
        }
        let Some(bare) = written.strip_prefix("--") else {
            return Ok(None);
        };
        let bare = match self.engine {
            Engine::Vllm => bare.replace('_', "-"),
            Engine::Sglang => bare.to_owned(),
        };
        if let Some(arity) = self.flags.get(&bare) {
            return Ok(Some((bare, *arity, false)));
        }
        if let Some(name) = bare.strip_prefix("no-")
            && self.flags.get(name) == Some(&Arity::Switch)
        {
            return Ok(Some((name.to_owned(), Arity::Switch, true)));
        }
        // A key of a JSON argument: --compilation-config.level 3.
        if self.engine == Engine::Vllm
            && let Some((name, _)) = bare.split_once('.')
            && name.ends_with("-config")
            && self.flags.contains_key(name)
        {
            return Ok(Some((bare, Arity::One, false)));
        }
        // The stand-in's own flags are not part of an engine's name space.
        let mut matches = self
            .flags
            .range(bare.clone()..)
            .take_while(|(name, _)| name.starts_with(&bare))
            .filter(|(name, _)| !name.starts_with("sim-"));
        match (bare.is_empty(), matches.next(), matches.next()) {
            (false, Some((name, arity)), None) => Ok(Some((name.clone(), *arity, false))),
            (false, Some((one, _)), Some((two, _))) => {
                let mut names = vec![format!("--{one}"), format!("--{two}")];
                names.extend(matches.map(|(name, _)| format!("--{name}")));
                Err(FlagError::Ambiguous(written.to_owned(), names.join(", ")))
            }
            _ => Ok(None),
        }
    }
}

/// SGLang's arguments with their defaults.
pub(crate) fn sglang_defaults() -> serde_json::Map<String, Value> {
    serde_json::from_str(SGLANG_ARGUMENTS).unwrap_or_default()
}

/// Takes a command line apart.
///
/// # Errors
/// What the engine would refuse.
pub fn parse<S: AsRef<str>>(engine: Engine, args: &[S]) -> Result<Parsed, FlagError> {
    let table = Table::of(engine);
    let mut parsed = Parsed::default();
    let mut unknown: Vec<String> = Vec::new();
    let mut words = args.iter().map(AsRef::as_ref).peekable();
    while let Some(word) = words.next() {
        if !is_flag(word) {
            parsed.positionals.push(word.to_owned());
            continue;
        }
        // -O2 and the like: the level is part of the word.
        if engine == Engine::Vllm
            && let Some(level) = word.strip_prefix("-O")
            && level.len() == 1
        {
            parsed
                .values
                .insert("optimization-level".to_owned(), vec![level.to_owned()]);
            continue;
        }
        let (written, inline) = match word.split_once('=') {
            Some((written, value)) => (written, Some(value.to_owned())),
            None => (word, None),
        };
        let Some((name, arity, off)) = table.resolve(written)? else {
            unknown.push(word.to_owned());
            continue;
        };
        if off {
            parsed.off.push(name);
            continue;
        }
        let shown = || format!("--{name}");
        let values = match (arity, inline) {
            (Arity::None | Arity::Switch, None) => Vec::new(),
            (Arity::None | Arity::Switch, Some(_)) => {
                return Err(FlagError::UnwantedValue(shown()));
            }
            (_, Some(value)) => vec![value],
            (arity, None) => {
                let mut values = Vec::new();
                while let Some(value) = words.next_if(|next| !is_flag(next)) {
                    values.push(value.to_owned());
                    if arity == Arity::One {
                        break;
                    }
                }
                if values.is_empty() {
                    return Err(FlagError::NoValue(shown()));
                }
                values
            }
        };
        parsed.off.retain(|other| *other != name);
        if name.starts_with("sim-") {
            parsed.values.entry(name).or_default().extend(values);
        } else {
            // As with argparse, the last of several holds.
            parsed.values.insert(name, values);
        }
    }
    if unknown.is_empty() {
        Ok(parsed)
    } else {
        Err(FlagError::Unrecognized(unknown.join(" "), engine))
    }
}

/// A word that starts a flag; a negative number does not.
fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sglang(args: &[&str]) -> Result<Parsed, FlagError> {
        parse(Engine::Sglang, args)
    }

    fn vllm(args: &[&str]) -> Result<Parsed, FlagError> {
        parse(Engine::Vllm, args)
    }

    #[test]
    fn the_profiles_command_lines_are_understood() {
        let line = "--model-path /m --tp-size 8 --trust-remote-code --host 127.0.0.1 --port 8000 \
            --served-model-name k --attention-backend triton --enable-metrics --enable-cache-report \
            --num-continuous-decode-steps 4 --disable-custom-all-reduce --speculative-algorithm EAGLE3 \
            --speculative-draft-model-path D --speculative-num-steps 3 --speculative-eagle-topk 1 \
            --speculative-num-draft-tokens 4 --max-running-requests 128 --disable-cuda-graph \
            --disable-radix-cache --cuda-graph-backend-decode disabled --chunked-prefill-size -1 \
            --enable-return-aux-hidden-states --return-aux-hidden-state-layer-ids 2 30 58";
        let args: Vec<&str> = line.split_whitespace().collect();
        let parsed = sglang(&args).expect("a command line");
        assert_eq!(parsed.last("tp-size"), Some("8"));
        assert_eq!(parsed.last("chunked-prefill-size"), Some("-1"));
        assert_eq!(
            parsed.values["return-aux-hidden-state-layer-ids"],
            ["2", "30", "58"]
        );
        assert!(parsed.has("enable-metrics") && parsed.positionals.is_empty());

        let line = "serve /m --host 127.0.0.1 --port 8000 --served-model-name a b \
            --tensor-parallel-size 8 --trust-remote-code --gpu-memory-utilization 0.90 \
            --enable-prompt-tokens-details --no-enable-prefix-caching -O3 --speculative_config {}";
        let args: Vec<&str> = line.split_whitespace().collect();
        let parsed = vllm(&args).expect("a command line");
        assert_eq!(parsed.positionals, ["serve", "/m"]);
        assert_eq!(parsed.values["served-model-name"], ["a", "b"]);
        assert_eq!(parsed.off, ["enable-prefix-caching"]);
        assert_eq!(parsed.last("speculative-config"), Some("{}"));
    }

    #[test]
    fn of_a_repeated_flag_the_last_holds() {
        let parsed = sglang(&["--tp-size", "4", "--tp", "8"]).expect("a command line");
        assert_eq!(parsed.values["tp-size"], ["8"]);
        let asked = crate::resolved::asked(&parsed);
        assert_eq!(asked["tp_size"], serde_json::json!(8));
        let many = [
            "--served-model-name",
            "a",
            "b",
            "--served-model-name=c",
            "-O1",
            "-O3",
        ];
        let parsed = vllm(&many).expect("a command line");
        assert_eq!(parsed.values["served-model-name"], ["c"]);
        assert_eq!(parsed.values["optimization-level"], ["3"]);
        let faults = ["--sim-fault", "error500", "--sim-fault", "slow"];
        let parsed = sglang(&faults).expect("a command line");
        assert_eq!(parsed.values["sim-fault"].len(), 2);
    }

    #[test]
    fn unknown_flags_are_refused_all_at_once() {
        let error =
            sglang(&["--frobnicate", "--tp-size", "8", "--sim-nothing=1"]).expect_err("a refusal");
        assert_eq!(
            error,
            FlagError::Unrecognized("--frobnicate --sim-nothing=1".to_owned(), Engine::Sglang)
        );
        assert!(
            error
                .to_string()
                .contains("unrecognized arguments: --frobnicate")
        );
        assert!(vllm(&["--attention-backends", "x"]).is_err());
    }

    #[test]
    fn beginnings_count_if_they_are_unique() {
        assert_eq!(
            sglang(&["--tp", "8"]).expect("ok").last("tp-size"),
            Some("8")
        );
        assert_eq!(
            sglang(&["--attention-b", "triton"])
                .expect("ok")
                .last("attention-backend"),
            Some("triton")
        );
        let error = sglang(&["--cuda-graph-max-bs", "8"]).expect_err("a refusal");
        assert!(
            error
                .to_string()
                .contains("ambiguous option: --cuda-graph-max-bs")
        );
    }

    #[test]
    fn values_are_there_or_not_as_they_should() {
        assert_eq!(
            sglang(&["--port"]),
            Err(FlagError::NoValue("--port".to_owned()))
        );
        assert_eq!(
            sglang(&["--port", "--tp-size", "1"]),
            Err(FlagError::NoValue("--port".to_owned()))
        );
        assert!(matches!(
            sglang(&["--enable-metrics=1"]),
            Err(FlagError::UnwantedValue(_))
        ));
        assert!(
            sglang(&["--port", "x"])
                .expect("ok")
                .number::<u16>("port", "a port")
                .is_err()
        );
    }
}
