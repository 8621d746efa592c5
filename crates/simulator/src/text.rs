//! What the stand-in says: plausible words, equal for equal seeds.

use crate::noise::mix;

/// Words without characters that JSON would escape.
const WORDS: [&str; 64] = [
    "the", "energy", "of", "a", "system", "is", "measured", "by", "its", "response", "to", "small",
    "changes", "and", "each", "step", "follows", "from", "one", "before", "it", "so", "that",
    "results", "remain", "stable", "over", "time", "while", "larger", "effects", "appear", "when",
    "many", "parts", "work", "together", "in", "order", "we", "can", "see", "this", "clearly",
    "with", "an", "example", "where", "two", "values", "are", "compared", "first", "then",
    "combined", "into", "single", "list", "which", "keeps", "their", "original", "place", "again",
];

/// The text of token `index` of request `ticket`: a blank and a word.
pub(crate) fn push_token(out: &mut Vec<u8>, seed: u64, ticket: u64, index: u32) {
    let at = mix(seed, ticket ^ 0x7E87, u64::from(index)) % WORDS.len() as u64;
    let word = usize::try_from(at).ok().and_then(|at| WORDS.get(at));
    out.push(b' ');
    out.extend_from_slice(word.unwrap_or(&"word").as_bytes());
}

/// An estimate of a prompt's tokens: 1.3 for each word.
pub(crate) fn count_tokens(prompt: &str) -> u32 {
    let words = u32::try_from(prompt.split_whitespace().count()).unwrap_or(u32::MAX);
    (u64::from(words) * 13)
        .div_ceil(10)
        .clamp(1, u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::prompts::{FOUNDING, Fit, Prompt, PromptSet};

    use super::*;

    #[test]
    fn the_founding_prompts_have_18_to_20_tokens() {
        for prompt in FOUNDING {
            assert!((18..=20).contains(&count_tokens(prompt)), "{prompt}");
        }
        let varied: Vec<u32> = (0..200)
            .filter_map(
                |index| match PromptSet::Varied.prompt(1, index, &Fit::default()) {
                    Prompt::Text(text) => Some(count_tokens(&text)),
                    Prompt::Chat(_) => None,
                },
            )
            .collect();
        let mean = f64::from(varied.iter().sum::<u32>()) / 200.0;
        assert!((15.0..32.0).contains(&mean), "{mean}");
        assert_eq!(count_tokens(""), 1);
    }

    #[test]
    fn words_need_no_escaping() {
        for word in WORDS {
            assert!(word.bytes().all(|byte| byte.is_ascii_lowercase()));
        }
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for index in 0..20 {
            push_token(&mut one, 1, 2, index);
            push_token(&mut two, 1, 2, index);
        }
        assert_eq!(one, two);
    }
}
