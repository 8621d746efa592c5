//! Reading a password: from the terminal without showing it, or from a pipe.

use std::io::{self, IsTerminal, Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

/// Most bytes that are read; what is longer is no password.
const MOST: u64 = 4096;

const BACKSPACE: [u8; 2] = [0x08, 0x7f];
const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const CTRL_U: u8 = 0x15;

/// Why there is no password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PasswordError {
    /// There is nobody to ask.
    #[error(
        "There is no terminal to ask for the password. Give it on standard input with --stdin."
    )]
    NoTerminal,
    /// The terminal or the pipe failed.
    #[error(
        "The password cannot be read ({0}). Try another terminal, or give it on standard input with --stdin."
    )]
    Read(#[from] io::Error),
    /// The two differ.
    #[error("The two passwords differ. Nothing was changed; type the same one twice.")]
    Differ,
    /// Ctrl-C.
    #[error("Nothing was changed.")]
    GivenUp,
    /// Bytes that are no text.
    #[error("The password is not text in UTF-8. Nothing was changed; choose another one.")]
    NotText,
}

/// The whole of standard input, without the newline at its end.
///
/// # Errors
/// [`PasswordError::Read`] or [`PasswordError::NotText`].
pub(crate) fn from_input(input: impl Read) -> Result<String, PasswordError> {
    let mut bytes = Vec::new();
    input.take(MOST).read_to_end(&mut bytes)?;
    let mut text = String::from_utf8(bytes).map_err(|_| PasswordError::NotText)?;
    if text.ends_with('\n') {
        text.pop();
    }
    if text.ends_with('\r') {
        text.pop();
    }
    Ok(text)
}

/// Asks twice on the terminal.
///
/// # Errors
/// [`PasswordError`] with its remedy.
pub(crate) fn from_terminal() -> Result<String, PasswordError> {
    if !io::stdin().is_terminal() {
        return Err(PasswordError::NoTerminal);
    }
    let first = asked("New password: ")?;
    let second = asked("The same again: ")?;
    if first == second {
        Ok(first)
    } else {
        Err(PasswordError::Differ)
    }
}

fn asked(prompt: &str) -> Result<String, PasswordError> {
    let _silent = Silent::begin()?;
    let mut shown = io::stderr();
    shown.write_all(prompt.as_bytes())?;
    shown.flush()?;
    let line = line(&mut io::stdin().lock());
    // Enter was not shown either.
    shown.write_all(b"\n")?;
    line
}

/// Reads to Enter, with the usual keys for corrections: the terminal does not
/// handle them while it is silent.
fn line(input: &mut impl Read) -> Result<String, PasswordError> {
    let mut typed: Vec<u8> = Vec::new();
    loop {
        let mut byte = [0];
        if input.read(&mut byte)? == 0 {
            return Err(PasswordError::GivenUp);
        }
        match byte[0] {
            b'\n' | b'\r' => break,
            CTRL_C | CTRL_D => return Err(PasswordError::GivenUp),
            CTRL_U => typed.clear(),
            byte if BACKSPACE.contains(&byte) => {
                // A character beyond ASCII is several bytes, the first of which
                // does not begin with the bits 10.
                while let Some(last) = typed.pop() {
                    if last & 0xc0 != 0x80 {
                        break;
                    }
                }
            }
            byte => typed.push(byte),
        }
    }
    String::from_utf8(typed).map_err(|_| PasswordError::NotText)
}

/// The terminal neither shows what is typed nor turns keys into signals, so that
/// it is put right again whatever is typed.
struct Silent {
    before: Termios,
}

impl Silent {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self { before })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gives_all_but_the_last_newline() {
        for (input, expected) in [
            ("correct horse\n", "correct horse"),
            ("correct horse\r\n", "correct horse"),
            (" blanks count ", " blanks count "),
            ("two\nlines\n", "two\nlines"),
        ] {
            assert_eq!(from_input(input.as_bytes()).expect("text"), expected);
        }
        assert!(matches!(
            from_input(&b"\xff"[..]),
            Err(PasswordError::NotText)
        ));
    }

    #[test]
    fn typing_can_be_corrected() {
        for (typed, expected) in [
            ("abc\n", "abc"),
            ("abx\x7fc\r", "abc"),
            ("aé\x7fbc\n", "abc"),
            ("\x08nonsense\x15abc\n", "abc"),
        ] {
            assert_eq!(line(&mut typed.as_bytes()).expect("a line"), expected);
        }
    }

    #[test]
    fn giving_up_changes_nothing() {
        for typed in ["abc\x03", "\x04", "abc"] {
            assert!(matches!(
                line(&mut typed.as_bytes()),
                Err(PasswordError::GivenUp)
            ));
        }
    }
}
