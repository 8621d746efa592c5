//! Crossings in words.

use super::{Crossing, CurveBasis, CurvePoint, Leader, RatioCurve};
use crate::text;

impl RatioCurve {
    /// Who is faster up to where, in a sentence that says what its ranges are.
    /// `what` the curves show, as in `throughput`. None below two points, where
    /// there is no curve.
    #[must_use]
    pub fn sentence(&self, first: &str, second: &str, what: &str) -> Option<String> {
        if self.points.len() < 2 {
            return None;
        }
        let (lowest, highest) = self.reach()?;
        let name = |leader: Leader| match leader {
            Leader::First => first,
            Leader::Second => second,
        };
        let crossings = self.crossings();
        let Some(last) = crossings.last() else {
            return Some(format!(
                "{first} and {second}: the {what} curves do not cross between C = {lowest} and {highest}; {} ({}).",
                self.leads(first, second),
                self.intervals()
            ));
        };
        let spans: Vec<String> = crossings
            .iter()
            .enumerate()
            .map(|(place, crossing)| {
                let faster = if place == 0 { " is faster" } else { "" };
                format!(
                    "{}{faster} up to {}",
                    name(crossing.below),
                    self.place(crossing)
                )
            })
            .collect();
        let (seen, doubt) = if self.points.iter().any(|point| point.leader().is_some()) {
            ("", "")
        } else {
            (" as measured", "; no difference established at any C")
        };
        Some(format!(
            "By {what}{seen}, {}, {} above{doubt} (interpolated between measured points, {}).",
            spans.join(", "),
            name(last.above),
            self.intervals()
        ))
    }

    /// Who leads curves that do not cross, as far as their intervals tell.
    fn leads(&self, first: &str, second: &str) -> String {
        let name = |leader: Leader| match leader {
            Leader::First => first,
            Leader::Second => second,
        };
        let at = |established: bool| -> String {
            let places: Vec<String> = self
                .points
                .iter()
                .filter(|point| point.leader().is_some() == established)
                .map(|point| point.concurrency.to_string())
                .collect();
            places.join(", ")
        };
        let Some(leader) = self.points.iter().find_map(CurvePoint::leader) else {
            return match self.leader() {
                None => "they agree, no difference established at any C".to_owned(),
                Some(_) => "no difference established at any C".to_owned(),
            };
        };
        let open = at(false);
        if open.is_empty() {
            format!("{} leads throughout", name(leader))
        } else {
            format!(
                "{} leads at C = {}, no difference established at C = {open}",
                name(leader),
                at(true)
            )
        }
    }

    fn place(&self, crossing: &Crossing) -> String {
        let at = crossing.at;
        match (crossing.low, crossing.high) {
            _ if !self.has_intervals() => format!("about C = {at:.0}"),
            (Some(low), Some(high)) => {
                let (low, high) = (format!("{low:.0}"), format!("{high:.0}"));
                if low == high {
                    format!("C = {low}")
                } else {
                    format!("C = {low}–{high}")
                }
            }
            (low, high) => {
                let (lowest, highest) = self.reach().unwrap_or_default();
                let (low, high) = (
                    low.unwrap_or(f64::from(lowest)),
                    high.unwrap_or(f64::from(highest)),
                );
                format!("about C = {at:.0} (undecided from C = {low:.0} to {high:.0})")
            }
        }
    }

    fn intervals(&self) -> String {
        if !self.has_intervals() {
            return "no interval".to_owned();
        }
        let level = text::percent(self.pointwise_confidence);
        match self.basis {
            CurveBasis::Launches => format!("pointwise {level} intervals over launches"),
            CurveBasis::WithinLaunch => format!(
                "pointwise {level} intervals within these launches, launch-to-launch variation unknown"
            ),
        }
    }
}
