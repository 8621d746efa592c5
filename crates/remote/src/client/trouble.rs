//! What ssh says when it fails, understood. Its messages are not translated.

use super::error::RemoteError;

/// How ssh, or the agent, ended without an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Ending {
    /// Exit code, if it ended by itself.
    pub(super) code: Option<i32>,
    /// Last lines of standard error.
    pub(super) stderr: String,
    /// What standard output held instead of a greeting.
    pub(super) stdout: String,
    /// Had the agent greeted?
    pub(super) greeted: bool,
}

impl Ending {
    /// What to show of it.
    pub(super) fn said(&self) -> String {
        match (self.stderr.trim(), self.stdout.trim()) {
            ("", "") => self.code.map_or_else(
                || "it ended without a word".to_owned(),
                |code| format!("it ended with code {code} and without a word"),
            ),
            ("", stdout) => stdout.to_owned(),
            (stderr, _) => stderr.to_owned(),
        }
    }
}

/// Exit code of ssh itself; all others are the remote command's.
const SSH_FAILED: i32 = 255;

/// What an ending of ssh means.
pub(super) fn explain(host: &str, ending: &Ending) -> RemoteError {
    let host = host.to_owned();
    let said = ending.said();
    let text = &ending.stderr;
    let any = |patterns: &[&str]| patterns.iter().any(|pattern| text.contains(pattern));
    if ending.greeted {
        return RemoteError::Cut { host, said };
    }
    if ending.code.is_some_and(|code| code != SSH_FAILED) {
        return RemoteError::AgentBroken { host, said };
    }
    // The order matters: behind a jump host, a late line tells only that the first
    // connection failed, an earlier one tells why.
    if any(&["REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key for "])
        && any(&["has changed", "HAS CHANGED"])
    {
        RemoteError::ChangedHostKey { host, said }
    } else if any(&[
        "Host key verification failed",
        "host key is known for",
        "No matching host key fingerprint",
    ]) {
        RemoteError::UnknownHostKey { host, said }
    } else if any(&[
        "Permission denied",
        "Too many authentication failures",
        "No more authentication methods",
        "no mutual signature",
    ]) {
        RemoteError::Refused { host, said }
    } else if any(&["Could not resolve hostname", "Name or service not known"]) {
        RemoteError::UnknownName { host, said }
    } else if any(&[
        "Bad configuration option",
        "Can't open user config file",
        "terminating,",
        "Bad owner or permissions on",
        "keyword ",
        "Bad ssh2 ",
    ]) {
        RemoteError::Configuration { host, said }
    } else if any(&["closed by remote host", "Broken pipe", "Timeout, server"])
        && !any(&["kex_exchange_identification", "banner exchange"])
    {
        RemoteError::Cut { host, said }
    } else {
        RemoteError::Unreachable { host, said }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(stderr: &str) -> &'static str {
        explain(
            "gpu1",
            &Ending {
                code: Some(255),
                stderr: stderr.to_owned(),
                ..Ending::default()
            },
        )
        .word()
    }

    #[test]
    fn messages_of_ssh_are_told_apart() {
        for (stderr, expected) in [
            (
                "No ED25519 host key is known for gpu1 and you have requested strict checking.\nHost key verification failed.",
                "unknown_host_key",
            ),
            (
                "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key for gpu1 has changed and you have requested strict checking.\nHost key verification failed.",
                "changed_host_key",
            ),
            (
                "root@gpu1: Permission denied (publickey,password).",
                "refused",
            ),
            (
                "Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures",
                "refused",
            ),
            (
                "ssh: Could not resolve hostname gpu1: Name or service not known",
                "unknown_name",
            ),
            (
                "ssh: connect to host gpu1 port 22: Connection refused",
                "unreachable",
            ),
            (
                "ssh: connect to host gpu1 port 22: Connection timed out",
                "unreachable",
            ),
            (
                "ssh: connect to host gpu1 port 22: No route to host",
                "unreachable",
            ),
            (
                "kex_exchange_identification: Connection closed by remote host\nConnection closed by 10.0.0.1 port 22",
                "unreachable",
            ),
            (
                "jump: Permission denied (publickey).\nkex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535",
                "refused",
            ),
            (
                "/root/.ssh/config: line 3: Bad configuration option: prot\n/root/.ssh/config: terminating, 1 bad configuration options",
                "configuration",
            ),
            ("client_loop: send disconnect: Broken pipe", "cut"),
            ("", "unreachable"),
        ] {
            assert_eq!(word(stderr), expected, "{stderr}");
        }
    }

    #[test]
    fn what_the_login_shell_says_is_not_taken_for_ssh() {
        let ending = Ending {
            code: Some(1),
            stdout: "This account is currently not available.".to_owned(),
            ..Ending::default()
        };
        let error = explain("gpu1", &ending);
        assert_eq!(error.word(), "agent_broken");
        assert!(error.to_string().contains("not available"));
    }

    #[test]
    fn after_the_greeting_an_end_is_a_cut() {
        let ending = Ending {
            code: Some(255),
            greeted: true,
            ..Ending::default()
        };
        assert_eq!(explain("gpu1", &ending).word(), "cut");
    }
}
