//! What servers and files wrote, made storable: Postgres keeps no NUL character
//! in text, and one in a server's error message must not lose a request.

use std::{borrow::Cow, collections::BTreeMap};

/// The text with U+FFFD for every NUL.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The same for an owned text.
pub(crate) fn owned(value: &str) -> String {
    text(value).into_owned()
}

/// The same for keys and values.
pub(crate) fn map(map: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    map.iter()
        .map(|(key, value)| (owned(key), owned(value)))
        .collect()
}

/// The same for all texts within JSON.
pub(crate) fn json(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => Value::String(owned(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(json).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| (owned(&key), json(value)))
                .collect(),
        ),
        other => other,
    }
}

/// A duration or number as Postgres keeps it. Beyond 2⁶³ it is clamped: 292
/// years of nanoseconds.
pub(crate) fn big(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_nul_is_left() {
        assert_eq!(text("a\0b"), "a\u{fffd}b");
        let value = json(serde_json::json!({"k\0": ["\0", 1, {"a": "b\0"}]}));
        assert!(!value.to_string().contains("\\u0000"));
        assert_eq!(big(u64::MAX), i64::MAX);
    }
}
