//! The fonts that the program carries, and text measured by them.

use std::borrow::Cow;

use skrifa::{
    FontRef, MetadataProvider,
    charmap::Charmap,
    instance::{LocationRef, Size},
    metrics::GlyphMetrics,
};

use super::PictureError;

/// Name of the family, as the SVG asks for it.
pub(super) const FAMILY: &str = "Noto Sans";
/// The files: regular and bold.
pub(super) const FILES: [&[u8]; 2] = [notosans::REGULAR_TTF, notosans::BOLD_TTF];
/// So many characters of each end of a text are looked at; fewer have room.
const LONGEST: usize = 300;
/// Characters before this one are measured once, for speed.
const COMMON: u32 = 0x180;

/// Weight of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

impl Weight {
    /// As SVG has it.
    pub(super) const fn number(self) -> u16 {
        match self {
            Self::Regular => 400,
            Self::Bold => 700,
        }
    }
}

/// Both weights, ready to measure.
pub(super) struct Fonts {
    regular: Face,
    bold: Face,
}

struct Face {
    characters: Charmap<'static>,
    /// Widths in em.
    glyphs: GlyphMetrics<'static>,
    /// Widths of common characters, in em.
    common: Vec<f64>,
}

impl Fonts {
    /// Reads the fonts inside the program.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn read() -> Result<Self, PictureError> {
        let [regular, bold] = FILES;
        Ok(Self {
            regular: Face::read(regular)?,
            bold: Face::read(bold)?,
        })
    }

    /// Is there a glyph for it?
    pub(super) fn has(&self, c: char) -> bool {
        // Both weights have the same characters; a test says so.
        self.regular.characters.map(c).is_some()
    }

    /// Width of text, in pixels, without kerning.
    pub(super) fn width(&self, text: &str, size: f64, weight: Weight) -> f64 {
        let face = self.face(weight);
        text.chars().map(|c| face.advance(c)).sum::<f64>() * size
    }

    /// Text as it can be shown: white space becomes single spaces, what directs
    /// rather than shows is dropped, and a run of characters without a glyph becomes
    /// a single `…`. Of an overlong text both ends are kept.
    pub(super) fn shown(&self, text: &str) -> String {
        let mut out = String::new();
        let mut marks = 0;
        for c in bounded(text).chars() {
            let c = match c {
                c if c.is_whitespace() || c.is_control() => ' ',
                // Dashes that must not break look like those that may.
                '\u{2010}' | '\u{2011}' => '-',
                c => c,
            };
            if directs(c) {
                continue;
            }
            let c = if self.has(c) { c } else { '…' };
            // A tower of accents would reach into other lines.
            if c != ' ' && self.regular.advance(c) == 0.0 {
                marks += 1;
                if marks > 2 || out.is_empty() {
                    continue;
                }
            } else {
                marks = 0;
            }
            if (c == ' ' || c == '…') && out.ends_with(c) {
                continue;
            }
            if c == '…' && out.ends_with("… ") {
                out.pop();
                continue;
            }
            out.push(c);
        }
        out.trim().to_owned()
    }

    /// Text cut at its end so that it is at most `most` pixels wide.
    pub(super) fn fitted(&self, text: &str, size: f64, weight: Weight, most: f64) -> String {
        if self.width(text, size, weight) <= most {
            return text.to_owned();
        }
        let room = most - self.advance('…', size, weight);
        let kept = self.prefix(text, size, weight, room);
        ended(kept)
    }

    /// The beginning of a text that is at most `most` pixels wide.
    pub(super) fn prefix<'a>(
        &self,
        text: &'a str,
        size: f64,
        weight: Weight,
        most: f64,
    ) -> &'a str {
        let mut used = 0.0;
        let end = text.char_indices().find(|(_, c)| {
            used += self.advance(*c, size, weight);
            used > most
        });
        end.map_or(text, |(at, _)| &text[..at])
    }

    /// Width of a character, in pixels.
    pub(super) fn advance(&self, c: char, size: f64, weight: Weight) -> f64 {
        self.face(weight).advance(c) * size
    }

    const fn face(&self, weight: Weight) -> &Face {
        match weight {
            Weight::Regular => &self.regular,
            Weight::Bold => &self.bold,
        }
    }
}

/// The beginning of a text with the mark that it goes on.
pub(super) fn ended(beginning: &str) -> String {
    let kept = beginning.trim_end_matches([' ', '\u{a0}', '…', ',', ';', ':', '·']);
    format!("{kept}…")
}

impl Face {
    fn read(file: &'static [u8]) -> Result<Self, PictureError> {
        let font = FontRef::new(file).map_err(|error| PictureError::Font(error.to_string()))?;
        let mut face = Self {
            characters: font.charmap(),
            glyphs: font.glyph_metrics(Size::new(1.0), LocationRef::default()),
            common: Vec::new(),
        };
        face.common = (0..COMMON)
            .map(|c| char::from_u32(c).map_or(0.0, |c| face.measured(c)))
            .collect();
        Ok(face)
    }

    /// Width of a character, in em.
    fn advance(&self, c: char) -> f64 {
        let common = self.common.get(c as usize);
        common.copied().unwrap_or_else(|| self.measured(c))
    }

    fn measured(&self, c: char) -> f64 {
        let glyph = self.characters.map(c).unwrap_or_default();
        f64::from(self.glyphs.advance_width(glyph).unwrap_or(0.0))
    }
}

/// Characters that direct how others are shown: joiners, directions, selectors,
/// marks of byte order, tags.
const fn directs(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The beginning and the end of an overlong text.
fn bounded(text: &str) -> Cow<'_, str> {
    let Some((first_end, _)) = text.char_indices().nth(LONGEST) else {
        return Cow::Borrowed(text);
    };
    let Some((last_start, _)) = text.char_indices().nth_back(LONGEST) else {
        return Cow::Borrowed(text);
    };
    if last_start <= first_end {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{} … {}", &text[..first_end], &text[last_start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fonts() -> Fonts {
        Fonts::read().expect("readable fonts")
    }

    #[test]
    fn both_weights_have_every_sign_the_program_writes() {
        let fonts = fonts();
        for face in [&fonts.regular, &fonts.bold] {
            for c in (' '..='~').chain("–—−×±≥≤≈·…µμ°→“”‘’«»ÄÖÜäöüßéèñçøåŁłŠš".chars())
            {
                let glyph = face.characters.map(c).unwrap_or_default();
                assert_ne!(glyph.to_u32(), 0, "no glyph for {c:?}");
            }
        }
    }

    #[test]
    fn what_one_weight_can_show_the_other_can() {
        let fonts = fonts();
        for c in '\u{0}'..='\u{ffff}' {
            assert_eq!(
                fonts.regular.characters.map(c).is_some(),
                fonts.bold.characters.map(c).is_some(),
                "{c:?}"
            );
        }
    }

    #[test]
    fn widths_grow_with_size_weight_and_text() {
        let fonts = fonts();
        let width = |text, size, weight| fonts.width(text, size, weight);
        assert!(width("mm", 20.0, Weight::Regular) > width("ii", 20.0, Weight::Regular));
        assert!(width("tok/s", 20.0, Weight::Bold) > width("tok/s", 20.0, Weight::Regular));
        let (once, twice) = (
            width("2,320", 10.0, Weight::Bold),
            width("2,320", 20.0, Weight::Bold),
        );
        assert!((twice - 2.0 * once).abs() < 1e-6 && once > 20.0);
    }

    #[test]
    fn what_has_no_glyph_becomes_an_ellipsis() {
        let fonts = fonts();
        for (text, shown) in [
            ("SGLang × vLLM ± 2 %", "SGLang × vLLM ± 2 %"),
            ("a\tb\n\n c", "a b c"),
            ("模型 A", "… A"),
            ("rocket 🚀🚀 🚀 go", "rocket … go"),
            ("left\u{202e}right\u{200d}", "leftright"),
            ("non\u{2011}breaking", "non-breaking"),
            ("e\u{301}\u{301}\u{301}\u{301}", "e\u{301}\u{301}"),
            ("", ""),
        ] {
            assert_eq!(fonts.shown(text), shown);
        }
        let long = format!("begin{}end", "x".repeat(100_000));
        let shown = fonts.shown(&long);
        assert!(
            shown.chars().count() < 700 && shown.starts_with("begin") && shown.ends_with("end")
        );
    }

    #[test]
    fn cut_text_fits_and_says_so() {
        let fonts = fonts();
        let text = "SGLang, NCCL tuning + --num-continuous-decode-steps 4";
        let cut = fonts.fitted(text, 24.0, Weight::Bold, 300.0);
        assert!(cut.ends_with('…') && text.starts_with(cut.trim_end_matches('…')));
        let wide = fonts.width(&cut, 24.0, Weight::Bold);
        assert!(wide <= 300.0 && wide > 250.0, "{wide}");
        assert_eq!(fonts.fitted("short", 24.0, Weight::Bold, 300.0), "short");
    }
}
