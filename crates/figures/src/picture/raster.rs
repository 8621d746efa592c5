//! From SVG to PNG. Nothing is read from the machine: no fonts, no files.

use std::sync::Arc;

use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{
        ImageHrefResolver, Options, Tree,
        fontdb::{Database, Source},
    },
};

use super::{
    PICTURE_HEIGHT, PICTURE_WIDTH, PictureError,
    font::{FAMILY, FILES},
};

/// The picture as PNG.
///
/// # Errors
/// It is no SVG, or there is no memory for its pixels.
pub(super) fn png(svg: &str) -> Result<Vec<u8>, PictureError> {
    let tree = read(svg)?;
    let mut pixels = Pixmap::new(PICTURE_WIDTH, PICTURE_HEIGHT)
        .ok_or_else(|| PictureError::Png("no memory for its pixels".to_owned()))?;
    resvg::render(&tree, Transform::identity(), &mut pixels.as_mut());
    pixels
        .encode_png()
        .map_err(|error| PictureError::Png(error.to_string()))
}

/// The picture as a tree with its text laid out.
pub(super) fn read(svg: &str) -> Result<Tree, PictureError> {
    let mut fonts = Database::new();
    for file in FILES {
        fonts.load_font_source(Source::Binary(Arc::new(file)));
    }
    fonts.set_serif_family(FAMILY);
    let options = Options {
        font_family: FAMILY.to_owned(),
        // Nothing here names a picture; if something did, it would not be fetched.
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|_, _| None),
        },
        fontdb: Arc::new(fonts),
        ..Options::default()
    };
    Ok(Tree::from_str(svg, &options)?)
}
