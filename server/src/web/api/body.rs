//! Reading bodies: JSON objects whose missing fields have their usual values.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use http::StatusCode;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::super::Problem;

/// What axum makes of a body.
pub(super) type Body = Result<Bytes, BytesRejection>;

/// The bytes, if they arrived.
///
/// # Errors
/// 413 or 400.
pub(super) fn bytes(body: Body) -> Result<Bytes, Problem> {
    body.map_err(|rejection| {
        let status = rejection.status();
        Problem::new(
            status,
            if status == StatusCode::PAYLOAD_TOO_LARGE {
                "The body is larger than what is taken at this address. docs/rest-api.md lists how much is taken where."
            } else {
                "The body did not arrive completely. Send it again."
            },
        )
    })
}

/// The value that a body describes.
///
/// # Errors
/// 400 with what the body should be.
pub(super) fn read<T: DeserializeOwned>(body: Body, what: &str) -> Result<T, Problem> {
    let bytes = bytes(body)?;
    // A request without a body asks for everything as usual.
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    serde_json::from_slice(bytes).map_err(|error| unreadable(what, &error))
}

/// 400: not what was expected.
pub(super) fn unreadable(what: &str, error: &dyn std::fmt::Display) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        format!("The body is not the JSON of {what} ({error}). docs/rest-api.md shows one."),
    )
}

/// The fields that were sent, laid over the usual ones. A field that does not exist is
/// refused: with usual values for the rest, a mistyped one would go unnoticed.
///
/// # Errors
/// The unknown field, or why the whole cannot be read.
pub(super) fn over_usual<T: Serialize + DeserializeOwned>(
    usual: &T,
    sent: Map<String, Value>,
) -> Result<T, String> {
    let mut whole = serde_json::to_value(usual).map_err(|error| error.to_string())?;
    for (name, value) in sent {
        match whole.get_mut(&name) {
            Some(field) => *field = value,
            None => return Err(format!("unknown field `{name}`")),
        }
    }
    serde_json::from_value(whole).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Form {
        name: String,
        count: Option<u32>,
    }

    fn over(sent: Value) -> Result<Form, String> {
        let usual = Form {
            name: "usual".to_owned(),
            count: Some(3),
        };
        let Value::Object(sent) = sent else {
            panic!("an object");
        };
        over_usual(&usual, sent)
    }

    #[test]
    fn what_is_not_sent_is_as_usual() {
        let form = over(json!({"count": null})).expect("a form");
        assert_eq!((form.name.as_str(), form.count), ("usual", None));
        let form = over(json!({"name": "own"})).expect("a form");
        assert_eq!((form.name.as_str(), form.count), ("own", Some(3)));
    }

    #[test]
    fn mistyped_fields_and_values_are_refused() {
        assert_eq!(
            over(json!({"cuont": 1})),
            Err("unknown field `cuont`".to_owned())
        );
        assert!(over(json!({"count": "many"})).is_err());
    }
}
