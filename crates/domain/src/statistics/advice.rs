//! How to go on where the data do not decide.

use serde::{Deserialize, Serialize};

use super::interval::student_t;
use crate::text;

/// Restarts beyond which no number is given: nobody makes them.
pub const MOST_RESTARTS: u32 = 100;

/// Chance with which the advised restarts settle it, if the ratio is what it seems.
pub const POWER: f64 = 0.8;

/// What would settle an open question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Advice {
    /// About so many more launches of each side.
    Restarts {
        /// Of the first.
        first: u32,
        /// Of the second.
        second: u32,
        /// How long they take in all, where the minutes of a launch are known.
        minutes: Option<f64>,
        /// They would settle whether the ratio lies within so much of one; none
        /// where it is far away, and they settle only on which side of one it lies.
        within: Option<f64>,
    },
    /// More than [`MOST_RESTARTS`].
    Hopeless {
        /// That number.
        more_than: u32,
        /// As in `Restarts`.
        within: Option<f64>,
    },
    /// Nothing is known of how much launches vary: so many more of each show it.
    FirstRestarts {
        /// Of the first.
        first: u32,
        /// Of the second.
        second: u32,
        /// How long they take in all, where the minutes of a launch are known.
        minutes: Option<f64>,
    },
}

/// What the advice is worked out from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Planning {
    /// Logarithm of the ratio as it seems.
    pub centre: f64,
    /// Variance of a launch's value, on the logarithmic scale; of a blocked plan,
    /// of a block's difference.
    pub variance: f64,
    /// Launches of each side so far; of a blocked plan, blocks on both.
    pub launches: (u32, u32),
    /// Launches come in blocks of one a side.
    pub blocked: bool,
    /// Smallest effect that matters, as a share.
    pub delta: f64,
    /// Error of the verdict, two-sided.
    pub error: f64,
    /// How long a launch with its measurement takes.
    pub minutes_per_launch: Option<f64>,
}

impl Planning {
    /// About how many more launches settle it, with the chance [`POWER`] if ratio
    /// and spread are what they seem. There are two ways to settle it: the interval
    /// keeps clear of a ratio of one, or it stays within one ± δ. Either takes the
    /// smallest number for which t(1 − α/2) + t(β) standard errors fit between the
    /// ratio and the bound, α being the error; β is the chance, and for the second
    /// way, which has a bound on either side, one less half of what is left. The
    /// quantiles of t are taken anew for each number, since few launches mean few
    /// degrees of freedom.
    #[must_use]
    pub fn advice(&self) -> Advice {
        let within = (self.centre.abs() < self.delta.ln_1p()).then_some(self.delta);
        let step = if self.blocked { 2 } else { 1 };
        let most = MOST_RESTARTS / step;
        let settles = |count: u32| self.settles(self.with_more(count));
        if !settles(most) {
            return Advice::Hopeless {
                more_than: MOST_RESTARTS,
                within,
            };
        }
        // Each restart helps, so the least that settles it can be searched by halving.
        let (mut low, mut high) = (0, most);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if settles(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        let (first, second) = self.with_more(high);
        let (first, second) = (first - self.launches.0, second - self.launches.1);
        Advice::Restarts {
            first,
            second,
            minutes: minutes(self.minutes_per_launch, first + second),
            within,
        }
    }

    /// The launches with so many more, the side with fewer first.
    fn with_more(&self, count: u32) -> (u32, u32) {
        let mut launches = self.launches;
        for _ in 0..count {
            if self.blocked {
                launches = (launches.0 + 1, launches.1 + 1);
            } else if launches.0 < launches.1 {
                launches.0 += 1;
            } else {
                launches.1 += 1;
            }
        }
        launches
    }

    fn settles(&self, launches: (u32, u32)) -> bool {
        let (first, second) = (f64::from(launches.0), f64::from(launches.1));
        if first < 2.0 || second < 2.0 {
            return false;
        }
        let (variance, freedom) = if self.blocked {
            (self.variance / first, first - 1.0)
        } else {
            // Satterthwaite's, with one variance for both sides.
            let sum = first.recip() + second.recip();
            let parts =
                (first.powi(2) * (first - 1.0)).recip() + (second.powi(2) * (second - 1.0)).recip();
            (self.variance * sum, sum * sum / parts)
        };
        let Some(verdict) = student_t(1.0 - self.error, freedom) else {
            return false;
        };
        let distance = self.centre.abs();
        // The one-sided quantile at POWER is the two-sided one at 2 · POWER − 1.
        let ways = [
            (distance, 2.0 * POWER - 1.0),
            (self.delta.ln_1p() - distance, POWER),
        ];
        ways.into_iter().any(|(gap, power)| {
            student_t(power, freedom)
                .is_some_and(|power| (verdict + power) * variance.sqrt() <= gap)
        })
    }
}

impl Advice {
    /// Until each side has two launches, nothing more can be said.
    #[must_use]
    pub fn first_restarts(launches: (u32, u32), minutes_per_launch: Option<f64>) -> Self {
        let (first, second) = (
            2_u32.saturating_sub(launches.0),
            2_u32.saturating_sub(launches.1),
        );
        Self::FirstRestarts {
            first,
            second,
            minutes: minutes(minutes_per_launch, first + second),
        }
    }

    /// A sentence for people, who know the sides by these names.
    #[must_use]
    pub fn sentence(&self, first_name: &str, second_name: &str) -> String {
        match self {
            Self::Restarts {
                first,
                second,
                minutes,
                within,
            } => {
                let restarts =
                    text::plural(u64::from(first + second), "more restart", "more restarts");
                let split = split(*first, *second, first_name, second_name);
                format!(
                    "About {restarts} ({split}) would settle {}{}.",
                    aim(*within),
                    time(*minutes)
                )
            }
            Self::Hopeless { more_than, within } => format!(
                "It would take more than {} more restarts to settle {}.",
                text::count(u64::from(*more_than)),
                aim(*within)
            ),
            Self::FirstRestarts {
                first,
                second,
                minutes,
            } => {
                let who = match (first, second) {
                    (0, _) => format!("A second launch of {second_name}"),
                    (_, 0) => format!("A second launch of {first_name}"),
                    _ => "A second launch of each".to_owned(),
                };
                format!("{who} would show how much launches vary{}.", time(*minutes))
            }
        }
    }
}

fn minutes(per_launch: Option<f64>, restarts: u32) -> Option<f64> {
    per_launch
        .filter(|minutes| minutes.is_finite() && *minutes > 0.0)
        .map(|minutes| minutes * f64::from(restarts))
}

fn aim(within: Option<f64>) -> String {
    within.map_or_else(
        || "which is better".to_owned(),
        |delta| format!("±{}", text::percent(delta)),
    )
}

fn time(minutes: Option<f64>) -> String {
    minutes.map_or_else(String::new, |minutes| {
        let whole = minutes.ceil() as u64;
        format!(
            "; {} on this host",
            text::plural(whole, "minute", "minutes")
        )
    })
}

fn split(first: u32, second: u32, first_name: &str, second_name: &str) -> String {
    match (first, second) {
        (same, other) if same == other => format!("{same} of each"),
        (0, _) => format!("all of {second_name}"),
        (_, 0) => format!("all of {first_name}"),
        _ => format!("{first} of {first_name}, {second} of {second_name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planning() -> Planning {
        Planning {
            centre: 0.0,
            variance: 0.01_f64.powi(2),
            launches: (3, 3),
            blocked: false,
            delta: 0.02,
            error: 0.05,
            minutes_per_launch: Some(20.0),
        }
    }

    #[test]
    fn restarts_and_minutes_are_counted() {
        let advice = planning().advice();
        let Advice::Restarts {
            first,
            second,
            minutes,
            within,
        } = advice
        else {
            panic!("{advice:?}");
        };
        // With 7 a side: (2.18 + 1.36) · 0.01 · √(2/7) = 0.0189 < ln 1.02 = 0.0198;
        // with 6 and 7 it is just too much.
        assert_eq!((first, second, within), (4, 4, Some(0.02)));
        assert_eq!(minutes, Some(160.0));
        assert_eq!(
            advice.sentence("a", "b"),
            "About 8 more restarts (4 of each) would settle ±2 %; 160 minutes on this host."
        );
    }

    #[test]
    fn hopeless_is_said_so() {
        let advice = Planning {
            variance: 0.2_f64.powi(2),
            ..planning()
        }
        .advice();
        assert_eq!(
            advice.sentence("a", "b"),
            "It would take more than 100 more restarts to settle ±2 %."
        );
    }

    #[test]
    fn a_large_gap_needs_few_and_blocks_come_in_pairs() {
        let far = Planning {
            centre: 0.3,
            launches: (1, 2),
            ..planning()
        }
        .advice();
        assert_eq!(
            far.sentence("a", "b"),
            "About 1 more restart (all of a) would settle which is better; 20 minutes on this host."
        );
        let blocks = Planning {
            blocked: true,
            minutes_per_launch: None,
            ..planning()
        }
        .advice();
        let Advice::Restarts { first, second, .. } = blocks else {
            panic!("{blocks:?}");
        };
        assert!(first == second && first > 0);
    }

    #[test]
    fn nothing_known_asks_for_a_second_launch() {
        let sentence = |launches| Advice::first_restarts(launches, Some(12.5)).sentence("a", "b");
        assert_eq!(
            sentence((1, 1)),
            "A second launch of each would show how much launches vary; 25 minutes on this host."
        );
        assert_eq!(
            sentence((1, 4)),
            "A second launch of a would show how much launches vary; 13 minutes on this host."
        );
    }
}
