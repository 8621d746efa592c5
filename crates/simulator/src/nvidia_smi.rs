//! `simulate nvidia-smi …`: what the real tool would say of the simulated GPUs.
//!
//! The queries that dashboards make are answered in the tool's own forms, with its
//! exit codes: 2 for words that it does not know, 6 for no GPU, 9 for no driver.

mod fields;
mod options;
mod tables;

use std::{io::Write as _, process::ExitCode, thread, time::Instant};

use time::OffsetDateTime;

use crate::{
    gpu::{Folder, GPUS_VARIABLE, Gpu, GpuError, Holding, Inventory},
    nvidia_smi::options::{Asked, Options},
};

/// What the host's GPUs are like at this moment.
struct Scene {
    inventory: Inventory,
    holdings: std::collections::BTreeMap<u32, Holding>,
    overrides: serde_json::Map<String, serde_json::Value>,
    now: OffsetDateTime,
}

/// Why there is no answer. The messages go to standard output, as the tool's do.
#[derive(Debug, thiserror::Error)]
enum SmiError {
    #[error(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. (simulated: {GPUS_VARIABLE} names no folder with GPUs.)"
    )]
    NoDriver,
    #[error(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. (simulated: {0})"
    )]
    Gpus(#[from] GpuError),
    #[error("No devices were found")]
    NoDevices,
    #[error("Field \"{0}\" is not a valid field to query.\n")]
    NoSuchField(String),
    #[error("Invalid combination of input arguments. (simulated: {0})")]
    Usage(String),
}

impl SmiError {
    const fn code(&self) -> u8 {
        match self {
            Self::NoDriver | Self::Gpus(_) => 9,
            Self::NoDevices => 6,
            Self::NoSuchField(_) | Self::Usage(_) => 2,
        }
    }
}

impl Scene {
    fn of(folder: &Folder) -> Result<Self, SmiError> {
        Ok(Self {
            inventory: folder.inventory()?,
            holdings: folder.holdings(),
            overrides: folder.overrides(),
            now: OffsetDateTime::now_utc(),
        })
    }

    /// The GPUs asked for, with their numbers.
    fn chosen(&self, ids: &[String]) -> Result<Vec<(usize, &Gpu)>, SmiError> {
        let all = || self.inventory.gpus.iter().enumerate();
        let chosen: Vec<(usize, &Gpu)> = if ids.is_empty() {
            all().collect()
        } else {
            all()
                .filter(|(at, gpu)| {
                    ids.iter()
                        .any(|id| *id == gpu.uuid || *id == at.to_string() || *id == bus_id(*at))
                })
                .collect()
        };
        if chosen.is_empty() {
            Err(SmiError::NoDevices)
        } else {
            Ok(chosen)
        }
    }

    fn answer(&self, options: &Options) -> Result<String, SmiError> {
        let gpus = self.chosen(&options.ids)?;
        match &options.asked {
            Asked::Overview => Ok(tables::overview(self, &gpus)),
            Asked::List => Ok(tables::list(&gpus)),
            Asked::Topology => Ok(tables::topology(&self.inventory)),
            Asked::Version => Ok(tables::version(&self.inventory)),
            Asked::Gpus(names) => fields::gpus(self, &gpus, names, options.csv),
            Asked::Processes(names) => fields::processes(self, &gpus, names, options.csv),
        }
    }
}

/// PCI bus id of the GPU with this number.
fn bus_id(at: usize) -> String {
    format!("00000000:{:02X}:00.0", at * 0x10 + 1)
}

/// Answers once, or again and again until nobody listens.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let folder = std::env::var_os(GPUS_VARIABLE)
        .filter(|name| !name.is_empty())
        .map(Folder::new);
    match tell(args, folder.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::from(error.code())
        }
    }
}

fn tell(args: &[String], folder: Option<&Folder>) -> Result<(), SmiError> {
    let mut options = Options::read(args)?;
    let folder = folder.ok_or(SmiError::NoDriver)?;
    let mut next = Instant::now();
    loop {
        let text = Scene::of(folder)?.answer(&options)?;
        let mut out = std::io::stdout().lock();
        let told = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        let (Ok(()), Some(interval)) = (told, options.interval) else {
            return Ok(());
        };
        drop(out);
        // A heading is written once.
        options.csv.header = false;
        next += interval;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tests::{holding, host};

    fn ask(folder: &Folder, args: &[&str]) -> Result<String, SmiError> {
        let args: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
        Scene::of(folder)?.answer(&Options::read(&args)?)
    }

    #[test]
    fn gpus_are_queried_in_csv() {
        let (_place, folder) = host(2);
        let query = "--query-gpu=index,uuid,name,memory.total,memory.used,driver_version,clocks.sm";
        assert_eq!(
            ask(&folder, &[query, "--format=csv"]).expect("rows"),
            "index, uuid, name, memory.total [MiB], memory.used [MiB], driver_version, clocks.current.sm [MHz]\n\
             0, GPU-00000000-aaaa, Test GPU (simulated), 97887 MiB, 0 MiB, 580.95.05, 180 MHz\n\
             1, GPU-00000001-aaaa, Test GPU (simulated), 97887 MiB, 0 MiB, 580.95.05, 180 MHz\n"
        );
        let _held = folder
            .hold(holding(&["GPU-00000001-aaaa"], 90_056))
            .expect("held");
        let rows = ask(
            &folder,
            &[
                "--query-gpu",
                "memory.used,memory.free,pstate,clocks.sm",
                "--format=csv,noheader,nounits",
                "-i",
                "1",
            ],
        );
        assert_eq!(rows.expect("rows"), "90056, 7831, P0, 2407\n");
    }

    #[test]
    fn processes_are_queried_in_csv() {
        let (_place, folder) = host(2);
        let query = "--query-compute-apps=pid,process_name,gpu_uuid,used_memory";
        let heading = "pid, process_name, gpu_uuid, used_gpu_memory [MiB]\n";
        assert_eq!(
            ask(&folder, &[query, "--format=csv"]).expect("rows"),
            heading
        );
        let uuids = ["GPU-00000000-aaaa", "GPU-00000001-aaaa"];
        let held = folder.hold(holding(&uuids, 700)).expect("held");
        let pid = std::process::id();
        assert_eq!(
            ask(&folder, &[query, "--format=csv"]).expect("rows"),
            format!(
                "{heading}{pid}, python3, GPU-00000000-aaaa, 700 MiB\n{pid}, python3, GPU-00000001-aaaa, 700 MiB\n"
            )
        );
        drop(held);
        let none = ask(&folder, &[query, "--format=csv,noheader,nounits"]).expect("rows");
        assert_eq!(none, "");
    }

    #[test]
    fn samples_can_be_overridden_for_all_gpus_or_one() {
        let (place, folder) = host(2);
        let text = r#"{"clocks.current.sm": 1200, "clocks_throttle_reasons.active": "0x0000000000000004",
            "clocks_event_reasons.sw_power_cap": "Active",
            "GPU-00000001-aaaa": {"temperature.gpu": 91, "clocks.sm": 900}}"#;
        std::fs::write(place.path().join("throttle.json"), text).expect("written");
        let query = "--query-gpu=clocks.sm,temperature.gpu,clocks_event_reasons.active,clocks_throttle_reasons.sw_power_cap";
        let rows = ask(&folder, &[query, "--format=csv,noheader"]).expect("rows");
        assert_eq!(
            rows,
            "1200 MHz, 34, 0x0000000000000004, Active\n900 MHz, 91, 0x0000000000000004, Active\n"
        );
    }

    #[test]
    fn what_the_tool_would_refuse_is_refused_with_its_codes() {
        let (_place, folder) = host(1);
        for (args, code) in [
            (&["--query-gpu=index,nonsense", "--format=csv"][..], 2),
            (&["--query-gpu=index"], 2),
            (&["--frobnicate"], 2),
            (&["-i", "7"], 6),
        ] {
            let error = ask(&folder, args).expect_err("a refusal");
            assert_eq!(error.code(), code, "{error}");
        }
        let error = ask(&folder, &["--query-gpu=nonsense", "--format=csv"]).expect_err("a refusal");
        assert_eq!(
            error.to_string(),
            "Field \"nonsense\" is not a valid field to query.\n"
        );
        assert_eq!(tell(&[], None).expect_err("no driver").code(), 9);
        let nowhere = Folder::new("/nowhere/at/all");
        assert_eq!(tell(&[], Some(&nowhere)).expect_err("no driver").code(), 9);
    }

    #[test]
    fn the_tables_say_what_is_there() {
        let (_place, folder) = host(8);
        let _held = folder
            .hold(holding(&["GPU-00000003-aaaa"], 90_056))
            .expect("held");
        assert!(
            ask(&folder, &["-L"])
                .expect("a list")
                .starts_with("GPU 0: Test GPU (simulated) (UUID: GPU-00000000-aaaa)\n")
        );
        let overview = ask(&folder, &[]).expect("a table");
        for part in [
            "Driver Version: 580.95.05",
            "CUDA Version: 13.0",
            "(simulated)",
            "90056MiB /  97887MiB",
            &format!("{}", std::process::id()),
        ] {
            assert!(
                overview.contains(part),
                "`{part}` is missing in\n{overview}"
            );
        }
        assert!(
            overview
                .lines()
                .filter(|line| line.starts_with(['|', '+']))
                .all(|line| line.chars().count() == 91),
            "{overview}"
        );
        let topology = ask(&folder, &["topo", "-m"]).expect("a matrix");
        let rows: Vec<Vec<&str>> = topology
            .lines()
            .filter(|line| line.starts_with("GPU"))
            .map(|line| line.split('\t').map(str::trim).collect())
            .collect();
        assert_eq!(rows.len(), 8, "{topology}");
        assert_eq!(rows[0][..5], ["GPU0", "X", "NODE", "NODE", "NODE"]);
        assert_eq!(rows[0][5], "SYS");
        assert_eq!(rows[7][8], "X");
    }
}
