//! Where a request's tokens go: on the socket at once, or into a whole reply.

use std::{io, sync::Arc};

use tokio::{net::TcpStream, sync::oneshot};

use crate::{openai::Encoder, pacer::Ns, truth::Clock};

/// Room for a chunk's size line, which is known only once the chunk is.
const SIZE_LINE: usize = 8;

/// Takes a request's tokens.
pub(crate) enum Sink {
    /// As events, written by the engine's thread.
    Stream(Box<StreamSink>),
    /// The connection's task is told when the last token was due.
    Whole(oneshot::Sender<()>),
}

/// How a stream ended, as the connection's task must know.
#[derive(Debug)]
pub(crate) enum StreamEnd {
    /// All is written but these bytes, for which the socket had no room.
    Complete(Vec<u8>),
    /// Leave the connection open and silent.
    Stalled,
    /// Close the connection.
    Cut,
}

/// What goes wrong in mid-stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    Error,
    Stall,
    Cut,
    BadJson,
    /// An end without a token.
    Empty,
}

pub(crate) struct StreamSink {
    pub(crate) stream: Arc<TcpStream>,
    pub(crate) encoder: Encoder,
    pub(crate) end: Option<oneshot::Sender<StreamEnd>>,
    /// Tokens gathered before a chunk is sent.
    pub(crate) interval: u32,
    pub(crate) finish: &'static str,
    /// What goes wrong, and after how many tokens.
    pub(crate) mishap: Option<(Mishap, u32)>,
    /// Tokens due and not yet written.
    pub(crate) held: u32,
    pub(crate) written: u32,
    /// Bytes for which the socket had no room.
    pub(crate) pending: Vec<u8>,
}

/// What became of tokens handed to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// Kept: for a fuller chunk, or because the socket has no room.
    Held,
    /// Handed to the socket at this time.
    Sent { tokens: u32, at: Ns },
    /// The stream is over, in this way, perhaps with a last chunk.
    Over {
        outcome: &'static str,
        last: Option<(u32, Ns)>,
    },
}

impl StreamSink {
    /// Tokens are due. `scratch` is the engine's, used again and again.
    pub(crate) fn push(
        &mut self,
        tokens: u32,
        finished: bool,
        clock: &Clock,
        scratch: &mut Vec<u8>,
    ) -> Pushed {
        self.held += tokens;
        if self.flush().is_err() {
            return self.over("cancelled", None);
        }
        let full = self.written == 0 || self.held >= self.interval;
        if !finished && (!full || !self.pending.is_empty()) {
            return Pushed::Held;
        }
        scratch.clear();
        scratch.extend_from_slice(&[b'0'; SIZE_LINE]);
        let mishap = self
            .mishap
            .filter(|(_, after)| self.written + self.held > *after)
            .map(|(mishap, _)| mishap);
        match mishap {
            Some(Mishap::Stall) => {
                self.end(StreamEnd::Stalled);
                return self.over("stalled", None);
            }
            Some(Mishap::Cut) => {
                self.end(StreamEnd::Cut);
                return self.over("cut", None);
            }
            Some(Mishap::Error) => {
                self.encoder
                    .error("The stand-in was told to fail here.", scratch);
                return self.finish(scratch, "error", None, clock);
            }
            Some(Mishap::Empty) => {
                self.encoder.nothing(scratch);
                self.encoder.close(scratch);
                return self.finish(scratch, "complete", None, clock);
            }
            Some(Mishap::BadJson) => {
                self.mishap = None;
                self.encoder.broken(scratch);
            }
            None => {}
        }
        let count = std::mem::take(&mut self.held);
        self.written += count;
        self.encoder
            .tokens(count, finished.then_some(self.finish), scratch);
        if finished {
            self.encoder.close(scratch);
            return self.finish(scratch, "complete", Some(count), clock);
        }
        seal(scratch, false);
        let at = clock.now();
        match self.write(scratch) {
            Ok(()) => Pushed::Sent { tokens: count, at },
            Err(_) => self.over("cancelled", None),
        }
    }

    /// Writes what the socket had no room for. True if nothing is left.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        if !self.pending.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            self.write(&pending)?;
        }
        Ok(self.pending.is_empty())
    }

    fn finish(
        &mut self,
        scratch: &mut Vec<u8>,
        outcome: &'static str,
        last: Option<u32>,
        clock: &Clock,
    ) -> Pushed {
        seal(scratch, true);
        let at = clock.now();
        let result = if self.pending.is_empty() {
            self.write(scratch)
        } else {
            self.pending.extend_from_slice(scratch);
            Ok(())
        };
        if result.is_err() {
            return self.over("cancelled", None);
        }
        let rest = std::mem::take(&mut self.pending);
        self.end(StreamEnd::Complete(rest));
        self.over(outcome, last.map(|tokens| (tokens, at)))
    }

    fn over(&mut self, outcome: &'static str, last: Option<(u32, Ns)>) -> Pushed {
        // A task that was not told otherwise closes the connection.
        self.end = None;
        Pushed::Over { outcome, last }
    }

    fn end(&mut self, end: StreamEnd) {
        if let Some(sender) = self.end.take() {
            // A task that is gone has closed the connection already.
            let _ = sender.send(end);
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = match self.stream.try_write(bytes) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        self.pending
            .extend_from_slice(bytes.get(written..).unwrap_or_default());
        Ok(())
    }
}

/// Makes an HTTP chunk of what stands in `scratch` after the size line's room.
fn seal(scratch: &mut Vec<u8>, last: bool) {
    let size = scratch.len() - SIZE_LINE;
    let line = format!("{size:06x}\r\n");
    if let Some(room) = scratch.get_mut(..SIZE_LINE) {
        room.copy_from_slice(line.as_bytes());
    }
    scratch.extend_from_slice(if last { b"\r\n0\r\n\r\n" } else { b"\r\n" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_states_its_size() {
        let mut scratch = vec![b'0'; SIZE_LINE];
        scratch.extend_from_slice(b"data: x\n\n");
        seal(&mut scratch, true);
        assert_eq!(scratch, b"000009\r\ndata: x\n\n\r\n0\r\n\r\n");
    }
}
