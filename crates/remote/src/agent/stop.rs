//! Ending a launch: asked first, killed then, looked at last.

use std::{
    collections::HashMap,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal as System;
use tokdyno_domain::host::ProcessIdentity;

use super::{
    folder::Folder,
    gpus,
    launch::same,
    process::{self, Stat},
    record::Record,
};
use crate::wire::{Failure, FailureWord, Signal, Stopped};

/// How long the rest may take once the program itself has ended.
const REST_GRACE: Duration = Duration::from_secs(5);
/// How long killed processes may take to vanish.
const KILL_TIME: Duration = Duration::from_secs(10);
/// How long the driver may take to give memory back.
const DRIVER_TIME: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// Ends the launch of `name`. The order is carried out even if whoever gave it is
/// gone meanwhile.
pub(super) fn stop(
    name: &str,
    identity: &ProcessIdentity,
    grace: Duration,
) -> Result<Stopped, Failure> {
    let boot_id = process::boot_id();
    if identity.boot_id != boot_id {
        return Ok(Stopped::default());
    }
    let folder = Folder::named(name)?;
    let Some(record) = Record::read(&folder) else {
        let lives = Stat::of(identity.pid).is_some_and(|stat| stat.alive() && stat.is(identity));
        return if lives {
            Err(Failure::new(
                FailureWord::NoSuchFolder,
                format!(
                    "Process {} lives, but nothing in {} says that it was launched from here, so it is left alone.",
                    identity.pid,
                    folder.path().display()
                ),
            ))
        } else {
            Ok(Stopped::default())
        };
    };
    if !record
        .leader
        .as_ref()
        .is_none_or(|leader| same(leader, identity))
    {
        return Err(Failure::new(
            FailureWord::NoSuchProcess,
            format!(
                "The launch in {} is another one than was meant, so it is left alone. Look at the launches again.",
                folder.path().display()
            ),
        ));
    }
    let mut stopping = Stopping {
        record,
        boot_id,
        seen: HashMap::new(),
    };
    let forced = stopping.end(identity, grace);
    let left = stopping.living();
    let gpu_held = stopping.gpu_held();
    Ok(Stopped {
        forced,
        left,
        gpu_held,
    })
}

struct Stopping {
    record: Record,
    boot_id: String,
    /// Every process of the launch that was ever met.
    seen: HashMap<u32, ProcessIdentity>,
}

impl Stopping {
    fn living(&mut self) -> Vec<ProcessIdentity> {
        let all = process::all();
        let mut living: Vec<ProcessIdentity> = self
            .record
            .ours(&self.boot_id, &all)
            .iter()
            .map(|stat| stat.identity(&self.boot_id))
            .collect();
        // One that has left the family since it was met (its parents died before a
        // keeper could adopt it) still is of the launch.
        for known in self.seen.values() {
            let still = all.iter().any(|stat| stat.alive() && stat.is(known));
            if still && !living.iter().any(|other| other.pid == known.pid) {
                living.push(known.clone());
            }
        }
        for identity in &living {
            self.seen.insert(identity.pid, identity.clone());
        }
        living
    }

    /// Returns whether it took a kill.
    fn end(&mut self, leader: &ProcessIdentity, grace: Duration) -> bool {
        let mut until = Instant::now() + grace;
        let living = self.living();
        let leader_lives = |living: &[ProcessIdentity]| living.iter().any(|one| same(one, leader));
        let mut waits_for_leader = leader_lives(&living);
        if waits_for_leader {
            process::signal(leader, System::TERM);
        } else {
            for identity in &living {
                process::signal(identity, System::TERM);
            }
            until = until.min(Instant::now() + REST_GRACE);
        }
        loop {
            let living = self.living();
            if living.is_empty() {
                return false;
            }
            if waits_for_leader && !leader_lives(&living) {
                waits_for_leader = false;
                until = until.min(Instant::now() + REST_GRACE);
            }
            if Instant::now() >= until {
                break;
            }
            thread::sleep(STEP);
        }
        let until = Instant::now() + KILL_TIME;
        loop {
            let living = self.living();
            if living.is_empty() || Instant::now() >= until {
                return true;
            }
            // One by one and again: a process may have forked between two looks.
            for identity in &living {
                process::signal(identity, System::KILL);
            }
            thread::sleep(STEP);
        }
    }

    fn gpu_held(&self) -> bool {
        let until = Instant::now() + DRIVER_TIME;
        loop {
            let held = gpus::processes()
                .iter()
                .any(|process| self.seen.contains_key(&process.pid));
            if !held || Instant::now() >= until {
                return held;
            }
            thread::sleep(Duration::from_millis(250));
        }
    }
}

/// Signals one process, or its group, if it is still the one that is meant.
pub(super) fn signal(identity: &ProcessIdentity, signal: Signal, group: bool) -> bool {
    if identity.boot_id != process::boot_id() {
        return false;
    }
    let signal = match signal {
        Signal::Term => System::TERM,
        Signal::Kill => System::KILL,
        Signal::Int => System::INT,
    };
    if !group {
        return process::signal(identity, signal);
    }
    let Some(leader) = Stat::of(identity.pid).filter(|stat| stat.alive() && stat.is(identity))
    else {
        return false;
    };
    // Each by its own identity: a group's number alone could pass to strangers.
    let own = Stat::of(std::process::id()).map(|stat| stat.pgid);
    if own == Some(leader.pgid) {
        return process::signal(identity, signal);
    }
    let mut sent = false;
    for stat in process::all()
        .iter()
        .filter(|stat| stat.pgid == leader.pgid)
    {
        sent |= process::signal(&stat.identity(&identity.boot_id), signal);
    }
    sent
}
