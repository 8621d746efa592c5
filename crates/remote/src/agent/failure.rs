//! What the system refuses, as failures for people.

use std::{io, path::Path};

use rustix::io::Errno;

use crate::wire::{Failure, FailureWord};

/// A failure of the file system at `path`; `doing` completes "Could not …".
pub(super) fn file(doing: &str, path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    let raw = error.raw_os_error().map(Errno::from_raw_os_error);
    let (word, remedy) = match raw {
        Some(Errno::NOENT | Errno::NOTDIR) => (
            FailureWord::NoSuchFile,
            "it is not there. Check the path on the host",
        ),
        Some(Errno::ACCESS | Errno::PERM) => (
            FailureWord::PermissionDenied,
            "the account may not. Connect as its owner or change the permissions",
        ),
        Some(Errno::NOSPC | Errno::DQUOT) => (
            FailureWord::DiskFull,
            "the disk is full or the quota used up. Free some space on the host",
        ),
        Some(Errno::ROFS) => (
            FailureWord::ReadOnly,
            "the file system is mounted read-only. Set XDG_STATE_HOME on the host to a place that can be written",
        ),
        _ => {
            return Failure::new(
                FailureWord::System,
                format!("Could not {doing} {shown}: {error}."),
            );
        }
    };
    Failure::new(word, format!("Could not {doing} {shown}: {remedy}."))
}

/// The failure of starting `program`, found at `path`.
pub(super) fn start(program: &str, path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    let raw = error.raw_os_error().map(Errno::from_raw_os_error);
    match raw {
        Some(Errno::NOENT | Errno::NOTDIR) => Failure::new(
            FailureWord::NotExecutable,
            format!(
                "{shown} is there, but the interpreter or loader it names is not. Check its first line, or whether it was built for this system."
            ),
        ),
        Some(Errno::ACCESS | Errno::PERM) => Failure::new(
            FailureWord::NotExecutable,
            format!(
                "{shown} may not be executed. Set its execute permission, and check that its file system is not mounted noexec."
            ),
        ),
        Some(Errno::NOEXEC) => Failure::new(
            FailureWord::NotExecutable,
            format!(
                "{shown} is no program for this machine: neither of its architecture nor a script with a first line that names an interpreter."
            ),
        ),
        Some(Errno::TOOBIG) => Failure::new(
            FailureWord::TooLong,
            format!(
                "The arguments and the environment of {program} are longer than the system takes. Put long values into a file."
            ),
        ),
        _ => Failure::new(
            FailureWord::System,
            format!("{program} could not be started: {error}."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_becomes_a_kind_and_a_sentence_with_a_remedy() {
        let path = Path::new("/state/x");
        for (errno, word, remedy) in [
            (Errno::NOSPC, FailureWord::DiskFull, "Free some space"),
            (Errno::DQUOT, FailureWord::DiskFull, "quota"),
            (Errno::ROFS, FailureWord::ReadOnly, "XDG_STATE_HOME"),
            (Errno::ACCESS, FailureWord::PermissionDenied, "permissions"),
            (Errno::NOENT, FailureWord::NoSuchFile, "Check the path"),
            (Errno::IO, FailureWord::System, "write"),
        ] {
            let failure = file("write", path, &errno.into());
            assert_eq!(failure.word, word);
            assert!(
                failure.sentence.contains(remedy) && failure.sentence.contains("/state/x"),
                "{failure}"
            );
        }
        for (errno, word) in [
            (Errno::NOENT, FailureWord::NotExecutable),
            (Errno::ACCESS, FailureWord::NotExecutable),
            (Errno::NOEXEC, FailureWord::NotExecutable),
            (Errno::TOOBIG, FailureWord::TooLong),
            (Errno::NOMEM, FailureWord::System),
        ] {
            assert_eq!(start("vllm", path, &errno.into()).word, word);
        }
    }
}
