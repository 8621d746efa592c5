//! What the stages behind a configuration's figures wear, in its notes.

use std::mem::Discriminant;

use super::Column;
use crate::{metrics::StageFlag, workload::StageKind};

/// A kind of flag, in the words of the first stage that wears it, with the levels and
/// runs where it stands: numbers differ from stage to stage, what they mean does not.
struct Worn {
    kind: Discriminant<StageFlag>,
    sentence: String,
    levels: Vec<StageKind>,
    runs: Vec<String>,
}

/// A sentence for each kind of flag, those on which no verdict may rest first.
pub(super) fn notes<'a>(columns: impl Iterator<Item = &'a Column<'a>>) -> Vec<String> {
    let (mut doubtful, mut others) = (Vec::new(), Vec::new());
    for column in columns {
        let run = column.run.summary.id.to_string();
        for stage in &column.run.stages {
            for flag in &stage.flags {
                let place = if flag.forbids_verdict() {
                    &mut doubtful
                } else {
                    &mut others
                };
                wear(place, flag, stage.kind, &run);
            }
        }
    }
    doubtful.into_iter().chain(others).map(Worn::said).collect()
}

fn wear(all: &mut Vec<Worn>, flag: &StageFlag, level: StageKind, run: &str) {
    let kind = std::mem::discriminant(flag);
    match all.iter_mut().find(|worn| worn.kind == kind) {
        Some(worn) => {
            if !worn.levels.contains(&level) {
                worn.levels.push(level);
            }
            if !worn.runs.iter().any(|known| known == run) {
                worn.runs.push(run.to_owned());
            }
        }
        None => all.push(Worn {
            kind,
            sentence: flag.sentence(),
            levels: vec![level],
            runs: vec![run.to_owned()],
        }),
    }
}

impl Worn {
    /// `Flagged in runs 3, 4 at single stream, C = 4: …`
    fn said(mut self) -> String {
        self.levels.sort_unstable();
        let levels: Vec<String> = self.levels.iter().map(ToString::to_string).collect();
        let word = if self.runs.len() == 1 { "run" } else { "runs" };
        format!(
            "Flagged in {word} {} at {}: {}",
            self.runs.join(", "),
            levels.join(", "),
            self.sentence
        )
    }
}
