//! The address of *New measurement*, filled in with what this run did.

use leptos_router::params::ParamsMap;
use tokdyno_domain::{
    views::{
        measure::{ArrivalsForm, LoadForm, WorkloadForm},
        run::RunView,
    },
    workload::Api,
};

/// `/runs/new?…`: endpoint, model, names, and the workload where the form can say it.
/// Elsewhere the form has its usual one, and the link must not promise the same.
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
    if let Some(form) = &view.again {
        add_workload(&mut query, form);
    }
    format!("/runs/new{}", query.to_query_string())
}

/// The keys are those that the form reads; what has its usual value is left out.
fn add_workload(query: &mut ParamsMap, form: &WorkloadForm) {
    let mut add = |key: &'static str, value: String| {
        query.insert(key, value);
    };
    match form.preset {
        Some(preset) => add("preset", preset.word().to_owned()),
        None => add_load(&mut add, form),
    }
    if form.api == Api::Chat {
        add("api", "chat".to_owned());
    }
    if form.founding_prompts {
        add("prompts", "founding".to_owned());
    }
    if let Some(tokens) = form.random_tokens {
        add("prompts", "random".to_owned());
        add("prompt_tokens", tokens.to_string());
    }
    if let Some(shared) = form.shared_prefix {
        add("prompts", "shared".to_owned());
        add("groups", shared.groups.to_string());
        add("prefix_tokens", shared.prefix_tokens.to_string());
        add("rest_tokens", shared.tokens.to_string());
    }
    for (key, bound) in [
        ("good_ttft", form.goodput.ttft_ms),
        ("good_tpot", form.goodput.tpot_ms),
        ("good_e2el", form.goodput.e2el_ms),
    ] {
        if let Some(bound) = bound {
            add(key, bound.to_string());
        }
    }
    if form.reset_cache {
        add("cache", "reset".to_owned());
    }
    if let Some(thinking) = form.thinking {
        add("thinking", if thinking { "on" } else { "off" }.to_owned());
    }
}

fn add_load(add: &mut impl FnMut(&'static str, String), form: &WorkloadForm) {
    add("preset", "custom".to_owned());
    let single = form.single_stream.map(|requests| requests.to_string());
    add("single", single.unwrap_or_default());
    match form.load {
        LoadForm::Concurrencies => add("c", form.concurrencies.replace(' ', "")),
        LoadForm::Saturation => {
            add("load", "saturation".to_owned());
            add("up_to", form.up_to.to_string());
            add("gain", form.min_gain_percent.to_string());
        }
        LoadForm::Rates => {
            add("load", "rates".to_owned());
            add("rates", form.rates.replace(' ', ""));
            match form.arrivals {
                ArrivalsForm::Poisson => {}
                ArrivalsForm::Constant => add("arrivals", "constant".to_owned()),
                ArrivalsForm::Gamma => {
                    add("arrivals", "gamma".to_owned());
                    add("burstiness", form.burstiness.to_string());
                }
            }
        }
    }
    for (key, value) in [
        (
            "requests",
            form.requests.map(|requests| requests.to_string()),
        ),
        ("seconds", form.seconds.map(|seconds| seconds.to_string())),
        (
            "warmup",
            form.warmup_requests.map(|warmup| warmup.to_string()),
        ),
        ("tokens", Some(form.output_tokens.to_string())),
        ("repeats", Some(form.repeats.to_string())),
    ] {
        if let Some(value) = value {
            add(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use leptos::reactive::owner::Owner;
    use tokdyno_domain::{goodput::Bounds, views::measure::SharedPrefixForm, workload::Preset};

    use super::*;
    use crate::pages::new_run::Form;

    #[test]
    fn the_form_reads_what_the_address_says() {
        let custom = WorkloadForm {
            preset: None,
            ..WorkloadForm::default()
        };
        let forms = [
            WorkloadForm {
                preset: Some(Preset::Standard),
                api: Api::Chat,
                thinking: Some(false),
                founding_prompts: true,
                ..WorkloadForm::default()
            },
            WorkloadForm {
                requests: Some(500),
                single_stream: None,
                warmup_requests: Some(3),
                ..custom.clone()
            },
            WorkloadForm {
                load: LoadForm::Saturation,
                up_to: 12,
                min_gain_percent: 3,
                shared_prefix: Some(SharedPrefixForm {
                    groups: 2,
                    prefix_tokens: 500,
                    tokens: 50,
                }),
                ..custom.clone()
            },
            WorkloadForm {
                load: LoadForm::Rates,
                rates: "0.5, 2".to_owned(),
                arrivals: ArrivalsForm::Gamma,
                burstiness: 0.25,
                seconds: Some(7.5),
                random_tokens: Some(64),
                goodput: Bounds {
                    tpot_ms: Some(12.5),
                    ..Bounds::default()
                },
                reset_cache: true,
                ..custom
            },
        ];
        Owner::new().with(|| {
            for form in forms {
                let mut query = ParamsMap::new();
                add_workload(&mut query, &form);
                let (_, read) = Form::from_query(&query).workload().expect("a workload");
                assert_eq!(Ok(read), form.workload());
            }
        });
    }
}
