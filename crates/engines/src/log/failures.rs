//! Lines that tell why an engine failed. Substrings as engines and libraries print
//! them.

use tokdyno_domain::launch::FailureKind;

/// How much a line says about the cause. Of equal ones the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// It follows from something else, which is often named before.
    Consequence,
    /// It may be a cause, and may be harmless.
    Hint,
    /// It is a cause.
    Cause,
}

/// A line's sign of failure.
#[derive(Debug)]
pub(super) struct Signature {
    /// All of these stand in the line.
    parts: &'static [&'static str],
    pub(super) kind: FailureKind,
    pub(super) weight: Weight,
}

const fn cause(parts: &'static [&'static str], kind: FailureKind) -> Signature {
    Signature {
        parts,
        kind,
        weight: Weight::Cause,
    }
}

const fn hint(parts: &'static [&'static str], kind: FailureKind) -> Signature {
    Signature {
        parts,
        kind,
        weight: Weight::Hint,
    }
}

const fn consequence(parts: &'static [&'static str]) -> Signature {
    Signature {
        parts,
        kind: FailureKind::EngineDied,
        weight: Weight::Consequence,
    }
}

/// The first that fits a line counts.
const SIGNATURES: &[Signature] = &[
    cause(&["torch.OutOfMemoryError"], FailureKind::OutOfMemory),
    cause(&["CUDA out of memory"], FailureKind::OutOfMemory),
    cause(
        &[
            "Free memory on device",
            "is less than desired GPU memory utilization",
        ],
        FailureKind::TooLittleMemory,
    ),
    cause(
        &["No available memory for the cache blocks"],
        FailureKind::TooLittleMemory,
    ),
    cause(
        &["KV cache is needed, which is larger than the available"],
        FailureKind::TooLittleMemory,
    ),
    cause(
        &["Not enough memory. Please try to increase --mem-fraction-static"],
        FailureKind::TooLittleMemory,
    ),
    cause(
        &["The memory capacity is unbalanced"],
        FailureKind::TooLittleMemory,
    ),
    // Often it repeats what an earlier line or the rest of this one says better.
    hint(&["Capture cuda graph failed"], FailureKind::GraphCapture),
    cause(&["[Errno 98]"], FailureKind::PortTaken),
    cause(&["Address already in use"], FailureKind::PortTaken),
    cause(&["address already in use"], FailureKind::PortTaken),
    cause(&["Port is already in use."], FailureKind::PortTaken),
    cause(&["error:", "unrecognized arguments"], FailureKind::BadFlag),
    cause(&["error:", "ambiguous option"], FailureKind::BadFlag),
    cause(&["error:", "invalid choice"], FailureKind::BadFlag),
    cause(&["failed to extend /dev/shm/nccl-"], FailureKind::Nccl),
    cause(&["NCCL error"], FailureKind::Nccl),
    cause(&["unhandled system error"], FailureKind::Nccl),
    hint(&["NCCL WARN"], FailureKind::Nccl),
    cause(&["no kernel image is available"], FailureKind::Architecture),
    cause(&["Unsupported architecture"], FailureKind::Architecture),
    cause(&["TllmGenFmhaRunner"], FailureKind::Architecture),
    cause(
        &["TRTLLM MHA backend", "only supported on"],
        FailureKind::Architecture,
    ),
    cause(
        &["No valid attention backend found"],
        FailureKind::Architecture,
    ),
    cause(
        &["is not valid for this configuration"],
        FailureKind::Architecture,
    ),
    cause(&["No space left on device"], FailureKind::DiskFull),
    cause(&["No module named", "vllm"], FailureKind::NoProgram),
    cause(&["No module named", "sglang"], FailureKind::NoProgram),
    cause(
        &["docker: Error response from daemon"],
        FailureKind::Activation,
    ),
    consequence(&["Engine core initialization failed. See root cause above"]),
    consequence(&["EngineCore failed to start"]),
    consequence(&["EngineDeadError"]),
    consequence(&["Scheduler hit an exception:"]),
    consequence(&["Received sigquit from a child process"]),
    consequence(&["watchdog timeout"]),
    consequence(&["Watchdog timeout"]),
    consequence(&["Initialization failed. warmup error:"]),
];

/// What a line says of a failure.
pub(super) fn of_line(line: &str) -> Option<&'static Signature> {
    SIGNATURES
        .iter()
        .find(|signature| signature.parts.iter().all(|part| line.contains(part)))
}

/// A command line was refused: with exit code 2 that is the whole story.
pub(super) fn is_usage_error(line: &str) -> bool {
    line.contains("error: ") || line.trim_start().starts_with("usage:")
}

/// A container runtime's last line points to its help and tells no cause.
pub(super) fn is_hint(line: &str) -> bool {
    let line = line.trim();
    (line.starts_with("See '") || line.starts_with("Run '"))
        && ["docker", "podman"]
            .iter()
            .any(|runtime| line.contains(runtime))
        && line.contains("--help'")
}

/// Names of the signals that end engines.
pub(super) const fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        _ => "an unusual one",
    }
}
