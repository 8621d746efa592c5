//! How many drafted tokens a verify step accepts.
//!
//! A deck holds one card for each step of a cycle and is shuffled anew for each
//! request and cycle. So every order is possible, and yet the mean over a cycle
//! is exact: a measurement of three requests already shows the accept length of
//! the profile, as a real one of thousands would.

use rand::{SeedableRng, rngs::SmallRng, seq::SliceRandom};

use crate::noise::mix;

/// How good a drafter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drafter {
    /// The published Kimi-K2 drafter (AQ-MedAI): accept length 1.68 of 4.
    AqMedAi,
    /// Any other drafter on SGLang: nothing accepted.
    Broken,
    /// A drafter on vLLM: about 15 % of three drafted tokens accepted.
    VllmEagle3,
}

impl Drafter {
    /// Cards of one cycle: how many steps accept 0, 1, 2 and 3 drafted tokens.
    ///
    /// Cycles divide 255 = 256 − 1 tokens, so that a 256-token answer takes the
    /// same number of verify steps whatever the seed.
    #[must_use]
    pub const fn cards(self) -> [u16; 4] {
        match self {
            // 152 steps, 255 tokens: accept length 1.678, 41.9 % of 4.
            Self::AqMedAi => [85, 40, 18, 9],
            // Each step yields its own token and no other: 25 % of 4.
            Self::Broken => [1, 0, 0, 0],
            // 35 steps, 51 tokens: 16 of 105 drafted tokens, 15.2 %.
            Self::VllmEagle3 => [23, 9, 2, 1],
        }
    }

    /// Mean tokens of a verify step, the step's own token included.
    #[must_use]
    pub fn accept_length(self) -> f64 {
        let [none, one, two, three] = self.cards().map(f64::from);
        1.0 + (one + 2.0 * two + 3.0 * three) / (none + one + two + three)
    }
}

/// The acceptance process of one request.
#[derive(Debug, Clone)]
pub struct Deck {
    drafter: Drafter,
    /// Most tokens that one step can accept: the number drafted.
    most: u32,
    rng: SmallRng,
    cards: Vec<u8>,
}

impl Deck {
    /// The process of request `serial` under `seed`, with `drafted` tokens a step.
    #[must_use]
    pub fn new(drafter: Drafter, drafted: u32, seed: u64, serial: u64) -> Self {
        Self {
            drafter,
            most: drafted,
            rng: SmallRng::seed_from_u64(mix(seed, 0xACCE_97ED, serial)),
            cards: Vec::new(),
        }
    }

    /// Drafted tokens that the next step accepts.
    pub fn draw(&mut self) -> u32 {
        if self.cards.is_empty() {
            for (accepted, count) in (0_u8..).zip(self.drafter.cards()) {
                self.cards
                    .extend(std::iter::repeat_n(accepted, usize::from(count)));
            }
            self.cards.shuffle(&mut self.rng);
        }
        self.cards.pop().map_or(0, u32::from).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_for_256(drafter: Drafter, seed: u64) -> u32 {
        let mut deck = Deck::new(drafter, 3, seed, 1);
        let (mut tokens, mut steps) = (1, 0);
        while tokens < 256 {
            tokens += 1 + deck.draw();
            steps += 1;
        }
        steps
    }

    #[test]
    fn an_answer_of_256_takes_the_same_steps_under_any_seed() {
        for seed in 0..20 {
            assert_eq!(steps_for_256(Drafter::AqMedAi, seed), 152);
            assert_eq!(steps_for_256(Drafter::Broken, seed), 255);
            assert_eq!(steps_for_256(Drafter::VllmEagle3, seed), 175);
        }
    }

    #[test]
    fn rates_are_those_of_the_founding_notes() {
        // Older SGLang divides accepted and own tokens by all drafted tokens of 4.
        assert!((Drafter::AqMedAi.accept_length() / 4.0 - 0.42).abs() < 0.002);
        assert!((Drafter::Broken.accept_length() / 4.0 - 0.25).abs() < 1e-12);
        assert!(((Drafter::VllmEagle3.accept_length() - 1.0) / 3.0 - 0.15).abs() < 0.003);
    }

    #[test]
    fn the_order_depends_on_seed_and_request() {
        let draws = |seed, serial| {
            let mut deck = Deck::new(Drafter::AqMedAi, 3, seed, serial);
            (0..152).map(|_| deck.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, 1), draws(1, 1));
        assert_ne!(draws(1, 1), draws(1, 2));
        assert_ne!(draws(1, 1), draws(2, 1));
    }

    #[test]
    fn no_more_is_accepted_than_was_drafted() {
        let mut deck = Deck::new(Drafter::AqMedAi, 1, 3, 4);
        assert!((0..500).all(|_| deck.draw() <= 1));
    }
}
