//! Profiles: the list, a profile, its revisions, and drafts of new ones.
#![cfg_attr(
    feature = "ssr",
    expect(
        clippy::unused_async,
        reason = "server functions are async, also where nothing is waited for"
    )
)]

use leptos::{prelude::*, server_fn::codec::Json};
use serde::{Deserialize, Serialize};
use tokdyno_domain::{
    host::FoundEngine,
    ids::{ProfileId, RevisionId},
    profile::ProfileSpec,
    views::profiles::{DiffLine, Draft, ProfileList, ProfileView},
};

use crate::AppError;

/// A draft with a name for the profile that it would become.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedDraft {
    /// The draft.
    pub draft: Draft,
    /// A name, to be changed.
    pub name: String,
}

/// All profiles, the built-in ones, and the hosts they can be launched on.
///
/// # Errors
/// The database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "profiles", input = Json)]
pub async fn profiles() -> Result<ProfileList, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    super::context::readable(&actor, lab.profiles(&actor).await)
}

/// A profile by its name.
///
/// # Errors
/// No such profile, the database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "profile", input = Json)]
pub async fn profile(name: String) -> Result<ProfileView, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    super::context::readable(&actor, lab.profile(&actor, &name).await)
}

/// Keeps a new profile.
///
/// # Errors
/// Something in it cannot run, the name is taken or cannot be used, the database is
/// away, or this actor may not edit profiles.
#[server(prefix = "/api/fn", endpoint = "add_profile", input = Json)]
pub async fn add_profile(
    name: String,
    spec: ProfileSpec,
    builtin: Option<String>,
) -> Result<ProfileId, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.add_profile(&actor, &name, &spec, builtin.as_deref())
        .await
        .map_err(super::context::answer)
}

/// Keeps a changed profile as its next revision; an unchanged one stays the same.
///
/// # Errors
/// As for [`add_profile`], or no such profile.
#[server(prefix = "/api/fn", endpoint = "save_profile", input = Json)]
pub async fn save_profile(profile: ProfileId, spec: ProfileSpec) -> Result<RevisionId, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.save_profile(&actor, profile, &spec)
        .await
        .map_err(super::context::answer)
}

/// Gives a profile another name.
///
/// # Errors
/// The name is taken or cannot be used, no such profile, the database is away, or
/// this actor may not edit profiles.
#[server(prefix = "/api/fn", endpoint = "rename_profile", input = Json)]
pub async fn rename_profile(profile: ProfileId, name: String) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.rename_profile(&actor, profile, &name)
        .await
        .map_err(super::context::answer)
}

/// Makes a profile with another name that says the same.
///
/// # Errors
/// As for [`rename_profile`].
#[server(prefix = "/api/fn", endpoint = "duplicate_profile", input = Json)]
pub async fn duplicate_profile(profile: ProfileId, name: String) -> Result<ProfileId, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.duplicate_profile(&actor, profile, &name)
        .await
        .map_err(super::context::answer)
}

/// Archives a profile, or brings it back.
///
/// URL-encoded, so that the button works as a plain form before WASM has loaded.
///
/// # Errors
/// No such profile, the database is away, or this actor may not edit profiles.
#[server(prefix = "/api/fn", endpoint = "archive_profile")]
pub async fn archive_profile(profile: ProfileId, archived: bool) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.archive_profile(&actor, profile, archived)
        .await
        .map_err(super::context::answer)
}

/// What a revision says.
///
/// # Errors
/// No such revision, the database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "revision_spec", input = Json)]
pub async fn revision_spec(revision: RevisionId) -> Result<ProfileSpec, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    super::context::readable(&actor, lab.revision_spec(&actor, revision).await)
}

/// What differs between two revisions.
///
/// # Errors
/// No such revision, the database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "profile_diff", input = Json)]
pub async fn profile_diff(
    first: RevisionId,
    second: RevisionId,
) -> Result<Vec<DiffLine>, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    super::context::readable(&actor, lab.profile_diff(&actor, first, second).await)
}

/// What an edited profile comes to: its command, cautions, and why it cannot be kept.
///
/// # Errors
/// This actor may not read.
#[server(prefix = "/api/fn", endpoint = "draft", name = DraftProfile, input = Json)]
pub async fn draft(spec: ProfileSpec) -> Result<Draft, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.draft(&actor, &spec).map_err(super::context::answer)
}

/// A shell command as a profile.
///
/// # Errors
/// The text is no command that can be read, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "paste_profile", input = Json)]
pub async fn paste_profile(text: String) -> Result<NamedDraft, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    let draft = lab.paste(&actor, &text).map_err(super::context::answer)?;
    Ok(NamedDraft {
        name: tokdyno_engines::suggested_name(&draft.spec),
        draft,
    })
}

/// A found engine as a profile, without adopting it.
///
/// # Errors
/// This actor may not read.
#[server(prefix = "/api/fn", endpoint = "found_profile", input = Json)]
pub async fn found_profile(engine: FoundEngine) -> Result<NamedDraft, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    let spec = tokdyno_engines::profile_of(&engine);
    Ok(NamedDraft {
        name: tokdyno_engines::suggested_name(&spec),
        draft: lab.draft(&actor, &spec).map_err(super::context::answer)?,
    })
}
