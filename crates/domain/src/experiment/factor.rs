//! Factors: what is varied, and the levels it takes.

use serde::{Deserialize, Serialize};

use super::change::Change;

/// What must be known before LL128 is forced.
pub const LL128_CAUTION: &str = "NCCL leaves LL128 out where the hardware is not known to carry it. Forced there, it can corrupt data: check the answers before the speed.";

/// Channels of NCCL worth trying: fewer disturb the engine's kernels less, more carry
/// more.
const CHANNELS: [u32; 5] = [1, 2, 4, 8, 16];

/// Something that is varied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// What it is called, such as `NCCL_PROTO`.
    pub name: String,
    /// Its levels, two or more; the first is the one that others are compared with.
    pub levels: Vec<Level>,
}

/// One level of a factor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// What it is called, such as `LL`.
    pub label: String,
    /// What it changes; nothing leaves the profile as it is.
    pub changes: Vec<Change>,
}

/// The factors of NCCL's search space: protocol, algorithm and channels. The first
/// level of each takes the variable out of the profile, so that NCCL chooses.
///
/// The tree is asked for as `allreduce:tree`: forced for every collective, it would
/// leave those that have no tree without an algorithm. The form for a single
/// collective needs NCCL 2.24. LL128 has its [caution](LL128_CAUTION).
///
/// Concurrency is no factor but part of the workload: each launch is measured at all of
/// its levels.
#[must_use]
pub fn nccl_factors() -> Vec<Factor> {
    vec![
        over_variable(
            "NCCL_PROTO",
            "as NCCL chooses",
            &[("LL", "LL"), ("LL128", "LL128"), ("Simple", "Simple")],
        ),
        over_variable(
            "NCCL_ALGO",
            "as NCCL chooses",
            &[("Ring", "Ring"), ("Tree", "allreduce:tree")],
        ),
        channels(),
    ]
}

/// Speculation off and on with this drafter.
#[must_use]
pub fn drafter_factor(drafter: &str) -> Factor {
    let level = |label: &str, model: Option<String>| Level {
        label: label.to_owned(),
        changes: vec![Change::Drafter { model }],
    };
    Factor {
        name: "drafter".to_owned(),
        levels: vec![
            level("off", None),
            level("on", Some(drafter.trim().to_owned())),
        ],
    }
}

fn over_variable(name: &str, unset: &str, values: &[(&str, &str)]) -> Factor {
    let first = Level {
        label: unset.to_owned(),
        changes: vec![Change::RemoveVariable {
            name: name.to_owned(),
        }],
    };
    let others = values.iter().map(|(label, value)| Level {
        label: (*label).to_owned(),
        changes: vec![Change::SetVariable {
            name: name.to_owned(),
            value: (*value).to_owned(),
        }],
    });
    Factor {
        name: name.to_owned(),
        levels: std::iter::once(first).chain(others).collect(),
    }
}

fn channels() -> Factor {
    const BOUNDS: [&str; 2] = ["NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"];
    let first = Level {
        label: "as NCCL chooses".to_owned(),
        changes: BOUNDS
            .map(|name| Change::RemoveVariable {
                name: name.to_owned(),
            })
            .to_vec(),
    };
    // Both bounds alike, so that the number is fixed and not only limited.
    let others = CHANNELS.iter().map(|number| Level {
        label: number.to_string(),
        changes: BOUNDS
            .map(|name| Change::SetVariable {
                name: name.to_owned(),
                value: number.to_string(),
            })
            .to_vec(),
    });
    Factor {
        name: "channels".to_owned(),
        levels: std::iter::once(first).chain(others).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{apply, samples::sglang},
        *,
    };

    #[test]
    fn the_first_level_leaves_the_choice_to_nccl() {
        let mut base = sglang("");
        base.environment = vec![
            ("NCCL_PROTO".to_owned(), "LL".to_owned()),
            ("NCCL_ALGO".to_owned(), "Ring".to_owned()),
            ("NCCL_MAX_NCHANNELS".to_owned(), "16".to_owned()),
        ];
        let first: Vec<Change> = nccl_factors()
            .into_iter()
            .flat_map(|factor| factor.levels[0].changes.clone())
            .collect();
        let free = apply(&base, &first).expect("a profile");
        assert_eq!(free.environment, []);
    }

    #[test]
    fn every_level_says_what_it_is() {
        let factors = nccl_factors();
        let labels: Vec<Vec<&str>> = factors
            .iter()
            .map(|factor| {
                factor
                    .levels
                    .iter()
                    .map(|level| level.label.as_str())
                    .collect()
            })
            .collect();
        assert_eq!(labels[0], ["as NCCL chooses", "LL", "LL128", "Simple"]);
        assert_eq!(labels[1], ["as NCCL chooses", "Ring", "Tree"]);
        assert_eq!(labels[2], ["as NCCL chooses", "1", "2", "4", "8", "16"]);
        let sixteen = apply(&sglang(""), &factors[2].levels[5].changes).expect("a profile");
        assert_eq!(
            sixteen.environment,
            [
                ("NCCL_MIN_NCHANNELS".to_owned(), "16".to_owned()),
                ("NCCL_MAX_NCHANNELS".to_owned(), "16".to_owned()),
            ]
        );
        let drafter = drafter_factor(" /d ");
        let on = apply(&sglang(""), &drafter.levels[1].changes).expect("a profile");
        assert_eq!(on.parameters.drafter.as_deref(), Some("/d"));
    }
}
