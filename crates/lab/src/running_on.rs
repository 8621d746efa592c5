//! What runs on a host now: engines that nobody launched from here, and what launches
//! of this laboratory left behind.

use sqlx::types::Json;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    host::{Keeper, ProcessFacts, ProcessIdentity},
    ids::HostId,
    views::hosts::{Leftover, RunningNow},
};

use crate::{Lab, LabError, launch_rows};

impl Lab {
    /// Engines on a host that nobody launched from here, and processes of launches
    /// of this laboratory that are over.
    ///
    /// # Errors
    /// [`LabError::Host`] if it cannot be reached, [`LabError::NoSuchHost`],
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn running_on(&self, actor: &Actor, host: HostId) -> Result<RunningNow, LabError> {
        authorise(actor, Capability::Launch)?;
        let remote = self.remote_host(actor, host).await?;
        let prefix = launch_rows::folder_prefix(self.0.id);
        let (engines, leftovers) = tokio::try_join!(remote.engines(), remote.leftovers(&prefix))?;
        // Read after the host was, so that a launch that began meanwhile is known.
        let living = self.living_on(host).await?;
        let leftovers: Vec<Leftover> = leftovers
            .into_iter()
            .filter(|left| !living.iter().any(|one| one.folder == left.folder))
            .map(|left| Leftover {
                launch: launch_rows::launch_of(self.0.id, &left.folder),
                folder: left.folder,
                identity: left.identity,
                command: left.command,
                gpu_mib: left.gpu_mib,
            })
            .collect();
        let found = engines
            .into_iter()
            .filter(|facts| !living.iter().any(|one| one.is(facts)))
            .filter(|facts| {
                !leftovers
                    .iter()
                    .any(|left| same_group(&left.identity, &facts.identity))
            })
            .filter_map(tokdyno_engines::recognise)
            .collect();
        Ok(RunningNow { found, leftovers })
    }

    async fn living_on(&self, host: HostId) -> Result<Vec<Living>, LabError> {
        let rows = sqlx::query!(
            r#"SELECT folder, identity AS "identity: Json<ProcessIdentity>",
                   keeper AS "keeper: Json<Keeper>"
               FROM launches WHERE host_id = $1
                 AND state IN ('starting', 'loading', 'ready', 'stopping')"#,
            host.0,
        )
        .fetch_all(&self.0.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| Living {
                folder: row.folder,
                identity: row.identity.map(|identity| identity.0),
                keeper: row.keeper.0,
            })
            .collect())
    }
}

/// A launch that lives, as far as its processes are told from others.
struct Living {
    folder: String,
    identity: Option<ProcessIdentity>,
    keeper: Keeper,
}

impl Living {
    fn is(&self, facts: &ProcessFacts) -> bool {
        let same_process = self
            .identity
            .as_ref()
            .is_some_and(|identity| same_group(identity, &facts.identity));
        let same_keeper = match (&self.keeper, &facts.keeper) {
            (Keeper::Unit { name: a, .. }, Keeper::Unit { name: b, .. }) => a == b,
            (
                Keeper::Container {
                    id: a, name: ours, ..
                },
                Keeper::Container {
                    id: b, name: found, ..
                },
            ) => (!a.is_empty() && a == b) || (!ours.is_empty() && ours == found),
            _ => false,
        };
        same_process || same_keeper
    }
}

/// Are these of one process group, within one boot?
fn same_group(one: &ProcessIdentity, other: &ProcessIdentity) -> bool {
    one.boot_id == other.boot_id && one.pgid == other.pgid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_launch_is_known_by_its_group_its_unit_or_its_container() {
        let identity = |boot_id: &str, pid, pgid| ProcessIdentity {
            boot_id: boot_id.to_owned(),
            pid,
            start_ticks: 5,
            pgid,
        };
        let facts = |identity, keeper| ProcessFacts {
            identity,
            user: "root".to_owned(),
            command: Vec::new(),
            directory: None,
            environment: None,
            withheld: Vec::new(),
            ports: Vec::new(),
            gpu_mib: 0,
            gpus: Vec::new(),
            keeper,
            nccl_conf: Vec::new(),
        };
        let unit = |name: &str| Keeper::Unit {
            name: name.to_owned(),
            user: false,
        };
        let container = |id: &str, name: &str| Keeper::Container {
            runtime: "docker".to_owned(),
            id: id.to_owned(),
            name: name.to_owned(),
        };
        let living = |identity, keeper| Living {
            folder: String::new(),
            identity,
            keeper,
        };
        let ours = living(Some(identity("a", 7, 7)), Keeper::Process);
        assert!(ours.is(&facts(identity("a", 9, 7), Keeper::Process)));
        assert!(!ours.is(&facts(identity("b", 7, 7), Keeper::Process)));
        assert!(!ours.is(&facts(identity("a", 9, 9), Keeper::Process)));
        let ours = living(None, unit("vllm.service"));
        assert!(ours.is(&facts(identity("a", 9, 9), unit("vllm.service"))));
        assert!(!ours.is(&facts(identity("a", 9, 9), unit("other.service"))));
        // Found containers may have no name, and launched ones no identity yet.
        let ours = living(None, container("", "tokdyno-1"));
        assert!(ours.is(&facts(identity("a", 9, 9), container("abc", "tokdyno-1"))));
        assert!(!ours.is(&facts(identity("a", 9, 9), container("", ""))));
    }
}
