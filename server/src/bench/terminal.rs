//! How much room there is.

use std::os::fd::AsFd;

use rustix::termios::{isatty, tcgetwinsize};

/// Characters a line has room for; none where it is no terminal.
pub(crate) fn width(output: impl AsFd) -> Option<usize> {
    let output = output.as_fd();
    if !isatty(output) {
        return None;
    }
    let size = tcgetwinsize(output).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}
