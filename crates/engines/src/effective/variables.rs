//! Each variable: passed, used, or set by somebody else.

use std::collections::BTreeMap;

use tokdyno_domain::{
    effective::{Finding, Item, Subject},
    engine::EngineKind,
    host::NcclConf,
    profile::Activation,
};

use super::{
    Evidence, item,
    process::{MASKED_REMARK, Sameness, same_word},
};
use crate::{
    knowledge::nccl::matters,
    mask::{MASK, is_secret_name, masked_text},
};

/// Where NCCL itself reported it.
const NCCL_LOG: &str = "NCCL's own log";

/// Compares the profile's variables, and looks for others that hold.
pub(super) fn compare(evidence: &Evidence<'_>, items: &mut Vec<Item>, notes: &mut Vec<String>) {
    let reader = Reader {
        evidence,
        asked: evidence.spec.command().environment,
        nccl: evidence.nccl_log.map(read_nccl_log),
    };
    if evidence.verify_nccl && reader.nccl.as_ref().is_none_or(BTreeMap::is_empty) {
        notes.push(
            "NCCL's own log was asked for and says nothing of variables: with one GPU, NCCL may never have started.".to_owned(),
        );
    }
    for (name, value) in &reader.asked {
        items.push(reader.of_asked(name, value));
    }
    items.extend(reader.not_asked());
}

struct Reader<'a> {
    evidence: &'a Evidence<'a>,
    asked: Vec<(String, String)>,
    nccl: Option<BTreeMap<String, String>>,
}

impl Reader<'_> {
    fn of_asked(&self, name: &str, value: &str) -> Item {
        let shown = |value: &str| shown(name, value);
        let variable = |found: Option<String>, finding, from: String| {
            item(
                Subject::Variable,
                name,
                Some(shown(value)),
                found,
                finding,
                from,
            )
        };
        let masked = value.contains(MASK);
        // The strongest evidence first: the library that uses it.
        if let Some(used) = self.nccl.as_ref().and_then(|nccl| nccl.get(name))
            && !masked
        {
            let finding = if used.trim() == value.trim() {
                Finding::Confirmed
            } else {
                Finding::Differs
            };
            let mut item = variable(Some(shown(used)), finding, NCCL_LOG.to_owned());
            if finding == Finding::Differs {
                item.remark = self.who_overwrites(name);
            }
            return item;
        }
        if let Some(told) = self
            .evidence
            .info
            .and_then(|info| info.settings.get(&format!("env.{name}")))
            && !masked
            && !told.contains(MASK)
            && !told.ends_with('…')
        {
            let truth = |text: &str| matches!(text, "1" | "true" | "True");
            let untruth = |text: &str| matches!(text, "0" | "false" | "False");
            let same = told == value
                || (truth(told) && truth(value))
                || (untruth(told) && untruth(value))
                || matches!((told.parse::<f64>(), value.parse::<f64>()), (Ok(a), Ok(b)) if a == b);
            let finding = if same {
                Finding::AsAsked
            } else {
                Finding::Differs
            };
            return variable(Some(shown(told)), finding, "/server_info".to_owned());
        }
        let Some(process) = self.evidence.process else {
            return variable(None, Finding::NotReadable, String::new());
        };
        let from = format!("/proc/{}/environ", process.identity.pid);
        let Some(environment) = &process.environment else {
            let mut item = variable(None, Finding::NotReadable, from);
            item.remark = Some(
                "The process has overwritten its environment, or belongs to somebody else."
                    .to_owned(),
            );
            return item;
        };
        let found = environment.iter().rev().find(|(other, _)| other == name);
        let found = found.map(|(_, found)| (found, same_word(value, found)));
        match found {
            Some((found, Sameness::Same)) => {
                let mut item = variable(Some(shown(found)), Finding::Passed, from);
                if self.evidence.verify_nccl
                    && name.starts_with("NCCL_")
                    && !name.starts_with("NCCL_DEBUG")
                {
                    item.remark = Some("NCCL's own log does not mention it.".to_owned());
                }
                item
            }
            Some((found, Sameness::Hidden)) => {
                let mut item = variable(Some(shown(found)), Finding::NotReadable, from);
                item.remark = Some(MASKED_REMARK.to_owned());
                item
            }
            Some((found, Sameness::Different)) => {
                variable(Some(shown(found)), Finding::Differs, from)
            }
            None if process.withheld.iter().any(|other| other == name) => {
                let mut item = variable(None, Finding::NotReadable, from);
                item.remark = Some(
                    "It is set, but its value is not read from the host because it looks like a secret.".to_owned(),
                );
                item
            }
            None => {
                let mut item = variable(None, Finding::Differs, from);
                item.remark = Some("The process was started without it.".to_owned());
                item
            }
        }
    }

    /// Variables that hold although nobody asked for them.
    fn not_asked(&self) -> Vec<Item> {
        let mut found: BTreeMap<String, Item> = BTreeMap::new();
        let environment = self
            .evidence
            .process
            .and_then(|process| process.environment.as_ref());
        let mut add = |name: &str, value: &str, finding, from: &str, remark: Option<&str>| {
            if self.asked.iter().any(|(other, _)| other == name) || found.contains_key(name) {
                return;
            }
            let mut item = item(
                Subject::Variable,
                name,
                None,
                Some(shown(name, value)),
                finding,
                from,
            );
            item.remark = remark.map(str::to_owned);
            found.insert(name.to_owned(), item);
        };
        // What the launch itself added, so that NCCL writes its log.
        for (name, value) in &self.evidence.command.environment {
            if matters(name) {
                add(
                    name,
                    value,
                    Finding::Noted,
                    "the launch",
                    Some("Set by the launch itself, to be able to verify."),
                );
            }
        }
        for (name, value) in environment.into_iter().flatten() {
            if !matters(name) {
                continue;
            }
            let from = "the process's environment";
            let by_image = self.evidence.in_container()
                && !name.starts_with("NCCL_")
                && name != "CUDA_VISIBLE_DEVICES";
            let by_script = matches!(
                &self.evidence.spec.activation,
                Activation::Script { text } if text.contains(name.as_str())
            );
            if by_script {
                add(
                    name,
                    value,
                    Finding::Noted,
                    from,
                    Some("The profile's own script names it."),
                );
            } else if by_image {
                add(
                    name,
                    value,
                    Finding::Noted,
                    from,
                    Some("Set by the image or the container's runtime."),
                );
            } else {
                add(name, value, Finding::NotAsked, from, None);
            }
        }
        for conf in self.conf_files() {
            let is_login = conf.path == "login environment";
            for (name, value) in &conf.variables {
                if !matters(name) {
                    continue;
                }
                // What a login sets reaches the process only through its environment.
                let reaches = !is_login
                    || environment.is_none_or(|all| all.iter().any(|(other, _)| other == name));
                let (finding, remark) = if reaches {
                    (Finding::NotAsked, None)
                } else {
                    (
                        Finding::Noted,
                        Some("Set at logins; this process was started without it."),
                    )
                };
                add(name, value, finding, &conf.path, remark);
            }
        }
        for (name, value) in self.nccl.iter().flatten() {
            if name.starts_with("NCCL_DEBUG") {
                continue;
            }
            match self.engines_own(name, value) {
                Some(remark) => add(name, value, Finding::Noted, NCCL_LOG, Some(remark)),
                None => add(name, value, Finding::NotAsked, NCCL_LOG, None),
            }
        }
        for (setting, value) in self.evidence.info.iter().flat_map(|info| &info.settings) {
            if let Some(name) = setting.strip_prefix("env.")
                && name.starts_with("NCCL_")
                && matters(name)
                && !name.starts_with("NCCL_DEBUG")
            {
                match self.engines_own(name, value) {
                    Some(remark) => add(name, value, Finding::Noted, "/server_info", Some(remark)),
                    None => add(name, value, Finding::NotAsked, "/server_info", None),
                }
            }
        }
        found.into_values().collect()
    }

    /// The user's file before the system's, as NCCL takes them; not the user's own if
    /// another file was named. What the process names itself counts before what logins
    /// name.
    fn conf_files(&self) -> Vec<&NcclConf> {
        let of_process = self.evidence.process.map(|process| {
            let readable = process.environment.is_some();
            let names =
                |(name, value): &(String, String)| name == "NCCL_CONF_FILE" && !value.is_empty();
            let named = process.environment.iter().flatten().any(names);
            (readable, named, process.nccl_conf.as_slice())
        });
        let (readable, named, own) = of_process.unwrap_or((false, false, &[]));
        let names_another =
            named || !own.is_empty() || self.evidence.command.variable("NCCL_CONF_FILE").is_some();
        let counts = |conf: &&NcclConf| match conf.path.as_str() {
            "login environment" | "/etc/nccl.conf" => true,
            path if path.ends_with("/.nccl.conf") => !names_another,
            // A login names it. Does this process?
            path => !readable || own.iter().any(|conf| conf.path == path),
        };
        let mut files: Vec<&NcclConf> = own
            .iter()
            .chain(self.evidence.nccl_conf.iter().filter(counts))
            .collect();
        files.sort_by_key(|conf| match conf.path.as_str() {
            "login environment" => 0,
            "/etc/nccl.conf" => 2,
            _ => 1,
        });
        files
    }

    /// Values that the engine itself sets before it starts its workers.
    fn engines_own(&self, name: &str, value: &str) -> Option<&'static str> {
        let value = value.trim();
        match (self.evidence.spec.engine, name) {
            (EngineKind::Sglang, "NCCL_CUMEM_ENABLE" | "NCCL_NVLS_ENABLE") if value == "0" => {
                Some("SGLang sets this itself.")
            }
            (EngineKind::Sglang | EngineKind::Vllm, "NCCL_GRAPH_REGISTER") if value == "0" => {
                Some("The engine sets this itself at times.")
            }
            (EngineKind::Sglang, "NCCL_ALGO" | "NCCL_MIN_NCHANNELS" | "NCCL_MAX_NCHANNELS")
                if self.is_deterministic() =>
            {
                Some("SGLang sets this for deterministic inference.")
            }
            _ => None,
        }
    }

    fn who_overwrites(&self, name: &str) -> Option<String> {
        let own = matches!(
            name,
            "NCCL_ALGO" | "NCCL_MIN_NCHANNELS" | "NCCL_MAX_NCHANNELS"
        );
        (own && self.evidence.spec.engine == EngineKind::Sglang && self.is_deterministic()).then(
            || "SGLang overwrites it for deterministic inference over several GPUs.".to_owned(),
        )
    }

    fn is_deterministic(&self) -> bool {
        self.evidence
            .spec
            .arguments
            .iter()
            .any(|word| word == "--enable-deterministic-inference")
    }
}

/// Variables as NCCL reports them: `… NCCL INFO NCCL_PROTO set by environment to LL`.
/// Ranks say the same; the first counts, unless one differs, which is told.
fn read_nccl_log(text: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        let Some((before, value)) = line.split_once(" set by environment to ") else {
            continue;
        };
        let Some(name) = before.split_whitespace().last() else {
            continue;
        };
        let value = value.trim().trim_end_matches('.');
        if !name.starts_with("NCCL_") {
            continue;
        }
        match found.get_mut(name) {
            None => {
                found.insert(name.to_owned(), value.to_owned());
            }
            Some(known) if known != value && !known.split(" / ").any(|one| one == value) => {
                known.push_str(" / ");
                known.push_str(value);
            }
            Some(_) => {}
        }
    }
    found
}

fn shown(name: &str, value: &str) -> String {
    if is_secret_name(name) && !value.is_empty() {
        MASK.to_owned()
    } else {
        masked_text(value, None)
    }
}
