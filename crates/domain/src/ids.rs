//! Typed identities. A bare integer never says what it identifies.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

macro_rules! serial_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

serial_id! {
    /// One execution of a workload against an endpoint; shown as `/runs/<id>`.
    RunId
}
serial_id! {
    /// A machine that engines run on; shown as `/hosts/<id>`.
    HostId
}
serial_id! {
    /// A named way to start an engine.
    ProfileId
}
serial_id! {
    /// One immutable state of a profile.
    RevisionId
}
serial_id! {
    /// One start of one profile revision on one host; shown as `/servers/<id>`.
    LaunchId
}
serial_id! {
    /// A plan of runs over several configurations; shown as `/experiments/<id>`.
    ExperimentId
}
serial_id! {
    /// A recorded gate: rules that a run or a comparison was held to.
    GateId
}
serial_id! {
    /// A person or program that acts; stands in every row that somebody made.
    ActorId
}
serial_id! {
    /// A team; everything belongs to one.
    TeamId
}

/// What a person typed where an identity was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a comparison's address: it has 32 hexadecimal digits after /c/. Copy the whole link again."
)]
pub struct BadSlug(pub String);

/// The address of a frozen comparison: 128 random bits, so that knowing one
/// link does not lead to another. Written as 32 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComparisonSlug(pub [u8; 16]);

impl fmt::Display for ComparisonSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for ComparisonSlug {
    type Err = BadSlug;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| BadSlug(text.to_owned()))?;
        Ok(Self(bytes))
    }
}

impl Serialize for ComparisonSlug {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ComparisonSlug {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// SHA-256 of canonical bytes: of a workload, a result file, a comparison.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
#[serde(transparent)]
pub struct ContentHash(pub String);

impl ContentHash {
    /// The hash of these bytes, as 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::{Digest, Sha256};
        Self(hex::encode(Sha256::digest(bytes)))
    }

    /// The first twelve digits: enough to tell two apart on a screen.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_reads_back_and_refuses_the_rest() {
        let slug = ComparisonSlug([7; 16]);
        assert_eq!(slug.to_string().parse(), Ok(slug));
        for bad in [
            "",
            "07",
            "zz070707070707070707070707070707",
            "070707070707070707070707070707070",
        ] {
            assert_eq!(bad.parse::<ComparisonSlug>(), Err(BadSlug(bad.to_owned())));
        }
    }

    #[test]
    fn the_hash_is_sha_256() {
        // FIPS 180-4 test vector for the message "abc".
        assert_eq!(
            ContentHash::of(b"abc").0,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
