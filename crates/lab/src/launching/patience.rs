//! How long things may take, and how much of a log is kept.

use std::time::Duration;

/// How long things may take. Tests shorten some.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Between two looks at a process that loads.
    pub(crate) loading: Duration,
    /// Between two looks at a process that serves.
    pub(crate) serving: Duration,
    /// Without a line in the log and without a change of GPU memory while loading.
    pub(crate) stalled: Duration,
    /// Between a log that tells of a failure and the end of the process; then it is
    /// ended from here.
    pub(crate) dying: Duration,
    /// For an engine that was asked to end.
    pub(crate) grace: Duration,
    /// Until another process's GPU memory is free again after it has ended.
    pub(crate) memory: Duration,
    /// The same before something is brought back: somebody relies on it.
    pub(crate) memory_restoring: Duration,
    /// For a connection that was cut while a launch is prepared and started.
    pub(crate) connection: Duration,
    /// For more of a log to come whose process has ended.
    pub(crate) log_rest: Duration,
    /// Most that is stored of the beginning of one launch's log, in bytes.
    pub(crate) log_most: u64,
    /// For runs to end before the engine under them is stopped.
    pub(crate) runs: Duration,
    /// For a host that does not answer while something on it is to be stopped.
    pub(crate) unreachable: Duration,
    /// First and longest pause before connecting again.
    pub(crate) again: (Duration, Duration),
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            loading: Duration::from_secs(1),
            serving: Duration::from_secs(2),
            stalled: Duration::from_secs(600),
            dying: Duration::from_secs(30),
            grace: Duration::from_secs(60),
            memory: Duration::from_secs(20),
            memory_restoring: Duration::from_secs(120),
            connection: Duration::from_secs(120),
            log_rest: Duration::from_secs(10),
            log_most: 64 << 20,
            runs: Duration::from_secs(20),
            unreachable: Duration::from_secs(600),
            again: (Duration::from_secs(1), Duration::from_secs(30)),
        }
    }
}

/// Longer and longer pauses.
#[derive(Debug)]
pub(super) struct BackOff {
    next: Duration,
    longest: Duration,
}

impl BackOff {
    pub(super) const fn new(patience: &Patience) -> Self {
        let (next, longest) = patience.again;
        Self { next, longest }
    }

    /// Waits, twice as long each time.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(self.longest);
    }
}
