//! Does a reply say the same over and over? Told while its text comes, which is not
//! kept: a few nanoseconds for each byte, and no memory beyond that of the beginning.
//!
//! Each stretch of [`STRETCH`] bytes is looked up in, and added to, a set of those seen
//! before. In a loop nearly all have been; in prose hardly any. The set is emptied every
//! [`SPAN`] stretches, so that a long reply does not fill it: a loop shows up again
//! within one round.

/// Bytes that are compared at once. Long enough that the keys of a table or of JSON,
/// which real answers repeat, do not make a stretch alike without their values.
const STRETCH: usize = 32;
/// Stretches after which the set is emptied.
const SPAN: u32 = 4096;
/// Places in the set, as a power of two. Eight for each stretch of a span, so that on
/// average one stretch in sixteen is taken for another.
const PLACES_LOG2: u32 = 15;
const WORDS: usize = 1 << (PLACES_LOG2 - 6);
/// Fewest stretches of which a judgement is made: some sixty tokens.
const FEWEST: u64 = 256;

/// An odd number without pattern; powers of it tell the places within a stretch apart.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;
/// The weight of the byte that leaves a stretch.
const LEAVING: u64 = {
    let mut power = 1_u64;
    let mut step = 0;
    while step < STRETCH {
        power = power.wrapping_mul(BASE);
        step += 1;
    }
    power
};

/// Looks for loops in one reply.
#[derive(Debug)]
pub(crate) struct Looping {
    seen: Box<[u64; WORDS]>,
    /// The bytes of the present stretch, in a ring.
    stretch: [u8; STRETCH],
    /// Bytes taken so far.
    next: usize,
    hash: u64,
    /// Since the set was emptied.
    in_span: u32,
    stretches: u64,
    repeated: u64,
}

impl Default for Looping {
    fn default() -> Self {
        Self {
            seen: Box::new([0; WORDS]),
            stretch: [0; STRETCH],
            next: 0,
            hash: 0,
            in_span: 0,
            stretches: 0,
            repeated: 0,
        }
    }
}

impl Looping {
    /// Takes more of the text. Where one piece ends and the next begins does not matter.
    pub(crate) fn take(&mut self, text: &[u8]) {
        // In registers: what is written to the set might else be one of them.
        let (mut hash, mut next) = (self.hash, self.next);
        for byte in text {
            // The oldest byte leaves, 0 while there is none.
            let oldest = std::mem::replace(&mut self.stretch[next % STRETCH], *byte);
            next = next.wrapping_add(1);
            let fresh = u64::from(*byte).wrapping_sub(u64::from(oldest).wrapping_mul(LEAVING));
            hash = hash.wrapping_mul(BASE).wrapping_add(fresh);
            if next >= STRETCH {
                self.note(hash);
            }
        }
        (self.hash, self.next) = (hash, next);
    }

    /// Are most stretches repetitions? None of a text too short to tell.
    pub(crate) const fn is_looping(&self) -> Option<bool> {
        if self.stretches < FEWEST {
            None
        } else {
            Some(self.repeated.saturating_mul(2) > self.stretches)
        }
    }

    fn note(&mut self, hash: u64) {
        if self.in_span == SPAN {
            self.seen.fill(0);
            self.in_span = 0;
        }
        // The low bits of such a hash depend on the last bytes alone.
        let place = hash.wrapping_mul(BASE) >> (64 - PLACES_LOG2);
        let bit = 1_u64 << (place & 63);
        // No more places than there are in the set.
        if let Some(word) = self.seen.get_mut((place >> 6) as usize) {
            self.repeated += u64::from(*word & bit != 0);
            *word |= bit;
        }
        self.in_span += 1;
        self.stretches += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Option<bool> {
        let mut looping = Looping::default();
        looping.take(text.as_bytes());
        looping.is_looping()
    }

    /// So many words, without pattern.
    fn prose(words: u64, seed: u64) -> String {
        (0..words)
            .map(|word| {
                let mixed = (word ^ (seed << 32)).wrapping_mul(BASE);
                let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                format!("{:x} ", (mixed ^ (mixed >> 32)) & 0xFFFF)
            })
            .collect()
    }

    #[test]
    fn a_loop_is_told_from_prose_whatever_its_length() {
        for words in [100, 1000, 20_000] {
            assert_eq!(judged(&prose(words, 1)), Some(false), "{words}");
        }
        for round in [" the", " tok tok2", &prose(100, 2)] {
            for length in [4000, 60_000] {
                let text = round.repeat(length / round.len());
                assert_eq!(judged(&text), Some(true), "{round} {length}");
            }
        }
    }

    #[test]
    fn a_reply_loops_from_its_half_on() {
        let with_tail =
            |rounds: usize| judged(&format!("{}{}", prose(400, 3), " ab".repeat(rounds)));
        // 400 words are about 1,950 bytes.
        assert_eq!(with_tail(550), Some(false));
        assert_eq!(with_tail(800), Some(true));
    }

    #[test]
    fn lists_of_the_same_keys_are_no_loop() {
        let rows: String = (0..200_u64)
            .map(|row| {
                let value = prose(3, row + 10);
                format!(r#"{{"name": "{value}", "value": {}}},"#, row * 7919 % 1000)
            })
            .collect();
        assert_eq!(judged(&rows), Some(false));
    }

    #[test]
    fn pieces_do_not_matter_and_short_texts_are_not_judged() {
        let text = " one two three".repeat(40);
        let mut looping = Looping::default();
        for piece in text.as_bytes().chunks(5) {
            looping.take(piece);
        }
        assert_eq!(looping.is_looping(), judged(&text));
        let just = STRETCH - 1 + 256;
        assert_eq!(judged(&"a".repeat(just - 1)), None);
        assert_eq!(judged(&"a".repeat(just)), Some(true));
    }
}
