//! The command line: `simulate vllm …` and `simulate sglang …`.

use std::{collections::BTreeMap, future::Future, io::Write as _};

use anyhow::Context as _;

use crate::{
    config::{Engine, SimConfig},
    flags::{FlagError, USAGE_EXIT_CODE},
    server::Simulator,
};

/// Start a stand-in engine: it looks like vLLM or SGLang and generates nothing.
#[derive(Debug, Clone, clap::Args)]
pub struct SimulateArgs {
    /// Which engine to stand in for, then that engine's own arguments.
    #[command(subcommand)]
    pub engine: SimulateEngine,
}

/// Which engine, with its own arguments and the stand-in's (`--sim-…`).
#[derive(Debug, Clone, clap::Subcommand)]
pub enum SimulateEngine {
    /// Looks like `vllm serve`.
    #[command(disable_help_flag = true)]
    Vllm(EngineArgs),
    /// Looks like `sglang.launch_server`.
    #[command(disable_help_flag = true)]
    Sglang(EngineArgs),
}

/// Arguments that are read as the engine would read them.
#[derive(Debug, Clone, clap::Args)]
pub struct EngineArgs {
    /// The engine's flags, and those of the stand-in, which begin with --sim-.
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
NCCL_* are read from the environment and have an effect, as in docs/simulator.md.
";

impl SimulateArgs {
    /// The configuration for these arguments in this environment.
    ///
    /// # Errors
    /// What the engine would refuse.
    pub fn config(&self, env: BTreeMap<String, String>) -> Result<SimConfig, FlagError> {
        let (engine, args) = self.parts();
        SimConfig::parse(engine, args, env)
    }

    fn parts(&self) -> (Engine, &[String]) {
        match &self.engine {
            SimulateEngine::Vllm(args) => (Engine::Vllm, &args.args),
            SimulateEngine::Sglang(args) => (Engine::Sglang, &args.args),
        }
    }
}

/// Runs a stand-in until `shutdown` is done. Prints its address on standard
/// output, and then lines as an engine logs them.
///
/// # Errors
/// An unknown flag (see [`exit_code`]), or a stand-in that does not start.
pub async fn serve(
    args: SimulateArgs,
    shutdown: impl Future<Output = ()> + Send,
) -> anyhow::Result<()> {
    let (engine, words) = args.parts();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print(HELP)?;
        return Ok(());
    }
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let config = args.config(env)?;
    let seed = config.sim.seed;
    let ready = ready_lines(&config);
    let simulator = Simulator::spawn_with_log(config)
        .await
        .context("The stand-in engine did not start")?;
    print(&format!(
        "Tokdyno stand-in (simulated) listening on {}\n[simulated] {engine} stand-in, seed {seed}\n{ready}",
        simulator.url()
    ))?;
    shutdown.await;
    simulator.stop().await;
    Ok(())
}

/// The exit code for an error of [`serve`]: 2 for a command line that the engine
/// would refuse, 1 otherwise.
#[must_use]
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<FlagError>().is_some() {
        USAGE_EXIT_CODE
    } else {
        1
    }
}

/// What the engine logs when it is ready, marked.
fn ready_lines(config: &SimConfig) -> String {
    match config.engine {
        Engine::Vllm => "[simulated] Application startup complete.\n".to_owned(),
        Engine::Sglang => format!(
            "[simulated] max_total_num_tokens={}, max_running_requests={}, context_len={}\n\
             [simulated] The server is fired up and ready to roll!\n",
            crate::stats::CACHE_TOKENS,
            config.max_running,
            config.max_model_len
        ),
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
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        simulate: SimulateArgs,
    }

    fn config(words: &[&str]) -> Result<SimConfig, FlagError> {
        let cli = Cli::try_parse_from([&["x"], words].concat()).expect("clap leaves it to us");
        cli.simulate.config(BTreeMap::new())
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

    #[tokio::test]
    async fn an_unknown_flag_ends_with_exit_code_2() {
        let cli =
            Cli::try_parse_from(["x", "vllm", "--no-such-flag"]).expect("clap leaves it to us");
        let error = serve(cli.simulate, std::future::pending())
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
}
