//! Waiting for a moment more exactly than the runtime's timer can, which counts in
//! milliseconds and rounds up.

use std::{
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A timer of the kernel.
pub(crate) struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    /// Needs a runtime around it.
    ///
    /// # Errors
    /// No descriptor is left for it.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe, for descriptors that may be closed meanwhile; this one is owned"
        )]
        AsyncFd::new(timer).map(Self)
    }

    /// Waits until `due`, never shorter. May be dropped before.
    ///
    /// # Errors
    /// Those of the kernel's timer.
    pub(crate) async fn until(&self, due: Instant) -> io::Result<()> {
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.wait(left).await?;
        }
    }

    /// Waits about so long: what is left from an earlier wait may wake it before.
    async fn wait(&self, left: Duration) -> io::Result<()> {
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?,
        };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        let mut ready = self.0.readable().await?;
        let mut count = [0; 8];
        match ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut count)?)) {
            Ok(Err(error)) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_never_rings_before_its_time() {
        let alarm = Alarm::new().expect("a timer");
        let began = Instant::now();
        for after_us in [0, 300, 1500, 4200] {
            let due = began + Duration::from_micros(after_us);
            alarm.until(due).await.expect("waited");
            assert!(Instant::now() >= due);
        }
    }

    #[tokio::test]
    async fn a_wait_that_was_given_up_does_not_shorten_the_next() {
        let alarm = Alarm::new().expect("a timer");
        let soon = Instant::now() + Duration::from_millis(5);
        tokio::select! {
            biased;
            rung = alarm.until(soon) => rung.expect("waited"),
            () = tokio::task::yield_now() => {}
        }
        // It rings while nobody listens.
        std::thread::sleep(Duration::from_millis(10));
        let due = Instant::now() + Duration::from_millis(20);
        alarm.until(due).await.expect("waited");
        assert!(Instant::now() >= due);
    }
}
