//! All checks and tests, one after another, with their times.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::commands::{self, cargo, in_root, root, target_dir};
use crate::test_db::ThrowawayDb;
use crate::{hosts, sqlx_prepare, web};

/// What tests use of the crates beside their own code: a real sshd.
const TEST_FEATURES: [&str; 2] = ["--features", "tokdyno-remote/testing"];

/// One part, and what one types to run it alone.
struct Part {
    name: &'static str,
    alone: &'static str,
    run: fn() -> Result<()>,
}

/// Cheap ones first.
const PARTS: &[Part] = &[
    Part {
        name: "format",
        alone: "cargo fmt --all --check",
        run: format,
    },
    Part {
        name: "lint",
        alone: "make lint",
        run: lint,
    },
    Part {
        name: "lint-browser",
        alone: "make lint",
        run: lint_browser,
    },
    Part {
        name: "tests",
        alone: "cargo xtask test --only tests",
        run: tests,
    },
    Part {
        name: "doc-tests",
        alone: "cargo test --workspace --doc",
        run: doc_tests,
    },
    Part {
        name: "queries",
        alone: "cargo xtask sqlx-prepare --check",
        run: queries,
    },
    Part {
        name: "bundle",
        alone: "make web",
        run: bundle,
    },
    Part {
        name: "end-to-end",
        alone: "cargo xtask test --only end-to-end",
        run: end_to_end,
    },
];

/// Runs the parts, stops at the first that fails, and prints a table.
///
/// # Errors
/// `only` names no part.
pub(crate) fn run(only: Option<&str>) -> Result<ExitCode> {
    let chosen: Vec<&Part> = PARTS
        .iter()
        .filter(|part| only.is_none_or(|words| part.name.contains(words)))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        bail!("no part has that name. There are: {}.", names.join(", "));
    }
    let begun = Instant::now();
    let mut table = Vec::new();
    let mut failed = None;
    for part in chosen {
        println!("\n── {} ──", part.name);
        let part_begun = Instant::now();
        let outcome = (part.run)();
        table.push((part.name, part_begun.elapsed(), outcome.is_ok()));
        if let Err(error) = outcome {
            failed = Some((part, error));
            break;
        }
    }
    println!("\n{:<14} {:>8}", "part", "time");
    for (name, time, passed) in table {
        let mark = if passed { "passed" } else { "FAILED" };
        println!("{name:<14} {:>8}  {mark}", clock(time));
    }
    println!("{:<14} {:>8}", "all", clock(begun.elapsed()));
    Ok(match failed {
        None => ExitCode::SUCCESS,
        Some((part, error)) => {
            eprintln!(
                "\nThe part {} failed: {error:#}. Alone it is run by: {}",
                part.name, part.alone
            );
            ExitCode::FAILURE
        }
    })
}

fn format() -> Result<()> {
    commands::run(cargo().args(["fmt", "--all", "--check"]))
        .context("run `cargo fmt --all` and look at what it changed")
}

fn lint() -> Result<()> {
    commands::run(
        cargo()
            .args(["clippy", "--workspace", "--all-targets"])
            .args(TEST_FEATURES)
            .args(["--", "--deny", "warnings"]),
    )
}

fn lint_browser() -> Result<()> {
    commands::run(cargo().args([
        "clippy",
        "--package",
        "tokdyno-app",
        "--target",
        "wasm32-unknown-unknown",
        "--no-default-features",
        "--features",
        "hydrate",
        "--",
        "--deny",
        "warnings",
    ]))
}

/// The programs that tests start: cargo builds only a package's own for its tests.
fn programs() -> Result<()> {
    commands::run(
        cargo()
            .args(["build", "--workspace", "--bins", "--examples"])
            // It runs just now, and no test starts it.
            .args(["--exclude", "tokdyno-xtask"])
            .args(TEST_FEATURES),
    )
}

fn tests() -> Result<()> {
    programs()?;
    hosts::build_agent_for_tests()?;
    let database = ThrowawayDb::start()?;
    let mut command = cargo();
    if has_nextest() {
        command.args(["nextest", "run", "--workspace"]);
    } else {
        // Doc tests are a part of their own.
        command.args(["test", "--workspace", "--lib", "--bins", "--tests"]);
    }
    let built = target_dir().join("debug").canonicalize()?;
    commands::run(
        command
            .args(TEST_FEATURES)
            .env("DATABASE_URL", &database.url)
            // Named, so that no test builds them anew while another one uses them.
            .env("TOKDYNO_METER", built.join("tokdyno-meter"))
            .env("TOKDYNO_AGENT", built.join("tokdyno-agent")),
    )
}

fn has_nextest() -> bool {
    cargo()
        .args(["nextest", "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
}

fn doc_tests() -> Result<()> {
    commands::run(cargo().args(["test", "--workspace", "--doc"]))
}

fn queries() -> Result<()> {
    sqlx_prepare::run(true)
}

fn bundle() -> Result<()> {
    web::build(web::Profile::Release)
}

fn end_to_end() -> Result<()> {
    programs()?;
    let playwright = root().join("end2end/node_modules/.bin/playwright");
    if !playwright.exists() {
        bail!("Playwright is not installed: run `crates/xtask/scripts/setup.sh test`");
    }
    let mut command: Command = in_root(playwright);
    command
        .arg("test")
        .current_dir(root().join("end2end"))
        .env(
            "TOKDYNO_BIN",
            target_dir().join("debug/tokdyno").canonicalize()?,
        )
        .env(
            "TOKDYNO_TEST_SSHD",
            target_dir()
                .join("debug/examples/test_sshd")
                .canonicalize()?,
        )
        // The program is to start its own database there.
        .env_remove("DATABASE_URL");
    commands::run(&mut command)
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_minutes_and_seconds() {
        assert_eq!(clock(Duration::from_millis(65_900)), "1:05");
    }

    #[test]
    fn an_unknown_part_is_an_error_that_lists_the_parts() {
        let text = run(Some("nonsense")).unwrap_err().to_string();
        assert!(text.contains("end-to-end"), "{text}");
    }
}
