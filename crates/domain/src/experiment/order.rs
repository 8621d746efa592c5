//! The order of launches.

use serde::{Deserialize, Serialize};

/// One launch of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Trial {
    /// Place in the whole order, from 0.
    pub number: u32,
    /// Which block, from 0. Figures of one block are paired.
    pub block: u32,
    /// Which cell.
    pub cell: u32,
}

/// The order in which cells are launched: complete blocks, so that an experiment that
/// ends early has measured every cell equally often, give or take one. Blocks come in
/// pairs: the first is shuffled, the second is the first reversed (A B C, C B A), so
/// that over a pair every cell has the same mean place and a steady drift of the machine
/// falls on all alike. Each pair is shuffled anew. The same seed gives the same order,
/// on every machine.
#[must_use]
pub fn order(cells: u32, launches_per_cell: u32, seed: u64) -> Vec<Trial> {
    let mut numbers = Numbers(seed);
    let mut current: Vec<u32> = (0..cells).collect();
    let mut trials = Vec::new();
    for block in 0..launches_per_cell {
        if block % 2 == 0 {
            current.sort_unstable();
            numbers.shuffle(&mut current);
        } else {
            current.reverse();
        }
        for cell in &current {
            trials.push(Trial {
                number: u32::try_from(trials.len()).unwrap_or(u32::MAX),
                block,
                cell: *cell,
            });
        }
    }
    trials
}

/// SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*,
/// 2014): small, and the same for ever, which a library's generator does not promise.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, each alike: numbers of the incomplete last round are thrown away.
    fn below(&mut self, bound: u64) -> u64 {
        let rest = (u64::MAX % bound + 1) % bound;
        loop {
            let number = self.next();
            if number <= u64::MAX - rest {
                return number % bound;
            }
        }
    }

    /// Fisher and Yates: every order alike.
    fn shuffle(&mut self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1);
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn cells_of(trials: &[Trial], block: u32) -> Vec<u32> {
        trials
            .iter()
            .filter(|trial| trial.block == block)
            .map(|trial| trial.cell)
            .collect()
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // The first values for seed 1234567, as published with the reference
        // implementation.
        let mut numbers = Numbers(1_234_567);
        assert_eq!(numbers.next(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn all_orders_come_alike() {
        let mut numbers = Numbers(0);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            numbers.shuffle(&mut items);
            *counts.entry(items).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        // A thousand each, give or take five standard deviations.
        for (items, count) in counts {
            assert!((850..=1150).contains(&count), "{items:?}: {count}");
        }
    }

    #[test]
    fn another_seed_is_another_order() {
        let orders: BTreeSet<Vec<u32>> = (0..20)
            .map(|seed| cells_of(&order(8, 1, seed), 0))
            .collect();
        assert!(orders.len() > 15, "{}", orders.len());
        let trials = order(8, 4, 0);
        assert_ne!(cells_of(&trials, 0), cells_of(&trials, 2));
        assert_eq!(order(0, 5, 1), []);
        assert_eq!(order(5, 0, 1), []);
    }

    proptest! {
        #[test]
        fn drift_falls_on_all_cells_alike(
            cells in 1_u32..40, launches in 1_u32..10, seed in any::<u64>(),
        ) {
            let trials = order(cells, launches, seed);
            prop_assert_eq!(&trials, &order(cells, launches, seed));
            prop_assert_eq!(trials.len() as u32, cells * launches);
            for (place, trial) in (0_u32..).zip(&trials) {
                prop_assert_eq!(trial.number, place);
                prop_assert_eq!(trial.block, place / cells);
            }
            for block in 0..launches {
                let mut of_block = cells_of(&trials, block);
                if block % 2 == 1 {
                    let first = cells_of(&trials, block - 1);
                    for cell in 0..cells {
                        let place = |order: &[u32]| order.iter().position(|c| *c == cell);
                        let (one, two) = (place(&first), place(&of_block));
                        prop_assert_eq!(
                            one.zip(two).map(|(one, two)| one + two),
                            Some(cells as usize - 1)
                        );
                    }
                }
                of_block.sort_unstable();
                prop_assert_eq!(of_block, (0..cells).collect::<Vec<_>>());
            }
        }
    }
}
