//! The form as an address fills it. Other pages link to a planned experiment this way;
//! the page's own documentation lists what may stand there.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;
use tokdyno_domain::{
    ids::ProfileId,
    statistics::RELEVANT_EFFECT,
    views::{profiles::ProfileList, servers::ServerList},
};

use super::{
    super::new_launch::{chosen_host, chosen_restore, first_profile, named_profile},
    factors::FactorFields,
    form::{Fields, Kind},
};

/// How often a configuration is launched unless somebody says otherwise: three launches
/// show the spread between launches.
const LAUNCHES: &str = "3";

impl Fields {
    /// Filled in from the address, as far as it names what there is.
    pub(super) fn from_query(
        query: &ParamsMap,
        profiles: &ProfileList,
        servers: &ServerList,
    ) -> Self {
        let word = |key: &str| query.get(key).unwrap_or_default();
        let text = |key: &str| RwSignal::new(word(key));
        let or = |key: &str, usual: String| RwSignal::new(query.get(key).unwrap_or(usual));
        let is = |key: &str| RwSignal::new(matches!(word(key).as_str(), "1" | "true"));
        let base = named_profile(profiles, &word("base")).or_else(|| first_profile(profiles));
        let to = named_profile(profiles, &word("to"));
        let others: Vec<ProfileId> = word("profiles")
            .split(',')
            .filter_map(|name| named_profile(profiles, name.trim()))
            .collect();
        let factors = FactorFields::new();
        for (key, levels) in query.clone() {
            if is_factor(&key) {
                factors.vary(&key, &levels);
            }
        }
        Self {
            name: text("name"),
            base: RwSignal::new(base),
            host: RwSignal::new(chosen_host(query, profiles)),
            kind: RwSignal::new(kind(&word("design"), to.is_some(), !others.is_empty())),
            factors,
            to: RwSignal::new(to),
            others: RwSignal::new(others),
            launches: or("launches", LAUNCHES.to_owned()),
            looks: text("looks"),
            gpu_minutes: text("gpu_minutes"),
            give_back: text("give_back"),
            restore: RwSignal::new(chosen_restore(query, servers)),
            through_forward: is("forward"),
            effect: or("effect", (RELEVANT_EFFECT * 100.0).to_string()),
            seed: text("seed"),
            skip_measured: is("skip_measured"),
            profile_names: StoredValue::new(
                profiles
                    .profiles
                    .iter()
                    .map(|card| (card.id, card.name.clone()))
                    .collect(),
            ),
        }
    }
}

/// The design of this word; without one, what the address names tells.
fn kind(word: &str, has_target: bool, has_others: bool) -> Kind {
    Kind::ALL
        .into_iter()
        .find(|kind| kind.word() == word)
        .unwrap_or(if has_target {
            Kind::Ablation
        } else if has_others {
            Kind::Profiles
        } else {
            Kind::OneAtATime
        })
}

/// Does this key name a factor? Everything else that may stand in the address is a word
/// in small letters.
fn is_factor(key: &str) -> bool {
    matches!(key, "drafter" | "channels")
        || key.starts_with('-')
        || key.starts_with(|letter: char| letter.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use leptos::reactive::owner::Owner;
    use tokdyno_domain::ids::HostId;

    use super::{super::samples, *};

    fn fields(query: &[(&str, &str)]) -> Fields {
        let query: ParamsMap = query
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        samples::fields(&query)
    }

    #[test]
    fn profiles_go_by_name_or_number_and_hosts_by_number() {
        Owner::new().with(|| {
            let named = fields(&[("base", "tuned"), ("to", "1"), ("host", "9")]);
            assert_eq!(named.base.get_untracked(), Some(ProfileId(2)));
            assert_eq!(named.to.get_untracked(), Some(ProfileId(1)));
            assert_eq!(named.host.get_untracked(), Some(HostId(4)));
            let unknown = fields(&[("base", "gone"), ("to", "gone")]);
            assert_eq!(unknown.base.get_untracked(), Some(ProfileId(1)));
            assert_eq!(unknown.to.get_untracked(), None);
            assert_eq!(unknown.kind.get_untracked(), Kind::OneAtATime);
        });
    }

    #[test]
    fn every_design_has_its_word() {
        Owner::new().with(|| {
            for kind in Kind::ALL {
                let filled = fields(&[("design", kind.word()), ("to", "tuned")]);
                assert_eq!(filled.kind.get_untracked(), kind);
            }
        });
    }

    #[test]
    fn words_in_small_letters_are_no_factors() {
        Owner::new().with(|| {
            let filled = fields(&[
                ("preset", "custom"),
                ("c", "2"),
                ("--attention-backend", "triton,flashinfer"),
                ("NCCL_ALGO", "Ring,Tree"),
                ("skip_measured", "1"),
                ("launches", "5"),
            ]);
            let names: Vec<String> = filled
                .factors
                .factors()
                .into_iter()
                .map(|factor| factor.name)
                .collect();
            assert_eq!(names, ["NCCL_ALGO", "--attention-backend"]);
            assert!(filled.skip_measured.get_untracked());
            assert_eq!(filled.launches.get_untracked(), "5");
        });
    }
}
