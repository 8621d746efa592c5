//! The browser bundle: WebAssembly, style sheet, plotly.js and static files,
//! under names that carry their content's hash, compressed beforehand.
//!
//! `target/site/manifest.json` is written last and by renaming, so that a
//! server that runs never sees a name whose file is not there yet.

mod bundle;
mod compress;
mod files;
mod manifest;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::commands::{root, target_dir};
use files::{Asset, public_files, style_sheet};
use manifest::{Manifest, Names};

/// How much work goes into the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// Small: whole-program optimisation, wasm-opt, best compression.
    Release,
    /// Quick: none of these.
    Dev,
}

/// Where the bundle goes. The quick one has a place of its own, so that it
/// never takes the files from under a server that serves the other.
pub(crate) fn site_dir(profile: Profile) -> PathBuf {
    target_dir().join(match profile {
        Profile::Release => "site",
        Profile::Dev => "site-dev",
    })
}

/// Builds the whole bundle. What has not changed is not built again.
///
/// # Errors
/// The sources do not compile, or a tool is missing; the message names it.
pub(crate) fn build(profile: Profile) -> Result<()> {
    let _lock = lock(profile)?;
    let code = bundle::build(profile)?;
    assemble(profile, &code, &plotly()?)
}

/// Renews the style sheet and the static files beside the code that is there.
///
/// # Errors
/// There is no bundle yet, or a file cannot be read.
pub(crate) fn refresh_style(profile: Profile) -> Result<()> {
    let _lock = lock(profile)?;
    let code = bundle::last(profile)?;
    assemble(profile, &code, &plotly()?)
}

/// Writes all files, then the manifest, then removes what neither it nor the
/// manifest before it names.
fn assemble(profile: Profile, code: &bundle::Code, plotly: &Asset) -> Result<()> {
    let site = site_dir(profile);
    let css = style_sheet(&root().join("style"))?;
    // Pages of the last build are still open somewhere, and load what it named.
    let mut kept = manifest::named_by_last(&site);
    for part in &code.parts {
        kept.extend(part.write(&site, profile)?);
    }
    let public = public_files(&root().join("public"))?;
    for file in &public {
        kept.extend(file.write(&site, profile)?);
    }
    let named = [&code.js, &code.wasm, &css, plotly];
    for asset in named {
        kept.extend(asset.write(&site, profile)?);
    }
    let manifest = Manifest::new(
        &site,
        &Names {
            js: code.js.path.clone(),
            wasm: code.wasm.path.clone(),
            css: css.path.clone(),
            plotly: plotly.path.clone(),
        },
        &code.parts,
        &public,
    )?;
    kept.insert(manifest.write(&site)?);
    remove_stale(&site, &kept)?;
    manifest.print();
    Ok(())
}

/// plotly.js as npm installed it.
fn plotly() -> Result<Asset> {
    let path = root().join("app/node_modules/plotly.js-basic-dist-min/plotly-basic.min.js");
    let content = std::fs::read(&path).context(
        "plotly.js is not installed: run `npm ci --ignore-scripts` in app/ (`make setup` does it)",
    )?;
    Ok(Asset::hashed("plotly", "js", content))
}

/// Two builds at once would remove each other's files.
fn lock(profile: Profile) -> Result<std::fs::File> {
    let site = site_dir(profile);
    std::fs::create_dir_all(&site)?;
    let path = site.with_extension("lock");
    let file = std::fs::File::create(&path)?;
    file.lock()
        .with_context(|| format!("{} cannot be locked", path.display()))?;
    Ok(file)
}

fn remove_stale(directory: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_stale(&path, kept)?;
            // Fails while something is in it, which is right.
            let _ = std::fs::remove_dir(&path);
        } else if !kept.contains(&path) {
            std::fs::remove_file(&path)
                .with_context(|| format!("{} cannot be removed", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_files_stay() {
        let site = tempfile::tempdir().unwrap();
        let asset = Asset::hashed("a", "js", b"1".to_vec());
        let kept: BTreeSet<PathBuf> = asset
            .write(site.path(), Profile::Dev)
            .unwrap()
            .into_iter()
            .collect();
        let stale = site.path().join("pkg/old/b.js");
        std::fs::create_dir_all(stale.parent().unwrap()).unwrap();
        std::fs::write(&stale, "2").unwrap();
        remove_stale(site.path(), &kept).unwrap();
        assert!(!stale.parent().unwrap().exists());
        assert_eq!(kept.len(), 3, "the file, and its two compressed forms");
        assert!(kept.iter().all(|path| path.exists()));
    }
}
