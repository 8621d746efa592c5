//! Lines that tell how far a start-up is. Substrings as the engines print them.

use tokdyno_domain::{engine::EngineKind, launch::LoadStage};

type Marks = &'static [(&'static str, LoadStage)];

const VLLM: Marks = &[
    ("non-default args:", LoadStage::Arguments),
    ("Initializing a V1 LLM engine (v", LoadStage::Engine),
    ("vLLM is using nccl==", LoadStage::Engine),
    ("Starting to load model", LoadStage::Weights),
    ("Loading safetensors checkpoint shards", LoadStage::Weights),
    ("Loading weights took", LoadStage::Weights),
    ("Model loading took", LoadStage::Weights),
    ("Available KV cache memory:", LoadStage::Cache),
    ("KV cache size:", LoadStage::Cache),
    ("Capturing CUDA graphs", LoadStage::Graphs),
    ("Graph capturing finished in", LoadStage::Graphs),
    (
        "init engine (profile, create kv cache, warmup model) took",
        LoadStage::Graphs,
    ),
    ("Starting vLLM server on", LoadStage::Http),
    ("Starting vLLM API server", LoadStage::Http),
    ("Application startup complete.", LoadStage::Http),
];

const SGLANG: Marks = &[
    ("server_args=ServerArgs(", LoadStage::Arguments),
    ("Attention backend not specified. Use", LoadStage::Engine),
    ("sglang is using nccl==", LoadStage::Engine),
    ("Load weight begin.", LoadStage::Weights),
    ("Loading safetensors checkpoint shards", LoadStage::Weights),
    ("Load weight end.", LoadStage::Weights),
    ("Memory pool end.", LoadStage::Cache),
    ("Uvicorn running on", LoadStage::Http),
    (
        "The server is fired up and ready to roll!",
        LoadStage::Ready,
    ),
];

/// The stage that a line tells.
pub(super) fn of_line(engine: EngineKind, line: &str) -> Option<LoadStage> {
    let look = |marks: Marks| {
        marks
            .iter()
            .find(|(mark, _)| line.contains(mark))
            .map(|(_, stage)| *stage)
    };
    let sglang = || {
        look(SGLANG)
            .or_else(|| captures_graphs(line).then_some(LoadStage::Graphs))
            .or_else(|| {
                let pool = line.contains("max_total_num_tokens=")
                    && line.contains("max_running_requests=");
                pool.then_some(LoadStage::Cache)
            })
    };
    match engine {
        EngineKind::Vllm => look(VLLM),
        EngineKind::Sglang => sglang(),
        EngineKind::Other => look(VLLM).or_else(sglang),
    }
}

/// `Capture target decode … begin.`, `Capture draft … end.`
fn captures_graphs(line: &str) -> bool {
    let Some((_, rest)) = line.split_once("Capture ") else {
        return false;
    };
    ["target", "draft", "cuda graph", "decode", "prefill"]
        .iter()
        .any(|what| rest.starts_with(what))
        && (rest.contains("begin.") || rest.contains("end."))
}

/// Does the engine say that it is ready?
pub(super) fn says_ready(engine: EngineKind, line: &str) -> bool {
    let vllm = line.contains("Application startup complete.");
    let sglang = line.contains("The server is fired up and ready to roll!");
    match engine {
        EngineKind::Vllm => vllm,
        // Its web server completes its own start before the engine's warm-up.
        EngineKind::Sglang => sglang,
        EngineKind::Other => vllm || sglang,
    }
}

/// Does NCCL connect the GPUs just now?
pub(super) fn is_nccl(line: &str) -> bool {
    line.contains("is using nccl==")
        || (line.contains("NCCL INFO") && line.contains("Init COMPLETE"))
}

/// A remark that is no failure.
pub(super) fn is_notice(line: &str) -> bool {
    line.contains("is disabled because it's not supported on more than two PCIe-only GPUs")
        || line.contains("Max running requests is reset to")
}
