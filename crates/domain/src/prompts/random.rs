//! Random words: common, short, and nearly always a token each.

/// How many words make how many tokens, as found by asking the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Tokens a word makes, on average.
    pub tokens_per_word: f64,
    /// Tokens that come on top, whatever the prompt: begin marks, chat template.
    pub overhead: f64,
}

impl Default for Fit {
    /// A token a word and nothing else.
    fn default() -> Self {
        Self {
            tokens_per_word: 1.0,
            overhead: 0.0,
        }
    }
}

impl Fit {
    /// The words it takes for this many prompt tokens; at least one.
    #[must_use]
    pub fn words(&self, tokens: u32) -> u32 {
        let words = (f64::from(tokens) - self.overhead) / self.tokens_per_word;
        // Saturates, and is 0 for what is no number.
        (words.round() as u32).max(1)
    }

    /// The words that make this many tokens by themselves, with nothing on top; at
    /// least one.
    #[must_use]
    pub fn bare_words(&self, tokens: u32) -> u32 {
        let words = f64::from(tokens) / self.tokens_per_word;
        (words.round() as u32).max(1)
    }
}

/// So many random words, the same for equal arguments.
pub(super) fn words(seed: u64, index: u64, count: u32) -> String {
    let mut state = mix(seed ^ mix(index));
    let mut text = String::with_capacity(count as usize * 6);
    for place in 0..count {
        if place > 0 {
            text.push(' ');
        }
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let [first, ..] = mix(state).to_be_bytes();
        text.push_str(WORDS.get(usize::from(first)).copied().unwrap_or("word"));
    }
    text
}

/// The finaliser of splitmix64 (Steele, Lea and Flood 2014).
pub(super) const fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

const WORDS: [&str; 256] = [
    "able", "about", "above", "acid", "across", "act", "add", "afraid", "after", "again", "age",
    "ago", "agree", "air", "all", "allow", "alone", "along", "already", "also", "always", "among",
    "anger", "animal", "answer", "any", "apple", "area", "arm", "army", "art", "ask", "away",
    "baby", "back", "bad", "bag", "ball", "band", "bank", "bar", "base", "basic", "bath", "beach",
    "bear", "beat", "bed", "beer", "before", "begin", "behind", "bell", "below", "best", "better",
    "big", "bird", "birth", "bit", "black", "blood", "blow", "blue", "board", "boat", "body",
    "bone", "book", "born", "both", "bottle", "bottom", "box", "boy", "branch", "bread", "break",
    "brick", "bridge", "bright", "bring", "brother", "brown", "build", "burn", "bus", "busy",
    "buy", "cake", "call", "camp", "can", "card", "care", "carry", "case", "cat", "catch", "cause",
    "cell", "cent", "chain", "chair", "chance", "change", "cheap", "check", "child", "choice",
    "church", "circle", "city", "class", "clean", "clear", "climb", "clock", "close", "cloth",
    "cloud", "coal", "coat", "coffee", "cold", "color", "come", "common", "cook", "cool", "copper",
    "copy", "corn", "corner", "cost", "cotton", "count", "country", "course", "cover", "cow",
    "create", "cross", "crowd", "cry", "cup", "current", "cut", "dark", "day", "dead", "deal",
    "death", "deep", "degree", "desk", "dinner", "dirty", "do", "doctor", "dog", "door", "double",
    "down", "draw", "dream", "dress", "drink", "drive", "drop", "dry", "dust", "each", "ear",
    "early", "earth", "east", "easy", "eat", "edge", "egg", "eight", "else", "empty", "end",
    "enemy", "engine", "enough", "equal", "error", "even", "event", "ever", "every", "exact",
    "eye", "face", "fact", "fair", "fall", "family", "far", "farm", "fast", "fat", "father",
    "fear", "feed", "feel", "few", "field", "fight", "figure", "fill", "film", "find", "fine",
    "finger", "finish", "fire", "first", "fish", "fit", "five", "floor", "flow", "flower", "fly",
    "fold", "food", "foot", "force", "form", "forward", "four", "free", "fresh", "friend", "from",
    "front", "fruit", "full", "game", "garden", "gas", "gate", "general", "gentle", "girl", "give",
    "glad", "glass", "go", "goat", "gold", "good",
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn as_many_words_as_asked_and_no_two_alike() {
        let texts: HashSet<String> = (0..1000).map(|index| words(7, index, 32)).collect();
        assert_eq!(texts.len(), 1000);
        assert!(texts.iter().all(|text| text.split(' ').count() == 32));
        assert_eq!(words(7, 3, 32), words(7, 3, 32));
        assert_ne!(words(7, 3, 32), words(8, 3, 32));
        // The first words differ as well: nothing is shared in the cache.
        let starts: HashSet<String> = (0..100).map(|index| words(0, index, 3)).collect();
        assert!(starts.len() > 95);
    }

    #[test]
    fn a_fit_gives_the_words() {
        assert_eq!(Fit::default().words(100), 100);
        let fit = Fit {
            tokens_per_word: 1.25,
            overhead: 10.0,
        };
        assert_eq!(fit.words(110), 80);
        assert_eq!(fit.words(3), 1);
        assert_eq!(fit.bare_words(110), 88);
        assert_eq!(fit.bare_words(0), 1);
    }
}
