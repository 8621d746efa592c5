//! NCCL's variables, and others that change how an engine runs. Facts of NCCL are
//! those of its documentation for 2.30.

/// What is known of a variable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    /// Its name.
    pub(crate) name: &'static str,
    /// Values it takes, for people.
    pub(crate) values: &'static str,
    /// What holds without it.
    pub(crate) default: &'static str,
    /// What it does.
    pub(crate) meaning: &'static str,
}

const fn variable(
    name: &'static str,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Variable {
    Variable {
        name,
        values,
        default,
        meaning,
    }
}

/// The variables.
pub(crate) const VARIABLES: &[Variable] = &[
    variable(
        "NCCL_PROTO",
        "a list of LL, LL128, Simple; ^ in front leaves them out; per function as allreduce:LL;…",
        "all that the hardware supports",
        "Protocol on the wire. LL has the lowest latency and about half the bandwidth, Simple the full bandwidth; NCCL picks LL for small messages by itself.",
    ),
    variable(
        "NCCL_ALGO",
        "a list of Ring, Tree, CollnetChain, CollnetDirect, NVLS, NVLSTree, PAT; ^ leaves out; per function as allreduce:tree;…",
        "chosen by NCCL",
        "Algorithm. Ring takes 2(n−1) steps for an all-reduce over n GPUs.",
    ),
    variable(
        "NCCL_P2P_LEVEL",
        "LOC, NVL, PIX, PXB, PHB, SYS",
        "chosen by architecture",
        "Farthest distance at which GPUs talk to each other directly. SYS allows it across processor sockets.",
    ),
    variable(
        "NCCL_P2P_DISABLE",
        "1",
        "unset",
        "No direct traffic between GPUs; shared memory is used. Slower, and the first thing to try on a hang.",
    ),
    variable(
        "NCCL_MAX_NCHANNELS",
        "1 or more",
        "chosen by NCCL",
        "Most channels, which are blocks on the GPU: fewer disturb less, more carry more.",
    ),
    variable(
        "NCCL_MIN_NCHANNELS",
        "1-32",
        "chosen by NCCL",
        "Fewest channels.",
    ),
    variable(
        "NCCL_MAX_CTAS",
        "1-64",
        "chosen by NCCL",
        "Most blocks on the GPU.",
    ),
    variable(
        "NCCL_MIN_CTAS",
        "1-64",
        "chosen by NCCL",
        "Fewest blocks on the GPU.",
    ),
    variable(
        "NCCL_BUFFSIZE",
        "bytes, a power of 2",
        "4194304",
        "Buffer of the Simple protocol for each pair of GPUs. Larger helps large messages.",
    ),
    variable(
        "NCCL_NTHREADS",
        "64, 128, 256, 512",
        "512 on recent GPUs",
        "Threads of each block.",
    ),
    variable(
        "NCCL_SHM_DISABLE",
        "1",
        "unset",
        "No shared memory of the host; sockets are used, which is very slow.",
    ),
    variable(
        "NCCL_DEBUG",
        "VERSION, WARN, INFO, TRACE",
        "unset",
        "What NCCL logs.",
    ),
    variable(
        "NCCL_DEBUG_SUBSYS",
        "a list of INIT, COLL, P2P, SHM, NET, GRAPH, TUNING, ENV, ALL; ^ leaves out",
        "INIT,BOOTSTRAP,ENV",
        "Which parts of NCCL log.",
    ),
    variable(
        "NCCL_DEBUG_FILE",
        "a path, with %h for the host and %p for the process",
        "standard output",
        "Where NCCL logs to. It is overwritten; ~ is not understood.",
    ),
    variable(
        "NCCL_CUMEM_ENABLE",
        "0, 1",
        "chosen by NCCL; SGLang sets 0",
        "Whether memory comes from cuMem.",
    ),
    variable(
        "NCCL_NVLS_ENABLE",
        "0, 1, 2",
        "2; SGLang sets 0",
        "NVLink SHARP, on machines with NVSwitch.",
    ),
    variable(
        "NCCL_CONF_FILE",
        "a path",
        "~/.nccl.conf, then /etc/nccl.conf",
        "File that sets further variables.",
    ),
    variable(
        "NCCL_SOCKET_IFNAME",
        "names of network interfaces",
        "chosen by NCCL",
        "Interface over which processes find each other.",
    ),
    variable("NCCL_IB_DISABLE", "1", "unset", "No InfiniBand."),
    variable(
        "NCCL_GRAPH_REGISTER",
        "0, 1",
        "1; engines may set 0",
        "Whether buffers of CUDA graphs are registered.",
    ),
    variable(
        "CUDA_VISIBLE_DEVICES",
        "numbers or identities, separated by commas",
        "all",
        "GPUs that the engine sees. A launch claims these and no others.",
    ),
    variable(
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "1-32",
        "8; SGLang always sets 8",
        "Queues to each GPU.",
    ),
    variable(
        "SPT_NOENV",
        "1",
        "unset",
        "Keeps the environment of worker processes readable, at the cost of cut titles in process lists.",
    ),
    variable(
        "VLLM_SERVER_DEV_MODE",
        "1",
        "unset",
        "Opens vLLM's routes for developers, among them the one that tells its resolved settings. Some of them are dangerous: on loopback only.",
    ),
    variable(
        "VLLM_LOG_STATS_INTERVAL",
        "seconds",
        "10",
        "Time between two lines of statistics in the log.",
    ),
    variable(
        "VLLM_ENGINE_READY_TIMEOUT_S",
        "seconds",
        "600",
        "How long vLLM itself waits for its engine to become ready.",
    ),
    variable(
        "VLLM_NCCL_SO_PATH",
        "a path",
        "the one that PyTorch brings",
        "NCCL's library.",
    ),
    variable(
        "VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC",
        "1",
        "off",
        "Another all-reduce over PCIe; whether it helps must be measured.",
    ),
    variable(
        "SGLANG_HEALTH_CHECK_TIMEOUT",
        "seconds",
        "20",
        "How long SGLang's /health waits for a token.",
    ),
    variable(
        "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION",
        "0, 1",
        "1",
        "0 makes SGLang's /health answer without generating.",
    ),
    variable(
        "SGLANG_TORCH_PROFILER_DIR",
        "a path",
        "/tmp",
        "Where profiles are written to.",
    ),
    variable(
        "SGLANG_EXPOSE_OWN_ENV_VARS",
        "1",
        "unset",
        "The server info lists SGLang's own variables.",
    ),
    variable(
        "SGLANG_RECORD_STEP_TIME",
        "1",
        "unset",
        "The server info lists times of steps.",
    ),
    variable(
        "SGLANG_WARMUP_TIMEOUT",
        "seconds",
        "600",
        "How long SGLang's own first request may take.",
    ),
];

/// What is known of a variable.
pub(crate) fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

/// Why a value is not one that NCCL takes; none if it is, or if nothing is known.
pub(crate) fn refusal(name: &str, value: &str) -> Option<String> {
    const PROTOCOLS: [&str; 3] = ["LL", "LL128", "Simple"];
    const ALGORITHMS: [&str; 7] = [
        "Ring",
        "Tree",
        "CollnetChain",
        "CollnetDirect",
        "NVLS",
        "NVLSTree",
        "PAT",
    ];
    let value = value.trim();
    let number = value.parse::<u64>().ok();
    let fits = match name {
        "NCCL_PROTO" => fits_list(value, &PROTOCOLS),
        "NCCL_ALGO" => fits_list(value, &ALGORITHMS),
        "NCCL_P2P_LEVEL" => {
            number.is_some() || ["LOC", "NVL", "PIX", "PXB", "PHB", "SYS"].contains(&value)
        }
        "NCCL_NTHREADS" => matches!(number, Some(64 | 128 | 256 | 512)),
        "NCCL_BUFFSIZE" => number.is_some_and(u64::is_power_of_two),
        "NCCL_MAX_NCHANNELS" => matches!(number, Some(1..)),
        "NCCL_MIN_NCHANNELS" => matches!(number, Some(0..=32)),
        "NCCL_MAX_CTAS" | "NCCL_MIN_CTAS" => matches!(number, Some(1..=64)),
        "NCCL_P2P_DISABLE" | "NCCL_SHM_DISABLE" | "NCCL_CUMEM_ENABLE" | "NCCL_IB_DISABLE" => {
            matches!(number, Some(0 | 1))
        }
        "NCCL_NVLS_ENABLE" => matches!(number, Some(0..=2)),
        "NCCL_DEBUG" => ["VERSION", "WARN", "INFO", "TRACE"]
            .iter()
            .any(|level| level.eq_ignore_ascii_case(value)),
        _ => true,
    };
    if fits {
        return None;
    }
    let values = find(name).map_or("", |variable| variable.values);
    Some(format!(
        "{name} takes {values}; `{value}` is none of these."
    ))
}

/// `LL,Simple`, `^LL128`, `allreduce:tree;broadcast:ring`.
fn fits_list(value: &str, words: &[&str]) -> bool {
    !value.is_empty()
        && value.split(';').all(|part| {
            let list = part.split_once(':').map_or(part, |(_, list)| list).trim();
            let list = list.strip_prefix('^').unwrap_or(list);
            list.split(',').all(|word| {
                words
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(word.trim()))
            })
        })
}

/// Does a variable change how an engine runs, so that it matters if it is set
/// without having been asked for?
pub(crate) fn matters(name: &str) -> bool {
    const ELSEWHERE: [&str; 5] = [
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA_LAUNCH_BLOCKING",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_ALLOC_CONF",
    ];
    // Images state their NCCL's version and how they count their use.
    let harmless = ["NCCL_VERSION", "VLLM_USAGE_SOURCE"];
    !harmless.contains(&name)
        && (["NCCL_", "TORCH_NCCL_", "VLLM_", "SGLANG_", "SGL_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || ELSEWHERE.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_values_pass_and_illegal_ones_are_named() {
        for (name, value) in [
            ("NCCL_PROTO", "LL"),
            ("NCCL_PROTO", "^LL128,Simple"),
            ("NCCL_ALGO", "allreduce:tree;broadcast:ring"),
            ("NCCL_P2P_LEVEL", "SYS"),
            ("NCCL_BUFFSIZE", "16777216"),
            ("NCCL_MAX_NCHANNELS", "16"),
            ("NCCL_NTHREADS", "512"),
            ("NCCL_UNHEARD_OF", "x"),
        ] {
            assert_eq!(refusal(name, value), None);
        }
        for (name, value) in [
            ("NCCL_PROTO", "LL256"),
            ("NCCL_PROTO", ""),
            ("NCCL_ALGO", "Ringg"),
            ("NCCL_P2P_LEVEL", "FAR"),
            ("NCCL_BUFFSIZE", "1000"),
            ("NCCL_NTHREADS", "100"),
            ("NCCL_MIN_NCHANNELS", "33"),
            ("NCCL_DEBUG", "LOUD"),
        ] {
            let said = refusal(name, value).expect(name);
            assert!(said.contains(value) && said.starts_with(name), "{said}");
        }
    }

    #[test]
    fn what_matters_is_told_from_what_images_state() {
        for name in [
            "NCCL_PROTO",
            "CUDA_VISIBLE_DEVICES",
            "VLLM_USE_V1",
            "TORCH_NCCL_X",
        ] {
            assert!(matters(name), "{name}");
        }
        for name in ["NCCL_VERSION", "PATH", "CUDA_HOME", "LD_LIBRARY_PATH"] {
            assert!(!matters(name), "{name}");
        }
    }
}
