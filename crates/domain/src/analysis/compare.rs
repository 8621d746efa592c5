//! Two to twelve runs side by side. What is judged are the configurations that they
//! are runs of, over their launches.

mod contests;
mod curves;
mod decision;
mod drawn;
mod figures;
mod flags;
mod groups;
mod speculation;
mod verdicts;

use super::{History, RunFacts, charts::run_name, launches::repeats, levels, summarise};
use crate::{
    chart::ChartSpec,
    comparison::{self, Difference, DifferenceKind, Fingerprint},
    source::Source,
    text,
    views::{
        compare::{ClassKind, CompareView, ComparisonClass},
        run::{LevelView, StageView},
    },
    workload::StageKind,
};
pub(crate) use contests::{Contest, Judged, contests, judged};
use groups::{Group, grouped};

/// The comparison of runs, the baseline first, without what their hosts knew before.
///
/// # Errors
/// As [`compare_with`].
pub fn compare(runs: &[RunFacts]) -> Result<CompareView<ChartSpec>, String> {
    compare_with(runs, &History::default())
}

/// The comparison of runs, the baseline first. Where a configuration has a single
/// launch, the history of its host stands in for what that cannot tell.
///
/// # Errors
/// A sentence, if there are fewer than two or more than twelve runs.
pub fn compare_with(
    runs: &[RunFacts],
    history: &History<'_>,
) -> Result<CompareView<ChartSpec>, String> {
    if !comparison::RUNS.contains(&runs.len()) {
        return Err(format!(
            "{} cannot be compared: choose two to twelve.",
            text::plural(runs.len() as u64, "run", "runs")
        ));
    }
    let columns: Vec<Column<'_>> = runs.iter().map(|run| Column::new(run, runs)).collect();
    let groups = grouped(&columns);
    // Of one configuration there is nothing else to judge than run against run.
    let alone: Vec<Group<'_>> = columns.iter().map(Group::alone).collect();
    let judged = if groups.len() > 1 { &groups } else { &alone };
    let (mut differences, equal_settings) = differences(&groups, &columns);
    say_workloads(&mut differences, runs);
    let as_of = runs.iter().filter_map(|run| run.summary.finished_at).max();
    let mut charts = vec![decision::chart(judged, &groups, as_of)];
    charts.extend(curves::charts(judged, as_of));
    let speculation = speculation::views(&groups);
    charts.extend(speculation::chart(&groups, &speculation, as_of));
    charts.retain(|chart| !chart.is_empty());
    let class = class(runs, &groups, &differences);
    if mixes_simulated(runs) {
        // A simulated curve beside a measured one would be read as a result.
        charts.clear();
    }
    let separating = if class.kind == ClassKind::Confounded {
        comparison::separating(&named(&groups))
    } else {
        Vec::new()
    };
    Ok(CompareView {
        runs: runs.iter().map(summarise).collect(),
        rows: figures::rows(&columns, &groups),
        class,
        differences,
        equal_settings,
        separating,
        verdicts: verdicts::verdicts(judged, history),
        crossovers: verdicts::crossovers(judged),
        speculation,
        charts,
        groups: groups.iter().map(Group::view).collect(),
    })
}

/// What differs between the configurations, with the values of every run.
fn differences(groups: &[Group<'_>], columns: &[Column<'_>]) -> (Vec<Difference>, u32) {
    let prints: Vec<Fingerprint> = groups.iter().map(|group| group.print().clone()).collect();
    let (mut differences, equal) = comparison::differences(&prints);
    for difference in &mut differences {
        difference.values = columns
            .iter()
            .map(|column| column.print.value(difference.kind, &difference.key))
            .map(|value| value.map(str::to_owned))
            .collect();
    }
    (differences, equal)
}

/// Workloads are told apart by their hash, which tells a reader nothing.
fn say_workloads(differences: &mut [Difference], runs: &[RunFacts]) {
    for difference in differences {
        if difference.kind == DifferenceKind::Definition && difference.key == "workload" {
            for (value, run) in difference.values.iter_mut().zip(runs) {
                let run = &run.summary;
                *value = Some(format!(
                    "{} ({})",
                    run.workload_text,
                    run.workload_hash.short()
                ));
            }
        }
    }
}

fn class(runs: &[RunFacts], groups: &[Group<'_>], differences: &[Difference]) -> ComparisonClass {
    if mixes_simulated(runs) {
        return ComparisonClass {
            kind: ClassKind::Invalid,
            sentence: "Not comparable: some of these runs are simulated and some are not, so no chart shows them together.".to_owned(),
        };
    }
    let settings_known = runs.iter().all(|run| !run.settings.is_empty());
    // Of a launch everything that was asked for is known.
    let all_launched = runs.iter().all(|run| run.summary.launch.is_some());
    let class = comparison::classify(differences, settings_known);
    let hint = if all_launched {
        None
    } else if names_differ(runs) {
        Some("the configurations' names do")
    } else if addresses_differ(runs) {
        Some("their addresses do")
    } else {
        None
    };
    match (class.kind, hint) {
        (ClassKind::Repeat, Some(hint)) => ComparisonClass {
            kind: ClassKind::Confounded,
            sentence: format!(
                "Nothing that the servers tell of themselves differs, but {hint}: something that cannot be seen from here, such as an environment variable, may."
            ),
        },
        (ClassKind::Repeat, None) => match groups {
            [one] => ComparisonClass {
                sentence: format!(
                    "{} {} of {}.",
                    class.sentence,
                    text::plural(runs.len() as u64, "run", "runs"),
                    text::plural(one.launches().into(), "launch", "launches")
                ),
                ..class
            },
            _ => class,
        },
        (ClassKind::Confounded, _) if settings_known => {
            comparison::one_at_a_time(&named(groups)).unwrap_or(class)
        }
        _ => class,
    }
}

fn named<'a>(groups: &'a [Group<'_>]) -> Vec<(&'a str, &'a Fingerprint)> {
    groups
        .iter()
        .map(|group| (group.name.as_str(), group.print()))
        .collect()
}

fn names_differ(runs: &[RunFacts]) -> bool {
    let mut names = runs.iter().map(|run| &run.summary.configuration);
    let first = names.next();
    names.any(|name| Some(name) != first)
}

fn addresses_differ(runs: &[RunFacts]) -> bool {
    runs.iter()
        .zip(runs.iter().skip(1))
        .any(|(one, other)| groups::are_two_servers(&one.summary, &other.summary))
}

fn mixes_simulated(runs: &[RunFacts]) -> bool {
    let simulated = |run: &RunFacts| run.summary.source == Source::Simulated;
    runs.iter().any(simulated) && !runs.iter().all(simulated)
}

struct Column<'a> {
    run: &'a RunFacts,
    name: String,
    print: Fingerprint,
    levels: Vec<LevelView>,
}

impl<'a> Column<'a> {
    fn new(run: &'a RunFacts, all: &[RunFacts]) -> Self {
        Self {
            run,
            name: run_name(run, all),
            print: run.fingerprint(),
            levels: levels(&run.stages),
        }
    }

    fn level(&self, kind: StageKind) -> Option<&LevelView> {
        self.levels.iter().find(|level| level.kind == kind)
    }

    /// One value per repeat, as the level's estimate is made of.
    fn repeats(&self, kind: StageKind, figure: impl Fn(&StageView) -> Option<f64>) -> Vec<f64> {
        repeats(&self.run.stages, kind, figure)
    }
}

fn kinds(columns: &[Column<'_>]) -> Vec<StageKind> {
    let mut kinds: Vec<StageKind> = columns
        .iter()
        .flat_map(|column| &column.levels)
        .map(|level| level.kind)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[cfg(test)]
mod tests;
