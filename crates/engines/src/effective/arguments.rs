//! Each argument against what the engine resolved it to.

use serde_json::{Map, Value};
use tokdyno_domain::{
    effective::{Finding, Item, Subject},
    engine::EngineKind,
};

use super::{
    Evidence, item,
    process::{MASKED_REMARK, Sameness, same_words},
    values::{Likeness, compare as alike, compare_list, text_of},
};
use crate::{
    knowledge::{
        flags::{Flag, snake},
        is_inert,
    },
    mask::{MASK, is_secret_name},
    python,
    words::{EngineStart, Row, rows},
};

/// Compares every flag of the profile.
pub(super) fn compare(evidence: &Evidence<'_>, items: &mut Vec<Item>) {
    let command = evidence.spec.command();
    let words: Vec<&str> = command.words().collect();
    let first = EngineStart::find(&words).map_or(0, |start| start.first - 1);
    let arguments = &command.arguments[first.min(command.arguments.len())..];
    let logged = evidence.log.arguments().and_then(python::dictionary);
    let reader = Reader {
        evidence,
        logged: logged.as_ref(),
    };
    let rows = rows(evidence.spec.engine, arguments);
    let mut model_told = false;
    for (number, row) in rows.iter().enumerate() {
        // Of a flag given twice, the last holds.
        let repeated = row.flag.is_some()
            && rows[number + 1..]
                .iter()
                .any(|later| later.flag.is_some() && setting_name(later) == setting_name(row));
        if repeated {
            continue;
        }
        match row.flag {
            Some(_) => items.push(reader.of_flag(row)),
            // vLLM's first word is its model.
            None if evidence.spec.engine == EngineKind::Vllm && !model_told => {
                model_told = true;
                items.push(reader.of_value("model", &row.values, "model_config.model", false));
            }
            None => {}
        }
    }
}

/// `--no-x` and `--x` are one setting.
fn setting_name(row: &Row<'_>) -> String {
    match (row.known, row.flag) {
        (Some(known), _) => known.names[0].to_owned(),
        (None, flag) => snake(flag.unwrap_or_default()),
    }
}

struct Reader<'a> {
    evidence: &'a Evidence<'a>,
    /// What vLLM logged of its arguments.
    logged: Option<&'a Map<String, Value>>,
}

/// What was read of a setting.
struct Read {
    finding: Finding,
    found: Option<String>,
    from: &'static str,
    remark: Option<String>,
}

impl Reader<'_> {
    fn of_flag(&self, row: &Row<'_>) -> Item {
        let spelled = row.flag.unwrap_or_default();
        let engine = self.evidence.spec.engine;
        let setting = row.known.map_or_else(|| snake(spelled), Flag::setting);
        let is_switch = row.values.is_empty();
        let values: Vec<&str> = match (is_switch, row.off) {
            (true, true) => vec!["false"],
            (true, false) => vec!["true"],
            (false, _) => row.values.clone(),
        };
        let name = if row.off {
            spelled.to_owned()
        } else {
            row.name()
        };
        if spelled.starts_with("--sim-") {
            let mut item = self.passed(&name, &values, is_switch);
            item.remark = Some("Simulated: a setting of the stand-in.".to_owned());
            return item;
        }
        if let Some(why) = is_inert(engine, spelled, self.evidence.version()) {
            let mut item = self.of_value(&name, &values, &setting, is_switch);
            item.finding = Finding::Inert;
            item.remark = Some(why.to_owned());
            return item;
        }
        self.of_value(&name, &values, &setting, is_switch)
    }

    fn of_value(&self, name: &str, values: &[&str], setting: &str, is_switch: bool) -> Item {
        let asked = asked_text(name, values, is_switch);
        if is_secret_name(name) {
            let mut item = self.passed(name, values, is_switch);
            item.remark
                .get_or_insert_with(|| "A secret: its value is neither read nor shown.".to_owned());
            return item;
        }
        match self.read(values, setting) {
            Some(read) => {
                let mut item = item(
                    Subject::Argument,
                    name,
                    Some(asked),
                    read.found,
                    read.finding,
                    read.from,
                );
                item.remark = read.remark;
                item
            }
            None => self.passed(name, values, is_switch),
        }
    }

    /// What the engine says: its settings first, its log second.
    fn read(&self, values: &[&str], setting: &str) -> Option<Read> {
        if let Some(info) = self
            .evidence
            .info
            .filter(|_| self.evidence.settings_readable())
        {
            if let Some(read) = self.of_structure(values, setting) {
                return Some(read);
            }
            if let Some(found) = look(&info.settings, setting) {
                return self.judge(values, found, "/server_info");
            }
            if let Some(read) = self.of_relatives(values, setting) {
                return Some(read);
            }
        }
        let last = setting.rsplit('.').next().unwrap_or(setting);
        let logged = self.logged?;
        let found = match (setting, logged.get(last)) {
            (_, Some(found)) => found,
            ("model_config.model", None) => logged.get("model_tag")?,
            ("attention_config.backend", None) => logged.get("attention_backend")?,
            _ => return None,
        };
        // Kinds that only Python knows are not told.
        if found.is_null() {
            return None;
        }
        self.judge(values, &text_of(found), "the log's non-default args")
    }

    fn judge(&self, values: &[&str], found: &str, from: &'static str) -> Option<Read> {
        let engine = self.evidence.spec.engine;
        let mut likeness = compare_list(engine, values, found);
        // NEXTN is another name of EAGLE.
        if likeness == Likeness::Different
            && values
                .first()
                .is_some_and(|value| value.eq_ignore_ascii_case("NEXTN"))
            && found.eq_ignore_ascii_case("EAGLE")
        {
            likeness = Likeness::Same;
        }
        let (finding, remark) = match likeness {
            Likeness::Same => (Finding::AsAsked, None),
            Likeness::Chosen => (
                Finding::AsAsked,
                Some("The choice was left to the engine.".to_owned()),
            ),
            Likeness::Different => (Finding::Differs, None),
            // The command line has to speak for it.
            Likeness::Hidden => return None,
        };
        Some(Read {
            finding,
            found: Some(found.to_owned()),
            from,
            remark,
        })
    }

    /// A value in JSON, which the settings hold leaf by leaf.
    fn of_structure(&self, values: &[&str], setting: &str) -> Option<Read> {
        let [only] = values else { return None };
        let asked: Value = serde_json::from_str(only).ok().filter(Value::is_object)?;
        let settings = &self.evidence.info?.settings;
        let mut leaves = Vec::new();
        flatten(setting, &asked, &mut leaves);
        let mut told = Vec::new();
        let mut differs = false;
        for (path, value) in &leaves {
            let Some(found) = settings.get(path) else {
                continue;
            };
            differs |= alike(self.evidence.spec.engine, value, found) == Likeness::Different;
            let short = path.strip_prefix(setting).unwrap_or(path);
            told.push(format!("{}={found}", short.trim_start_matches('.')));
        }
        if told.is_empty() {
            return None;
        }
        let silent = leaves.len() - told.len();
        Some(Read {
            finding: if differs {
                Finding::Differs
            } else {
                Finding::AsAsked
            },
            found: Some(told.join(", ")),
            from: "/server_info",
            remark: (silent > 0).then(|| format!("{silent} of its values are not reported.")),
        })
    }

    /// Settings that an engine reports under another name.
    fn of_relatives(&self, values: &[&str], setting: &str) -> Option<Read> {
        let settings = &self.evidence.info?.settings;
        let relatives: &[(&str, &str)] = match setting {
            "cuda_graph_backend_decode" => &[("cuda_graph_config.decode.backend", "")],
            "cuda_graph_backend_prefill" => &[("cuda_graph_config.prefill.backend", "")],
            "cuda_graph_max_bs_decode" => &[("cuda_graph_config.decode.max_bs", "")],
            "cuda_graph_max_bs_prefill" => &[("cuda_graph_config.prefill.max_bs", "")],
            "cuda_graph_bs_decode" => &[("cuda_graph_config.decode.bs", "")],
            "cuda_graph_bs_prefill" => &[("cuda_graph_config.prefill.bs", "")],
            "enable_return_hidden_states" => &[("return_hidden_states_mode", "full")],
            "incremental_streaming_output" => &[("stream_output", "")],
            _ => &[],
        };
        relatives.iter().find_map(|(name, means_true)| {
            let found = settings.get(*name)?;
            if means_true.is_empty() {
                self.judge(values, found, "/server_info")
            } else {
                self.judge(&[means_true], found, "/server_info")
            }
        })
    }

    /// Nothing tells what it resolved to: was the process at least started with it?
    fn passed(&self, name: &str, values: &[&str], is_switch: bool) -> Item {
        let asked = asked_text(name, values, is_switch);
        let Some(running) = self.evidence.running_words() else {
            return item(
                Subject::Argument,
                name,
                Some(asked),
                None,
                Finding::NotReadable,
                "",
            );
        };
        let words: Vec<&str> = running.iter().map(String::as_str).collect();
        let first = EngineStart::find(&words).map_or(1, |start| start.first);
        let found = rows(
            self.evidence.spec.engine,
            &running[first.min(running.len())..],
        )
        .into_iter()
        .rfind(|row| match row.flag {
            Some(flag) => row.name() == name || flag == name,
            None => name == "model",
        })
        .map(|row| {
            row.values
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        });
        let (finding, found) = match found {
            None => (Finding::Differs, None),
            Some(found) => {
                let likeness = if is_switch && found.is_empty() {
                    Sameness::Same
                } else {
                    same_words(values, &found)
                };
                let finding = match likeness {
                    Sameness::Same => Finding::Passed,
                    Sameness::Hidden => Finding::NotReadable,
                    Sameness::Different => Finding::Differs,
                };
                let found: Vec<&str> = found.iter().map(String::as_str).collect();
                let text = asked_text(name, &found, is_switch && found.is_empty());
                (finding, Some(text))
            }
        };
        let mut item = item(
            Subject::Argument,
            name,
            Some(asked),
            found,
            finding,
            self.evidence.words_read_from(),
        );
        if finding == Finding::NotReadable {
            item.remark = Some(MASKED_REMARK.to_owned());
        }
        item
    }
}

/// A setting by its whole name, or by its last part where that is unique.
fn look<'a>(
    settings: &'a std::collections::BTreeMap<String, String>,
    setting: &str,
) -> Option<&'a str> {
    if let Some(found) = settings.get(setting) {
        return Some(found);
    }
    if setting.contains('.') {
        return None;
    }
    let ending = format!(".{setting}");
    let mut fitting = settings.iter().filter(|(name, _)| {
        // The drafter's configuration repeats names of the model's.
        name.ends_with(&ending)
            && !name.starts_with("env.")
            && !name.starts_with("speculative_config.")
    });
    let (_, found) = fitting.next()?;
    fitting.next().is_none().then_some(found.as_str())
}

fn flatten(path: &str, value: &Value, leaves: &mut Vec<(String, String)>) {
    match value {
        Value::Object(inner) => {
            for (name, value) in inner {
                flatten(&format!("{path}.{name}"), value, leaves);
            }
        }
        Value::Null => {}
        other => leaves.push((path.to_owned(), text_of(other))),
    }
}

fn asked_text(name: &str, values: &[&str], is_switch: bool) -> String {
    if is_secret_name(name) && !is_switch {
        MASK.to_owned()
    } else if is_switch {
        let off = values.first() == Some(&"false");
        if off { "off" } else { "on" }.to_owned()
    } else {
        crate::mask::masked_text(&values.join(" "), None)
    }
}
