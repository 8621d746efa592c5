//! Hits in the prefix cache by the engine's own count, for servers that do not tell
//! them with each reply.

use super::{RunParts, StagePart};
use crate::metrics::{CACHE_HIT_SHARE, COMMON_HEAD, StageFlag};

/// The limits are those of the count that comes with the replies.
pub(super) fn check(run: &RunParts<'_>, stage: &StagePart<'_>) -> Option<StageFlag> {
    let told_already = stage
        .flags
        .iter()
        .any(|flag| matches!(flag, StageFlag::CacheHits { .. }));
    if !run.cold_prompts || told_already {
        return None;
    }
    let engine = stage.engine()?;
    let queries = engine.prefix_queries.filter(|queries| *queries > 0)?;
    let hits = engine.prefix_hits?;
    let common = COMMON_HEAD.saturating_mul(engine.finished.unwrap_or(stage.completed));
    let beyond = hits.saturating_sub(common) as f64 / queries as f64;
    (beyond > CACHE_HIT_SHARE).then(|| StageFlag::CacheHits {
        share: hits as f64 / queries as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{CLOSED, of_run, part, said},
        *,
    };
    use crate::conditions::EngineReport;

    #[test]
    fn hits_beyond_the_common_heads_are_flagged_once() {
        let with = |hits, flags: &[StageFlag], cold_prompts| {
            let conditions = said(EngineReport {
                finished: Some(10),
                prefix_queries: Some(2000),
                prefix_hits: Some(hits),
                ..EngineReport::default()
            });
            let stage = StagePart {
                flags,
                ..part(0, CLOSED, &conditions)
            };
            of_run(&[stage], &[], &[], |run| {
                check(
                    &RunParts {
                        cold_prompts,
                        ..*run
                    },
                    &stage,
                )
            })
        };
        // Ten heads of eight tokens, and a twentieth of 2,000.
        assert_eq!(with(180, &[], true), None);
        let found = Some(StageFlag::CacheHits { share: 0.1 });
        assert_eq!(with(200, &[], true), found);
        assert_eq!(with(200, &[], false), None, "meant to be shared");
        let told = [StageFlag::CacheHits { share: 0.3 }];
        assert_eq!(with(200, &told, true), None);
    }
}
