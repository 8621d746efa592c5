//! What the tests of experiments are made of.

use super::{Change, Factor, Level};
use crate::{
    engine::EngineKind,
    profile::{Activation, Parameters, ProfileSpec, READY_TIMEOUT_S},
};

pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// A profile of SGLang with these arguments behind its start.
pub(super) fn sglang(arguments: &str) -> ProfileSpec {
    ProfileSpec {
        engine: EngineKind::Sglang,
        program: "python3".to_owned(),
        arguments: words(&format!(
            "-m sglang.launch_server --model-path {{MODEL}} --tp-size {{TP}} --port {{PORT}} {arguments}"
        )),
        environment: Vec::new(),
        parameters: Parameters {
            model: "/shared/kimi-k2.5-int4".to_owned(),
            drafter: None,
            tensor_parallel: 8,
            port: 8000,
            served_name: String::new(),
        },
        directory: None,
        activation: Activation::None,
        ready_timeout_s: READY_TIMEOUT_S,
        notes: String::new(),
    }
}

/// A profile of vLLM with these arguments behind its start.
pub(super) fn vllm(arguments: &str) -> ProfileSpec {
    ProfileSpec {
        engine: EngineKind::Vllm,
        program: "vllm".to_owned(),
        arguments: words(&format!("serve {{MODEL}} --port {{PORT}} {arguments}")),
        ..sglang("")
    }
}

pub(super) fn set(flag: &str, value: &str) -> Change {
    Change::SetArgument {
        flag: flag.to_owned(),
        value: Some(value.to_owned()),
    }
}

pub(super) fn switch(flag: &str) -> Change {
    Change::SetArgument {
        flag: flag.to_owned(),
        value: None,
    }
}

pub(super) fn without(flag: &str) -> Change {
    Change::RemoveArgument {
        flag: flag.to_owned(),
    }
}

pub(super) fn variable(name: &str, value: &str) -> Change {
    Change::SetVariable {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

/// A factor over a flag; the first level leaves the profile as it is.
pub(super) fn factor(flag: &str, values: &[&str]) -> Factor {
    let base = Level {
        label: "as it is".to_owned(),
        changes: Vec::new(),
    };
    let levels = values.iter().map(|value| Level {
        label: (*value).to_owned(),
        changes: vec![set(flag, value)],
    });
    Factor {
        name: flag.to_owned(),
        levels: std::iter::once(base).chain(levels).collect(),
    }
}
