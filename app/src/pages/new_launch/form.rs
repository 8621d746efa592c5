//! What is chosen, as signals, and what is meant by it.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;
use tokdyno_domain::{
    ids::{HostId, LaunchId, ProfileId},
    launch::Afterwards,
    timestamp::Timestamp,
    views::{
        measure::WorkloadForm,
        profiles::ProfileList,
        servers::{LaunchForm, ServerList},
    },
};

use crate::{browser, clock};

/// The fields of the form.
#[derive(Clone, Copy)]
pub(super) struct LaunchFields {
    pub(super) profile: RwSignal<Option<ProfileId>>,
    pub(super) host: RwSignal<Option<HostId>>,
    pub(super) measure: RwSignal<bool>,
    pub(super) configuration: RwSignal<String>,
    pub(super) through_forward: RwSignal<bool>,
    pub(super) verify_nccl: RwSignal<bool>,
    pub(super) stop: RwSignal<bool>,
    pub(super) restore: RwSignal<Option<LaunchId>>,
    /// `HH:MM` by the browser's clock; blank for no agreement.
    pub(super) give_back: RwSignal<String>,
}

impl LaunchFields {
    /// Filled in from the address, as far as it names what there is.
    pub(super) fn from_query(
        query: &ParamsMap,
        profiles: &ProfileList,
        servers: &ServerList,
    ) -> Self {
        let name = query.get("profile").unwrap_or_default();
        let profile = named_profile(profiles, &name).or_else(|| first_profile(profiles));
        let is = |key: &str| {
            query
                .get(key)
                .is_some_and(|text| text == "1" || text == "true")
        };
        Self {
            profile: RwSignal::new(profile),
            host: RwSignal::new(chosen_host(query, profiles)),
            measure: RwSignal::new(is("measure")),
            configuration: RwSignal::new(query.get("name").unwrap_or_default()),
            through_forward: RwSignal::new(is("forward")),
            verify_nccl: RwSignal::new(is("nccl")),
            stop: RwSignal::new(is("stop")),
            restore: RwSignal::new(chosen_restore(query, servers)),
            give_back: RwSignal::new(String::new()),
        }
    }

    /// The launch that is meant.
    ///
    /// # Errors
    /// Something is missing or does not read; a sentence.
    pub(super) fn launch(self, measure: Option<WorkloadForm>) -> Result<LaunchForm, String> {
        let give_back_at = give_back_at(&self.give_back.get())?;
        Ok(LaunchForm {
            profile: self
                .profile
                .get()
                .ok_or("No profile is chosen. Choose one from the list.")?,
            host: self
                .host
                .get()
                .ok_or("No host is chosen. Choose one from the list.")?,
            measure,
            configuration: self.configuration.get(),
            through_forward: self.through_forward.get(),
            verify_nccl: self.verify_nccl.get(),
            afterwards: if self.stop.get() {
                Afterwards::Stop
            } else {
                Afterwards::Keep
            },
            restore: self.restore.get(),
            give_back_at,
            give_back_lead_s: None,
        })
    }
}

/// The next moment at which the browser's clock shows this time; none for blank.
///
/// # Errors
/// It is no time of the day; a sentence.
pub(in crate::pages) fn give_back_at(text: &str) -> Result<Option<Timestamp>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    clock::next(browser::now(), text, browser::utc_offset_min())
        .map(Some)
        .ok_or_else(|| format!("`{text}` is not a time of the day. Write it as 18:30."))
}

/// The profile of this name, or of this number where nothing has that name.
pub(in crate::pages) fn named_profile(profiles: &ProfileList, text: &str) -> Option<ProfileId> {
    let cards = &profiles.profiles;
    cards
        .iter()
        .find(|card| card.name == text)
        .or_else(|| cards.iter().find(|card| card.id.to_string() == text))
        .map(|card| card.id)
}

/// The first profile that is offered.
pub(in crate::pages) fn first_profile(profiles: &ProfileList) -> Option<ProfileId> {
    let mut cards = profiles.profiles.iter();
    cards.find(|card| !card.archived).map(|card| card.id)
}

/// The host that the address names by its number, else the first.
pub(in crate::pages) fn chosen_host(query: &ParamsMap, profiles: &ProfileList) -> Option<HostId> {
    query
        .get("host")
        .and_then(|text| text.parse().ok())
        .filter(|wanted| profiles.hosts.iter().any(|(id, _, _)| id == wanted))
        .or_else(|| profiles.hosts.first().map(|(id, _, _)| *id))
}

/// The launch that the address names to be restored, if it lives.
pub(in crate::pages) fn chosen_restore(
    query: &ParamsMap,
    servers: &ServerList,
) -> Option<LaunchId> {
    query
        .get("restore")
        .and_then(|text| text.parse().ok())
        .filter(|wanted| servers.alive.iter().any(|launch| launch.id == *wanted))
}

#[cfg(test)]
mod tests {
    use leptos::reactive::owner::Owner;

    use super::*;

    fn nothing() -> (ProfileList, ServerList) {
        (
            ProfileList {
                profiles: Vec::new(),
                builtins: Vec::new(),
                hosts: vec![(HostId(4), "gpu1".to_owned(), String::new())],
                may_operate: true,
            },
            ServerList {
                alive: Vec::new(),
                over: Vec::new(),
                may_operate: true,
            },
        )
    }

    #[test]
    fn the_address_names_only_what_there_is() {
        Owner::new().with(|| {
            let (profiles, servers) = nothing();
            let mut query = ParamsMap::new();
            for (key, value) in [("host", "9"), ("restore", "7"), ("measure", "1")] {
                query.insert(key, value.to_owned());
            }
            let fields = LaunchFields::from_query(&query, &profiles, &servers);
            assert_eq!(fields.host.get_untracked(), Some(HostId(4)));
            assert_eq!(fields.restore.get_untracked(), None);
            assert!(fields.measure.get_untracked());
        });
    }

    #[test]
    fn what_is_missing_is_said() {
        Owner::new().with(|| {
            let (profiles, servers) = nothing();
            let fields = LaunchFields::from_query(&ParamsMap::new(), &profiles, &servers);
            let said = fields.launch(None).expect_err("no profile");
            assert!(said.contains("No profile"), "{said}");
            fields.profile.set(Some(ProfileId(1)));
            fields.stop.set(true);
            let form = fields.launch(None).expect("a launch");
            assert_eq!(form.afterwards, Afterwards::Stop);
            fields.give_back.set("25:00".to_owned());
            let said = fields.launch(None).expect_err("no time");
            assert!(said.contains("25:00"), "{said}");
        });
    }
}
