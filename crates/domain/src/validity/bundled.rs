//! Servers and proxies that send many tokens at once.

use super::StagePart;
use crate::metrics::StageFlag;

/// Tokens per chunk, on average. Drafters in use guess up to seven tokens a step, so
/// up to eight come at once without anybody having held them back.
const MOST: f64 = 8.0;

pub(super) fn check(stage: &StagePart<'_>) -> Option<StageFlag> {
    let chunks = stage.chunks.filter(|chunks| *chunks > 0)?;
    let per_chunk = stage.output_tokens as f64 / chunks as f64;
    (per_chunk > MOST).then_some(StageFlag::BundledTokens { per_chunk })
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{CLOSED, part},
        *,
    };
    use crate::conditions::StageConditions;

    #[test]
    fn more_than_any_drafter_guesses_was_bundled() {
        let calm = StageConditions::default();
        let with = |output_tokens, chunks| {
            check(&StagePart {
                output_tokens,
                chunks,
                ..part(0, CLOSED, &calm)
            })
        };
        assert_eq!(with(800, Some(100)), None);
        assert_eq!(
            with(808, Some(100)),
            Some(StageFlag::BundledTokens { per_chunk: 8.08 })
        );
        assert_eq!(with(800, None), None);
    }
}
