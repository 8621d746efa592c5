//! Changes carried out on a profile.

use super::{
    change::{Change, ChangeError},
    flags::{Flags, Name, PlainFlags, Row, Takes, is_speculation, rows},
};
use crate::{
    engine::EngineKind,
    profile::{ProfileSpec, is_flag},
};

const DRAFTER: &str = "{DRAFTER}";
const RANKS: &str = "{TP}";

/// The profile with the changes made, one after another, by the spelling of flags
/// alone ([`PlainFlags`]).
///
/// # Errors
/// The first change that cannot be made, or what is wrong with the changed profile.
pub fn apply(spec: &ProfileSpec, changes: &[Change]) -> Result<ProfileSpec, ChangeError> {
    apply_with(spec, changes, &PlainFlags)
}

/// The profile with the changes made, one after another, for an engine whose flags are
/// known. Whatever no change is about stays where it is. A flag that stands there
/// already keeps its place and its spelling, repetitions of it go, a new one comes to
/// the end.
///
/// Words that belong to no flag stand in front in every usual command. Behind a flag they
/// are told from its values only by whoever knows the flag.
///
/// # Errors
/// The first change that cannot be made, or what is wrong with the changed profile.
pub fn apply_with(
    spec: &ProfileSpec,
    changes: &[Change],
    flags: &dyn Flags,
) -> Result<ProfileSpec, ChangeError> {
    let mut changed = spec.clone();
    for change in changes {
        change.check()?;
        make(&mut changed, change, flags)?;
    }
    changed.check()?;
    Ok(changed)
}

/// Does the command use this placeholder, in an argument or a variable?
pub(super) fn uses(spec: &ProfileSpec, placeholder: &str) -> bool {
    spec.arguments
        .iter()
        .chain(spec.environment.iter().map(|(_, value)| value))
        .any(|text| text.contains(placeholder))
}

/// The drafter, if the command uses one.
pub(super) fn drafter_of(spec: &ProfileSpec) -> Option<&str> {
    spec.parameters
        .drafter
        .as_deref()
        .filter(|model| !model.trim().is_empty() && uses(spec, DRAFTER))
}

/// Does the command take its ranks of tensor parallelism from the parameter?
pub(super) fn uses_ranks(spec: &ProfileSpec) -> bool {
    uses(spec, RANKS)
}

fn make(spec: &mut ProfileSpec, change: &Change, flags: &dyn Flags) -> Result<(), ChangeError> {
    match change {
        Change::SetArgument { flag, value } => {
            let values: Vec<String> = value.iter().cloned().collect();
            check_count(spec.engine, flag, values.len(), flags)?;
            set_argument(spec, flag, &values, flags);
        }
        Change::SetArgumentValues { flag, values } => {
            check_count(spec.engine, flag, values.len(), flags)?;
            set_argument(spec, flag, values, flags);
        }
        Change::RemoveArgument { flag } => {
            let usual = Name::of(flag, spec.engine, flags).usual;
            remove_rows(spec, flags, |row, _| row.is(&usual));
        }
        Change::SetVariable { name, value } => set_variable(spec, name, value),
        Change::RemoveVariable { name } => spec.environment.retain(|(other, _)| other != name),
        Change::Drafter { model: Some(model) } => {
            spec.parameters.drafter = Some(model.clone());
            make_place_for_drafter(spec, flags)?;
        }
        Change::Drafter { model: None } => {
            spec.parameters.drafter = None;
            remove_rows(spec, flags, |row, words| {
                is_speculation(row.spelled(words))
                    || words[row.start..row.end]
                        .iter()
                        .any(|word| word.contains(DRAFTER))
            });
            spec.environment
                .retain(|(_, value)| !value.contains(DRAFTER));
        }
        Change::TensorParallel { ranks } => {
            if spec.parameters.tensor_parallel != *ranks && !uses_ranks(spec) {
                return Err(ChangeError::NoTensorParallel);
            }
            spec.parameters.tensor_parallel = *ranks;
        }
    }
    Ok(())
}

fn check_count(
    engine: EngineKind,
    flag: &str,
    values: usize,
    flags: &dyn Flags,
) -> Result<(), ChangeError> {
    let most = match flags.takes(engine, flag) {
        Takes::Nothing => 0,
        Takes::One => 1,
        Takes::Many => usize::MAX,
    };
    if values > most {
        return Err(ChangeError::TooManyValues(flag.to_owned()));
    }
    Ok(())
}

fn set_variable(spec: &mut ProfileSpec, name: &str, value: &str) {
    let mut found = false;
    spec.environment.retain_mut(|(other, old)| {
        if other != name {
            return true;
        }
        value.clone_into(old);
        !std::mem::replace(&mut found, true)
    });
    if !found {
        spec.environment.push((name.to_owned(), value.to_owned()));
    }
}

fn set_argument(spec: &mut ProfileSpec, flag: &str, values: &[String], flags: &dyn Flags) {
    let name = Name::of(flag, spec.engine, flags);
    let old = std::mem::take(&mut spec.arguments);
    let all = rows(&old, spec.engine, flags);
    let first = all.iter().position(|row| row.is(&name.usual));
    let mut arguments = Vec::with_capacity(old.len() + 2);
    let mut placed = false;
    for (index, row) in all.iter().enumerate() {
        if !row.is(&name.usual) {
            arguments.extend_from_slice(&old[row.start..row.end]);
        } else if first == Some(index) {
            let spelled = if row.name.as_ref() == Some(&name) {
                row.spelled(&old)
            } else {
                flag
            };
            let new = argument_words(spelled, values, row.joined);
            // A word of its own that follows would be read as a value of the flag.
            let before_bare = all[index + 1..]
                .iter()
                .find(|next| !next.is(&name.usual))
                .is_some_and(|next| next.name.is_none());
            if !before_bare || new[0] != spelled {
                arguments.extend(new);
                placed = true;
            }
        }
    }
    if !placed {
        arguments.extend(argument_words(flag, values, false));
    }
    spec.arguments = arguments;
}

/// A flag with its values as words. `=` is kept where it stood, and needed where the
/// value looks like a flag.
fn argument_words(flag: &str, values: &[String], joined: bool) -> Vec<String> {
    match values {
        [value] if joined || is_flag(value) => vec![format!("{flag}={value}")],
        _ => std::iter::once(flag.to_owned())
            .chain(values.iter().cloned())
            .collect(),
    }
}

fn remove_rows(spec: &mut ProfileSpec, flags: &dyn Flags, goes: impl Fn(&Row, &[String]) -> bool) {
    let old = std::mem::take(&mut spec.arguments);
    spec.arguments = rows(&old, spec.engine, flags)
        .iter()
        .filter(|row| row.name.is_none() || !goes(row, &old))
        .flat_map(|row| old[row.start..row.end].iter().cloned())
        .collect();
}

/// Has the command name `{DRAFTER}`: in place of the drafter that it names, else with
/// the usual arguments.
fn make_place_for_drafter(spec: &mut ProfileSpec, flags: &dyn Flags) -> Result<(), ChangeError> {
    if uses(spec, DRAFTER) {
        return Ok(());
    }
    let (names, usual): (&[&str], &[&str]) = match spec.engine {
        EngineKind::Sglang => (
            &[
                "--speculative-draft-model-path",
                "--speculative-draft-model",
            ],
            &[
                "--speculative-algorithm",
                "EAGLE3",
                "--speculative-draft-model-path",
                DRAFTER,
                "--speculative-num-steps",
                "3",
                "--speculative-eagle-topk",
                "1",
                "--speculative-num-draft-tokens",
                "4",
            ],
        ),
        EngineKind::Vllm => (
            &["--spec-model"],
            &[
                "--speculative-config",
                r#"{"method":"eagle3","model":"{DRAFTER}","num_speculative_tokens":3}"#,
            ],
        ),
        EngineKind::Other => return Err(ChangeError::NoSpeculation),
    };
    let all = rows(&spec.arguments, spec.engine, flags);
    let named = all
        .iter()
        .find(|row| row.name.is_some() && names.contains(&row.spelled(&spec.arguments)));
    if let Some(row) = named {
        let flag = row.spelled(&spec.arguments).to_owned();
        set_argument(spec, &flag, &[DRAFTER.to_owned()], flags);
        return Ok(());
    }
    for row in &all {
        let values = row.values(&spec.arguments);
        if let (Some(_), [config]) = (&row.name, values.as_slice())
            && is_speculation(row.spelled(&spec.arguments))
            && let Some(config) = with_drafter(config)
        {
            let flag = row.spelled(&spec.arguments).to_owned();
            set_argument(spec, &flag, &[config], flags);
            return Ok(());
        }
    }
    remove_rows(spec, flags, |row, words| is_speculation(row.spelled(words)));
    spec.arguments
        .extend(usual.iter().map(|word| (*word).to_owned()));
    Ok(())
}

/// vLLM's speculative configuration with the placeholder in place of its drafter; none
/// if it is no such configuration or has no drafter.
fn with_drafter(config: &str) -> Option<String> {
    let mut config: serde_json::Value = serde_json::from_str(config).ok()?;
    let model = config.get_mut("model")?;
    *model = DRAFTER.into();
    Some(config.to_string())
}

#[cfg(test)]
mod tests;
