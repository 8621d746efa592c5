//! What goes to the terminal, and how much room there is. A reader that is gone
//! (`| head`) is no reason to lose a measurement, so nothing here fails.

use std::{
    io::{self, Write as _},
    os::fd::AsFd,
};

use rustix::termios::{isatty, tcgetwinsize};

/// A line to standard error.
pub(crate) fn tell(line: &str) {
    // Nobody is there to be told of it.
    let _ = writeln!(io::stderr(), "{line}");
}

/// A text to standard output.
pub(crate) fn put(text: &str) {
    let mut output = io::stdout();
    // As above.
    let _ = output.write_all(text.as_bytes());
    let _ = output.flush();
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
