//! The code of the bundle: cargo, then wasm-split, wasm-bindgen and wasm-opt.
//!
//! The parts refer to each other by name, so they keep their names and lie in a
//! folder that carries the hash of them all.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};
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
const RECIPE: &[u8] = b"wasm-bindgen 0.2.130, binaryen 132, wasm-split 0.2.4, recipe 2";

/// The module that starts the program, and what wasm-bindgen calls its code.
const JS: &str = "tokdyno.js";
const WASM: &str = "tokdyno_bg.wasm";

/// Tells from what the files beside it were made.
const KEY: &str = "key";

/// The module that loads the parts.
const LOADER: &str = "parts.js";

/// The compiled part of the bundle.
pub(super) struct Code {
    pub(super) js: Asset,
    pub(super) wasm: Asset,
    /// What these two load by themselves: the pages' code, and scripts that crates
    /// carry along.
    pub(super) parts: Vec<Asset>,
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
    let stamp = work.join(KEY);
    if std::fs::read_to_string(&stamp).is_ok_and(|last| last == key) {
        println!("The code has not changed.");
        return load(&work);
    }
    if work.exists() {
        std::fs::remove_dir_all(&work)?;
    }
    std::fs::create_dir_all(&work)?;
    match profile {
        Profile::Release => {
            let main = cut(&content, &work)?;
            bind(main, profile, &work)?;
            shrink(&work)?;
        }
        Profile::Dev => bind(content, profile, &work)?,
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
    let mut command = cargo();
    command
        .args(["rustc", "--package", "tokdyno-app", "--lib"])
        .args(["--crate-type", "cdylib", "--target", TARGET])
        .args(["--profile", name])
        .args(["--no-default-features", "--features", "hydrate"]);
    if profile == Profile::Release {
        // By these the code is cut into parts.
        command.args(["--", "-Clink-arg=--emit-relocs"]);
    }
    commands::run(&mut command)?;
    Ok(target_dir()
        .join(TARGET)
        .join(directory)
        .join("tokdyno_app.wasm"))
}

/// Puts the code of each page, and what some of them share, into files of their
/// own in `work`, and returns the rest.
fn cut(content: &[u8], work: &Path) -> Result<Vec<u8>> {
    println!("Cutting it into parts …");
    let main = work.join("main.wasm");
    let mut options = wasm_split_cli_support::Options::new(content);
    let link_name = format!("./{LOADER}");
    let main_module = format!("./{JS}");
    options.output_dir = work;
    options.main_out_path = &main;
    options.link_name = &link_name;
    options.main_module = &main_module;
    options.emit_dwarf = false;
    wasm_split_cli_support::transform(options)
        .map_err(|error| anyhow!("wasm-split failed: {error:#}"))?;
    let rest = std::fs::read(&main)?;
    std::fs::remove_file(&main)?;
    Ok(rest)
}

fn bind(content: Vec<u8>, profile: Profile, work: &Path) -> Result<()> {
    println!("Binding it to JavaScript …");
    let release = profile == Profile::Release;
    let mut bindgen = Bindgen::new();
    bindgen
        .input_bytes("tokdyno", content)
        .web(true)?
        .typescript(false)
        // The parts import what the linker exports.
        .keep_lld_exports(release)
        .remove_name_section(release)
        .remove_producers_section(true)
        .generate(work)
        .context("wasm-bindgen failed")
}

/// Makes all code in `work` smaller, several files at a time.
fn shrink(work: &Path) -> Result<()> {
    println!("Shrinking it with wasm-opt …");
    let program = root().join("app/node_modules/.bin/wasm-opt");
    if !program.exists() {
        bail!(
            "wasm-opt is not installed: run `npm ci --ignore-scripts` in app/ (`make setup` does it)"
        );
    }
    let mut files = files_below(work)?;
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "wasm")
    });
    let files = Mutex::new(files.into_iter());
    let next = || files.lock().ok()?.next();
    let worker = || {
        while let Some(wasm) = next() {
            shrink_file(&program, &wasm)?;
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        started.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err(anyhow!("wasm-opt could not be run")))
        })
    })
}

fn shrink_file(program: &Path, wasm: &Path) -> Result<()> {
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

/// Reads what the tools wrote, and names the folder it goes to.
fn load(work: &Path) -> Result<Code> {
    let mut files = Vec::new();
    for path in files_below(work)? {
        let name = path.strip_prefix(work)?.to_string_lossy().into_owned();
        if name != KEY {
            let content = std::fs::read(&path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            files.push((name, content));
        }
    }
    let parts: Vec<&[u8]> = files
        .iter()
        .flat_map(|(name, content)| [name.as_bytes(), content])
        .collect();
    let folder = format!("/pkg/{}", short_hash(&parts));
    let (mut js, mut wasm, mut parts) = (None, None, Vec::new());
    for (name, content) in files {
        let asset = Asset {
            path: format!("{folder}/{name}"),
            content,
        };
        match name.as_str() {
            JS => js = Some(asset),
            WASM => wasm = Some(asset),
            _ => parts.push(asset),
        }
    }
    let missing = |name| format!("{} is missing", work.join(name).display());
    Ok(Code {
        js: js.with_context(|| missing(JS))?,
        wasm: wasm.with_context(|| missing(WASM))?,
        parts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_changes_with_every_part_and_names_stay() {
        let work = tempfile::tempdir().unwrap();
        let put = |name: &str, content: &str| std::fs::write(work.path().join(name), content);
        std::fs::create_dir_all(work.path().join("snippets")).unwrap();
        put(JS, "import './snippets/a.js'").unwrap();
        put(WASM, "w").unwrap();
        put("snippets/a.js", "1").unwrap();
        put(KEY, "k").unwrap();
        let one = load(work.path()).unwrap();
        let folder = one.js.path.strip_suffix("/tokdyno.js").unwrap();
        assert_eq!(one.wasm.path, format!("{folder}/tokdyno_bg.wasm"));
        assert_eq!(one.parts.len(), 1, "the key is no part");
        assert_eq!(one.parts[0].path, format!("{folder}/snippets/a.js"));
        put("snippets/a.js", "2").unwrap();
        let two = load(work.path()).unwrap();
        assert_ne!(one.js.path, two.js.path);
    }

    #[test]
    fn code_without_its_main_file_is_refused() {
        let work = tempfile::tempdir().unwrap();
        std::fs::write(work.path().join(JS), "").unwrap();
        let error = load(work.path()).err().unwrap().to_string();
        assert!(error.contains(WASM), "{error}");
    }
}
