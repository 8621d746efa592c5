//! Before a launch: is the host there, and is everything free that it needs?

use std::collections::HashMap;

use tokdyno_domain::{
    host::{Disk, Gpu, GpuProcess, Inventory},
    ids::LaunchId,
    launch::{FailureKind, LaunchFailure, LaunchOrigin, LaunchState},
};
use tokdyno_engines::{DrafterCheck, check_drafter};
use tokdyno_remote::PortUse;
use tokio::time::Instant;

use super::{
    aside::{self, Living},
    drive::{Drive, Halt, Step},
    row::Change,
    trouble::failure_of,
};
use crate::{LabError, launch_rows, steps::Doing, worker::patience::persist};

/// Less free space than this is none, in bytes.
const LEAST_FREE: u64 = 512 << 20;
/// GPU memory that others may hold all the same, in MiB: desktops and monitors.
const OTHERS_MIB: u64 = 1024;
/// Longest configuration of a model that is read, in bytes.
const CONFIG: u64 = 1 << 20;

impl Drive {
    /// Checks the host, and puts aside what is to be restored later. May be done
    /// again from the beginning.
    pub(super) async fn prepare(&mut self) -> Step {
        // Taken over after the process was started, but before that was stored.
        if self.find_started().await? {
            return Ok(());
        }
        if self.launch.origin != LaunchOrigin::Launched {
            return self.prepare_restoring().await;
        }
        self.step(Doing::CheckHost).await?;
        let refused = |error| Halt::Failed(failure_of(&error));
        let checked = self
            .patiently(|host| async move { host.check().await })
            .await?;
        checked.map_err(refused)?;
        let inventory = self
            .patiently(|host| async move { host.inventory().await })
            .await?;
        let inventory = inventory.map_err(refused)?;
        // What can be known before is checked before production is touched.
        check_space(&inventory)?;
        self.check_drafter().await?;
        self.put_aside().await?;
        self.step(Doing::CheckHost).await?;
        self.check_port().await?;
        self.check_gpus().await
    }

    async fn check_drafter(&mut self) -> Step {
        let spec = self.launch.spec.clone();
        let Some(drafter) = spec.parameters.drafter.as_deref() else {
            return Ok(());
        };
        let Some(config) = self.config_of(drafter).await? else {
            return Ok(());
        };
        let target = self.config_of(&spec.parameters.model).await?;
        let version = self.last_version().await?;
        let checked = check_drafter(&config, target.as_deref(), spec.engine, version.as_deref());
        match checked {
            None => Ok(()),
            Some(DrafterCheck::Failure(failure)) => Err(Halt::Failed(failure)),
            Some(DrafterCheck::Caution(caution)) => self.change(Change::remark(caution)).await,
        }
    }

    /// The `config.json` of a model that lies on the host; none of one on a hub.
    async fn config_of(&mut self, model: &str) -> Step<Option<String>> {
        if !model.starts_with('/') {
            return Ok(None);
        }
        let path = &format!("{}/config.json", model.trim_end_matches('/'));
        // One that is not there or may not be read is the engine's to complain of.
        let read = self.patiently(|host| async move { host.read_path(path, CONFIG).await });
        let bytes = read.await?.unwrap_or_default();
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The version that this profile's last launch on this host told.
    async fn last_version(&self) -> Step<Option<String>> {
        let asked = async {
            let version = sqlx::query_scalar!(
                r#"SELECT l.engine_version AS "version!" FROM launches l
                   JOIN profile_revisions r ON r.id = l.revision_id
                   WHERE l.host_id = $1 AND l.engine_version IS NOT NULL
                     AND r.profile_id = (SELECT profile_id FROM profile_revisions WHERE id = $2)
                   ORDER BY l.id DESC LIMIT 1"#,
                self.launch.host.0,
                self.launch.revision.0,
            )
            .fetch_optional(&self.lab.0.pool)
            .await?;
            Ok::<_, LabError>(version)
        };
        // Not knowing it makes the check vaguer, and no more.
        Ok(asked.await.unwrap_or_default())
    }

    /// Stops what is restored when this launch is over, and waits until it is over.
    async fn put_aside(&mut self) -> Step {
        let Some(named) = self.launch.plan.restore else {
            return Ok(());
        };
        loop {
            let asked = persist!(&self.signals.stop, self.ask_to_give_way(named))?;
            let Some(production) = asked else {
                return match persist!(&self.signals.stop, self.not_put_aside(named))? {
                    None => Ok(()),
                    Some(failure) => Err(Halt::Failed(failure)),
                };
            };
            let step = format!("{} {}", Doing::StopProduction.words(), production.profile);
            self.change(Change::step(step)).await?;
            let mut live = self.lab.hear_launches_inside();
            let gone = persist!(&self.signals.stop, self.is_over(production.launch))?;
            if !gone {
                // Whatever is heard is a reason to look again.
                let _ = tokio::time::timeout(self.patience.serving, live.recv()).await;
            }
        }
    }

    /// Does what this launch had asked to give way go on running all the same?
    async fn not_put_aside(&self, named: LaunchId) -> Result<Option<LaunchFailure>, LabError> {
        // Only what was asked by this launch: that is noted as owed.
        if !self.owes_restoring().await? {
            return Ok(None);
        }
        let mut connection = self.lab.0.pool.acquire().await?;
        let left = aside::not_stopped(&mut connection, named).await?;
        Ok(left.map(|(launch, detail)| {
            LaunchFailure::new(
                FailureKind::NotStopped,
                format!("Launch {launch} was to give way to this one. {detail}"),
            )
        }))
    }

    async fn is_over(&self, launch: LaunchId) -> Result<bool, LabError> {
        let state = sqlx::query_scalar!("SELECT state FROM launches WHERE id = $1", launch.0)
            .fetch_one(&self.lab.0.pool)
            .await?;
        Ok(launch_rows::state_of(&state)?.is_over())
    }

    /// Asks the living incarnation of an adopted launch to stop, and notes in the same
    /// moment that it is to be restored. None if there is none.
    async fn ask_to_give_way(&self, named: LaunchId) -> Result<Option<Living>, LabError> {
        let mut tx = self.lab.0.pool.begin().await?;
        super::lease::hold(&mut tx, &self.lease).await?;
        let Some(production) = aside::living(&mut tx, named)
            .await?
            .filter(|living| living.state != LaunchState::Queued)
        else {
            return Ok(None);
        };
        let due = Change {
            restore_due: Some(true),
            ..Change::default()
        };
        super::row::change(&mut tx, &self.lease, &due).await?;
        let remark = format!(
            "Stopped for launch {}, which restores it afterwards.",
            self.launch.id
        );
        aside::ask_to_end(&mut tx, &self.launch.actor, production.launch, &remark).await?;
        tx.commit().await?;
        Ok(Some(production))
    }

    pub(super) async fn check_port(&mut self) -> Step {
        let port = self.launch.port;
        let asked = self.patiently(|host| async move { host.port_free(port).await });
        match asked.await? {
            Ok(PortUse::Free) => Ok(()),
            Ok(PortUse::Held { pid, command }) => Err(Halt::Failed(LaunchFailure::new(
                FailureKind::PortTaken,
                who_holds(port, pid, command.as_deref()),
            ))),
            Err(error) => Err(Halt::Failed(failure_of(&error))),
        }
    }

    pub(super) async fn check_gpus(&mut self) -> Step {
        // A driver takes a while to give back what a dead process held.
        let patience = if self.is_production() {
            self.patience.memory_restoring
        } else {
            self.patience.memory
        };
        let patient_until = Instant::now() + patience;
        loop {
            let asked = self.patiently(|host| async move { host.inventory().await });
            let inventory = asked
                .await?
                .map_err(|error| Halt::Failed(failure_of(&error)))?;
            self.keep_inventory(&inventory).await;
            let Some(held) = holders(&inventory, self.launch.gpus.as_deref()) else {
                return Ok(());
            };
            if Instant::now() >= patient_until {
                return Err(Halt::Failed(LaunchFailure::new(FailureKind::GpuBusy, held)));
            }
            tokio::time::sleep(self.patience.loading).await;
        }
    }

    /// The newest inventory is kept for the host's page and for what runs carry.
    async fn keep_inventory(&self, inventory: &Inventory) {
        let Ok(json) = serde_json::to_value(inventory) else {
            return;
        };
        let stored = sqlx::query!(
            "UPDATE hosts SET inventory = $2, checked_at = now(), check_error = NULL WHERE id = $1",
            self.launch.host.0,
            crate::clean::json(json),
        )
        .execute(&self.lab.0.pool)
        .await;
        if let Err(error) = stored {
            tracing::debug!(host = %self.launch.host, %error, "an inventory was not stored");
        }
    }
}

fn who_holds(port: u16, pid: Option<u32>, command: Option<&str>) -> String {
    match (pid, command) {
        (Some(pid), Some(command)) => format!("Process {pid} (`{command}`) has port {port}."),
        (Some(pid), None) => format!("Process {pid} has port {port}."),
        (None, _) => format!("Port {port} is held by a process of another user."),
    }
}

/// Is there space for logs, and for what NCCL shares?
fn check_space(inventory: &Inventory) -> Step {
    let full = |disk: &&Disk| disk.free < LEAST_FREE && disk.total >= LEAST_FREE;
    let state = state_disk(inventory).filter(full);
    let shared = inventory.shm.as_ref().filter(full);
    match state.or(shared) {
        None => Ok(()),
        Some(disk) => Err(Halt::Failed(LaunchFailure::new(
            FailureKind::DiskFull,
            format!(
                "On {} only {} MiB are free; at least {} are needed.",
                disk.mount,
                disk.free >> 20,
                LEAST_FREE >> 20
            ),
        ))),
    }
}

/// The file system that the state folder lies on, as far as the inventory tells: the
/// one with the longest mount point that leads to the home of the user.
fn state_disk(inventory: &Inventory) -> Option<&Disk> {
    let home = if inventory.user == "root" {
        "/root".to_owned()
    } else {
        format!("/home/{}", inventory.user)
    };
    inventory
        .disks
        .iter()
        .filter(|disk| {
            let mount = disk.mount.trim_end_matches('/');
            home.strip_prefix(mount)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
        .max_by_key(|disk| disk.mount.len())
}

/// Who holds memory of these GPUs, as a sentence; none if nobody holds more than a
/// desktop does.
fn holders(inventory: &Inventory, gpus: Option<&[u32]>) -> Option<String> {
    let wanted: HashMap<&str, &Gpu> = inventory
        .gpus
        .iter()
        .filter(|gpu| gpus.is_none_or(|gpus| gpus.contains(&gpu.index)))
        .map(|gpu| (gpu.uuid.as_str(), gpu))
        .collect();
    let holders: Vec<(&GpuProcess, &Gpu)> = inventory
        .gpu_processes
        .iter()
        .filter_map(|process| Some((process, *wanted.get(process.gpu_uuid.as_str())?)))
        .collect();
    let held: u64 = holders.iter().map(|(process, _)| process.used_mib).sum();
    if held < OTHERS_MIB {
        return None;
    }
    let (most, gpu) = holders.iter().max_by_key(|(process, _)| process.used_mib)?;
    let user = most
        .user
        .as_deref()
        .map(|user| format!(", user {user}"))
        .unwrap_or_default();
    Some(format!(
        "Process {} ({}{user}) holds {} MiB of GPU {}; {held} MiB are held in all.",
        most.pid, most.name, most.used_mib, gpu.index
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Inventory {
        let gpu = |index: u32| Gpu {
            index,
            uuid: format!("GPU-{index}"),
            ..Gpu::default()
        };
        Inventory {
            user: "ann".to_owned(),
            gpus: vec![gpu(0), gpu(1)],
            gpu_processes: vec![GpuProcess {
                gpu_uuid: "GPU-1".to_owned(),
                pid: 77,
                name: "python3".to_owned(),
                user: Some("bob".to_owned()),
                used_mib: 90_000,
            }],
            ..Inventory::default()
        }
    }

    #[test]
    fn the_holder_of_gpu_memory_is_named_if_it_is_in_the_way() {
        let said = holders(&host(), None).expect("a holder");
        assert!(
            said.contains("Process 77 (python3, user bob) holds 90000 MiB of GPU 1"),
            "{said}"
        );
        assert!(holders(&host(), Some(&[1])).is_some());
        assert_eq!(holders(&host(), Some(&[0])), None);
        let mut desktop = host();
        desktop.gpu_processes[0].used_mib = 300;
        assert_eq!(holders(&desktop, None), None);
    }

    #[test]
    fn a_full_disk_is_named_and_an_empty_folder_of_another_is_not() {
        let disk = |mount: &str, free: u64| Disk {
            mount: mount.to_owned(),
            total: 100 << 30,
            free,
        };
        let mut host = host();
        host.disks = vec![disk("/", 1), disk("/home", 10 << 30), disk("/data", 0)];
        assert!(check_space(&host).is_ok());
        host.disks[1].free = 100 << 20;
        match check_space(&host) {
            Err(Halt::Failed(failure)) => {
                assert_eq!(failure.kind, FailureKind::DiskFull);
                assert!(
                    failure.detail.contains("On /home only 100 MiB"),
                    "{failure}"
                );
            }
            other => panic!("{other:?}"),
        }
        host.disks.clear();
        host.shm = Some(disk("/dev/shm", 0));
        assert!(check_space(&host).is_err());
    }

    #[test]
    fn the_holder_of_a_port_is_named_as_far_as_it_can_be_read() {
        assert!(who_holds(1, Some(7), Some("nginx")).contains("Process 7 (`nginx`)"));
        assert!(who_holds(1, None, None).contains("another user"));
    }
}
