//! Runs of one configuration, taken together over its launches.

use std::collections::BTreeSet;

use super::{super::launches, Column, flags};
use crate::{
    comparison::Fingerprint,
    engine::EngineKind,
    ids::{HostId, LaunchId, RunId},
    run::RunState,
    source::Source,
    statistics::{Estimate, Launch},
    views::{
        compare::CompareGroup,
        run::{RunSummary, StageView},
    },
    workload::StageKind,
};

/// Runs that agree in name, workload and all that is known of model, hardware, engine
/// and settings, and in their address where nothing tells what was started there. There
/// is at least one.
pub(super) struct Group<'a> {
    pub(super) name: String,
    first: &'a Column<'a>,
    rest: Vec<&'a Column<'a>>,
}

/// A figure of a configuration, by launch.
pub(super) struct Figure {
    by_launch: Vec<Vec<f64>>,
    /// The runs that it is of.
    pub(super) runs: Vec<RunId>,
    /// The first flag of its levels, in a sentence.
    pub(super) flag: Option<String>,
    /// Of several sources, the least trustworthy.
    pub(super) source: Option<Source>,
    /// Why no verdict may rest on it, if so.
    pub(super) objection: Option<&'static str>,
}

/// Were they measured at different addresses, and nothing more is known of what was
/// started there? Then what they run with may differ, also under one name.
pub(super) fn are_two_servers(one: &RunSummary, other: &RunSummary) -> bool {
    let address = |run: &RunSummary| run.launch.is_none().then(|| run.endpoint.clone()).flatten();
    address(one)
        .zip(address(other))
        .is_some_and(|(one, other)| one != other)
}

/// The configurations by their first runs, the baseline's first.
pub(super) fn grouped<'a>(columns: &'a [Column<'a>]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for column in columns {
        match groups.iter_mut().find(|group| group.takes(column)) {
            Some(group) => group.rest.push(column),
            None => groups.push(Group {
                name: column.run.summary.configuration.clone(),
                first: column,
                rest: Vec::new(),
            }),
        }
    }
    let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    for group in &mut groups {
        if names.iter().filter(|name| **name == group.name).count() > 1 {
            group.name = format!("{} ({})", group.name, said(group.columns()));
        }
    }
    groups
}

impl<'a> Group<'a> {
    /// A run by itself.
    pub(super) fn alone(column: &'a Column<'a>) -> Self {
        Self {
            name: column.name.clone(),
            first: column,
            rest: Vec::new(),
        }
    }

    fn takes(&self, column: &Column<'_>) -> bool {
        let (ours, theirs) = (&self.first.run.summary, &column.run.summary);
        ours.configuration == theirs.configuration
            && ours.workload_hash == theirs.workload_hash
            && !are_two_servers(ours, theirs)
            && self.first.print.agrees_with(&column.print)
    }

    pub(super) fn print(&self) -> &'a Fingerprint {
        &self.first.print
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = &'a Column<'a>> {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    pub(super) fn has(&self, kind: StageKind) -> bool {
        self.columns().any(|column| column.level(kind).is_some())
    }

    /// The load levels of its runs, in their order.
    pub(super) fn kinds(&self) -> BTreeSet<StageKind> {
        self.columns()
            .flat_map(|column| &column.levels)
            .map(|level| level.kind)
            .collect()
    }

    pub(super) fn run_ids(&self) -> Vec<RunId> {
        self.columns().map(|column| column.run.summary.id).collect()
    }

    /// The stages of all of its runs.
    pub(super) fn all_stages(&self) -> impl Iterator<Item = &'a StageView> {
        self.columns().flat_map(|column| &column.run.stages)
    }

    pub(super) fn summary(&self) -> &'a RunSummary {
        &self.first.run.summary
    }

    /// The host of all of its launches; none if they were on several, or if a run was
    /// on none.
    pub(super) fn host(&self) -> Option<HostId> {
        let host = |column: &Column<'_>| Some(column.run.summary.launch.as_ref()?.host.0);
        let first = host(self.first)?;
        self.columns()
            .all(|column| host(column) == Some(first))
            .then_some(first)
    }

    pub(super) fn engine(&self) -> EngineKind {
        self.first.run.summary.engine
    }

    pub(super) fn source(&self) -> Source {
        self.first.run.summary.source
    }

    pub(super) fn launches(&self) -> u32 {
        let launches: BTreeSet<Option<LaunchId>> = self.columns().map(launch).collect();
        u32::try_from(launches.len()).unwrap_or(u32::MAX)
    }

    /// A figure over its launches. Doubtful runs are left out where there is a sound
    /// one.
    pub(super) fn figure(
        &self,
        kind: StageKind,
        of_stage: impl Fn(&StageView) -> Option<f64>,
    ) -> Figure {
        let measured: Vec<(&Column<'_>, Vec<f64>)> = self
            .columns()
            .map(|column| (column, column.repeats(kind, &of_stage)))
            .filter(|(_, repeats)| !repeats.is_empty())
            .collect();
        let (sound, doubtful): (Vec<_>, Vec<_>) = measured
            .into_iter()
            .partition(|(column, _)| objection(column, kind).is_none());
        let used = if sound.is_empty() { doubtful } else { sound };
        Figure {
            by_launch: launches::by_launch(
                used.iter()
                    .map(|(column, repeats)| (launch(column), repeats.as_slice())),
            ),
            runs: used
                .iter()
                .map(|(column, _)| column.run.summary.id)
                .collect(),
            flag: used.iter().find_map(|(column, _)| {
                let flag = column.level(kind)?.flags.first().cloned();
                flag.or_else(|| column.run.summary.mismatch())
            }),
            source: used
                .iter()
                .filter_map(|(column, _)| Some(column.level(kind)?.source))
                .max(),
            objection: used.iter().find_map(|(column, _)| objection(column, kind)),
        }
    }

    /// Why it has no figure, if a run of it failed.
    pub(super) fn failure(&self) -> Option<&'a str> {
        self.columns()
            .map(|column| &column.run.summary)
            .find(|run| run.state == RunState::Failed)
            .map(|run| {
                run.reason
                    .as_deref()
                    .map_or("its run gave no reason", |why| why.trim_end_matches('.'))
            })
    }

    pub(super) fn view(&self) -> CompareGroup {
        CompareGroup {
            name: self.name.clone(),
            runs: self.run_ids(),
            launches: self.launches(),
            notes: self.notes(),
        }
    }

    /// What is not to be seen in the figures.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let unknown: Vec<&Column<'_>> = self
            .columns()
            .filter(|column| launch(column).is_none())
            .collect();
        match unknown.as_slice() {
            [lone] if !self.rest.is_empty() => notes.push(format!(
                "Nothing tells which start of the server {} is of: it counts as another launch.",
                said([*lone])
            )),
            [] | [_] => {}
            _ => notes.push(format!(
                "Nothing tells whether the server was restarted between {}: they count as repeats of one launch.",
                said(unknown)
            )),
        }
        let hosts: BTreeSet<&str> = self
            .columns()
            .filter_map(|column| Some(column.run.summary.launch.as_ref()?.host.1.as_str()))
            .collect();
        if hosts.len() > 1 {
            let hosts: Vec<&str> = hosts.into_iter().collect();
            notes.push(format!(
                "From several hosts, whose differences are among those of its launches: {}.",
                hosts.join(", ")
            ));
        }
        let failed: Vec<&Column<'_>> = self
            .columns()
            .filter(|column| column.run.summary.state == RunState::Failed)
            .collect();
        if !failed.is_empty() && failed.len() <= self.rest.len() {
            notes.push(format!(
                "Failed, and speaks only where it has figures: {}.",
                said(failed)
            ));
        }
        for kind in self.kinds() {
            let (doubtful, sound): (Vec<_>, Vec<_>) = self
                .columns()
                .filter(|column| column.level(kind).is_some())
                .partition(|column| objection(column, kind).is_some());
            if !doubtful.is_empty() && !sound.is_empty() {
                notes.push(format!(
                    "Left out at {kind} as flagged, disputed, estimated or mismatched: {}.",
                    said(doubtful)
                ));
            }
        }
        notes.extend(flags::notes(self.columns()));
        notes
    }
}

impl Figure {
    pub(super) fn launches(&self) -> Vec<Launch> {
        self.by_launch
            .iter()
            .filter_map(|repeats| Launch::new(repeats))
            .collect()
    }

    /// Launches with such a figure.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.by_launch.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn estimate(&self) -> Option<Estimate> {
        Estimate::of(launches::launch_values(&self.by_launch))
    }
}

fn launch(column: &Column<'_>) -> Option<LaunchId> {
    column.run.summary.launch.as_ref().map(|of| of.launch)
}

/// Why no verdict may rest on a run's level, if so.
pub(super) fn objection(column: &Column<'_>, kind: StageKind) -> Option<&'static str> {
    let level = column.level(kind)?;
    if column.run.summary.mismatch().is_some() {
        Some("is mismatched")
    } else if !level.is_doubtful() {
        None
    } else if level.disputed || level.source == Source::Estimated {
        Some("is disputed or estimated")
    } else {
        Some("is flagged")
    }
}

/// `run 3`, `runs 3, 4`.
fn said<'a>(columns: impl IntoIterator<Item = &'a Column<'a>>) -> String {
    let runs: Vec<String> = columns
        .into_iter()
        .map(|column| column.run.summary.id.to_string())
        .collect();
    let word = if runs.len() == 1 { "run" } else { "runs" };
    format!("{word} {}", runs.join(", "))
}
