//! Launches for tests.

use serde_json::json;
use tokdyno_domain::{
    launch::LaunchState,
    views::servers::{LaunchSummary, LaunchView, Step, StepState},
};

/// A launch in a list.
pub(super) fn summary(id: i64, profile: &str, state: LaunchState) -> LaunchSummary {
    serde_json::from_value(json!({
        "id": id, "origin": "launched", "state": state, "failure": null,
        "host": [1, "gpu1"], "profile": [1, profile, 1, "0".repeat(64)],
        "engine": "sglang", "engine_version": null, "simulated": true, "port": 8000,
        "gpus": null, "stamp": null, "by": "somebody", "created_at": 0, "started_at": null,
        "ready_at": null, "ended_at": null, "stage": null, "waits_for": null, "step": "",
        "stop_requested": false, "unreachable_since": null, "give_back_at": null,
    }))
    .expect("a summary")
}

/// A launch with these steps.
pub(super) fn view(state: LaunchState, steps: &[(&str, StepState)]) -> LaunchView {
    LaunchView {
        steps: steps
            .iter()
            .map(|(name, state)| Step {
                name: (*name).to_owned(),
                state: *state,
                detail: String::new(),
                link: None,
            })
            .collect(),
        summary: summary(7, "tuned", state),
        command: String::new(),
        stage_text: String::new(),
        usual_load_s: None,
        effective: None,
        plan: tokdyno_domain::launch::LaunchPlan::default(),
        keeper: tokdyno_domain::host::Keeper::Process,
        pid: None,
        folder: String::new(),
        restores: None,
        restored_by: None,
        remarks: Vec::new(),
        runs: Vec::new(),
        log_size: 0,
        may_operate: true,
    }
}
