//! The server's limit of running requests, by its settings: vLLM's metrics do not hold
//! it.

use std::collections::BTreeMap;

use super::{RunParts, StagePart};
use crate::metrics::StageFlag;

/// Names of the limit of all ranks together (SGLang).
const OF_ALL: [&str; 2] = ["max_running_requests", "--max-running-requests"];
/// Names of the limit of each data-parallel rank (vLLM).
const OF_EACH: [&str; 2] = ["scheduler_config.max_num_seqs", "--max-num-seqs"];
/// Names of the number of such ranks.
const RANKS: [&str; 3] = [
    "parallel_config.data_parallel_size",
    "--data-parallel-size",
    "-dp",
];

/// A fixed concurrency above the limit. Where the engine told its limit itself, the
/// stage has been held against that.
pub(super) fn check(run: &RunParts<'_>, stage: &StagePart<'_>) -> Option<StageFlag> {
    if stage
        .engine()
        .is_some_and(|engine| engine.max_running.is_some())
    {
        return None;
    }
    let in_flight = stage.kind.concurrency()?;
    let cap = limit(run.settings)?;
    (cap < u64::from(in_flight)).then_some(StageFlag::EngineCap { cap, in_flight })
}

fn limit(settings: &BTreeMap<String, String>) -> Option<u64> {
    let read = |names: &[&str]| -> Option<u64> {
        names
            .iter()
            .find_map(|name| settings.get(*name)?.trim().parse().ok())
            .filter(|number| *number > 0)
    };
    read(&OF_ALL).or_else(|| Some(read(&OF_EACH)?.saturating_mul(read(&RANKS).unwrap_or(1))))
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{CLOSED, of_run, part, said},
        *,
    };
    use crate::conditions::{EngineReport, StageConditions};

    fn with(settings: &[(&str, &str)], conditions: &StageConditions) -> Option<StageFlag> {
        let stage = part(0, CLOSED, conditions);
        of_run(&[stage], settings, &[], |run| check(run, &stage))
    }

    #[test]
    fn a_limit_below_c_is_read_from_the_settings() {
        let calm = StageConditions::default();
        let seven = Some(StageFlag::EngineCap {
            cap: 7,
            in_flight: 8,
        });
        for name in OF_ALL.into_iter().chain(OF_EACH) {
            assert_eq!(with(&[(name, "8")], &calm), None, "{name}");
            assert_eq!(with(&[(name, "7")], &calm), seven, "{name}");
        }
        let ranks = [("--max-num-seqs", "4"), ("--data-parallel-size", "2")];
        assert_eq!(with(&ranks, &calm), None);
        assert_eq!(with(&[("max_running_requests", "None")], &calm), None);
    }

    #[test]
    fn what_the_engine_tells_itself_counts_more() {
        let told = said(EngineReport {
            max_running: Some(64),
            ..EngineReport::default()
        });
        assert_eq!(with(&[("--max-num-seqs", "4")], &told), None);
    }
}
