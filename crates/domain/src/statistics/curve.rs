//! Where the curves of two configurations cross.

mod sentence;

use serde::{Deserialize, Serialize};

use super::{
    interval::{LogEstimate, RatioInterval},
    launch::Launch,
    ratio::{over_launches, within_launches},
};

/// What two configurations were measured at, at one concurrency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurveLevel<'a> {
    /// Concurrency, at least 1.
    pub concurrency: u32,
    /// Launches of the first.
    pub first: &'a [Launch],
    /// Launches of the second.
    pub second: &'a [Launch],
}

/// What the intervals of a curve speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CurveBasis {
    /// The configurations: intervals over launches.
    Launches,
    /// The launches that were: intervals over repeats.
    WithinLaunch,
}

/// The ratio second / first at one concurrency. Its interval is *pointwise*: it
/// covers the truth there with the stated confidence, not along the whole curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Concurrency.
    pub concurrency: u32,
    /// The ratio with its pointwise interval.
    pub ratio: RatioInterval,
}

/// A curve of ratios over concurrency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatioCurve {
    /// By rising concurrency.
    pub points: Vec<CurvePoint>,
    /// What the intervals speak of.
    pub basis: CurveBasis,
    /// Confidence of each interval by itself.
    pub pointwise_confidence: f64,
}

/// Which of two configurations is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leader {
    /// The first.
    First,
    /// The second.
    Second,
}

/// A crossing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Crossing {
    /// Concurrency at which the ratio is one, linear in log₂ C between points.
    pub at: f64,
    /// From here on upwards to `high` the pointwise interval includes a ratio of
    /// one. None where it does so down to the lowest concurrency measured, or where
    /// there is no interval.
    pub low: Option<f64>,
    /// The upper end of that range, likewise.
    pub high: Option<f64>,
    /// Who is ahead below.
    pub below: Leader,
    /// Who is ahead above.
    pub above: Leader,
}

impl RatioCurve {
    /// The curve at the concurrencies that both sides have, over launches if both
    /// have two everywhere, otherwise within the launches there were.
    #[must_use]
    pub fn of(levels: &[CurveLevel<'_>], confidence: f64) -> Self {
        let mut shared: Vec<&CurveLevel<'_>> = levels
            .iter()
            .filter(|level| {
                level.concurrency > 0 && !level.first.is_empty() && !level.second.is_empty()
            })
            .collect();
        shared.sort_by_key(|level| level.concurrency);
        shared.dedup_by_key(|level| level.concurrency);
        let several = shared
            .iter()
            .all(|level| level.first.len() > 1 && level.second.len() > 1);
        let basis = if several {
            CurveBasis::Launches
        } else {
            CurveBasis::WithinLaunch
        };
        let estimate = |level: &CurveLevel<'_>| -> Option<LogEstimate> {
            match basis {
                CurveBasis::Launches => over_launches(level.first, level.second),
                CurveBasis::WithinLaunch => within_launches(level.first, level.second),
            }
        };
        Self {
            points: shared
                .into_iter()
                .filter_map(|level| {
                    Some(CurvePoint {
                        concurrency: level.concurrency,
                        ratio: estimate(level)?.ratio(confidence),
                    })
                })
                .collect(),
            basis,
            pointwise_confidence: confidence,
        }
    }

    /// The crossings, by rising concurrency. A point where the ratio is exactly one
    /// is a crossing only if another leads on its far side.
    #[must_use]
    pub fn crossings(&self) -> Vec<Crossing> {
        let centre = self.line(|ratio| Some(ratio.ratio));
        let (low, high) = (self.line(|ratio| ratio.low), self.line(|ratio| ratio.high));
        let decided: Vec<(f64, f64)> = centre
            .iter()
            .filter_map(|(c, log)| Some((*c, (*log)?)))
            .filter(|(_, log)| *log != 0.0)
            .collect();
        decided
            .windows(2)
            .filter_map(|pair| {
                let [(from, a), (to, b)] = *pair else {
                    return None;
                };
                if a.signum() == b.signum() {
                    return None;
                }
                let at = zero_between(&centre, from, to)?;
                let below = if a > 0.0 {
                    Leader::Second
                } else {
                    Leader::First
                };
                // Left of the crossing the leader is sure where the near end of the
                // interval is on its side; right of it, the other leader.
                let (left, right) = match below {
                    Leader::Second => (&low, &high),
                    Leader::First => (&high, &low),
                };
                let sign = a.signum();
                Some(Crossing {
                    at: at.exp2(),
                    low: settled_before(left, at, sign).map(f64::exp2),
                    high: settled_after(right, at, -sign).map(f64::exp2),
                    below,
                    above: below.other(),
                })
            })
            .collect()
    }

    /// Who is ahead at the lowest concurrency at which anybody is.
    #[must_use]
    pub fn leader(&self) -> Option<Leader> {
        self.points
            .iter()
            .find_map(|point| match point.ratio.ratio {
                ratio if ratio > 1.0 => Some(Leader::Second),
                ratio if ratio < 1.0 => Some(Leader::First),
                _ => None,
            })
    }

    /// The concurrencies between which the curve runs.
    #[must_use]
    pub fn reach(&self) -> Option<(u32, u32)> {
        Some((
            self.points.first()?.concurrency,
            self.points.last()?.concurrency,
        ))
    }

    /// Does any point have an interval?
    #[must_use]
    pub fn has_intervals(&self) -> bool {
        self.points.iter().any(|point| point.ratio.low.is_some())
    }

    /// log₂ C and the logarithm of a part of the interval there.
    fn line(&self, part: impl Fn(&RatioInterval) -> Option<f64>) -> Line {
        self.points
            .iter()
            .map(|point| {
                // An end beyond what a figure holds is as good as none.
                let log = part(&point.ratio)
                    .map(f64::ln)
                    .filter(|log| log.is_finite());
                (f64::from(point.concurrency).log2(), log)
            })
            .collect()
    }
}

impl CurvePoint {
    /// Who is ahead beyond doubt, by the interval of this point alone.
    #[must_use]
    pub fn leader(&self) -> Option<Leader> {
        let (low, high) = (self.ratio.low?, self.ratio.high?);
        if low > 1.0 {
            Some(Leader::Second)
        } else if high < 1.0 {
            Some(Leader::First)
        } else {
            None
        }
    }
}

impl Leader {
    /// The one that is not ahead.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// A polygon; a height is none where there is no interval.
type Line = Vec<(f64, Option<f64>)>;

/// Where the line between two places with heights of opposite sign is zero; in the
/// middle of where it is, if it rests there.
fn zero_between(line: &Line, from: f64, to: f64) -> Option<f64> {
    let zeros: Vec<f64> = line
        .iter()
        .filter(|(c, log)| *c > from && *c < to && *log == Some(0.0))
        .map(|(c, _)| *c)
        .collect();
    if let (Some(first), Some(last)) = (zeros.first(), zeros.last()) {
        return Some(f64::midpoint(*first, *last));
    }
    let height = |at: f64| line.iter().find(|(c, _)| *c == at)?.1;
    let (a, b) = (height(from)?, height(to)?);
    Some(from + (to - from) * (a / (a - b)))
}

/// The last place before `at` where the line leaves the side of zero that `sign`
/// names; none if it is never seen there.
fn settled_before(line: &Line, at: f64, sign: f64) -> Option<f64> {
    segments(line)
        .rev()
        .skip_while(|((from, _), _)| *from >= at)
        // A gap in the intervals ends the search: nothing is known beyond.
        .map_while(|((from, a), (to, b))| Some(((from, a? * sign), (to, b? * sign))))
        .find(|((_, a), _)| *a > 0.0)
        .map(|((from, a), (to, b))| {
            let zero = if b > 0.0 {
                to
            } else {
                from + (to - from) * (a / (a - b))
            };
            zero.min(at)
        })
}

/// The first place after `at` where the line reaches the side of zero that `sign`
/// names; none if it never does.
fn settled_after(line: &Line, at: f64, sign: f64) -> Option<f64> {
    segments(line)
        .skip_while(|(_, (to, _))| *to <= at)
        .map_while(|((from, a), (to, b))| Some(((from, a? * sign), (to, b? * sign))))
        .find(|(_, (_, b))| *b > 0.0)
        .map(|((from, a), (to, b))| {
            let zero = if a > 0.0 {
                from
            } else {
                from + (to - from) * (a / (a - b))
            };
            zero.max(at)
        })
}

type Corner = (f64, Option<f64>);

fn segments(line: &Line) -> impl DoubleEndedIterator<Item = (Corner, Corner)> + '_ {
    line.windows(2).filter_map(|pair| match pair {
        [from, to] => Some((*from, *to)),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
