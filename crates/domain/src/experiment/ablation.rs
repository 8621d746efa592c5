//! Ablation: what each step from one configuration to another is worth.

use serde::{Deserialize, Serialize};

use super::{change::Change, flags::is_speculation};

/// Most steps of an ablation: beyond, its cells are more than a host has time for.
pub const MOST_STEPS: usize = 8;
/// Longest label, in characters.
pub(super) const LONGEST_LABEL: usize = 80;

/// Changes that are made together and credited together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it is called, such as `NCCL variables`.
    pub label: String,
    /// What it changes, one change or more.
    pub changes: Vec<Change>,
}

/// Which steps a cell has: bit *i* for step *i*.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StepSet(pub u32);

impl StepSet {
    /// No step: configuration A.
    pub const NONE: Self = Self(0);

    /// All of `count` steps: configuration B.
    #[must_use]
    pub const fn all(count: u32) -> Self {
        Self(if count >= 32 {
            u32::MAX
        } else {
            (1 << count) - 1
        })
    }

    /// Is the step one of them? Steps beyond the 32nd never are.
    #[must_use]
    pub const fn has(self, step: u32) -> bool {
        step < 32 && self.0 & (1 << step) != 0
    }

    /// With this step.
    #[must_use]
    pub const fn with(self, step: u32) -> Self {
        Self(self.0 | if step < 32 { 1 << step } else { 0 })
    }

    /// Without this step.
    #[must_use]
    pub const fn without(self, step: u32) -> Self {
        Self(self.0 & !if step < 32 { 1 << step } else { 0 })
    }

    /// The steps in it, in order.
    pub fn steps(self) -> impl Iterator<Item = u32> {
        (0..32).filter(move |step| self.has(*step))
    }
}

/// The sets of steps that an ablation measures, each once: A (none), B (all), the chain
/// between them (the first, the first two, …), each step alone on A, each step left out
/// of B. For *n* ≥ 3 steps these are 3*n* − 1.
#[must_use]
pub fn step_sets(count: u32) -> Vec<StepSet> {
    let all = StepSet::all(count);
    let chain = (1..count).map(StepSet::all);
    let alone = (0..count).map(|step| StepSet::NONE.with(step));
    let left_out = (0..count).map(|step| all.without(step));
    let mut sets: Vec<StepSet> = Vec::new();
    for set in [StepSet::NONE, all]
        .into_iter()
        .chain(chain)
        .chain(alone)
        .chain(left_out)
    {
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    sets
}

/// What a cell with these steps is called: `A`, `A + s1 + s2`, `B`, `B without s1`.
pub(super) fn title(set: StepSet, steps: &[Step]) -> String {
    let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let label = |step: u32| steps.get(step as usize).map_or("", |step| &step.label);
    let all = StepSet::all(count);
    let missing: Vec<u32> = StepSet(all.0 & !set.0).steps().collect();
    match missing.as_slice() {
        [] => "B".to_owned(),
        // The last step left out is the chain before it.
        [one] if *one + 1 != count => format!("B without {}", label(*one)),
        _ => set
            .steps()
            .fold("A".to_owned(), |text, step| text + " + " + label(step)),
    }
}

/// Changes put together as steps, in their order. What belongs to speculation is one
/// step, because its arguments mean nothing without each other. With `by_kind`, NCCL's
/// variables are one step too; every other change is a step of its own.
#[must_use]
pub fn steps_of(changes: &[Change], by_kind: bool) -> Vec<Step> {
    let mut steps: Vec<(Kind, Step)> = Vec::new();
    for change in changes {
        let kind = kind_of(change, by_kind);
        let same = |(other, _): &&mut (Kind, Step)| kind != Kind::Single && *other == kind;
        if let Some((_, step)) = steps.iter_mut().find(same) {
            step.changes.push(change.clone());
            continue;
        }
        let step = Step {
            label: String::new(),
            changes: vec![change.clone()],
        };
        steps.push((kind, step));
    }
    let mut labelled: Vec<Step> = Vec::new();
    for (kind, mut step) in steps {
        let text = match (kind, step.changes.as_slice()) {
            (_, [change]) => change.to_string(),
            (Kind::Nccl, _) => "NCCL variables".to_owned(),
            (_, changes) => changes
                .iter()
                .find(|change| matches!(change, Change::Drafter { .. }))
                .map_or_else(|| "speculation".to_owned(), ToString::to_string),
        };
        step.label = unique(&text, &labelled);
        labelled.push(step);
    }
    labelled
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Speculation,
    Nccl,
    Single,
}

fn kind_of(change: &Change, by_kind: bool) -> Kind {
    match change {
        Change::Drafter { .. } => Kind::Speculation,
        Change::SetArgument { flag, .. }
        | Change::SetArgumentValues { flag, .. }
        | Change::RemoveArgument { flag }
            if is_speculation(flag) =>
        {
            Kind::Speculation
        }
        Change::SetVariable { name, .. } | Change::RemoveVariable { name }
            if by_kind && name.starts_with("NCCL_") =>
        {
            Kind::Nccl
        }
        _ => Kind::Single,
    }
}

/// The text, short enough, and with a number where it is taken.
fn unique(text: &str, taken: &[Step]) -> String {
    let short = |text: &str, room: usize| -> String {
        if text.chars().count() <= room {
            return text.to_owned();
        }
        text.chars()
            .take(room.saturating_sub(1))
            .chain(['…'])
            .collect()
    };
    let is_free = |label: &String| !taken.iter().any(|step| step.label == *label);
    std::iter::once(short(text, LONGEST_LABEL))
        .chain((2..).map(|number| format!("{} ({number})", short(text, LONGEST_LABEL - 8))))
        .find(is_free)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{
        super::samples::{set, switch, variable},
        *,
    };

    fn steps(labels: &[&str]) -> Vec<Step> {
        labels
            .iter()
            .map(|label| Step {
                label: (*label).to_owned(),
                changes: vec![switch(&format!("--{label}"))],
            })
            .collect()
    }

    fn titles(labels: &[&str]) -> Vec<String> {
        let steps = steps(labels);
        step_sets(u32::try_from(labels.len()).expect("few"))
            .into_iter()
            .map(|set| title(set, &steps))
            .collect()
    }

    #[test]
    fn every_cell_of_an_ablation_is_named_once() {
        assert_eq!(titles(&["x"]), ["A", "B"]);
        assert_eq!(titles(&["x", "y"]), ["A", "B", "A + x", "B without x"]);
        assert_eq!(
            titles(&["x", "y", "z"]),
            [
                "A",
                "B",
                "A + x",
                "A + x + y",
                "A + y",
                "A + z",
                "B without x",
                "B without y",
            ]
        );
    }

    #[test]
    fn the_number_of_cells_grows_with_the_steps_alone() {
        for count in 3..=8 {
            let sets = step_sets(count);
            assert_eq!(sets.len(), 3 * count as usize - 1);
            for step in 0..count {
                assert!(sets.contains(&StepSet::NONE.with(step)));
                assert!(sets.contains(&StepSet::all(count).without(step)));
                assert!(sets.contains(&StepSet::all(step + 1)));
            }
        }
    }

    #[test]
    fn sets_know_their_steps() {
        let set = StepSet::NONE.with(0).with(2).with(40);
        assert_eq!(set.steps().collect::<Vec<_>>(), [0, 2]);
        assert!(set.has(2) && !set.has(1) && !set.has(99));
        assert_eq!(set.without(2), StepSet::all(1));
        assert_eq!(StepSet::all(40), StepSet(u32::MAX));
        assert_eq!(serde_json::to_string(&set).expect("JSON"), "5");
    }

    #[test]
    fn changes_are_grouped_by_kind_or_not() {
        let changes = [
            Change::Drafter {
                model: Some("/d".to_owned()),
            },
            set("--x", "1"),
            set("--speculative-num-steps", "5"),
            variable("NCCL_PROTO", "LL"),
            variable("OTHER", "1"),
            variable("NCCL_ALGO", "Ring"),
        ];
        let labels = |by_kind| -> Vec<String> {
            steps_of(&changes, by_kind)
                .into_iter()
                .map(|step| step.label)
                .collect()
        };
        assert_eq!(
            labels(true),
            ["drafter /d", "--x 1", "NCCL variables", "OTHER=1"]
        );
        assert_eq!(
            labels(false),
            [
                "drafter /d",
                "--x 1",
                "NCCL_PROTO=LL",
                "OTHER=1",
                "NCCL_ALGO=Ring"
            ]
        );
        let grouped: usize = steps_of(&changes, true)
            .iter()
            .map(|step| step.changes.len())
            .sum();
        assert_eq!(grouped, changes.len());
    }

    #[test]
    fn labels_are_short_and_their_own() {
        let long = "x".repeat(200);
        let changes = [
            set("--a", &format!("{long}1")),
            set("--a", &format!("{long}2")),
        ];
        let steps = steps_of(&changes, true);
        assert_ne!(steps[0].label, steps[1].label);
        for step in steps {
            assert!(step.label.chars().count() <= LONGEST_LABEL);
        }
    }
}
