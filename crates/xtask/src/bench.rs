//! How exactly and how cheaply the meter measures: beside a bare reader of the
//! same bytes and the clients of others, against the stand-in's own log of when
//! it sent what. Client and server are held to a core each.

mod clients;
mod process;
mod stand_in;
mod table;
mod truth;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use tokdyno_domain::workload::Api;

use self::clients::{Client, Programs, Task};
use self::process::Cores;
use self::stand_in::StandIn;
use self::table::{Row, Verdicts};
use crate::commands::target_dir;

/// Tokens of each reply.
const TOKENS: u32 = 128;
/// Time to the first token, in ms.
const TTFT_MS: u32 = 50;

/// A load level: C, the time between tokens in ms, and requests per slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    concurrency: u32,
    step_ms: u32,
    waves: u32,
}

const LEVELS: [Level; 5] = [
    Level::new(1, 10, 2),
    Level::new(32, 10, 2),
    Level::new(128, 10, 3),
    LEVEL_512,
    Level::new(1024, 40, 2),
];
const LEVEL_512: Level = Level::new(512, 10, 4);
/// At which chunks of several tokens are looked at.
const CHUNKS: Level = Level::new(32, 10, 2);

/// A way of packing tokens into chunks: its name, and the stand-in's arguments.
/// The last one speculates, so that its steps yield different numbers.
const PACKINGS: [(&str, &[&str]); 3] = [
    ("1", &["--sim-ttft-ms", "50", "--sim-step-ms", "10"]),
    (
        "4",
        &[
            "--sim-ttft-ms",
            "50",
            "--sim-step-ms",
            "10",
            "--stream-interval",
            "4",
        ],
    ),
    (
        "mixed",
        &[
            "--speculative-algorithm",
            "EAGLE3",
            "--speculative-num-steps",
            "3",
            "--speculative-eagle-topk",
            "1",
            "--speculative-num-draft-tokens",
            "4",
            "--speculative-draft-model-path",
            "drafter",
        ],
    ),
];

impl Level {
    const fn new(concurrency: u32, step_ms: u32, waves: u32) -> Self {
        Self {
            concurrency,
            step_ms,
            waves,
        }
    }

    fn schedule(self) -> Vec<String> {
        let (ttft, step) = (TTFT_MS.to_string(), self.step_ms.to_string());
        ["--sim-ttft-ms", &ttft, "--sim-step-ms", &step]
            .map(str::to_owned)
            .to_vec()
    }

    /// Tokens a second if no time at all were lost between two requests.
    fn ideal_tps(self) -> f64 {
        let reply_ms = TTFT_MS + (TOKENS - 1) * self.step_ms;
        f64::from(self.concurrency * TOKENS) * 1000.0 / f64::from(reply_ms)
    }

    const fn task(self, api: Api) -> Task {
        Task {
            api,
            concurrency: self.concurrency,
            requests: self.concurrency * self.waves,
            tokens: TOKENS,
        }
    }
}

/// Measures, prints a table and what holds of the aims. Times never make it
/// fail; wrong counts do.
///
/// # Errors
/// The programs are not built, or do not work; or there is no such level.
pub(crate) fn run(only: Option<u32>) -> Result<ExitCode> {
    let bench = Bench::prepare()?;
    let levels: Vec<Level> = LEVELS
        .into_iter()
        .filter(|level| only.is_none_or(|only| level.concurrency == only))
        .collect();
    if levels.is_empty() {
        bail!(
            "the levels are {}",
            LEVELS.map(|level| level.concurrency.to_string()).join(", ")
        );
    }
    println!(
        "Client on core {}, server on core {}; load of the machine before: {}.\n",
        bench.cores.client,
        bench.cores.server,
        process::load()
    );
    println!("{}", table::HEAD);
    let mut verdicts = Verdicts::default();
    for level in &levels {
        for api in [Api::Completions, Api::Chat] {
            let bare = bench.measure(Client::Bare, *level, api)?;
            println!("{}", bare.line(&bare));
            let meter = bench.measure(Client::Meter, *level, api)?;
            println!("{}", meter.line(&bare));
            verdicts.judge(&meter, &bare);
            if *level == LEVEL_512 && api == Api::Chat {
                bench.others(*level, &bare);
            }
        }
    }
    println!("\n{}", table::PACKING_HEAD);
    for (name, arguments) in PACKINGS {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let row = bench.measure_with(Client::Meter, CHUNKS, Api::Chat, &arguments)?;
        println!("{}", row.packing_line(name));
        verdicts.judge_packing(&row, name);
    }
    println!();
    for speed in bench.parser()? {
        println!(
            "Parser: {:.0} chunks/s on one core ({}, {} bytes each).",
            speed.chunks_per_s, speed.stream, speed.bytes_per_chunk
        );
        verdicts.judge_parser(&speed.stream, speed.chunks_per_s);
    }
    println!(
        "\nLoad of the machine after: {}.\n{verdicts}",
        process::load()
    );
    Ok(if verdicts.counts_are_exact() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Bench {
    programs: Programs,
    cores: Cores,
}

/// A line of the parser's own benchmark.
#[derive(Debug, Deserialize)]
struct ParserSpeed {
    stream: String,
    chunks_per_s: f64,
    bytes_per_chunk: u64,
}

impl Bench {
    fn prepare() -> Result<Self> {
        let folder = target_dir().join("release");
        let programs = Programs {
            meter: folder.join("tokdyno-meter"),
            bare: folder.join("examples/bare_reader"),
            stand_in: folder.join("stand-in"),
            parser: folder.join("examples/parser_speed"),
        };
        for program in [
            &programs.meter,
            &programs.bare,
            &programs.stand_in,
            &programs.parser,
        ] {
            if !program.exists() {
                bail!("{} is not built: run `make bench`", program.display());
            }
        }
        let cores = Cores::find()?
            .context("client and server want a core each, and this machine grants only one")?;
        Ok(Self { programs, cores })
    }

    fn measure(&self, client: Client, level: Level, api: Api) -> Result<Row> {
        self.measure_with(client, level, api, &level.schedule())
    }

    /// One client against a stand-in of its own.
    fn measure_with(
        &self,
        client: Client,
        level: Level,
        api: Api,
        arguments: &[String],
    ) -> Result<Row> {
        let work = tempfile::tempdir()?;
        let log = work.path().join("truth.jsonl");
        let task = level.task(api);
        let engine = StandIn::start(&self.programs.stand_in, self.cores.server, &log, arguments)?;
        let report = client
            .run(
                &self.programs,
                self.cores.client,
                &engine.url,
                task,
                work.path(),
            )
            .with_context(|| format!("{} at C = {}", client.name(), level.concurrency))?;
        engine.stop()?;
        let truth = truth::Figures::read(&log, task.requests as usize, u64::from(TOKENS))?;
        Ok(Row {
            client,
            task,
            report,
            truth,
            ideal_tps: level.ideal_tps(),
        })
    }

    /// The clients of others, where they are at hand. One that fails is named, and
    /// takes nothing from the rest.
    fn others(&self, level: Level, bare: &Row) {
        let (here, missing): (Vec<Client>, Vec<Client>) = Client::OTHERS
            .into_iter()
            .partition(|client| client.is_here());
        for client in here {
            match self.measure(client, level, Api::Chat) {
                Ok(row) => println!("{}", row.line(bare)),
                Err(error) => eprintln!("not measured: {error:#}"),
            }
        }
        if !missing.is_empty() {
            let names: Vec<&str> = missing.into_iter().map(Client::name).collect();
            eprintln!("not on the PATH: {}", names.join(", "));
        }
    }

    /// Without a server: the decoding by itself.
    fn parser(&self) -> Result<Vec<ParserSpeed>> {
        let mut command = Command::new(&self.programs.parser);
        command.stdout(std::process::Stdio::piped());
        let output = process::spawn_on(self.cores.client, &mut command)?.wait_with_output()?;
        if !output.status.success() {
            bail!("the parser's benchmark ended with {}", output.status);
        }
        String::from_utf8(output.stdout)?
            .lines()
            .map(|line| serde_json::from_str(line).context("the parser's benchmark"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_is_what_the_schedule_allows() {
        // 50 ms and 127 steps of 10 ms: 1.32 s for 128 tokens.
        assert_eq!(LEVEL_512.ideal_tps().round(), 49_648.0);
        assert_eq!(LEVEL_512.task(Api::Chat).requests, 2048);
        assert_eq!(
            LEVEL_512.schedule(),
            ["--sim-ttft-ms", "50", "--sim-step-ms", "10"]
        );
    }
}
