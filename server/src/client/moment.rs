//! Times of day as people type them.

use time::{
    Duration, OffsetDateTime, Time, UtcOffset, format_description::well_known::Rfc3339,
    macros::format_description,
};
use tokdyno_domain::timestamp::Timestamp;

use super::ClientError;

/// The next moment at which a clock here shows this time of day; or the moment itself,
/// where one is given with its offset.
///
/// Call it before threads are started, as the command line is read then: the time
/// zone is read from the environment.
///
/// # Errors
/// [`ClientError::Time`], [`ClientError::Zone`].
pub(crate) fn next_time(text: &str) -> Result<Timestamp, ClientError> {
    next_after(OffsetDateTime::now_utc(), text, |moment| {
        UtcOffset::local_offset_at(moment).ok()
    })
}

/// The same from `now`, with the clock's offset at any moment.
fn next_after(
    now: OffsetDateTime,
    text: &str,
    offset_at: impl Fn(OffsetDateTime) -> Option<UtcOffset>,
) -> Result<Timestamp, ClientError> {
    let text = text.trim();
    if let Ok(moment) = OffsetDateTime::parse(text, &Rfc3339) {
        return Ok(Timestamp::from_datetime(moment));
    }
    let wrong = || ClientError::Time(text.to_owned());
    let time = Time::parse(text, format_description!("[hour]:[minute]")).map_err(|_| wrong())?;
    let offset = offset_at(now).ok_or(ClientError::Zone)?;
    let today = now.to_offset(offset).date();
    let on = |day: time::Date| -> Option<OffsetDateTime> {
        let moment = day.with_time(time).assume_offset(offset);
        // The clocks may be changed before then.
        Some(day.with_time(time).assume_offset(offset_at(moment)?))
    };
    let moment = match on(today) {
        Some(moment) if moment > now => moment,
        _ => today
            .checked_add(Duration::DAY)
            .and_then(on)
            .ok_or(ClientError::Zone)?,
    };
    Ok(Timestamp::from_datetime(moment))
}

#[cfg(test)]
mod tests {
    use time::macros::{datetime, offset};

    use super::*;

    fn next(now: OffsetDateTime, text: &str) -> OffsetDateTime {
        next_after(now, text, |_| Some(offset!(+1)))
            .expect("a moment")
            .to_datetime()
    }

    #[test]
    fn a_time_that_is_over_today_is_tomorrows() {
        let now = datetime!(2030-01-31 22:00 UTC);
        assert_eq!(next(now, "23:30"), datetime!(2030-01-31 22:30 UTC));
        assert_eq!(next(now, "23:00"), datetime!(2030-02-01 22:00 UTC));
        assert_eq!(next(now, "07:30"), datetime!(2030-02-01 06:30 UTC));
    }

    #[test]
    fn a_whole_moment_is_taken_as_it_is() {
        let now = datetime!(2030-01-31 22:00 UTC);
        assert_eq!(
            next(now, "2030-03-01T07:30:00+02:00"),
            datetime!(2030-03-01 05:30 UTC)
        );
    }

    #[test]
    fn the_offset_of_that_moment_counts() {
        // Clocks go forward at 01:00 UTC.
        let change = datetime!(2030-03-31 01:00 UTC);
        let offset_at = |moment| {
            Some(if moment < change {
                offset!(+1)
            } else {
                offset!(+2)
            })
        };
        let now = datetime!(2030-03-30 23:30 UTC);
        let moment = next_after(now, "07:00", offset_at).expect("a moment");
        assert_eq!(moment.to_datetime(), datetime!(2030-03-31 05:00 UTC));
    }

    #[test]
    fn nonsense_and_unknown_zones_are_said() {
        let now = datetime!(2030-01-31 22:00 UTC);
        for text in ["", "25:00", "7.30", "soon"] {
            assert!(matches!(
                next_after(now, text, |_| Some(offset!(+1))),
                Err(ClientError::Time(_))
            ));
        }
        assert!(matches!(
            next_after(now, "07:30", |_| None),
            Err(ClientError::Zone)
        ));
    }
}
