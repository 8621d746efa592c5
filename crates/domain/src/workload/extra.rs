//! What the further fields of a request may hold.

use serde_json::Value;

use super::{WorkloadError, limits};

/// Can this field be kept, and read back?
///
/// # Errors
/// It holds a NUL character or is nested too deeply.
pub(super) fn check(field: &str, value: &Value) -> Result<(), WorkloadError> {
    // Depth first: the search below goes no deeper than what passed here.
    if is_deeper(value, limits::EXTRA_DEPTH) {
        return Err(WorkloadError::ExtraDepth(field.to_owned()));
    }
    if field.contains('\0') || holds_nul(value) {
        return Err(WorkloadError::ExtraNul(field.replace('\0', "␀")));
    }
    Ok(())
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(within) = levels.checked_sub(1) else {
        return value.is_array() || value.is_object();
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, within)),
        Value::Object(fields) => fields.values().any(|value| is_deeper(value, within)),
        _ => false,
    }
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains('\0') || holds_nul(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn a_nul_is_found_wherever_it_stands() {
        assert_eq!(check("a", &json!({"b": ["c", 1, null]})), Ok(()));
        for value in [json!("\0"), json!(["x", "a\0"]), json!({"a\0": 1})] {
            let refused = Err(WorkloadError::ExtraNul("a".to_owned()));
            assert_eq!(check("a", &value), refused, "{value}");
        }
        let refused = Err(WorkloadError::ExtraNul("a␀".to_owned()));
        assert_eq!(check("a\0", &json!(1)), refused);
    }

    #[test]
    fn nesting_has_a_bound_within_which_it_is_read_back() {
        let deepest = nested(limits::EXTRA_DEPTH);
        assert_eq!(check("a", &deepest), Ok(()));
        let within = json!({"run": {"workload": {"extra_body": {"a": deepest}}}});
        let text = within.to_string();
        assert!(serde_json::from_str::<Value>(&text).is_ok());
        let refused = Err(WorkloadError::ExtraDepth("a".to_owned()));
        assert_eq!(check("a", &nested(limits::EXTRA_DEPTH + 1)), refused);
    }
}
