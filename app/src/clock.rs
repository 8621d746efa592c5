//! Times of the day, as people agree on when a host is given back.

use tokdyno_domain::timestamp::Timestamp;

const MINUTE_US: i64 = 60 * 1_000_000;
const DAY_US: i64 = 24 * 60 * MINUTE_US;

/// The next moment after `now` at which a clock shows `HH:MM`; none where the text is
/// no time of the day. The clock is `offset_min` minutes ahead of UTC.
#[must_use]
pub fn next(now: Timestamp, text: &str, offset_min: i32) -> Option<Timestamp> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let hours: i64 = hours.parse().ok().filter(|hours| (0..24).contains(hours))?;
    let minutes: i64 = minutes
        .parse()
        .ok()
        .filter(|minutes| (0..60).contains(minutes))?;
    let offset = i64::from(offset_min) * MINUTE_US;
    let local = now.0.checked_add(offset)?;
    let midnight = local - local.rem_euclid(DAY_US);
    let today = midnight + (hours * 60 + minutes) * MINUTE_US;
    let then = if today > local { today } else { today + DAY_US };
    Some(Timestamp(then - offset))
}

/// `18:30` on a clock that is `offset_min` minutes ahead of UTC.
#[must_use]
pub fn face(at: Timestamp, offset_min: i32) -> String {
    let local = at.0.saturating_add(i64::from(offset_min) * MINUTE_US);
    let minutes = local.rem_euclid(DAY_US) / MINUTE_US;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-29 16:00:39 UTC.
    const NOW: Timestamp = Timestamp(1_795_968_039_000_000);

    #[test]
    fn the_next_time_is_today_or_tomorrow() {
        let exact = |text: &str, offset| next(NOW, text, offset).map(Timestamp::exact);
        assert_eq!(exact("18:30", 0).as_deref(), Some("2026-11-29 18:30 UTC"));
        assert_eq!(exact("16:00", 0).as_deref(), Some("2026-11-30 16:00 UTC"));
        // On a clock two hours ahead it is 18:00 already.
        assert_eq!(exact("18:30", 120).as_deref(), Some("2026-11-29 16:30 UTC"));
        // West of Greenwich it is still morning.
        assert_eq!(exact("9:00", -480).as_deref(), Some("2026-11-29 17:00 UTC"));
        for bad in ["", "18", "24:00", "12:60", "-1:00", "noon"] {
            assert_eq!(next(NOW, bad, 0), None, "{bad}");
        }
    }

    #[test]
    fn a_face_reads_back() {
        for (text, offset) in [("18:30", 0), ("00:05", 330), ("23:59", -480)] {
            let at = next(NOW, text, offset).expect("a moment");
            assert_eq!(face(at, offset), text);
        }
    }
}
