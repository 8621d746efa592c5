//! What may be said of two configurations: one word, one sentence, one object,
//! the same on page, picture, file and terminal.

use serde::{Deserialize, Serialize};

use crate::{
    statistics::{ANALYSIS_VERSION, RELEVANT_EFFECT, RatioInterval, ratio},
    text,
};

/// The word of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Better, beyond doubt. Whether by as much as matters, [`Verdict::relevant`]
    /// says.
    Better,
    /// Worse, beyond doubt. Whether by as much as matters, [`Verdict::relevant`]
    /// says.
    Worse,
    /// The interval lies within the effect that matters.
    NoClearChange,
    /// The data do not decide it.
    NotEstablished,
    /// The two were not measured alike.
    NotComparable,
    /// A side has no figure.
    Missing,
}

impl VerdictKind {
    /// The words for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoClearChange => "no clear change",
            Self::NotEstablished => "not established",
            Self::NotComparable => "not comparable",
            Self::Missing => "missing",
        }
    }
}

/// One side of a comparison, for one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Side<'a> {
    /// Name of the configuration.
    pub name: &'a str,
    /// One value per repeat of a single launch, or one per launch where there are
    /// several: the mean of its repeats.
    pub values: &'a [f64],
    /// Launches they come from. Repeats of one launch say nothing about the next.
    pub launches: u32,
    /// Why no verdict may rest on it, if so.
    pub objection: Option<&'a str>,
}

impl Side<'_> {
    /// How many values there are, and of what.
    fn counted(&self) -> String {
        let n = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        if self.launches < 2 {
            text::plural(n, "repeat", "repeats")
        } else {
            text::plural(n, "launch", "launches")
        }
    }
}

/// A verdict on one metric, second against first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The word.
    pub kind: VerdictKind,
    /// The whole interval lies beyond [`RELEVANT_EFFECT`].
    #[serde(default)]
    pub relevant: bool,
    /// The metric, as in `output_tps at C = 128`.
    pub metric: String,
    /// Second over first, with its interval: over launches where both sides have
    /// several, otherwise within the launches there were.
    pub within_launch: Option<RatioInterval>,
    /// The sentence.
    pub sentence: String,
    /// Rules by which it was reached.
    pub analysis_version: u32,
}

/// Judges a metric of which more is better.
///
/// With one launch a side no verdict about the *configurations* is possible: the
/// result within these launches is stated with its interval, and that the
/// variation from launch to launch is unknown.
#[must_use]
pub fn judge(
    metric: &str,
    first: &Side<'_>,
    second: &Side<'_>,
    comparable: Result<(), String>,
) -> Verdict {
    let within = ratio(first.values, second.values);
    let verdict = |kind: VerdictKind, sentence: String| Verdict {
        kind,
        relevant: false,
        metric: metric.to_owned(),
        within_launch: within,
        sentence,
        analysis_version: ANALYSIS_VERSION,
    };
    let Some(interval) = within else {
        let who = if first.values.is_empty() {
            first.name
        } else {
            second.name
        };
        return verdict(
            VerdictKind::Missing,
            format!("{metric}: {who} has no figure."),
        );
    };
    let said = describe(metric, first, second, &interval);
    if let Err(why) = comparable {
        return verdict(
            VerdictKind::NotComparable,
            format!("{said} Not comparable: {why}."),
        );
    }
    for side in [first, second] {
        if let Some(objection) = side.objection {
            return verdict(
                VerdictKind::NotEstablished,
                format!("{said} Not established: {} {objection}.", side.name),
            );
        }
    }
    let who = match (first.launches < 2, second.launches < 2) {
        (true, true) => Some("One launch each".to_owned()),
        (true, false) => Some(format!("{} rests on one launch", first.name)),
        (false, true) => Some(format!("{} rests on one launch", second.name)),
        (false, false) => None,
    };
    if let Some(who) = who {
        return verdict(
            VerdictKind::NotEstablished,
            format!("{said} {who}, launch-to-launch variation unknown: not established."),
        );
    }
    let (Some(low), Some(high)) = (interval.low, interval.high) else {
        return verdict(
            VerdictKind::NotEstablished,
            format!("{said} Without an interval: not established."),
        );
    };
    let (floor, ceiling) = (1.0 - RELEVANT_EFFECT, 1.0 + RELEVANT_EFFECT);
    let kind = if low > 1.0 {
        VerdictKind::Better
    } else if high < 1.0 {
        VerdictKind::Worse
    } else if low > floor && high < ceiling {
        VerdictKind::NoClearChange
    } else {
        VerdictKind::NotEstablished
    };
    let relevant = low > ceiling || high < floor;
    let how_much = match kind {
        VerdictKind::Better | VerdictKind::Worse if relevant => {
            format!(", and by more than {}", percent(RELEVANT_EFFECT))
        }
        VerdictKind::Better | VerdictKind::Worse => {
            format!(", though perhaps by less than {}", percent(RELEVANT_EFFECT))
        }
        _ => String::new(),
    };
    Verdict {
        relevant,
        ..verdict(kind, format!("{said} Verdict: {}{how_much}.", kind.words()))
    }
}

fn describe(metric: &str, first: &Side<'_>, second: &Side<'_>, interval: &RatioInterval) -> String {
    let change = text::change(interval.ratio);
    let spread = match (interval.low, interval.high) {
        (Some(low), Some(high)) => format!(
            "95 % interval {} to {} over {} and {}",
            text::change(low),
            text::change(high),
            first.counted(),
            second.counted()
        ),
        _ if first.values.len() < 2 && second.values.len() < 2 => {
            "single values, no interval".to_owned()
        }
        _ if first.values.len() < 2 || second.values.len() < 2 => {
            "a single value on one side, no interval".to_owned()
        }
        _ => "all values alike, no interval".to_owned(),
    };
    format!(
        "{metric}: {} against {} is {change} ({spread}).",
        second.name, first.name
    )
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side<'a>(name: &'a str, values: &'a [f64], launches: u32) -> Side<'a> {
        Side {
            name,
            values,
            launches,
            objection: None,
        }
    }

    #[test]
    fn one_launch_each_is_never_a_verdict() {
        let verdict = judge(
            "single-stream",
            &side("vLLM", &[82.5], 1),
            &side("SGLang", &[90.0], 1),
            Ok(()),
        );
        assert_eq!(verdict.kind, VerdictKind::NotEstablished);
        assert_eq!(
            verdict.sentence,
            "single-stream: SGLang against vLLM is +9.1 % (single values, no interval). One launch each, launch-to-launch variation unknown: not established."
        );
    }

    #[test]
    fn the_side_with_a_single_launch_is_named() {
        let several = [90.0, 90.1, 89.9];
        let one = judge(
            "m",
            &side("a", &several, 3),
            &side("b", &several, 1),
            Ok(()),
        );
        assert_eq!(one.kind, VerdictKind::NotEstablished);
        assert!(
            one.sentence.contains("over 3 launches and 3 repeats")
                && one.sentence.contains("b rests on one launch"),
            "{}",
            one.sentence
        );
    }

    #[test]
    fn several_launches_decide_where_the_interval_does() {
        let slow = [63.5, 63.6, 63.7];
        let fast = [89.9, 90.0, 90.1];
        let kind =
            |a: &[f64], b: &[f64]| judge("m", &side("a", a, 3), &side("b", b, 3), Ok(())).kind;
        assert_eq!(kind(&slow, &fast), VerdictKind::Better);
        assert_eq!(kind(&fast, &slow), VerdictKind::Worse);
        assert_eq!(kind(&fast, &fast), VerdictKind::NoClearChange);
        assert_eq!(
            kind(&[80.0, 90.0, 100.0], &[82.0, 91.0, 99.0]),
            VerdictKind::NotEstablished
        );
    }

    #[test]
    fn beyond_doubt_is_not_beyond_what_matters() {
        let base = [100.0, 100.1, 99.9];
        let judged =
            |repeats: &[f64]| judge("m", &side("a", &base, 3), &side("b", repeats, 3), Ok(()));
        let slight = judged(&[101.0, 101.1, 100.9]);
        assert_eq!((slight.kind, slight.relevant), (VerdictKind::Better, false));
        let ending = "Verdict: better, though perhaps by less than 2 %.";
        assert!(slight.sentence.ends_with(ending), "{}", slight.sentence);
        let clear = judged(&[110.0, 110.1, 109.9]);
        assert_eq!((clear.kind, clear.relevant), (VerdictKind::Better, true));
        let ending = "Verdict: better, and by more than 2 %.";
        assert!(clear.sentence.ends_with(ending), "{}", clear.sentence);
        let lost = judged(&[90.0, 90.1, 89.9]);
        assert_eq!((lost.kind, lost.relevant), (VerdictKind::Worse, true));
        let ending = "Verdict: worse, and by more than 2 %.";
        assert!(lost.sentence.ends_with(ending), "{}", lost.sentence);
        // Stored before the field was there.
        let mut stored = serde_json::to_value(&clear).expect("serialises");
        stored
            .as_object_mut()
            .expect("an object")
            .remove("relevant");
        let read: Verdict = serde_json::from_value(stored).expect("a verdict");
        assert!(!read.relevant);
    }

    #[test]
    fn repeats_that_are_all_alike_decide_nothing() {
        let verdict = judge(
            "m",
            &side("a", &[63.6; 3], 3),
            &side("b", &[90.0; 3], 3),
            Ok(()),
        );
        assert_eq!(verdict.kind, VerdictKind::NotEstablished);
        assert!(
            verdict.sentence.contains("all values alike, no interval"),
            "{}",
            verdict.sentence
        );
    }

    #[test]
    fn missing_objected_and_incomparable_sides_are_named() {
        let fine = [90.0, 91.0];
        let missing = judge("m", &side("a", &[], 1), &side("b", &fine, 1), Ok(()));
        assert_eq!(
            (missing.kind, missing.sentence.as_str()),
            (VerdictKind::Missing, "m: a has no figure.")
        );
        let mut flagged = side("b", &fine, 2);
        flagged.objection = Some("had failures");
        let verdict = judge("m", &side("a", &fine, 2), &flagged, Ok(()));
        assert_eq!(verdict.kind, VerdictKind::NotEstablished);
        assert!(
            verdict
                .sentence
                .ends_with("Not established: b had failures."),
            "{}",
            verdict.sentence
        );
        let verdict = judge(
            "m",
            &side("a", &fine, 2),
            &side("b", &fine, 2),
            Err("workloads differ".to_owned()),
        );
        assert_eq!(verdict.kind, VerdictKind::NotComparable);
    }
}
