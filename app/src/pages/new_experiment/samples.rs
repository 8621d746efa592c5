//! Profiles and a host to plan with.

use leptos_router::params::ParamsMap;
use tokdyno_domain::{
    engine::EngineKind,
    ids::{ContentHash, HostId, ProfileId, RevisionId},
    profile::{Activation, Parameters, ProfileSpec, READY_TIMEOUT_S},
    timestamp::Timestamp,
    views::{
        profiles::{ProfileCard, ProfileList},
        servers::ServerList,
    },
};

use super::form::Fields;

/// SGLang without anything tuned.
pub(in super::super) fn sglang() -> ProfileSpec {
    ProfileSpec {
        engine: EngineKind::Sglang,
        program: "python3".to_owned(),
        arguments: ["-m", "sglang.launch_server", "--port", "{PORT}"]
            .map(str::to_owned)
            .to_vec(),
        environment: Vec::new(),
        parameters: Parameters {
            model: "/models/kimi".to_owned(),
            drafter: None,
            tensor_parallel: 8,
            port: 30_000,
            served_name: String::new(),
        },
        directory: None,
        activation: Activation::None,
        ready_timeout_s: READY_TIMEOUT_S,
        notes: String::new(),
    }
}

/// The profiles `base` (1) and `tuned` (2), and host 4.
pub(crate) fn profiles() -> ProfileList {
    let card = |id: i64, name: &str| ProfileCard {
        id: ProfileId(id),
        name: name.to_owned(),
        archived: false,
        builtin: None,
        revision: RevisionId(id),
        number: 1,
        hash: ContentHash("0".repeat(64)),
        changed_at: Timestamp(0),
        spec: sglang(),
        command: String::new(),
        cautions: Vec::new(),
        alive: 0,
    };
    ProfileList {
        profiles: vec![card(1, "base"), card(2, "tuned")],
        builtins: Vec::new(),
        hosts: vec![(HostId(4), "gpu1".to_owned(), String::new())],
        may_operate: true,
    }
}

/// The form with these profiles, on host 4.
pub(super) fn fields(query: &ParamsMap) -> Fields {
    let servers = ServerList {
        alive: Vec::new(),
        over: Vec::new(),
        may_operate: true,
    };
    Fields::from_query(query, &profiles(), &servers)
}
