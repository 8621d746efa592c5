//! Who measures: our meter, the bare reader, and the clients of others.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokdyno_domain::endpoint::TlsTrust;
use tokdyno_domain::meter::{Certify, METER_SCHEMA, MeterEvent, MeterEventKind, MeterSpec};
use tokdyno_domain::metrics::StageFigures;
use tokdyno_domain::workload::{Api, LoadLevel, StageKind, StageSize, Workload};

use super::process::{self, Cost};

/// Longest run of one client at one level.
const LONGEST: Duration = Duration::from_secs(300);
/// Names a folder with a tokenizer for those clients that want one.
pub(super) const TOKENIZER: &str = "TOKDYNO_BENCH_TOKENIZER";

/// What is asked of a client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Task {
    pub(super) api: Api,
    pub(super) concurrency: u32,
    pub(super) requests: u32,
    pub(super) tokens: u32,
}

/// What a client reported, and what it cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Report {
    pub(super) ttft_ms: Option<f64>,
    pub(super) ttft_p99_ms: Option<f64>,
    pub(super) tpot_ms: Option<f64>,
    pub(super) itl_ms: Option<f64>,
    pub(super) itl_p50_ms: Option<f64>,
    pub(super) output_tps: Option<f64>,
    /// Token chunks that shared a read, of all; the meter alone tells.
    pub(super) coalesced: Option<f64>,
    /// Requests that succeeded, and their tokens, where the client tells.
    pub(super) counts: Option<(u64, u64)>,
    pub(super) cost: Cost,
}

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    Meter,
    Bare,
    Vllm,
    Sglang,
    Aiperf,
    Guidellm,
}

/// Where our own programs are.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    pub(super) meter: PathBuf,
    pub(super) bare: PathBuf,
    pub(super) stand_in: PathBuf,
    pub(super) parser: PathBuf,
}

impl Client {
    /// Those of others.
    pub(super) const OTHERS: [Self; 4] = [Self::Vllm, Self::Sglang, Self::Aiperf, Self::Guidellm];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Meter => "tokdyno",
            Self::Bare => "bare reader",
            Self::Vllm => "vllm bench serve",
            Self::Sglang => "sglang.bench_serving",
            Self::Aiperf => "aiperf",
            Self::Guidellm => "guidellm",
        }
    }

    /// Can it be started here?
    pub(super) fn is_here(self) -> bool {
        match self {
            Self::Meter | Self::Bare => true,
            Self::Vllm => on_path("vllm"),
            Self::Aiperf => on_path("aiperf"),
            Self::Guidellm => on_path("guidellm"),
            Self::Sglang => Command::new("python3")
                .args([
                    "-c",
                    "import importlib.util as u, sys; sys.exit(u.find_spec('sglang') is None)",
                ])
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success()),
        }
    }

    /// Measures a server, on one core.
    ///
    /// # Errors
    /// The client cannot be started, fails, or reports what cannot be read.
    pub(super) fn run(
        self,
        programs: &Programs,
        core: usize,
        url: &str,
        task: Task,
        work: &Path,
    ) -> Result<Report> {
        match self {
            Self::Meter => meter(&programs.meter, core, url, task, work),
            Self::Bare => bare(&programs.bare, core, url, task, work),
            _ => {
                let tokenizer = std::env::var(TOKENIZER).with_context(|| {
                    format!("it wants a tokenizer: let {TOKENIZER} name a folder with one")
                })?;
                let out = work.join("report");
                let mut command = self.command(url, task, &tokenizer, &out);
                let cost = finish(core, &mut command, &work.join("said"), None)?;
                self.read(&out, cost)
            }
        }
    }

    /// The command line of another's client.
    fn command(self, url: &str, task: Task, tokenizer: &str, out: &Path) -> Command {
        let Task {
            api,
            concurrency,
            requests,
            tokens,
        } = task;
        let chat = api == Api::Chat;
        let words = match self {
            Self::Vllm => format!(
                "vllm bench serve --backend {} --base-url {url} --endpoint {} --model stand-in \
                 --dataset-name random --random-input-len 32 --random-output-len {tokens} \
                 --num-prompts {requests} --max-concurrency {concurrency} --ignore-eos \
                 --percentile-metrics ttft,tpot,itl --metric-percentiles 99 --disable-tqdm --save-result",
                if chat { "openai-chat" } else { "openai" },
                api.path(),
            ),
            Self::Sglang => format!(
                "python3 -m sglang.bench_serving --backend {} --base-url {url} --model stand-in \
                 --dataset-name random-ids --random-input-len 32 --random-output-len {tokens} \
                 --random-range-ratio 1 --num-prompts {requests} --max-concurrency {concurrency} --disable-tqdm",
                if chat {
                    "sglang-oai-chat"
                } else {
                    "sglang-oai"
                },
            ),
            Self::Aiperf => format!(
                "aiperf profile --model stand-in --url {url} --endpoint-type {} --streaming \
                 --concurrency {concurrency} --request-count {requests} --synthetic-input-tokens-mean 32 \
                 --output-tokens-mean {tokens} --extra-inputs ignore_eos:true --ui none",
                if chat { "chat" } else { "completions" },
            ),
            _ => format!(
                "guidellm run --backend kind=openai_http,target={url},model=stand-in,request_format={} \
                 --profile kind=concurrent,streams={concurrency} \
                 --constraint kind=max_requests,count={requests} \
                 --data kind=synthetic_text,prompt_tokens=32,output_tokens={tokens} --disable-progress",
                api.path(),
            ),
        };
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        match self {
            Self::Vllm => command
                .args(["--tokenizer", tokenizer, "--result-filename"])
                .arg(out),
            Self::Sglang => command
                .args(["--tokenizer", tokenizer, "--output-file"])
                .arg(out),
            Self::Aiperf => command
                .args(["--tokenizer", tokenizer, "--artifact-dir"])
                .arg(out),
            _ => command
                .arg("--tokenizer")
                .arg(format!("kind=huggingface_auto,model={tokenizer}"))
                .arg("--output")
                .arg(format!(
                    "kind=json,path={}",
                    out.with_extension("json").display()
                )),
        };
        command
    }

    /// The figures another's client left behind.
    fn read(self, out: &Path, cost: Cost) -> Result<Report> {
        let (file, keys) = match self {
            Self::Vllm | Self::Sglang => (
                out.to_owned(),
                [
                    "/mean_ttft_ms",
                    "/p99_ttft_ms",
                    "/mean_tpot_ms",
                    "/output_throughput",
                ],
            ),
            Self::Aiperf => (
                out.join("profile_export_aiperf.json"),
                [
                    "/time_to_first_token/avg",
                    "/time_to_first_token/p99",
                    "/inter_token_latency/avg",
                    "/output_token_throughput/avg",
                ],
            ),
            _ => (
                out.with_extension("json"),
                [
                    "/benchmarks/0/metrics/time_to_first_token_ms/successful/mean",
                    "/benchmarks/0/metrics/time_to_first_token_ms/successful/percentiles/p99",
                    "/benchmarks/0/metrics/inter_token_latency_ms/successful/mean",
                    "/benchmarks/0/metrics/output_tokens_per_second/successful/mean",
                ],
            ),
        };
        let text = fs::read_to_string(&file)
            .with_context(|| format!("it left no report {}", file.display()))?;
        report_of(&text, keys, cost)
    }
}

/// The last JSON value of a report (one of these clients appends lines), by keys
/// for mean TTFT, p99 TTFT, mean TPOT and tok/s.
fn report_of(text: &str, keys: [&str; 4], cost: Cost) -> Result<Report> {
    let report: Value = serde_json::Deserializer::from_str(text)
        .into_iter()
        .last()
        .context("its report is empty")?
        .context("its report is no JSON")?;
    let [ttft_ms, ttft_p99_ms, tpot_ms, output_tps] =
        keys.map(|key| report.pointer(key).and_then(Value::as_f64));
    if ttft_ms.is_none() || output_tps.is_none() {
        bail!("its report has other names than are known here");
    }
    Ok(Report {
        ttft_ms,
        ttft_p99_ms,
        tpot_ms,
        itl_ms: None,
        itl_p50_ms: None,
        output_tps,
        coalesced: None,
        counts: None,
        cost,
    })
}

fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Runs a client to its end; what it says goes into a file.
fn finish(core: usize, command: &mut Command, said: &Path, input: Option<&str>) -> Result<Cost> {
    let errors = said.with_extension("errors");
    command
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(File::create(said)?)
        .stderr(File::create(&errors)?);
    let mut child = process::spawn_on(core, command)?;
    let mut pipe = child.stdin.take();
    if let (Some(pipe), Some(input)) = (&mut pipe, input) {
        pipe.write_all(input.as_bytes())?;
    }
    // The end of its input would stop the meter: kept open until it has ended.
    let (status, cost) = process::watch(&mut child, LONGEST)?;
    drop(pipe);
    if !status.success() {
        let errors = fs::read_to_string(&errors).unwrap_or_default();
        let lines: Vec<&str> = errors.lines().collect();
        bail!(
            "it ended with {status}: {}",
            lines.last().copied().unwrap_or("without a word")
        );
    }
    Ok(cost)
}

fn bare(program: &Path, core: usize, url: &str, task: Task, work: &Path) -> Result<Report> {
    let said = work.join("said");
    let mut command = Command::new(program);
    command
        .arg(url.strip_prefix("http://").unwrap_or(url))
        .arg(match task.api {
            Api::Chat => "chat",
            Api::Completions => "completions",
        })
        .args([task.concurrency, task.requests, task.tokens].map(|number| number.to_string()));
    let cost = finish(core, &mut command, &said, None)?;
    let keys = ["/ttft_ms", "/ttft_p99_ms", "/tpot_ms", "/output_tps"];
    report_of(&fs::read_to_string(&said)?, keys, cost)
}

fn meter(program: &Path, core: usize, url: &str, task: Task, work: &Path) -> Result<Report> {
    let said = work.join("said");
    let level = LoadLevel {
        kind: StageKind::ClosedLoop {
            concurrency: task.concurrency,
        },
        size: StageSize::Requests {
            requests: task.requests,
        },
    };
    let mut workload = Workload::with_levels("bench", vec![level]);
    workload.api = task.api;
    workload.output_tokens = task.tokens;
    // Enough to open every connection's way; the tokens of it are not measured.
    workload.warmup_output_tokens = 2;
    let spec = MeterSpec {
        schema: METER_SCHEMA,
        endpoint: url.parse().context("the stand-in's address")?,
        model: None,
        tls: TlsTrust::System,
        api_key: None,
        workload,
        certify: Certify::Off,
        spool: None,
    };
    let line = serde_json::to_string(&spec)? + "\n";
    let cost = finish(core, &mut Command::new(program), &said, Some(&line))?;
    let figures = stage_figures(&fs::read_to_string(&said)?)?;
    Ok(Report {
        ttft_ms: figures.ttft_ms.mean,
        ttft_p99_ms: figures.ttft_ms.p99,
        tpot_ms: figures.tpot_ms.mean,
        itl_ms: figures.itl_ms.mean,
        itl_p50_ms: figures.itl_ms.p50,
        output_tps: figures.output_tps,
        coalesced: figures.coalesced_share,
        counts: Some((figures.completed, figures.output_tokens)),
        cost,
    })
}

/// The figures among the meter's events.
fn stage_figures(lines: &str) -> Result<StageFigures> {
    for line in lines.lines().rev() {
        let event: MeterEvent = serde_json::from_str(line).context("an event of the meter")?;
        if let MeterEventKind::StageFinished { figures, .. } = event.kind {
            return Ok(*figures);
        }
    }
    bail!("the meter told no figures")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Cost = Cost {
        cpu_s: 1.0,
        memory_mib: 2.0,
    };

    #[test]
    fn the_reports_of_others_are_read_by_their_names() {
        let work = tempfile::tempdir().unwrap();
        let out = work.path().join("report");
        let line =
            r#"{"mean_ttft_ms":1.5,"p99_ttft_ms":2.5,"mean_tpot_ms":10.5,"output_throughput":99}"#;
        // Appended to: the last run counts.
        fs::write(&out, format!("{}\n{line}\n", line.replace("1.5", "7.5"))).unwrap();
        for client in [Client::Vllm, Client::Sglang] {
            let report = client.read(&out, COST).unwrap();
            assert_eq!(
                [
                    report.ttft_ms,
                    report.ttft_p99_ms,
                    report.tpot_ms,
                    report.output_tps
                ],
                [Some(1.5), Some(2.5), Some(10.5), Some(99.0)]
            );
        }
        fs::write(
            out.with_extension("json"),
            r#"{"benchmarks":[{"metrics":{"time_to_first_token_ms":{"successful":{"mean":3.0,"percentiles":{"p99":4.0}}},"inter_token_latency_ms":{"successful":{"mean":5.0}},"output_tokens_per_second":{"successful":{"mean":6.0}}}}]}"#,
        )
        .unwrap();
        let report = Client::Guidellm.read(&out, COST).unwrap();
        assert_eq!(
            (report.ttft_p99_ms, report.output_tps),
            (Some(4.0), Some(6.0))
        );
        fs::write(out.with_extension("json"), "{}").unwrap();
        let refused = Client::Guidellm.read(&out, COST).unwrap_err();
        assert!(refused.to_string().contains("other names"));
        assert!(Client::Aiperf.read(&out, COST).is_err());
    }

    #[test]
    fn every_command_line_asks_for_the_same() {
        let task = Task {
            api: Api::Chat,
            concurrency: 512,
            requests: 2048,
            tokens: 128,
        };
        for client in Client::OTHERS {
            let command = client.command("http://h:1", task, "/t", Path::new("/out"));
            let line = crate::commands::describe(&command);
            for part in ["http://h:1", "512", "2048", "128", "/t", "/out"] {
                assert!(line.contains(part), "{line}");
            }
        }
    }
}
