//! Declared looks: stopping early without cheating.

use serde::{Deserialize, Serialize};

use super::CONFIDENCE;

/// The place of a look at the data in a plan that may end early. How many looks
/// there are is laid down before the first.
///
/// Each look is judged at an equal share of the error (Bonferroni): over all looks
/// a false verdict is then no likelier than without looking, whatever the spacing
/// of the looks and however few the launches. See `docs/statistics.md` for why
/// nothing sharper is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// Looks that the plan declared, this one included; at least 1.
    pub planned: u32,
    /// Which one this is, from 1.
    pub this: u32,
}

/// A look that the plan does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "look {this} is not one of the {planned} that were declared: a further look needs a plan of its own"
)]
pub struct UndeclaredLook {
    this: u32,
    planned: u32,
}

impl Looks {
    /// A look of a plan.
    ///
    /// # Errors
    /// If the plan has no such look.
    pub const fn new(planned: u32, this: u32) -> Result<Self, UndeclaredLook> {
        let looks = Self { planned, this };
        if looks.is_declared() {
            Ok(looks)
        } else {
            Err(UndeclaredLook { this, planned })
        }
    }

    /// Is this look part of the plan?
    #[must_use]
    pub const fn is_declared(self) -> bool {
        self.this >= 1 && self.this <= self.planned
    }

    /// The error that this look may spend.
    #[must_use]
    pub fn error(self) -> f64 {
        (1.0 - CONFIDENCE) / f64::from(self.planned.max(1))
    }

    /// The confidence of this look's interval.
    #[must_use]
    pub fn confidence(self) -> f64 {
        1.0 - self.error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_share_the_error() {
        let looks = Looks::new(5, 2).expect("declared");
        assert!((looks.confidence() - 0.99).abs() < 1e-12);
        assert!((Looks::new(1, 1).expect("declared").confidence() - CONFIDENCE).abs() < 1e-12);
        for (planned, this) in [(3, 4), (3, 0), (0, 0)] {
            let error = Looks::new(planned, this).expect_err("undeclared");
            assert!(error.to_string().contains("a plan of its own"));
        }
    }
}
