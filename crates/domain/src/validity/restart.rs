//! An engine that was started anew between, or within, the stages of a run.

use super::RunParts;
use crate::{
    conditions::{EngineReport, SAME_START_S},
    metrics::StageFlag,
};

/// From the first stage on that another life of the engine answered, every stage wears
/// the flag: repeats before and after are taken for those of one launch.
pub(super) fn check(run: &RunParts<'_>) -> Vec<(u32, StageFlag)> {
    let mut found = Vec::new();
    let mut last: Option<(u32, &EngineReport)> = None;
    let mut after: Option<u32> = None;
    for stage in run.stages {
        if let Some(engine) = stage.engine() {
            if let Some((index, before)) = last
                && is_another(before, engine)
            {
                after = Some(index);
            }
            last = Some((stage.index, engine));
        }
        found.extend(after.map(|after| (stage.index, StageFlag::EngineRestarted { after })));
    }
    found
}

/// Tokens generated since the start of one and the same engine never become fewer.
fn is_another(before: &EngineReport, next: &EngineReport) -> bool {
    let fell = before
        .generated_after
        .zip(next.generated_before)
        .is_some_and(|(then, now)| now < then);
    let moved = before
        .process_started_s
        .zip(next.process_started_s)
        .is_some_and(|(then, now)| (now - then).abs() > SAME_START_S);
    fell || moved || before.counters_fell
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{CLOSED, of_run, part, said, wearers},
        *,
    };
    use crate::conditions::StageConditions;

    fn life(before: u64, after: u64, started: Option<f64>) -> StageConditions {
        said(EngineReport {
            generated_before: Some(before),
            generated_after: Some(after),
            process_started_s: started,
            ..EngineReport::default()
        })
    }

    fn found(stages: &[StageConditions]) -> Vec<(u32, StageFlag)> {
        let parts: Vec<_> = (0..)
            .zip(stages)
            .map(|(index, conditions)| part(index, CLOSED, conditions))
            .collect();
        of_run(&parts, &[], &[], check)
    }

    #[test]
    fn a_count_that_falls_between_stages_marks_all_that_follow() {
        let one_life = [
            life(0, 100, None),
            life(100, 200, None),
            life(250, 300, None),
        ];
        assert_eq!(found(&one_life), []);
        let two = [
            life(0, 100, None),
            life(99, 200, None),
            life(200, 300, None),
        ];
        let flags = found(&two);
        assert_eq!(wearers(&flags), [1, 2]);
        assert_eq!(flags[0].1, StageFlag::EngineRestarted { after: 0 });
        assert!(flags[0].1.sentence().contains("after stage 1"));
    }

    #[test]
    fn a_new_process_is_seen_though_its_count_is_higher() {
        let at = |start| [life(0, 100, Some(1000.0)), life(100, 200, Some(start))];
        assert_eq!(found(&at(1002.0)), []);
        assert_eq!(wearers(&found(&at(1002.1))), [1]);
    }

    #[test]
    fn a_counter_that_fell_within_a_stage_is_a_restart_for_the_next() {
        let fell = said(EngineReport {
            counters_fell: true,
            ..EngineReport::default()
        });
        let silent = StageConditions::default();
        assert_eq!(
            wearers(&found(&[
                life(0, 9, None),
                fell,
                silent.clone(),
                life(9, 9, None)
            ])),
            [3]
        );
        assert_eq!(found(&[life(5, 9, None), silent.clone(), silent]), []);
    }
}
