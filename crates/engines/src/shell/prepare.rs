//! What stands in front of a command, or prepares the shell that it starts from.

use super::{
    expand::Field,
    quote::{is_name, quote_word},
    read::Reading,
};

impl Reading {
    /// `env [-u NAME] [NAME=VALUE]… PROGRAM …`
    pub(super) fn env<'f>(
        &mut self,
        mut rest: &'f [Field],
        environment: &mut Vec<(String, String)>,
    ) -> &'f [Field] {
        loop {
            match rest {
                [option, after @ ..] if option.text == "--" => {
                    rest = after;
                    break;
                }
                [option, name, after @ ..] if option.text == "-u" || option.text == "--unset" => {
                    environment.retain(|(other, _)| *other != name.text);
                    rest = after;
                }
                [option, after @ ..] if option.plain && option.text.starts_with('-') => {
                    self.left_out.push(format!(
                        "`env {}` was left out: a profile's variables are laid over the host's environment.",
                        option.text
                    ));
                    rest = after;
                }
                _ => break,
            }
        }
        while let [assignment, after @ ..] = rest
            && let Some((name, value)) = assignment.text.split_once('=')
            && !name.is_empty()
        {
            set(environment, name.to_owned(), value.to_owned());
            rest = after;
        }
        rest
    }

    /// `sudo [-E] [-u USER] [NAME=VALUE]… PROGRAM …`
    pub(super) fn sudo<'f>(
        &mut self,
        word: &str,
        mut rest: &'f [Field],
        environment: &mut Vec<(String, String)>,
    ) -> &'f [Field] {
        self.left_out.push(format!(
            "`{word}` was left out: the program runs as the user that Tokdyno logs in as on the host."
        ));
        loop {
            match rest {
                [option, after @ ..] if option.text == "--" => {
                    rest = after;
                    break;
                }
                [option, _, after @ ..]
                    if [
                        "-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R",
                    ]
                    .contains(&option.text.as_str()) =>
                {
                    rest = after;
                }
                [option, after @ ..] if option.plain && option.text.starts_with('-') => {
                    rest = after;
                }
                [assignment, after @ ..]
                    if assignment
                        .text
                        .split_once('=')
                        .is_some_and(|(name, _)| is_name(name)) =>
                {
                    if let Some((name, value)) = assignment.text.split_once('=') {
                        set(environment, name.to_owned(), value.to_owned());
                    }
                    rest = after;
                }
                _ => break,
            }
        }
        rest
    }

    pub(super) fn change_directory(&mut self, rest: &[Field]) {
        let target = match rest {
            [dashes, target, ..] if dashes.text == "--" => Some(&target.text),
            [target, ..] => Some(&target.text),
            [] => None,
        };
        self.directory = target.map(|target| match &self.directory {
            Some(base) if !target.starts_with('/') => {
                format!("{}/{target}", base.trim_end_matches('/'))
            }
            _ => target.clone(),
        });
    }

    pub(super) fn source(&mut self, words: &[String]) {
        let Some(path) = words.first() else { return };
        let whole = match &self.directory {
            Some(base) if !path.starts_with('/') => {
                format!("{}/{path}", base.trim_end_matches('/'))
            }
            _ => path.clone(),
        };
        if let Some(folder) = whole.strip_suffix("/bin/activate") {
            self.virtual_environment = Some(folder.to_owned());
        }
        let quoted: Vec<String> = std::iter::once(&whole)
            .chain(&words[1..])
            .map(|word| quote_word(word))
            .collect();
        self.prelude.push(format!("source {}", quoted.join(" ")));
    }
}

/// Sets a variable; the last value of a name holds.
pub(super) fn set(environment: &mut Vec<(String, String)>, name: String, value: String) {
    match environment.iter_mut().find(|(other, _)| *other == name) {
        Some((_, old)) => *old = value,
        None => environment.push((name, value)),
    }
}
