//! What a host that does not do what it was asked means for a launch.

use tokdyno_domain::launch::{FailureKind, LaunchFailure};
use tokdyno_remote::{FailureWord, RemoteError};

/// Is it about reaching the host, rather than about what was asked of it?
pub(super) fn is_outage(error: &RemoteError) -> bool {
    error.failure().is_none()
}

/// May the same question be answered if it is asked again soon? A host that has never
/// answered is not waited for: its name or address is more likely wrong.
pub(super) const fn passes(error: &RemoteError, answered: bool) -> bool {
    match error {
        RemoteError::Cut { .. } | RemoteError::TimedOut { .. } => true,
        RemoteError::Unreachable { .. } | RemoteError::UnknownName { .. } => answered,
        _ => false,
    }
}

/// Did the agent say so?
pub(super) fn said(error: &RemoteError, word: FailureWord) -> bool {
    error.failure().is_some_and(|failure| failure.word == word)
}

/// The failure of a launch that could not go on because of it.
pub(super) fn failure_of(error: &RemoteError) -> LaunchFailure {
    let kind = match error.failure() {
        Some(failure) => match failure.word {
            FailureWord::NoSuchProgram
            | FailureWord::NotExecutable
            | FailureWord::PermissionDenied => FailureKind::NoProgram,
            FailureWord::NoSuchDirectory => FailureKind::NoDirectory,
            FailureWord::DiskFull | FailureWord::ReadOnly => FailureKind::DiskFull,
            FailureWord::TooLong => FailureKind::BadFlag,
            _ => FailureKind::Agent,
        },
        None => match error {
            RemoteError::UnknownHostKey { .. } => FailureKind::HostKeyUnknown,
            RemoteError::ChangedHostKey { .. } => FailureKind::HostKeyChanged,
            RemoteError::Refused { .. } => FailureKind::AccessRefused,
            RemoteError::AgentMissing { .. }
            | RemoteError::OtherArchitecture { .. }
            | RemoteError::NoPlace { .. }
            | RemoteError::AgentBroken { .. }
            | RemoteError::Protocol { .. } => FailureKind::Agent,
            _ => FailureKind::Unreachable,
        },
    };
    let detail = match error {
        // Its own sentence is about what goes on; a launch that failed does not.
        RemoteError::Cut { host, .. } => format!(
            "The connection to {host} was cut and did not come back in time. Check the network, then launch again"
        ),
        _ => error.to_string(),
    };
    LaunchFailure::new(kind, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_waited_for_and_refusals_are_not() {
        let host = || "gpu1".to_owned();
        let said = String::new;
        let cut = RemoteError::Cut {
            host: host(),
            said: said(),
        };
        let slow = RemoteError::TimedOut {
            host: host(),
            seconds: 5,
        };
        let away = RemoteError::Unreachable {
            host: host(),
            said: said(),
        };
        let refused = RemoteError::Refused {
            host: host(),
            said: said(),
        };
        let changed = RemoteError::ChangedHostKey {
            host: host(),
            said: said(),
        };
        assert!(passes(&cut, false) && passes(&slow, false));
        assert!(passes(&away, true) && !passes(&away, false));
        assert!(!passes(&refused, true) && !passes(&changed, true));
        let failure = failure_of(&cut);
        assert_eq!(failure.kind, FailureKind::Unreachable);
        assert!(!failure.detail.contains("found again"), "{failure}");
        assert_eq!(failure_of(&refused).kind, FailureKind::AccessRefused);
    }
}
