//! Recorded traces: when requests came, and how long they and their answers were.

use serde::Deserialize;
use time::{Date, Month, PrimitiveDateTime, Time};

use super::{
    MAX_TOKENS, MAX_TRACE_MS, PromptFileError, PromptSet, TraceRequest,
    files::{unusable, without_mark},
    json::{Entry, lines},
};

/// Columns of a CSV file, in lower case: time, prompt tokens, completion tokens.
const COLUMNS: [[&str; 3]; 2] = [
    ["timestamp", "contexttokens", "generatedtokens"],
    ["timestamp", "input_length", "output_length"],
];

/// What a line has to be, for the errors.
const FORMS: &str = "Write each line as {\"timestamp\": ms, \"input_length\": tokens, \"output_length\": tokens}, or a CSV file with the columns TIMESTAMP,ContextTokens,GeneratedTokens.";

/// A line, its time not yet since the first.
struct Recorded {
    ms: f64,
    input_tokens: u32,
    output_tokens: u32,
}

impl PromptSet {
    /// Reads a trace, in one of two forms:
    ///
    /// - JSONL as Mooncake publishes it, `{"timestamp": ms, "input_length",
    ///   "output_length"}` on each line, other fields being left alone;
    /// - CSV with a head line that names `TIMESTAMP`, `ContextTokens` and
    ///   `GeneratedTokens`, as the Azure traces of LLM inference have it (or
    ///   `timestamp`, `input_length` and `output_length`), in any order and among
    ///   others. A time is a number of ms, or a date with the time of day.
    ///
    /// The requests are put in the order of their times, which then count from the
    /// first one.
    ///
    /// # Errors
    /// No request, a line that is none, a length out of 1 to [`MAX_TOKENS`], a trace
    /// longer than a year, or more than [`MAX_FILE_BYTES`](super::MAX_FILE_BYTES).
    pub fn trace_from_file(name: &str, text: &str) -> Result<Self, PromptFileError> {
        let mut entries = lines(without_mark(text)).peekable();
        let head = entries.next_if(|first| !first.text.starts_with('{'));
        let columns = head
            .map(|head| Columns::read(head.text).map_err(|why| unusable(name, head.line, why)))
            .transpose()?;
        let mut recorded = Vec::new();
        for entry in entries {
            let request = match &columns {
                Some(columns) => columns.request(entry.text),
                None => json_request(entry),
            };
            let request = request.map_err(|reason| unusable(name, entry.line, reason))?;
            check_tokens(request.input_tokens, request.output_tokens)
                .and_then(|()| check_time(request.ms))
                .map_err(|reason| unusable(name, entry.line, reason))?;
            recorded.push(request);
        }
        recorded.sort_by(|one, other| one.ms.total_cmp(&other.ms));
        let first = recorded.first().map_or(0.0, |request| request.ms);
        let set = Self::Trace {
            name: name.to_owned(),
            requests: recorded
                .into_iter()
                .map(|request| TraceRequest {
                    at_ms: (request.ms - first).round() as u64,
                    input_tokens: request.input_tokens,
                    output_tokens: request.output_tokens,
                })
                .collect(),
        };
        set.validate()?;
        Ok(set)
    }
}

/// Checks a trace from elsewhere.
pub(super) fn check(name: &str, requests: &[TraceRequest]) -> Result<(), PromptFileError> {
    let mut before = 0;
    for (request, entry) in requests.iter().zip(1..) {
        let mut checked = check_tokens(request.input_tokens, request.output_tokens);
        if entry == 1 && request.at_ms != 0 {
            checked =
                Err("times count from the first request, which is therefore at 0.".to_owned());
        } else if request.at_ms < before {
            checked = Err("it comes before the one above it. Sort them by time.".to_owned());
        } else if request.at_ms > MAX_TRACE_MS {
            checked = Err("it comes more than a year after the first. Cut the trace.".to_owned());
        }
        checked.map_err(|reason| PromptFileError::Entry {
            name: name.to_owned(),
            entry,
            reason,
        })?;
        before = request.at_ms;
    }
    Ok(())
}

fn check_tokens(input: u32, output: u32) -> Result<(), String> {
    match [input, output]
        .into_iter()
        .find(|tokens| !(1..=MAX_TOKENS).contains(tokens))
    {
        Some(tokens) => Err(format!(
            "{tokens} tokens cannot be sent or asked for. Keep lines of 1 to {MAX_TOKENS} tokens."
        )),
        None => Ok(()),
    }
}

/// Beyond this a sum of milliseconds is no longer exact.
fn check_time(ms: f64) -> Result<(), String> {
    if ms.abs() <= 9e15 {
        Ok(())
    } else {
        Err("its time is no moment. Give milliseconds.".to_owned())
    }
}

fn json_request(entry: Entry<'_>) -> Result<Recorded, String> {
    #[derive(Deserialize)]
    struct Line {
        timestamp: f64,
        input_length: u32,
        output_length: u32,
    }
    serde_json::from_str::<Line>(entry.text)
        .map(|line| Recorded {
            ms: line.timestamp,
            input_tokens: line.input_length,
            output_tokens: line.output_length,
        })
        .map_err(|error| {
            let said = error.to_string();
            let said = said.split(" at line ").next().unwrap_or_default();
            format!("it is no request of a trace ({said}). {FORMS}")
        })
}

/// In which places of a line the three columns stand.
struct Columns([usize; 3]);

impl Columns {
    fn read(head: &str) -> Result<Self, String> {
        let names: Vec<String> = fields(head).map(str::to_ascii_lowercase).collect();
        COLUMNS
            .iter()
            .find_map(|columns| {
                let [time, input, output] =
                    columns.map(|column| names.iter().position(|name| name == column));
                Some(Self([time?, input?, output?]))
            })
            .ok_or_else(|| format!("it names no columns of a trace. {FORMS}"))
    }

    fn request(&self, line: &str) -> Result<Recorded, String> {
        let fields: Vec<&str> = fields(line).collect();
        let [time, input, output] = self.0.map(|column| fields.get(column).copied());
        let (Some(time), Some(input), Some(output)) = (time, input, output) else {
            return Err(format!("it has fewer columns than the first line. {FORMS}"));
        };
        let tokens = |text: &str| {
            // Some writers give whole numbers a decimal point.
            let text = text.strip_suffix(".0").unwrap_or(text);
            text.parse()
                .map_err(|_| format!("`{}` is no number of tokens. {FORMS}", shortened(text)))
        };
        Ok(Recorded {
            ms: milliseconds(time).ok_or_else(|| {
                format!(
                    "`{}` is no time. Write milliseconds, or 2023-11-16 18:17:03.98.",
                    shortened(time)
                )
            })?,
            input_tokens: tokens(input)?,
            output_tokens: tokens(output)?,
        })
    }
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split(',')
        .map(|field| field.trim().trim_matches('"').trim())
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A number of ms, or `2023-11-16 18:17:03.9799600`, with `T` for the space and an
/// offset or a `Z` behind it if need be.
fn milliseconds(text: &str) -> Option<f64> {
    if let Ok(ms) = text.parse::<f64>() {
        return ms.is_finite().then_some(ms);
    }
    let (date, clock) = text.split_once([' ', 'T'])?;
    let (clock, offset_min) = without_offset(clock)?;
    let mut date = date.splitn(3, '-');
    let year = date.next()?.parse().ok()?;
    let month: u8 = date.next()?.parse().ok()?;
    let day = date.next()?.parse().ok()?;
    let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
    let mut clock = clock.splitn(3, ':');
    let hour = clock.next()?.parse().ok()?;
    let minute = clock.next()?.parse().ok()?;
    let seconds = clock.next()?;
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let time = Time::from_hms(hour, minute, second.parse().ok()?).ok()?;
    let fraction: f64 = format!("0.{fraction}0").parse().ok()?;
    let whole = PrimitiveDateTime::new(date, time)
        .assume_utc()
        .unix_timestamp();
    Some((whole - offset_min * 60) as f64 * 1000.0 + fraction * 1000.0)
}

/// The time of day, and the minutes by which it is ahead of UTC.
fn without_offset(clock: &str) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let Some(at) = clock.find(['+', '-']) else {
        return Some((clock, 0));
    };
    let (clock, offset) = clock.split_at(at);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let part = |text: &str, most: i64| text.parse().ok().filter(|value| (0..=most).contains(value));
    Some((clock, sign * (part(hours, 23)? * 60 + part(minutes, 59)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(text: &str) -> Vec<(u64, u32, u32)> {
        match PromptSet::trace_from_file("t", text).expect("a trace") {
            PromptSet::Trace { requests, .. } => requests
                .iter()
                .map(|request| (request.at_ms, request.input_tokens, request.output_tokens))
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn json_lines_are_sorted_and_count_from_the_first() {
        let text = r#"{"timestamp": 30000, "input_length": 7, "output_length": 8, "hash_ids": [1, 2]}
{"timestamp": 27482, "input_length": 6955, "output_length": 52}

{"timestamp": 27482.6, "input_length": 1, "output_length": 1}"#;
        assert_eq!(requests(text), [(0, 6955, 52), (1, 1, 1), (2518, 7, 8)]);
    }

    #[test]
    fn tables_with_dates_or_milliseconds() {
        let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
            2023-11-16 18:17:03.9799600,4808,10\r\n\
            2023-11-16 18:17:04.0319600,110,27\r\n";
        assert_eq!(requests(azure), [(0, 4808, 10), (52, 110, 27)]);
        let zones = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
            2024-05-10 00:00:00.009930+00:00,2162,5\n\
            2024-05-10T02:00:01.01+02:00,2399,6.0\n\
            2024-05-10T00:00:02Z,1,1\n";
        assert_eq!(
            requests(zones),
            [(0, 2162, 5), (1000, 2399, 6), (1990, 1, 1)]
        );
        let others = "\"id\",\"output_length\",\"timestamp\",\"input_length\"\n1,3,10,2\n2,5,4,4\n";
        assert_eq!(requests(others), [(0, 4, 5), (6, 2, 3)]);
    }

    #[test]
    fn unusable_traces_say_where_and_what_to_do() {
        let head = "TIMESTAMP,ContextTokens,GeneratedTokens";
        for (text, line, word) in [
            ("hello".to_owned(), 1, "no columns"),
            ("{\"timestamp\":1}".to_owned(), 1, "input_length"),
            (
                "{\"timestamp\":1,\"input_length\":1,\"output_length\":1}\n{\"timestamp\":1,\"input_length\":-1,\"output_length\":1}".to_owned(),
                2,
                "no request",
            ),
            (
                "{\"timestamp\":1,\"input_length\":0,\"output_length\":1}".to_owned(),
                1,
                "0 tokens",
            ),
            (format!("{head}\n\n1,2"), 3, "fewer columns"),
            (format!("{head}\n1,2,1000001"), 2, "1000001 tokens"),
            (format!("{head}\n1,2,many"), 2, "`many`"),
            (format!("{head}\n2023-13-16 18:17:03,2,3"), 2, "no time"),
            (format!("{head}\n2023-11-16 18:17:03.x,2,3"), 2, "no time"),
            (format!("{head}\nNaN,2,3"), 2, "no time"),
            (format!("{head}\n1e300,2,3"), 2, "no moment"),
        ] {
            let error = PromptSet::trace_from_file("t", &text).expect_err(word);
            let PromptFileError::Line { line: at, reason, .. } = error else {
                panic!("{text}: {error}");
            };
            assert_eq!(at, line, "{text}: {reason}");
            assert!(reason.contains(word), "{text}: {reason}");
            assert!(reason.ends_with('.'), "{reason}");
        }
        for text in ["", head] {
            assert_eq!(
                PromptSet::trace_from_file("t", text),
                Err(PromptFileError::NoRequests("t".to_owned()))
            );
        }
        let years = format!("{head}\n0,1,1\n99999999999,1,1");
        assert!(matches!(
            PromptSet::trace_from_file("t", &years),
            Err(PromptFileError::Entry { entry: 2, .. })
        ));
    }

    #[test]
    fn traces_from_elsewhere_are_checked() {
        let trace = |requests: &[(u64, u32, u32)]| {
            PromptSet::Trace {
                name: "t".to_owned(),
                requests: requests
                    .iter()
                    .map(|(at_ms, input_tokens, output_tokens)| TraceRequest {
                        at_ms: *at_ms,
                        input_tokens: *input_tokens,
                        output_tokens: *output_tokens,
                    })
                    .collect(),
            }
            .validate()
        };
        assert_eq!(trace(&[(0, 1, 1), (5, MAX_TOKENS, 1), (5, 1, 1)]), Ok(()));
        for requests in [
            &[(1, 1, 1)][..],
            &[(0, 1, 1), (5, 1, 1), (4, 1, 1)],
            &[(0, 0, 1)],
            &[(0, 1, MAX_TOKENS + 1)],
            &[(0, 1, 1), (MAX_TRACE_MS + 1, 1, 1)],
            &[],
        ] {
            assert!(trace(requests).is_err(), "{requests:?}");
        }
    }
}
