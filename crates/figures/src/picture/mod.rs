//! The preview picture of a comparison: what chat programs show for its link. It is
//! drawn as SVG and rasterised here, with fonts that the program carries: what fonts a
//! machine has makes no difference.

mod column;
mod font;
mod page;
mod paragraph;
mod plot;
mod raster;
mod text;
mod verdict;

#[cfg(test)]
mod tests;

use tokdyno_domain::chart::ChartSpec;

use crate::palette::Theme;

pub use text::PictureText;

/// Width of a preview picture, in pixels: what most programs show uncut.
pub const PICTURE_WIDTH: u32 = 1200;
/// Height of a preview picture, in pixels.
pub const PICTURE_HEIGHT: u32 = 630;

/// Why a preview picture could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The page's own colours mean nothing in a file of its own.
    #[error(
        "A preview picture stands outside the page and has no colours of the page. Ask for the light or the dark theme."
    )]
    PageColours,
    /// The fonts inside the program cannot be read.
    #[error("The fonts inside the program cannot be read: {0}. Please report this.")]
    Font(String),
    /// What was drawn is not an SVG that can be read.
    #[error("The preview picture could not be read back from SVG. Please report this.")]
    Svg(#[from] resvg::usvg::Error),
    /// There was no memory for the pixels, or they could not be packed.
    #[error("The preview picture could not be written as PNG: {0}. Please report this.")]
    Png(String),
}

/// Draws the preview picture of a comparison, [`PICTURE_WIDTH`] by
/// [`PICTURE_HEIGHT`], as PNG. The same input gives the same bytes, whatever fonts the
/// machine has.
///
/// Time and memory are bounded whatever the input: of overlong texts the beginning
/// (of the verdict also the end) is shown, of many configurations the first, and
/// of many points evenly chosen ones; the picture says that something is left out.
///
/// # Errors
/// [`PictureError::PageColours`] for [`Theme::Css`]; the other kinds are faults of
/// this program.
pub fn picture(
    text: &PictureText,
    chart: Option<&ChartSpec>,
    theme: Theme,
) -> Result<Vec<u8>, PictureError> {
    if !theme.stands_alone() {
        return Err(PictureError::PageColours);
    }
    raster::png(&page::page(text, chart, theme)?)
}
