//! A host, a profile and launches of it, for tests of the store.

use sqlx::PgPool;
use tokdyno_domain::{
    access::Actor,
    effective::{EffectiveConfiguration, Finding, Item, Subject},
    engine::EngineKind,
    ids::{HostId, LaunchId, ProfileId},
    launch::{Afterwards, LaunchState},
    profile::{Activation, Parameters, ProfileSpec, READY_TIMEOUT_S},
    timestamp::Timestamp,
    views::{
        hosts::HostForm,
        servers::{LaunchForm, MeasureForm},
    },
};

use super::new_run;
use crate::Lab;

const ME: &Actor = &Actor::LOCAL;

pub(crate) fn spec() -> ProfileSpec {
    let words = "-m sglang.launch_server --model-path {MODEL} --port {PORT}";
    ProfileSpec {
        engine: EngineKind::Sglang,
        program: "python3".to_owned(),
        arguments: words.split(' ').map(str::to_owned).collect(),
        environment: vec![("NCCL_PROTO".to_owned(), "LL".to_owned())],
        parameters: Parameters {
            model: "the-model".to_owned(),
            drafter: None,
            tensor_parallel: 2,
            port: 8000,
            served_name: String::new(),
        },
        directory: None,
        activation: Activation::None,
        ready_timeout_s: READY_TIMEOUT_S,
        notes: String::new(),
    }
}

pub(crate) fn host_form(name: &str, destination: &str) -> HostForm {
    HostForm {
        name: name.to_owned(),
        destination: destination.to_owned(),
        notes: String::new(),
    }
}

pub(crate) async fn a_host(lab: &Lab) -> HostId {
    lab.add_host(ME, &host_form("box", "gpu1"))
        .await
        .expect("a host")
}

pub(crate) async fn a_profile(lab: &Lab) -> ProfileId {
    lab.add_profile(ME, "sglang-nccl", &spec(), None)
        .await
        .expect("a profile")
}

pub(crate) fn launch_form(profile: ProfileId, host: HostId) -> LaunchForm {
    LaunchForm {
        profile,
        host,
        measure: None,
        configuration: String::new(),
        through_forward: false,
        verify_nccl: false,
        afterwards: Afterwards::Keep,
        restore: None,
        give_back_at: None,
        give_back_lead_s: None,
    }
}

pub(crate) fn measure_form(launch: LaunchId) -> MeasureForm {
    MeasureForm {
        launch,
        workload: new_run("").workload,
        configuration: String::new(),
        through_forward: false,
    }
}

/// A host, a profile and a launch of it that waits.
pub(crate) async fn queued(lab: &Lab) -> (HostId, ProfileId, LaunchId) {
    let (host, profile) = (a_host(lab).await, a_profile(lab).await);
    let launch = lab
        .queue_launch(ME, &launch_form(profile, host))
        .await
        .expect("queued");
    (host, profile, launch)
}

/// Does what the worker would have done by then.
pub(crate) async fn bring_to(pool: &PgPool, launch: LaunchId, state: LaunchState) {
    sqlx::query(
        "UPDATE launches SET state = $2,
             lease_owner = gen_random_uuid(), lease_expires_at = now() + interval '1 hour',
             started_at = CASE WHEN $2 IN ('loading', 'ready', 'stopping', 'stopped')
                 THEN coalesce(started_at, now() - interval '90 seconds') ELSE started_at END,
             ready_at = CASE WHEN $2 IN ('ready', 'stopping', 'stopped')
                 THEN coalesce(ready_at, now()) ELSE ready_at END,
             ended_at = CASE WHEN $2 IN ('stopped', 'failed', 'lost') THEN now() END
         WHERE id = $1",
    )
    .bind(launch)
    .bind(state.word())
    .execute(pool)
    .await
    .expect("brought");
}

/// The same for a server that was adopted.
pub(crate) async fn adopted(
    pool: &PgPool,
    lab: &Lab,
    host: HostId,
    profile: ProfileId,
) -> LaunchId {
    let launch = lab
        .queue_launch(ME, &launch_form(profile, host))
        .await
        .expect("queued");
    sqlx::query("UPDATE launches SET origin = 'adopted' WHERE id = $1")
        .bind(launch)
        .execute(pool)
        .await
        .expect("adopted");
    bring_to(pool, launch, LaunchState::Ready).await;
    launch
}

/// What was read back of [`spec`], with a mismatch.
pub(crate) fn effective() -> EffectiveConfiguration {
    let item = |subject, name: &str, found: &str, finding| Item {
        subject,
        name: name.to_owned(),
        asked: Some("LL".to_owned()),
        found: Some(found.to_owned()),
        finding,
        read_from: "the process".to_owned(),
        remark: None,
    };
    EffectiveConfiguration::conclude(
        Timestamp(1),
        vec![
            item(Subject::Variable, "NCCL_PROTO", "Simple", Finding::Differs),
            item(Subject::Argument, "--tp-size", "2", Finding::AsAsked),
            item(Subject::Hardware, "driver", "570.1", Finding::Noted),
        ],
        None,
        Vec::new(),
    )
}

/// Keeps it with a launch.
pub(crate) async fn prove(pool: &PgPool, launch: LaunchId) {
    let effective = effective();
    sqlx::query("UPDATE launches SET effective = $2, stamp = $3 WHERE id = $1")
        .bind(launch)
        .bind(serde_json::to_value(&effective).expect("serialises"))
        .bind(effective.stamp.word())
        .execute(pool)
        .await
        .expect("kept");
}
