//! Why an experiment cannot be planned.

use super::{
    ablation::{LONGEST_LABEL, MOST_STEPS},
    change::ChangeError,
    design::MOST_CELLS,
    spec::{MOST_LAUNCHES_PER_CELL, MOST_TRIALS},
};
use crate::{text, workload::WorkloadError};

/// Why an experiment cannot be planned. Each says cause and remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExperimentError {
    /// Nothing to call it by, or too much.
    #[error("The experiment needs a name of at most {LONGEST_LABEL} characters on one line.")]
    Name,
    /// A factor, level or step without a usable name.
    #[error(
        "`{0}` cannot be the name of a factor, level, step or profile: it is blank, longer than {LONGEST_LABEL} characters or not on one line."
    )]
    Label(String),
    /// Two of one name.
    #[error("`{0}` is there twice. Give each factor, level, step and profile a name of its own.")]
    Twice(String),
    /// Nothing is varied.
    #[error("Nothing is varied. Add a factor with two levels or more, or a step.")]
    NothingVaried,
    /// One level is no choice.
    #[error("`{0}` has one level, so nothing is compared. Add a level, or remove the factor.")]
    OneLevel(String),
    /// Two levels that do the same.
    #[error("The levels `{1}` and `{2}` of `{0}` change the same. Remove one of the two.")]
    SameLevels(String, String, String),
    /// A step that changes nothing.
    #[error("The step `{0}` changes nothing in this profile. Remove it.")]
    EmptyStep(String),
    /// Too many steps.
    #[error(
        "{0} steps are too many: an ablation takes up to {MOST_STEPS}. Put some together, such as all NCCL variables."
    )]
    Steps(usize),
    /// Two factors or steps about one thing.
    #[error(
        "`{0}` and `{1}` both change {2}, so what each does cannot be told apart. Put them together, or leave one out."
    )]
    Overlap(String, String, String),
    /// A change within a factor or step cannot be made.
    #[error("In `{at}`: {error}")]
    Change {
        /// The cell, level or step.
        at: String,
        /// What is wrong.
        error: ChangeError,
    },
    /// A secret that was masked.
    #[error(
        "In `{at}`: {what} holds a masked secret, which no program can be started with. Put the secret into a file on the host."
    )]
    Masked {
        /// The cell.
        at: String,
        /// Where.
        what: String,
    },
    /// Too many cells.
    #[error("{0} configurations are too many: choose at most {MOST_CELLS}. Leave levels out.")]
    Cells(u64),
    /// Fewer than two cells.
    #[error(
        "All configurations come to the same command, so nothing is compared. Choose levels that change something."
    )]
    OneCell,
    /// Fewer than two profiles.
    #[error("Choose two profiles or more; one alone is measured without an experiment.")]
    Profiles,
    /// Too few or too many launches.
    #[error(
        "{0} launches of each configuration cannot be made. Choose 1 to {MOST_LAUNCHES_PER_CELL}; three or more show the spread between launches."
    )]
    Launches(u32),
    /// Too many trials.
    #[error(
        "{0} launches in all are too many: an experiment takes up to {MOST_TRIALS}. Choose fewer configurations or fewer launches of each."
    )]
    Trials(u64),
    /// Looks in disorder.
    #[error(
        "The looks of an early stop must rise and lie between 2 launches and one before the last: one launch shows no spread, and after the last nothing is left to stop."
    )]
    Looks,
    /// Not a share.
    #[error(
        "A smallest effect of {} is not possible. Give more than 0 % and at most 50 %, such as 2 %.",
        text::percent(*.0)
    )]
    RelevantEffect(f64),
    /// Not a budget.
    #[error("A budget of {0} GPU minutes is not possible. Give more than 0, or none.")]
    Budget(f64),
    /// The workload cannot be run.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}
