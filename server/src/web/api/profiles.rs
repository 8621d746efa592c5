//! Profiles: the list, a profile, new ones, and pasted text.

use axum::{Json, extract::State, response::Response};
use http::StatusCode;
use serde_json::json;
use tokdyno_domain::{
    profile::ProfileSpec,
    views::profiles::{Draft, ProfileList, ProfileView},
};
use tokdyno_engines::readable_by;

use super::{
    super::{Problem, Site},
    body::{self, Body, over_usual},
    created,
    forms::{PasteBody, ProfileBody},
    path::NamedPath,
};
use crate::safety::who::Who;

/// Lists profiles and built-in ones.
pub(super) async fn list(State(site): State<Site>, who: Who) -> Result<Json<ProfileList>, Problem> {
    let list = site.lab.profiles(&who.actor).await?;
    Ok(Json(readable_by(&who.actor, list)))
}

/// A profile with its revisions.
pub(super) async fn one(
    State(site): State<Site>,
    who: Who,
    NamedPath(named): NamedPath,
) -> Result<Json<ProfileView>, Problem> {
    let (_, name) = named.profile(&site, &who.actor).await?;
    let view = site.lab.profile(&who.actor, &name).await?;
    Ok(Json(readable_by(&who.actor, view)))
}

/// Adds a profile.
pub(super) async fn add(
    State(site): State<Site>,
    who: Who,
    body: Body,
) -> Result<Response, Problem> {
    let sent: ProfileBody = body::read(body, "a profile")?;
    let builtin = sent.builtin.clone();
    let spec = spec(&sent)?;
    let name = match (sent.name.trim(), &builtin) {
        ("", Some(builtin)) => builtin.clone(),
        ("", None) => tokdyno_engines::suggested_name(&spec),
        (name, _) => name.to_owned(),
    };
    let profile = site
        .lab
        .add_profile(&who.actor, &name, &spec, builtin.as_deref())
        .await?;
    Ok(created(
        &format!("/api/v1/profiles/{name}"),
        json!({ "profile": profile, "name": name }),
    ))
}

/// What a shell command means as a profile. Nothing is stored.
pub(super) async fn paste(
    State(site): State<Site>,
    who: Who,
    body: Body,
) -> Result<Json<Draft>, Problem> {
    let PasteBody { text } = body::read(body, "a pasted command")?;
    Ok(Json(site.lab.paste(&who.actor, &text)?))
}

/// The specification that is meant: as sent, or a built-in one with the parameters
/// that were sent.
fn spec(sent: &ProfileBody) -> Result<ProfileSpec, Problem> {
    match (&sent.spec, &sent.builtin) {
        (Some(spec), _) => Ok(spec.clone()),
        (None, Some(id)) => {
            let builtin = tokdyno_engines::builtin::find(id).ok_or_else(|| {
                let known: Vec<String> = tokdyno_engines::builtin::all()
                    .into_iter()
                    .map(|builtin| builtin.id)
                    .collect();
                Problem::new(
                    StatusCode::NOT_FOUND,
                    format!(
                        "There is no built-in profile `{id}`. There are: {}.",
                        known.join(", ")
                    ),
                )
            })?;
            let mut spec = builtin.spec;
            spec.parameters = over_usual(&spec.parameters, sent.parameters.clone())
                .map_err(|error| body::unreadable("a profile's parameters", &error))?;
            Ok(spec)
        }
        (None, None) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "Send `spec`, or name a built-in profile in `builtin`. docs/rest-api.md shows both.",
        )),
    }
}
