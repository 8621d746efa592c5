//! A [`ChartSpec`](tokdyno_domain::chart::ChartSpec) as a picture: as a figure for
//! plotly.js, as a static SVG, and its numbers as CSV; and a comparison as the preview
//! picture of its link. Server side only.

mod drawable;
mod error;
mod palette;
mod picture;
mod plotly_figure;
mod scale;
mod svg;
mod table;
mod text;
mod ticks;

pub use error::FigureError;
pub use palette::{PALETTE_DARK, PALETTE_LIGHT, Theme};
pub use picture::{PICTURE_HEIGHT, PICTURE_WIDTH, PictureError, PictureText, picture};
pub use plotly_figure::plotly_json;
pub use svg::svg;
pub use table::{csv, csv_field};
