//! Secrets out of what engines tell: masked before anything is stored or shown.

/// What stands in place of a secret.
pub(crate) const MASK: &str = "•••";

/// Names of which the whole value is a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    // `tokenizer_path` and `max_total_tokens` are no secrets, `hf_token` is one.
    words.iter().any(|word| {
        matches!(
            *word,
            "secret"
                | "secrets"
                | "password"
                | "passwd"
                | "passphrase"
                | "authorization"
                | "credential"
                | "credentials"
                | "cookie"
                | "apikey"
                | "bearer"
        ) || word.ends_with("password")
            || word.ends_with("secret")
    }) || words
        .last()
        .is_some_and(|word| matches!(*word, "token" | "key" | "apitoken" | "accesskey"))
        || words.windows(2).any(|pair| {
            matches!(
                pair,
                ["api" | "access" | "private" | "secret", "key" | "keys"]
            )
        })
}

/// `text` with everything in it that looks like a secret masked: the value after a
/// flag with a secret's name, `Bearer …`, keys of well-known makers, passwords in
/// addresses, and `known`, the key given for this very endpoint.
pub(crate) fn masked_text(text: &str, known: Option<&str>) -> String {
    let text = match known {
        // Shorter ones would eat harmless words.
        Some(known) if known.len() >= 6 => text.replace(known, MASK),
        _ => text.to_owned(),
    };
    let mut out = String::with_capacity(text.len());
    let mut hide_next = false;
    for piece in text.split_inclusive(|c: char| c.is_whitespace() || matches!(c, ',' | '"' | '\''))
    {
        let word =
            piece.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '"' | '\''));
        let tail = &piece[word.len()..];
        if word.is_empty() {
            out.push_str(piece);
            continue;
        }
        if hide_next && is_scheme(word) {
            // `Authorization: Bearer …`: the secret is the word after this one.
            out.push_str(word);
        } else if hide_next && !word.starts_with("--") {
            out.push_str(MASK);
            hide_next = false;
        } else {
            hide_next = announces_secret(word);
            out.push_str(&masked_word(word));
        }
        out.push_str(tail);
    }
    out
}

/// Is the next word the secret?
fn announces_secret(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer")
        || word
            .strip_prefix("--")
            .is_some_and(|flag| !flag.contains('=') && is_secret_name(flag))
        || word.strip_suffix(':').is_some_and(is_secret_name)
}

/// How an `Authorization` header's secret is introduced.
fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

fn masked_word(word: &str) -> String {
    if let Some((name, value)) = word.split_once('=')
        && !value.is_empty()
        && is_secret_name(name)
    {
        return format!("{name}={MASK}");
    }
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((credentials, host)) = rest.split_once('@')
        && credentials.contains(':')
        && !credentials.contains('/')
    {
        return format!("{scheme}://{MASK}@{host}");
    }
    const MAKERS: [&str; 10] = [
        "sk-",
        "hf_",
        "ghp_",
        "gho_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "nvapi-",
        "AKIA",
    ];
    let start = word.rfind('=').map_or(0, |at| at + 1);
    let value = &word[start..];
    if MAKERS
        .iter()
        .any(|maker| value.starts_with(maker) && value.len() >= maker.len() + 8)
    {
        return format!("{}{MASK}", &word[..start]);
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_names_about_tokens() {
        for name in [
            "api_key",
            "admin_api_key",
            "ssl_keyfile_password",
            "hf_token",
            "env.VLLM_API_KEY",
            "env.HF_TOKEN",
            "headers.Authorization",
            "AWS_SECRET_ACCESS_KEY",
            "client-secret",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "tokenizer_path",
            "max_total_tokens",
            "skip_tokenizer_init",
            "speculative_num_draft_tokens",
            "speculative_token_map",
            "num_kv_heads",
            "kv_cache_dtype",
            "ssl_keyfile",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn secrets_inside_a_command_are_masked() {
        let masked = masked_text(
            "serve --model m --api-key abc123 --admin-api-key=def456 --tp 8 -H 'Authorization: Bearer xyz' HF_TOKEN=hf_abcdefghijkl",
            None,
        );
        for secret in ["abc123", "def456", "xyz", "abcdefghijkl"] {
            assert!(!masked.contains(secret), "{masked}");
        }
        assert!(
            masked.contains("--model m") && masked.contains("--tp 8"),
            "{masked}"
        );
    }

    #[test]
    fn values_are_recognised_by_their_look() {
        assert_eq!(masked_text("sk-0123456789abcdef", None), MASK);
        assert_eq!(masked_text("key: sk-0123456789abcdef", None), "key: •••");
        assert_eq!(
            masked_text("redis://me:pw@cache:6379/0", None),
            "redis://•••@cache:6379/0"
        );
        assert_eq!(masked_text("sk-learn", None), "sk-learn");
        assert_eq!(masked_text("a plain value", None), "a plain value");
        assert_eq!(masked_text("x my-own-key y", Some("my-own-key")), "x ••• y");
    }

    proptest! {
        #[test]
        fn the_endpoints_own_key_never_survives(before in ".{0,40}", key in "[a-z0-9]{8,24}", after in ".{0,40}") {
            let masked = masked_text(&format!("{before}{key}{after}"), Some(&key));
            prop_assert!(!masked.contains(&key));
        }
    }
}
