//! Which prompt tokens are in the prefix cache: those of a beginning that an earlier
//! prompt had as well, in pieces of 32 words, or the whole of a repeated prompt.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use crate::config::Engine;

/// Words of a piece. Invented: engines compare tokens, one by one or in blocks.
const PIECE: usize = 32;
/// Beginnings that are remembered; then all are forgotten.
const MOST: usize = 500_000;

/// Beginnings of the prompts so far.
#[derive(Debug, Default)]
pub(crate) struct PrefixCache(HashSet<u64>);

impl PrefixCache {
    /// Tokens of this prompt that are in the cache, never its last one; remembers its
    /// beginnings.
    pub(crate) fn look_up(&mut self, prompt: &str, tokens: u32, engine: Engine) -> u32 {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        let (mut words, mut known, mut unbroken) = (0_usize, 0_usize, true);
        let mut hasher = DefaultHasher::new();
        let mut see = |words: usize, hash: u64, whole: bool| {
            let new = self.0.insert(hash);
            unbroken &= !new || whole;
            if unbroken && !new {
                known = words;
            }
        };
        for word in prompt.split_whitespace() {
            word.hash(&mut hasher);
            words += 1;
            if words.is_multiple_of(PIECE) {
                see(words, hasher.finish(), false);
            }
        }
        // The whole is a beginning of its own, told apart from equal pieces.
        (prompt, u8::MAX).hash(&mut hasher);
        see(words, hasher.finish(), true);
        let share = known as f64 / words.max(1) as f64;
        let cached = ((f64::from(tokens) * share) as u32).min(tokens.saturating_sub(1));
        match engine {
            // Whole blocks of 16.
            Engine::Vllm => cached / 16 * 16,
            Engine::Sglang => cached,
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::count_tokens;

    fn words(from: u32, count: u32) -> String {
        (from..from + count)
            .map(|word| format!("w{word} "))
            .collect()
    }

    fn ask(cache: &mut PrefixCache, prompt: &str, engine: Engine) -> u32 {
        cache.look_up(prompt, count_tokens(prompt), engine)
    }

    #[test]
    fn a_repeated_prompt_is_cached_but_for_its_last_token() {
        for (engine, expected) in [(Engine::Sglang, 18), (Engine::Vllm, 16)] {
            let mut cache = PrefixCache::default();
            assert_eq!(ask(&mut cache, &words(0, 14), engine), 0);
            assert_eq!(ask(&mut cache, &words(0, 14), engine), expected);
            cache.clear();
            assert_eq!(ask(&mut cache, &words(0, 14), engine), 0);
        }
    }

    #[test]
    fn a_shared_beginning_is_cached_in_pieces() {
        let mut cache = PrefixCache::default();
        let shared = words(0, 100);
        let prompt = |own: u32| shared.clone() + &words(own, 20);
        assert_eq!(ask(&mut cache, &prompt(1000), Engine::Sglang), 0);
        // 96 of 120 words: 156 tokens.
        assert_eq!(ask(&mut cache, &prompt(2000), Engine::Sglang), 124);
        assert_eq!(ask(&mut cache, &prompt(3000), Engine::Vllm), 112);
        // The next turn of a conversation begins with all of the last one.
        let turn = prompt(2000) + &words(5000, 40);
        assert_eq!(ask(&mut cache, &turn, Engine::Sglang), 124);
        assert_eq!(
            ask(&mut cache, &turn, Engine::Sglang),
            count_tokens(&turn) - 1
        );
    }

    #[test]
    fn equal_words_later_on_are_no_beginning() {
        let mut cache = PrefixCache::default();
        ask(&mut cache, &words(0, 64), Engine::Sglang);
        let other = words(900, 32) + &words(32, 32);
        assert_eq!(ask(&mut cache, &other, Engine::Sglang), 0);
    }
}
