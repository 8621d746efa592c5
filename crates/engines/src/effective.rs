//! What really runs, item by item against what the profile asks for.

mod arguments;
mod process;
mod values;
mod variables;

use tokdyno_domain::{
    effective::{EffectiveConfiguration, Finding, Item, Subject},
    engine::EngineInfo,
    host::{Inventory, NcclConf, ProcessFacts},
    profile::{Activation, CommandLine, ProfileSpec},
    timestamp::Timestamp,
};

use crate::{container::ContainerFacts, log::LogReader};

/// Everything that was read of a launch.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What was asked for.
    pub spec: &'a ProfileSpec,
    /// The command that was started on the host, with what the launch added to it.
    pub command: &'a CommandLine,
    /// The launcher's process. For a container the process inside, as the host sees it.
    pub process: Option<&'a ProcessFacts>,
    /// What the engine says of itself.
    pub info: Option<&'a EngineInfo>,
    /// The launch's log.
    pub log: &'a LogReader,
    /// NCCL's own log, in a verifying launch.
    pub nccl_log: Option<&'a str>,
    /// Files on the host that set variables, and the login environment.
    pub nccl_conf: &'a [NcclConf],
    /// What is on the host.
    pub inventory: Option<&'a Inventory>,
    /// What the container's runtime tells.
    pub container: Option<&'a ContainerFacts>,
    /// When it was read.
    pub at: Timestamp,
    /// NCCL's own log was asked for.
    pub verify_nccl: bool,
}

/// Compares and concludes.
#[must_use]
pub fn effective(evidence: &Evidence<'_>) -> EffectiveConfiguration {
    let mut items = Vec::new();
    let mut notes = Vec::new();
    process::compare(evidence, &mut items, &mut notes);
    arguments::compare(evidence, &mut items);
    variables::compare(evidence, &mut items, &mut notes);
    compare_engine(evidence, &mut items);
    note_hardware(evidence, &mut items);
    notes.extend(
        evidence
            .log
            .notices()
            .iter()
            .map(|notice| format!("The engine remarks: {notice}")),
    );
    if evidence.simulated() {
        notes.push("The engine is the stand-in: everything here is simulated.".to_owned());
    }
    let unreadable = (!evidence.process_readable() && !evidence.settings_readable()).then(|| {
        "neither the process on the host nor the engine's own settings could be read.".to_owned()
    });
    EffectiveConfiguration::conclude(evidence.at, items, unreadable, notes)
}

impl Evidence<'_> {
    /// The command line of what runs could be read.
    fn process_readable(&self) -> bool {
        self.running_words().is_some()
    }

    /// Program and arguments of what runs.
    fn running_words(&self) -> Option<&[String]> {
        self.process
            .map(|process| process.command.as_slice())
            .or_else(|| self.container.map(|container| container.command.as_slice()))
            .filter(|words| !words.is_empty())
    }

    /// Where they were read.
    fn words_read_from(&self) -> String {
        match self.process {
            Some(process) if !process.command.is_empty() => {
                format!("/proc/{}/cmdline", process.identity.pid)
            }
            _ => "inspect".to_owned(),
        }
    }

    /// The engine told how it resolved its arguments. Variables alone are not that.
    fn settings_readable(&self) -> bool {
        self.info.is_some_and(|info| {
            info.settings
                .keys()
                .any(|name| !name.starts_with("env.") && name != "sim_speed")
        })
    }

    fn version(&self) -> Option<&str> {
        self.info.and_then(|info| info.version.as_deref())
    }

    fn simulated(&self) -> bool {
        self.log.simulated() || self.info.is_some_and(|info| info.simulated)
    }

    fn in_container(&self) -> bool {
        matches!(self.spec.activation, Activation::Container { .. })
    }
}

/// An item without a remark.
fn item(
    subject: Subject,
    name: impl Into<String>,
    asked: Option<String>,
    found: Option<String>,
    finding: Finding,
    read_from: impl Into<String>,
) -> Item {
    Item {
        subject,
        name: name.into(),
        asked,
        found,
        finding,
        read_from: read_from.into(),
        remark: None,
    }
}

/// Engine, version, and the name the model is served under.
fn compare_engine(evidence: &Evidence<'_>, items: &mut Vec<Item>) {
    let Some(info) = evidence.info else { return };
    let spec = evidence.spec;
    let engine_fits = spec.engine == info.kind;
    items.push(item(
        Subject::Engine,
        "engine",
        Some(spec.engine.name().to_owned()),
        Some(info.kind.name().to_owned()),
        if engine_fits {
            Finding::AsAsked
        } else {
            Finding::Differs
        },
        "/v1/models",
    ));
    if let Some(version) = &info.version {
        items.push(item(
            Subject::Engine,
            "version",
            None,
            Some(version.clone()),
            Finding::Noted,
            "the engine",
        ));
    }
    let served = spec.served_name();
    if !served.trim().is_empty() {
        let listed = info.models.iter().any(|model| model == served);
        let finding = if listed {
            Finding::AsAsked
        } else {
            Finding::Differs
        };
        items.push(item(
            Subject::Model,
            "served name",
            Some(served.to_owned()),
            Some(info.models.join(", ")),
            finding,
            "/v1/models",
        ));
    }
    for (name, setting) in [
        ("model revision", "revision"),
        ("model revision", "model_config.revision"),
        ("weight version", "weight_version"),
    ] {
        if let Some(value) = info.settings.get(setting).filter(|value| !value.is_empty()) {
            items.push(item(
                Subject::Model,
                name,
                None,
                Some(value.clone()),
                Finding::Noted,
                "/server_info",
            ));
        }
    }
    if let Some(most) = info.max_running_requests {
        items.push(item(
            Subject::Engine,
            "most requests at once",
            None,
            Some(most.to_string()),
            Finding::Noted,
            "/server_info",
        ));
    }
}

fn note_hardware(evidence: &Evidence<'_>, items: &mut Vec<Item>) {
    let Some(inventory) = evidence.inventory else {
        return;
    };
    let mut note = |name: &str, value: Option<String>, from: &str| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            items.push(item(
                Subject::Hardware,
                name,
                None,
                Some(value),
                Finding::Noted,
                from,
            ));
        }
    };
    note("driver", inventory.driver.clone(), "nvidia-smi");
    note("CUDA", inventory.cuda.clone(), "nvidia-smi");
    note("NCCL", inventory.nccl.clone(), "the library's name");
    let used = evidence
        .process
        .map(|process| process.gpus.as_slice())
        .filter(|gpus| !gpus.is_empty());
    let mut names: Vec<(String, usize)> = Vec::new();
    for gpu in &inventory.gpus {
        if used.is_some_and(|used| !used.contains(&gpu.index)) {
            continue;
        }
        match names.iter_mut().find(|(name, _)| *name == gpu.name) {
            Some((_, count)) => *count += 1,
            None => names.push((gpu.name.clone(), 1)),
        }
        let name = |what: &str| format!("GPU {} {what}", gpu.index);
        let clocks = gpu
            .clocks_mhz
            .map(|(processor, memory)| format!("{processor} MHz, memory {memory} MHz"));
        note(&name("clocks"), clocks, "nvidia-smi");
        let limit = gpu.power_limit_w.map(|watts| format!("{watts} W"));
        note(&name("power limit"), limit, "nvidia-smi");
    }
    let gpus: Vec<String> = names
        .iter()
        .map(|(name, count)| format!("{count} × {name}"))
        .collect();
    note("GPUs", Some(gpus.join(", ")), "nvidia-smi");
    note("CPU governor", Some(inventory.governors.join(", ")), "/sys");
}

#[cfg(test)]
mod tests;
