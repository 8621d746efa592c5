//! Where ticks stand.

/// Ticks at multiples of 1, 2, 2.5 or 5 times a power of ten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NiceStep(pub(crate) f64);

impl NiceStep {
    /// The step that cuts `span` into about `wanted` parts, never more than that.
    pub(crate) fn of(span: f64, wanted: usize) -> Self {
        let raw = span / wanted.max(1) as f64;
        let power = 10_f64.powi(raw.log10().floor() as i32);
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .iter()
            .map(|factor| factor * power)
            .find(|step| *step >= raw * 0.999_999)
            .unwrap_or(power * 10.0);
        Self(step)
    }

    /// The multiples of the step within a range; bounded, whatever the range.
    pub(crate) fn within(self, low: f64, high: f64) -> Vec<f64> {
        let first = (low / self.0 - 1e-6).ceil();
        (0..64)
            .map(|n| (first + f64::from(n)) * self.0)
            .take_while(|tick| *tick <= high + self.0 * 1e-6)
            // -0 is no label.
            .map(|tick| if tick == 0.0 { 0.0 } else { tick })
            .collect()
    }
}

/// Powers of ten within a range, with 2 and 5 between them where there is room.
pub(crate) fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let every = ((last - first) / 8).max(1);
    let factors: &[f64] = match last - first {
        ..=3 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    (first..=last)
        .step_by(every.unsigned_abs() as usize)
        .flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        })
        .filter(|tick| *tick >= low * 0.999_999 && *tick <= high * 1.000_001)
        .collect()
}

/// Of values in rising order those that keep their distance; the first and, if need
/// be at the cost of the one before it, the last are kept. `room` says whether the
/// second may stand beside the first.
pub(crate) fn thinned(values: &[f64], room: impl Fn(f64, f64) -> bool) -> Vec<f64> {
    let mut kept: Vec<f64> = Vec::new();
    for value in values {
        if kept.last().is_none_or(|last| room(*last, *value)) {
            kept.push(*value);
        }
    }
    if let (Some(last), Some(kept_last)) = (values.last(), kept.last().copied())
        && *last != kept_last
    {
        while kept.len() > 1 && kept.last().is_some_and(|before| !room(*before, *last)) {
            kept.pop();
        }
        if kept.last().is_some_and(|before| room(*before, *last)) {
            kept.push(*last);
        }
    }
    kept
}

/// Values in rising order, each once.
pub(crate) fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        assert_eq!(NiceStep::of(2370.0, 6), NiceStep(500.0));
        assert_eq!(NiceStep::of(90.0, 6), NiceStep(20.0));
        assert_eq!(NiceStep::of(1.0, 5), NiceStep(0.2));
        assert_eq!(
            NiceStep(500.0).within(0.0, 2000.0),
            [0.0, 500.0, 1000.0, 1500.0, 2000.0]
        );
        assert_eq!(NiceStep(0.1).within(-0.1, 0.1).len(), 3);
    }

    #[test]
    fn decades_are_filled_where_there_is_room() {
        assert_eq!(decades(8.0, 120.0), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(decades(1.0, 1e6).len(), 7);
        assert!(decades(1e-90, 1e90).len() <= 12);
    }

    #[test]
    fn crowded_values_give_way_but_the_ends_stay() {
        let room = |a: f64, b: f64| b / a > 1.5;
        assert_eq!(thinned(&[1.0, 1.2, 2.0, 7.0, 8.0], room), [1.0, 2.0, 8.0]);
        assert_eq!(thinned(&[4.0], room), [4.0]);
        assert!(thinned(&[], room).is_empty());
        assert_eq!(distinct([3.0, 1.0, 3.0].into_iter()), [1.0, 3.0]);
    }
}
