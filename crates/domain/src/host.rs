//! Hosts: machines that engines run on, how they are reached, and what is on them.

use serde::{Deserialize, Serialize};

use crate::{engine::EngineKind, timestamp::Timestamp};

/// How a host is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reach")]
pub enum Reach {
    /// The machine that this program runs on.
    Local,
    /// Through the system's OpenSSH client, with the keys, jump hosts and known
    /// hosts of whoever runs this program.
    Ssh {
        /// As `ssh` takes it: an alias of `~/.ssh/config`, or `user@name`.
        destination: String,
    },
}

/// Why a destination cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// Nothing was typed.
    #[error(
        "No SSH destination was given. Type what you would type after `ssh`, such as gpu1 or root@gpu1."
    )]
    Empty,
    /// It would be read as an option.
    #[error(
        "`{0}` begins with a dash, which ssh would read as an option. Type a host's name; options belong into ~/.ssh/config."
    )]
    Dash(String),
    /// More than a destination.
    #[error(
        "`{0}` holds a blank or a control character. Type the destination alone; ports, keys and jump hosts belong into ~/.ssh/config under an alias."
    )]
    Blank(String),
    /// Beyond what is kept.
    #[error(
        "The destination is longer than {MAX_DESTINATION} characters. Give it an alias in ~/.ssh/config."
    )]
    Long,
}

/// Longest destination, in characters.
pub const MAX_DESTINATION: usize = 255;

impl Reach {
    /// A host behind SSH.
    ///
    /// # Errors
    /// [`ReachError`] when `ssh` could not take it as one destination.
    pub fn ssh(destination: &str) -> Result<Self, ReachError> {
        let destination = destination.trim();
        if destination.is_empty() {
            return Err(ReachError::Empty);
        }
        if destination.chars().count() > MAX_DESTINATION {
            return Err(ReachError::Long);
        }
        if destination.starts_with('-') {
            return Err(ReachError::Dash(destination.to_owned()));
        }
        if destination
            .chars()
            .any(|c| c.is_whitespace() || c.is_control())
        {
            return Err(ReachError::Blank(destination.escape_debug().to_string()));
        }
        Ok(Self::Ssh {
            destination: destination.to_owned(),
        })
    }

    /// For labels: `this machine`, or the destination.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Local => "this machine",
            Self::Ssh { destination } => destination,
        }
    }
}

/// A process that can be told from any later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// `/proc/sys/kernel/random/boot_id`: another one after each boot.
    pub boot_id: String,
    /// Process number.
    pub pid: u32,
    /// When it began, in clock ticks since the boot (`/proc/PID/stat`, field 22).
    pub start_ticks: u64,
    /// Its process group.
    pub pgid: u32,
}

/// A graphics processor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Number on its host, from 0.
    pub index: u32,
    /// Its own identity.
    pub uuid: String,
    /// Model.
    pub name: String,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Memory in use in MiB.
    pub used_mib: u64,
    /// Clocks now in MHz: streaming multiprocessors, memory.
    pub clocks_mhz: Option<(u32, u32)>,
    /// Power limit in W.
    pub power_limit_w: Option<u32>,
    /// Compute mode, persistence mode and the like: label and value.
    pub details: Vec<(String, String)>,
}

/// A process that holds GPU memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// The GPU's own identity.
    pub gpu_uuid: String,
    /// Process number.
    pub pid: u32,
    /// Program, as the driver names it.
    pub name: String,
    /// Whose it is, where readable.
    pub user: Option<String>,
    /// Memory it holds, in MiB.
    pub used_mib: u64,
}

/// A file system that models or logs may lie on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Where it is mounted.
    pub mount: String,
    /// Size in bytes.
    pub total: u64,
    /// Free for this user, in bytes.
    pub free: u64,
}

/// A file that sets NCCL variables without anybody seeing it in a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NcclConf {
    /// Which file.
    pub path: String,
    /// Name and value of each line.
    pub variables: Vec<(String, String)>,
}

/// What is on a host. What could not be read is none or empty, with a note.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Inventory {
    /// When it was taken, by the host's clock.
    pub at: Timestamp,
    /// Host name.
    pub hostname: String,
    /// User that commands run as.
    pub user: String,
    /// Identity of the present boot.
    pub boot_id: String,
    /// Operating system, such as `Debian GNU/Linux 12`.
    pub os: String,
    /// Kernel.
    pub kernel: String,
    /// Architecture, such as `x86_64`.
    pub arch: String,
    /// Processor model.
    pub cpu_model: String,
    /// Logical processors.
    pub cpus: u32,
    /// Frequency governors in use; more than one is worth a note.
    pub governors: Vec<String>,
    /// Memory in bytes.
    pub memory_total: u64,
    /// Memory that could be had, in bytes.
    pub memory_available: u64,
    /// Size and free space of `/dev/shm`, which NCCL uses.
    pub shm: Option<Disk>,
    /// File systems.
    pub disks: Vec<Disk>,
    /// Graphics processors; empty on a host without.
    pub gpus: Vec<Gpu>,
    /// Who holds GPU memory now.
    pub gpu_processes: Vec<GpuProcess>,
    /// NVIDIA's driver.
    pub driver: Option<String>,
    /// CUDA version that the driver supports.
    pub cuda: Option<String>,
    /// NCCL, where a library tells its version.
    pub nccl: Option<String>,
    /// `nvidia-smi topo -m`, word for word.
    pub topology: Option<String>,
    /// Files that set NCCL variables, and variables of the login environment
    /// (under the path `login environment`).
    pub nccl_conf: Vec<NcclConf>,
    /// Kernel settings that matter to GPU traffic (IOMMU, ACS, NUMA balancing …):
    /// label and value.
    pub settings: Vec<(String, String)>,
    /// What could not be read, and why.
    pub notes: Vec<String>,
}

impl Inventory {
    /// What figures of this host are told apart by: `8 × NVIDIA RTX PRO 6000`, or
    /// `no GPU`. `gpus` are the numbers of those that count; none means all.
    #[must_use]
    pub fn hardware(&self, gpus: Option<&[u32]>) -> String {
        let mut models: Vec<(&str, u32)> = Vec::new();
        let counted = |gpu: &&Gpu| gpus.is_none_or(|numbers| numbers.contains(&gpu.index));
        for gpu in self.gpus.iter().filter(counted) {
            match models.iter_mut().find(|(name, _)| *name == gpu.name) {
                Some((_, count)) => *count += 1,
                None => models.push((&gpu.name, 1)),
            }
        }
        if models.is_empty() {
            return "no GPU".to_owned();
        }
        models
            .iter()
            .map(|(name, count)| format!("{count} × {name}"))
            .collect::<Vec<_>>()
            .join(" + ")
    }
}

/// Who started a process and is asked to stop it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kept_by")]
pub enum Keeper {
    /// Nobody: it gets a signal, and is started anew from its command.
    Process,
    /// systemd.
    Unit {
        /// Name, such as `vllm.service`.
        name: String,
        /// A unit of the user's own manager rather than of the machine's.
        user: bool,
    },
    /// A container runtime.
    Container {
        /// `docker` or `podman`.
        runtime: String,
        /// Identity.
        id: String,
        /// Name.
        name: String,
    },
}

/// A process as it was started. Variables pass an allow-list on the host, and
/// values that look like secrets are masked there: they never leave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessFacts {
    /// Which.
    pub identity: ProcessIdentity,
    /// Whose it is.
    pub user: String,
    /// Command line. Bytes that are no UTF-8 are replaced.
    pub command: Vec<String>,
    /// Working directory, where readable.
    pub directory: Option<String>,
    /// Environment at its start, filtered; none where not readable.
    pub environment: Option<Vec<(String, String)>>,
    /// Names of variables that were left out or masked.
    pub withheld: Vec<String>,
    /// TCP ports that it or a child of it listens on.
    pub ports: Vec<u16>,
    /// GPU memory that it and its children hold, in MiB.
    pub gpu_mib: u64,
    /// Numbers of the GPUs it or its children use.
    pub gpus: Vec<u32>,
    /// Who keeps it.
    pub keeper: Keeper,
    /// Files that its environment, or that of a child of it, names in
    /// `NCCL_CONF_FILE`, with what they set.
    #[serde(default)]
    pub nccl_conf: Vec<NcclConf>,
}

/// An engine that was found running and that nobody launched from here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundEngine {
    /// The process.
    pub process: ProcessFacts,
    /// Which engine its command starts.
    pub engine: EngineKind,
    /// The port that its command names or that it listens on.
    pub port: Option<u16>,
    /// The model that its command names.
    pub model: Option<String>,
}

/// A GPU at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuSample {
    /// Number on its host.
    pub index: u32,
    /// Clock of the streaming multiprocessors in MHz.
    pub sm_mhz: Option<u32>,
    /// Memory clock in MHz.
    pub memory_mhz: Option<u32>,
    /// Power in W.
    pub power_w: Option<f64>,
    /// Temperature in °C.
    pub temperature_c: Option<u32>,
    /// Use of the processor in percent.
    pub utilisation: Option<u32>,
    /// Memory in use in MiB.
    pub used_mib: Option<u64>,
    /// Why clocks are held down, such as `power cap`; empty if they are not.
    pub throttle: Vec<String>,
}

/// A host at one moment of a measurement.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSample {
    /// When, by the host's clock.
    pub at: Timestamp,
    /// Its GPUs.
    pub gpus: Vec<GpuSample>,
    /// Who holds GPU memory.
    pub processes: Vec<GpuProcess>,
    /// Processes ready to run, averaged over a minute.
    pub load: Option<f64>,
}

/// A second of a run as kept: the host, and the engine's own count of requests
/// beside that of the measuring client.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunSample {
    /// The host.
    pub sample: HostSample,
    /// Requests that the engine says it is working on; none if it does not tell.
    #[serde(default)]
    pub engine_requests: Option<u64>,
    /// Requests of the measuring client in flight, as it last said.
    #[serde(default)]
    pub own_in_flight: Option<u32>,
    /// The stage whose requests that count were under way; none during warm-up and
    /// between stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_counts_the_gpus_that_are_used() {
        let gpu = |index, name: &str| Gpu {
            index,
            name: name.to_owned(),
            ..Gpu::default()
        };
        let mut inventory = Inventory::default();
        assert_eq!(inventory.hardware(None), "no GPU");
        inventory.gpus = vec![gpu(0, "A"), gpu(1, "A"), gpu(2, "B")];
        assert_eq!(inventory.hardware(None), "2 × A + 1 × B");
        assert_eq!(inventory.hardware(Some(&[1])), "1 × A");
    }

    #[test]
    fn a_destination_is_one_word_and_no_option() {
        assert_eq!(
            Reach::ssh(" root@gpu1 "),
            Ok(Reach::Ssh {
                destination: "root@gpu1".to_owned()
            })
        );
        assert_eq!(Reach::ssh(" "), Err(ReachError::Empty));
        assert!(matches!(
            Reach::ssh("-oProxyCommand=x"),
            Err(ReachError::Dash(_))
        ));
        for text in ["gpu1 rm", "gpu1\nrm", "gpu\u{0}1"] {
            assert!(
                matches!(Reach::ssh(text), Err(ReachError::Blank(_))),
                "{text}"
            );
        }
        assert_eq!(Reach::ssh(&"x".repeat(300)), Err(ReachError::Long));
    }
}
