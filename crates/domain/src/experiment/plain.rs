//! A factor from its name and a few words, as people type one into a form, an address or
//! a script.

use super::{
    change::Change,
    factor::{Factor, Level},
};

/// The level that leaves the profile as it is.
pub const AS_IT_IS: &str = "as it is";
/// The level that takes an argument or a variable out of the profile.
pub const WITHOUT: &str = "without";
/// The level of a switch: the flag without a value.
pub const WITH: &str = "with";

/// A factor over one argument, whose name begins with a dash, or one variable.
/// [`AS_IT_IS`], [`WITHOUT`] and, of an argument, [`WITH`] are levels of their own; any
/// other level is a value. Nothing is checked:
/// [`Design::validate`](super::Design::validate) does that.
#[must_use]
pub fn plain_factor(name: &str, levels: &[String]) -> Factor {
    let name = name.trim();
    let levels = levels
        .iter()
        .map(|label| Level {
            label: label.clone(),
            changes: changes(name, label),
        })
        .collect();
    Factor {
        name: name.to_owned(),
        levels,
    }
}

/// Levels with commas between them. Commas within brackets belong to a level, as those
/// of a JSON value do.
#[must_use]
pub fn plain_levels(text: &str) -> Vec<String> {
    let mut levels = vec![String::new()];
    let mut depth = 0_u32;
    for letter in text.chars() {
        match letter {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                levels.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(level) = levels.last_mut() {
            level.push(letter);
        }
    }
    levels
        .iter()
        .map(|level| level.trim())
        .filter(|level| !level.is_empty())
        .map(str::to_owned)
        .collect()
}

fn changes(name: &str, label: &str) -> Vec<Change> {
    let is_argument = name.starts_with('-');
    let name = name.to_owned();
    let change = match (label, is_argument) {
        (AS_IT_IS, _) => return Vec::new(),
        (WITHOUT, true) => Change::RemoveArgument { flag: name },
        (WITHOUT, false) => Change::RemoveVariable { name },
        (WITH, true) => Change::SetArgument {
            flag: name,
            value: None,
        },
        (value, true) => Change::SetArgument {
            flag: name,
            value: Some(value.to_owned()),
        },
        (value, false) => Change::SetVariable {
            name,
            value: value.to_owned(),
        },
    };
    vec![change]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_brackets_stay() {
        assert_eq!(
            plain_levels(r#" as it is, 4 ,, {"a": [1, 2], "b": 3},x"#),
            ["as it is", "4", r#"{"a": [1, 2], "b": 3}"#, "x"]
        );
        assert_eq!(plain_levels(" , "), Vec::<String>::new());
        // A bracket too many swallows nothing.
        assert_eq!(plain_levels("a), b"), ["a)", "b"]);
    }

    #[test]
    fn a_dash_makes_an_argument() {
        let words = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        let factor = plain_factor(" --x ", &words(&[AS_IT_IS, WITHOUT, WITH, "4"]));
        let said: Vec<String> = factor
            .levels
            .iter()
            .map(|level| level.changes.iter().map(ToString::to_string).collect())
            .collect();
        assert_eq!(factor.name, "--x");
        assert_eq!(said, ["", "without --x", "--x", "--x 4"]);
        let factor = plain_factor("NCCL_PROTO", &words(&[WITHOUT, "with", "LL"]));
        let said: Vec<String> = factor
            .levels
            .iter()
            .map(|level| level.changes.iter().map(ToString::to_string).collect())
            .collect();
        assert_eq!(
            said,
            ["without NCCL_PROTO", "NCCL_PROTO=with", "NCCL_PROTO=LL"]
        );
    }
}
