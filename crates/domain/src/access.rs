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
    /// The person at this machine. Rows for these actors are made by the migrations.
    pub const LOCAL: Self = Self {
        id: ActorId(1),
        team: TeamId(1),
        role: Role::Operator,
    };
    /// Whoever reaches the program over the network without the operator's password:
    /// measures and compares, but touches no host.
    pub const NETWORK: Self = Self {
        id: ActorId(3),
        team: TeamId(1),
        role: Role::Measurer,
    };
    /// Whoever has given the operator's password.
    pub const SIGNED_IN: Self = Self {
        id: ActorId(4),
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
    Measurer,
    /// Also launches and stops, and edits hosts and profiles.
    Operator,
}

impl Role {
    /// All of them, in rising order.
    pub const ALL: [Self; 4] = [Self::Guest, Self::Viewer, Self::Measurer, Self::Operator];

    /// Reads the stored word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    /// The word as stored.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Viewer => "viewer",
            Self::Measurer => "measurer",
            Self::Operator => "operator",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Guest => "a guest",
            Self::Viewer => "a viewer",
            Self::Measurer => "somebody who may measure",
            Self::Operator => "an operator",
        }
    }

    const fn way_there(self) -> &'static str {
        match self {
            Self::Operator => {
                "Sign in with the operator's password, or use the machine that runs this Tokdyno."
            }
            _ => "Ask the person who runs this Tokdyno.",
        }
    }
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
    /// Record what a gate came to.
    RecordGate,
    /// Accept or reject what a gate was about, also against its rules.
    DecideGate,
    /// Launch, stop, adopt, restore, clean up, and look into hosts.
    Launch,
    /// Add, change and remove hosts.
    EditHosts,
    /// Add, change and archive profiles.
    EditProfiles,
    /// Read who did what.
    ReadAudit,
    /// Set the operator's password.
    SetPassword,
}

impl Capability {
    const fn least_role(self) -> Role {
        match self {
            Self::OpenShared => Role::Guest,
            Self::Read => Role::Viewer,
            Self::ProbeEndpoint
            | Self::Measure
            | Self::Import
            | Self::Share
            | Self::Delete
            | Self::RecordGate => Role::Measurer,
            Self::DecideGate
            | Self::Launch
            | Self::EditHosts
            | Self::EditProfiles
            | Self::ReadAudit
            | Self::SetPassword => Role::Operator,
        }
    }
}

/// The actor's role is too small for what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("This needs {}; you act as {}. {}", needed.text(), has.text(), needed.way_there())]
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
    fn the_network_measures_and_touches_no_host() {
        for capability in [Capability::Measure, Capability::RecordGate] {
            assert_eq!(authorise(&Actor::NETWORK, capability), Ok(()));
        }
        for capability in [
            Capability::DecideGate,
            Capability::Launch,
            Capability::EditHosts,
            Capability::EditProfiles,
            Capability::ReadAudit,
            Capability::SetPassword,
        ] {
            let refused = authorise(&Actor::NETWORK, capability).expect_err("a refusal");
            assert!(refused.to_string().contains("password"), "{refused}");
        }
    }

    #[test]
    fn a_stored_role_reads_back() {
        for role in Role::ALL {
            assert_eq!(Role::from_word(role.word()), Some(role));
        }
        assert_eq!(Role::from_word("king"), None);
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
            Capability::RecordGate,
            Capability::DecideGate,
            Capability::Launch,
            Capability::EditHosts,
            Capability::EditProfiles,
            Capability::ReadAudit,
            Capability::SetPassword,
        ] {
            assert_eq!(authorise(&Actor::LOCAL, capability), Ok(()));
            assert_eq!(authorise(&Actor::SIGNED_IN, capability), Ok(()));
        }
    }
}
