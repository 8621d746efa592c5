//! What is known of flags and variables, and what a reader should beware of.

mod cautions;
pub(crate) mod flags;
pub(crate) mod nccl;
mod sglang;
mod stand_in;
mod varied;
mod vllm;

use tokdyno_domain::{engine::EngineKind, profile::ProfileSpec, views::profiles::Known};

pub use self::{cautions::cautions, varied::KnownFlags};
use crate::{version::Version, words};

/// Newest SGLang in which the inert flags were seen to be inert.
const INERT_UNTIL: &[u32] = &[0, 5, 23];

/// What is known of each flag and variable of a profile, in its order.
#[must_use]
pub fn known(spec: &ProfileSpec) -> Vec<Known> {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let flags = own_rows(spec).into_iter().filter_map(|row| {
        let name = row.flag?.to_owned();
        Some(match row.known {
            Some(flag) => Known {
                name,
                meaning: text(flag.meaning),
                values: text(flag.values),
                default: text(flag.default),
            },
            None => unknown(name),
        })
    });
    let variables = spec
        .environment
        .iter()
        .map(|(name, _)| match nccl::find(name) {
            Some(variable) => Known {
                name: name.clone(),
                meaning: text(variable.meaning),
                values: text(variable.values),
                default: text(variable.default),
            },
            None => unknown(name.clone()),
        });
    let mut all: Vec<Known> = Vec::new();
    for one in flags.chain(variables) {
        if !all.iter().any(|other| other.name == one.name) {
            all.push(one);
        }
    }
    all
}

fn unknown(name: String) -> Known {
    Known {
        name,
        meaning: None,
        values: None,
        default: None,
    }
}

/// Why a flag does nothing in a version; none if it is not known to do nothing.
/// Without a version, the versions that were read speak for it.
#[must_use]
pub fn is_inert(engine: EngineKind, flag: &str, version: Option<&str>) -> Option<&'static str> {
    let (known, _) = flags::find(engine, flag);
    let name = known.map_or(flag, |known| known.names[0]);
    if engine != EngineKind::Sglang || name != "--num-continuous-decode-steps" {
        return None;
    }
    let version = version.and_then(Version::read);
    version
        .is_none_or(|version| version.at_most(INERT_UNTIL))
        .then_some(
            "SGLang accepts it, but nothing in 0.3.6 to 0.5.23, as far as read, uses it: it changes no speed.",
        )
}

/// The rows of the engine's own arguments; `start` counts from the profile's first
/// argument.
pub(crate) fn own_rows(spec: &ProfileSpec) -> Vec<words::Row<'_>> {
    let all: Vec<&str> = std::iter::once(spec.program.as_str())
        .chain(spec.arguments.iter().map(String::as_str))
        .collect();
    let first = words::EngineStart::find(&all).map_or(0, |start| start.first - 1);
    let mut rows = words::rows(spec.engine, &spec.arguments[first..]);
    for row in &mut rows {
        row.start += first;
    }
    rows
}

#[cfg(test)]
mod tests;
