//! Secrets out of texts: masked before anything is stored, logged or shown to
//! somebody whom they do not concern.
//!
//! A text is read once. What counts as a secret: the value behind a name such as
//! `api_key` however the two are joined (`--api-key V`, `api_key='V'`, `"api_key": "V"`,
//! `API_KEY=V`), the word after `Bearer` or `Basic`, keys that begin as well-known
//! makers' do, and what stands before `@` in an address.

/// What stands in place of a secret. It is never a value that a program could use.
pub const SECRET_MASK: &str = "•••";

/// How well-known makers' keys begin.
const MAKERS: [&str; 11] = [
    "sk-",
    "hf_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "nvapi-",
    "AKIA",
];

/// Fewest characters of a maker's key after its beginning.
const LEAST_KEY: usize = 8;

/// Names of which the whole value is a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
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

/// `text` with every secret in it masked; masking it again changes nothing.
/// `known` is a key that is masked wherever it stands.
#[must_use]
pub fn masked_text(text: &str, known: Option<&str>) -> String {
    let text = match known {
        // Shorter ones would eat harmless words.
        Some(known) if known.len() >= 6 => text.replace(known, SECRET_MASK),
        _ => text.to_owned(),
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut before = None;
    while let Some(next) = rest.chars().next() {
        let taken = if before.is_none_or(|c| !is_of_name(c)) {
            piece(rest, before, &mut out)
        } else {
            None
        };
        let taken = taken.unwrap_or_else(|| {
            out.push(next);
            next.len_utf8()
        });
        before = rest[..taken].chars().next_back();
        rest = &rest[taken..];
    }
    out
}

/// Words with every secret in them masked, also one that is announced by the word
/// before it, whatever it looks like. vLLM takes several words after `--api-key`.
#[must_use]
pub fn masked_words(words: &[String]) -> Vec<String> {
    let mut hide_next = false;
    let mut hide_more = false;
    words
        .iter()
        .map(|word| {
            if std::mem::take(&mut hide_next) || (hide_more && !word.starts_with('-')) {
                return SECRET_MASK.to_owned();
            }
            hide_next = word.starts_with('-') && !word.contains('=') && is_secret_name(word);
            hide_more = hide_next && word.replace('_', "-").ends_with("api-key");
            masked_word(word)
        })
        .collect()
}

/// A variable's value as it may be shown.
#[must_use]
pub fn masked_variable(name: &str, value: &str) -> String {
    if is_secret_name(name) && !value.is_empty() {
        SECRET_MASK.to_owned()
    } else {
        masked_text(value, None)
    }
}

/// One word: of `NAME=value` the whole value belongs to the name, blanks and all.
fn masked_word(word: &str) -> String {
    match word.split_once('=') {
        Some((name, value)) if name.chars().all(is_of_name) && !name.is_empty() => {
            format!("{name}={}", masked_variable(name, value))
        }
        _ => masked_text(word, None),
    }
}

/// Masks the secret that begins here, if one does: writes what stands for it and
/// tells how many bytes of `rest` that was.
fn piece(rest: &str, before: Option<char>, out: &mut String) -> Option<usize> {
    address(rest, out)
        .or_else(|| named(rest, before, out))
        .or_else(|| of_maker(rest, before, out))
}

/// `scheme://user:password@place`, or with a token alone.
fn address(rest: &str, out: &mut String) -> Option<usize> {
    let scheme = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-')))
        .filter(|end| *end > 0)?;
    let behind = rest[scheme..].strip_prefix("://")?;
    let end = behind
        .find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '?' | '#' | ','))
        .unwrap_or(behind.len());
    let credentials = behind[..end].rfind('@')?;
    out.push_str(&rest[..scheme + 3]);
    out.push_str(SECRET_MASK);
    Some(scheme + 3 + credentials)
}

/// A name, what joins it to its value, and the value.
fn named(rest: &str, before: Option<char>, out: &mut String) -> Option<usize> {
    let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
    let name = &rest[..end];
    if is_scheme(name) {
        return after_scheme(rest, end, before, out);
    }
    if !is_secret_name(name) {
        return None;
    }
    let join = joined(name, &rest[end..])?;
    let start = end + join;
    let value = &rest[start..];
    // `'NAME=value'`: the quote around both ends the value.
    let around = before
        .filter(|c| is_quote(*c))
        .filter(|quote| !rest[end..start].contains(*quote) && !value.starts_with(*quote));
    // `Authorization: Bearer …` is masked where the scheme stands.
    let word = &value[..value.find(|c: char| !is_of_name(c)).unwrap_or(value.len())];
    if is_scheme(word) {
        out.push_str(&rest[..start]);
        return after_scheme(value, word.len(), around, out)
            .map(|taken| start + taken)
            .or_else(|| {
                out.push_str(word);
                Some(start + word.len())
            });
    }
    let (open, length) = value_length(value, around);
    let inner = &value[open..length];
    if announces(value, length) || is_harmless(name, inner, &rest[end..start]) {
        return None;
    }
    out.push_str(&rest[..start]);
    out.push_str(&value[..open]);
    out.push_str(SECRET_MASK);
    let closing = value[open..length]
        .chars()
        .next_back()
        .filter(|last| open > 0 && value.starts_with(*last));
    out.extend(closing);
    Some(start + length)
}

/// `Bearer …`: the word after it.
fn after_scheme(rest: &str, end: usize, before: Option<char>, out: &mut String) -> Option<usize> {
    let blank = rest[end..].len() - rest[end..].trim_start_matches([' ', '\t']).len();
    let start = end + blank;
    let value = &rest[start..];
    if blank == 0 || value.is_empty() {
        return None;
    }
    let (_, length) = value_length(value, before.filter(|c| is_quote(*c)));
    if length == 0 || announces(value, length) {
        return None;
    }
    // "Basic settings" is no header.
    if rest[..end].eq_ignore_ascii_case("basic") && !looks_encoded(&value[..length]) {
        return None;
    }
    out.push_str(&rest[..start]);
    out.push_str(SECRET_MASK);
    Some(start + length)
}

/// A key by its maker's beginning.
fn of_maker(rest: &str, before: Option<char>, out: &mut String) -> Option<usize> {
    let maker = MAKERS.iter().find(|maker| rest.starts_with(**maker))?;
    let key = &rest[maker.len()..];
    let of_key = |c: char| {
        c.is_ascii_alphanumeric()
            || (!maker.ends_with('_') && c == '-')
            || (maker.ends_with('-') && c == '_')
    };
    let length = key.find(|c: char| !of_key(c)).unwrap_or(key.len());
    // A folder may be called `hf_downloads`.
    let in_path = before == Some('/') || key[length..].starts_with('/');
    let mixed = key[..length].bytes().any(|byte| byte.is_ascii_digit());
    if length < LEAST_KEY || (in_path && !mixed) {
        return None;
    }
    out.push_str(SECRET_MASK);
    Some(maker.len() + length)
}

/// Length of what joins a name to its value: `=`, `: `, `": "`, and for flags blanks,
/// the end of a quoted word, a comma in a list and a line's continuation.
fn joined(name: &str, behind: &str) -> Option<usize> {
    let trimmed = behind.trim_start_matches(['"', '\'', ' ']);
    let signed = trimmed.strip_prefix(['=', ':']).map(|value| {
        let value = value.trim_start_matches([' ', '\t']);
        behind.len() - value.len()
    });
    if signed.is_some() {
        return signed;
    }
    if !name.starts_with("--") {
        return None;
    }
    let value = behind.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '\\'));
    let value = match behind.chars().next().filter(|c| is_quote(*c)) {
        // `'--api-key', 'V'`: the list goes on with a word of its own.
        Some(quote) => behind[quote.len_utf8()..]
            .trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '\\')),
        None => value,
    };
    let length = behind.len() - value.len();
    (length > 0 && !value.is_empty() && !value.trim_start_matches(is_quote).starts_with("--"))
        .then_some(length)
}

/// Where the value's inside begins, and where the value ends. A shell's word may be
/// put together from several quoted pieces; `around` is the quote that stands before
/// the name, which then ends the value.
fn value_length(value: &str, around: Option<char>) -> (usize, usize) {
    if let Some(quote) = around {
        return (0, value.find(quote).unwrap_or(value.len()));
    }
    let open = value
        .chars()
        .next()
        .filter(|c| is_quote(*c))
        .map_or(0, char::len_utf8);
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&' | ')' | ']' | '}');
    let mut quote = None;
    let mut escaped = false;
    let mut pieces = false;
    for (at, c) in value.char_indices() {
        match quote {
            _ if escaped => escaped = false,
            _ if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if ends(c) => return (open, at),
            // A quote after a bare value closes something around it.
            None if is_quote(c) && open == 0 && !value[..at].ends_with('=') => return (open, at),
            None if is_quote(c) => {
                quote = Some(c);
                pieces = true;
            }
            // `"V":`, or a sentence that goes on after the quote.
            None if pieces && matches!(c, ':' | '.') => return (open, at),
            None => {}
        }
    }
    (open, value.len())
}

/// It is no value but the next name, such as `api_key:` or `"api_key":`.
fn announces(value: &str, length: usize) -> bool {
    let word = &value[..length];
    let bare = word.trim_end_matches([':', '=']);
    let joined = bare.len() < word.len() || value[length..].starts_with([':', '=']);
    joined && is_secret_name(bare.trim_matches(is_quote))
}

/// No value, or a count: `#new-token: 128`.
fn is_harmless(name: &str, value: &str, join: &str) -> bool {
    let bare = value.trim_matches(is_quote);
    let is_count = join.contains(':')
        && !bare.is_empty()
        && bare
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
        && name.to_ascii_lowercase().ends_with("token");
    is_count
        || matches!(
            bare,
            "" | "None" | "null" | "none" | "true" | "false" | "True" | "False"
        )
}

fn looks_encoded(value: &str) -> bool {
    value.len() >= LEAST_KEY
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
        && (value.ends_with('=')
            || value.bytes().any(|byte| byte.is_ascii_digit())
            || value.bytes().skip(1).any(|byte| byte.is_ascii_uppercase()))
}

/// How a header's secret is introduced.
fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

const fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'')
}

const fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
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
        assert_eq!(masked_text("sk-0123456789abcdef", None), SECRET_MASK);
        assert_eq!(masked_text("key: sk-0123456789abcdef", None), "key: •••");
        assert_eq!(
            masked_text("redis://me:pw@cache:6379/0", None),
            "redis://•••@cache:6379/0"
        );
        assert_eq!(masked_text("sk-learn", None), "sk-learn");
        assert_eq!(masked_text("a plain value", None), "a plain value");
        assert_eq!(masked_text("x my-own-key y", Some("my-own-key")), "x ••• y");
    }

    #[test]
    fn secrets_are_found_however_name_and_value_are_joined() {
        for (text, expected) in [
            ("api_key='abc def', tp=8", "api_key='•••', tp=8"),
            (
                r#"ServerArgs(api_key="abc", port=1, admin_api_key=None)"#,
                r#"ServerArgs(api_key="•••", port=1, admin_api_key=None)"#,
            ),
            (
                r#"{"api_key": "a\"bc", "x": 1}"#,
                r#"{"api_key": "•••", "x": 1}"#,
            ),
            (r#"{"api_key":"abc"}"#, r#"{"api_key":"•••"}"#),
            ("{'--api-key': 'abc'}", "{'--api-key': '•••'}"),
            (
                "['--api-key', 'abc', '--tp']",
                "['--api-key', '•••', '--tp']",
            ),
            (
                "x --api-key \\\n  'a b' --tp 8",
                "x --api-key \\\n  '•••' --tp 8",
            ),
            ("--api-key 'it'\\''s mine' --tp 8", "--api-key '•••' --tp 8"),
            ("-e 'HF_TOKEN=a b' --tp 8", "-e 'HF_TOKEN=•••' --tp 8"),
            ("got header Bearer abc, gone", "got header Bearer •••, gone"),
            ("'Authorization: Bearer abc'", "'Authorization: Bearer •••'"),
            (
                "the header authorization:abc here",
                "the header authorization:••• here",
            ),
            ("key=sk-abcdefgh.", "key=•••"),
            ("(hf_abcdefghijklmn)", "(•••)"),
            ("used hf_abcdefghijklmn!", "used •••!"),
            ("url=http://tok@h/p?q=1", "url=http://•••@h/p?q=1"),
            ("see http://h/p and a@b", "see http://h/p and a@b"),
            (
                "#new-token: 128, #cached-token: 0",
                "#new-token: 128, #cached-token: 0",
            ),
            ("/models/hf_downloads/x", "/models/hf_downloads/x"),
            ("Basic settings are read", "Basic settings are read"),
            ("Basic dXNlcjpwYXNz", "Basic •••"),
            ("--api-key --tp 8", "--api-key --tp 8"),
            ("the api key is missing", "the api key is missing"),
        ] {
            let masked = masked_text(text, None);
            assert_eq!(masked, expected);
            assert_eq!(masked_text(&masked, None), masked, "again");
        }
    }

    #[test]
    fn words_are_masked_one_by_one() {
        let words = [
            "serve",
            "--api-key",
            "--odd",
            "second",
            "--hf-token=a b",
            "-e",
            "HF_TOKEN=c d",
            "--header",
            "Authorization: Bearer e",
            "--hf-token",
            "f",
            "model",
            "--api-key",
        ]
        .map(str::to_owned);
        assert_eq!(
            masked_words(&words),
            [
                "serve",
                "--api-key",
                "•••",
                "•••",
                "--hf-token=•••",
                "-e",
                "HF_TOKEN=•••",
                "--header",
                "Authorization: Bearer •••",
                "--hf-token",
                "•••",
                "model",
                "--api-key",
            ]
        );
        assert_eq!(masked_variable("HF_TOKEN", "x"), SECRET_MASK);
        assert_eq!(masked_variable("A", "x"), "x");
    }

    proptest! {
        #[test]
        fn a_named_secret_never_survives(
            before in "([a-z_=:, ./-]|Bearer |sk-|--token|://|@|•••){0,20}",
            (open, join) in prop::sample::select(vec![
                ("", "="), ("", ": "), ("", "='"), ("", "=\""), ("\"", "\": \""), ("'", "': '"),
            ]),
            secret in "[a-z]{3}[A-Z]{8,20}[0-9]",
            after in "[a-z'\", ]{0,10}",
        ) {
            let masked = masked_text(&format!("{before} {open}api_key{join}{secret}{after}"), None);
            prop_assert!(!masked.contains(&secret), "{}", masked);
        }

        #[test]
        fn the_endpoints_own_key_never_survives(before in ".{0,40}", key in "[a-z0-9]{8,24}", after in ".{0,40}") {
            let masked = masked_text(&format!("{before}{key}{after}"), Some(&key));
            prop_assert!(!masked.contains(&key));
        }
    }
}
