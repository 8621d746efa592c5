//! Load shapes as stored: a word and the columns that go with it.

#[cfg(test)]
mod store_tests;

use tokdyno_domain::workload::{Arrivals, StageKind, Thousandths};

use crate::stages::small;

/// The columns of a stage's kind. The database checks that a kind has those it
/// needs and no other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shape {
    pub(crate) concurrency: Option<i64>,
    pub(crate) rate: Option<i64>,
    pub(crate) rate_to: Option<i64>,
    pub(crate) arrivals: Option<&'static str>,
    pub(crate) burstiness: Option<i64>,
    pub(crate) speed: Option<i64>,
}

/// The same as read.
pub(crate) struct ShapeRow<'a> {
    pub(crate) kind: &'a str,
    pub(crate) concurrency: Option<i64>,
    pub(crate) rate: Option<i64>,
    pub(crate) rate_to: Option<i64>,
    pub(crate) arrivals: Option<&'a str>,
    pub(crate) burstiness: Option<i64>,
    pub(crate) speed: Option<i64>,
}

impl From<StageKind> for Shape {
    fn from(kind: StageKind) -> Self {
        let whole = |value: Thousandths| Some(i64::from(value.thousandths()));
        let mut shape = Self {
            concurrency: kind.concurrency().map(i64::from),
            ..Self::default()
        };
        let arrivals = match kind {
            StageKind::SingleStream | StageKind::ClosedLoop { .. } => return shape,
            StageKind::OpenLoop { rate, arrivals } => {
                shape.rate = whole(rate);
                arrivals
            }
            StageKind::Ramp { from, to, arrivals } => {
                (shape.rate, shape.rate_to) = (whole(from), whole(to));
                arrivals
            }
            StageKind::Replay { speed } => {
                shape.speed = whole(speed);
                return shape;
            }
        };
        shape.arrivals = Some(match arrivals {
            Arrivals::Constant => "constant",
            Arrivals::Poisson => "poisson",
            Arrivals::Gamma { burstiness } => {
                shape.burstiness = whole(burstiness);
                "gamma"
            }
        });
        shape
    }
}

impl ShapeRow<'_> {
    /// What was stored.
    pub(crate) fn kind(&self) -> StageKind {
        // Words, presence and bounds are checked by the database.
        let number = |stored: Option<i64>| {
            stored
                .and_then(|stored| Thousandths::of_thousandths(small(stored)))
                .unwrap_or(Thousandths::ONE)
        };
        let arrivals = match self.arrivals {
            Some("constant") => Arrivals::Constant,
            Some("gamma") => Arrivals::Gamma {
                burstiness: number(self.burstiness),
            },
            _ => Arrivals::Poisson,
        };
        match self.kind {
            "closed_loop" => StageKind::ClosedLoop {
                concurrency: small(self.concurrency.unwrap_or(1)),
            },
            "open_loop" => StageKind::OpenLoop {
                rate: number(self.rate),
                arrivals,
            },
            "ramp" => StageKind::Ramp {
                from: number(self.rate),
                to: number(self.rate_to),
                arrivals,
            },
            "replay" => StageKind::Replay {
                speed: number(self.speed),
            },
            _ => StageKind::SingleStream,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_as_it_was_stored() {
        let number = |value| Thousandths::new(value).expect("a number");
        for kind in [
            StageKind::SingleStream,
            StageKind::ClosedLoop { concurrency: 8192 },
            StageKind::OpenLoop {
                rate: number(12.5),
                arrivals: Arrivals::Constant,
            },
            StageKind::Ramp {
                from: number(0.001),
                to: number(4_000_000.0),
                arrivals: Arrivals::Gamma {
                    burstiness: number(0.25),
                },
            },
            StageKind::Replay { speed: number(2.0) },
        ] {
            let shape = Shape::from(kind);
            let row = ShapeRow {
                kind: kind.word(),
                concurrency: shape.concurrency,
                rate: shape.rate,
                rate_to: shape.rate_to,
                arrivals: shape.arrivals,
                burstiness: shape.burstiness,
                speed: shape.speed,
            };
            assert_eq!(row.kind(), kind);
        }
    }
}
