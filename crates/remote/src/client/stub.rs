//! The only command lines that travel over SSH. Both depend on nothing but the
//! agent's build.
//!
//! The account's login shell reads them first, whichever it is. So they are one
//! `exec sh -c '…'`, and within the quotes there is no single quote, backslash,
//! exclamation mark or line feed: such a word means the same to sh, bash, zsh, csh,
//! fish and rc.

use super::build::Build;

/// Places for the agent: the cache folder, and where the home directory cannot be
/// written or executed from, a folder of one's own in /tmp.
const PLACES: &str =
    r#""${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/tokdyno" "/tmp/tokdyno-$(id -u)""#;

/// Ours, and not writable by anybody else.
const SAFE: &str =
    r#"[ -O "$d" ] || continue; case "$(ls -ld "$d")" in d????-??-*) ;; *) continue;; esac;"#;

/// Starts the agent, or says that it is not there.
pub(super) fn start(build: &Build) -> String {
    let hash = &build.sha256;
    format!(
        r#"exec sh -c 'for d in {PLACES}; do a="$d/agent-{hash}"; [ -x "$a" ] && [ -O "$a" ] || continue; {SAFE} exec "$a" serve-one; done; echo; echo "tokdyno: no agent $(uname -s) $(uname -m)"'"#
    )
}

/// Stores the agent from standard input, whole or not at all.
pub(super) fn upload(build: &Build) -> String {
    let Build { sha256, size, .. } = build;
    format!(
        concat!(
            // Cleaning comes before saying: on a cut connection, saying ends the shell.
            r#"exec sh -c 'umask 077; t=; clean() {{ [ -z "$t" ] || rm -f "$t"; }}; "#,
            r#"say() {{ clean; echo; echo "tokdyno: upload $1"; exit 0; }}; "#,
            r#"for d in {places}; do mkdir -p "$d" 2>/dev/null; {safe} "#,
            // Can a file be written and executed here? Not on a full disk, nor under noexec.
            r#"p="$d/.probe-$(uname -n)-$$"; (echo "exit 0" >"$p") 2>/dev/null; chmod 700 "$p" 2>/dev/null; "#,
            r#"[ -x "$p" ] && "$p" 2>/dev/null; ok=$?; rm -f "$p"; [ "$ok" -eq 0 ] || continue; "#,
            // What a killed shell left, and builds of a month ago.
            r#"find "$d" -name ".agent-*" -mmin +60 -exec rm -f {{}} + 2>/dev/null; "#,
            r#"find "$d" -name "agent-*" -mtime +30 -exec rm -f {{}} + 2>/dev/null; "#,
            r#"t="$d/.agent-$(uname -n)-$$"; trap clean EXIT; trap "exit 1" HUP INT TERM; "#,
            r#"cat >"$t" || say full; "#,
            r#"[ "$(wc -c <"$t")" -eq {size} ] || say cut; "#,
            r#"s=$(sha256sum "$t" 2>/dev/null | cut -c 1-64); [ -z "$s" ] || [ "$s" = {hash} ] || say damaged; "#,
            r#"chmod 700 "$t" && mv -f "$t" "$d/agent-{hash}" || say full; say stored; done; say nowhere'"#,
        ),
        places = PLACES,
        safe = SAFE,
        size = size,
        hash = sha256,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_hold_nothing_that_login_shells_read_differently() {
        let build = Build::from_bytes(b"agent");
        for stub in [start(&build), upload(&build)] {
            let inside = stub
                .strip_prefix("exec sh -c '")
                .and_then(|rest| rest.strip_suffix('\''))
                .expect("one quoted word");
            for bad in ['\'', '\\', '!', '\n', '\r', '`'] {
                assert!(!inside.contains(bad), "{bad:?} in {inside}");
            }
            assert!(stub.is_ascii() && stub.len() < 4096);
        }
    }
}
