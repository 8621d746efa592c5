//! What the tool shows to people.

use std::fmt::Write as _;

use crate::{
    gpu::{Gpu, Inventory},
    nvidia_smi::{Scene, bus_id, fields::process_name},
};

/// The table that it shows without arguments.
pub(super) fn overview(scene: &Scene, gpus: &[(usize, &Gpu)]) -> String {
    let Inventory { driver, cuda, .. } = &scene.inventory;
    let rule = format!("+{}+\n", "-".repeat(89));
    let split = format!(
        "+{}+{}+{}+\n",
        "-".repeat(41),
        "-".repeat(24),
        "-".repeat(22)
    );
    let mut text = format!(
        "{rule}| {:<87} |\n{}",
        format!("NVIDIA-SMI {driver:<20}   Driver Version: {driver:<14}   CUDA Version: {cuda}"),
        split
    );
    let mut row = |left: &str, middle: &str, right: &str| {
        let _ = writeln!(text, "| {left:<39} | {middle:<22} | {right:<20} |");
    };
    row(
        "GPU  Name               Persistence-M",
        "Bus-Id          Disp.A",
        "Volatile Uncorr. ECC",
    );
    row(
        "Fan  Temp   Perf     Pwr:Usage/Cap",
        "          Memory-Usage",
        "GPU-Util  Compute M.",
    );
    text.push_str(&split.replace('-', "="));
    for (at, gpu) in gpus {
        let value = |name: &str| scene.value(*at, gpu, name);
        let watts = |name: &str| {
            value(name)
                .parse()
                .map_or_else(|_| "N/A".to_owned(), |w: f64| format!("{w:.0}W"))
        };
        // The tool cuts long names short; the mark must stay.
        let name = match gpu.name.strip_suffix("(simulated)") {
            Some(model) => format!("{:.14} (simulated)", model.trim_end()),
            None => format!("{:.26}", gpu.name),
        };
        let mut row = |left: &str, middle: &str, right: &str| {
            let _ = writeln!(text, "| {left:<39} | {middle:<22} | {right:<20} |");
        };
        row(
            &format!("{at:>3}  {name:<26} On"),
            &format!("{} Off", bus_id(*at)),
            &format!("{:>20}", "0"),
        );
        row(
            &format!(
                "{:>3}% {:>4}C {:>5} {:>9} / {:>5}",
                value("fan.speed"),
                value("temperature.gpu"),
                value("pstate"),
                watts("power.draw"),
                watts("power.limit")
            ),
            &format!("{:>7}MiB / {:>6}MiB", scene.used_mib(gpu), gpu.memory_mib),
            &format!("{:>7}%     Default", value("utilization.gpu")),
        );
        text.push_str(&split);
    }
    text.push('\n');
    text.push_str(&rule);
    let mut row = |cells: &str| {
        let _ = writeln!(text, "| {cells:<87} |");
    };
    row("Processes:");
    row(" GPU   GI   CI         PID   Type   Process name                        GPU Memory");
    row("       ID   ID                                                          Usage");
    let heavy = rule.replace('-', "=");
    text.push_str(&heavy.replace('+', "|"));
    let mut any = false;
    for (at, gpu) in gpus {
        for (pid, holding) in scene.holders(gpu) {
            any = true;
            let cells = format!(
                "{at:>4}  N/A  N/A {pid:>11}      C   {:<30.30} {:>13}MiB",
                process_name(holding),
                holding.used_mib
            );
            let _ = writeln!(text, "| {cells:<87} |");
        }
    }
    if !any {
        let _ = writeln!(text, "| {:<87} |", " No running processes found");
    }
    text.push_str(&rule);
    text
}

/// `-L`.
pub(super) fn list(gpus: &[(usize, &Gpu)]) -> String {
    let mut text = String::new();
    for (at, gpu) in gpus {
        let _ = writeln!(text, "GPU {at}: {} (UUID: {})", gpu.name, gpu.uuid);
    }
    text
}

/// `--version`.
pub(super) fn version(inventory: &Inventory) -> String {
    let Inventory { driver, cuda, .. } = inventory;
    format!(
        "NVIDIA-SMI version  : {driver} (simulated)\nNVML version        : {driver}\nDRIVER version      : {driver}\nCUDA Version        : {cuda}\n"
    )
}

/// GPUs on one processor, where `gpus.json` does not say how they are connected.
const PER_NODE: usize = 4;

/// `topo -m`: tabs between the columns, the heading underlined.
pub(super) fn topology(inventory: &Inventory) -> String {
    let count = inventory.gpus.len();
    let mut text = String::from("\t\u{1b}[4m");
    for at in 0..count {
        let _ = write!(text, "GPU{at}\t");
    }
    text.push_str("CPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n");
    for from in 0..count {
        let _ = write!(text, "GPU{from}");
        for to in 0..count {
            let told = inventory
                .topology
                .as_ref()
                .and_then(|rows| rows.get(from)?.get(to))
                .map(String::as_str);
            let cell = match told {
                _ if from == to => " X ",
                Some(cell) => cell,
                None if from / PER_NODE == to / PER_NODE => "NODE",
                None => "SYS",
            };
            let _ = write!(text, "\t{cell}");
        }
        let node = from / PER_NODE;
        let (first, last) = (node * 32, node * 32 + 31);
        let _ = writeln!(text, "\t{first}-{last}\t{node}\t\tN/A");
    }
    text.push_str(LEGEND);
    text
}

const LEGEND: &str = "
Legend:

  X    = Self
  SYS  = Through PCIe and the link between NUMA nodes
  NODE = Through PCIe and the link between host bridges of one NUMA node
  PHB  = Through PCIe and a host bridge
  PXB  = Through several PCIe bridges, no host bridge
  PIX  = Through one PCIe bridge at most
  NV#  = Through a bonded set of # NVLinks
";
