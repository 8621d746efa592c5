//! What a stand-in engine is to be: from its command line and environment.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use serde_json::{Map, Value, json};

use crate::{
    acceptance::Drafter,
    fault::Fault,
    flags::{self, FlagError, Parsed},
    noise::Noise,
    pacer::FixedPacing,
};

/// Name of the model if the command line names none.
pub const DEFAULT_MODEL: &str = "kimi-k2.5-int4";
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

/// The stand-in's own settings (`--sim-…`).
#[derive(Debug, Clone, PartialEq)]
pub struct SimOptions {
    /// Seed of all that is random.
    pub seed: u64,
    /// Noise on the step time.
    pub noise: Noise,
    /// So many times faster than the model.
    pub speed: f64,
    /// Where true send times are written.
    pub log: Option<PathBuf>,
    /// Misbehaviour.
    pub faults: Vec<Fault>,
    /// Fixed times in place of the model.
    pub fixed: Option<FixedPacing>,
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
        let served_names = match parsed.values.get("served-model-name") {
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
            resolved: Map::new(),
            launch_command: masked_command(args),
            sim: sim_options(&parsed)?,
            env,
            model_path,
            served_names,
        };
        config.resolved = resolved(&config, &parsed);
        Ok(config)
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

fn positive(parsed: &Parsed, name: &str, what: &str) -> Result<Option<u32>, FlagError> {
    match parsed.number(name, what)? {
        Some(0) => Err(bad(name, "0", what)),
        other => Ok(other),
    }
}

fn bad(name: &str, value: &str, reason: &str) -> FlagError {
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

fn sim_options(parsed: &Parsed) -> Result<SimOptions, FlagError> {
    let share = |name: &str| -> Result<f64, FlagError> {
        let what = "a percentage from 0 to 100";
        let percent: f64 = parsed.number(name, what)?.unwrap_or(0.0);
        if (0.0..=100.0).contains(&percent) {
            Ok(percent / 100.0)
        } else {
            Err(bad(name, &percent.to_string(), what))
        }
    };
    let milliseconds = |name: &str| -> Result<Option<f64>, FlagError> {
        let what = "milliseconds from 0 to 600000";
        match parsed.number::<f64>(name, what)? {
            Some(ms) if !(0.0..=600_000.0).contains(&ms) => Err(bad(name, &ms.to_string(), what)),
            other => Ok(other),
        }
    };
    let what = "a factor from 0.001 to 10000";
    let speed = parsed.number("sim-speed", what)?.unwrap_or(1.0);
    if !(0.001..=10_000.0).contains(&speed) {
        return Err(bad("sim-speed", &speed.to_string(), what));
    }
    let (step, ttft) = (milliseconds("sim-step-ms")?, milliseconds("sim-ttft-ms")?);
    let fixed = step.or(ttft).map(|either| FixedPacing {
        step_ms: step.unwrap_or(either),
        ttft_ms: ttft.unwrap_or(either),
    });
    let mut faults = Vec::new();
    for text in parsed.values.get("sim-fault").into_iter().flatten() {
        faults.push(
            text.parse().map_err(|error: crate::fault::BadFault| {
                bad("sim-fault", text, &error.to_string())
            })?,
        );
    }
    Ok(SimOptions {
        seed: parsed
            .number("sim-seed", "a whole number from 0")?
            .unwrap_or(0),
        noise: Noise {
            launch: share("sim-noise-launch")?,
            repeat: share("sim-noise-repeat")?,
            request: share("sim-noise-request")?,
        },
        speed,
        log: parsed.last("sim-log").map(PathBuf::from),
        faults,
        fixed,
    })
}

fn filtered(env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    const PREFIXES: [&str; 5] = ["NCCL_", "VLLM_", "SGLANG_", "CUDA_", "TORCH"];
    env.into_iter()
        .filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        // Variables may hold keys (VLLM_API_KEY); those are not kept.
        .filter(|(name, _)| !name.contains("KEY") && !name.contains("TOKEN"))
        .collect()
}

/// The command line with keys masked: it is shown to whoever asks.
fn masked_command<S: AsRef<str>>(args: &[S]) -> String {
    let mut mask_next = false;
    let mut words = Vec::with_capacity(args.len());
    for word in args.iter().map(AsRef::as_ref) {
        let secret = |flag: &str| flag.contains("api-key") || flag.contains("api_key");
        if std::mem::take(&mut mask_next) {
            words.push("***".to_owned());
        } else if let Some((flag, _)) = word.split_once('=').filter(|(flag, _)| secret(flag)) {
            words.push(format!("{flag}=***"));
        } else {
            mask_next = word.starts_with('-') && secret(word);
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

fn resolved(config: &SimConfig, parsed: &Parsed) -> Map<String, Value> {
    let mut all = match config.engine {
        Engine::Sglang => flags::sglang_defaults(),
        Engine::Vllm => Map::new(),
    };
    for (name, values) in &parsed.values {
        if name.starts_with("sim-") || name.contains("api-key") {
            continue;
        }
        let key = name.replace('-', "_");
        let many = matches!(all.get(&key), Some(Value::Array(_))) || values.len() > 1;
        let value = match values.last() {
            None => Value::Bool(true),
            Some(_) if many => values.iter().map(|value| typed(value)).collect(),
            Some(value) => typed(value),
        };
        all.insert(key, value);
    }
    for name in &parsed.off {
        all.insert(name.replace('-', "_"), Value::Bool(false));
    }
    if config.engine == Engine::Sglang {
        all.insert("model_path".into(), json!(config.model_path));
        if all.get("tokenizer_path").is_none_or(Value::is_null) {
            all.insert("tokenizer_path".into(), json!(config.model_path));
        }
        all.insert("served_model_name".into(), json!(config.name()));
        all.insert("host".into(), json!(config.host));
        all.insert("port".into(), json!(config.port));
        all.insert("max_running_requests".into(), json!(config.max_running));
        if let Some(speculation) = config.speculation {
            for (key, value) in [
                ("speculative_num_steps", speculation.drafted),
                ("speculative_eagle_topk", 1),
                ("speculative_num_draft_tokens", speculation.drafted + 1),
            ] {
                if all.get(key).is_none_or(Value::is_null) || key.ends_with("draft_tokens") {
                    all.insert(key.into(), json!(value));
                }
            }
        }
    }
    all
}

fn typed(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Object(_))) => value,
        _ => Value::String(text.to_owned()),
    }
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
