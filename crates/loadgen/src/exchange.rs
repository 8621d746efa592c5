//! One request and its reply over an open connection. The measuring thread's own
//! code, and that by which it measures itself (`certify`).

use std::{
    cell::RefCell,
    io,
    task::Poll,
    time::{Duration, Instant},
};

use crate::{cancel::CancelFlag, connection::Connection, load::nanos, reply::Reply};

/// How long the end of a reply's body is waited for after `[DONE]`. Servers send both
/// together, so what is not there by then does not come, and the slot stands idle.
const LINGER: Duration = Duration::from_millis(100);

/// What an exchange needs beside its connection.
pub(crate) struct Exchange<'a> {
    /// Shared by all streams of the thread.
    pub(crate) buffer: &'a RefCell<Vec<u8>>,
    /// Longest time without news.
    pub(crate) idle: Duration,
    /// Raised, the reply is given up.
    pub(crate) stop: &'a CancelFlag,
}

impl Exchange<'_> {
    /// Sends one request and reads its reply into `reply`. On return the
    /// connection is still there if it may be used again.
    pub(crate) async fn run(
        &self,
        slot: &mut Option<Connection>,
        request: impl AsRef<[u8]>,
        sent_at: Instant,
        reply: &mut Reply,
        on_tokens: impl Fn(u32),
    ) {
        let Some(connection) = slot.as_mut() else {
            return;
        };
        let ns = |at: Instant| nanos(at.saturating_duration_since(sent_at));
        let work = async {
            let written =
                tokio::time::timeout(self.idle, connection.write_all(request.as_ref())).await;
            // Long prompts of many replies under way would fill the memory.
            drop(request);
            match written {
                // A server may refuse a request before it has read it all: what
                // it says is still there to be read.
                Ok(Ok(()) | Err(_)) => {}
                Err(_) => return reply.on_idle(self.idle.as_secs_f64(), ns(Instant::now())),
            }
            self.read(connection, reply, &ns, on_tokens).await;
        };
        let cancelled = tokio::select! {
            biased;
            () = work => false,
            () = self.stop.cancelled() => true,
        };
        if cancelled {
            reply.on_cancel(ns(Instant::now()));
        }
        if !reply.is_reusable() {
            *slot = None;
        }
    }

    async fn read(
        &self,
        connection: &mut Connection,
        reply: &mut Reply,
        ns: &impl Fn(Instant) -> u64,
        on_tokens: impl Fn(u32),
    ) {
        let mut last = Instant::now();
        let mut alarm = std::pin::pin!(tokio::time::sleep(self.idle));
        std::future::poll_fn(|cx| {
            while !reply.is_over() {
                let mut buffer = self.buffer.borrow_mut();
                match connection.poll_read(cx, &mut buffer) {
                    Poll::Pending => break,
                    Poll::Ready(Ok((0, at))) => reply.on_eof(None, ns(at)),
                    Poll::Ready(Ok((count, at))) => {
                        let was_done = reply.is_done();
                        reply.on_bytes(buffer.get(..count).unwrap_or_default(), ns(at));
                        if reply.take_heard() {
                            last = at;
                        }
                        on_tokens(reply.take_fresh_tokens());
                        if reply.is_done() && !was_done {
                            // From now: it may have been read late, and what came
                            // behind it is still to be read.
                            last = Instant::now();
                            alarm.as_mut().reset((last + LINGER.min(self.idle)).into());
                        }
                    }
                    // A peer that leaves out the closing notice of TLS.
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        reply.on_eof(None, ns(Instant::now()));
                    }
                    Poll::Ready(Err(error)) => reply.on_eof(Some(&error), ns(Instant::now())),
                }
            }
            if reply.is_over() {
                return Poll::Ready(());
            }
            // The alarm is moved only when it rings: moving it at every read
            // would cost more than the read.
            while alarm.as_mut().poll(cx).is_ready() {
                let limit = if reply.is_done() {
                    LINGER.min(self.idle)
                } else {
                    self.idle
                };
                let due = last + limit;
                if due <= Instant::now() {
                    reply.on_idle(limit.as_secs_f64(), ns(Instant::now()));
                    return Poll::Ready(());
                }
                alarm.as_mut().reset(due.into());
            }
            Poll::Pending
        })
        .await;
    }
}
