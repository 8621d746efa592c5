//! How many words make how many tokens, by the server's own count.
//!
//! Prompts of random words are to have the length that is asked for, and only the
//! server knows its tokenizer, its begin marks and its chat template. So it is
//! asked before the first stage: two lengths give the line, the length that is
//! wanted proves and corrects it. Words that are always one token each thus give
//! exactly the wanted length.

use tokdyno_domain::{
    meter::MeterSpec,
    prompts::{Fit, PromptSet},
    record::{FailureKind, RequestRecord},
};

use crate::{connection::Connection, load::Shared, preflight};

/// Prompts for asking come from here on, where no stage and no trial takes any.
const FIRST_PROMPT: u64 = 1 << 42;
/// How often the wanted length is tried.
const TRIES: u64 = 4;
/// Most words of the two prompts that give the line.
const LONGEST: u32 = 1024;
/// Slopes beyond these bounds are no tokenizer's, in tokens a word.
const SLOPES: std::ops::RangeInclusive<f64> = 0.2..=20.0;

/// Finds the fit for the prompts of a workload. Where none is needed, or the server
/// does not count prompt tokens, it is a token a word; the figures say which prompts
/// were not as long as asked.
///
/// # Errors
/// A sentence with cause and remedy: the server does not answer.
pub(crate) async fn find(
    spec: &MeterSpec,
    shared: &Shared,
    connection: &mut Option<Connection>,
) -> Result<Fit, String> {
    let Some(wanted) = wanted(&spec.workload.prompts) else {
        return Ok(Fit::default());
    };
    let mut asked = 0;
    let mut count = async |words: u32| {
        asked += 1;
        count(spec, shared, connection, FIRST_PROMPT + asked, words).await
    };
    let long = wanted.clamp(2, LONGEST);
    let short = (long / 2).max(1);
    let Some(at_short) = count(short).await? else {
        return Ok(Fit::default());
    };
    let Some(at_long) = count(long).await? else {
        return Ok(Fit::default());
    };
    let Some(mut fit) = line((short, at_short), (long, at_long)) else {
        return Ok(Fit::default());
    };
    for _ in 0..TRIES {
        let Some(got) = count(fit.words(wanted)).await? else {
            break;
        };
        if got == wanted {
            break;
        }
        fit = corrected(fit, wanted, got);
    }
    Ok(fit)
}

/// The length the fit has to hold for, in tokens; none where no length is asked for.
/// In a trace the median.
fn wanted(prompts: &PromptSet) -> Option<u32> {
    match prompts {
        PromptSet::Trace { requests, .. } => {
            let mut lengths: Vec<u32> = requests
                .iter()
                .map(|request| request.input_tokens)
                .collect();
            lengths.sort_unstable();
            lengths.get(lengths.len() / 2).copied()
        }
        other => other.asked_prompt_tokens(0),
    }
}

/// The line through two counts: words and the tokens they made.
fn line(short: (u32, u32), long: (u32, u32)) -> Option<Fit> {
    let words = f64::from(long.0.checked_sub(short.0)?);
    let tokens_per_word = (f64::from(long.1) - f64::from(short.1)) / words;
    SLOPES.contains(&tokens_per_word).then(|| Fit {
        tokens_per_word,
        overhead: f64::from(short.1) - tokens_per_word * f64::from(short.0),
    })
}

/// The fit moved so that it would have given the wanted length.
fn corrected(fit: Fit, wanted: u32, got: u32) -> Fit {
    Fit {
        overhead: fit.overhead + f64::from(got) - f64::from(wanted),
        ..fit
    }
}

/// Prompt tokens that so many words make, as the server counts them.
async fn count(
    spec: &MeterSpec,
    shared: &Shared,
    connection: &mut Option<Connection>,
    index: u64,
    words: u32,
) -> Result<Option<u32>, String> {
    // Of the default fit a token is a word.
    let prompt = PromptSet::Random { tokens: words }.prompt(shared.seed, index, &Fit::default());
    let RequestRecord {
        failure,
        prompt_tokens,
        ..
    } = preflight::ask(shared, connection, &prompt, 1).await?;
    match failure {
        // The only token of the answer may have no text.
        Some(failure) if failure.kind != FailureKind::Empty => {
            Err(preflight::explain(&failure, spec))
        }
        _ => Ok(prompt_tokens),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokdyno_domain::prompts::TraceRequest;

    use super::*;

    #[test]
    fn the_line_through_two_counts() {
        let fit = line((256, 269), (512, 525)).expect("a line");
        assert_eq!((fit.tokens_per_word, fit.overhead), (1.0, 13.0));
        assert_eq!(fit.words(1000), 987);
        // Counts that do not follow the words.
        assert_eq!(line((256, 300), (512, 300)), None);
        assert_eq!(line((256, 300), (512, 200)), None);
        assert_eq!(line((1, 7), (1, 7)), None);
    }

    #[test]
    fn what_is_wanted() {
        assert_eq!(wanted(&PromptSet::Varied), None);
        assert_eq!(wanted(&PromptSet::Random { tokens: 7 }), Some(7));
        let shared = PromptSet::SharedPrefix {
            groups: 2,
            prefix_tokens: 100,
            tokens: 11,
        };
        assert_eq!(wanted(&shared), Some(111));
        let trace = PromptSet::Trace {
            name: "t".to_owned(),
            requests: [900, 100, 300]
                .map(|input_tokens| TraceRequest {
                    at_ms: 0,
                    input_tokens,
                    output_tokens: 1,
                })
                .to_vec(),
        };
        assert_eq!(wanted(&trace), Some(300));
    }

    proptest! {
        #[test]
        fn one_correction_meets_the_length(wanted in 50_u32..100_000, overhead in 0_u32..40, bias in -5_i32..=5) {
            // A server that makes a token of each word, and a line that is off.
            let fit = Fit { tokens_per_word: 1.0, overhead: f64::from(overhead) + f64::from(bias) };
            let got = fit.words(wanted) + overhead;
            let fit = corrected(fit, wanted, got);
            prop_assert_eq!(fit.words(wanted) + overhead, wanted);
        }
    }
}
