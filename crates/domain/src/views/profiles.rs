//! Profiles: the list, a profile, its revisions, and text pasted into one.

use serde::{Deserialize, Serialize};

use super::servers::LaunchSummary;
use crate::{
    engine::EngineKind,
    ids::{ContentHash, HostId, ProfileId, RevisionId},
    profile::ProfileSpec,
    timestamp::Timestamp,
};

/// A profile in a list, with its newest revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileCard {
    /// Its identity.
    pub id: ProfileId,
    /// Its name, as in its address.
    pub name: String,
    /// Archived: offered no more.
    pub archived: bool,
    /// The built-in profile that it was made from.
    pub builtin: Option<String>,
    /// Newest revision.
    pub revision: RevisionId,
    /// Its number within the profile.
    pub number: u32,
    /// Its hash.
    pub hash: ContentHash,
    /// When it was made.
    pub changed_at: Timestamp,
    /// What it says.
    pub spec: ProfileSpec,
    /// The command as a shell would take it, for reading and copying.
    pub command: String,
    /// What a reader should know of its arguments and variables.
    pub cautions: Vec<Caution>,
    /// Launches of it that live now.
    pub alive: u32,
}

/// How grave a caution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gravity {
    /// It will not work, as far as is known.
    Wrong,
    /// It does something else than many think.
    Caution,
    /// Worth knowing.
    Note,
}

/// What a caution is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "about")]
pub enum CautionOf {
    /// The argument that begins at this word.
    Argument {
        /// Index into the arguments.
        index: u32,
    },
    /// A variable.
    Variable {
        /// Its name.
        name: String,
    },
    /// The profile as a whole.
    Profile,
}

/// Something a reader should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caution {
    /// About what.
    pub of: CautionOf,
    /// How grave.
    pub gravity: Gravity,
    /// A badge's two or three words, such as `no effect`.
    pub badge: String,
    /// A sentence or two.
    pub text: String,
}

/// What is known of an argument or variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// What it does, in a sentence; none if it is not known here.
    pub meaning: Option<String>,
    /// Values it takes, for people.
    pub values: Option<String>,
    /// What holds when it is left out.
    pub default: Option<String>,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileView {
    /// As in the list.
    pub card: ProfileCard,
    /// All revisions, newest first.
    pub revisions: Vec<RevisionSummary>,
    /// What is known of each flag and variable in the newest revision.
    pub known: Vec<Known>,
    /// Its launches, newest first, at most twenty.
    pub launches: Vec<LaunchSummary>,
    /// Hosts it can be launched on: identity, name and hardware.
    pub hosts: Vec<(HostId, String, String)>,
    /// May this reader launch and edit?
    pub may_operate: bool,
}

/// A revision in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionSummary {
    /// Its identity.
    pub id: RevisionId,
    /// Its number within the profile.
    pub number: u32,
    /// Its hash.
    pub hash: ContentHash,
    /// When it was made.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
    /// Notes kept with it.
    pub notes: String,
}

/// A line of a difference between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffLine {
    /// What differs: `--tp-size`, `NCCL_PROTO`, `program`.
    pub name: String,
    /// In the first; none where it is absent.
    pub first: Option<String>,
    /// In the second; none where it is absent.
    pub second: Option<String>,
}

/// A built-in profile that can be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltinView {
    /// Its identity, such as `sglang-base`.
    pub id: String,
    /// Which engine.
    pub engine: EngineKind,
    /// What it is, in a sentence.
    pub text: String,
    /// It as a profile, with the usual parameters.
    pub spec: ProfileSpec,
    /// The command as a shell would take it.
    pub command: String,
    /// What a reader should know.
    pub cautions: Vec<Caution>,
}

/// The page of profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileList {
    /// Profiles by name; archived ones last.
    pub profiles: Vec<ProfileCard>,
    /// Built-in ones.
    pub builtins: Vec<BuiltinView>,
    /// Hosts: identity, name and hardware.
    pub hosts: Vec<(HostId, String, String)>,
    /// May this reader launch and edit?
    pub may_operate: bool,
}

/// What became of pasted text, or of an edited profile before it is saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The profile it stands for.
    pub spec: ProfileSpec,
    /// The command as a shell would take it.
    pub command: String,
    /// What a reader should know.
    pub cautions: Vec<Caution>,
    /// What is known of each flag and variable.
    pub known: Vec<Known>,
    /// What was in the text and is not in the profile, such as a redirection.
    pub left_out: Vec<String>,
    /// Why it cannot be saved yet.
    pub error: Option<String>,
}
