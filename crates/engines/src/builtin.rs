//! Profiles to begin with: those of the founding measurements of Kimi-K2.5 on eight
//! GPUs, and the single steps between them.

use tokdyno_domain::{
    engine::EngineKind,
    profile::{Activation, Parameters, ProfileSpec, READY_TIMEOUT_S},
    views::profiles::BuiltinView,
};

use crate::{knowledge::cautions, shell::quote};

/// The NCCL variables of the founding measurements.
const NCCL: [(&str, &str); 6] = [
    ("NCCL_PROTO", "LL"),
    ("NCCL_ALGO", "Ring"),
    ("NCCL_P2P_LEVEL", "SYS"),
    ("NCCL_MAX_NCHANNELS", "16"),
    ("NCCL_BUFFSIZE", "16777216"),
    ("NCCL_NTHREADS", "512"),
];
const MODEL: &str = "/shared/kimi-k2.5-int4";
const PYTHON: &str = "/root/ml-env/bin/python3";

const VLLM: &str = "serve {MODEL} --host 127.0.0.1 --port {PORT} --served-model-name {NAME} --tensor-parallel-size {TP} --trust-remote-code --gpu-memory-utilization 0.90 --enable-prompt-tokens-details";
const SGLANG: &str = "-m sglang.launch_server --model-path {MODEL} --tp-size {TP} --trust-remote-code --host 127.0.0.1 --port {PORT} --served-model-name {NAME} --attention-backend triton --enable-metrics --enable-cache-report";
const EAGLE3: &str = "--speculative-algorithm EAGLE3 --speculative-draft-model-path {DRAFTER} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --max-running-requests 128";

/// All of them, in the order in which they are shown.
#[must_use]
pub fn all() -> Vec<BuiltinView> {
    let mut all = vec![
        vllm("vllm-baseline", "vLLM as it comes.", &[], &[], None),
        vllm(
            "vllm-nccl",
            "vLLM with the six NCCL variables, and all-reduce left to NCCL.",
            &NCCL,
            &["--disable-custom-all-reduce"],
            None,
        ),
        vllm(
            "vllm-eagle3",
            "vLLM with an EAGLE-3 drafter that drafts three tokens. Put the path of yours in.",
            &[],
            &[
                "--speculative-config",
                r#"{"method":"eagle3","model":"{DRAFTER}","num_speculative_tokens":3}"#,
            ],
            Some("/shared/eagle3-drafter"),
        ),
        sglang(
            "sglang-base",
            "SGLang with CUDA graphs and triton attention, not tuned.",
            &[],
            "",
            None,
        ),
        sglang(
            "sglang-nccl-cd4",
            "SGLang with the six NCCL variables and --num-continuous-decode-steps 4, which is kept to stay true to the founding measurement although nothing reads it.",
            &NCCL,
            "--num-continuous-decode-steps 4 --disable-custom-all-reduce",
            None,
        ),
        sglang(
            "sglang-aqmedai-eagle3",
            "SGLang with AQ-MedAI's EAGLE-3 drafter for Kimi-K2.",
            &[],
            EAGLE3,
            Some("AQ-MedAI/Kimi-K2-Instruct-eagle3"),
        ),
        sglang(
            "sglang-custom-eagle3",
            "SGLang with an EAGLE-3 drafter of your own. Put its path in.",
            &[],
            EAGLE3,
            Some("/shared/eagle3-drafter"),
        ),
        sglang(
            "sglang-hs-extract",
            "SGLang 0.5.23 for extracting the hidden states that an EAGLE-3 drafter learns from.",
            &[],
            "--cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled --disable-radix-cache --chunked-prefill-size -1 --speculative-algorithm EAGLE3 --enable-return-aux-hidden-states --return-aux-hidden-state-layer-ids 2 30 58",
            None,
        ),
        sglang(
            "sglang-hs-extract-founding",
            "SGLang up to 0.5.9 for extracting hidden states, in the founding form: it needs your own patch that dumps them.",
            &[],
            "--disable-cuda-graph --disable-radix-cache",
            None,
        ),
    ];
    all.extend(NCCL.iter().map(|variable| {
        let short = variable.0.trim_start_matches("NCCL_").to_ascii_lowercase();
        sglang(
            &format!("sglang-only-{}", short.replace('_', "-")),
            &format!(
                "sglang-base with {}={} and nothing else: what this one variable does.",
                variable.0, variable.1
            ),
            std::slice::from_ref(variable),
            "",
            None,
        )
    }));
    all
}

/// One of them.
#[must_use]
pub fn find(id: &str) -> Option<BuiltinView> {
    all().into_iter().find(|builtin| builtin.id == id)
}

fn vllm(
    id: &str,
    text: &str,
    variables: &[(&str, &str)],
    more: &[&str],
    drafter: Option<&str>,
) -> BuiltinView {
    let words = VLLM.split(' ').chain(more.iter().copied());
    view(
        id,
        text,
        EngineKind::Vllm,
        "vllm",
        words,
        variables,
        drafter,
    )
}

fn sglang(
    id: &str,
    text: &str,
    variables: &[(&str, &str)],
    more: &str,
    drafter: Option<&str>,
) -> BuiltinView {
    let words = SGLANG.split(' ').chain(more.split_whitespace());
    view(
        id,
        text,
        EngineKind::Sglang,
        PYTHON,
        words,
        variables,
        drafter,
    )
}

fn view<'a>(
    id: &str,
    text: &str,
    engine: EngineKind,
    program: &str,
    words: impl Iterator<Item = &'a str>,
    variables: &[(&str, &str)],
    drafter: Option<&str>,
) -> BuiltinView {
    let spec = ProfileSpec {
        engine,
        program: program.to_owned(),
        arguments: words.map(str::to_owned).collect(),
        environment: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        parameters: Parameters {
            model: MODEL.to_owned(),
            drafter: drafter.map(str::to_owned),
            tensor_parallel: 8,
            port: 8000,
            served_name: String::new(),
        },
        directory: None,
        activation: Activation::None,
        ready_timeout_s: READY_TIMEOUT_S,
        notes: String::new(),
    };
    BuiltinView {
        id: id.to_owned(),
        engine,
        text: text.to_owned(),
        command: quote(&spec.command()),
        cautions: cautions(&spec, None),
        spec,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tokdyno_domain::{profile::ProfileError, views::profiles::Gravity};

    use super::*;

    #[test]
    fn every_one_can_be_kept_under_its_own_name() {
        let mut ids = BTreeSet::new();
        for builtin in all() {
            assert_eq!(builtin.spec.check(), Ok(()), "{}", builtin.id);
            assert_eq!(
                ProfileError::check_name(&builtin.id),
                Ok(builtin.id.as_str())
            );
            assert!(builtin.text.ends_with('.'), "{}", builtin.text);
            assert!(ids.insert(builtin.id.clone()), "{}", builtin.id);
        }
        assert_eq!(ids.len(), 15);
    }

    #[test]
    fn commands_are_the_founding_ones() {
        let line = |id: &str| {
            let command = find(id).expect(id).spec.command();
            command.words().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            line("vllm-baseline"),
            "vllm serve /shared/kimi-k2.5-int4 --host 127.0.0.1 --port 8000 --served-model-name /shared/kimi-k2.5-int4 --tensor-parallel-size 8 --trust-remote-code --gpu-memory-utilization 0.90 --enable-prompt-tokens-details"
        );
        assert!(line("sglang-nccl-cd4").ends_with(
            "--attention-backend triton --enable-metrics --enable-cache-report --num-continuous-decode-steps 4 --disable-custom-all-reduce"
        ));
        assert!(line("sglang-aqmedai-eagle3").contains(
            "--speculative-draft-model-path AQ-MedAI/Kimi-K2-Instruct-eagle3 --speculative-num-steps 3"
        ));
        assert!(line("vllm-eagle3").ends_with(
            r#"{"method":"eagle3","model":"/shared/eagle3-drafter","num_speculative_tokens":3}"#
        ));
        let environment = find("vllm-nccl").expect("it").spec.environment;
        assert_eq!(environment.len(), 6);
    }

    #[test]
    fn ablations_set_one_variable_each() {
        let ablations: Vec<BuiltinView> = all()
            .into_iter()
            .filter(|builtin| builtin.id.starts_with("sglang-only-"))
            .collect();
        let names: BTreeSet<String> = ablations
            .iter()
            .map(|builtin| builtin.spec.environment[0].0.clone())
            .collect();
        assert_eq!(names.len(), NCCL.len());
        let base = find("sglang-base").expect("it").spec;
        for builtin in ablations {
            assert_eq!(builtin.spec.environment.len(), 1);
            assert_eq!(builtin.spec.arguments, base.arguments);
        }
    }

    #[test]
    fn the_inert_flag_has_its_badge_and_nothing_is_called_wrong() {
        let tuned = find("sglang-nccl-cd4").expect("it");
        assert!(
            tuned
                .cautions
                .iter()
                .any(|caution| caution.badge == "no effect"),
            "{:?}",
            tuned.cautions
        );
        for builtin in all() {
            for caution in &builtin.cautions {
                assert_ne!(
                    caution.gravity,
                    Gravity::Wrong,
                    "{}: {caution:?}",
                    builtin.id
                );
                assert_ne!(caution.badge, "unknown here", "{}: {caution:?}", builtin.id);
            }
        }
    }
}
