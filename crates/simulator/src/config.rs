//! What a stand-in engine is to be: from its command line and environment.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::{Map, Value};

use crate::{
    acceptance::Drafter,
    flags::{self, FlagError, Parsed},
    nccl,
    options::{self, SimOptions},
    resolved,
    startup::StartFault,
};

/// Name of the model if the command line names none.
pub const DEFAULT_MODEL: &str = "kimi-k2.5-int4";
/// The name that is served under the start fault `wrong-model`.
pub const WRONG_MODEL: &str = "some-other-model";
/// Most requests at once under SGLang's speculation, unless told otherwise.
pub const SPECULATIVE_CAP: u32 = 48;
/// Most requests at once otherwise (computed from memory by real engines). Invented.
pub const DEFAULT_CAP: u32 = 1024;
/// Longest context. Invented.
pub const DEFAULT_CONTEXT: u32 = 262_144;

/// Which engine is stood in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
}

impl Engine {
    /// Version whose flags and shapes are followed.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::Vllm => "0.33.0",
            Self::Sglang => "0.5.23",
        }
    }

    /// The word on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
        })
    }
}

/// Speculative decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speculation {
    /// How good the drafter is.
    pub drafter: Drafter,
    /// Tokens drafted in a step.
    pub drafted: u32,
}

/// A stand-in engine's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct SimConfig {
    /// Which engine.
    pub engine: Engine,
    /// Version it says it is.
    pub version: String,
    /// Address to listen on.
    pub host: String,
    /// Port; 0 lets the kernel choose.
    pub port: u16,
    /// Path or name of the model.
    pub model_path: String,
    /// Names it is served under; at least one.
    pub served_names: Vec<String>,
    /// Key that requests must carry.
    pub api_key: Option<String>,
    /// SGLang: key for the routes that change its state.
    pub admin_api_key: Option<String>,
    /// Most requests at once.
    pub max_running: u32,
    /// Speculative decoding, if on.
    pub speculation: Option<Speculation>,
    /// Steps without captured graphs.
    pub eager: bool,
    /// Longest prompt and answer together.
    pub max_model_len: u32,
    /// Is `/metrics` served?
    pub metrics: bool,
    /// vLLM: are the developers' routes served?
    pub dev_mode: bool,
    /// Are cached prompt tokens reported?
    pub cache_report: bool,
    /// Does a repeated prompt come from the cache?
    pub prefix_cache: bool,
    /// Tokens gathered before a chunk is sent.
    pub stream_interval: u32,
    /// Does chat begin with reasoning?
    pub reasoning: bool,
    /// Usage in streams without being asked.
    pub force_usage: bool,
    /// Steps between updates of what the engine says of its speed.
    pub log_interval: u64,
    /// The environment as far as an engine looks at it.
    pub env: BTreeMap<String, String>,
    /// NCCL variables as they take effect: the environment, what the engine sets
    /// itself, and what conf files add.
    pub nccl: BTreeMap<String, String>,
    /// GPUs that share a copy of the model.
    pub tensor_parallel: u32,
    /// Share of each GPU's memory that the engine takes.
    pub memory_share: f64,
    /// vLLM: how long running requests may take to end after SIGTERM.
    pub shutdown_timeout: Duration,
    /// The arguments as given, keys masked.
    pub asked: Map<String, Value>,
    /// All arguments after defaults, flat, as SGLang reports them.
    pub resolved: Map<String, Value>,
    /// The command line as given, keys masked.
    pub launch_command: String,
    /// The stand-in's own settings.
    pub sim: SimOptions,
}

impl SimConfig {
    /// Reads a command line (without program and engine name) and environment.
    /// Of the environment, only what begins with `NCCL_`, `VLLM_`, `SGLANG_`,
    /// `CUDA_` or `TORCH` is kept.
    ///
    /// # Errors
    /// What the engine would refuse with exit code 2.
    pub fn parse<S: AsRef<str>>(
        engine: Engine,
        args: &[S],
        env: BTreeMap<String, String>,
    ) -> Result<Self, FlagError> {
        let parsed = flags::parse(engine, args)?;
        let model_path = model(engine, &parsed)?;
        let sim = options::read(&parsed, engine)?;
        let served_names = match parsed.values.get("served-model-name") {
            _ if sim.startup.fault == Some(StartFault::WrongModel) => {
                vec![WRONG_MODEL.to_owned()]
            }
            Some(names) if engine == Engine::Vllm => names.clone(),
            Some(names) => names.last().cloned().into_iter().collect(),
            None => vec![model_path.clone()],
        };
        let speculation = match engine {
            Engine::Vllm => vllm_speculation(&parsed)?,
            Engine::Sglang => sglang_speculation(&parsed)?,
        };
        let count = "a whole number from 1";
        let (cap_flag, len_flag) = match engine {
            Engine::Vllm => ("max-num-seqs", "max-model-len"),
            Engine::Sglang => ("max-running-requests", "context-length"),
        };
        let default_cap = if engine == Engine::Sglang && speculation.is_some() {
            SPECULATIVE_CAP
        } else {
            DEFAULT_CAP
        };
        let env = filtered(env);
        let (tp_flag, share_flag, default_share) = match engine {
            Engine::Vllm => ("tensor-parallel-size", "gpu-memory-utilization", 0.92),
            Engine::Sglang => ("tp-size", "mem-fraction-static", 0.88),
        };
        let what = "a share above 0 and up to 1";
        let memory_share = parsed.number(share_flag, what)?.unwrap_or(default_share);
        if !(memory_share > 0.0 && memory_share <= 1.0) {
            return Err(bad(share_flag, &memory_share.to_string(), what));
        }
        let tensor_parallel = positive(&parsed, tp_flag, count)?.unwrap_or(1);
        let what = "seconds from 0 to 86400";
        let shutdown_timeout: f64 = parsed.number("shutdown-timeout", what)?.unwrap_or(0.0);
        if !(0.0..=86_400.0).contains(&shutdown_timeout) {
            return Err(bad("shutdown-timeout", &shutdown_timeout.to_string(), what));
        }
        let mut config = Self {
            engine,
            version: parsed
                .last("sim-engine-version")
                .unwrap_or(engine.version())
                .to_owned(),
            host: parsed.last("host").unwrap_or("127.0.0.1").to_owned(),
            port: parsed
                .number("port", "a port from 0 to 65535")?
                .unwrap_or(match engine {
                    Engine::Vllm => 8000,
                    Engine::Sglang => 30_000,
                }),
            api_key: parsed.last("api-key").map(str::to_owned),
            admin_api_key: parsed.last("admin-api-key").map(str::to_owned),
            max_running: positive(&parsed, cap_flag, count)?.unwrap_or(default_cap),
            speculation,
            eager: parsed.has("enforce-eager")
                || parsed.has("disable-cuda-graph")
                || parsed.has("disable-decode-cuda-graph")
                || parsed.last("cuda-graph-backend-decode") == Some("disabled"),
            max_model_len: positive(&parsed, len_flag, count)?.unwrap_or(DEFAULT_CONTEXT),
            metrics: engine == Engine::Vllm || parsed.has("enable-metrics"),
            dev_mode: env.get("VLLM_SERVER_DEV_MODE").is_some_and(|on| on == "1"),
            cache_report: parsed.has("enable-prompt-tokens-details")
                || parsed.has("enable-cache-report"),
            prefix_cache: !parsed.has("disable-radix-cache")
                && !parsed.off.iter().any(|off| off == "enable-prefix-caching"),
            stream_interval: positive(&parsed, "stream-interval", count)?.unwrap_or(1),
            reasoning: parsed.has("reasoning-parser"),
            force_usage: parsed.has("enable-force-include-usage")
                || parsed.has("stream-response-default-include-usage"),
            log_interval: positive(&parsed, "decode-log-interval", count)?.map_or(40, u64::from),
            nccl: nccl::in_environment(
                engine,
                &env,
                parsed.has("enable-deterministic-inference") && tensor_parallel > 1,
            ),
            tensor_parallel,
            memory_share,
            shutdown_timeout: Duration::from_secs_f64(shutdown_timeout),
            asked: resolved::asked(&parsed),
            resolved: Map::new(),
            launch_command: resolved::masked_command(args),
            sim,
            env,
            model_path,
            served_names,
        };
        // The cap is real: an engine that resolves it otherwise keeps to it.
        let cap_key = cap_flag.replace('-', "_");
        for (name, value) in &config.sim.resolve {
            if *name == cap_key {
                let cap = value.as_u64().and_then(|cap| u32::try_from(cap).ok());
                config.max_running = cap
                    .filter(|cap| *cap > 0)
                    .ok_or_else(|| bad("sim-resolve", &format!("{name}={value}"), count))?;
            }
        }
        config.resolved = resolved::all(&config, &parsed);
        Ok(config)
    }

    /// Adds variables of conf files, which NCCL reads where neither the
    /// environment nor the engine has set one.
    pub fn add_nccl_conf(&mut self, conf: BTreeMap<String, String>) {
        for (name, value) in conf {
            self.nccl.entry(name).or_insert(value);
        }
    }

    /// The first name it is served under.
    #[must_use]
    pub fn name(&self) -> &str {
        self.served_names
            .first()
            .map_or(DEFAULT_MODEL, String::as_str)
    }

    /// Does the engine's version count accepted tokens by the older definition
    /// (own token included, divided by all drafted and the own one)?
    #[must_use]
    pub fn old_accept_rate(&self) -> bool {
        self.engine == Engine::Sglang
            && (self.version.starts_with("0.5.8") || self.version.starts_with("0.5.9"))
    }
}

fn model(engine: Engine, parsed: &Parsed) -> Result<String, FlagError> {
    // `vllm serve MODEL`, `sglang serve …`: the sub-command may be written too.
    let words: Vec<&String> = parsed
        .positionals
        .iter()
        .enumerate()
        .filter(|(at, word)| *at > 0 || *word != "serve")
        .map(|(_, word)| word)
        .collect();
    let (flag, allowed) = match engine {
        Engine::Vllm => ("model", 1),
        Engine::Sglang => ("model-path", 0),
    };
    if words.len() > allowed {
        let rest: Vec<&str> = words
            .iter()
            .skip(allowed)
            .map(|word| word.as_str())
            .collect();
        return Err(FlagError::Unrecognized(rest.join(" "), engine));
    }
    Ok(words
        .first()
        .map(|word| word.as_str())
        .or_else(|| parsed.last(flag))
        .unwrap_or(DEFAULT_MODEL)
        .to_owned())
}

pub(crate) fn positive(parsed: &Parsed, name: &str, what: &str) -> Result<Option<u32>, FlagError> {
    match parsed.number(name, what)? {
        Some(0) => Err(bad(name, "0", what)),
        other => Ok(other),
    }
}

pub(crate) fn bad(name: &str, value: &str, reason: &str) -> FlagError {
    FlagError::BadValue {
        flag: format!("--{name}"),
        value: value.to_owned(),
        reason: reason.to_owned(),
    }
}

fn sglang_speculation(parsed: &Parsed) -> Result<Option<Speculation>, FlagError> {
    const ALGORITHMS: [&str; 8] = [
        "EAGLE",
        "EAGLE3",
        "NEXTN",
        "STANDALONE",
        "NGRAM",
        "DFLASH",
        "DSPARK",
        "UNO",
    ];
    let Some(algorithm) = parsed.last("speculative-algorithm") else {
        return Ok(None);
    };
    if !ALGORITHMS.contains(&algorithm.to_ascii_uppercase().as_str()) {
        let reason = format!("invalid choice (choose from {})", ALGORITHMS.join(", "));
        return Err(bad("speculative-algorithm", algorithm, &reason));
    }
    // Extraction without a drafter speculates nothing.
    if parsed.has("enable-return-aux-hidden-states") {
        return Ok(None);
    }
    let count = "a whole number from 1";
    let steps = positive(parsed, "speculative-num-steps", count)?;
    let topk = positive(parsed, "speculative-eagle-topk", count)?;
    let drafts = positive(parsed, "speculative-num-draft-tokens", count)?;
    if steps.is_none() && (topk.is_some() || drafts.is_some()) {
        let reason = "give --speculative-num-steps together with top-k and draft tokens";
        return Err(bad("speculative-num-steps", "", reason));
    }
    let steps = steps.unwrap_or(3);
    let draft_tokens = match topk.unwrap_or(1) {
        1 => steps + 1,
        _ => drafts.unwrap_or(steps + 1),
    };
    let drafter = match parsed.last("speculative-draft-model-path") {
        Some(path) if path.to_ascii_lowercase().contains("aq-medai") => Drafter::AqMedAi,
        _ => Drafter::Broken,
    };
    Ok(Some(Speculation {
        drafter,
        drafted: draft_tokens - 1,
    }))
}

fn vllm_speculation(parsed: &Parsed) -> Result<Option<Speculation>, FlagError> {
    let (method, tokens) = if let Some(text) = parsed.last("speculative-config") {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| bad("speculative-config", text, &format!("not JSON: {error}")))?;
        let tokens = value.get("num_speculative_tokens").and_then(Value::as_u64);
        let method = value
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or("eagle3");
        (
            method.to_owned(),
            tokens.and_then(|n| u32::try_from(n).ok()),
        )
    } else if parsed.has("spec-method") || parsed.has("spec-model") {
        let method = parsed.last("spec-method").unwrap_or("eagle3").to_owned();
        (
            method,
            positive(parsed, "spec-tokens", "a whole number from 1")?,
        )
    } else {
        return Ok(None);
    };
    Ok((method != "extract_hidden_states").then(|| Speculation {
        drafter: Drafter::VllmEagle3,
        drafted: tokens.unwrap_or(3).max(1),
    }))
}

fn filtered(env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    const PREFIXES: [&str; 5] = ["NCCL_", "VLLM_", "SGLANG_", "CUDA_", "TORCH"];
    env.into_iter()
        .filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        // Variables may hold keys (VLLM_API_KEY); those are not kept.
        .filter(|(name, _)| !name.contains("KEY") && !name.contains("TOKEN"))
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn parse(engine: Engine, args: &[&str], env: &[(&str, &str)]) -> SimConfig {
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        SimConfig::parse(engine, args, env).expect("a configuration")
    }

    pub(crate) fn sglang(args: &[&str]) -> SimConfig {
        parse(Engine::Sglang, args, &[])
    }

    pub(crate) fn vllm(args: &[&str]) -> SimConfig {
        parse(Engine::Vllm, args, &[])
    }

    fn refused(engine: Engine, args: &[&str]) -> String {
        SimConfig::parse(engine, args, BTreeMap::new())
            .expect_err("a refusal")
            .to_string()
    }

    #[test]
    fn names_and_models() {
        assert_eq!(sglang(&[]).name(), DEFAULT_MODEL);
        assert_eq!(vllm(&["serve", "/m/x"]).name(), "/m/x");
        assert_eq!(
            vllm(&["/m/x", "--served-model-name", "a", "b"]).served_names,
            ["a", "b"]
        );
        assert_eq!(sglang(&["--model", "/m/x"]).model_path, "/m/x");
        assert!(refused(Engine::Sglang, &["/m/x"]).contains("unrecognized arguments: /m/x"));
    }

    #[test]
    fn keys_are_never_echoed() {
        let config = sglang(&["--api-key", "secret-1", "--admin-api-key=secret-2"]);
        let echoed = format!("{} {:?}", config.launch_command, config.resolved);
        assert!(!echoed.contains("secret"), "{echoed}");
        assert_eq!(config.api_key.as_deref(), Some("secret-1"));
    }

    #[test]
    fn the_inert_flag_is_echoed() {
        let config = sglang(&["--num-continuous-decode-steps", "4"]);
        assert_eq!(config.resolved["num_continuous_decode_steps"], 4);
        assert_eq!(config.resolved["attention_backend"], "triton");
    }

    #[test]
    fn speculation_is_read_as_the_engines_do() {
        let config = sglang(&[
            "--speculative-algorithm",
            "EAGLE3",
            "--speculative-num-steps",
            "5",
        ]);
        assert_eq!(config.speculation.expect("on").drafted, 5);
        assert_eq!(config.resolved["speculative_num_draft_tokens"], 6);
        assert!(
            refused(Engine::Sglang, &["--speculative-algorithm", "X"]).contains("invalid choice")
        );
        let partial = [
            "--speculative-algorithm",
            "EAGLE3",
            "--speculative-eagle-topk",
            "1",
        ];
        assert!(refused(Engine::Sglang, &partial).contains("speculative-num-steps"));
        assert!(refused(Engine::Vllm, &["--speculative-config", "{"]).contains("not JSON"));
        assert_eq!(
            vllm(&["-sc", r#"{"method":"eagle3","num_speculative_tokens":2}"#]).speculation,
            Some(Speculation {
                drafter: Drafter::VllmEagle3,
                drafted: 2
            })
        );
    }

    #[test]
    fn impossible_settings_are_refused() {
        for (flag, value) in [
            ("--sim-speed", "0"),
            ("--sim-noise-launch", "-1"),
            ("--sim-step-ms", "NaN"),
            ("--sim-fault", "explode"),
            ("--port", "70000"),
            ("--max-running-requests", "0"),
            ("--sim-startup-ms", "-1"),
            ("--sim-start-fault", "explode"),
            ("--sim-resolve", "no-equals-sign"),
            ("--sim-children", "1000"),
            ("--mem-fraction-static", "0"),
        ] {
            let message = refused(Engine::Sglang, &[flag, value]);
            assert!(message.contains(flag), "{message}");
        }
    }

    #[test]
    fn only_the_engines_environment_is_kept() {
        let config = parse(
            Engine::Vllm,
            &[],
            &[
                ("NCCL_PROTO", "LL"),
                ("HOME", "/root"),
                ("VLLM_API_KEY", "x"),
                ("VLLM_SERVER_DEV_MODE", "1"),
            ],
        );
        assert_eq!(
            config.env.keys().collect::<Vec<_>>(),
            ["NCCL_PROTO", "VLLM_SERVER_DEV_MODE"]
        );
        assert!(config.dev_mode);
    }
}
