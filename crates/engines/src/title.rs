//! Names that follow from what an engine said: which model to measure, and what to
//! call the configuration.

use tokdyno_domain::engine::EngineInfo;

/// The model to measure: `wanted` if it is served, else the one the engine was
/// started with, else the first of the list (adapters come after their base).
#[must_use]
pub fn preferred_model<'a>(info: &'a EngineInfo, wanted: Option<&str>) -> Option<&'a str> {
    let served = |name: &str| info.models.iter().find(|model| *model == name);
    wanted
        .and_then(served)
        .or_else(|| {
            info.settings
                .get("served_model_name")
                .and_then(|name| served(name))
        })
        .or_else(|| info.models.first())
        .map(String::as_str)
}

/// A name to begin with, such as `SGLang 0.5.23 kimi-k2.5-int4 · EAGLE3 · NCCL
/// tuned`. Nothing in it is guessed: speculation and variables are named only where
/// the engine reports them.
#[must_use]
pub fn title_of_configuration(info: &EngineInfo) -> String {
    let mut title = info.title();
    if let Some(model) = preferred_model(info, None) {
        let short = model
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or(model);
        title.push(' ');
        title.extend(short.chars().take(60));
    }
    if let Some(method) = ["speculative_algorithm", "speculative_config.method"]
        .iter()
        .find_map(|name| info.settings.get(*name))
    {
        title.push_str(" · ");
        title.extend(method.chars().take(24));
    }
    if info.settings.keys().any(|name| tunes_nccl(name)) {
        title.push_str(" · NCCL tuned");
    }
    title
}

/// Variables that change how NCCL works; others, such as its version or its log
/// level, are set in many images.
fn tunes_nccl(setting: &str) -> bool {
    setting.strip_prefix("env.NCCL_").is_some_and(|name| {
        matches!(
            name,
            "ALGO"
                | "PROTO"
                | "MIN_NCHANNELS"
                | "MAX_NCHANNELS"
                | "MIN_CTAS"
                | "MAX_CTAS"
                | "NTHREADS"
                | "BUFFSIZE"
                | "P2P_LEVEL"
                | "P2P_DISABLE"
                | "SHM_DISABLE"
                | "NVLS_ENABLE"
                | "LAUNCH_MODE"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokdyno_domain::engine::EngineKind;

    use super::*;

    fn info(models: &[&str], settings: &[(&str, &str)]) -> EngineInfo {
        EngineInfo {
            kind: EngineKind::Sglang,
            version: Some("0.5.23".to_owned()),
            models: models.iter().map(ToString::to_string).collect(),
            max_model_len: None,
            settings: settings
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect::<BTreeMap<_, _>>(),
            max_running_requests: None,
            simulated: false,
        }
    }

    #[test]
    fn the_wanted_model_wins_if_it_is_served() {
        let info = info(&["lora", "base"], &[("served_model_name", "base")]);
        assert_eq!(preferred_model(&info, Some("lora")), Some("lora"));
        assert_eq!(preferred_model(&info, Some("gone")), Some("base"));
        assert_eq!(preferred_model(&info, None), Some("base"));
    }

    #[test]
    fn without_a_hint_the_first_is_taken() {
        assert_eq!(preferred_model(&info(&["a", "b"], &[]), None), Some("a"));
        assert_eq!(preferred_model(&info(&[], &[]), None), None);
    }

    #[test]
    fn titles_name_only_what_is_known() {
        let path = ["/shared/kimi-k2.5-int4"];
        assert_eq!(
            title_of_configuration(&info(&path, &[("env.NCCL_VERSION", "2.30")])),
            "SGLang 0.5.23 kimi-k2.5-int4"
        );
        assert_eq!(
            title_of_configuration(&info(
                &path,
                &[
                    ("env.NCCL_PROTO", "LL"),
                    ("speculative_algorithm", "EAGLE3")
                ]
            )),
            "SGLang 0.5.23 kimi-k2.5-int4 · EAGLE3 · NCCL tuned"
        );
    }
}
