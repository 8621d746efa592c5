//! The comparison as text.

use serde_json::Value;
use tokdyno_domain::{
    comparison::Difference,
    meter::MeterOutcome,
    text,
    views::compare::{CompareCell, CompareRow},
    workload::StageKind,
};

use super::{Compared, ComparedResult};
use crate::bench::terminal::name;

/// Most characters of a value; prompts in a workload are long.
const LONGEST_VALUE: usize = 60;
/// Characters before the figures.
const LABEL: usize = 50;

impl Compared {
    /// All that is to be said.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for (result, number) in self.results.iter().zip(1..) {
            out.push_str(&format!("run {number}: {}\n", described(result)));
        }
        out.push_str(&format!("\n{}\n", self.class.sentence));
        self.say_differences(&mut out);
        let mut kind = None;
        for row in &self.rows {
            if kind != Some(row.kind) {
                out.push_str(&format!("\n{}\n", self.level(row.kind)));
                kind = Some(row.kind);
            }
            out.push_str(&figures(row));
        }
        if !self.verdicts.is_empty() || !self.crossovers.is_empty() {
            out.push('\n');
        }
        let verdicts = self.verdicts.iter().map(|verdict| &verdict.sentence);
        for sentence in verdicts.chain(&self.crossovers) {
            out.push_str(&format!("{}\n", name(sentence)));
        }
        if self.simulated {
            out.push_str("\n*** SIMULATED: what carries this mark comes from the stand-in engine and says nothing about a real GPU. ***\n");
        }
        out
    }

    fn level(&self, kind: StageKind) -> String {
        let simulated = if self.simulated { " [SIMULATED]" } else { "" };
        let kind = kind.to_string();
        let indent = " ".repeat(LABEL.saturating_sub(kind.chars().count() + simulated.len()));
        format!(
            "{kind}{simulated}{indent}{:>14}{:>14}{:>10}",
            "run 1", "run 2", "change"
        )
    }

    fn say_differences(&self, out: &mut String) {
        for difference in &self.workload_differences {
            let [one, other] = &difference.values;
            out.push_str(&format!(
                "  workload, {}: {} | {}\n",
                difference.field,
                name(&short(&value(one))),
                name(&short(&value(other)))
            ));
        }
        for difference in &self.differences {
            out.push_str(&format!("  {}\n", keyed(difference)));
        }
        out.push_str(&format!(
            "  {} equal.\n",
            match self.equal_settings {
                1 => "1 other thing is".to_owned(),
                n => format!("{n} other things are"),
            }
        ));
    }
}

fn described(result: &ComparedResult) -> String {
    let mut parts = vec![result.file.clone()];
    parts.extend(result.configuration.clone());
    parts.extend([
        result.url.clone(),
        result.engine.clone(),
        result.model.clone(),
    ]);
    match &result.outcome {
        MeterOutcome::Complete => {}
        MeterOutcome::Cancelled => parts.push("stopped before its end".to_owned()),
        MeterOutcome::Failed { reason } => parts.push(format!("failed: {reason}")),
    }
    if result.simulated {
        parts.push("SIMULATED".to_owned());
    }
    name(&parts.join(" · ")).into_owned()
}

fn keyed(difference: &Difference) -> String {
    let values: Vec<String> = difference
        .values
        .iter()
        .map(|value| {
            value
                .as_deref()
                .map_or_else(|| "not known".to_owned(), short)
        })
        .collect();
    name(&format!("{}: {}", difference.key, values.join(" | "))).into_owned()
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn short(text: &str) -> String {
    if text.chars().count() <= LONGEST_VALUE {
        return text.to_owned();
    }
    let begin: String = text.chars().take(LONGEST_VALUE).collect();
    format!("{begin}…")
}

fn figures(row: &CompareRow) -> String {
    let cell = |place: usize| row.cells.get(place).copied().flatten();
    let shown = |cell: Option<CompareCell>| {
        cell.map_or_else(
            || text::NO_FIGURE.to_owned(),
            |cell| {
                let mark = if cell.doubtful { "!" } else { "" };
                format!("{}{mark}", text::figure(cell.estimate.mean))
            },
        )
    };
    let ratio = cell(1)
        .and_then(|cell| cell.ratio)
        .map_or_else(|| text::NO_FIGURE.to_owned(), text::change);
    let metric = format!("  {}, {}", row.metric, row.unit);
    format!(
        "{metric:<LABEL$}{:>14}{:>14}{ratio:>10}\n",
        shown(cell(0)),
        shown(cell(1))
    )
}
