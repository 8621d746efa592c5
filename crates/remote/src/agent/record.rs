//! What a keeper writes down about its launch, and which processes belong to it.

use std::{collections::HashSet, fs};

use serde::{Deserialize, Serialize};
use tokdyno_domain::host::ProcessIdentity;

use super::{
    folder::Folder,
    process::{self, Stat},
};
use crate::wire::{ExitKind, Failure};

/// File of the [`Record`].
pub(super) const PROCESS: &str = "process.json";
/// File of the [`Exit`].
pub(super) const EXIT: &str = "exit.json";

/// Who watches and who is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The keeper, leader of the launch's session.
    pub(super) keeper: ProcessIdentity,
    /// The program, leader of its group; none until it was started.
    pub(super) leader: Option<ProcessIdentity>,
}

/// How the program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exit {
    /// Which program.
    pub(super) leader: ProcessIdentity,
    /// How.
    pub(super) ended: ExitKind,
    /// Is no process of the launch left?
    pub(super) all_gone: bool,
}

impl Record {
    /// The record of a folder, if it holds one.
    pub(super) fn read(folder: &Folder) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.path().join(PROCESS)).ok()?).ok()
    }

    pub(super) fn write(&self, folder: &Folder) -> Result<(), Failure> {
        let json = serde_json::to_vec(self).unwrap_or_default();
        folder.write(PROCESS, &mut json.as_slice())
    }

    /// Does the keeper still watch?
    pub(super) fn kept(&self) -> bool {
        self.keeper.boot_id == process::boot_id()
            && Stat::of(self.keeper.pid).is_some_and(|stat| stat.alive() && stat.is(&self.keeper))
    }

    /// Living processes of this launch, the keeper not among them: what descends
    /// from the keeper (which adopts orphans), the program's group, the session, and
    /// whatever descends from those.
    pub(super) fn ours(&self, boot_id: &str, all: &[Stat]) -> Vec<Stat> {
        if self.keeper.boot_id != boot_id {
            return Vec::new();
        }
        let roots: HashSet<u32> = all
            .iter()
            .filter(|stat| self.is_root(stat, all))
            .map(|stat| stat.pid)
            .collect();
        let family = process::with_descendants(&roots, all);
        all.iter()
            .filter(|stat| family.contains(&stat.pid))
            .filter(|stat| stat.alive() && !stat.is(&self.keeper))
            .cloned()
            .collect()
    }

    fn is_root(&self, stat: &Stat, all: &[Stat]) -> bool {
        if stat.is(&self.keeper) || self.leader.as_ref().is_some_and(|leader| stat.is(leader)) {
            return true;
        }
        if stat.start_ticks < self.keeper.start_ticks {
            return false;
        }
        // The number of a session or group is not given away while it has members.
        // If another process has it now, ours are all gone, and this is a stranger.
        let taken_over = |identity: &ProcessIdentity| {
            all.iter()
                .any(|other| other.pid == identity.pid && !other.is(identity))
        };
        let in_session = stat.session == self.keeper.pid && !taken_over(&self.keeper);
        let in_group = self.leader.as_ref().is_some_and(|leader| {
            stat.pgid == leader.pid && stat.session == self.keeper.pid && !taken_over(leader)
        });
        in_session || in_group
    }
}

impl Exit {
    /// How the program of a folder ended, if it has.
    pub(super) fn read(folder: &Folder) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.path().join(EXIT)).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32, pgid: u32, session: u32, start_ticks: u64) -> Stat {
        Stat {
            pid,
            state: 'S',
            parent,
            pgid,
            session,
            start_ticks,
        }
    }

    fn record() -> Record {
        Record {
            keeper: stat(10, 1, 10, 10, 100).identity("boot"),
            leader: Some(stat(11, 10, 11, 10, 101).identity("boot")),
        }
    }

    fn pids(found: &[Stat]) -> Vec<u32> {
        found.iter().map(|stat| stat.pid).collect()
    }

    #[test]
    fn children_that_left_group_and_session_still_belong_to_the_launch() {
        let all = [
            stat(1, 0, 1, 1, 0),
            stat(10, 1, 10, 10, 100),
            stat(11, 10, 11, 10, 101),
            stat(12, 11, 11, 10, 102),
            // Left the group, and with its parent's death was adopted by the keeper.
            stat(13, 10, 13, 13, 103),
            stat(14, 13, 13, 13, 104),
            stat(20, 1, 20, 20, 50),
        ];
        assert_eq!(pids(&record().ours("boot", &all)), [11, 12, 13, 14]);
        assert!(record().ours("another boot", &all).is_empty());
    }

    #[test]
    fn without_keeper_and_leader_the_group_is_still_found() {
        let all = [stat(12, 1, 11, 10, 102), stat(30, 1, 30, 30, 200)];
        assert_eq!(pids(&record().ours("boot", &all)), [12]);
    }

    #[test]
    fn numbers_that_passed_to_strangers_are_left_alone() {
        let all = [
            // Another session got the keeper's number, another group the leader's.
            stat(10, 1, 10, 10, 900),
            stat(11, 10, 11, 10, 901),
            stat(12, 11, 11, 10, 902),
        ];
        assert!(record().ours("boot", &all).is_empty());
    }
}
