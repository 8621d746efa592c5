//! Simulated GPUs: a folder that stands for those of a host.
//!
//! `gpus.json` in it describes them. A stand-in that has loaded its weights puts
//! `<pid>.json` beside it and takes it away at a clean end; what a killed one
//! leaves behind counts no more, as on a real host. `throttle.json` overrides
//! what a sample says.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The variable that names the folder.
pub const GPUS_VARIABLE: &str = "TOKDYNO_SIM_GPUS";
/// What the name of each GPU must contain.
const MARK: &str = "(simulated)";

/// What `gpus.json` holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Inventory {
    pub(crate) gpus: Vec<Gpu>,
    /// Driver version.
    pub(crate) driver: String,
    /// CUDA version.
    pub(crate) cuda: String,
    /// How the GPUs are connected: a row of `nvidia-smi topo -m` for each, `X` for
    /// itself.
    #[serde(default)]
    pub(crate) topology: Option<Vec<Vec<String>>>,
}

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Gpu {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) memory_mib: u64,
}

/// What a process holds: the content of `<pid>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holding {
    /// On these GPUs …
    pub(crate) uuids: Vec<String>,
    /// … this much memory each.
    pub(crate) used_mib: u64,
    /// The process's name.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Does it work on requests?
    #[serde(default)]
    pub(crate) busy: bool,
    /// Start of the process in clock ticks since the boot, so that another one
    /// with the same id is not taken for it.
    #[serde(default)]
    pub(crate) started: Option<u64>,
}

/// Why the simulated GPUs cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GpuError {
    #[error(
        "The simulated GPUs are not described: {path} cannot be read ({source}). Write the file, or unset {GPUS_VARIABLE}."
    )]
    Read { path: String, source: io::Error },
    #[error(
        "The simulated GPUs are not described: {path} is not understood ({reason}). See docs/simulator.md for its form."
    )]
    Form { path: String, reason: String },
    #[error(
        "What this process holds of the simulated GPUs cannot be written to {path} ({source}). Make the folder writable."
    )]
    Write { path: String, source: io::Error },
    #[error(
        "CUDA_VISIBLE_DEVICES names `{0}`, which is none of the simulated GPUs. Name them by number or by the beginning of their UUID."
    )]
    NoSuchGpu(String),
    #[error(
        "The engine wants {wanted} GPUs and sees {there}. Lower the tensor-parallel size, or let it see more (CUDA_VISIBLE_DEVICES)."
    )]
    TooFew { wanted: u32, there: usize },
}

/// The folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What `gpus.json` says.
    pub(crate) fn inventory(&self) -> Result<Inventory, GpuError> {
        let path = self.0.join("gpus.json");
        let shown = path.display().to_string();
        let text = fs::read(&path).map_err(|source| GpuError::Read {
            path: shown.clone(),
            source,
        })?;
        let form = |reason| GpuError::Form {
            path: shown.clone(),
            reason,
        };
        let inventory: Inventory =
            serde_json::from_slice(&text).map_err(|error| form(error.to_string()))?;
        match inventory.gpus.iter().find(|gpu| !gpu.name.contains(MARK)) {
            Some(gpu) => Err(form(format!(
                "the name `{}` must contain {MARK}, so that nobody takes it for a real GPU",
                gpu.name
            ))),
            None => Ok(inventory),
        }
    }

    /// What living processes hold, by their ids.
    pub(crate) fn holdings(&self) -> BTreeMap<u32, Holding> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let pid: u32 = name.to_str()?.strip_suffix(".json")?.parse().ok()?;
                let holding: Holding =
                    serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()?;
                let started = start_of(pid)?;
                let same = holding.started.is_none_or(|at| at == started);
                same.then_some((pid, holding))
            })
            .collect()
    }

    /// What `throttle.json` overrides; nothing where it is not there.
    pub(crate) fn overrides(&self) -> Map<String, Value> {
        fs::read(self.0.join("throttle.json"))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Takes memory for this process until the guard is dropped.
    pub(crate) fn hold(&self, holding: Holding) -> Result<Held, GpuError> {
        let pid = std::process::id();
        let held = Held {
            path: self.0.join(format!("{pid}.json")),
            holding: Holding {
                started: start_of(pid),
                ..holding
            },
        };
        held.write()?;
        Ok(held)
    }
}

impl Inventory {
    /// MiB in use on a GPU.
    pub(crate) fn used_mib(&self, uuid: &str, holdings: &BTreeMap<u32, Holding>) -> u64 {
        holdings
            .values()
            .filter(|holding| holding.uuids.iter().any(|held| held == uuid))
            .map(|holding| holding.used_mib)
            .sum()
    }

    /// The first `count` GPUs that a process sees, given its
    /// `CUDA_VISIBLE_DEVICES`.
    pub(crate) fn visible(&self, devices: Option<&str>, count: u32) -> Result<Vec<&Gpu>, GpuError> {
        let mut visible: Vec<&Gpu> = Vec::new();
        match devices {
            None => visible.extend(&self.gpus),
            Some(list) => {
                for word in list
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty())
                {
                    let by_number = word.parse::<usize>().ok();
                    let gpu = match by_number {
                        Some(at) => self.gpus.get(at),
                        None => self.gpus.iter().find(|gpu| gpu.uuid.starts_with(word)),
                    };
                    visible.push(gpu.ok_or_else(|| GpuError::NoSuchGpu(word.to_owned()))?);
                }
            }
        }
        let there = visible.len();
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        if there < wanted {
            return Err(GpuError::TooFew {
                wanted: count,
                there,
            });
        }
        visible.truncate(wanted);
        Ok(visible)
    }
}

/// Memory held by this process; given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    path: PathBuf,
    holding: Holding,
}

impl Held {
    /// Notes whether requests are worked on.
    pub(crate) fn set_busy(&mut self, busy: bool) -> Result<(), GpuError> {
        if self.holding.busy == busy {
            return Ok(());
        }
        self.holding.busy = busy;
        self.write()
    }

    /// Whoever reads sees the whole file, the old one or the new one.
    fn write(&self) -> Result<(), GpuError> {
        let part = self.path.with_extension("part");
        let text = serde_json::to_vec(&self.holding).map_err(io::Error::from);
        text.and_then(|text| fs::write(&part, text))
            .and_then(|()| fs::rename(&part, &self.path))
            .map_err(|source| GpuError::Write {
                path: self.path.display().to_string(),
                source,
            })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A file that stays counts no more once the process is gone.
        let _ = fs::remove_file(&self.path);
    }
}

/// When a process started, in clock ticks since the boot; none if there is none,
/// or only what its parent has not yet taken note of.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // pid (name) state …: the name may hold blanks and brackets. The start is the
    // 22nd field.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    match *fields.first()? {
        "Z" | "X" => None,
        _ => fields.get(19)?.parse().ok(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn host(count: usize) -> (tempfile::TempDir, Folder) {
        let folder = tempfile::tempdir().expect("a folder");
        let gpus: Vec<Value> = (0..count)
            .map(|at| {
                serde_json::json!({
                    "uuid": format!("GPU-0000000{at}-aaaa"), "name": "Test GPU (simulated)",
                    "memory_mib": 97_887,
                })
            })
            .collect();
        let text = serde_json::json!({ "gpus": gpus, "driver": "580.95.05", "cuda": "13.0" });
        fs::write(folder.path().join("gpus.json"), text.to_string()).expect("written");
        let gpus = Folder::new(folder.path());
        (folder, gpus)
    }

    pub(crate) fn holding(uuids: &[&str], used_mib: u64) -> Holding {
        Holding {
            uuids: uuids.iter().map(|uuid| (*uuid).to_owned()).collect(),
            used_mib,
            name: Some("python3".to_owned()),
            busy: false,
            started: None,
        }
    }

    #[test]
    fn a_gpu_that_might_be_taken_for_a_real_one_is_refused() {
        let (place, folder) = host(1);
        assert_eq!(folder.inventory().expect("GPUs").driver, "580.95.05");
        let text = fs::read_to_string(place.path().join("gpus.json")).expect("text");
        fs::write(
            place.path().join("gpus.json"),
            text.replace(" (simulated)", ""),
        )
        .expect("ok");
        let error = folder.inventory().expect_err("a refusal").to_string();
        assert!(error.contains("must contain (simulated)"), "{error}");
        fs::write(place.path().join("gpus.json"), "{").expect("ok");
        assert!(matches!(folder.inventory(), Err(GpuError::Form { .. })));
        fs::remove_file(place.path().join("gpus.json")).expect("ok");
        assert!(matches!(folder.inventory(), Err(GpuError::Read { .. })));
    }

    #[test]
    fn memory_is_held_until_the_guard_goes_and_dead_processes_hold_none() {
        let (place, folder) = host(2);
        let inventory = folder.inventory().expect("GPUs");
        let mut held = folder
            .hold(holding(&["GPU-00000001-aaaa"], 500))
            .expect("held");
        held.set_busy(true).expect("written");
        let holdings = folder.holdings();
        assert!(holdings[&std::process::id()].busy);
        assert_eq!(inventory.used_mib("GPU-00000001-aaaa", &holdings), 500);
        assert_eq!(inventory.used_mib("GPU-00000000-aaaa", &holdings), 0);

        let mut child = std::process::Command::new("true").spawn().expect("started");
        let text = serde_json::to_string(&holding(&["GPU-00000000-aaaa"], 7)).expect("JSON");
        fs::write(place.path().join(format!("{}.json", child.id())), &text).expect("ok");
        // Ended and not yet waited for, or waited for: it holds nothing.
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(folder.holdings().len(), 1);
        child.wait().expect("ended");
        // The same id with another start is another process.
        let other = Holding {
            started: Some(1),
            ..holding(&["GPU-00000000-aaaa"], 7)
        };
        let parent = std::os::unix::process::parent_id();
        let path = place.path().join(format!("{parent}.json"));
        fs::write(&path, serde_json::to_string(&other).expect("JSON")).expect("ok");
        assert_eq!(folder.holdings().len(), 1);
        fs::write(&path, text).expect("ok");
        assert_eq!(folder.holdings().len(), 2);
        drop(held);
        assert_eq!(folder.holdings().keys().collect::<Vec<_>>(), [&parent]);
    }

    #[test]
    fn a_process_sees_the_gpus_it_may_see() {
        let (_place, folder) = host(4);
        let inventory = folder.inventory().expect("GPUs");
        let seen = |devices, count| -> Result<Vec<usize>, String> {
            let gpus = inventory
                .visible(devices, count)
                .map_err(|error| error.to_string())?;
            Ok(gpus
                .iter()
                .filter_map(|gpu| inventory.gpus.iter().position(|other| other == *gpu))
                .collect())
        };
        assert_eq!(seen(None, 2), Ok(vec![0, 1]));
        assert_eq!(seen(Some("3,1"), 2), Ok(vec![3, 1]));
        assert_eq!(seen(Some("GPU-00000002"), 1), Ok(vec![2]));
        assert!(
            seen(Some("9"), 1)
                .expect_err("a refusal")
                .contains("names `9`")
        );
        assert!(seen(Some(""), 1).expect_err("a refusal").contains("sees 0"));
        assert!(
            seen(None, 8)
                .expect_err("a refusal")
                .contains("wants 8 GPUs and sees 4")
        );
    }
}
