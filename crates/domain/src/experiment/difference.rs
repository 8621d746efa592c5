//! What leads from one profile to another, change by change.

use super::{
    apply::{apply_with, drafter_of, uses_ranks},
    change::{Change, is_address, is_model},
    flags::{Flags, PlainFlags, Row, rows},
};
use crate::{
    engine::EngineKind,
    profile::{Activation, ProfileSpec},
    secrets::{masked_text, masked_words},
};

/// Why two profiles cannot be taken apart into changes. Each names what it is, and says
/// what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DifferenceError {
    /// vLLM against SGLang.
    #[error(
        "One profile starts {from}, the other {to}. Everything differs between two engines, so no single change can be credited; compare the two profiles instead."
    )]
    Engine {
        /// Of the first.
        from: EngineKind,
        /// Of the second.
        to: EngineKind,
    },
    /// Another program is another version.
    #[error(
        "The programs differ: `{from}` and `{to}`. That may be another version of the engine, which cannot be taken apart; compare the two profiles instead."
    )]
    Program {
        /// Of the first.
        from: String,
        /// Of the second.
        to: String,
    },
    /// Another environment is another version.
    #[error(
        "What is activated before differs: {from} and {to}. That may be another version of the engine, which cannot be taken apart; compare the two profiles instead."
    )]
    Activation {
        /// Of the first.
        from: String,
        /// Of the second.
        to: String,
    },
    /// Another working directory.
    #[error(
        "The working directories differ: {from} and {to}. What a program finds there cannot be taken apart; give both profiles the same one."
    )]
    Directory {
        /// Of the first.
        from: String,
        /// Of the second.
        to: String,
    },
    /// Another model.
    #[error(
        "The models differ: `{from}` and `{to}`. Another model is another subject, not a change; compare the two profiles instead."
    )]
    Model {
        /// Of the first.
        from: String,
        /// Of the second.
        to: String,
    },
    /// Words that belong to no flag.
    #[error(
        "The words that belong to no flag differ: `{from}` and `{to}`. What they do is not known here; give both profiles the same ones."
    )]
    Words {
        /// Of the first.
        from: String,
        /// Of the second.
        to: String,
    },
    /// A flag given more than once.
    #[error(
        "{flag} is given more than once in the second profile, and otherwise than in the first. Such a difference cannot be made by one change; give it once."
    )]
    Repeated {
        /// The flag.
        flag: String,
    },
    /// Several values, of which one looks like a flag.
    #[error(
        "The values of {flag} in the second profile cannot be set by one change. Write them as a single value behind `=`."
    )]
    Values {
        /// The flag.
        flag: String,
    },
}

/// The single changes that lead from one profile to the other, by the spelling of flags
/// alone ([`PlainFlags`]).
///
/// # Errors
/// What cannot be taken apart.
pub fn changes_between(
    from: &ProfileSpec,
    to: &ProfileSpec,
) -> Result<Vec<Change>, DifferenceError> {
    changes_between_with(from, to, &PlainFlags)
}

/// The single changes that lead from one profile to the other, for an engine whose flags
/// are known. Commands count, with their placeholders filled in: `{TP}` and `8` are the
/// same where the parameter is 8. The order of flags and variables is no difference, and
/// neither is how the engine is found again (port, served name), the ready time-out or
/// the notes, which stay those of `from`.
///
/// # Errors
/// What cannot be taken apart.
pub fn changes_between_with(
    from: &ProfileSpec,
    to: &ProfileSpec,
    flags: &dyn Flags,
) -> Result<Vec<Change>, DifferenceError> {
    same_subject(from, to)?;
    let mut now = from.clone();
    let mut changes = Vec::new();
    // Parameters first: the other values are read as the command has them afterwards.
    let ranks = to.parameters.tensor_parallel;
    let wanted = drafter_of(to);
    let of_parameters = [
        (uses_ranks(from) && uses_ranks(to) && ranks != from.parameters.tensor_parallel)
            .then_some(Change::TensorParallel { ranks }),
        (wanted != drafter_of(from)).then(|| Change::Drafter {
            model: wanted.map(str::to_owned),
        }),
    ];
    for change in of_parameters.into_iter().flatten() {
        // One that cannot be made shows as a difference of arguments.
        if let Ok(changed) = apply_with(&now, std::slice::from_ref(&change), flags) {
            now = changed;
            changes.push(change);
        }
    }
    let mut target = to.clone();
    target.parameters.port = now.parameters.port;
    target
        .parameters
        .served_name
        .clone_from(&now.parameters.served_name);
    let pair = Pair {
        now: &now,
        filled: now.command().arguments,
        rows: rows(&now.arguments, now.engine, flags),
        target: &target,
        target_filled: target.command().arguments,
        // The second profile's words with the first one's parameters.
        target_here: ProfileSpec {
            arguments: target.arguments.clone(),
            ..now.clone()
        }
        .command()
        .arguments,
        target_rows: rows(&target.arguments, target.engine, flags),
    };
    changes.extend(pair.arguments()?);
    changes.extend(variables(&now, &target));
    Ok(changes)
}

/// Is it one engine, one version, one model?
fn same_subject(from: &ProfileSpec, to: &ProfileSpec) -> Result<(), DifferenceError> {
    if from.engine != to.engine {
        return Err(DifferenceError::Engine {
            from: from.engine,
            to: to.engine,
        });
    }
    let (first, second) = (from.command(), to.command());
    if first.program != second.program {
        return Err(DifferenceError::Program {
            from: shown(&first.program),
            to: shown(&second.program),
        });
    }
    if from.activation != to.activation {
        return Err(DifferenceError::Activation {
            from: activation(&from.activation),
            to: activation(&to.activation),
        });
    }
    if first.directory != second.directory {
        let named = |directory: Option<&str>| directory.map_or("the home".to_owned(), shown);
        return Err(DifferenceError::Directory {
            from: named(first.directory.as_deref()),
            to: named(second.directory.as_deref()),
        });
    }
    if from.parameters.model != to.parameters.model {
        return Err(DifferenceError::Model {
            from: shown(&from.parameters.model),
            to: shown(&to.parameters.model),
        });
    }
    Ok(())
}

/// Addresses of models and images may carry a key.
fn shown(text: &str) -> String {
    masked_text(text, None)
}

fn activation(activation: &Activation) -> String {
    match activation {
        Activation::None => "nothing".to_owned(),
        Activation::VirtualEnvironment { path } => {
            format!("the virtual environment {}", shown(path))
        }
        Activation::Container { image, .. } => format!("a container of {}", shown(image)),
        // Its text may be long and hold secrets.
        Activation::Script { .. } => "a script".to_owned(),
    }
}

/// Two lists of arguments, as typed and with the placeholders filled in.
struct Pair<'a> {
    now: &'a ProfileSpec,
    filled: Vec<String>,
    rows: Vec<Row>,
    target: &'a ProfileSpec,
    target_filled: Vec<String>,
    target_here: Vec<String>,
    target_rows: Vec<Row>,
}

/// A flag's values, and whether it was switched off.
type Said = (bool, Vec<String>);

impl Pair<'_> {
    fn arguments(&self) -> Result<Vec<Change>, DifferenceError> {
        let (words, target_words) = (
            bare(&self.rows, &self.filled),
            bare(&self.target_rows, &self.target_filled),
        );
        if words != target_words {
            return Err(DifferenceError::Words {
                from: masked_words(&words).join(" "),
                to: masked_words(&target_words).join(" "),
            });
        }
        let mut changes = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for row in &self.target_rows {
            let Some(name) = &row.name else { continue };
            if seen.contains(&name.usual.as_str()) || is_address(&name.usual) {
                continue;
            }
            seen.push(&name.usual);
            let here = said(&self.rows, &self.filled, &name.usual);
            let there = said(&self.target_rows, &self.target_filled, &name.usual);
            if here == there {
                continue;
            }
            if is_model(&name.usual) {
                return Err(model(&here, &there));
            }
            changes.push(self.set(row, there.len())?);
        }
        let mut gone: Vec<&str> = Vec::new();
        for row in &self.rows {
            let Some(name) = &row.name else { continue };
            let usual = name.usual.as_str();
            if seen.contains(&usual) || gone.contains(&usual) || is_address(usual) {
                continue;
            }
            if is_model(usual) {
                return Err(model(&said(&self.rows, &self.filled, usual), &[]));
            }
            gone.push(usual);
            changes.push(Change::RemoveArgument {
                flag: row.spelled(&self.now.arguments).to_owned(),
            });
        }
        Ok(changes)
    }

    /// The change that makes the flag what this row of the second profile says.
    fn set(&self, row: &Row, times: usize) -> Result<Change, DifferenceError> {
        let flag = row.spelled(&self.target.arguments).to_owned();
        if times > 1 {
            return Err(DifferenceError::Repeated { flag });
        }
        // A placeholder stays one where it means the same here as there.
        let means_the_same = row.values(&self.target_here) == row.values(&self.target_filled);
        let values = row.values(if means_the_same {
            &self.target.arguments
        } else {
            &self.target_filled
        });
        let change = match values.as_slice() {
            [] | [_] => Change::SetArgument {
                flag,
                value: values.into_iter().next(),
            },
            _ => Change::SetArgumentValues { flag, values },
        };
        change.check().map_err(|_| DifferenceError::Values {
            flag: row.spelled(&self.target.arguments).to_owned(),
        })?;
        Ok(change)
    }
}

/// The words that belong to no flag.
fn bare(rows: &[Row], words: &[String]) -> Vec<String> {
    rows.iter()
        .filter(|row| row.name.is_none())
        .flat_map(|row| words[row.start..row.end].iter().cloned())
        .collect()
}

/// What is said of a flag, each time it stands there.
fn said(rows: &[Row], words: &[String], usual: &str) -> Vec<Said> {
    rows.iter()
        .filter_map(|row| {
            let name = row.name.as_ref().filter(|name| name.usual == usual)?;
            Some((name.off, row.values(words)))
        })
        .collect()
}

fn model(from: &[Said], to: &[Said]) -> DifferenceError {
    let text = |all: &[Said]| {
        let values: Vec<String> = all.iter().flat_map(|(_, values)| values.clone()).collect();
        shown(&values.join(" "))
    };
    DifferenceError::Model {
        from: text(from),
        to: text(to),
    }
}

fn variables(now: &ProfileSpec, target: &ProfileSpec) -> Vec<Change> {
    let (here, there) = (now.command(), target.command());
    let with_here = ProfileSpec {
        environment: target.environment.clone(),
        ..now.clone()
    }
    .command();
    let mut changes: Vec<Change> = target
        .environment
        .iter()
        .filter(|(name, _)| here.variable(name) != there.variable(name))
        .map(|(name, raw)| {
            let filled = there.variable(name).unwrap_or_default();
            let value = if with_here.variable(name) == Some(filled) {
                raw.as_str()
            } else {
                filled
            };
            Change::SetVariable {
                name: name.clone(),
                value: value.to_owned(),
            }
        })
        .collect();
    changes.extend(
        now.environment
            .iter()
            .filter(|(name, _)| there.variable(name).is_none())
            .map(|(name, _)| Change::RemoveVariable { name: name.clone() }),
    );
    changes
}

#[cfg(test)]
mod tests;
