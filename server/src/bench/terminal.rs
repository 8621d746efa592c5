//! What goes to the terminal, and how much room there is. A reader that is gone
//! (`| head`) is no reason to lose a measurement, so that is no failure here.
//!
//! Names and sentences come from servers and files that nobody vouches for, and a
//! terminal obeys control characters: nothing but line ends gets through.

use std::{
    borrow::Cow,
    io::{self, Write as _},
    os::fd::AsFd,
};

use rustix::termios::{isatty, tcgetwinsize};

/// A line to standard error.
pub(crate) fn tell(line: &str) {
    // Nobody is there to be told of it.
    let _ = writeln!(io::stderr(), "{}", clean(line));
}

/// A text to standard output.
///
/// # Errors
/// It is lost, for another reason than that nobody reads it.
pub(crate) fn put(text: &str) -> io::Result<()> {
    let mut output = io::stdout();
    let written = output
        .write_all(clean(text).as_bytes())
        .and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// The text with its control characters made visible, but for line ends.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    shown(text, |c| c != '\n' && is_obeyed(c))
}

/// A name from elsewhere within a line, which it may not end either.
pub(crate) fn name(text: &str) -> Cow<'_, str> {
    shown(text, is_obeyed)
}

fn shown(text: &str, hide: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hide) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match (hide(c), u32::from(c)) {
            (false, _) => out.push(c),
            // Unicode has a picture of each of the old ones.
            (true, code @ 0..0x20) => out.extend(char::from_u32(0x2400 + code)),
            (true, 0x7f) => out.push('␡'),
            (true, _) => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// Does a terminal do something at this character, rather than show it? Those that
/// turn the direction of writing, or break lines, are among them.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Characters a line has room for; none where it is no terminal.
pub(crate) fn width(output: impl AsFd) -> Option<usize> {
    let output = output.as_fd();
    if !isatty(output) {
        return None;
    }
    let size = tcgetwinsize(output).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_reaches_the_terminal() {
        let text = "ev\u{1b}[2Jil\u{7}\0\u{7f}\u{9b}\u{202e}\r\nnext — é ␛";
        assert_eq!(
            clean(text),
            "ev␛[2Jil␇␀␡\\u{9b}\\u{202e}␍\nnext — é ␛",
            "line ends and letters stay"
        );
        assert_eq!(name("a\nb"), "a␊b", "a name ends no line");
        for code in (0..0x20).chain(0x7f..0xa0).chain(0x2028..0x202f) {
            let c = char::from_u32(code).expect("a character");
            let seen = name(c.encode_utf8(&mut [0; 4])).into_owned();
            assert!(!seen.contains(is_obeyed), "{code:x}: {seen:?}");
        }
        assert!(matches!(clean("as it is\n"), Cow::Borrowed(_)));
    }
}
