//! What of a process may leave its host: variables by allow-list, secrets never.

use tokdyno_domain::secrets::{SECRET_MASK as MASK, masked_text, masked_words};

/// Beginnings of names that matter to an engine.
const PREFIXES: [&str; 15] = [
    "NCCL_",
    "CUDA_",
    "VLLM_",
    "SGLANG_",
    "SGL_",
    "TORCH",
    "PYTORCH_",
    "HF_HUB_",
    "OMP_",
    "MKL_",
    "TRITON_",
    "FLASHINFER_",
    "CONDA_",
    "PYTHON",
    "TOKDYNO_SIM_",
];
/// Whole names that matter to an engine.
const NAMES: [&str; 5] = [
    "HF_HOME",
    "LD_LIBRARY_PATH",
    "PATH",
    "VIRTUAL_ENV",
    "SPT_NOENV",
];

/// Parts of names whose values nobody may see, asked for or not.
const SECRET_PARTS: [&str; 7] = [
    "TOKEN",
    "KEY",
    "SECRET",
    "PASSW",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
];

/// Variables that may leave the host, and the names of those withheld or masked.
pub(super) fn environment(
    variables: &[(Vec<u8>, Vec<u8>)],
    asked: &[String],
) -> (Vec<(String, String)>, Vec<String>) {
    let mut shown = Vec::new();
    let mut withheld = Vec::new();
    for (name, value) in variables {
        let name = String::from_utf8_lossy(name).into_owned();
        let value = String::from_utf8_lossy(value).into_owned();
        let wanted = NAMES.contains(&name.as_str())
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || asked.contains(&name);
        if !wanted || is_secret_name(&name) {
            withheld.push(name);
            continue;
        }
        let masked = masked_value(&value);
        if masked != value {
            withheld.push(name.clone());
        }
        shown.push((name, masked));
    }
    (shown, withheld)
}

/// Does a variable of this name hold a secret?
pub(super) fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET_PARTS.iter().any(|part| upper.contains(part))
}

/// A command line with its secrets masked, and whether there were any. The word after
/// a flag such as `--api-key` is masked whatever it looks like.
pub(super) fn masked_command(words: &[String]) -> (Vec<String>, bool) {
    let masked: Vec<String> = masked_words(words)
        .iter()
        .map(|word| {
            let shell_like = word.split_once('=').filter(|(name, value)| {
                is_variable_name(name) && is_secret_name(name) && !value.is_empty()
            });
            match shell_like {
                Some((name, _)) => format!("{name}={MASK}"),
                None => without_random(word),
            }
        })
        .collect();
    let any = masked != words;
    (masked, any)
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Secrets anywhere in a value: by their look, or by what announces them.
fn masked_value(value: &str) -> String {
    without_random(&masked_text(value, None))
}

/// Pieces that look random masked. Parts of paths are not: snapshots of models and
/// images are named by their hashes.
fn without_random(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for piece in value.split_inclusive(|c: char| c.is_whitespace() || ",;:&|\"'()[]{}".contains(c))
    {
        let word =
            piece.trim_end_matches(|c: char| c.is_whitespace() || ",;:&|\"'()[]{}".contains(c));
        let start = word
            .find('=')
            .filter(|at| !word[at + 1..].trim_matches('=').is_empty())
            .map_or(0, |at| at + 1);
        if looks_random(&word[start..]) && !out.ends_with("sha256:") {
            out.push_str(&word[..start]);
            out.push_str(MASK);
        } else {
            out.push_str(word);
        }
        out.push_str(&piece[word.len()..]);
    }
    out
}

/// Long, of base64's characters only, with a long stretch that mixes letters and
/// digits. Names made of short words (models, the driver's GPU identities) are not.
fn looks_random(value: &str) -> bool {
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || b"+=_-".contains(&byte);
    value.len() > 32
        && value.bytes().all(alphabet)
        && value.split(['-', '_']).any(|part| {
            part.len() >= 20
                && part.bytes().any(|byte| byte.is_ascii_digit())
                && part.bytes().any(|byte| byte.is_ascii_alphabetic())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(name: &str, value: &str, asked: &[&str]) -> (Option<String>, bool) {
        let asked: Vec<String> = asked.iter().map(|&name| name.to_owned()).collect();
        let (shown, withheld) = environment(
            &[(name.as_bytes().to_vec(), value.as_bytes().to_vec())],
            &asked,
        );
        (
            shown.into_iter().next().map(|(_, value)| value),
            !withheld.is_empty(),
        )
    }

    #[test]
    fn variables_of_engines_pass_and_all_others_stay() {
        for (name, value) in [
            ("NCCL_PROTO", "LL"),
            ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
            (
                "CUDA_VISIBLE_DEVICES",
                "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77",
            ),
            ("PATH", "/usr/bin:/bin"),
            (
                "HF_HOME",
                "/shared/models/a-very-long-folder-name-0123456789",
            ),
        ] {
            assert_eq!(
                filtered(name, value, &[]),
                (Some(value.to_owned()), false),
                "{name}"
            );
        }
        for name in [
            "HOME",
            "HF_TOKEN",
            "VLLM_API_KEY",
            "SGLANG_AUTH",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            assert_eq!(filtered(name, "x", &[]), (None, true), "{name}");
        }
    }

    #[test]
    fn asking_for_a_secret_does_not_help() {
        assert_eq!(
            filtered("MY_KNOB", "3", &["MY_KNOB"]),
            (Some("3".to_owned()), false)
        );
        assert_eq!(filtered("MY_PASSWORD", "3", &["MY_PASSWORD"]), (None, true));
    }

    #[test]
    fn values_that_look_like_secrets_are_masked_whatever_their_name() {
        for value in [
            "hf_abcdefghijklmnop",
            "sk-0123456789abcdef",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "dGhpcyBpcyBhIHNlY3JldCB0aGF0IGlzIGxvbmc5",
            "http://me:pw@cache:8080",
        ] {
            let (shown, withheld) = filtered("VLLM_THING", value, &[]);
            assert!(
                withheld && shown.expect("a value").contains(MASK),
                "{value}"
            );
        }
    }

    #[test]
    fn secrets_inside_a_value_are_masked_and_the_rest_of_it_is_not() {
        for (value, expected) in [
            (
                "{\"headers\": \"Bearer abc\", \"x\": 1}",
                "{\"headers\": \"Bearer •••\", \"x\": 1}",
            ),
            ("a,sk-0123456789abcdef,b", "a,•••,b"),
            ("x:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b y", "x:••• y"),
            ("k=dGhpcyBpcyBhIHNlY3JldCB0aGF0IGlzIGxvbmc5", "k=•••"),
            (
                "/hub/models--a--b/snapshots/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
                "/hub/models--a--b/snapshots/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            ),
            (
                "i@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b9f86d081884c7d65",
                "i@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b9f86d081884c7d65",
            ),
        ] {
            assert_eq!(masked_value(value), expected);
        }
    }

    #[test]
    fn the_word_after_a_keys_flag_is_masked_whatever_it_is() {
        for key in ["--dashed", "-x", "plain", "a=b"] {
            let words = ["vllm", "--api-key", key, "--tp", "8"].map(str::to_owned);
            let (masked, any) = masked_command(&words);
            assert_eq!(masked, ["vllm", "--api-key", MASK, "--tp", "8"], "{key}");
            assert!(any);
        }
    }

    #[test]
    fn secrets_in_a_command_line_are_masked_and_the_rest_is_not() {
        let words: Vec<String> = [
            "vllm",
            "serve",
            "/models/k",
            "--api-key",
            "abc",
            "--admin-api-key=def",
            "--hf-token",
            "ghi",
            "-e",
            "HF_TOKEN=jkl",
            "--tokenizer",
            "/t",
            "--speculative-token-map",
            "/map",
            "--ssl-keyfile",
            "/k.pem",
            "--header",
            "Authorization: Bearer mno",
            "--served-model-name",
            "Kimi-K2-Instruct-0905-INT4-with-a-long-name",
        ]
        .map(str::to_owned)
        .to_vec();
        let (masked, any) = masked_command(&words);
        let text = masked.join(" ");
        assert!(any);
        for secret in ["abc", "def", "ghi", "jkl", "mno"] {
            assert!(!text.contains(secret), "{text}");
        }
        for plain in [
            "/models/k",
            "/t",
            "/map",
            "/k.pem",
            "a-long-name",
            "--admin-api-key=",
        ] {
            assert!(text.contains(plain), "{plain} in {text}");
        }
        assert_eq!(masked_command(&masked[..3]), (masked[..3].to_vec(), false));
    }
}
