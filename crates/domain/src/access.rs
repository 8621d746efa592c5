//! Who may do what. Every handler and server function asks [`authorise`], also
//! while there is a single person: the question is in place before the answer
//! becomes interesting.

use serde::{Deserialize, Serialize};

use crate::ids::{ActorId, TeamId};

/// Who acts, and for which team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// The actor's row.
    pub id: ActorId,
    /// The team whose data is touched.
    pub team: TeamId,
    /// What this actor may do.
    pub role: Role,
}

impl Actor {
    /// The person at this machine: the one actor there is until people sign in.
    /// Rows for it are made by the first migration.
    pub const LOCAL: Self = Self {
        id: ActorId(1),
        team: TeamId(1),
        role: Role::Operator,
    };
    /// Whoever opens a shared link: reads frozen comparisons, nothing else.
    pub const GUEST: Self = Self {
        id: ActorId(2),
        team: TeamId(1),
        role: Role::Guest,
    };
}

/// Roles in rising order of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Opens shared links.
    Guest,
    /// Reads everything.
    Viewer,
    /// Measures, imports, shares, deletes.
    Operator,
}

/// Things one may be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Open a frozen comparison.
    OpenShared,
    /// Look at runs, the board, comparisons.
    Read,
    /// Ask an endpoint who it is.
    ProbeEndpoint,
    /// Queue and cancel measurements.
    Measure,
    /// Bring in result files and recorded figures.
    Import,
    /// Freeze a comparison.
    Share,
    /// Delete runs.
    Delete,
}

impl Capability {
    const fn least_role(self) -> Role {
        match self {
            Self::OpenShared => Role::Guest,
            Self::Read => Role::Viewer,
            Self::ProbeEndpoint | Self::Measure | Self::Import | Self::Share | Self::Delete => {
                Role::Operator
            }
        }
    }
}

/// The actor's role is too small for what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "This needs the role of an {needed:?}; you act as a {has:?}. Ask the person who runs this Tokdyno."
)]
pub struct Forbidden {
    /// The smallest role that would do.
    pub needed: Role,
    /// The role there is.
    pub has: Role,
}

/// The one capability check.
///
/// # Errors
/// [`Forbidden`] when the actor's role does not reach.
pub fn authorise(actor: &Actor, capability: Capability) -> Result<(), Forbidden> {
    let needed = capability.least_role();
    if actor.role >= needed {
        Ok(())
    } else {
        Err(Forbidden {
            needed,
            has: actor.role,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_open_links_and_nothing_else() {
        assert_eq!(authorise(&Actor::GUEST, Capability::OpenShared), Ok(()));
        for capability in [Capability::Read, Capability::Measure, Capability::Delete] {
            assert!(authorise(&Actor::GUEST, capability).is_err());
        }
    }

    #[test]
    fn the_local_operator_may_do_it_all() {
        for capability in [
            Capability::OpenShared,
            Capability::Read,
            Capability::ProbeEndpoint,
            Capability::Measure,
            Capability::Import,
            Capability::Share,
            Capability::Delete,
        ] {
            assert_eq!(authorise(&Actor::LOCAL, capability), Ok(()));
        }
    }
}
