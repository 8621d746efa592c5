//! Values that are more than a word or a number, as people write them.

use serde_json::{Map, Value};
use tokdyno_domain::{
    goodput::{Bounds, BoundsError},
    workload::{Thousandths, limits},
};

/// Requests per second, one number or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rates(pub(crate) Vec<Thousandths>);

/// A rate that changes evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RampRates {
    pub(crate) from: Thousandths,
    pub(crate) to: Thousandths,
}

/// Prompts that share their beginnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beginnings {
    pub(crate) groups: u32,
    pub(crate) prefix_tokens: u32,
    pub(crate) tokens: u32,
}

/// Further fields of a request's body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fields(pub(crate) Map<String, Value>);

/// Why a value cannot be read. The option and the value stand before it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("`{0}` is not a number of requests per second. Write such as 4 or 2,4,8.5.")]
    Rate(String),
    #[error("`{0}` is not a positive number with up to three decimals.")]
    Positive(String),
    #[error("A ramp has two rates with a colon between them, such as 1:20.")]
    Ramp,
    #[error(
        "`{0}` is no bound. Write ttft:200, tpot:50 or e2el:5000, in milliseconds, with commas between several."
    )]
    Bound(String),
    #[error("`{0}` is bounded twice. Give each bound once.")]
    BoundTwice(String),
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    #[error(
        "Shared beginnings are three whole numbers above 0, GROUPS:PREFIX:TOKENS, such as 8:1024:128."
    )]
    Beginnings,
    #[error("`{0}` tokens cannot be asked for. Choose 1 to {max}.", max = limits::OUTPUT_TOKENS)]
    Tokens(String),
    #[error("This is no JSON object ({0}). Write such as '{{\"top_k\": 1}}'.")]
    Fields(String),
}

/// Reads `2,4,8.5`.
pub(super) fn rates(text: &str) -> Result<Rates, ValueError> {
    let rates = text
        .split(',')
        .map(|part| rate(part.trim()))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Rates(rates))
}

/// Reads `1:20`.
pub(super) fn ramp(text: &str) -> Result<RampRates, ValueError> {
    let (from, to) = text.split_once(':').ok_or(ValueError::Ramp)?;
    Ok(RampRates {
        from: rate(from.trim())?,
        to: rate(to.trim())?,
    })
}

/// Reads a positive number.
pub(super) fn positive(text: &str) -> Result<Thousandths, ValueError> {
    number(text).ok_or_else(|| ValueError::Positive(text.to_owned()))
}

/// Reads a number of tokens.
pub(super) fn tokens(text: &str) -> Result<u32, ValueError> {
    text.parse()
        .ok()
        .filter(|tokens| (1..=limits::OUTPUT_TOKENS).contains(tokens))
        .ok_or_else(|| ValueError::Tokens(text.to_owned()))
}

/// Reads `ttft:200,tpot:50`.
pub(super) fn bounds(text: &str) -> Result<Bounds, ValueError> {
    let mut bounds = Bounds::default();
    for part in text.split(',').map(str::trim) {
        let wrong = || ValueError::Bound(part.to_owned());
        let (name, value) = part.split_once(':').ok_or_else(wrong)?;
        let value: f64 = value.trim().parse().map_err(|_| wrong())?;
        let bound = match name.trim() {
            "ttft" => &mut bounds.ttft_ms,
            "tpot" => &mut bounds.tpot_ms,
            "e2el" => &mut bounds.e2el_ms,
            _ => return Err(wrong()),
        };
        if bound.replace(value).is_some() {
            return Err(ValueError::BoundTwice(name.trim().to_owned()));
        }
    }
    bounds.validate()?;
    Ok(bounds)
}

/// Reads `8:1024:128`.
pub(super) fn beginnings(text: &str) -> Result<Beginnings, ValueError> {
    let numbers: Vec<u32> = text
        .split(':')
        .filter_map(|part| part.trim().parse().ok())
        .filter(|number| *number > 0)
        .collect();
    match (numbers.as_slice(), text.split(':').count()) {
        ([groups, prefix_tokens, tokens], 3) => Ok(Beginnings {
            groups: *groups,
            prefix_tokens: *prefix_tokens,
            tokens: *tokens,
        }),
        _ => Err(ValueError::Beginnings),
    }
}

/// Reads a JSON object.
pub(super) fn fields(text: &str) -> Result<Fields, ValueError> {
    serde_json::from_str(text)
        .map(Fields)
        .map_err(|error| ValueError::Fields(error.to_string()))
}

fn rate(text: &str) -> Result<Thousandths, ValueError> {
    number(text).ok_or_else(|| ValueError::Rate(text.to_owned()))
}

fn number(text: &str) -> Option<Thousandths> {
    Thousandths::new(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: f64) -> Thousandths {
        Thousandths::new(value).expect("a number")
    }

    #[test]
    fn rates_and_ramps() {
        assert_eq!(rates("2, 8.5"), Ok(Rates(vec![of(2.0), of(8.5)])));
        assert_eq!(
            ramp("1:20"),
            Ok(RampRates {
                from: of(1.0),
                to: of(20.0)
            })
        );
        assert_eq!(rates("2,x"), Err(ValueError::Rate("x".to_owned())));
        assert_eq!(rates("0"), Err(ValueError::Rate("0".to_owned())));
        assert_eq!(ramp("20"), Err(ValueError::Ramp));
        assert!(ramp("1:-2").is_err() && positive("nan").is_err());
    }

    #[test]
    fn bounds_by_name() {
        let read = bounds("ttft:200, e2el:5000").expect("bounds");
        assert_eq!(
            (read.ttft_ms, read.tpot_ms, read.e2el_ms),
            (Some(200.0), None, Some(5000.0))
        );
        for (text, says) in [
            ("ttft", "is no bound"),
            ("itl:3", "is no bound"),
            ("ttft:1,ttft:2", "bounded twice"),
            ("ttft:0", "more than 0"),
        ] {
            let error = bounds(text).expect_err("refused").to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn beginnings_are_three_numbers() {
        assert_eq!(
            beginnings("8:1024:128"),
            Ok(Beginnings {
                groups: 8,
                prefix_tokens: 1024,
                tokens: 128
            })
        );
        for text in ["8:1024", "8:0:128", "8:1024:128:1", "8:x:1024:128", ""] {
            assert_eq!(beginnings(text), Err(ValueError::Beginnings), "{text}");
        }
    }

    #[test]
    fn fields_are_an_object() {
        let read = fields(r#"{"top_k": 1}"#).expect("an object");
        assert_eq!(read.0["top_k"], 1);
        assert!(fields("[1]").is_err() && fields("{").is_err());
        assert_eq!(tokens("0"), Err(ValueError::Tokens("0".to_owned())));
        assert_eq!(tokens("512"), Ok(512));
    }
}
