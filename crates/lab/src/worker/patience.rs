//! Waiting for a database that is away.

use std::time::Duration;

use tokio::{sync::watch, time::Instant};

/// How long a stopping worker goes on trying to store what it has.
pub(crate) const LAST_TRIES: Duration = Duration::from_secs(15);

/// How long to wait before trying again, and whether at all.
pub(crate) struct Patience<'a> {
    stop: &'a watch::Receiver<bool>,
    pause: Duration,
    give_up: Option<Instant>,
}

impl<'a> Patience<'a> {
    /// With `stop` telling when the worker is to stop.
    pub(crate) const fn new(stop: &'a watch::Receiver<bool>) -> Self {
        Self {
            stop,
            pause: Duration::from_millis(200),
            give_up: None,
        }
    }

    /// Waits a little longer each time; false if it is time to give up: what is
    /// not stored lies in the spool file.
    pub(crate) async fn wait(&mut self) -> bool {
        if *self.stop.borrow() {
            let at = *self
                .give_up
                .get_or_insert_with(|| Instant::now() + LAST_TRIES);
            if Instant::now() >= at {
                return false;
            }
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(Duration::from_secs(5));
        true
    }
}

/// Tries until the database answers, or the worker must stop. A macro, because
/// the future of a closure that borrows cannot be sent to another thread yet.
macro_rules! persist {
    ($stop:expr, $attempt:expr) => {{
        let mut patience = $crate::worker::patience::Patience::new($stop);
        loop {
            match $attempt.await {
                Err($crate::LabError::DatabaseUnavailable) if patience.wait().await => {}
                other => break other,
            }
        }
    }};
}
pub(crate) use persist;
