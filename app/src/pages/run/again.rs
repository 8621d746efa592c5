//! The address of *New measurement*, filled in with what this run did.

use leptos_router::params::ParamsMap;
use tokdyno_domain::{
    views::run::RunView,
    workload::{Preset, StageKind, default_requests},
};

/// `/runs/new?…`: endpoint, model, names, and the workload as far as its stages tell.
pub(super) fn address(view: &RunView) -> String {
    let summary = &view.summary;
    let mut query = ParamsMap::new();
    if let Some(url) = &summary.endpoint {
        query.insert("url", url.clone());
        query.insert("model", summary.model.clone());
    }
    query.insert("name", summary.configuration.clone());
    if !summary.hardware.is_empty() {
        query.insert("hardware", summary.hardware.clone());
    }
    let preset = Preset::ALL
        .into_iter()
        .find(|preset| preset.word() == summary.workload_name);
    if let Some(preset) = preset {
        query.insert("preset", preset.word().to_owned());
    } else {
        add_custom(&mut query, view);
    }
    if summary.workload_text.contains(", chat,") {
        query.insert("api", "chat".to_owned());
    }
    format!("/runs/new{}", query.to_query_string())
}

fn add_custom(query: &mut ParamsMap, view: &RunView) {
    query.insert("preset", "custom".to_owned());
    // `256 tokens, completions, …`: the workload's own line says the length first.
    if let Some((tokens, _)) = view.summary.workload_text.split_once(" tokens") {
        query.insert("tokens", tokens.to_owned());
    }
    let sent = |kind: StageKind| {
        view.stages
            .iter()
            .find(|stage| stage.kind == kind && stage.complete)
            .map(|stage| stage.completed + stage.failed + stage.cancelled)
    };
    let mut concurrencies = Vec::new();
    let mut requests = None;
    let mut single = String::new();
    for level in &view.levels {
        let sent = sent(level.kind);
        match level.kind {
            StageKind::SingleStream => {
                single = sent.map_or_else(|| "5".to_owned(), |sent| sent.to_string());
            }
            StageKind::ClosedLoop { concurrency } => {
                concurrencies.push(concurrency.to_string());
                if let Some(sent) = sent
                    && sent != u64::from(default_requests(concurrency))
                {
                    requests = Some(sent);
                }
            }
        }
    }
    query.insert("single", single);
    query.insert("c", concurrencies.join(","));
    if let Some(requests) = requests {
        query.insert("requests", requests.to_string());
    }
    let repeats = view.stages.iter().map(|stage| stage.repeat + 1).max();
    query.insert("repeats", repeats.unwrap_or(1).to_string());
}
