//! The events' file, read.

use std::io::BufRead;

use tokdyno_domain::meter::MeterEvent;

use super::{Collected, SpoolError};

/// What a file of events holds.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) collected: Collected,
    /// Number of the last one.
    last: u64,
    /// Some between the first and the last are missing: they could not be written.
    pub(super) has_gap: bool,
}

impl Events {
    /// Reads them all. The last line may be cut off where the program died; no other
    /// may.
    ///
    /// # Errors
    /// It cannot be read, or is not what one measurement wrote.
    pub(super) fn read(path: &str, mut lines: impl BufRead) -> Result<Self, SpoolError> {
        let mut events = Self::default();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let read = lines.read_until(b'\n', &mut line);
            let read = read.map_err(|reason| SpoolError::Read {
                path: path.to_owned(),
                reason,
            })?;
            if read == 0 || line.last() != Some(&b'\n') {
                break;
            }
            let event = serde_json::from_slice(&line).map_err(|reason| SpoolError::Event {
                path: path.to_owned(),
                line: number,
                reason,
            })?;
            if !events.take(event) {
                return Err(SpoolError::Order {
                    path: path.to_owned(),
                    line: number,
                });
            }
        }
        Ok(events)
    }

    /// Did the measurement say its last word here?
    pub(super) fn is_whole(&self) -> bool {
        !self.has_gap && self.collected.outcome().is_some()
    }

    /// False for an event that no measurement writes after the one before.
    fn take(&mut self, event: MeterEvent) -> bool {
        if event.seq <= self.last || self.collected.outcome().is_some() {
            return false;
        }
        self.has_gap |= event.seq > self.last + 1;
        self.last = event.seq;
        self.collected.take(event);
        true
    }
}
