//! Connections before and between requests, and one exchange on one of them.

use std::{cell::RefCell, rc::Rc, time::Instant};

use tokdyno_domain::meter::ApiKey;
use tokio::task::JoinSet;

use super::{READ_BUFFER, Shared, Slots, nanos};
use crate::{connection::Connection, exchange::Exchange, reply::Reply};

/// Connections opened at the same time, so that a listener's queue holds them.
const OPENING: usize = 64;

/// How a request came by its connection.
pub(super) struct Opened {
    /// How long connecting took; none if the connection was there.
    pub(super) connect_ns: Option<u64>,
    /// Why there is none.
    pub(super) refusal: Option<String>,
}

impl Shared {
    /// A buffer for [`Shared::buffer`].
    pub(crate) fn new_buffer() -> RefCell<Vec<u8>> {
        RefCell::new(vec![0; READ_BUFFER])
    }

    pub(crate) fn secret(&self) -> Option<&str> {
        self.key.as_ref().map(ApiKey::reveal)
    }

    /// Sends one request and reads its reply into `reply`. On return the
    /// connection is still there if it may be used again.
    pub(crate) async fn exchange(
        &self,
        slot: &mut Option<Connection>,
        request: impl AsRef<[u8]>,
        sent_at: Instant,
        reply: &mut Reply,
        on_tokens: impl Fn(u32),
    ) {
        let exchange = Exchange {
            buffer: &self.buffer,
            idle: self.idle,
            stop: &self.stop,
        };
        exchange.run(slot, request, sent_at, reply, on_tokens).await;
    }

    /// Opens a connection where there is none. None if the stop flag was raised
    /// meanwhile: then nothing was sent, and there is nothing to record.
    pub(super) async fn connect(&self, slot: &mut Option<Connection>) -> Option<Opened> {
        if slot.is_some() {
            return Some(Opened {
                connect_ns: None,
                refusal: None,
            });
        }
        let began = Instant::now();
        let opened = tokio::select! {
            biased;
            opened = self.target.connect() => opened,
            () = self.stop.cancelled() => return None,
        };
        let connect_ns = Some(nanos(began.elapsed()));
        let refusal = match opened {
            Ok(connection) => {
                *slot = Some(connection);
                None
            }
            Err(sentence) => Some(sentence),
        };
        Some(Opened {
            connect_ns,
            refusal,
        })
    }

    /// Opens the connections of the slots, as many at a time as a listener's queue
    /// holds, and closes those beyond `count`. Failures are left to the requests
    /// that will meet them.
    pub(super) async fn open(self: &Rc<Self>, slots: &mut Slots, count: u32) {
        slots.resize_with(count as usize, || None);
        let mut missing = Vec::new();
        for (place, slot) in slots.iter_mut().enumerate() {
            freshen(slot).await;
            if slot.is_none() {
                missing.push(place);
            }
        }
        for batch in missing.chunks(OPENING) {
            let mut opening = JoinSet::new();
            for place in batch {
                let (shared, place) = (Rc::clone(self), *place);
                opening.spawn_local(async move { (place, shared.target.connect().await) });
            }
            loop {
                let next = tokio::select! {
                    next = opening.join_next() => next,
                    () = self.stop.cancelled() => return,
                };
                let Some(joined) = next else { break };
                if let Ok((place, Ok(connection))) = joined
                    && let Some(slot) = slots.get_mut(place)
                {
                    *slot = Some(connection);
                }
            }
        }
    }
}

/// Lets go of a connection that the server has closed meanwhile.
pub(crate) async fn freshen(slot: &mut Option<Connection>) {
    if let Some(connection) = slot
        && !connection.is_fresh().await
    {
        *slot = None;
    }
}
