//! A figure of each configuration beside the baseline's, for rules on it.

use super::{
    Column,
    groups::{Figure, Group, grouped},
    verdicts::comparable,
};
use crate::{
    analysis::{History, RunFacts},
    source::Source,
    statistics::{Launch, PooledHistory},
    verdict::Side,
    views::run::StageView,
    workload::StageKind,
};

/// Runs that are judged together: those of a configuration, or a run by itself where
/// all are of one configuration.
pub(crate) struct Judged {
    /// What they are called.
    pub(crate) name: String,
    /// Their places among the runs.
    pub(crate) places: Vec<usize>,
}

/// A figure of a configuration at a load level, and of the baseline's.
pub(crate) struct Contest {
    /// The load level.
    pub(crate) kind: StageKind,
    /// The baseline's side.
    pub(crate) baseline: Contestant,
    /// The other one's.
    pub(crate) other: Contestant,
    /// Or why the two cannot be compared.
    pub(crate) comparable: Result<(), String>,
    /// How much launches varied before on the host of both.
    pub(crate) history: Option<PooledHistory>,
    /// Minutes that a launch takes there.
    pub(crate) minutes: Option<f64>,
}

/// A side of it.
pub(crate) struct Contestant {
    /// Name of the configuration.
    pub(crate) name: String,
    /// Its launches with the figure, each with its repeats.
    pub(crate) launches: Vec<Launch>,
    source: Source,
    objection: Option<&'static str>,
    failed: Option<String>,
}

/// The runs by what they are judged as, the baseline's first.
pub(crate) fn judged(runs: &[RunFacts]) -> Vec<Judged> {
    let columns: Vec<Column<'_>> = runs.iter().map(|run| Column::new(run, runs)).collect();
    groups(&columns)
        .iter()
        .map(|group| Judged {
            name: group.name.clone(),
            places: group
                .columns()
                .filter_map(|column| runs.iter().position(|run| std::ptr::eq(run, column.run)))
                .collect(),
        })
        .collect()
}

/// The figure of every configuration against the baseline's, at each of these load
/// levels that one of the two has it at.
pub(crate) fn contests(
    runs: &[RunFacts],
    history: &History<'_>,
    at: impl Fn(StageKind) -> bool,
    of_stage: impl Fn(&StageView) -> Option<f64>,
) -> Vec<Contest> {
    let columns: Vec<Column<'_>> = runs.iter().map(|run| Column::new(run, runs)).collect();
    let groups = groups(&columns);
    let Some((baseline, others)) = groups.split_first() else {
        return Vec::new();
    };
    others
        .iter()
        .flat_map(|other| {
            let mut kinds = baseline.kinds();
            kinds.extend(other.kinds());
            let host = baseline.host().filter(|host| other.host() == Some(*host));
            kinds
                .into_iter()
                .filter(|kind| at(*kind))
                .map(|kind| Contest {
                    kind,
                    baseline: Contestant::new(baseline, &baseline.figure(kind, &of_stage)),
                    other: Contestant::new(other, &other.figure(kind, &of_stage)),
                    comparable: comparable(baseline, other),
                    history: host
                        .and_then(|host| history.spread(host, baseline.summary(), kind, &of_stage)),
                    minutes: host.and_then(|host| history.minutes(host)),
                })
                .filter(|contest| {
                    !(contest.baseline.launches.is_empty() && contest.other.launches.is_empty())
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Of one configuration there is nothing else to judge than run against run.
fn groups<'a>(columns: &'a [Column<'a>]) -> Vec<Group<'a>> {
    let groups = grouped(columns);
    if groups.len() > 1 {
        groups
    } else {
        columns.iter().map(Group::alone).collect()
    }
}

impl Contestant {
    fn new(group: &Group<'_>, figure: &Figure) -> Self {
        let launches = figure.launches();
        Self {
            name: group.name.clone(),
            failed: launches
                .is_empty()
                .then(|| group.failure().map(str::to_owned))
                .flatten(),
            launches,
            source: figure.source.unwrap_or_else(|| group.source()),
            objection: figure.objection,
        }
    }

    /// As a verdict takes it.
    pub(crate) fn side(&self) -> Side<'_> {
        Side {
            name: &self.name,
            launches: &self.launches,
            source: self.source,
            objection: self.objection,
            failed: self.failed.as_deref(),
        }
    }

    fn is_sound(&self) -> bool {
        !self.launches.is_empty() && self.objection.is_none()
    }
}

impl Contest {
    /// Two figures that may be compared, neither of them in doubt.
    pub(crate) fn is_sound(&self) -> bool {
        self.comparable.is_ok() && self.baseline.is_sound() && self.other.is_sound()
    }
}
