//! What an engine logs when it fails, and how it ends.

use crate::{
    config::{Engine, SimConfig},
    startup::{Line, Stage, StartFault, Voice},
};

/// The end of an engine that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Death {
    /// What it logs last.
    pub(crate) lines: Vec<Line>,
    /// Does it end by SIGKILL rather than with exit code 1?
    pub(crate) by_kill: bool,
}

/// After which stage a fault strikes, and how the engine ends; no end for a fault
/// that is no sudden death.
pub(crate) fn death(fault: StartFault, config: &SimConfig) -> Option<(Stage, Death)> {
    let vllm = config.engine == Engine::Vllm;
    let ordinary = |lines| exit(config.engine, lines);
    Some(match fault {
        StartFault::Oom => {
            let text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. \
                        GPU 0 has 1.21 GiB free of 94.97 GiB.";
            let lines = if vllm {
                traceback(text)
            } else {
                let mut lines = traceback(text);
                lines.push(trouble(
                    "Capture cuda graph failed: CUDA out of memory. Lower --mem-fraction-static or the largest batch.",
                ));
                lines
            };
            (Stage::Capture, ordinary(lines))
        }
        StartFault::VllmMemory | StartFault::SglangMemory => {
            let stage = memory_stage(config.engine);
            (stage, shortage(config, 12.34, 94.97))
        }
        StartFault::NcclError => {
            let mut lines = vec![Line::new(
                Voice::Bare,
                "NCCL WARN Call to ibv_create_qp failed with error Cannot allocate memory",
            )];
            lines.extend(traceback(
                "RuntimeError: NCCL error: unhandled system error (NCCL_DEBUG=INFO tells more)",
            ));
            (Stage::Engine, ordinary(lines))
        }
        StartFault::Arch => {
            let text = if vllm {
                "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"
            } else {
                "RuntimeError: TllmGenFmhaRunner: Unsupported architecture"
            };
            (Stage::Cache, ordinary(traceback(text)))
        }
        StartFault::Crash => (
            Stage::Weights,
            Death {
                lines: Vec::new(),
                by_kill: true,
            },
        ),
        StartFault::WorkerDied => (Stage::Weights, worker_death(config.engine, true)),
        StartFault::NcclHang
        | StartFault::NoReady
        | StartFault::WrongModel
        | StartFault::DieAfter(_) => return None,
    })
}

/// When an engine looks at the free memory.
fn memory_stage(engine: Engine) -> Stage {
    match engine {
        Engine::Vllm => Stage::Engine,
        Engine::Sglang => Stage::Weights,
    }
}

/// Too little free memory on a GPU.
pub(crate) fn shortage(config: &SimConfig, free_gib: f64, total_gib: f64) -> Death {
    let share = config.memory_share;
    let text = match config.engine {
        Engine::Vllm => format!(
            "ValueError: Free memory on device cuda:0 ({free_gib:.2}/{total_gib:.2} GiB) on startup is less than \
             desired GPU memory utilization ({share}, {:.2} GiB).",
            share * total_gib
        ),
        Engine::Sglang => format!(
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. \
             mem_fraction_static={share}, available={free_gib:.2} GB"
        ),
    };
    exit(config.engine, traceback(&text))
}

/// A worker fails, during the start or while the engine runs.
pub(crate) fn worker_death(engine: Engine, starting: bool) -> Death {
    match engine {
        Engine::Vllm => {
            let mut lines =
                traceback("RuntimeError: Worker failed with error 'unspecified launch failure'");
            if starting {
                lines.push(trouble("EngineCore failed to start."));
                return exit(engine, lines);
            }
            lines.push(trouble("EngineCore encountered a fatal error."));
            lines.push(Line::new(
                Voice::Bare,
                "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
            ));
            Death {
                lines,
                by_kill: false,
            }
        }
        // SGLang's launcher kills its process tree, itself included.
        Engine::Sglang => Death {
            by_kill: true,
            ..exit(
                engine,
                traceback("torch.AcceleratorError: CUDA error: unspecified launch failure"),
            )
        },
    }
}

/// A failure of the start that the launcher notices and reports.
fn exit(engine: Engine, mut lines: Vec<Line>) -> Death {
    match engine {
        Engine::Vllm => lines.push(Line::new(
            Voice::Bare,
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        )),
        Engine::Sglang => {
            lines.insert(0, trouble("Scheduler hit an exception:"));
            lines.push(Line::new(
                Voice::Main,
                "Received sigquit from a child process: one of the workers has failed.",
            ));
        }
    }
    Death {
        lines,
        by_kill: false,
    }
}

fn traceback(error: &str) -> Vec<Line> {
    [
        "Traceback (most recent call last):",
        "  File \"/opt/engine/worker.py\", line 1, in stand_in",
        error,
    ]
    .map(trouble)
    .into()
}

fn trouble(text: &str) -> Line {
    Line::new(Voice::Trouble, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{sglang, vllm};

    fn text(death: &Death) -> String {
        let lines: Vec<&str> = death.lines.iter().map(|line| line.text.as_str()).collect();
        lines.join("\n")
    }

    #[test]
    fn each_failure_carries_its_signature() {
        let (vllm, sglang) = (vllm(&[]), sglang(&[]));
        for (fault, config, signatures) in [
            (
                StartFault::Oom,
                &vllm,
                &["torch.OutOfMemoryError", "CUDA out of memory"][..],
            ),
            (StartFault::Oom, &sglang, &["Capture cuda graph failed"]),
            (
                StartFault::VllmMemory,
                &vllm,
                &[
                    "Free memory on device",
                    "is less than desired GPU memory utilization",
                ],
            ),
            (
                StartFault::SglangMemory,
                &sglang,
                &["Not enough memory. Please try to increase --mem-fraction-static"],
            ),
            (
                StartFault::NcclError,
                &vllm,
                &["NCCL WARN", "NCCL error", "unhandled system error"],
            ),
            (StartFault::Arch, &vllm, &["no kernel image is available"]),
            (
                StartFault::Arch,
                &sglang,
                &["TllmGenFmhaRunner", "Unsupported architecture"],
            ),
            (
                StartFault::WorkerDied,
                &vllm,
                &[
                    "EngineCore failed to start",
                    "Engine core initialization failed. See root cause above",
                ],
            ),
            (
                StartFault::WorkerDied,
                &sglang,
                &[
                    "Scheduler hit an exception:",
                    "Received sigquit from a child process",
                ],
            ),
        ] {
            let (_, death) = death(fault, config).expect("an end");
            for signature in signatures {
                assert!(
                    text(&death).contains(signature),
                    "{fault}: {}",
                    text(&death)
                );
            }
        }
        assert!(text(&worker_death(Engine::Vllm, false)).contains("EngineDeadError"));
        assert!(death(StartFault::Crash, &vllm).is_some_and(|(_, death)| death.by_kill));
        assert!(death(StartFault::NcclHang, &vllm).is_none());
    }
}
