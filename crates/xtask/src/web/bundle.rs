//! The code of the bundle: cargo, then wasm-bindgen, then wasm-opt.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

use super::Profile;
use super::files::{Asset, files_below, short_hash};
use crate::commands::{self, cargo, in_root, root, target_dir};

/// The target triple of the browser.
const TARGET: &str = "wasm32-unknown-unknown";

/// What rustc emits for that target without being asked.
const WASM_FEATURES: &[&str] = &[
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-call-indirect-overlong",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// Changes whenever the steps below do, so that old results are not used.
const RECIPE: &[u8] = b"wasm-bindgen 0.2.130, binaryen 132, recipe 1";

/// The compiled part of the bundle.
pub(super) struct Code {
    pub(super) js: Asset,
    pub(super) wasm: Asset,
    /// Scripts that crates carry along; the js imports them.
    pub(super) snippets: Vec<Asset>,
}

/// Compiles, binds and shrinks. The last two are skipped where the compiled
/// code is the same as the last time.
///
/// # Errors
/// A step fails or its tool is missing.
pub(super) fn build(profile: Profile) -> Result<Code> {
    let compiled = compile(profile)?;
    let content = std::fs::read(&compiled)
        .with_context(|| format!("{} cannot be read", compiled.display()))?;
    let key = short_hash(&[RECIPE, &content]);
    let work = work_dir(profile);
    let stamp = work.join("key");
    if std::fs::read_to_string(&stamp).is_ok_and(|last| last == key) {
        println!("The code has not changed.");
        return load(&work);
    }
    if work.exists() {
        std::fs::remove_dir_all(&work)?;
    }
    std::fs::create_dir_all(&work)?;
    bind(content, profile, &work)?;
    if profile == Profile::Release {
        shrink(&work.join("tokdyno_bg.wasm"))?;
    }
    let code = load(&work)?;
    // Last: a run that was broken off before leaves no key.
    std::fs::write(&stamp, key)?;
    Ok(code)
}

/// The code of the last build.
///
/// # Errors
/// There was none.
pub(super) fn last(profile: Profile) -> Result<Code> {
    load(&work_dir(profile)).context("there is no bundle yet: run `make web`")
}

fn work_dir(profile: Profile) -> PathBuf {
    target_dir().join(match profile {
        Profile::Release => "site-work/release",
        Profile::Dev => "site-work/dev",
    })
}

fn compile(profile: Profile) -> Result<PathBuf> {
    println!("Compiling app/ for the browser …");
    let (name, directory) = match profile {
        Profile::Release => ("wasm-release", "wasm-release"),
        Profile::Dev => ("dev", "debug"),
    };
    commands::run(
        cargo()
            .args(["rustc", "--package", "tokdyno-app", "--lib"])
            .args(["--crate-type", "cdylib", "--target", TARGET])
            .args(["--profile", name])
            .args(["--no-default-features", "--features", "hydrate"]),
    )?;
    Ok(target_dir()
        .join(TARGET)
        .join(directory)
        .join("tokdyno_app.wasm"))
}

fn bind(content: Vec<u8>, profile: Profile, work: &Path) -> Result<()> {
    println!("Binding it to JavaScript …");
    let mut bindgen = Bindgen::new();
    bindgen
        .input_bytes("tokdyno", content)
        .web(true)?
        .typescript(false)
        .remove_name_section(profile == Profile::Release)
        .remove_producers_section(true)
        .generate(work)
        .context("wasm-bindgen failed")
}

fn shrink(wasm: &Path) -> Result<()> {
    println!("Shrinking it with wasm-opt …");
    let program = root().join("app/node_modules/.bin/wasm-opt");
    if !program.exists() {
        bail!(
            "wasm-opt is not installed: run `npm ci --ignore-scripts` in app/ (`make setup` does it)"
        );
    }
    let small = wasm.with_extension("small");
    commands::run(
        in_root(program)
            .arg("-Oz")
            .args(WASM_FEATURES)
            .arg(wasm)
            .arg("--output")
            .arg(&small),
    )?;
    std::fs::rename(&small, wasm)?;
    Ok(())
}

/// Reads what wasm-bindgen wrote, and gives the snippets' folder a hash too.
fn load(work: &Path) -> Result<Code> {
    let read = |name: &str| {
        let path = work.join(name);
        std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let mut js = read("tokdyno.js")?;
    let wasm = Asset::hashed("tokdyno", "wasm", read("tokdyno_bg.wasm")?);
    let mut snippets = Vec::new();
    let directory = work.join("snippets");
    if directory.is_dir() {
        let mut files = Vec::new();
        for file in files_below(&directory)? {
            let name = file
                .strip_prefix(&directory)?
                .to_string_lossy()
                .into_owned();
            files.push((name, std::fs::read(&file)?));
        }
        let parts: Vec<&[u8]> = files
            .iter()
            .flat_map(|(name, content)| [name.as_bytes(), content])
            .collect();
        let folder = format!("snippets-{}", short_hash(&parts));
        js = String::from_utf8(js)?
            .replace("./snippets/", &format!("./{folder}/"))
            .into_bytes();
        snippets = files
            .into_iter()
            .map(|(name, content)| Asset {
                path: format!("/pkg/{folder}/{name}"),
                content,
            })
            .collect();
    }
    Ok(Code {
        js: Asset::hashed("tokdyno", "js", js),
        wasm,
        snippets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_get_a_hash_and_the_script_follows() {
        let work = tempfile::tempdir().unwrap();
        let snippets = work.path().join("snippets/app-1");
        std::fs::create_dir_all(&snippets).unwrap();
        std::fs::write(snippets.join("inline0.js"), "export {}").unwrap();
        std::fs::write(work.path().join("tokdyno_bg.wasm"), "w").unwrap();
        std::fs::write(
            work.path().join("tokdyno.js"),
            "import * as a from './snippets/app-1/inline0.js';",
        )
        .unwrap();
        let code = load(work.path()).unwrap();
        let path = &code.snippets[0].path;
        let relative = path.strip_prefix("/pkg/").unwrap();
        let js = String::from_utf8(code.js.content).unwrap();
        assert!(js.contains(&format!("'./{relative}'")), "{js} {path}");
    }
}
