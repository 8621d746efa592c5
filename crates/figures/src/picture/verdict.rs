//! The verdict's sentence in three parts, in their order: what was found, how sure it
//! is, and what follows. What was found never stands larger than what follows.

use super::{
    font::{Fonts, Weight},
    page::{Place, Sheet},
    paragraph::{Cut, Paragraph, Setting},
};

/// Sizes of finding and conclusion, and the distances of their base lines.
const SIZES: [(f64, f64); 6] = [
    (52.0, 62.0),
    (46.0, 55.0),
    (41.0, 49.0),
    (37.0, 45.0),
    (34.0, 41.0),
    (32.0, 39.0),
];
/// Sizes of what stands in brackets.
const DETAIL: [Setting; 3] = [
    setting(23.0, 32.0, 1),
    setting(20.0, 28.0, 1),
    setting(20.0, 28.0, 2),
];
/// Before a verdict is cut it may take so many lines of the smallest size, whatever
/// else has to go.
const LEAST_LINES: usize = 6;
/// The gap below the finding.
const SMALL_GAP: f64 = 4.0;
/// The gap above the conclusion.
const GAP: f64 = 10.0;

const fn setting(size: f64, lead: f64, lines: usize) -> Setting {
    Setting { size, lead, lines }
}

/// A verdict's sentence, in parts; all but the first may be empty.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    finding: &'a str,
    detail: &'a str,
    conclusion: &'a str,
}

impl<'a> Parts<'a> {
    /// Cuts `finding (detail). Conclusion.`; a sentence of another form is a finding
    /// as a whole. No word is lost.
    fn of(sentence: &'a str) -> Self {
        let whole = Self {
            finding: sentence,
            detail: "",
            conclusion: "",
        };
        // Names may hold brackets too: ours are the last that end a sentence.
        let Some((before, conclusion)) = sentence.rsplit_once("). ") else {
            return whole;
        };
        let Some((finding, detail)) = before.rsplit_once(" (") else {
            return whole;
        };
        Self {
            finding,
            detail,
            conclusion,
        }
    }
}

/// Draws the verdict at the top of a place, about `high` pixels high at most; returns
/// where it ends.
pub(super) fn draw(sheet: &mut Sheet, sentence: &str, place: Place, high: f64) -> f64 {
    let sentence = sheet.fonts.shown(sentence);
    let parts = Parts::of(&sentence);
    let room = place.right - place.left;
    let ink = (Weight::Bold, sheet.theme.ink());
    if parts.conclusion.is_empty() {
        let mut settings = SIZES.map(|(size, lead)| setting(size, lead, fitting(high, lead)));
        let [.., smallest] = &mut settings;
        smallest.lines = smallest.lines.max(LEAST_LINES);
        return sheet.paragraph(&sentence, ink, (&settings, Cut::Middle), place);
    }
    let detail = Paragraph::new(
        &sheet.fonts,
        parts.detail,
        Weight::Regular,
        &DETAIL,
        room,
        Cut::End,
    );
    let high = high - detail.height() - SMALL_GAP - GAP;
    let [finding, conclusion] = sizes(&sheet.fonts, &parts, room, high);
    let mut place = place;
    place.top = SMALL_GAP + sheet.paragraph(parts.finding, ink, (&[finding], Cut::Middle), place);
    let muted = (Weight::Regular, sheet.theme.muted());
    place.top = GAP + sheet.paragraph(parts.detail, muted, (&DETAIL, Cut::End), place);
    sheet.paragraph(parts.conclusion, ink, (&[conclusion], Cut::Middle), place)
}

/// How many lines stand in a height.
fn fitting(high: f64, lead: f64) -> usize {
    (high / lead).max(1.0) as usize
}

/// The largest size in which finding and conclusion fit together; if there is none,
/// the smallest, and the conclusion has what it needs, up to half.
fn sizes(fonts: &Fonts, parts: &Parts<'_>, room: f64, high: f64) -> [Setting; 2] {
    let lines = |text: &str, (size, lead): (f64, f64)| {
        let endless = setting(size, lead, usize::MAX);
        Paragraph::new(fonts, text, Weight::Bold, &[endless], room, Cut::End)
            .lines
            .len()
    };
    let [.., smallest] = SIZES;
    let chosen = SIZES.into_iter().find(|(size, lead)| {
        let wanted = lines(parts.finding, (*size, *lead)) + lines(parts.conclusion, (*size, *lead));
        wanted as f64 * lead <= high
    });
    let (size, lead) = chosen.unwrap_or(smallest);
    let most = fitting(high, lead).max(LEAST_LINES);
    let conclusion = lines(parts.conclusion, (size, lead)).min(most / 2);
    let finding = lines(parts.finding, (size, lead)).min(most - conclusion);
    [
        setting(size, lead, finding),
        setting(size, lead, conclusion),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_falls_into_its_parts() {
        assert_eq!(
            Parts::of(
                "Single stream: b (run 2) against a (run 1) is +9.1 % (single values, no interval). One launch each: not established."
            ),
            Parts {
                finding: "Single stream: b (run 2) against a (run 1) is +9.1 %",
                detail: "single values, no interval",
                conclusion: "One launch each: not established.",
            }
        );
        for whole in ["Single stream: a has no figure.", "", "a). b", "(x). y"] {
            assert_eq!(Parts::of(whole).finding, whole);
        }
    }

    #[test]
    fn a_conclusion_is_never_crowded_out() {
        let fonts = Fonts::read().expect("readable fonts");
        let long = "a very long name ".repeat(40);
        let parts = Parts {
            finding: &long,
            detail: "",
            conclusion: "One launch each, launch-to-launch variation unknown: not established.",
        };
        let [finding, conclusion] = sizes(&fonts, &parts, 628.0, 170.0);
        assert!(finding.lines >= 2 && conclusion.lines >= 2);
        let set = Paragraph::new(
            &fonts,
            parts.conclusion,
            Weight::Bold,
            &[conclusion],
            628.0,
            Cut::Middle,
        );
        assert!(!set.lines.concat().contains('…'), "{:?}", set.lines);
    }
}
