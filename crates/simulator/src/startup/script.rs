//! What an engine logs until it is ready, and when.

use serde_json::Value;

use crate::{
    config::{Engine, SimConfig},
    nccl,
    startup::{Line, Voice},
    stats::CACHE_TOKENS,
};

/// A part of the start-up, named by what is done at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The command line is understood.
    Arguments,
    /// The engine's processes are there and talk over NCCL.
    Engine,
    /// The weights are in memory.
    Weights,
    /// The cache's memory is taken.
    Cache,
    /// Graphs are about to be captured.
    Capture,
    /// Graphs are captured.
    Graphs,
    /// It listens.
    Http,
    /// It serves.
    Ready,
}

/// A moment of the start-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Beat {
    /// When, in thousandths of the start-up's time.
    pub(crate) at: u32,
    /// Which stage is over with it; none within a stage.
    pub(crate) ends: Option<Stage>,
    pub(crate) lines: Vec<Line>,
}

/// The whole start-up of a configuration that will listen on `url`. Sizes in it
/// are invented.
pub(crate) fn script(config: &SimConfig, url: &str) -> Vec<Beat> {
    let lines = Lines { config, url };
    let mut beats = Vec::new();
    let mut beat = |at, ends, lines| beats.push(Beat { at, ends, lines });
    beat(0, Some(Stage::Arguments), lines.arguments());
    beat(50, Some(Stage::Engine), lines.engine());
    beat(60, None, lines.weights_begin());
    for quarter in 1..=4 {
        let text = format!(
            "Loading safetensors checkpoint shards: {:3}% Completed | {}/64",
            quarter * 25,
            quarter * 16
        );
        let line = Line::new(Voice::Bare, text);
        beat(60 + quarter * 130, None, vec![line]);
    }
    beat(600, Some(Stage::Weights), lines.weights_end());
    beat(700, Some(Stage::Cache), lines.cache());
    beat(710, Some(Stage::Capture), lines.capture());
    beat(900, Some(Stage::Graphs), lines.graphs());
    let (http, ready) = match config.engine {
        // vLLM serves as soon as it listens; SGLang tries itself first.
        Engine::Vllm => (1000, 1000),
        Engine::Sglang => (940, 1000),
    };
    beat(http, Some(Stage::Http), lines.http());
    beat(ready, Some(Stage::Ready), lines.ready());
    beats
}

/// GiB of weights on each GPU. Invented.
const WEIGHTS_GIB: f64 = 73.1;
/// GiB of cache on each GPU. Invented.
const CACHE_GIB: f64 = 9.8;

struct Lines<'a> {
    config: &'a SimConfig,
    url: &'a str,
}

impl Lines<'_> {
    fn vllm(&self) -> bool {
        self.config.engine == Engine::Vllm
    }

    fn asked(&self, name: &str) -> bool {
        self.config.asked.contains_key(name)
    }

    /// Two or more GPUs, for which no flag has turned custom all-reduce off.
    fn all_reduce_notice(&self) -> Option<Line> {
        let quiet = self.config.resolved.get("disable_custom_all_reduce");
        (self.config.tensor_parallel > 2 && quiet != Some(&Value::Bool(true))).then(|| {
            worker(
                "Custom all-reduce is disabled because it's not supported on more than two PCIe-only GPUs; \
                 disable_custom_all_reduce=True silences this line.",
            )
        })
    }

    fn arguments(&self) -> Vec<Line> {
        let config = self.config;
        let text = if self.vllm() {
            format!(
                "non-default args: {}",
                python(&Value::Object(config.asked.clone()))
            )
        } else if config.old_accept_rate() {
            let arguments: Vec<String> = config
                .resolved
                .iter()
                .map(|(name, value)| format!("{name}={}", python(value)))
                .collect();
            format!("server_args=ServerArgs({})", arguments.join(", "))
        } else {
            format!("Starting with: {}", config.launch_command)
        };
        vec![Line::new(Voice::Main, text)]
    }

    fn engine(&self) -> Vec<Line> {
        let config = self.config;
        let ranks = config.tensor_parallel;
        let mut lines = Vec::new();
        if self.vllm() {
            lines.push(worker(format!(
                "Initializing a V1 LLM engine (v{}) with config: model='{}', tensor_parallel_size={ranks}, \
                 max_seq_len={}, enforce_eager={}",
                config.version,
                config.model_path,
                config.max_model_len,
                python(&Value::Bool(config.eager)),
            )));
            lines.push(worker(format!("vLLM is using nccl=={}", nccl::VERSION)));
        } else {
            if !self.asked("attention_backend") {
                let text = "Attention backend not specified. Use triton backend by default.";
                lines.push(Line::new(Voice::Main, text));
            }
            if config.speculation.is_some() && !self.asked("max_running_requests") {
                let text = format!(
                    "Max running requests is reset to {} for speculative decoding.",
                    config.max_running
                );
                lines.push(Line::new(Voice::Main, text));
            }
            lines.push(worker("Init torch distributed begin."));
            lines.push(worker(format!("sglang is using nccl=={}", nccl::VERSION)));
        }
        lines
    }

    fn weights_begin(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.all_reduce_notice().into_iter().collect();
        lines.push(worker(if self.vllm() {
            format!("Loading model {}", self.config.model_path)
        } else {
            format!("Load weight begin. avail mem={:.2} GB", 93.9)
        }));
        lines
    }

    fn weights_end(&self) -> Vec<Line> {
        let seconds = self.config.sim.startup.time.as_secs_f64() * 0.54;
        if self.vllm() {
            vec![
                worker(format!("Loading weights took {seconds:.2} seconds")),
                worker(format!(
                    "Model loading took {WEIGHTS_GIB:.2} GiB memory and {seconds:.6} seconds"
                )),
            ]
        } else {
            vec![worker(format!(
                "Load weight end. elapsed={seconds:.2} s, mem usage={WEIGHTS_GIB:.2} GB, avail mem={:.2} GB.",
                93.9 - WEIGHTS_GIB
            ))]
        }
    }

    fn cache(&self) -> Vec<Line> {
        let config = self.config;
        if self.vllm() {
            let at_once = CACHE_TOKENS as f64 / f64::from(config.max_model_len);
            vec![
                worker(format!("Available KV cache memory: {CACHE_GIB:.2} GiB")),
                worker(format!(
                    "GPU KV cache size: {} tokens, Maximum concurrency for {} tokens per request: {at_once:.2}x",
                    grouped(CACHE_TOKENS),
                    grouped(config.max_model_len.into()),
                )),
            ]
        } else {
            vec![worker(format!(
                "Memory pool end. avail mem={:.2} GB",
                93.9 - WEIGHTS_GIB - CACHE_GIB
            ))]
        }
    }

    /// SGLang's captures by name, the drafter's too under speculation.
    fn captures(&self) -> &'static [&'static str] {
        if self.config.speculation.is_some() {
            &["target verify", "draft", "draft extend"]
        } else {
            &["target decode"]
        }
    }

    fn capture(&self) -> Vec<Line> {
        if self.config.eager {
            return Vec::new();
        }
        vec![if self.vllm() {
            worker("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 0/67")
        } else {
            worker(format!(
                "Capture {} CUDA graph begin. This takes a while. avail mem=11.00 GB",
                self.captures()[0]
            ))
        }]
    }

    fn graphs(&self) -> Vec<Line> {
        let config = self.config;
        let all = config.sim.startup.time.as_secs_f64();
        let mut lines = Vec::new();
        if self.vllm() {
            if !config.eager {
                lines.push(worker(format!(
                    "Graph capturing finished in {:.0} secs, took 1.38 GiB",
                    all * 0.19
                )));
            }
            lines.push(worker(format!(
                "init engine (profile, create kv cache, warmup model) took {:.2} seconds",
                all * 0.3
            )));
            return lines;
        }
        if !config.eager {
            for (at, name) in self.captures().iter().enumerate() {
                if at > 0 {
                    lines.push(worker(format!(
                        "Capture {name} CUDA graph begin. avail mem=9.90 GB"
                    )));
                }
                lines.push(worker(format!(
                    "Capture {name} CUDA graph end. Time elapsed: {:.2} s. mem usage=1.10 GB.",
                    all * 0.19
                )));
            }
        }
        let given = |name: &str| python(config.resolved.get(name).unwrap_or(&Value::Null));
        lines.push(worker(format!(
            "max_total_num_tokens={CACHE_TOKENS}, chunked_prefill_size={}, max_prefill_tokens={}, \
             max_running_requests={}, context_len={}, available_gpu_mem=9.90 GB",
            given("chunked_prefill_size"),
            given("max_prefill_tokens"),
            config.max_running,
            config.max_model_len,
        )));
        lines
    }

    fn http(&self) -> Vec<Line> {
        let text = match self.config.engine {
            Engine::Vllm if self.config.version.starts_with("0.16.") => {
                format!("Starting vLLM API server 0 on {}", self.url)
            }
            Engine::Vllm => format!("Starting vLLM server on {}", self.url),
            Engine::Sglang => format!(
                "INFO:     Uvicorn running on {} (Press CTRL+C to quit)",
                self.url
            ),
        };
        let voice = if self.vllm() { Voice::Main } else { Voice::Web };
        vec![Line::new(voice, text)]
    }

    fn ready(&self) -> Vec<Line> {
        vec![if self.vllm() {
            Line::new(Voice::Web, "Application startup complete.")
        } else {
            Line::new(Voice::Main, "The server is fired up and ready to roll!")
        }]
    }
}

fn worker(text: impl Into<String>) -> Line {
    Line::new(Voice::Worker, text)
}

/// A value as Python prints it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(python).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let items: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{}: {}", quoted(name), python(value)))
                .collect();
            format!("{{{}}}", items.join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if text.contains('\'') && !text.contains('"') {
        format!("\"{text}\"")
    } else {
        format!("'{}'", text.replace('\'', "\\'"))
    }
}

/// 412,345
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{sglang, vllm};

    fn text(config: &SimConfig) -> String {
        script(config, "http://127.0.0.1:8000")
            .iter()
            .flat_map(|beat| &beat.lines)
            .map(|line| line.text.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Each is there, and after the one before it.
    fn in_order(text: &str, parts: &[&str]) {
        let mut from = 0;
        for part in parts {
            let at = text[from..].find(part);
            from += at.unwrap_or_else(|| panic!("`{part}` is missing or too early in\n{text}"));
        }
    }

    #[test]
    fn vllm_goes_through_its_stages_in_order() {
        let config = vllm(&["serve", "/m/it's", "--port", "8000", "-tp", "8"]);
        let text = text(&config);
        in_order(
            &text,
            &[
                "non-default args: {'port': 8000, 'tensor_parallel_size': 8}",
                "Initializing a V1 LLM engine (v0.33.0)",
                "vLLM is using nccl==",
                "is disabled because it's not supported on more than two PCIe-only GPUs",
                "Loading weights took",
                "Model loading took 73.10 GiB memory and",
                "Available KV cache memory:",
                "KV cache size: 412,345 tokens, Maximum concurrency",
                "Capturing CUDA graphs",
                "Graph capturing finished in",
                "init engine (profile, create kv cache, warmup model) took",
                "Starting vLLM server on http://127.0.0.1:8000",
                "Application startup complete.",
            ],
        );
    }

    #[test]
    fn sglang_goes_through_its_stages_in_order() {
        let text_of = text;
        let text = text_of(&sglang(&["--model-path", "/m"]));
        in_order(
            &text,
            &[
                "Attention backend not specified. Use",
                "sglang is using nccl==",
                "Load weight begin.",
                "Load weight end.",
                "Memory pool end.",
                "Capture target decode CUDA graph begin.",
                "Capture target decode CUDA graph end.",
                "max_total_num_tokens=412345, chunked_prefill_size=8192, max_prefill_tokens=16384, \
                 max_running_requests=1024, context_len=262144, available_gpu_mem=",
                "Uvicorn running on",
                "The server is fired up and ready to roll!",
            ],
        );
        let speculating = text_of(&sglang(&["--speculative-algorithm", "EAGLE3"]));
        in_order(
            &speculating,
            &[
                "Max running requests is reset to 48",
                "Capture target verify CUDA graph begin.",
                "Capture target verify CUDA graph end.",
                "Capture draft CUDA graph begin.",
            ],
        );
        let older = text_of(&sglang(&["--sim-engine-version", "0.5.9"]));
        assert!(older.contains("server_args=ServerArgs(") && older.contains("tp_size=1"));
    }

    #[test]
    fn an_engine_without_graphs_captures_none() {
        for config in [
            vllm(&["--enforce-eager"]),
            sglang(&["--disable-cuda-graph"]),
        ] {
            assert!(!text(&config).contains("Captur"), "{}", text(&config));
        }
    }

    #[test]
    fn the_beats_are_in_order_and_end_with_the_time() {
        for config in [vllm(&[]), sglang(&[])] {
            let beats = script(&config, "u");
            assert!(beats.is_sorted_by_key(|beat| beat.at));
            assert_eq!(beats.last().map(|beat| beat.at), Some(1000));
            let stages: Vec<Stage> = beats.iter().filter_map(|beat| beat.ends).collect();
            assert!(stages.is_sorted() && stages.len() == 8, "{stages:?}");
        }
    }

    #[test]
    fn no_key_is_logged() {
        for config in [
            vllm(&["--api-key", "secret"]),
            sglang(&["--api-key", "secret"]),
            sglang(&["--api-key", "secret", "--sim-engine-version", "0.5.9"]),
        ] {
            assert!(!text(&config).contains("secret"));
        }
    }
}
