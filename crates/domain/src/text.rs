//! Numbers as people read them, the same on page, picture, table and terminal.

/// What stands where there is no figure.
pub const NO_FIGURE: &str = "–";

/// A figure with a sensible number of digits and thousands separators:
/// `2,320`, `90.0`, `11.11`, `0.482`. Not-finite becomes [`NO_FIGURE`].
#[must_use]
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return NO_FIGURE.to_owned();
    }
    let digits = match value.abs() {
        0.0 => 0,
        magnitude if magnitude < 1.0 => 3,
        magnitude if magnitude < 20.0 => 2,
        magnitude if magnitude < 1000.0 => 1,
        _ => 0,
    };
    separated(&format!("{value:.digits$}"))
}

/// A figure or [`NO_FIGURE`].
#[must_use]
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| NO_FIGURE.to_owned(), figure)
}

/// A whole number with thousands separators.
#[must_use]
pub fn count(value: u64) -> String {
    separated(&value.to_string())
}

/// A ratio as a signed percentage of change: 1.415 → `+41.5 %`.
#[must_use]
pub fn change(ratio: f64) -> String {
    if !ratio.is_finite() {
        return NO_FIGURE.to_owned();
    }
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!("{sign}{:.1} %", percent.abs())
}

/// A share as a percentage: 0.42 → `42 %`, 0.004 → `0.4 %`, -0.18 → `−18 %`.
#[must_use]
pub fn share(value: f64) -> String {
    let percent = value.abs() * 100.0;
    let digits = usize::from(percent != 0.0 && percent < 10.0);
    let number = format!("{percent:.digits$}");
    // What rounds to nothing has no sign.
    let is_nothing = number
        .chars()
        .all(|character| matches!(character, '0' | '.'));
    let sign = if value < 0.0 && !is_nothing {
        "−"
    } else {
        ""
    };
    format!("{sign}{number} %")
}

/// A stated share, with no more digits than it has, up to two: 0.02 → `2 %`,
/// 0.005 → `0.5 %`, 0.99545 → `99.55 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let digits = format!("{:.2}", share * 100.0);
    let trimmed = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{trimmed} %")
}

/// Seconds as `45 s`, `3 min 20 s`, `1 h 05 min`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return NO_FIGURE.to_owned();
    }
    if seconds < 10.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        ..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// `1 repeat`, `3 repeats`.
#[must_use]
pub fn plural(count: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        self::count(count),
        if count == 1 { one } else { many }
    )
}

fn separated(digits: &str) -> String {
    let (sign, rest) = digits
        .strip_prefix('-')
        .map_or(("", digits), |rest| ("−", rest));
    let (whole, fraction) = rest
        .split_once('.')
        .map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut text = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_in_the_field() {
        for (value, text) in [
            (2320.4, "2,320"),
            (1_234_567.0, "1,234,567"),
            (90.04, "90.0"),
            (11.111, "11.11"),
            (0.4821, "0.482"),
            (0.0, "0"),
            (-1500.0, "−1,500"),
            (f64::NAN, NO_FIGURE),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!(optional(None), NO_FIGURE);
        assert_eq!(count(10_000), "10,000");
    }

    #[test]
    fn changes_shares_and_durations() {
        assert_eq!(change(1.415), "+41.5 %");
        assert_eq!(change(0.979), "−2.1 %");
        assert_eq!(share(0.42), "42 %");
        assert_eq!(share(0.004), "0.4 %");
        assert_eq!(share(-0.18), "−18 %");
        assert_eq!(share(-0.0001), "0.0 %");
        assert_eq!(percent(0.02), "2 %");
        assert_eq!(percent(0.005), "0.5 %");
        assert_eq!(percent(1.0 - 0.05 / 11.0), "99.55 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(duration(3.25), "3.2 s");
        assert_eq!(duration(200.0), "3 min 20 s");
        assert_eq!(duration(3900.0), "1 h 05 min");
        assert_eq!(plural(1, "launch", "launches"), "1 launch");
    }
}
