//! Words and numbers in pictures: escaped, cut, and measured without a font.

/// Text for XML, in elements and in attributes. Characters that XML forbids are
/// left out; line breaks become spaces.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
    out
}

/// Text for the small markup that plotly.js understands, shown as it stands.
pub(crate) fn plotly(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Dollar signs would begin a formula where MathJax is loaded.
            '$' => out.push_str("&#36;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// At most `most` characters, the last one `…` if something was cut.
pub(crate) fn truncated(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// About how wide text is, in pixels. Generous, since nobody knows the font.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.30,
            'f' | 'r' | 't' | ' ' | '(' | ')' | '-' | '·' => 0.38,
            'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 0.92,
            'A'..='Z' => 0.70,
            // From here on scripts are wide.
            c if c >= '\u{1100}' => 1.05,
            _ => 0.58,
        })
        .sum();
    ems * size
}

/// Text cut so that it is at most about `most` pixels wide.
pub(crate) fn fitted(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width(&kept, size) + size > most {
            kept.pop();
            break;
        }
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// Text broken at spaces into lines of at most about `most` pixels; what does not
/// fit into `lines` is cut.
pub(crate) fn wrapped(text: &str, size: f64, most: f64, lines: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match out.last_mut() {
            Some(line) if width(line, size) + width(word, size) + size * 0.38 <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => out.push(word.to_owned()),
        }
    }
    let cut = out.len() > lines;
    out.truncate(lines);
    let mut out: Vec<String> = out.iter().map(|line| fitted(line, size, most)).collect();
    if let (true, Some(last)) = (cut, out.last_mut())
        && !last.ends_with('…')
    {
        *last = fitted(last, size, most - size);
        if !last.ends_with('…') {
            last.push('…');
        }
    }
    out
}

/// A value for people: four significant digits, thousands grouped: `1,536`, `82.5`.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let size = value.abs();
    if !(1e-4..1e12).contains(&size) {
        return format!("{value:.3e}");
    }
    let places = match size {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        1.0.. => 3,
        0.1.. => 4,
        _ => 6,
    };
    let text = format!("{value:.places$}");
    grouped(if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    })
}

/// A value with as many decimals as `step` needs, as ticks have it.
pub(crate) fn stepped(value: f64, step: f64) -> String {
    let reach = value.abs().max(step);
    if reach >= 1e12 || step < 1e-6 {
        return if value == 0.0 {
            "0".to_owned()
        } else {
            format!("{value:.2e}")
        };
    }
    // One more than the step's own magnitude wants, for 2.5; then trimmed.
    let places = decimals(step);
    let text = format!("{value:.places$}");
    let text = if text
        .trim_start_matches('-')
        .chars()
        .all(|c| matches!(c, '0' | '.'))
    {
        "0".to_owned()
    } else {
        text
    };
    grouped(&text)
}

fn decimals(step: f64) -> usize {
    (0..=8_u8)
        .find(|places| {
            let scaled = step * 10_f64.powi(i32::from(*places));
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1e-9) && scaled.round() >= 1.0
        })
        .map_or(8, usize::from)
}

fn grouped(text: &str) -> String {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, fraction) = match rest.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (rest, None),
    };
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        for (value, text) in [
            (0.0, "0"),
            (1536.0, "1,536"),
            (1_234_567.8, "1,234,568"),
            (82.5, "82.5"),
            (849.04, "849"),
            (1.6789, "1.679"),
            (0.25, "0.25"),
            (-2370.4, "-2,370"),
            (1e20, "1.000e20"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn ticks_have_the_decimals_their_step_needs() {
        assert_eq!(stepped(2.5, 2.5), "2.5");
        assert_eq!(stepped(5.0, 2.5), "5.0");
        assert_eq!(stepped(1500.0, 500.0), "1,500");
        assert_eq!(stepped(0.25, 0.05), "0.25");
        assert_eq!(stepped(-0.0, 0.1), "0");
        assert_eq!(stepped(1e15, 1e14), "1.00e15");
    }

    #[test]
    fn text_is_escaped_and_cut_by_characters() {
        assert_eq!(xml("<b>&\"'\u{0}\n"), "&lt;b&gt;&amp;&quot;&#39; ");
        assert_eq!(plotly("<a>&$"), "&lt;a&gt;&amp;&#36;");
        assert_eq!(truncated("ééééé", 4), "ééé…");
        assert_eq!(truncated("éééé", 4), "éééé");
    }

    #[test]
    fn wrapped_text_fits_and_says_when_it_is_cut() {
        let lines = wrapped("one two three four five six seven", 10.0, 60.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…'), "{lines:?}");
        assert!(lines.iter().all(|line| width(line, 10.0) <= 70.0));
        assert_eq!(wrapped("short", 10.0, 60.0, 2), ["short"]);
        assert!(wrapped("", 10.0, 60.0, 2).is_empty());
    }
}
