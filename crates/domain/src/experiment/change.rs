//! A single change to a profile.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::flags::{Flags, Name, dashes, is_speculation};
use crate::{
    engine::EngineKind,
    profile::{ProfileError, is_flag},
    secrets::{masked_text, masked_variable, masked_words},
};

/// One thing about a profile that an experiment varies. [`apply`](super::apply())
/// carries it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum Change {
    /// The flag stands in the command once, with this value; a switch has none.
    SetArgument {
        /// The flag, such as `--attention-backend`.
        flag: String,
        /// Its value.
        value: Option<String>,
    },
    /// The flag stands in the command once, with several values behind it.
    SetArgumentValues {
        /// The flag.
        flag: String,
        /// Its values, one or more.
        values: Vec<String>,
    },
    /// The flag stands nowhere in the command, neither as `--no-…`: the engine does
    /// what it does without it.
    RemoveArgument {
        /// The flag.
        flag: String,
    },
    /// The variable has this value.
    SetVariable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// The profile does not set the variable; the host may.
    RemoveVariable {
        /// Its name.
        name: String,
    },
    /// The draft model of speculative decoding. With none, everything that belongs to
    /// speculation leaves the command. Where the command has no place for a drafter, it
    /// gets EAGLE-3's usual arguments (3 steps, 1 branch, 4 draft tokens in SGLang; 3
    /// tokens in vLLM). SGLang then runs at most 48 requests at once unless
    /// `--max-running-requests` is given.
    Drafter {
        /// Its path on the host or its name.
        model: Option<String>,
    },
    /// Ranks of tensor parallelism, which the command takes from `{TP}`.
    TensorParallel {
        /// How many.
        ranks: u32,
    },
}

/// Why a change cannot be made. Each says cause and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Not a flag.
    #[error(
        "`{0}` is not a flag. Type it with its dashes and without a value, such as --attention-backend."
    )]
    Flag(String),
    /// How an engine is found again is no factor.
    #[error(
        "{0} says where the engine is found again, and changes no speed. Leave it to the profile's parameters."
    )]
    Address(String),
    /// Another model gives other answers.
    #[error(
        "{0} names the model. Another model is another subject: make a profile of it and compare the profiles."
    )]
    Model(String),
    /// Several values, of which one would be read as a flag, or none at all.
    #[error(
        "The values of {0} cannot be given one after another: there is none, or one of them looks like a flag. Use a single value, which is written behind `=`."
    )]
    Values(String),
    /// A switch with a value, or several values where one is taken.
    #[error(
        "{0} does not take that many values: what is too much would be read as a word of its own. Remove it."
    )]
    TooManyValues(String),
    /// Not a variable's name.
    #[error(
        "`{0}` cannot be a variable's name: it is blank or holds `=`. Type the name alone, the value beside it."
    )]
    Variable(String),
    /// Blank.
    #[error("The drafter is not named. Type its path on the host or its name on a hub.")]
    NoDrafter,
    /// The engine's flags for speculation are not known.
    #[error(
        "The command has no place for a drafter, and how this engine is told of one is not known here. Put {{DRAFTER}} into the profile's arguments."
    )]
    NoSpeculation,
    /// The command does not use the parameter.
    #[error(
        "The command does not use {{TP}}, so tensor parallelism would stay as it is. Put {{TP}} into the profile's arguments."
    )]
    NoTensorParallel,
    /// The changed profile cannot be kept.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// What a change is about. Two changes with one target undo each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Argument(String),
    Variable(String),
    Drafter,
    TensorParallel,
}

impl Target {
    /// May not both be varied: which of the two holds would depend on their order.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        const RANKS: [&str; 4] = ["--tp-size", "--tp", "-tp", "--tensor-parallel-size"];
        match (self, other) {
            (Self::Drafter, Self::Argument(flag)) | (Self::Argument(flag), Self::Drafter) => {
                is_speculation(flag)
            }
            (Self::TensorParallel, Self::Argument(flag))
            | (Self::Argument(flag), Self::TensorParallel) => RANKS.contains(&flag.as_str()),
            _ => self == other,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(name) | Self::Variable(name) => f.write_str(name),
            Self::Drafter => f.write_str("the drafter"),
            Self::TensorParallel => f.write_str("tensor parallelism"),
        }
    }
}

impl Change {
    /// Checks what can be known without a profile.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn check(&self) -> Result<(), ChangeError> {
        match self {
            Self::SetArgument { flag, value } => {
                check_flag(flag)?;
                check_off(flag, usize::from(value.is_some()))
            }
            Self::RemoveArgument { flag } => check_flag(flag),
            Self::SetArgumentValues { flag, values } => {
                check_flag(flag)?;
                check_off(flag, values.len())?;
                if values.is_empty() || values.iter().any(|value| is_flag(value)) {
                    return Err(ChangeError::Values(flag.clone()));
                }
                Ok(())
            }
            Self::SetVariable { name, .. } | Self::RemoveVariable { name } => {
                if name.trim().is_empty() || name.contains(['=', '\0']) {
                    return Err(ChangeError::Variable(name.clone()));
                }
                Ok(())
            }
            Self::Drafter { model: Some(model) } if model.trim().is_empty() => {
                Err(ChangeError::NoDrafter)
            }
            Self::Drafter { .. } => Ok(()),
            Self::TensorParallel { ranks } if !(1..=1024).contains(ranks) => {
                Err(ProfileError::TensorParallel.into())
            }
            Self::TensorParallel { .. } => Ok(()),
        }
    }

    /// What it is about.
    pub(super) fn target(&self, engine: EngineKind, flags: &dyn Flags) -> Target {
        match self {
            Self::SetArgument { flag, .. }
            | Self::SetArgumentValues { flag, .. }
            | Self::RemoveArgument { flag } => {
                Target::Argument(Name::of(flag, engine, flags).usual)
            }
            Self::SetVariable { name, .. } | Self::RemoveVariable { name } => {
                Target::Variable(name.clone())
            }
            Self::Drafter { .. } => Target::Drafter,
            Self::TensorParallel { .. } => Target::TensorParallel,
        }
    }
}

/// In words; values that look like secrets are masked.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let argument = |f: &mut fmt::Formatter<'_>, flag: &str, values: &[String]| {
            let words: Vec<String> = std::iter::once(flag.to_owned())
                .chain(values.iter().cloned())
                .collect();
            f.write_str(&masked_words(&words).join(" "))
        };
        match self {
            Self::SetArgument { flag, value } => {
                let values: Vec<String> = value.iter().cloned().collect();
                argument(f, flag, &values)
            }
            Self::SetArgumentValues { flag, values } => argument(f, flag, values),
            Self::RemoveArgument { flag } => write!(f, "without {flag}"),
            Self::SetVariable { name, value } => {
                write!(f, "{name}={}", masked_variable(name, value))
            }
            Self::RemoveVariable { name } => write!(f, "without {name}"),
            Self::Drafter { model: Some(model) } => {
                write!(f, "drafter {}", masked_text(model, None))
            }
            Self::Drafter { model: None } => f.write_str("without drafter"),
            Self::TensorParallel { ranks } => write!(f, "tensor parallelism {ranks}"),
        }
    }
}

/// Flags by which an engine is found again, and whose values the profile's parameters
/// are to give.
pub(super) fn is_address(usual: &str) -> bool {
    matches!(usual, "--port" | "--served-model-name")
}

/// Flags that name the model.
pub(super) fn is_model(usual: &str) -> bool {
    matches!(usual, "--model" | "--model-path")
}

fn check_flag(flag: &str) -> Result<(), ChangeError> {
    let bad = |c: char| c == '=' || c == '\0' || c.is_whitespace();
    let name = flag.trim_start_matches('-');
    if !is_flag(flag) || name.is_empty() || flag == "-m" || flag.contains(bad) {
        return Err(ChangeError::Flag(flag.chars().take(100).collect()));
    }
    let usual = dashes(flag);
    if is_address(&usual) {
        return Err(ChangeError::Address(usual));
    }
    if is_model(&usual) {
        return Err(ChangeError::Model(usual));
    }
    Ok(())
}

/// What is switched off has no value.
fn check_off(flag: &str, values: usize) -> Result<(), ChangeError> {
    if values > 0 && dashes(flag).starts_with("--no-") {
        return Err(ChangeError::TooManyValues(flag.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            flags::PlainFlags,
            samples::{set, switch, variable, without},
        },
        *,
    };
    use crate::secrets::SECRET_MASK;

    #[test]
    fn changes_read_as_people_say_them() {
        let cases = [
            (variable("NCCL_PROTO", "LL"), "NCCL_PROTO=LL"),
            (
                Change::RemoveVariable {
                    name: "NCCL_ALGO".to_owned(),
                },
                "without NCCL_ALGO",
            ),
            (without("--enable-x"), "without --enable-x"),
            (switch("--enable-x"), "--enable-x"),
            (set("--tp", "4"), "--tp 4"),
            (
                Change::SetArgumentValues {
                    flag: "--ids".to_owned(),
                    values: vec!["2".to_owned(), "30".to_owned()],
                },
                "--ids 2 30",
            ),
            (Change::Drafter { model: None }, "without drafter"),
            (
                Change::Drafter {
                    model: Some("/d".to_owned()),
                },
                "drafter /d",
            ),
            (Change::TensorParallel { ranks: 4 }, "tensor parallelism 4"),
        ];
        for (change, text) in cases {
            assert_eq!(change.to_string(), text);
            assert_eq!(change.check(), Ok(()), "{text}");
            let wire = serde_json::to_string(&change).expect("it serialises");
            assert_eq!(
                serde_json::from_str::<Change>(&wire).expect("it reads back"),
                change
            );
        }
        for secret in [
            variable("HF_TOKEN", "hf_abcdefghijklmnop"),
            set("--api-key", "sk-abcdefghijklmnop"),
            Change::Drafter {
                model: Some("s3://abcdefkey:abcdefsecret@store/d".to_owned()),
            },
        ] {
            let text = secret.to_string();
            assert!(
                text.contains(SECRET_MASK) && !text.contains("abcdef"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_change_is_refused() {
        for flag in ["", "x", "-", "--", "-1", "--a=b", "--a b", "-m", "--a\0"] {
            assert!(
                matches!(switch(flag).check(), Err(ChangeError::Flag(_))),
                "{flag}"
            );
        }
        for flag in ["--port", "--served_model_name"] {
            assert!(matches!(
                set(flag, "1").check(),
                Err(ChangeError::Address(_))
            ));
        }
        assert!(matches!(
            set("--model", "m").check(),
            Err(ChangeError::Model(_))
        ));
        for name in ["", " ", "A=B"] {
            assert!(matches!(
                variable(name, "1").check(),
                Err(ChangeError::Variable(_))
            ));
        }
        let values = |values: &[&str]| Change::SetArgumentValues {
            flag: "--ids".to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        assert!(values(&[]).check().is_err());
        assert!(values(&["1", "--x"]).check().is_err());
        assert_eq!(
            set("--no-x", "1").check(),
            Err(ChangeError::TooManyValues("--no-x".to_owned()))
        );
        assert_eq!(values(&["1", "-1"]).check(), Ok(()));
        let blank = Change::Drafter {
            model: Some(" ".to_owned()),
        };
        assert_eq!(blank.check(), Err(ChangeError::NoDrafter));
        assert!(Change::TensorParallel { ranks: 0 }.check().is_err());
    }

    #[test]
    fn changes_about_one_thing_overlap() {
        let target = |change: &Change| change.target(EngineKind::Vllm, &PlainFlags);
        let drafter = target(&Change::Drafter { model: None });
        assert!(drafter.overlaps(&target(&set("--speculative-num-steps", "5"))));
        assert!(target(&set("--spec_tokens", "3")).overlaps(&drafter));
        assert!(!drafter.overlaps(&target(&set("--tp", "3"))));
        assert!(target(&switch("--no-x")).overlaps(&target(&switch("--x"))));
        assert!(target(&set("--a_b", "1")).overlaps(&target(&without("--a-b"))));
        assert!(
            target(&Change::TensorParallel { ranks: 2 }).overlaps(&target(&set("--tp-size", "2")))
        );
        assert!(!target(&variable("X", "1")).overlaps(&target(&variable("Y", "1"))));
    }
}
