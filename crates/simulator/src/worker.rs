//! Worker processes: hidden copies of this program in the engine's process group.
//!
//! They are named as an engine names its own, hold the simulated GPUs' memory, and
//! outlive a killed launcher, so that stopping a whole group can be tested.

use std::{env, io, os::unix::process::CommandExt as _, process::ExitCode, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::{
    config::{Engine, SimConfig},
    gpu::{Folder, Gpu, Holding},
    stop::{Stop, stop_signal},
};

/// How long workers may take to end before they are killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a worker process is told.
#[derive(Debug, Clone, clap::Args)]
pub struct WorkerArgs {
    /// Folder of the simulated GPUs.
    #[arg(long)]
    gpus: Option<std::path::PathBuf>,
    /// Its name.
    #[arg(long, default_value = "worker")]
    name: String,
    /// GPUs of which it holds memory.
    #[arg(long = "uuid")]
    uuids: Vec<String>,
    /// How much of each.
    #[arg(long, default_value_t = 0)]
    mib: u64,
    /// Go on after SIGTERM.
    #[arg(long)]
    ignore_term: bool,
}

/// Is a worker until it is told to stop.
pub(crate) async fn work(args: WorkerArgs) -> ExitCode {
    let held = args.gpus.map(|folder| {
        Folder::new(folder).hold(Holding {
            uuids: args.uuids,
            used_mib: args.mib,
            name: Some(args.name),
            busy: false,
            started: None,
        })
    });
    if let Some(Err(error)) = &held {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    loop {
        // A worker leaves SIGINT to its launcher, as engines' do.
        if stop_signal().await == Stop::Terminate && !args.ignore_term {
            drop(held);
            return ExitCode::SUCCESS;
        }
    }
}

/// The workers of an engine.
#[derive(Debug, Default)]
pub(crate) struct Workers(Vec<Child>);

impl Workers {
    /// Starts `--sim-children` of them; they share the GPUs.
    pub(crate) fn start(
        config: &SimConfig,
        folder: Option<&Folder>,
        gpus: &[Gpu],
        mib: u64,
    ) -> io::Result<Self> {
        let count = config.sim.startup.children;
        let program = env::current_exe()?;
        // How this program was asked to be the engine, up to the engine's name.
        let words: Vec<_> = env::args_os()
            .skip(1)
            .take_while(|word| word != config.engine.word())
            .collect();
        let mut workers = Self::default();
        for rank in 0..count {
            let name = match config.engine {
                Engine::Vllm => format!("VLLM::Worker_TP{rank}"),
                Engine::Sglang => format!("sglang::scheduler_TP{rank}"),
            };
            let mut command = std::process::Command::new(&program);
            command
                .arg0(&name)
                .args(&words)
                .args(["worker", "--name", &name])
                .stdin(std::process::Stdio::null());
            if let Some(folder) = folder {
                command.arg("--gpus").arg(folder.path());
            }
            let step = usize::try_from(count).unwrap_or(1);
            let first = usize::try_from(rank).unwrap_or(0);
            for gpu in gpus.iter().skip(first).step_by(step) {
                command.args(["--uuid", &gpu.uuid]);
            }
            command.args(["--mib", &mib.to_string()]);
            if config.sim.startup.ignore_term {
                command.arg("--ignore-term");
            }
            // Engines' workers overwrite their environment with their title,
            // unless this variable forbids it.
            if env::var_os("SPT_NOENV").is_none() {
                command.env_clear();
            }
            workers.0.push(Command::from(command).spawn()?);
        }
        Ok(workers)
    }

    /// Waits until one of them is gone; for ever if there is none.
    pub(crate) async fn one_gone(&mut self) {
        if self.0.is_empty() {
            return std::future::pending().await;
        }
        let waits = self.0.iter_mut().map(|child| Box::pin(child.wait()));
        let mut waits: Vec<_> = waits.collect();
        std::future::poll_fn(|context| {
            if waits
                .iter_mut()
                .any(|wait| wait.as_mut().poll(context).is_ready())
            {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }

    /// Ends them: gently, then not.
    pub(crate) async fn stop(&mut self) {
        for child in &mut self.0 {
            let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
            if let Some(pid) = pid.and_then(Pid::from_raw) {
                // Gone already is as good.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        for child in &mut self.0 {
            if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
                // Gone already is as good.
                let _ = child.kill().await;
            }
        }
    }
}
