//! Why a figure could not be written.

/// Why a figure could not be written. None of these is the reader's fault.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// The figure for plotly.js is not the JSON that was expected of its builder.
    #[error(
        "The chart could not be written for plotly.js. Its table and SVG still hold the figures; please report this."
    )]
    Json(#[from] serde_json::Error),
    /// The table could not be written.
    #[error("The chart's table could not be written as CSV. Please report this.")]
    Csv(#[from] csv::Error),
}
