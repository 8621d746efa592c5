//! Degenerate output: replies that loop.

use super::StagePart;
use crate::metrics::StageFlag;

/// Share of looping replies. A loop is guessed nearly always, which may double the
/// tokens of a verify step: a tenth of such replies moves the mean by several percent,
/// beyond what matters (2 %).
const SHARE: f64 = 0.1;

pub(super) fn check(stage: &StagePart<'_>) -> Option<StageFlag> {
    let replies = stage.conditions.replies?;
    let speculative = stage
        .engine()
        .and_then(|engine| engine.speculation.as_ref())
        .is_some_and(|counts| counts.steps > 0);
    (replies.looping as f64 > SHARE * replies.judged as f64).then_some(StageFlag::LoopingReplies {
        requests: replies.looping,
        of: replies.judged,
        speculative,
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{CLOSED, part},
        *,
    };
    use crate::conditions::{EngineReport, RepliesSeen, Speculation, StageConditions};

    fn with(judged: u64, looping: u64, steps: u64) -> Option<StageFlag> {
        let conditions = StageConditions {
            engine: Some(EngineReport {
                speculation: Some(Speculation {
                    steps,
                    ..Speculation::default()
                }),
                ..EngineReport::default()
            }),
            replies: Some(RepliesSeen {
                judged,
                looping,
                ..RepliesSeen::default()
            }),
            ..StageConditions::default()
        };
        check(&part(0, CLOSED, &conditions))
    }

    #[test]
    fn loops_beyond_a_tenth_are_flagged_and_doubtful_under_speculation() {
        assert_eq!(with(30, 3, 100), None);
        assert_eq!(with(0, 0, 100), None);
        for (steps, speculative) in [(100, true), (0, false)] {
            let found = with(30, 4, steps).expect("a flag");
            assert_eq!(
                found,
                StageFlag::LoopingReplies {
                    requests: 4,
                    of: 30,
                    speculative
                }
            );
            assert_eq!(found.forbids_verdict(), speculative);
        }
        let unseen = StageConditions::default();
        assert_eq!(check(&part(0, CLOSED, &unseen)), None);
    }
}
