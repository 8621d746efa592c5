//! `target/site/manifest.json`: what the server serves under which name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use super::files::{Asset, put, short_hash};

/// The addresses of the four files that pages name.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Names {
    pub(super) js: String,
    pub(super) wasm: String,
    pub(super) css: String,
    pub(super) plotly: String,
}

impl Names {
    fn each(&self) -> [(&'static str, &str); 4] {
        [
            ("js", &self.js),
            ("wasm", &self.wasm),
            ("css", &self.css),
            ("plotly", &self.plotly),
        ]
    }
}

/// Bytes as they are and as they travel.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Sizes {
    raw: u64,
    gzip: u64,
    brotli: u64,
}

/// The whole file.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Manifest {
    /// Changes when any file of the bundle does; pages reload by it.
    build_id: String,
    #[serde(flatten)]
    names: Names,
    /// What js and wasm load by themselves, the pages' code above all.
    parts: Vec<String>,
    /// Static files, under their own names: not to be cached for long.
    public: Vec<String>,
    /// By the keys above, and by address for `parts`.
    sizes: BTreeMap<String, Sizes>,
}

impl Manifest {
    /// Describes files that were written below `site`.
    pub(super) fn new(
        site: &Path,
        names: &Names,
        parts: &[Asset],
        public: &[Asset],
    ) -> Result<Self> {
        let mut sizes = BTreeMap::new();
        let mut identity: Vec<&[u8]> = Vec::new();
        let parts = paths(parts);
        for (_, path) in names.each() {
            identity.push(path.as_bytes());
        }
        let of_parts = parts.iter().map(|path| (path.as_str(), path.as_str()));
        for (name, path) in names.each().into_iter().chain(of_parts) {
            let file = format!("{}{path}", site.display());
            sizes.insert(
                name.to_owned(),
                Sizes {
                    raw: length(&file)?,
                    gzip: length(&format!("{file}.gz"))?,
                    brotli: length(&format!("{file}.br"))?,
                },
            );
        }
        for file in public {
            identity.push(file.path.as_bytes());
            identity.push(&file.content);
        }
        Ok(Self {
            build_id: short_hash(&identity),
            names: names.clone(),
            parts,
            public: paths(public),
            sizes,
        })
    }

    /// Puts it in place and returns its path.
    pub(super) fn write(&self, site: &Path) -> Result<PathBuf> {
        let path = site.join("manifest.json");
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        put(&path, &text)?;
        Ok(path)
    }

    /// Shows the sizes to people.
    pub(super) fn print(&self) {
        println!("{:<44} {:>10} {:>10} {:>10}", "", "raw", "gzip", "brotli");
        let of_parts = self.parts.iter().map(|path| (path.as_str(), path.as_str()));
        for (name, path) in self.names.each().into_iter().chain(of_parts) {
            if let Some(sizes) = self.sizes.get(name) {
                println!(
                    "{path:<44} {:>10} {:>10} {:>10}",
                    kilobytes(sizes.raw),
                    kilobytes(sizes.gzip),
                    kilobytes(sizes.brotli)
                );
            }
        }
    }
}

/// The files, with their compressed forms, that the manifest in `site` names.
/// Empty where there is none, or one of another form.
pub(super) fn named_by_last(site: &Path) -> BTreeSet<PathBuf> {
    let last: serde_json::Value = std::fs::read(site.join("manifest.json"))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    let parts = last["parts"].as_array().into_iter().flatten();
    ["js", "wasm", "css", "plotly"]
        .map(|name| &last[name])
        .into_iter()
        .chain(parts)
        .filter_map(|path| path.as_str())
        .flat_map(|path| ["", ".gz", ".br"].map(|ending| format!("{path}{ending}")))
        .map(|path| site.join(path.trim_start_matches('/')))
        .collect()
}

fn paths(assets: &[Asset]) -> Vec<String> {
    assets.iter().map(|asset| asset.path.clone()).collect()
}

fn length(path: &str) -> Result<u64> {
    let metadata = std::fs::metadata(path).with_context(|| format!("{path} is missing"))?;
    Ok(metadata.len())
}

/// 1 kB is 1000 bytes.
fn kilobytes(bytes: u64) -> String {
    format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::Profile;

    #[test]
    fn it_names_the_files_and_their_sizes() {
        let site = tempfile::tempdir().unwrap();
        let asset = |name, extension| {
            let asset = Asset::hashed(name, extension, b"0123456789".repeat(100));
            asset.write(site.path(), Profile::Release).unwrap();
            asset.path
        };
        let names = Names {
            js: asset("tokdyno", "js"),
            wasm: asset("tokdyno", "wasm"),
            css: asset("tokdyno", "css"),
            plotly: asset("plotly", "js"),
        };
        let manifest = Manifest::new(site.path(), &names, &[], &[]).unwrap();
        let path = manifest.write(site.path()).unwrap();
        let json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(json["wasm"], names.wasm.as_str());
        assert_eq!(json["sizes"]["wasm"]["raw"], 1000);
        assert!(json["sizes"]["wasm"]["gzip"].as_u64().unwrap() < 100);
        assert!(json["build_id"].as_str().is_some_and(|id| id.len() == 12));
        // Four files in three forms.
        let last = named_by_last(site.path());
        assert_eq!(last.len(), 12);
        assert!(last.iter().all(|path| path.exists()));
    }

    #[test]
    fn the_build_changes_with_a_static_file() {
        let site = tempfile::tempdir().unwrap();
        let path = || {
            let asset = Asset::hashed("a", "js", b"a".to_vec());
            asset.write(site.path(), Profile::Dev).unwrap();
            asset.path
        };
        let names = Names {
            js: path(),
            wasm: path(),
            css: path(),
            plotly: path(),
        };
        let build = |content: &[u8]| {
            let file = Asset {
                path: "/favicon.svg".into(),
                content: content.to_vec(),
            };
            Manifest::new(site.path(), &names, &[], &[file])
                .unwrap()
                .build_id
        };
        assert_eq!(build(b"1"), build(b"1"));
        assert_ne!(build(b"1"), build(b"2"));
    }
}
