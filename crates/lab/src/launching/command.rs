//! The command of a launch as it goes to the host.

use tokdyno_domain::{
    meter::ApiKey,
    profile::{Activation, CommandLine, ProfileSpec},
    secrets::SECRET_MASK,
};
use tokdyno_remote::RawCommand;

/// The beginning of the name of NCCL's own log, and its end.
const NCCL_LOG: (&str, &str) = ("nccl.", ".log");

/// The profile with NCCL's own log switched on, written into this folder of the host.
pub(super) fn with_nccl_log(spec: &ProfileSpec, folder_path: &str) -> ProfileSpec {
    let mut spec = spec.clone();
    let file = format!("{folder_path}/{}%h.%p{}", NCCL_LOG.0, NCCL_LOG.1);
    for (name, value) in [
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_DEBUG_SUBSYS", "INIT,ENV,TUNING"),
        ("NCCL_DEBUG_FILE", file.as_str()),
    ] {
        spec.environment.retain(|(other, _)| other != name);
        spec.environment.push((name.to_owned(), value.to_owned()));
    }
    if let Activation::Container { arguments, .. } = &mut spec.activation {
        // The folder under the same path inside.
        arguments.extend([
            "--volume".to_owned(),
            format!("{folder_path}:{folder_path}"),
        ]);
    }
    spec
}

/// Is this file of a launch's folder NCCL's own log?
pub(super) fn is_nccl_log(name: &str) -> bool {
    name.starts_with(NCCL_LOG.0) && name.ends_with(NCCL_LOG.1)
}

/// The command byte for byte.
pub(super) fn raw(command: &CommandLine) -> RawCommand {
    RawCommand {
        argv: command
            .words()
            .map(|word| word.as_bytes().to_vec())
            .collect(),
        environment: command
            .environment
            .iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
            .collect(),
        directory: command
            .directory
            .as_ref()
            .map(|path| path.as_bytes().to_vec()),
    }
}

/// The key that the profile gives its engine, so that it can be asked with it. One
/// that was masked on its host is none.
pub(crate) fn api_key(spec: &ProfileSpec) -> Option<ApiKey> {
    let command = spec.command();
    let mut words = command.arguments.iter();
    while let Some(word) = words.next() {
        if word == "--api-key" {
            return words.next().and_then(|key| known(key));
        }
        if let Some(key) = word.strip_prefix("--api-key=") {
            return known(key);
        }
    }
    command.variable("VLLM_API_KEY").and_then(known)
}

fn known(key: &str) -> Option<ApiKey> {
    if key.contains(SECRET_MASK) {
        return None;
    }
    ApiKey::new(key)
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::{
        engine::EngineKind,
        profile::{Parameters, READY_TIMEOUT_S},
    };

    use super::*;

    fn spec(arguments: &[&str]) -> ProfileSpec {
        ProfileSpec {
            engine: EngineKind::Vllm,
            program: "vllm".to_owned(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            environment: vec![("NCCL_DEBUG".to_owned(), "WARN".to_owned())],
            parameters: Parameters {
                model: "m".to_owned(),
                drafter: None,
                tensor_parallel: 1,
                port: 8000,
                served_name: String::new(),
            },
            directory: None,
            activation: Activation::None,
            ready_timeout_s: READY_TIMEOUT_S,
            notes: String::new(),
        }
    }

    #[test]
    fn the_key_is_found_wherever_the_engine_takes_it_from() {
        let found = |spec: &ProfileSpec| api_key(spec).map(|key| key.reveal().to_owned());
        assert_eq!(
            found(&spec(&["serve", "m", "--api-key", "k"])).as_deref(),
            Some("k")
        );
        assert_eq!(
            found(&spec(&["serve", "--api-key=k"])).as_deref(),
            Some("k")
        );
        let mut by_variable = spec(&["serve"]);
        assert_eq!(found(&by_variable), None);
        by_variable
            .environment
            .push(("VLLM_API_KEY".to_owned(), "v".to_owned()));
        assert_eq!(found(&by_variable).as_deref(), Some("v"));
    }

    #[test]
    fn a_masked_key_is_never_sent() {
        let flag = format!("--api-key={SECRET_MASK}");
        assert!(api_key(&spec(&["serve", &flag])).is_none());
        assert!(api_key(&spec(&["serve", "--api-key", SECRET_MASK])).is_none());
        let mut by_variable = spec(&["serve"]);
        by_variable
            .environment
            .push(("VLLM_API_KEY".to_owned(), format!("sk-{SECRET_MASK}")));
        assert!(api_key(&by_variable).is_none());
    }

    #[test]
    fn a_verifying_launch_writes_nccls_log_into_its_folder() {
        let with = with_nccl_log(&spec(&["serve"]), "/state/x");
        let command = with.command();
        assert_eq!(command.variable("NCCL_DEBUG"), Some("INFO"));
        assert_eq!(
            command.variable("NCCL_DEBUG_FILE"),
            Some("/state/x/nccl.%h.%p.log")
        );
        let set = with
            .environment
            .iter()
            .filter(|(name, _)| name == "NCCL_DEBUG");
        assert_eq!(set.count(), 1, "not twice");
        assert!(is_nccl_log("nccl.gpu1.77.log") && !is_nccl_log("log"));
    }
}
