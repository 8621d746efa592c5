//! The fields of queries: names, units, values.

use serde_json::Value;

use crate::{
    gpu::{Gpu, Holding},
    nvidia_smi::{Scene, SmiError, bus_id, options::Csv},
};

/// A field of `--query-gpu`: the name in the heading, other names, the unit, and
/// the value while the GPU is idle and while a process holds it. All values are
/// invented.
struct Field {
    name: &'static str,
    also: &'static [&'static str],
    unit: &'static str,
    idle: &'static str,
    loaded: &'static str,
}

const fn field(
    name: &'static str,
    also: &'static [&'static str],
    unit: &'static str,
    idle: &'static str,
    loaded: &'static str,
) -> Field {
    Field {
        name,
        also,
        unit,
        idle,
        loaded,
    }
}

const fn fixed(name: &'static str, unit: &'static str, value: &'static str) -> Field {
    field(name, &[], unit, value, value)
}

/// Fields whose value depends on nothing but whether the GPU is in use.
const SAMPLES: [Field; 50] = [
    field("clocks.current.sm", &["clocks.sm"], "MHz", "180", "2407"),
    field(
        "clocks.current.memory",
        &["clocks.mem"],
        "MHz",
        "405",
        "13365",
    ),
    field(
        "clocks.current.graphics",
        &["clocks.gr"],
        "MHz",
        "180",
        "2407",
    ),
    field(
        "clocks.current.video",
        &["clocks.video"],
        "MHz",
        "600",
        "2070",
    ),
    field("clocks.max.sm", &["clocks.max.gr"], "MHz", "3090", "3090"),
    field(
        "clocks.max.memory",
        &["clocks.max.mem"],
        "MHz",
        "14001",
        "14001",
    ),
    field("clocks.max.graphics", &[], "MHz", "3090", "3090"),
    field(
        "clocks.applications.graphics",
        &["clocks.applications.gr"],
        "MHz",
        "[N/A]",
        "[N/A]",
    ),
    field(
        "clocks.applications.memory",
        &["clocks.applications.mem"],
        "MHz",
        "[N/A]",
        "[N/A]",
    ),
    field("power.draw", &[], "W", "16.50", "92.40"),
    field("power.draw.average", &[], "W", "16.50", "92.40"),
    field("power.draw.instant", &[], "W", "16.48", "92.44"),
    fixed("power.limit", "W", "600.00"),
    fixed("enforced.power.limit", "W", "600.00"),
    fixed("power.default_limit", "W", "600.00"),
    fixed("power.min_limit", "W", "150.00"),
    fixed("power.max_limit", "W", "600.00"),
    field("temperature.gpu", &[], "", "34", "48"),
    field("temperature.memory", &[], "", "N/A", "N/A"),
    field("utilization.gpu", &[], "%", "0", "0"),
    field("utilization.memory", &[], "%", "0", "0"),
    field("pstate", &[], "", "P8", "P0"),
    field("fan.speed", &[], "%", "30", "35"),
    fixed("persistence_mode", "", "Enabled"),
    fixed("compute_mode", "", "Default"),
    fixed("compute_cap", "", "12.0"),
    fixed("mig.mode.current", "", "[N/A]"),
    fixed("ecc.mode.current", "", "Enabled"),
    fixed("ecc.errors.uncorrected.volatile.total", "", "0"),
    fixed("memory.reserved", "MiB", "0"),
    field(
        "pcie.link.gen.gpucurrent",
        &["pcie.link.gen.current"],
        "",
        "1",
        "5",
    ),
    field("pcie.link.gen.max", &[], "", "5", "5"),
    fixed("pcie.link.gen.hostmax", "", "5"),
    fixed("pcie.link.width.current", "", "16"),
    fixed("pcie.link.width.max", "", "16"),
    fixed("display_mode", "", "Disabled"),
    fixed("display_active", "", "Disabled"),
    fixed("vbios_version", "", "98.02.6A.00.03"),
    field("serial", &["gpu_serial"], "", "[N/A]", "[N/A]"),
    reason(
        "clocks_event_reasons.supported",
        "0x00000000000001FF",
        "0x00000000000001FF",
    ),
    reason(
        "clocks_event_reasons.active",
        "0x0000000000000001",
        "0x0000000000000000",
    ),
    reason("clocks_event_reasons.gpu_idle", "Active", "Not Active"),
    reason(
        "clocks_event_reasons.applications_clocks_setting",
        "Not Active",
        "Not Active",
    ),
    reason(
        "clocks_event_reasons.sw_power_cap",
        "Not Active",
        "Not Active",
    ),
    reason(
        "clocks_event_reasons.hw_slowdown",
        "Not Active",
        "Not Active",
    ),
    reason(
        "clocks_event_reasons.hw_thermal_slowdown",
        "Not Active",
        "Not Active",
    ),
    reason(
        "clocks_event_reasons.hw_power_brake_slowdown",
        "Not Active",
        "Not Active",
    ),
    reason(
        "clocks_event_reasons.sw_thermal_slowdown",
        "Not Active",
        "Not Active",
    ),
    reason(
        "clocks_event_reasons.sync_boost",
        "Not Active",
        "Not Active",
    ),
    fixed("accounting.mode", "", "Disabled"),
];

const fn reason(name: &'static str, idle: &'static str, loaded: &'static str) -> Field {
    field(name, &[], "", idle, loaded)
}

/// What is said while requests run.
const BUSY: [(&str, &str); 6] = [
    ("power.draw", "285.40"),
    ("power.draw.average", "281.10"),
    ("power.draw.instant", "286.02"),
    ("temperature.gpu", "62"),
    ("utilization.gpu", "97"),
    ("utilization.memory", "61"),
];

/// Fields that are worked out, with their units.
const COMPUTED: [(&str, &str); 11] = [
    ("index", ""),
    ("count", ""),
    ("uuid", ""),
    ("name", ""),
    ("driver_version", ""),
    ("pci.bus_id", ""),
    ("pci.bus", ""),
    ("memory.total", "MiB"),
    ("memory.used", "MiB"),
    ("memory.free", "MiB"),
    ("timestamp", ""),
];

/// A name as the heading writes it.
fn canonical(name: &str) -> Option<(&'static str, &'static str)> {
    let name = match name {
        "gpu_uuid" => "uuid",
        "gpu_name" => "name",
        "gpu_bus_id" => "pci.bus_id",
        other => other,
    };
    // The older name for the same.
    let name = name.replace("clocks_throttle_reasons.", "clocks_event_reasons.");
    COMPUTED
        .into_iter()
        .find(|(known, _)| *known == name)
        .or_else(|| sample(&name).map(|field| (field.name, field.unit)))
}

fn sample(name: &str) -> Option<&'static Field> {
    // The table is a constant: one copy of it for all.
    static TABLE: [Field; SAMPLES.len()] = SAMPLES;
    TABLE
        .iter()
        .find(|field| field.name == name || field.also.contains(&name))
}

impl Scene {
    /// Memory in use on a GPU, in MiB.
    pub(super) fn used_mib(&self, gpu: &Gpu) -> u64 {
        self.inventory.used_mib(&gpu.uuid, &self.holdings)
    }

    /// Those that hold memory of a GPU.
    pub(super) fn holders<'a>(
        &'a self,
        gpu: &'a Gpu,
    ) -> impl Iterator<Item = (u32, &'a Holding)> + 'a {
        self.holdings
            .iter()
            .filter(|(_, holding)| holding.used_mib > 0 && holding.uuids.contains(&gpu.uuid))
            .map(|(pid, holding)| (*pid, holding))
    }

    /// A field's value without unit.
    pub(super) fn value(&self, at: usize, gpu: &Gpu, name: &str) -> String {
        let used = self.used_mib(gpu);
        match name {
            "index" => at.to_string(),
            "count" => self.inventory.gpus.len().to_string(),
            "uuid" => gpu.uuid.clone(),
            "name" => gpu.name.clone(),
            "driver_version" => self.inventory.driver.clone(),
            "pci.bus_id" => bus_id(at),
            "pci.bus" => format!("0x{:02X}", at * 0x10 + 1),
            "memory.total" => gpu.memory_mib.to_string(),
            "memory.used" => used.to_string(),
            "memory.free" => gpu.memory_mib.saturating_sub(used).to_string(),
            "timestamp" => self.timestamp(),
            _ => self
                .overridden(gpu, name)
                .unwrap_or_else(|| self.usual(gpu, name).to_owned()),
        }
    }

    fn usual(&self, gpu: &Gpu, name: &str) -> &'static str {
        let Some(field) = sample(name) else {
            return "[N/A]";
        };
        let busy = self
            .holdings
            .values()
            .any(|holding| holding.busy && holding.uuids.contains(&gpu.uuid));
        if busy && let Some((_, value)) = BUSY.into_iter().find(|(busy, _)| *busy == field.name) {
            return value;
        }
        if self.used_mib(gpu) > 0 {
            field.loaded
        } else {
            field.idle
        }
    }

    /// What `throttle.json` says: for this GPU, else for all.
    fn overridden(&self, gpu: &Gpu, name: &str) -> Option<String> {
        let own = self.overrides.get(&gpu.uuid).and_then(Value::as_object);
        [own, Some(&self.overrides)]
            .into_iter()
            .flatten()
            .find_map(|map| {
                map.iter()
                    .find(|(key, _)| canonical(key).is_some_and(|(known, _)| known == name))
            })
            .map(|(_, value)| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
    }

    fn timestamp(&self) -> String {
        let (year, month, day) = self.now.to_calendar_date();
        let (hour, minute, second, ms) = self.now.to_hms_milli();
        let month = u8::from(month);
        format!("{year:04}/{month:02}/{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}")
    }
}

/// Rows for `--query-gpu`.
pub(super) fn gpus(
    scene: &Scene,
    gpus: &[(usize, &Gpu)],
    names: &[String],
    csv: Csv,
) -> Result<String, SmiError> {
    let columns: Vec<(&str, &str)> = names
        .iter()
        .map(|name| canonical(name).ok_or_else(|| SmiError::NoSuchField(name.clone())))
        .collect::<Result<_, _>>()?;
    let rows = gpus.iter().map(|(at, gpu)| {
        columns
            .iter()
            .map(|(name, _)| scene.value(*at, gpu, name))
            .collect()
    });
    Ok(table(&columns, rows, csv))
}

/// Rows for `--query-compute-apps`.
pub(super) fn processes(
    scene: &Scene,
    gpus: &[(usize, &Gpu)],
    names: &[String],
    csv: Csv,
) -> Result<String, SmiError> {
    let column = |name: &String| -> Result<(&'static str, &'static str), SmiError> {
        Ok(match name.as_str() {
            "pid" => ("pid", ""),
            "process_name" | "name" => ("process_name", ""),
            "used_gpu_memory" | "used_memory" => ("used_gpu_memory", "MiB"),
            "gpu_uuid" => ("gpu_uuid", ""),
            "gpu_name" => ("gpu_name", ""),
            "gpu_bus_id" => ("gpu_bus_id", ""),
            "gpu_serial" => ("gpu_serial", ""),
            "timestamp" => ("timestamp", ""),
            _ => return Err(SmiError::NoSuchField(name.clone())),
        })
    };
    let columns: Vec<(&str, &str)> = names.iter().map(column).collect::<Result<_, _>>()?;
    let rows = gpus.iter().flat_map(|(at, gpu)| {
        scene.holders(gpu).map(|(pid, holding)| {
            columns
                .iter()
                .map(|(name, _)| match *name {
                    "pid" => pid.to_string(),
                    "process_name" => process_name(holding),
                    "used_gpu_memory" => holding.used_mib.to_string(),
                    "gpu_uuid" => gpu.uuid.clone(),
                    "gpu_name" => gpu.name.clone(),
                    "gpu_bus_id" => bus_id(*at),
                    "timestamp" => scene.timestamp(),
                    _ => "[N/A]".to_owned(),
                })
                .collect()
        })
    });
    Ok(table(&columns, rows, csv))
}

pub(super) fn process_name(holding: &Holding) -> String {
    holding
        .name
        .clone()
        .unwrap_or_else(|| "[Not Found]".to_owned())
}

fn table(columns: &[(&str, &str)], rows: impl Iterator<Item = Vec<String>>, csv: Csv) -> String {
    let mut text = String::new();
    let mut line = |cells: Vec<String>| {
        text.push_str(&cells.join(", "));
        text.push('\n');
    };
    if csv.header {
        line(
            columns
                .iter()
                .map(|(name, unit)| match (csv.units, *unit) {
                    (_, "") => (*name).to_owned(),
                    (_, unit) => format!("{name} [{unit}]"),
                })
                .collect(),
        );
    }
    for row in rows {
        line(
            row.into_iter()
                .zip(columns)
                .map(|(value, (_, unit))| {
                    if csv.units && !unit.is_empty() && !value.starts_with('[') {
                        format!("{value} {unit}")
                    } else {
                        value
                    }
                })
                .collect(),
        );
    }
    text
}
