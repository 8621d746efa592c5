//! Answers that go on: a growing file, and a host second by second.

use std::time::Duration;

use tokdyno_domain::host::HostSample;
use tokio::time::timeout;

use super::{
    error::RemoteError,
    session::{Heartbeat, Session},
};

/// A sample comes each second; a host that is silent for so long is out of reach.
const SAMPLE_TIME: Duration = Duration::from_secs(60);
/// Longest sample: far more than a rack of GPUs with their processes.
const MAX_SAMPLE: usize = 16 << 20;

/// A file that is followed. Dropping it ends it.
#[derive(Debug)]
pub struct Follow {
    session: Session,
    _beating: Heartbeat,
    frames: Frames,
    offset: u64,
}

impl Follow {
    pub(super) fn new(session: Session, beating: Heartbeat, offset: u64) -> Self {
        Self {
            session,
            _beating: beating,
            frames: Frames::default(),
            offset,
        }
    }

    /// The next bytes of the file; none once it was removed. Nothing is lost if the
    /// future is dropped before it is ready.
    ///
    /// # Errors
    /// The connection was cut. [`Self::offset`] tells where to go on.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, RemoteError> {
        loop {
            if let Some(frame) = self.frames.take() {
                self.offset += frame.len() as u64;
                return Ok((!frame.is_empty()).then_some(frame));
            }
            let mut buffer = vec![0; 64 << 10];
            match self.session.some(&mut buffer).await {
                0 => return Err(self.session.ended(&[]).await),
                length => self.frames.add(&buffer[..length]),
            }
        }
    }

    /// How many bytes of the file were passed on, those before the start included.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }
}

/// Frames of a length (4 bytes, big-endian) and bytes. What comes of a frame is
/// passed on at once, so that a cut loses nothing that had arrived.
#[derive(Debug, Default)]
struct Frames {
    pending: Vec<u8>,
    /// Bytes of the present frame that have not come yet.
    missing: usize,
}

impl Frames {
    fn add(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Bytes that have come; an empty piece is the end.
    fn take(&mut self) -> Option<Vec<u8>> {
        if self.missing == 0 {
            let (head, rest) = self.pending.split_first_chunk::<4>()?;
            self.missing = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
            self.pending = rest.to_vec();
            if self.missing == 0 {
                return Some(Vec::new());
            }
        }
        if self.pending.is_empty() {
            return None;
        }
        let length = self.missing.min(self.pending.len());
        let rest = self.pending.split_off(length);
        self.missing -= length;
        Some(std::mem::replace(&mut self.pending, rest))
    }
}

/// A host second by second. Dropping it ends it.
#[derive(Debug)]
pub struct Samples {
    session: Session,
    _beating: Heartbeat,
    pending: Vec<u8>,
}

impl Samples {
    pub(super) fn new(session: Session, beating: Heartbeat) -> Self {
        Self {
            session,
            _beating: beating,
            pending: Vec::new(),
        }
    }

    /// The next sample. Nothing is lost if the future is dropped before it is ready.
    ///
    /// # Errors
    /// The connection was cut, or the host has fallen silent.
    pub async fn next(&mut self) -> Result<HostSample, RemoteError> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            if let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return serde_json::from_slice(&line)
                    .map_err(|error| self.session.protocol(&error.to_string()));
            }
            if self.pending.len() > MAX_SAMPLE {
                return Err(self.session.protocol("a sample is too long"));
            }
            match timeout(SAMPLE_TIME, self.session.some(&mut buffer)).await {
                Ok(0) => return Err(self.session.ended(&[]).await),
                Ok(length) => self.pending.extend_from_slice(&buffer[..length]),
                Err(_) => return Err(self.session.timed_out(SAMPLE_TIME)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_are_put_together_however_they_were_cut(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8),
            cut in 1_usize..20,
        ) {
            let mut sent = Vec::new();
            for piece in &pieces {
                sent.extend_from_slice(&u32::try_from(piece.len()).expect("short").to_be_bytes());
                sent.extend_from_slice(piece);
            }
            sent.extend_from_slice(&[0; 4]);
            let mut frames = Frames::default();
            let mut got = Vec::new();
            let mut ended = false;
            for chunk in sent.chunks(cut) {
                frames.add(chunk);
                while let Some(piece) = frames.take() {
                    prop_assert!(!ended);
                    ended = piece.is_empty();
                    got.extend_from_slice(&piece);
                }
            }
            prop_assert!(ended);
            prop_assert_eq!(got, pieces.concat());
        }
    }
}
