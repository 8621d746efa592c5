//! Who is not dominated beyond doubt.

use super::Better;

/// A figure along one axis, with its interval where it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Along {
    /// The figure.
    pub figure: f64,
    /// The ends of its interval.
    pub ends: Option<(f64, f64)>,
}

/// A configuration in two dimensions, as throughput across and speed up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrontPoint {
    /// Along the first axis.
    pub across: Along,
    /// Along the second.
    pub up: Along,
}

impl Along {
    /// Its interval lies wholly on the better side of the other's. Without an
    /// interval nothing is beyond doubt.
    fn surely_beats(&self, other: &Self, better: Better) -> bool {
        let (Some((low, high)), Some((their_low, their_high))) = (self.ends, other.ends) else {
            return false;
        };
        match better {
            Better::Higher => low > their_high,
            Better::Lower => high < their_low,
        }
    }
}

/// For each point, whether it belongs to the front of those not dominated beyond
/// doubt: a point leaves it only if another is better in both dimensions and the
/// intervals overlap in neither. Two intervals apart are a stricter demand than a
/// test of the difference at the same level, so a point too many stays rather than
/// one too few.
#[must_use]
pub fn front(points: &[FrontPoint], (across, up): (Better, Better)) -> Vec<bool> {
    points
        .iter()
        .map(|point| {
            !points.iter().any(|other| {
                other.across.surely_beats(&point.across, across)
                    && other.up.surely_beats(&point.up, up)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(across: f64, up: f64, half: f64) -> FrontPoint {
        let along = |figure: f64| Along {
            figure,
            ends: (half > 0.0).then_some((figure - half, figure + half)),
        };
        FrontPoint {
            across: along(across),
            up: along(up),
        }
    }

    const MORE: (Better, Better) = (Better::Higher, Better::Higher);

    #[test]
    fn only_what_is_beaten_in_both_beyond_doubt_leaves() {
        let points = [
            point(2300.0, 90.0, 5.0),
            // Beaten in both.
            point(1500.0, 60.0, 5.0),
            // Slower for one user, more throughput.
            point(2400.0, 63.0, 5.0),
            // Behind in both, but not beyond doubt in one.
            point(1500.0, 88.0, 5.0),
        ];
        assert_eq!(front(&points, MORE), [true, false, true, true]);
    }

    #[test]
    fn without_intervals_nothing_is_beyond_doubt() {
        let points = [point(100.0, 100.0, 0.0), point(1.0, 1.0, 0.0)];
        assert_eq!(front(&points, MORE), [true, true]);
    }

    #[test]
    fn less_may_be_better() {
        let points = [point(100.0, 20.0, 1.0), point(90.0, 30.0, 1.0)];
        let better = (Better::Higher, Better::Lower);
        assert_eq!(front(&points, better), [true, false]);
        assert_eq!(front(&points, MORE), [true, true]);
    }
}
