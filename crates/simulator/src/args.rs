//! The command line: `simulate vllm …`, `simulate sglang …`, `simulate nvidia-smi …`.

use std::{collections::BTreeMap, future::Future, io::Write as _, process::ExitCode};

use anyhow::Context as _;
use rustix::process::{Signal, getpid, kill_process};

use crate::{
    config::{Engine, SimConfig},
    flags::{FlagError, USAGE_EXIT_CODE},
    life::{self, Ending, Failed},
    nccl, nvidia_smi,
    stop::{Stop, stop_signal},
    worker::{self, WorkerArgs},
};

/// Start a stand-in engine: it looks like vLLM or SGLang and generates nothing.
#[derive(Debug, Clone, clap::Args)]
pub struct SimulateArgs {
    /// Which engine to stand in for, then that engine's own arguments.
    #[command(subcommand)]
    pub command: SimulateCommand,
}

/// What to stand in for, with its own arguments.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum SimulateCommand {
    /// Looks like `vllm serve`.
    #[command(disable_help_flag = true)]
    Vllm(OwnArgs),
    /// Looks like `sglang.launch_server`.
    #[command(disable_help_flag = true)]
    Sglang(OwnArgs),
    /// Answers as `nvidia-smi` would about the simulated GPUs that
    /// TOKDYNO_SIM_GPUS describes.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    NvidiaSmi(OwnArgs),
    /// A worker process of an engine.
    #[command(hide = true)]
    Worker(WorkerArgs),
}

/// Arguments that are read as the real program would read them.
#[derive(Debug, Clone, clap::Args)]
pub struct OwnArgs {
    /// The program's flags; those of the stand-in engine itself begin with --sim-.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    pub args: Vec<String>,
}

/// Printed for `--help`.
const HELP: &str = "\
A stand-in engine: the endpoints and flags of the real one, paced tokens, nothing generated.
Every reply says that it is simulated.

Flags are those of the real engine; unknown ones are refused with exit code 2. Besides:
  --sim-seed N              seed of all that is random (default 0)
  --sim-noise-launch PCT    noise between launches, in percent of the step time
  --sim-noise-repeat PCT    noise between repeats
  --sim-noise-request PCT   noise between requests
  --sim-speed X             X times faster than the model (default 1)
  --sim-step-ms MS          fixed pacing: a token each MS, whatever the batch
  --sim-ttft-ms MS          fixed pacing: the first token after MS
  --sim-fault KIND[:RATE]   misbehave; may be repeated. Kinds: error500, error-in-stream,
                            stall, cut, slow-first-token, no-usage, no-running-usage,
                            refuse-continuous-usage, no-done, not-stream, bad-json, empty
  --sim-log FILE            write true send times, one JSON object a line
  --sim-engine-version V    the version it says it is
  --sim-resolve NAME=VALUE  report VALUE for an argument, whatever was asked; may be repeated
  --sim-startup-ms N        time from the start until it is ready (default 0)
  --sim-start-fault KIND    fail at the start: oom, vllm-memory, sglang-memory, nccl-hang,
                            nccl-error, arch, crash, worker-died, no-ready, wrong-model,
                            die-after:MS
  --sim-children N          N worker processes, in the same process group
  --sim-ignore-term         go on after SIGTERM and SIGINT
TOKDYNO_SIM_GPUS names a folder that describes simulated GPUs. NCCL_* are read from the environment and have an effect, as in docs/simulator.md.
";

/// Does what the command line asks, until it is done or stopped by a signal.
#[must_use]
pub fn run(args: SimulateArgs) -> ExitCode {
    if let SimulateCommand::NvidiaSmi(OwnArgs { args }) = &args.command {
        return nvidia_smi::run(args);
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!(
                "tokdyno: The program could not be started ({error}). Look at the machine's limits on processes and memory."
            );
            return ExitCode::FAILURE;
        }
    };
    let (engine, words) = match args.command {
        SimulateCommand::Vllm(words) => (Engine::Vllm, words.args),
        SimulateCommand::Sglang(words) => (Engine::Sglang, words.args),
        SimulateCommand::Worker(worker) => return runtime.block_on(worker::work(worker)),
        SimulateCommand::NvidiaSmi(words) => return nvidia_smi::run(&words.args),
    };
    let by_kill = match runtime.block_on(serve(engine, &words, stop_signal())) {
        Ok(Ending::Exit) => return ExitCode::SUCCESS,
        Ok(Ending::Kill) => true,
        Err(error) => {
            eprintln!("tokdyno: {error:#}");
            if !error
                .downcast_ref::<Failed>()
                .is_some_and(|failed| failed.by_kill)
            {
                return ExitCode::from(exit_code(&error));
            }
            true
        }
    };
    if by_kill {
        // It cannot fail: a process may always signal itself.
        let _ = kill_process(getpid(), Signal::KILL);
    }
    ExitCode::FAILURE
}

/// Runs a stand-in until `stop` is done. Prints its address on standard output,
/// and what an engine logs on standard error.
///
/// # Errors
/// An unknown flag (see [`exit_code`]), or a stand-in that does not start or fails.
async fn serve(
    engine: Engine,
    words: &[String],
    stop: impl Future<Output = Stop>,
) -> anyhow::Result<Ending> {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print(HELP)?;
        return Ok(Ending::Exit);
    }
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let conf = nccl::read_conf(&env);
    let mut config = SimConfig::parse(engine, words, env)?;
    config.add_nccl_conf(conf);
    life::live(config, stop).await
}

/// The exit code for an error of [`serve`]: 2 for a command line that the engine
/// would refuse, 1 otherwise.
fn exit_code(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<FlagError>().is_some() {
        USAGE_EXIT_CODE
    } else {
        1
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("Standard output cannot be written to")
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser, Subcommand};

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        simulate: SimulateArgs,
    }

    fn config(words: &[&str]) -> Result<SimConfig, FlagError> {
        let cli = Cli::try_parse_from([&["x"], words].concat()).expect("clap leaves it to us");
        match cli.simulate.command {
            SimulateCommand::Vllm(own) => {
                SimConfig::parse(Engine::Vllm, &own.args, BTreeMap::new())
            }
            SimulateCommand::Sglang(own) => {
                SimConfig::parse(Engine::Sglang, &own.args, BTreeMap::new())
            }
            other => panic!("no engine: {other:?}"),
        }
    }

    #[test]
    fn engine_flags_pass_through_clap_untouched() {
        let parsed = config(&[
            "sglang",
            "--port",
            "0",
            "--tp",
            "8",
            "--chunked-prefill-size",
            "-1",
        ])
        .expect("a configuration");
        assert_eq!((parsed.engine, parsed.port), (Engine::Sglang, 0));
        let parsed =
            config(&["vllm", "serve", "/m", "-tp", "8", "--port=0"]).expect("a configuration");
        assert_eq!(parsed.model_path, "/m");
    }

    /// As the program `tokdyno` has it.
    #[derive(Parser)]
    #[command(version, propagate_version = true)]
    struct Whole {
        #[command(subcommand)]
        command: WholeCommand,
    }

    #[derive(Subcommand)]
    enum WholeCommand {
        Simulate(SimulateArgs),
    }

    #[test]
    fn it_fits_below_a_program_with_a_version() {
        Whole::command().debug_assert();
        let words = ["tokdyno", "simulate", "nvidia-smi", "--version"];
        let WholeCommand::Simulate(simulate) = Whole::try_parse_from(words)
            .expect("clap leaves it to us")
            .command;
        let SimulateCommand::NvidiaSmi(own) = simulate.command else {
            panic!("another command")
        };
        assert_eq!(own.args, ["--version"]);
    }

    #[test]
    fn nvidia_smis_flags_pass_through_clap_untouched() {
        for flags in [
            &["-L"][..],
            &["--query-gpu=name", "--format=csv"],
            &["topo", "-m"],
            &["--version"],
            &["-lms", "50"],
        ] {
            let words = [&["x", "nvidia-smi"], flags].concat();
            let cli = Cli::try_parse_from(words).expect("clap leaves it to us");
            let SimulateCommand::NvidiaSmi(own) = cli.simulate.command else {
                panic!("another command")
            };
            assert_eq!(own.args, flags);
        }
    }

    #[tokio::test]
    async fn an_unknown_flag_ends_with_exit_code_2() {
        let words = ["--no-such-flag".to_owned()];
        let error = serve(Engine::Vllm, &words, std::future::pending())
            .await
            .expect_err("a refusal");
        assert_eq!(exit_code(&error), 2);
        assert!(
            error
                .to_string()
                .contains("unrecognized arguments: --no-such-flag")
        );
        assert_eq!(exit_code(&anyhow::anyhow!("other")), 1);
    }

    #[test]
    fn help_names_every_flag_of_the_stand_in() {
        for flag in crate::flags::sim_flags() {
            assert!(HELP.contains(&format!("--{flag} ")), "{flag}");
        }
        for fault in crate::startup::StartFault::PLAIN {
            assert!(HELP.contains(fault.word()), "{fault}");
        }
        for fault in crate::fault::FaultKind::ALL {
            assert!(HELP.contains(fault.word()), "{}", fault.word());
        }
    }
}
