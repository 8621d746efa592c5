//! Engines that were found running: what they are, and the profile that starts
//! another such one.

use tokdyno_domain::{
    engine::EngineKind,
    host::{FoundEngine, ProcessFacts},
    profile::{Activation, CommandLine, MAX_PROFILE_NAME, ProfileSpec, READY_TIMEOUT_S},
};

use crate::{
    shell::lift,
    words::{EngineStart, base_name},
};

/// Is it the process of an engine that serves? Workers, whose titles are no command
/// lines, are not.
#[must_use]
pub fn recognise(facts: ProcessFacts) -> Option<FoundEngine> {
    let words: Vec<&str> = facts.command.iter().map(String::as_str).collect();
    let start = EngineStart::find(&words)?;
    // A shell or a container's client that only carries the command along is not it.
    if is_carrier(words.first()?) {
        return None;
    }
    let (program, mut arguments) = program_and_arguments(&facts.command)?;
    let lifted = lift(&program, &mut arguments);
    let port = if lifted.names_port {
        Some(lifted.parameters.port)
    } else {
        let usual = lifted.parameters.port;
        match facts.ports.as_slice() {
            [] => None,
            ports if ports.contains(&usual) => Some(usual),
            [port, ..] => Some(*port),
        }
    };
    let model = lifted.parameters.model;
    Some(FoundEngine {
        process: facts,
        engine: start.engine,
        port,
        model: (!model.is_empty()).then_some(model),
    })
}

/// A profile that starts the same: model, port and the like become parameters where
/// they are a flag's whole value.
#[must_use]
pub fn profile_of(found: &FoundEngine) -> ProfileSpec {
    let process = &found.process;
    let (program, mut arguments) =
        program_and_arguments(&process.command).unwrap_or_else(|| (String::new(), Vec::new()));
    let lifted = lift(&program, &mut arguments);
    let mut parameters = lifted.parameters;
    if let Some(port) = found.port.filter(|port| *port > 0) {
        parameters.port = port;
    }
    let mut notes = vec![format!(
        "Read from process {} of {}.",
        process.identity.pid, process.user
    )];
    if process.environment.is_none() {
        notes.push("Its environment could not be read: add the variables by hand.".to_owned());
    }
    if !process.withheld.is_empty() {
        notes.push(format!(
            "Variables that were not read because they may be secret or are not on the list: {}.",
            process.withheld.join(", ")
        ));
    }
    if arguments
        .iter()
        .any(|word| word.contains(crate::mask::MASK))
    {
        notes.push(format!(
            "A secret in the command line was masked as {}: a profile with it cannot be launched as it stands.",
            crate::mask::MASK
        ));
    }
    ProfileSpec {
        engine: found.engine,
        program,
        arguments,
        environment: tuning(process),
        parameters,
        directory: process.directory.clone(),
        activation: Activation::None,
        ready_timeout_s: READY_TIMEOUT_S,
        notes: notes.join(" "),
    }
}

/// A name to begin with, such as `sglang-kimi-k2.5-int4-eagle3-nccl`.
#[must_use]
pub fn suggested_name(spec: &ProfileSpec) -> String {
    let mut parts = vec![match spec.engine {
        EngineKind::Other => base_name(&spec.program).to_owned(),
        engine => engine.word().to_owned(),
    }];
    let model = base_name(spec.parameters.model.trim_end_matches('/'));
    if !model.is_empty() {
        parts.push(model.to_owned());
    }
    if spec.parameters.drafter.is_some() {
        parts.push("draft".to_owned());
    }
    if spec
        .environment
        .iter()
        .any(|(name, _)| name.starts_with("NCCL_"))
    {
        parts.push("nccl".to_owned());
    }
    let mut name = String::new();
    for c in parts.join("-").to_ascii_lowercase().chars() {
        let fits = c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
        if fits && (c.is_ascii_alphanumeric() || !name.is_empty()) {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(MAX_PROFILE_NAME);
    let name = name.trim_end_matches('-');
    if name.is_empty() {
        "profile".to_owned()
    } else {
        name.to_owned()
    }
}

/// Programs that carry another command along.
fn is_carrier(program: &str) -> bool {
    matches!(
        base_name(program),
        "sh" | "bash"
            | "dash"
            | "zsh"
            | "fish"
            | "sudo"
            | "su"
            | "docker"
            | "podman"
            | "ssh"
            | "tmux"
            | "screen"
            | "timeout"
            | "watch"
            | "grep"
            | "conmon"
            | "containerd-shim"
            | "containerd-shim-runc-v2"
            | "tokdyno-agent"
    )
}

/// A script's interpreter is left out where the script itself can be started:
/// `/venv/bin/python3 /venv/bin/vllm serve …` is `/venv/bin/vllm serve …`.
fn program_and_arguments(command: &[String]) -> Option<(String, Vec<String>)> {
    let (program, arguments) = command.split_first()?;
    if let Some((script, rest)) = arguments.split_first()
        && base_name(program).starts_with("python")
        && matches!(base_name(script), "vllm" | "sglang")
        && script.starts_with('/')
    {
        return Some((script.clone(), rest.to_vec()));
    }
    Some((program.clone(), arguments.to_vec()))
}

/// Variables of a process that belong into a profile: those that tune, not those of
/// its login.
fn tuning(process: &ProcessFacts) -> Vec<(String, String)> {
    const ALSO: [&str; 12] = [
        "HF_HOME",
        "HF_HUB_",
        "OMP_",
        "MKL_",
        "TRITON_",
        "FLASHINFER_",
        "TORCH",
        "PYTORCH_",
        "LD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        "SPT_NOENV",
        "TOKDYNO_SIM_",
    ];
    let mut kept: Vec<(String, String)> = Vec::new();
    for (name, value) in process.environment.iter().flatten() {
        let wanted = crate::knowledge::nccl::matters(name)
            || ALSO.iter().any(|start| name.starts_with(start));
        let masked = value.contains(crate::mask::MASK);
        let known = kept.iter().any(|(other, _)| other == name);
        if wanted && !masked && !known && !name.contains('=') {
            kept.push((name.clone(), value.clone()));
        }
    }
    kept
}

/// Words of a command line as one.
pub(crate) fn as_command(words: &[String]) -> CommandLine {
    let (program, arguments) =
        program_and_arguments(words).unwrap_or_else(|| (String::new(), Vec::new()));
    CommandLine {
        program,
        arguments,
        environment: Vec::new(),
        directory: None,
    }
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::{
        host::{Keeper, ProcessIdentity},
        profile::ProfileError,
    };

    use super::*;

    fn process(line: &str) -> ProcessFacts {
        ProcessFacts {
            identity: ProcessIdentity {
                boot_id: "b".to_owned(),
                pid: 7,
                start_ticks: 1,
                pgid: 7,
            },
            user: "ml".to_owned(),
            command: line.split(' ').map(str::to_owned).collect(),
            directory: Some("/srv".to_owned()),
            environment: Some(vec![
                ("NCCL_PROTO".to_owned(), "LL".to_owned()),
                ("PATH".to_owned(), "/bin".to_owned()),
                ("HF_HOME".to_owned(), "/hf".to_owned()),
                ("VLLM_X".to_owned(), "•••".to_owned()),
            ]),
            withheld: vec!["HF_TOKEN".to_owned()],
            ports: vec![8123],
            gpu_mib: 1,
            gpus: vec![0],
            keeper: Keeper::Process,
            nccl_conf: Vec::new(),
        }
    }

    #[test]
    fn a_running_engine_becomes_a_profile_that_starts_the_same() {
        let line = "/venv/bin/python3 /venv/bin/vllm serve /m/kimi -tp 8 --port=8123 --served-model-name kimi --speculative-config {\"method\":\"eagle3\",\"model\":\"/d\"}";
        let found = recognise(process(line)).expect("an engine");
        assert_eq!(
            (found.engine, found.port, found.model.as_deref()),
            (EngineKind::Vllm, Some(8123), Some("/m/kimi"))
        );
        let spec = profile_of(&found);
        assert_eq!(spec.program, "/venv/bin/vllm");
        assert_eq!(
            spec.arguments.join(" "),
            "serve {MODEL} -tp {TP} --port={PORT} --served-model-name {NAME} --speculative-config {\"method\":\"eagle3\",\"model\":\"{DRAFTER}\"}"
        );
        let words: Vec<String> = spec.command().words().map(str::to_owned).collect();
        let asked: Vec<String> = line.split(' ').skip(1).map(str::to_owned).collect();
        assert_eq!(words, asked);
        assert_eq!(spec.check(), Ok(()));
        let names: Vec<&str> = spec
            .environment
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["NCCL_PROTO", "HF_HOME"]);
        assert!(spec.notes.contains("HF_TOKEN"), "{}", spec.notes);
    }

    #[test]
    fn a_port_that_is_not_named_is_the_one_it_listens_on() {
        let found =
            recognise(process("/opt/tokdyno simulate sglang --model-path m")).expect("an engine");
        assert_eq!(found.port, Some(8123));
        assert_eq!(profile_of(&found).parameters.port, 8123);
        let mut unbound = process("python3 -m sglang.launch_server --model-path m");
        unbound.ports.clear();
        assert_eq!(recognise(unbound).expect("an engine").port, None);
    }

    #[test]
    fn workers_and_what_only_carries_a_command_are_no_engines() {
        for line in [
            "sglang::scheduler_TP0",
            "VLLM::EngineCore",
            "nginx -g daemon",
            "bash -c x vllm serve /m",
            "docker run image vllm serve /m",
            "grep vllm serve",
        ] {
            assert_eq!(recognise(process(line)), None, "{line}");
        }
    }

    #[test]
    fn suggested_names_can_stand_in_an_address() {
        for line in [
            "vllm serve /m/Größe,x -tp 2",
            "python3 -m sglang.launch_server --model-path org/Model_1.5 --speculative-draft-model-path d",
        ] {
            let spec = profile_of(&recognise(process(line)).expect("an engine"));
            let name = suggested_name(&spec);
            assert_eq!(ProfileError::check_name(&name), Ok(name.as_str()));
        }
        let mut spec = profile_of(&recognise(process("vllm serve m")).expect("an engine"));
        spec.engine = EngineKind::Other;
        spec.program = "/ß".to_owned();
        spec.parameters.model = "x".repeat(200);
        let name = suggested_name(&spec);
        assert_eq!(ProfileError::check_name(&name), Ok(name.as_str()));
    }
}
