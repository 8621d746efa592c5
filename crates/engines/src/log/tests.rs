//! Stages and failures, line by line, and the reader as a whole.

use proptest::prelude::*;

use super::*;

fn read(engine: EngineKind, text: &str) -> LogReader {
    let mut reader = LogReader::new(engine);
    reader.push(text.as_bytes());
    reader
}

#[test]
fn each_known_line_tells_its_stage() {
    use LoadStage::{Arguments, Cache, Engine, Graphs, Http, Ready, Weights};
    let vllm = [
        (
            "INFO 11-29 20:03:03 [utils.py:1] non-default args: {'port': 8000}",
            Arguments,
        ),
        (
            "Initializing a V1 LLM engine (v0.33.0) with config: model='/m'",
            Engine,
        ),
        ("(Worker) vLLM is using nccl==2.27.3", Engine),
        ("Loading weights took 12.00 seconds", Weights),
        (
            "Model loading took 73.10 GiB memory and 14.000000 seconds",
            Weights,
        ),
        ("Available KV cache memory: 9.80 GiB", Cache),
        (
            "GPU KV cache size: 412,345 tokens, Maximum concurrency for 8,192 tokens per request: 50.3x",
            Cache,
        ),
        (
            "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  3%",
            Graphs,
        ),
        ("Graph capturing finished in 21 secs, took 1.38 GiB", Graphs),
        (
            "init engine (profile, create kv cache, warmup model) took 60.00 seconds",
            Graphs,
        ),
        ("Starting vLLM server on http://127.0.0.1:8000", Http),
        ("Starting vLLM API server 0 on http://127.0.0.1:8000", Http),
        ("INFO:     Application startup complete.", Http),
    ];
    let sglang = [
        (
            "[2026-11-29 20:03:03] server_args=ServerArgs(model_path='/m')",
            Arguments,
        ),
        (
            "[2026-11-29 20:03:03] Attention backend not specified. Use triton backend by default.",
            Engine,
        ),
        (
            "[2026-11-29 20:03:03 TP0] sglang is using nccl==2.27.3",
            Engine,
        ),
        (
            "[2026-11-29 20:03:03 TP0] Load weight begin. avail mem=93.90 GB",
            Weights,
        ),
        (
            "[2026-11-29 20:03:03 TP0] Load weight end. elapsed=3 s",
            Weights,
        ),
        (
            "[2026-11-29 20:03:03 TP0] Memory pool end. avail mem=11.00 GB",
            Cache,
        ),
        (
            "max_total_num_tokens=412345, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=48, context_len=8192, available_gpu_mem=9.90 GB",
            Cache,
        ),
        (
            "Capture target decode CUDA graph begin. This can take up to several minutes.",
            Graphs,
        ),
        (
            "Capture target verify CUDA graph end. Time elapsed: 4.00 s.",
            Graphs,
        ),
        (
            "Capture draft extend CUDA graph begin. avail mem=9.90 GB",
            Graphs,
        ),
        ("INFO:     Uvicorn running on http://127.0.0.1:30000", Http),
        ("The server is fired up and ready to roll!", Ready),
    ];
    for (engine, lines) in [
        (EngineKind::Vllm, &vllm[..]),
        (EngineKind::Sglang, &sglang[..]),
    ] {
        for (line, stage) in lines {
            let reader = read(engine, &format!("{line}\n"));
            assert_eq!(
                reader.stage().map(|(stage, _)| stage),
                Some(*stage),
                "{line}"
            );
            let other = read(EngineKind::Other, &format!("{line}\n"));
            assert_eq!(
                other.stage().map(|(stage, _)| stage),
                Some(*stage),
                "{line}"
            );
            assert_eq!(reader.failure(), None, "{line}");
        }
    }
}

#[test]
fn running_lines_tell_no_stage() {
    for line in [
        "Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 80.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, KV cache usage: 0.1%, Prefix cache hit rate: 0.0%",
        "SpecDecoding metrics: Mean acceptance length: 1.68",
        "Decode batch, #running-req: 1, #token: 20, accept len: 1.68, accept rate: 0.42, cuda graph: True, gen throughput (token/s): 62.9, #queue-req: 0",
        "Prefill batch, #new-seq: 1, #cached-token: 0",
    ] {
        for engine in [EngineKind::Vllm, EngineKind::Sglang] {
            let reader = read(engine, &format!("{line}\n"));
            assert_eq!((reader.stage(), reader.failure()), (None, None), "{line}");
        }
    }
}

#[test]
fn each_known_signature_has_its_kind() {
    use FailureKind::{
        Activation, Architecture, BadFlag, DiskFull, EngineDied, GraphCapture, Nccl, NoProgram,
        OutOfMemory, PortTaken, TooLittleMemory,
    };
    for (line, kind) in [
        (
            "torch.OutOfMemoryError: Tried to allocate 2.00 GiB.",
            OutOfMemory,
        ),
        ("RuntimeError: CUDA out of memory. Tried", OutOfMemory),
        (
            "Capture cuda graph failed: CUDA out of memory.",
            OutOfMemory,
        ),
        (
            "ValueError: Free memory on device cuda:0 (12.34/94.97 GiB) on startup is less than desired GPU memory utilization (0.9, 85.47 GiB).",
            TooLittleMemory,
        ),
        (
            "ValueError: No available memory for the cache blocks.",
            TooLittleMemory,
        ),
        (
            "To serve at least one request, 17.2 GiB KV cache is needed, which is larger than the available KV cache memory (9.1 GiB). The estimated maximum model length is 4096",
            TooLittleMemory,
        ),
        (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            TooLittleMemory,
        ),
        (
            "ValueError: The memory capacity is unbalanced.",
            TooLittleMemory,
        ),
        (
            "Exception: Capture cuda graph failed: no idea",
            GraphCapture,
        ),
        (
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
            EngineDied,
        ),
        ("ERROR EngineCore failed to start.", EngineDied),
        (
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
            EngineDied,
        ),
        (
            "Scheduler hit an exception: Traceback (most recent call last):",
            EngineDied,
        ),
        (
            "Received sigquit from a child process. It usually means the child failed.",
            EngineDied,
        ),
        (
            "Scheduler watchdog timeout (self.watchdog_timeout=300)",
            EngineDied,
        ),
        ("Initialization failed. warmup error: x", EngineDied),
        ("OSError: [Errno 98] x", PortTaken),
        (
            "error while attempting to bind on address ('127.0.0.1', 8000): address already in use",
            PortTaken,
        ),
        ("OSError: Address already in use", PortTaken),
        ("ValueError: Port is already in use.", PortTaken),
        (
            "launch_server.py: error: unrecognized arguments: --nope",
            BadFlag,
        ),
        (
            "launch_server.py: error: ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode",
            BadFlag,
        ),
        (
            "vllm serve: error: argument --dtype: invalid choice: 'x'",
            BadFlag,
        ),
        ("RuntimeError: NCCL error: remote process exited", Nccl),
        ("ncclUnhandledCudaError: unhandled system error", Nccl),
        ("h:1:1 [0] misc/shmutils.cc:72 NCCL WARN Call failed", Nccl),
        (
            "Error: failed to extend /dev/shm/nccl-x to 9637892 bytes, error: No space left on device (28)",
            Nccl,
        ),
        (
            "CUDA error: no kernel image is available for execution on the device",
            Architecture,
        ),
        ("RuntimeError: Unsupported architecture", Architecture),
        ("TllmGenFmhaRunner failed", Architecture),
        (
            "ValueError: TRTLLM MHA backend is only supported on Blackwell GPUs (SM100).",
            Architecture,
        ),
        (
            "ValueError: No valid attention backend found for cuda",
            Architecture,
        ),
        (
            "Selected backend X is not valid for this configuration. Reason: y",
            Architecture,
        ),
        ("OSError: [Errno 28] No space left on device", DiskFull),
        (
            "/usr/bin/python3: No module named sglang.launch_server",
            NoProgram,
        ),
        ("ModuleNotFoundError: No module named 'vllm'", NoProgram),
        (
            "docker: Error response from daemon: pull access denied",
            Activation,
        ),
    ] {
        for text in [format!("{line}\n"), line.to_owned()] {
            let failure = read(EngineKind::Sglang, &text).failure().expect(line);
            assert_eq!(failure.kind, kind, "{line}");
            assert!(!failure.detail.is_empty(), "{line}");
        }
    }
}

#[test]
fn the_first_cause_counts_and_not_what_follows() {
    let text = "Scheduler hit an exception: Traceback (most recent call last):\n  File \"x\"\ntorch.OutOfMemoryError: CUDA out of memory. GPU 0\nCapture cuda graph failed: x\nNCCL error: later\nReceived sigquit from a child process\n";
    let reader = read(EngineKind::Sglang, text);
    let failure = reader.failure().expect("a failure");
    assert_eq!(failure.kind, FailureKind::OutOfMemory);
    assert!(failure.detail.contains("GPU 0"), "{}", failure.detail);
    // SGLang kills its own process tree.
    assert_eq!(ended(&reader, None, Some(9)), failure);
    assert_eq!(ended(&reader, Some(1), None), failure);
}

#[test]
fn the_notice_about_all_reduce_is_no_failure() {
    let line = "[2026-11-29 20:03:03 TP1] Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs. To silence this warning, specify disable_custom_all_reduce=True explicitly.\n";
    let reader = read(EngineKind::Sglang, &line.repeat(8));
    assert_eq!(reader.failure(), None);
    assert_eq!(reader.notices().len(), 1);
    assert!(reader.notices()[0].starts_with("Custom allreduce is disabled"));
    let other = read(
        EngineKind::Sglang,
        "Max running requests is reset to 48 for speculative decoding.\n",
    );
    assert_eq!(other.notices().len(), 1);
}

#[test]
fn how_a_process_ended_says_what_the_log_does_not() {
    use FailureKind::{Activation, BadFlag, EngineDied, Exited, Killed, NoProgram, OutOfMemory};
    for (text, code, signal, kind) in [
        (
            "usage: x\nx: error: argument --tp: expected one argument\n",
            Some(2),
            None,
            BadFlag,
        ),
        (
            "x: error: unrecognized arguments: --y",
            Some(2),
            None,
            BadFlag,
        ),
        ("", Some(2), None, Exited),
        ("", None, Some(9), Killed),
        ("", Some(137), None, Killed),
        ("", None, Some(15), Killed),
        ("", None, Some(11), EngineDied),
        ("", Some(134), None, EngineDied),
        (
            "Received sigquit from a child process.\n",
            None,
            Some(9),
            EngineDied,
        ),
        ("h:1:1 NCCL WARN harmless\n", None, Some(9), Killed),
        ("h:1:1 NCCL WARN broken\n", Some(1), None, FailureKind::Nccl),
        (
            "bash: vllm: command not found\n",
            Some(127),
            None,
            NoProgram,
        ),
        ("x", Some(125), None, Activation),
        ("all is well\n", Some(0), None, Exited),
        ("", None, None, Exited),
        ("CUDA out of memory", Some(0), None, OutOfMemory),
    ] {
        let found = ended(&read(EngineKind::Sglang, text), code, signal);
        assert_eq!(found.kind, kind, "{text} {code:?} {signal:?}");
        assert!(!found.detail.is_empty());
    }
    let said = ended(
        &read(EngineKind::Vllm, "first\nlast words\n"),
        Some(3),
        None,
    );
    assert!(said.detail.contains("Exit code 3") && said.detail.contains("last words"));
}

#[test]
fn the_stage_never_goes_back_and_its_newest_line_is_kept() {
    let text = "TP0 Load weight begin.\nTP0 Memory pool end. avail mem=1\nTP1 Load weight end.\nTP1 Memory pool end. avail mem=2\n";
    let reader = read(EngineKind::Sglang, text);
    assert_eq!(
        reader.stage(),
        Some((LoadStage::Cache, "TP1 Memory pool end. avail mem=2"))
    );
}

#[test]
fn stamps_are_left_out_of_the_stages_line() {
    for (line, shown) in [
        (
            "[2026-11-29 20:03:03 TP0] Load weight begin.",
            "Load weight begin.",
        ),
        (
            "INFO 11-29 20:03:03 [model.py:12] Model loading took 7 GiB memory and 2 seconds",
            "[model.py:12] Model loading took 7 GiB memory and 2 seconds",
        ),
        ("Load weight end.", "Load weight end."),
    ] {
        let reader = read(EngineKind::Other, &format!("{line}\n"));
        let text = reader.stage().map(|(_, text)| text.to_owned()).expect(line);
        assert!(shown.ends_with(&text), "{text}");
    }
}

#[test]
fn ready_is_said_in_each_engines_words() {
    let startup = "INFO:     Application startup complete.\n";
    assert!(read(EngineKind::Vllm, startup).said_ready());
    assert!(!read(EngineKind::Sglang, startup).said_ready());
    assert!(
        read(
            EngineKind::Sglang,
            "The server is fired up and ready to roll!\n"
        )
        .said_ready()
    );
}

#[test]
fn silence_after_nccl_is_told_from_silence_elsewhere() {
    let mut reader = read(EngineKind::Sglang, "TP0 sglang is using nccl==2.27.3\n");
    assert!(reader.after_nccl());
    reader.push(
        b"h:1:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 - Init COMPLETE\nsome other line\n",
    );
    assert!(reader.after_nccl());
    reader.push(b"Load weight begin.\n");
    assert!(!reader.after_nccl());
}

#[test]
fn a_progress_bar_is_one_line_and_colours_are_gone() {
    let mut reader = LogReader::new(EngineKind::Vllm);
    reader.push(b"\x1b[1;36mstart\x1b[0m\r\n");
    for percent in 0..100 {
        reader.push(format!("\rLoading safetensors checkpoint shards: {percent}%").as_bytes());
    }
    reader.push(b"\nend\n");
    assert_eq!(
        reader.last_lines(),
        ["start", "Loading safetensors checkpoint shards: 99%", "end"]
    );
}

#[test]
fn memory_is_bounded_and_secrets_are_masked() {
    let mut reader = LogReader::new(EngineKind::Vllm);
    for _ in 0..200 {
        reader.push(&[b'x'; 10_000]);
    }
    assert!(reader.line.len() <= LONGEST_LINE);
    for number in 0..1000 {
        reader.push(format!("\nline {number} api_key: sk-0123456789abcdef").as_bytes());
    }
    let lines = reader.last_lines();
    assert!(lines.len() <= LAST_LINES + 1);
    assert!(
        lines.iter().all(|line| !line.contains("0123456789abcdef")),
        "{lines:?}"
    );
}

#[test]
fn the_line_of_arguments_is_kept_whole() {
    let reader = read(
        EngineKind::Vllm,
        "INFO non-default args: {'port': 8000, 'model_tag': '/m'}\n",
    );
    assert_eq!(
        reader.arguments(),
        Some("{'port': 8000, 'model_tag': '/m'}")
    );
}

/// Pieces that matter, and bytes that are no text.
fn log_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"Load weight begin.".to_vec()),
        Just(b"sglang is using nccl==2".to_vec()),
        Just(b"Memory pool end.".to_vec()),
        Just(b"CUDA out of memory".to_vec()),
        Just(b"Scheduler hit an exception: ".to_vec()),
        Just(b"x: error: argument".to_vec()),
        Just("größer\u{1b}[1m".as_bytes().to_vec()),
        Just(vec![0xff, 0xc3, 0x00]),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn how_the_log_is_cut_makes_no_difference(
        bytes in log_bytes(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut whole = LogReader::new(EngineKind::Sglang);
        whole.push(&bytes);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.sort_unstable();
        let mut pieces = LogReader::new(EngineKind::Sglang);
        let mut from = 0;
        for place in places {
            pieces.push(&bytes[from..place]);
            from = place;
        }
        pieces.push(&bytes[from..]);
        prop_assert_eq!(&whole, &pieces);
        prop_assert_eq!(whole.failure(), pieces.failure());
        prop_assert_eq!(whole.last_lines(), pieces.last_lines());
    }

    #[test]
    fn a_stage_that_was_reached_is_never_lost(first in log_bytes(), second in log_bytes()) {
        let mut reader = LogReader::new(EngineKind::Sglang);
        reader.push(&first);
        let before = reader.stage().map(|(stage, _)| stage);
        reader.push(&second);
        prop_assert!(reader.stage().map(|(stage, _)| stage) >= before);
    }
}

#[test]
fn a_pointer_to_help_is_not_quoted_as_the_cause() {
    for hint in [
        "See 'docker run --help'.",
        "Run 'docker run --help' for more information",
    ] {
        let mut reader = LogReader::new(EngineKind::Vllm);
        reader.push(format!("docker: invalid reference format.\n\n{hint}\n").as_bytes());
        let failure = ended(&reader, Some(125), None);
        assert_eq!(failure.kind, FailureKind::Activation);
        assert!(
            failure
                .detail
                .ends_with("docker: invalid reference format."),
            "{}",
            failure.detail
        );
    }
}

#[test]
fn exit_code_2_without_a_word_of_the_parser_proves_no_bad_flag() {
    let silent = LogReader::new(EngineKind::Vllm);
    assert_eq!(ended(&silent, Some(2), None).kind, FailureKind::Exited);
}

#[test]
fn secrets_in_a_logged_cause_are_masked() {
    let mut reader = LogReader::new(EngineKind::Sglang);
    reader.push(b"RuntimeError: CUDA out of memory with ServerArgs(api_key=\"abc123\", x='Bearer def456')\n");
    let failure = ended(&reader, Some(1), None);
    assert!(
        failure.detail.contains("CUDA out of memory"),
        "{}",
        failure.detail
    );
    for secret in ["abc123", "def456"] {
        assert!(!failure.detail.contains(secret), "{}", failure.detail);
    }
}
