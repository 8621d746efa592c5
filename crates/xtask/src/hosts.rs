//! The programs that are copied to hosts: linked statically, so that they run on any
//! Linux of the same architecture, whatever its C library.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::commands::{self, cargo, in_root, target_dir};

/// A program that goes to hosts.
struct Program {
    package: &'static str,
    name: &'static str,
    /// A part of it is C, for which a compiler with fitting headers is needed.
    has_c: bool,
}

const PROGRAMS: [Program; 2] = [
    Program {
        package: "tokdyno-remote",
        name: "tokdyno-agent",
        has_c: false,
    },
    Program {
        package: "tokdyno-loadgen",
        name: "tokdyno-meter",
        has_c: true,
    },
];

/// Rust's name for this architecture with a C library that links statically.
fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// Builds them and puts them into `hosts` beside the program. What cannot be built
/// here for want of a tool is said and left out: the ordinary program then goes to
/// hosts.
///
/// # Errors
/// They do not build.
pub(crate) fn build() -> Result<()> {
    let target = target();
    let beside = target_dir().join("release/hosts");
    // What an earlier build left would be older than what it works with.
    if beside.exists() {
        std::fs::remove_dir_all(&beside)
            .with_context(|| format!("{} cannot be removed", beside.display()))?;
    }
    if !is_installed(&target) {
        eprintln!(
            "hosts: Rust's target {target} is not installed (`rustup target add {target}`). Hosts then get the ordinary programs and need a C library as new as this machine's."
        );
        return Ok(());
    }
    let compiles_c = has_c_compiler(&target);
    if !compiles_c {
        eprintln!(
            "hosts: musl-gcc is not there (Debian calls it musl-tools). Hosts then get the ordinary meter and need a C library as new as this machine's."
        );
    }
    let programs: Vec<&Program> = PROGRAMS
        .iter()
        .filter(|program| compiles_c || !program.has_c)
        .collect();
    commands::run(cargo_build(&target, &programs).arg("--release"))?;
    std::fs::create_dir_all(&beside)
        .with_context(|| format!("{} cannot be made", beside.display()))?;
    for Program { name, .. } in programs {
        let from = target_dir().join(&target).join("release").join(name);
        let to = beside.join(name);
        std::fs::copy(&from, &to)
            .with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))?;
    }
    Ok(())
}

/// Builds the agent alone, quickly, for the test that sends a static one to a host.
///
/// # Errors
/// The target is not installed, or it does not build.
pub(crate) fn build_agent_for_tests() -> Result<()> {
    let target = target();
    if !is_installed(&target) {
        bail!("Rust's target {target} is not installed: run `crates/xtask/scripts/setup.sh test`");
    }
    commands::run(&mut cargo_build(&target, &[&PROGRAMS[0]]))
}

fn cargo_build(target: &str, programs: &[&Program]) -> std::process::Command {
    let mut command = cargo();
    command.args(["build", "--target", target]);
    for Program { package, name, .. } in programs {
        command.args(["--package", package, "--bin", name]);
    }
    command
}

/// A compiler that the build of C parts finds by itself, or one that is named.
fn has_c_compiler(target: &str) -> bool {
    let variable = format!("CC_{}", target.replace('-', "_"));
    let usual = format!("{}-linux-musl-gcc", std::env::consts::ARCH);
    std::env::var_os(variable).is_some()
        || std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path)
                .any(|folder| folder.join("musl-gcc").is_file() || folder.join(&usual).is_file())
        })
}

fn is_installed(target: &str) -> bool {
    let Ok(output) = in_root("rustc").args(["--print", "sysroot"]).output() else {
        return false;
    };
    let sysroot = String::from_utf8_lossy(&output.stdout);
    PathBuf::from(sysroot.trim())
        .join("lib/rustlib")
        .join(target)
        .is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_programs_are_built_for_the_static_target() {
        let programs: Vec<&Program> = PROGRAMS.iter().collect();
        let shown = commands::describe(&cargo_build("x-musl", &programs));
        for expected in [
            "build --target x-musl",
            "--package tokdyno-remote --bin tokdyno-agent",
            "--package tokdyno-loadgen --bin tokdyno-meter",
        ] {
            assert!(shown.contains(expected), "{shown}");
        }
    }
}
