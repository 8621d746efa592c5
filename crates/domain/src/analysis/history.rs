//! What earlier launches on a host tell of the next: how much they vary, and how long
//! one takes with its measurement.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{RunFacts, board::Measured, launches::by_launch};
use crate::{
    ids::{HostId, LaunchId, ProfileId},
    source::Source,
    statistics::{Launch, PooledHistory},
    text,
    views::run::{RunSummary, StageView},
    workload::StageKind,
};

/// Newest runs of a host under one workload that are its history. What ran long before
/// tells less of the next launch, and takes as long to read.
pub const MOST_PAST: u32 = 1_000;

/// Runs on launches that the laboratory holds, the newest [`MOST_PAST`] of each host and
/// workload. Without any, nothing is known.
#[derive(Debug, Clone, Default)]
pub struct History<'a> {
    past: Vec<&'a RunFacts>,
    minutes: BTreeMap<HostId, f64>,
}

/// What makes runs launches of one configuration: profile, number of its revision,
/// version of the engine.
type Configuration<'a> = (ProfileId, u32, Option<&'a str>);

/// Degrees of freedom below which launches are no history: an interval by so few would
/// be too wide to tell anything.
const FEWEST: u32 = 3;

impl<'a> History<'a> {
    /// From runs, of which those on launches count, and the minutes that a launch with
    /// its measurement takes on each host.
    #[must_use]
    pub fn of(
        runs: impl IntoIterator<Item = &'a RunFacts>,
        minutes: BTreeMap<HostId, f64>,
    ) -> Self {
        let mut past: Vec<&RunFacts> = runs
            .into_iter()
            .filter(|run| run.summary.launch.is_some())
            .collect();
        past.sort_by_key(|run| Reverse(run.summary.id));
        let mut counts: BTreeMap<(Option<HostId>, &str), u32> = BTreeMap::new();
        past.retain(|run| {
            let host = run.summary.launch.as_ref().map(|launch| launch.host.0);
            let count = counts
                .entry((host, &run.summary.workload_hash.0))
                .or_default();
            *count += 1;
            *count <= MOST_PAST
        });
        Self { past, minutes }
    }

    /// Minutes that a launch with its measurement takes on a host.
    pub(super) fn minutes(&self, host: HostId) -> Option<f64> {
        self.minutes.get(&host).copied()
    }

    /// How much a figure varied from launch to launch on a host, within each
    /// configuration that was launched there more than once and measured with the
    /// workload of `like`: the same load and the same number of repeats. Flagged runs,
    /// and runs of what was not as asked, do not count. Simulated launches tell of
    /// simulated ones only. None where too few launches tell.
    pub(super) fn spread(
        &self,
        host: HostId,
        like: &RunSummary,
        kind: StageKind,
        of_stage: impl Fn(&StageView) -> Option<f64>,
    ) -> Option<PooledHistory> {
        let simulated = |run: &RunSummary| run.source == Source::Simulated;
        let mut name = "";
        let mut configurations: BTreeMap<Configuration<'_>, Vec<(LaunchId, Vec<f64>)>> =
            BTreeMap::new();
        for run in &self.past {
            let summary = &run.summary;
            let Some(launch) = summary.launch.as_ref().filter(|of| of.host.0 == host) else {
                continue;
            };
            let alike = summary.workload_hash == like.workload_hash
                && simulated(summary) == simulated(like);
            let measured = alike
                .then(|| Measured::of(run, kind, &of_stage))
                .flatten()
                .filter(|measured| !measured.is_doubtful());
            if let Some(measured) = measured {
                let (profile, _, revision) = &launch.profile;
                name = &launch.host.1;
                configurations
                    .entry((*profile, *revision, summary.engine_version.as_deref()))
                    .or_default()
                    .push((launch.launch, measured.repeats));
            }
        }
        let launched: Vec<Vec<Launch>> = configurations
            .values()
            .map(|runs| {
                let runs = runs
                    .iter()
                    .map(|(launch, repeats)| (Some(*launch), repeats.as_slice()));
                by_launch(runs)
                    .iter()
                    .filter_map(|repeats| Launch::new(repeats))
                    .collect()
            })
            // A launch by itself tells nothing of another.
            .filter(|launches: &Vec<Launch>| launches.len() > 1)
            .collect();
        let count: usize = launched.iter().map(Vec::len).sum();
        let label = format!(
            "{} of {} on {name}",
            text::plural(count as u64, "launch", "launches"),
            text::plural(launched.len() as u64, "configuration", "configurations"),
        );
        let pools: Vec<&[Launch]> = launched.iter().map(Vec::as_slice).collect();
        PooledHistory::of(label, &pools).filter(|history| history.df >= FEWEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::samples::{launched, single},
        effective::Stamp,
        ids::{ContentHash, RunId},
    };

    fn spread(past: &[RunFacts], host: i64) -> Option<PooledHistory> {
        let like = past.first().expect("a run").summary.clone();
        History::of(past, BTreeMap::new()).spread(
            HostId(host),
            &like,
            StageKind::SingleStream,
            |stage| stage.e2e_tps.p50,
        )
    }

    fn of(id: i64, name: &str, speed: f64) -> RunFacts {
        launched(id, name, id, vec![single(0, speed)])
    }

    fn four() -> Vec<RunFacts> {
        [60.0, 66.0, 60.0, 66.0]
            .into_iter()
            .zip(1..)
            .map(|(speed, id)| of(id, "a", speed))
            .collect()
    }

    #[test]
    fn launches_are_taken_around_their_own_configuration() {
        let past = [
            of(1, "a", 60.0),
            of(2, "a", 66.0),
            of(3, "b", 90.0),
            of(4, "b", 90.0),
            of(5, "b", 90.0),
            of(6, "c", 10.0),
        ];
        let found = spread(&past, 1).expect("a history");
        assert_eq!(
            (found.df, found.label.as_str()),
            (3, "5 launches of 2 configurations on gpu1")
        );
        let squares = (1.1_f64.ln()).powi(2) / 2.0;
        assert!((found.between_launch_sd_log - (squares / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(spread(&past, 2), None, "another host");
        assert_eq!(spread(&past[2..], 1), None, "no two launches differ");
        assert_eq!(spread(&past[..4], 1), None, "too few");
    }

    #[test]
    fn what_is_not_alike_or_not_sound_does_not_count() {
        assert_eq!(spread(&four(), 1).map(|history| history.df), Some(3));
        type Change = fn(&mut RunFacts);
        let changes: [(&str, Change); 5] = [
            ("disputed", |run| run.stages[0].disputed = true),
            ("simulated", |run| run.summary.source = Source::Simulated),
            ("another workload", |run| {
                run.summary.workload_hash = ContentHash::of(b"another");
            }),
            ("another version", |run| {
                run.summary.engine_version = Some("0.6.0".to_owned());
            }),
            ("mismatched", |run| {
                if let Some(launch) = &mut run.summary.launch {
                    launch.stamp = Some(Stamp::Mismatched {
                        items: vec!["--tp-size".to_owned()],
                    });
                }
            }),
        ];
        for (what, change) in changes {
            let mut past = four();
            change(&mut past[3]);
            assert_eq!(spread(&past, 1), None, "{what}");
        }
    }

    #[test]
    fn what_ran_long_before_is_no_history_any_more() {
        let mut past = four();
        let newest = past[3].clone();
        for id in 0..i64::from(MOST_PAST) {
            let mut other = newest.clone();
            other.summary.id = RunId(1_000 + id);
            other.stages[0].disputed = true;
            past.push(other);
        }
        assert_eq!(spread(&past, 1), None);
        for other in &mut past[4..] {
            other.summary.workload_hash = ContentHash::of(b"another");
        }
        assert!(spread(&past, 1).is_some(), "of this workload it is new");
    }

    #[test]
    fn runs_of_one_launch_are_its_repeats() {
        let mut past = four();
        past[3].summary.launch = past[2].summary.launch.clone();
        assert_eq!(spread(&past, 1), None, "three launches");
    }
}
