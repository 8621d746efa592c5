//! Is whoever gave the order still there?

use std::{
    fs::File,
    io::Read,
    os::fd::AsFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::wire::SILENCE_S;

/// Standard input after the request: signs of life, and its end.
#[derive(Debug)]
pub(super) struct Client {
    input: File,
    heard: Instant,
}

impl Client {
    pub(super) fn new(input: File) -> Self {
        Self {
            input,
            heard: Instant::now(),
        }
    }

    /// Waits for `time`, and returns early once the client is gone.
    pub(super) fn there_after(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            let rest = until.saturating_duration_since(Instant::now());
            match self.readable(rest) {
                Ok(false) => return self.heard.elapsed() < Duration::from_secs(SILENCE_S),
                Ok(true) => {
                    let mut bytes = [0; 256];
                    match self.input.read(&mut bytes) {
                        Ok(1..) => self.heard = Instant::now(),
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Ok(0) | Err(_) => return false,
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    fn readable(&self, time: Duration) -> Result<bool, Errno> {
        let mut watched = [PollFd::from_borrowed_fd(self.input.as_fd(), PollFlags::IN)];
        let time = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        Ok(poll(&mut watched, Some(&time))? > 0)
    }
}
