//! A moment, as it crosses between browser, server and files.

use std::fmt;

use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Microseconds since 1970-01-01T00:00:00Z. For *when* only: durations of a
/// measurement come from a monotonic clock (see [`crate::record`]).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The moment of a date and time; microseconds, the rest is dropped.
    #[must_use]
    pub fn from_datetime(at: OffsetDateTime) -> Self {
        // Until the year 294,000 this fits; later is clamped.
        Self(i64::try_from(at.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX))
    }

    /// The date and time, in UTC. Out-of-range values become the epoch.
    #[must_use]
    pub fn to_datetime(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// `2026-11-29 16:00 UTC`: the exact form for people.
    #[must_use]
    pub fn exact(self) -> String {
        let at = self.to_datetime();
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02} UTC",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute()
        )
    }

    /// `2 minutes ago`, seen from `now`: the short form for people. Moments in
    /// the future (clocks differ) read as *just now*.
    #[must_use]
    pub fn relative_to(self, now: Self) -> String {
        let seconds = now.0.saturating_sub(self.0) / 1_000_000;
        let (count, unit) = match seconds {
            ..10 => return "just now".to_owned(),
            10..60 => (seconds, "second"),
            60..3600 => (seconds / 60, "minute"),
            3600..86_400 => (seconds / 3600, "hour"),
            86_400..5_184_000 => (seconds / 86_400, "day"),
            _ => (seconds / 2_592_000, "month"),
        };
        format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339, as files and addresses carry it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self
            .to_datetime()
            .format(&Rfc3339)
            .map_err(|_| fmt::Error)?;
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_for_files_and_for_people() {
        let at = Timestamp(1_795_968_039_000_000);
        assert_eq!(at.to_string(), "2026-11-29T16:00:39Z");
        assert_eq!(at.exact(), "2026-11-29 16:00 UTC");
        assert_eq!(Timestamp::from_datetime(at.to_datetime()), at);
    }

    #[test]
    fn relative_times_read_naturally() {
        let now = Timestamp(10_000_000_000_000);
        let ago = |seconds: i64| Timestamp(now.0 - seconds * 1_000_000).relative_to(now);
        assert_eq!(ago(-5), "just now");
        assert_eq!(ago(3), "just now");
        assert_eq!(ago(59), "59 seconds ago");
        assert_eq!(ago(60), "1 minute ago");
        assert_eq!(ago(7200), "2 hours ago");
        assert_eq!(ago(86_400 * 3), "3 days ago");
        assert_eq!(ago(86_400 * 90), "3 months ago");
    }
}
