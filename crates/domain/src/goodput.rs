//! Goodput: requests that were good enough for somebody, per second.

use serde::{Deserialize, Serialize};

use crate::metrics::RequestFigures;

/// Bounds a request has to meet, each an upper one, in ms. At least one is given.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Bounds {
    /// Longest time to first token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<f64>,
    /// Longest time per output token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpot_ms: Option<f64>,
    /// Longest end-to-end latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e2el_ms: Option<f64>,
}

/// Bounds that bound nothing.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BoundsError {
    /// None given.
    #[error("Goodput needs a bound. Give at least one of ttft, tpot and e2el, in milliseconds.")]
    None,
    /// Not a positive, finite number.
    #[error("A bound of {0} ms cannot be met or missed. Choose more than 0.")]
    Value(f64),
}

/// How a request stands to bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goodness {
    /// Every bound met.
    Met,
    /// At least one missed.
    Missed,
    /// None missed, but at least one is on a figure the request does not have.
    Undefined,
}

/// Goodput of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    /// The bounds.
    pub bounds: Bounds,
    /// Successful requests that met all of them.
    pub good: u64,
    /// Successful requests that missed none but lack a bounded figure; they do not
    /// count as good.
    pub undefined: u64,
    /// `good` / the stage's duration, in requests per second.
    pub requests_per_s: Option<f64>,
}

impl Bounds {
    /// Checks that there is something to meet.
    ///
    /// # Errors
    /// No bound, or one that is not positive and finite.
    pub fn validate(&self) -> Result<(), BoundsError> {
        let given: Vec<f64> = [self.ttft_ms, self.tpot_ms, self.e2el_ms]
            .into_iter()
            .flatten()
            .collect();
        if given.is_empty() {
            return Err(BoundsError::None);
        }
        match given
            .into_iter()
            .find(|bound| !(bound.is_finite() && *bound > 0.0))
        {
            Some(bound) => Err(BoundsError::Value(bound)),
            None => Ok(()),
        }
    }

    /// How a successful request stands to them.
    #[must_use]
    pub fn judge(&self, request: &RequestFigures) -> Goodness {
        let mut undefined = false;
        for (bound, figure) in [
            (self.ttft_ms, Some(request.ttft_ms)),
            (self.tpot_ms, request.tpot_ms),
            (self.e2el_ms, Some(request.e2el_ms)),
        ] {
            match (bound, figure) {
                (Some(bound), Some(figure)) if figure > bound => return Goodness::Missed,
                (Some(_), None) => undefined = true,
                _ => {}
            }
        }
        if undefined {
            Goodness::Undefined
        } else {
            Goodness::Met
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tpot_ms: Option<f64>) -> RequestFigures {
        RequestFigures {
            ttft_ms: 50.0,
            e2el_ms: 500.0,
            tpot_ms,
            tpot_approximate: false,
            decode_tps: None,
            e2e_tps: None,
        }
    }

    #[test]
    fn a_bound_on_what_is_undefined_is_not_met() {
        let bounds = Bounds {
            ttft_ms: Some(50.0),
            tpot_ms: Some(10.0),
            e2el_ms: None,
        };
        assert_eq!(bounds.judge(&request(Some(10.0))), Goodness::Met);
        assert_eq!(bounds.judge(&request(Some(10.1))), Goodness::Missed);
        assert_eq!(bounds.judge(&request(None)), Goodness::Undefined);
        let tight = Bounds {
            ttft_ms: Some(49.0),
            ..bounds
        };
        assert_eq!(tight.judge(&request(None)), Goodness::Missed);
    }

    #[test]
    fn bounds_must_bound() {
        assert_eq!(Bounds::default().validate(), Err(BoundsError::None));
        let bounds = |ttft_ms| Bounds {
            ttft_ms: Some(ttft_ms),
            ..Bounds::default()
        };
        assert_eq!(bounds(0.0).validate(), Err(BoundsError::Value(0.0)));
        assert!(bounds(f64::NAN).validate().is_err());
        assert_eq!(bounds(1.0).validate(), Ok(()));
    }
}
