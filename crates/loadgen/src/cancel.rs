//! Stopping a measurement from another thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

/// Raised once, seen by everybody who holds a clone.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    raised: AtomicBool,
    waiting: Notify,
}

impl CancelFlag {
    /// A flag that is not raised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises it. Requests in flight are dropped, what is finished is kept.
    pub fn cancel(&self) {
        self.0.raised.store(true, Ordering::SeqCst);
        self.0.waiting.notify_waiters();
    }

    /// Is it raised?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.raised.load(Ordering::SeqCst)
    }

    /// Waits until it is raised.
    pub async fn cancelled(&self) {
        let mut notified = std::pin::pin!(self.0.waiting.notified());
        // Registered before the look at the flag, so that no raise is missed.
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }
}
