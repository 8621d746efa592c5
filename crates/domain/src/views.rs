//! What crosses between browser and server: each page's data, ready to show.

pub mod board;
pub mod compare;
pub mod experiments;
pub mod gates;
pub mod hosts;
pub mod measure;
pub mod profiles;
pub mod run;
pub mod run_host;
pub mod servers;
mod workload_form;

use serde::{Deserialize, Serialize};

use crate::chart::ChartSpec;

/// A chart as a page needs it: what it shows (for the table), how plotly draws it
/// (once WASM has loaded) and a picture for before that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChartView {
    /// What it shows.
    pub spec: ChartSpec,
    /// The plotly figure as JSON, colours as tokens such as `@series1`.
    pub figure: String,
    /// The same as SVG, coloured by the page's custom properties.
    pub svg: String,
}
