//! Text in lines: broken at spaces, inside a word only where it must be, and cut
//! where it does not fit.

use super::font::{Fonts, Weight, ended};

/// What is cut where lines do not suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// The end.
    End,
    /// The middle: a verdict's last words are the verdict.
    Middle,
}

/// How a paragraph is set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    /// Size of its letters, in pixels.
    pub(super) size: f64,
    /// Distance of its base lines, in pixels.
    pub(super) lead: f64,
    /// Most lines.
    pub(super) lines: usize,
}

/// A paragraph, set.
pub(super) struct Paragraph {
    pub(super) setting: Setting,
    pub(super) lines: Vec<String>,
}

impl Paragraph {
    /// Sets text in the first of `settings` in which it fits, or cut in the last.
    /// Lines are at most `most` pixels wide.
    pub(super) fn new(
        fonts: &Fonts,
        text: &str,
        weight: Weight,
        settings: &[Setting],
        most: f64,
        cut: Cut,
    ) -> Self {
        let text = &tied(text);
        let mut last = None;
        for setting in settings {
            let lines = broken(fonts, text, setting.size, weight, most);
            if lines.len() <= setting.lines {
                return Self {
                    setting: *setting,
                    lines: balanced(fonts, text, setting.size, weight, most, lines),
                };
            }
            last = Some((*setting, lines));
        }
        let Some((setting, lines)) = last else {
            return Self {
                setting: Setting {
                    size: 0.0,
                    lead: 0.0,
                    lines: 0,
                },
                lines: Vec::new(),
            };
        };
        let tail_lines = match cut {
            Cut::End => 0,
            Cut::Middle => setting.lines / 2,
        };
        let head_lines = setting.lines - tail_lines;
        let mut kept: Vec<String> = lines.into_iter().take(head_lines).collect();
        if let Some(end) = kept.last_mut() {
            let room = most - fonts.advance('…', setting.size, weight);
            let fits = fonts.prefix(end, setting.size, weight, room);
            // Whole words, unless there is only one.
            let words = if fits.len() < end.len() {
                fits.rsplit_once(' ').map_or(fits, |(words, _)| words)
            } else {
                fits
            };
            *end = ended(words);
        }
        if tail_lines > 0 {
            kept.extend(tail(fonts, text, setting.size, weight, most, tail_lines));
        }
        Self {
            setting,
            lines: kept,
        }
    }

    /// Its height, in pixels.
    pub(super) fn height(&self) -> f64 {
        self.lines.len() as f64 * self.setting.lead
    }
}

/// Text whose figures keep their signs and units beside them.
fn tied(text: &str) -> String {
    text.replace(" % ", "\u{a0}% ")
        .replace(" %)", "\u{a0}%)")
        .replace(" %.", "\u{a0}%.")
        .replace(" = ", "\u{a0}=\u{a0}")
        .replace(" tok/s", "\u{a0}tok/s")
}

/// Text in lines at most `most` pixels wide.
fn broken(fonts: &Fonts, text: &str, size: f64, weight: Weight, most: f64) -> Vec<String> {
    let space = fonts.advance(' ', size, weight);
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0.0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let wide = fonts.width(word, size, weight);
        if let Some(line) = lines.last_mut()
            && used + space + wide <= most
        {
            line.push(' ');
            line.push_str(word);
            used += space + wide;
        } else if wide <= most {
            lines.push(word.to_owned());
            used = wide;
        } else {
            for part in parts(fonts, word, size, weight, most) {
                used = fonts.width(&part, size, weight);
                lines.push(part);
            }
        }
    }
    lines
}

/// The same lines about equally long, so that no word is left alone on the last.
fn balanced(
    fonts: &Fonts,
    text: &str,
    size: f64,
    weight: Weight,
    most: f64,
    lines: Vec<String>,
) -> Vec<String> {
    let mut best = lines;
    let (mut low, mut high) = (most * 0.5, most);
    for _ in 0..6 {
        let middle = f64::midpoint(low, high);
        let tried = broken(fonts, text, size, weight, middle);
        // A word that would have to be broken is no gain.
        let whole = tried.iter().map(String::len).sum::<usize>() + tried.len();
        let before = best.iter().map(String::len).sum::<usize>() + best.len();
        if tried.len() == best.len() && whole == before {
            high = middle;
            best = tried;
        } else {
            low = middle;
        }
    }
    best
}

/// A word that is wider than a line, in parts that are not.
fn parts(fonts: &Fonts, word: &str, size: f64, weight: Weight, most: f64) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut used = 0.0;
    for c in word.chars() {
        let wide = fonts.advance(c, size, weight);
        if used + wide > most {
            parts.push(String::new());
            used = 0.0;
        }
        used += wide;
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// The last words of a text, as many as fit into `lines`.
fn tail(
    fonts: &Fonts,
    text: &str,
    size: f64,
    weight: Weight,
    most: f64,
    lines: usize,
) -> Vec<String> {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let mut kept = Vec::new();
    for from in (0..words.len()).rev() {
        let set = broken(fonts, &words[from..].join(" "), size, weight, most);
        if set.len() > lines {
            break;
        }
        kept = set;
    }
    if kept.is_empty() {
        // A last word that alone is too long shows its end.
        let all = broken(fonts, text, size, weight, most);
        kept = all[all.len().saturating_sub(lines)..].to_vec();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Setting = Setting {
        size: 20.0,
        lead: 26.0,
        lines: 4,
    };
    const LARGE: Setting = Setting {
        size: 40.0,
        lead: 50.0,
        lines: 2,
    };

    fn set(text: &str, cut: Cut) -> Paragraph {
        let fonts = Fonts::read().expect("readable fonts");
        let set = Paragraph::new(&fonts, text, Weight::Bold, &[LARGE, SMALL], 300.0, cut);
        assert!(set.lines.len() <= set.setting.lines);
        for line in &set.lines {
            let wide = fonts.width(line, set.setting.size, Weight::Bold);
            assert!(wide <= 300.5, "{line:?} is {wide} wide");
        }
        set
    }

    #[test]
    fn short_text_is_large_and_long_text_small() {
        assert!((set("Not comparable.", Cut::End).setting.size - 40.0).abs() < 1e-9);
        let longer = set(
            "One launch each, launch-to-launch variation unknown.",
            Cut::End,
        );
        assert!((longer.setting.size - 20.0).abs() < 1e-9);
        assert_eq!(
            longer.lines.join(" "),
            "One launch each, launch-to-launch variation unknown."
        );
        assert!((longer.height() - 26.0 * longer.lines.len() as f64).abs() < 1e-9);
        assert!(set("", Cut::Middle).lines.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_cut_where_it_was_asked() {
        let text = format!("begin {} this is not established.", "and so on ".repeat(60));
        let end = set(&text, Cut::End);
        assert!(
            end.lines.last().expect("lines").ends_with('…'),
            "{:?}",
            end.lines
        );
        let middle = set(&text, Cut::Middle);
        assert_eq!(middle.lines.len(), 4);
        assert!(middle.lines[0].starts_with("begin") && middle.lines[1].ends_with('…'));
        assert!(
            middle.lines[3].ends_with("not established."),
            "{:?}",
            middle.lines
        );
    }

    #[test]
    fn a_word_wider_than_a_line_is_broken() {
        let broken = set(&"x".repeat(60), Cut::End);
        assert!(broken.lines.len() > 1);
        assert_eq!(broken.lines.concat(), "x".repeat(60));
        let endless = set(&"x".repeat(2_000), Cut::Middle);
        assert!(endless.lines[1].ends_with('…') && endless.lines[3].ends_with('x'));
    }
}
