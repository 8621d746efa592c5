//! What the server tells every page about itself.

use serde::{Deserialize, Serialize};

/// Addresses of the built files, with their content hashes, from `manifest.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assets {
    /// The module that loads the WebAssembly.
    pub js: String,
    /// The WebAssembly.
    pub wasm: String,
    /// The style sheet.
    pub css: String,
    /// plotly.js, loaded only where a chart is.
    pub plotly: String,
    /// Changes with any of the files.
    pub build_id: String,
}

/// Which part of the program this page belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// The tool.
    #[default]
    Full,
    /// The listener for shared links: frozen comparisons, no way into the tool.
    Shared,
}
