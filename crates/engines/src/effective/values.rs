//! When are an asked and a resolved value the same?

use serde_json::Value;
use tokdyno_domain::engine::EngineKind;

use crate::mask::MASK;

/// How two values stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
    Same,
    /// The engine was left to choose, and chose.
    Chosen,
    Different,
    /// The found value is masked or cut, so nothing can be said.
    Hidden,
}

/// Compares what was asked with what the engine reports. Numbers, truth values and
/// JSON are compared by meaning, paths letter by letter.
pub(super) fn compare(engine: EngineKind, asked: &str, found: &str) -> Likeness {
    let (asked, found) = (asked.trim(), found.trim());
    // The mask is no value: equal masks prove nothing.
    if asked.contains(MASK) || found.contains(MASK) {
        return Likeness::Hidden;
    }
    if asked == found {
        return Likeness::Same;
    }
    if found.ends_with('…') {
        return Likeness::Hidden;
    }
    if same_json(asked, found) || same_number(engine, asked, found) || same_word(asked, found) {
        return Likeness::Same;
    }
    if asked.eq_ignore_ascii_case("auto") || (engine == EngineKind::Vllm && asked == "-1") {
        return Likeness::Chosen;
    }
    Likeness::Different
}

/// Several values of one flag against a list, or against the one value of a list.
pub(super) fn compare_list(engine: EngineKind, asked: &[&str], found: &str) -> Likeness {
    if let [only] = asked
        && compare(engine, only, found) == Likeness::Same
    {
        return Likeness::Same;
    }
    let masked = found.contains(MASK) || asked.iter().any(|word| word.contains(MASK));
    if masked || found.ends_with('…') {
        return Likeness::Hidden;
    }
    match serde_json::from_str::<Value>(found) {
        Ok(Value::Array(items)) => {
            let same = items.len() == asked.len()
                && items
                    .iter()
                    .zip(asked)
                    .all(|(item, asked)| compare(engine, asked, &text_of(item)) == Likeness::Same);
            if same {
                Likeness::Same
            } else {
                Likeness::Different
            }
        }
        _ => compare(engine, &asked.join(" "), found),
    }
}

/// A JSON value as settings show it.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn same_json(asked: &str, found: &str) -> bool {
    let structured = |text: &str| text.starts_with(['{', '[']);
    if !structured(asked) || !structured(found) {
        return false;
    }
    match (
        serde_json::from_str::<Value>(asked),
        serde_json::from_str::<Value>(found),
    ) {
        (Ok(asked), Ok(found)) => is_part(&asked, &found),
        _ => false,
    }
}

/// The engine fills in what was not asked for.
fn is_part(asked: &Value, found: &Value) -> bool {
    match (asked, found) {
        (Value::Object(asked), Value::Object(found)) => asked.iter().all(|(name, value)| {
            found
                .get(name)
                .map_or(value.is_null(), |other| is_part(value, other))
        }),
        (Value::Number(asked), Value::Number(found)) => asked.as_f64() == found.as_f64(),
        _ => asked == found,
    }
}

fn same_number(engine: EngineKind, asked: &str, found: &str) -> bool {
    match (number(engine, asked), number(engine, found)) {
        // Digits that both can hold exactly; anything else is compared as text.
        (Some(asked), Some(found)) => asked == found,
        _ => false,
    }
}

/// A number; vLLM also takes `32k` (thousands) and `32K` (times 1024).
fn number(engine: EngineKind, text: &str) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some(number);
    }
    if engine != EngineKind::Vllm {
        return None;
    }
    let factor = match text.chars().last()? {
        'k' => 1e3,
        'm' => 1e6,
        'g' => 1e9,
        't' => 1e12,
        'K' => 1024.0,
        'M' => 1024.0 * 1024.0,
        'G' => 1024.0 * 1024.0 * 1024.0,
        'T' => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let number: f64 = text[..text.len() - 1].parse().ok()?;
    number.is_finite().then_some(number * factor)
}

/// Words of a choice: case, and the names that Python's kinds put in front, do not
/// count. Paths are no such words.
fn same_word(asked: &str, found: &str) -> bool {
    if asked.contains('/') || found.contains('/') {
        return false;
    }
    // `torch.bfloat16`, `AttentionBackendEnum.TRITON_MLA`.
    let bare = |text: &str| -> String {
        let is_kind =
            |head: &str| head == "torch" || head.ends_with("Enum") || head.ends_with("Backend");
        match text.split_once('.') {
            Some((head, rest)) if is_kind(head) => rest.to_ascii_lowercase(),
            _ => text.to_ascii_lowercase(),
        }
    };
    let (asked, found) = (bare(asked), bare(found));
    let truth = |text: &str| match text {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    };
    // Only words against words: the number 1 is not the word true.
    let spelled = |text: &str| text == "true" || text == "false";
    asked == found
        || ((spelled(&asked) || spelled(&found))
            && truth(&asked).is_some()
            && truth(&asked) == truth(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_meaning() {
        let vllm = EngineKind::Vllm;
        let sglang = EngineKind::Sglang;
        for (engine, asked, found) in [
            (sglang, "8", "8"),
            (sglang, "0.90", "0.9"),
            (sglang, "True", "true"),
            (vllm, "32k", "32000"),
            (vllm, "32K", "32768"),
            (vllm, "bfloat16", "torch.bfloat16"),
            (vllm, "triton_mla", "AttentionBackendEnum.TRITON_MLA"),
            (
                vllm,
                r#"{"a": 1, "b": {"c": 2.0}}"#,
                r#"{"b":{"c":2,"d":3},"a":1}"#,
            ),
            (sglang, "[1, 2]", "[1,2]"),
        ] {
            assert_eq!(
                compare(engine, asked, found),
                Likeness::Same,
                "{asked} {found}"
            );
        }
        for (engine, asked, found) in [
            (sglang, "8", "4"),
            (sglang, "32k", "32000"),
            (sglang, "/m/A", "/m/a"),
            (sglang, "triton", "flashinfer"),
            (vllm, r#"{"a":1}"#, r#"{"a":2}"#),
            (vllm, r#"{"a":1}"#, "{}"),
        ] {
            assert_eq!(
                compare(engine, asked, found),
                Likeness::Different,
                "{asked} {found}"
            );
        }
        assert_eq!(compare(sglang, "auto", "triton"), Likeness::Chosen);
        assert_eq!(compare(sglang, "key", "•••"), Likeness::Hidden);
        assert_eq!(compare(sglang, "•••", "•••"), Likeness::Hidden);
        assert_eq!(compare(sglang, "xyz", "xy…"), Likeness::Hidden);
    }

    #[test]
    fn several_values_are_a_list() {
        let same = |asked: &[&str], found| compare_list(EngineKind::Sglang, asked, found);
        assert_eq!(same(&["2", "30", "58"], "[2,30,58]"), Likeness::Same);
        assert_eq!(same(&["a"], r#"["a"]"#), Likeness::Same);
        assert_eq!(same(&["a"], "a"), Likeness::Same);
        assert_eq!(same(&["a", "b"], r#"["a"]"#), Likeness::Different);
        assert_eq!(same(&["2", "30"], "[2,31]"), Likeness::Different);
    }
}
