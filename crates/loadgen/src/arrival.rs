//! When bytes arrived: the kernel's word where it can be had and believed, else
//! the moment after the read.
//!
//! At 512 streams a token may wait milliseconds in its socket while others are
//! read. The kernel notes the arrival of each segment (`SO_TIMESTAMPNS`), but by
//! the wall clock. That clock may be set at any time, so a note is turned into a
//! time of the monotonic clock at once, and is not believed where the two clocks
//! have moved against each other.

use std::{
    cell::Cell,
    io::{self, IoSliceMut},
    os::fd::{AsFd, AsRawFd},
    time::{Duration, Instant},
};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use rustix::time::{ClockId, clock_gettime};

const NS_PER_S: i64 = 1_000_000_000;
/// The clocks are read one after the other; a longer way from the first to the
/// last reading means that we were interrupted, and says nothing.
const BRACKET: Duration = Duration::from_micros(20);
/// Tries to read them without an interruption.
const TRIES: usize = 3;
/// The clocks may move against each other by so much, ...
const TOLERANCE_NS: i64 = 1_000_000;
/// ... and by this part of the time that passed: more than any slewing.
const SLEW_DIVISOR: i64 = 1000;
/// After the wall clock was set, bytes from before may still wait to be read.
const SETTLING: Duration = Duration::from_secs(1);

/// Room for one time stamp among the ancillary data, aligned as the kernel writes.
#[repr(C, align(8))]
struct Ancillary([u8; 64]);

/// The two clocks of a measuring thread.
#[derive(Debug)]
pub(crate) struct ArrivalClock {
    origin: Instant,
    /// Wall clock − monotonic clock (since `origin`), and when it was seen, in ns.
    offset: Cell<Option<(i64, i64)>>,
    /// Until then no note of the kernel is believed.
    unsettled: Cell<Instant>,
    reads: Cell<Reads>,
}

/// How many reads brought something, and whose word their time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reads {
    /// All of them.
    pub(crate) all: u64,
    /// Those whose time is the kernel's.
    pub(crate) by_kernel: u64,
}

impl Reads {
    /// Those after `before`.
    pub(crate) const fn since(self, before: Self) -> Self {
        Self {
            all: self.all.saturating_sub(before.all),
            by_kernel: self.by_kernel.saturating_sub(before.by_kernel),
        }
    }
}

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    now: Instant,
    wall_ns: i64,
}

impl ArrivalClock {
    pub(crate) fn new() -> Self {
        let origin = Instant::now();
        Self {
            origin,
            offset: Cell::new(None),
            unsettled: Cell::new(origin),
            reads: Cell::default(),
        }
    }

    /// Reads of all its sockets so far that brought something.
    pub(crate) const fn reads(&self) -> Reads {
        self.reads.get()
    }

    fn count(&self, by_kernel: bool) {
        let Reads {
            all,
            by_kernel: before,
        } = self.reads.get();
        self.reads.set(Reads {
            all: all + 1,
            by_kernel: before + u64::from(by_kernel),
        });
    }

    /// When bytes arrived that were read just now: never before `floor`, the
    /// arrival of those before them.
    fn arrival(&self, noted_ns: Option<i64>, floor: Instant) -> Instant {
        match (noted_ns, Reading::take()) {
            (Some(noted_ns), Some(reading)) => self.judge(noted_ns, reading, floor),
            _ => {
                self.count(false);
                Instant::now()
            }
        }
    }

    fn judge(&self, noted_ns: i64, reading: Reading, floor: Instant) -> Instant {
        let Reading { now, wall_ns } = reading;
        let mono_ns = signed(now.saturating_duration_since(self.origin));
        let offset_ns = wall_ns.saturating_sub(mono_ns);
        if let Some((before_ns, seen_ns)) = self.offset.replace(Some((offset_ns, mono_ns))) {
            let passed_ns = mono_ns.saturating_sub(seen_ns);
            let tolerance_ns = TOLERANCE_NS.saturating_add(passed_ns / SLEW_DIVISOR);
            if offset_ns.abs_diff(before_ns) > tolerance_ns.unsigned_abs() {
                self.unsettled.set(now + SETTLING);
            }
        }
        let lag_ns = wall_ns.saturating_sub(noted_ns);
        let lag = u64::try_from(lag_ns).map(Duration::from_nanos);
        match lag.map(|lag| now.checked_sub(lag)) {
            Ok(Some(arrived)) if now >= self.unsettled.get() => {
                self.count(true);
                arrived.max(floor)
            }
            _ => {
                self.count(false);
                now
            }
        }
    }
}

impl Reading {
    fn take() -> Option<Self> {
        (0..TRIES).find_map(|_| {
            let before = Instant::now();
            let wall_ns = wall_ns();
            let now = Instant::now();
            (now.saturating_duration_since(before) <= BRACKET).then_some(Self { now, wall_ns })
        })
    }
}

/// Asks the kernel to note arrivals. A kernel that does not is no hindrance.
pub(crate) fn ask_for_notes(socket: &impl AsFd) {
    // Without notes there is still the moment after each read.
    let _ = setsockopt(socket, sockopt::ReceiveTimestampns, &true);
}

/// Reads once, without waiting. Gives the bytes and when the last of them came.
///
/// # Errors
/// Those of `recvmsg(2)`.
pub(crate) fn read(
    socket: &impl AsRawFd,
    buffer: &mut [u8],
    clock: &ArrivalClock,
    floor: Instant,
) -> io::Result<(usize, Instant)> {
    let mut ancillary = Ancillary([0; 64]);
    let mut pieces = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut pieces,
        Some(&mut ancillary.0),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let noted_ns = message.cmsgs().ok().and_then(|mut notes| {
        notes.find_map(|note| match note {
            ControlMessageOwned::ScmTimestampns(at) => {
                at.tv_sec().checked_mul(NS_PER_S)?.checked_add(at.tv_nsec())
            }
            _ => None,
        })
    });
    if message.bytes == 0 {
        return Ok((0, Instant::now()));
    }
    Ok((message.bytes, clock.arrival(noted_ns, floor)))
}

fn wall_ns() -> i64 {
    let wall = clock_gettime(ClockId::Realtime);
    wall.tv_sec
        .saturating_mul(NS_PER_S)
        .saturating_add(wall.tv_nsec)
}

fn signed(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    const MS: i64 = 1_000_000;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// A clock, and what it makes of a note that is `lag_ms` old, `at_ms` after its
    /// start, with the wall clock set forward by `set_ms` since.
    fn judged(clock: &ArrivalClock, at_ms: u64, set_ms: i64, lag_ms: i64, floor_ms: u64) -> u128 {
        let wall_ns =
            1_700_000_000 * NS_PER_S + (i64::try_from(at_ms).expect("small") + set_ms) * MS;
        let reading = Reading {
            now: clock.origin + ms(at_ms),
            wall_ns,
        };
        let arrival = clock.judge(wall_ns - lag_ms * MS, reading, clock.origin + ms(floor_ms));
        (arrival - clock.origin).as_millis()
    }

    #[test]
    fn a_note_is_turned_into_monotonic_time() {
        let clock = ArrivalClock::new();
        assert_eq!(judged(&clock, 100, 0, 7, 0), 93);
        assert_eq!(judged(&clock, 200, 0, 0, 0), 200);
        // Not before the bytes that came first, and not in the future.
        assert_eq!(judged(&clock, 300, 0, 50, 290), 290);
        assert_eq!(judged(&clock, 400, 0, -5, 0), 400);
    }

    #[test]
    fn a_wall_clock_that_is_set_is_not_believed_until_it_has_settled() {
        for set_ms in [3_600_000, -3_600_000, 5, -5] {
            let clock = ArrivalClock::new();
            assert_eq!(judged(&clock, 100, 0, 7, 0), 93);
            // Noted before the clock was set: the lag is nonsense.
            assert_eq!(judged(&clock, 110, set_ms, set_ms, 0), 110, "{set_ms}");
            assert_eq!(judged(&clock, 1000, set_ms, 7, 0), 1000, "{set_ms}");
            assert_eq!(judged(&clock, 1200, set_ms, 7, 0), 1193, "{set_ms}");
        }
    }

    #[test]
    fn slewing_is_no_setting() {
        let clock = ArrivalClock::new();
        assert_eq!(judged(&clock, 0, 0, 0, 0), 0);
        // 500 parts in a million over a minute.
        assert_eq!(judged(&clock, 60_000, 30, 7, 0), 59_993);
    }

    #[test]
    fn the_time_in_the_socket_is_not_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut far = TcpStream::connect(listener.local_addr().expect("an address")).expect("far");
        let (near, _) = listener.accept().expect("near");
        ask_for_notes(&near);
        let clock = ArrivalClock::new();
        let mut buffer = [0; 64];
        let nothing = read(&near, &mut buffer, &clock, clock.origin).expect_err("nothing yet");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        // The kernel begins to take notes a moment after the first socket asks.
        let noted = (0..20).any(|_| {
            let before = Instant::now();
            far.write_all(b"token").expect("written");
            let after = Instant::now();
            std::thread::sleep(ms(100));
            let (count, arrived) = read(&near, &mut buffer, &clock, before).expect("read");
            assert_eq!(&buffer[..count], b"token");
            assert!(arrived >= before);
            // It lay there for 100 ms.
            arrived.saturating_duration_since(after) < ms(50)
        });
        assert!(noted, "not once was the time of arrival told");
        let before = clock.reads();
        assert!(before.by_kernel > 0 && before.all >= before.by_kernel);
        drop(far);
        let (count, _) = read(&near, &mut buffer, &clock, clock.origin).expect("the end");
        assert_eq!(count, 0);
        // An end is no read that brought something.
        assert_eq!(clock.reads().since(before), Reads::default());
    }
}
