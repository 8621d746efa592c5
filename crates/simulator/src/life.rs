//! A stand-in's life as a process: start-up, service, end.

use std::{
    fmt,
    future::{Future, pending},
    io::Write as _,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use tokio::time::{Instant, sleep_until};

use crate::{
    config::{Engine, SimConfig},
    gpu::{Folder, GPUS_VARIABLE, Gpu, Held, Holding},
    nccl::NcclLog,
    routes::Phase,
    server::{self, Bound, SimError, Simulator},
    startup::{self, Beat, Death, Line, Log, Stage, StartFault, Voice},
    stop::Stop,
    worker::Workers,
};

/// How long SGLang lets running requests end.
const SGLANG_PATIENCE: Duration = Duration::from_secs(10);
/// How often a start-up that never ends says something.
const CHATTER: Duration = Duration::from_millis(500);
/// How often it is noted whether requests run.
const BUSY_STEP: Duration = Duration::from_millis(250);
/// How long what is being written may take at the end.
const FLUSH: Duration = Duration::from_millis(50);
/// MiB in a GiB.
const GIB: f64 = 1024.0;

/// How a stand-in ends without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With exit code 0.
    Exit,
    /// By SIGKILL from itself.
    Kill,
}

/// It failed, as a real engine might. What it logged says more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    reason: String,
    pub(crate) by_kill: bool,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The stand-in engine (simulated) ended: {}", self.reason)
    }
}

impl std::error::Error for Failed {}

/// What the process holds while it lives.
#[derive(Default)]
struct Body {
    held: Option<Held>,
    workers: Workers,
}

/// Lives until `stop` says otherwise or a fault ends it.
pub(crate) async fn live(
    config: SimConfig,
    stop: impl Future<Output = Stop>,
) -> anyhow::Result<Ending> {
    let log = Log {
        engine: config.engine,
    };
    let stubborn = config.sim.startup.ignore_term;
    let mut stop = pin!(async move {
        let how = stop.await;
        if stubborn {
            log.say(
                Voice::Main,
                "Told to stop, and going on (--sim-ignore-term).",
            );
            return pending().await;
        }
        how
    });
    let config = Arc::new(config);
    let mut body = Body::default();
    let started = tokio::select! {
        biased;
        _ = &mut stop => None,
        started = start(&config, log, &mut body) => Some(started),
    };
    let mut simulator = match started {
        Some(Ok(simulator)) => simulator,
        Some(Err(error)) => return Err(fell(error, log, &mut body).await),
        None => {
            log.say(Voice::Main, "Told to stop before it was ready.");
            body.workers.stop().await;
            return Ok(Ending::Exit);
        }
    };
    let served = tokio::select! {
        biased;
        how = &mut stop => Ok(how),
        death = serve(&config, &simulator, &mut body) => Err(death),
    };
    match served {
        Ok(how) => {
            end(&config, log, &mut simulator).await;
            simulator.stop().await;
            body.workers.stop().await;
            drop(body);
            // The last lines of the log of true send times are on their way.
            tokio::time::sleep(FLUSH).await;
            // SGLang's launcher ends by killing its process tree, itself included.
            Ok(match (config.engine, how) {
                (Engine::Sglang, Stop::Terminate) => Ending::Kill,
                _ => Ending::Exit,
            })
        }
        Err(error) => Err(fell(error, log, &mut body).await),
    }
}

/// An end that nobody asked for: says the last words and stops the workers, but
/// for a crash, in which nobody is left to do so.
async fn fell(error: Fall, log: Log, body: &mut Body) -> anyhow::Error {
    match error {
        Fall::Death(death, reason) => {
            log.print(&death.lines);
            if !death.lines.is_empty() {
                body.workers.stop().await;
            }
            Failed {
                reason,
                by_kill: death.by_kill,
            }
            .into()
        }
        Fall::Other(error) => {
            body.workers.stop().await;
            error
        }
    }
}

enum Fall {
    Death(Death, String),
    Other(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Fall {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

/// Goes through the start-up, until the stand-in serves.
async fn start(config: &Arc<SimConfig>, log: Log, body: &mut Body) -> Result<Simulator, Fall> {
    let options = &config.sim.startup;
    let begun = Instant::now();
    // vLLM takes its port before it loads, SGLang when it has loaded.
    let mut bound = match config.engine {
        Engine::Vllm => Some(take(config, log).await?),
        Engine::Sglang => None,
    };
    let wanted = format!("http://{}:{}", config.host, config.port);
    let url = bound
        .as_ref()
        .map_or(wanted, |bound| server::url(bound.address));
    let fault = options.fault;
    let death = fault.and_then(|fault| startup::death(fault, config));
    let mut simulator = None;
    for Beat { at, ends, lines } in startup::script(config, &url) {
        sleep_until(begun + options.time * at / 1000).await;
        let lines = match (ends, config.engine) {
            (Some(Stage::Http), Engine::Sglang) => {
                let bound = take(config, log).await?;
                let lines = with_address(lines, &url, &server::url(bound.address));
                simulator = Some(listen(config, bound)?);
                lines
            }
            _ => lines,
        };
        log.print(&lines);
        match ends {
            Some(Stage::Engine) => log_nccl(config)?,
            Some(Stage::Weights) => load(config, body)?,
            Some(Stage::Http) => {
                if let Some(bound) = bound.take() {
                    simulator = Some(listen(config, bound)?);
                }
            }
            Some(Stage::Ready) => {
                if let Some(simulator) = &simulator {
                    simulator.enter(Phase::Ready);
                }
            }
            _ => {}
        }
        if let Some((stage, death)) = &death
            && ends == Some(*stage)
            && let Some(fault) = fault
        {
            let reason = format!("it was told to (--sim-start-fault {fault}).");
            return Err(Fall::Death(death.clone(), reason));
        }
        match (fault, ends) {
            (Some(StartFault::NcclHang), Some(Stage::Engine)) => return pending().await,
            (Some(StartFault::NoReady), Some(Stage::Graphs)) if config.engine == Engine::Vllm => {
                return chatter(log, "Waiting for 1 local engine to be ready.").await;
            }
            (Some(StartFault::NoReady), Some(Stage::Http)) => {
                return chatter(log, "Warm-up request has no answer yet.").await;
            }
            _ => {}
        }
    }
    simulator
        .context("The start-up is over and nothing listens")
        .map_err(Fall::from)
}

/// SGLang learns its port only when it takes it.
fn with_address(lines: Vec<Line>, wanted: &str, url: &str) -> Vec<Line> {
    lines
        .into_iter()
        .map(|line| Line::new(line.voice, line.text.replace(wanted, url)))
        .collect()
}

async fn chatter<T>(log: Log, text: &str) -> T {
    loop {
        log.say(Voice::Main, text);
        tokio::time::sleep(CHATTER).await;
    }
}

/// Takes the port; a port that is taken is logged in the engine's words too.
async fn take(config: &SimConfig, log: Log) -> Result<Bound, Fall> {
    let taken = Bound::take(config).await;
    if let Err(SimError::Listen { address, source }) = &taken
        && source.kind() == std::io::ErrorKind::AddrInUse
    {
        let text = match config.engine {
            Engine::Vllm => "OSError: [Errno 98] Address already in use".to_owned(),
            Engine::Sglang => {
                format!("ERROR:    [Errno 98] {address} cannot be bound: address already in use")
            }
        };
        log.print(&[Line::new(Voice::Bare, text)]);
    }
    Ok(taken.context("The stand-in engine did not start")?)
}

fn listen(config: &Arc<SimConfig>, bound: Bound) -> Result<Simulator, Fall> {
    let lines = server::printer().map_err(SimError::Thread)?;
    let phase = match config.engine {
        Engine::Vllm => Phase::Ready,
        Engine::Sglang => Phase::Starting,
    };
    let simulator = Simulator::start(bound, Arc::clone(config), Some(lines), phase)
        .context("The stand-in engine did not start")?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "Tokdyno stand-in (simulated) listening on {}\n[simulated] {} stand-in, seed {}",
        simulator.url(),
        config.engine,
        config.sim.seed
    )
    .and_then(|()| out.flush())
    .context("Standard output cannot be written to")?;
    Ok(simulator)
}

fn log_nccl(config: &SimConfig) -> anyhow::Result<()> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let Some(log) = NcclLog::of(config, host.trim(), std::process::id()) else {
        return Ok(());
    };
    if log.file.is_none() {
        // Into the engine's own log; one that nobody reads stops nobody.
        let _ = std::io::stderr().lock().write_all(log.text.as_bytes());
    }
    log.write().with_context(|| {
        format!(
            "NCCL's log {} cannot be written; name a file in a folder that exists in NCCL_DEBUG_FILE",
            log.file.unwrap_or_default().display()
        )
    })
}

/// Takes the memory of the simulated GPUs, if there are some, and starts workers.
fn load(config: &SimConfig, body: &mut Body) -> Result<(), Fall> {
    let folder = std::env::var_os(GPUS_VARIABLE)
        .filter(|name| !name.is_empty())
        .map(Folder::new);
    let mut gpus: Vec<Gpu> = Vec::new();
    let mut mib = 0;
    if let Some(folder) = &folder {
        let inventory = folder.inventory()?;
        let devices = config.env.get("CUDA_VISIBLE_DEVICES").map(String::as_str);
        let holdings = folder.holdings();
        for gpu in inventory.visible(devices, config.tensor_parallel)? {
            let used = inventory.used_mib(&gpu.uuid, &holdings);
            let free = gpu.memory_mib.saturating_sub(used);
            mib = (gpu.memory_mib as f64 * config.memory_share) as u64;
            if free < mib {
                let death =
                    startup::shortage(config, free as f64 / GIB, gpu.memory_mib as f64 / GIB);
                let holders: Vec<String> = holdings
                    .iter()
                    .filter(|(_, holding)| holding.uuids.contains(&gpu.uuid))
                    .map(|(pid, _)| pid.to_string())
                    .collect();
                let reason = format!(
                    "{} needs {mib} MiB and has {free} MiB free; held by process {}.",
                    gpu.uuid,
                    holders.join(", ")
                );
                return Err(Fall::Death(death, reason));
            }
            gpus.push(gpu.clone());
        }
    }
    let alone = config.sim.startup.children == 0;
    if let Some(folder) = &folder {
        body.held = Some(folder.hold(Holding {
            uuids: gpus.iter().map(|gpu| gpu.uuid.clone()).collect(),
            used_mib: if alone { mib } else { 0 },
            name: Some(match config.engine {
                Engine::Vllm => "VLLM::EngineCore".to_owned(),
                Engine::Sglang => "sglang::scheduler".to_owned(),
            }),
            busy: false,
            started: None,
        })?);
    }
    if !alone {
        body.workers = Workers::start(config, folder.as_ref(), &gpus, mib).context(
            "The stand-in's worker processes did not start; free resources of the machine",
        )?;
    }
    Ok(())
}

/// Serves until something ends it that nobody asked for.
async fn serve(config: &SimConfig, simulator: &Simulator, body: &mut Body) -> Fall {
    let Body { held, workers } = body;
    let time_is_up = async {
        match config.sim.startup.fault {
            Some(StartFault::DieAfter(time)) => tokio::time::sleep(time).await,
            _ => pending().await,
        }
    };
    let note = async {
        let Some(held) = held else {
            return pending().await;
        };
        loop {
            if let Err(error) = held.set_busy(simulator.in_flight() > 0) {
                return error;
            }
            tokio::time::sleep(BUSY_STEP).await;
        }
    };
    let reason = tokio::select! {
        () = time_is_up => "it was told to (--sim-start-fault die-after).",
        () = workers.one_gone() => "one of its worker processes is gone.",
        error = note => return error.into(),
    };
    let death = startup::worker_death(config.engine, false);
    Fall::Death(death, reason.to_owned())
}

/// Takes no more requests and lets those that run end, within the engine's limit.
async fn end(config: &SimConfig, log: Log, simulator: &mut Simulator) {
    let running = simulator.in_flight();
    let limit = match config.engine {
        Engine::Vllm => config.shutdown_timeout,
        Engine::Sglang => SGLANG_PATIENCE,
    };
    log.say(
        Voice::Main,
        match config.engine {
            Engine::Vllm => format!(
                "Shutting down: waiting at most {} s for {running} requests.",
                limit.as_secs_f64()
            ),
            Engine::Sglang => {
                format!("Gracefully exiting: {running} requests remain.")
            }
        },
    );
    let left = simulator.drain(limit).await;
    log.say(
        Voice::Main,
        format!("Shut down; {left} requests were cut off."),
    );
    if config.engine == Engine::Vllm {
        log.say(Voice::Web, "Application shutdown complete.");
    }
}
