//! From the measuring thread to the reader and the spool file.
//!
//! Events are numbered, written and handed over on another thread than the one
//! that measures, so that serialising and slow disks do not fall between two
//! requests.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokdyno_domain::{
    meter::{MeterEvent, MeterEventKind, MeterOutcome},
    timestamp::Timestamp,
};

use crate::cancel::CancelFlag;

/// Events that may wait. A reader that lets more pile up holds the measurement
/// up, which spoils its times: no request is lost, but the run fails.
pub(crate) const QUEUE: usize = 65_536;
/// How long events are gathered before they are written together.
const GATHER: Duration = Duration::from_millis(20);

/// An event on its way, with its time.
pub(crate) type Posted = (Timestamp, Box<MeterEventKind>);

/// Why a spool file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// It holds a run already.
    #[error(
        "The spool file {0} already holds events. A spool file is for one run: move it away, or name another."
    )]
    NotEmpty(String),
    /// It cannot be opened or written.
    #[error(
        "The spool file {path} cannot be written: {source}. Check the folder, its rights and the space left."
    )]
    Io {
        /// Which file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

/// The measuring thread's end.
#[derive(Clone)]
pub(crate) struct Emitter {
    queue: SyncSender<Posted>,
    stop: CancelFlag,
    overrun: Arc<AtomicBool>,
}

impl Emitter {
    pub(crate) fn new(queue: SyncSender<Posted>, stop: CancelFlag) -> Self {
        Self {
            queue,
            stop,
            overrun: Arc::default(),
        }
    }

    /// Hands an event over, and waits for room if it must.
    pub(crate) fn emit(&self, kind: MeterEventKind) {
        let posted = (now(), Box::new(kind));
        let lost = match self.queue.try_send(posted) {
            Ok(()) => false,
            Err(TrySendError::Disconnected(_)) => true,
            Err(TrySendError::Full(posted)) => {
                self.overrun.store(true, Ordering::SeqCst);
                self.stop.cancel();
                self.queue.send(posted).is_err()
            }
        };
        if lost {
            // Nobody takes events any more: nothing measured now could be kept.
            self.stop.cancel();
        }
    }

    /// Did the measurement have to wait for the reader?
    pub(crate) fn has_overrun(&self) -> bool {
        self.overrun.load(Ordering::SeqCst)
    }

    /// Hands over an event that may be lost when the reader is slow.
    pub(crate) fn emit_if_room(&self, kind: MeterEventKind) {
        if let Err(TrySendError::Disconnected(_)) = self.queue.try_send((now(), Box::new(kind))) {
            self.stop.cancel();
        }
    }
}

/// What is done with each event, on the reader's thread.
pub(crate) trait Outlet {
    /// Takes an event.
    fn take(&mut self, event: MeterEvent) -> Result<(), SpoolError>;
    /// A batch is over: make it visible.
    fn flush(&mut self) -> Result<(), SpoolError>;
}

/// Numbers events and passes them on until the last. A spool that fails stops
/// the run.
pub(crate) fn pump(
    queue: &Receiver<Posted>,
    outlet: &mut impl Outlet,
    stop: &CancelFlag,
) -> MeterOutcome {
    let mut seq = 0;
    let mut spool_failure: Option<String> = None;
    let note = |result: Result<(), SpoolError>, failure: &mut Option<String>| {
        if let Err(error) = result {
            stop.cancel();
            failure.get_or_insert(error.to_string());
        }
    };
    let mut next = queue.recv();
    while let Ok((at, kind)) = next {
        seq += 1;
        if let MeterEventKind::Finished { outcome } = *kind {
            let outcome = match spool_failure {
                Some(reason) => MeterOutcome::Failed { reason },
                None => outcome,
            };
            return finish(outlet, seq, at, outcome);
        }
        let event = MeterEvent {
            seq,
            at,
            kind: *kind,
        };
        note(outlet.take(event), &mut spool_failure);
        next = match queue.try_recv() {
            Ok(posted) => Ok(posted),
            Err(_) => {
                note(outlet.flush(), &mut spool_failure);
                let first = queue.recv();
                if !matches!(&first, Ok((_, kind)) if matches!(**kind, MeterEventKind::Finished { .. }))
                {
                    std::thread::sleep(GATHER);
                }
                first
            }
        };
    }
    let reason = "The measuring thread ended without saying why. This is a fault of the meter: please report it.".to_owned();
    finish(outlet, seq + 1, now(), MeterOutcome::Failed { reason })
}

fn finish(
    outlet: &mut impl Outlet,
    seq: u64,
    at: Timestamp,
    outcome: MeterOutcome,
) -> MeterOutcome {
    let kind = MeterEventKind::Finished {
        outcome: outcome.clone(),
    };
    let written = outlet
        .take(MeterEvent { seq, at, kind })
        .and_then(|()| outlet.flush());
    match (written, &outcome) {
        (Err(error), MeterOutcome::Complete) => MeterOutcome::Failed {
            reason: error.to_string(),
        },
        _ => outcome,
    }
}

/// Where a spool is kept.
pub(crate) trait Store: Write {
    /// Its length, in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Cuts it back to a length.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Store for File {
    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// Appends all of `bytes` or nothing: a full disk must not leave half a line.
fn append(store: &mut impl Store, bytes: &[u8]) -> io::Result<()> {
    let before = store.length()?;
    let written = store.write_all(bytes);
    if written.is_err() {
        // What the first failure said is of more use than a second one.
        let _ = store.cut(before);
    }
    written
}

/// Lines to an output, to a spool file, or both.
pub(crate) struct Lines<W, S = File> {
    /// None once it is closed.
    output: Option<W>,
    spool: Option<(String, S)>,
    /// A write to the spool failed, so events are missing there. Only the last
    /// event is written then: it says why, and takes little room.
    gap: bool,
    batch: Vec<u8>,
    /// Where in the batch the last event begins, once it is there.
    last_at: Option<usize>,
    stop: CancelFlag,
}

impl<W: Write, S: Store> Lines<W, S> {
    pub(crate) const fn new(
        output: Option<W>,
        spool: Option<(String, S)>,
        stop: CancelFlag,
    ) -> Self {
        Self {
            output,
            spool,
            gap: false,
            batch: Vec::new(),
            last_at: None,
            stop,
        }
    }
}

impl<W: Write, S: Store> Outlet for Lines<W, S> {
    fn take(&mut self, event: MeterEvent) -> Result<(), SpoolError> {
        if matches!(event.kind, MeterEventKind::Finished { .. }) {
            self.last_at = Some(self.batch.len());
        }
        // Events are plain data; serialising them into memory cannot fail.
        if serde_json::to_writer(&mut self.batch, &event).is_ok() {
            self.batch.push(b'\n');
        }
        if self.batch.len() >= 1 << 20 {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), SpoolError> {
        // The spool first: it must hold what the output may lose.
        let last_at = self.last_at.take();
        let lines = if self.gap {
            last_at.and_then(|at| self.batch.get(at..)).unwrap_or(&[])
        } else {
            &self.batch
        };
        let spooled = match &mut self.spool {
            Some((path, file)) => append(file, lines).map_err(|source| SpoolError::Io {
                path: path.clone(),
                source,
            }),
            None => Ok(()),
        };
        self.gap |= spooled.is_err();
        if let Some(output) = &mut self.output
            && output
                .write_all(&self.batch)
                .and_then(|()| output.flush())
                .is_err()
        {
            self.output = None;
            if self.spool.is_none() {
                self.stop.cancel();
            }
        }
        self.batch.clear();
        spooled
    }
}

/// A callback, with the lines to the spool beside it.
pub(crate) struct Calls<F> {
    pub(crate) call: F,
    pub(crate) spool: Option<Lines<io::Sink>>,
}

impl<F: FnMut(MeterEvent)> Outlet for Calls<F> {
    fn take(&mut self, event: MeterEvent) -> Result<(), SpoolError> {
        let spooled = match &mut self.spool {
            Some(spool) => spool.take(event.clone()),
            None => Ok(()),
        };
        (self.call)(event);
        spooled
    }

    fn flush(&mut self) -> Result<(), SpoolError> {
        self.spool.as_mut().map_or(Ok(()), Lines::flush)
    }
}

/// Opens a spool file for a new run.
///
/// # Errors
/// It cannot be opened, or it holds something.
pub(crate) fn open_spool(path: &str) -> Result<(String, File), SpoolError> {
    let io = |source| SpoolError::Io {
        path: path.to_owned(),
        source,
    };
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(io)?;
    if file.metadata().map_err(io)?.len() > 0 {
        return Err(SpoolError::NotEmpty(path.to_owned()));
    }
    Ok((path.to_owned(), file))
}

/// The moment, by the wall clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn stage_finished(stage: u32) -> MeterEventKind {
        MeterEventKind::StageFinished {
            stage,
            figures: Box::default(),
            conditions: Box::default(),
        }
    }

    fn lines(path: &std::path::Path) -> Vec<MeterEvent> {
        std::fs::read_to_string(path)
            .expect("a spool")
            .lines()
            .map(|line| serde_json::from_str(line).expect("an event"))
            .collect()
    }

    #[test]
    fn a_closed_output_costs_the_spool_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("spool");
        let spool = open_spool(path.to_str().expect("a path")).expect("a spool");
        let stop = CancelFlag::new();
        let mut outlet = Lines::new(Some(Closed), Some(spool), stop.clone());
        let (sender, receiver) = sync_channel(8);
        let emitter = Emitter::new(sender, stop.clone());
        for stage in 0..3 {
            emitter.emit(stage_finished(stage));
        }
        emitter.emit(MeterEventKind::Finished {
            outcome: MeterOutcome::Complete,
        });
        assert_eq!(pump(&receiver, &mut outlet, &stop), MeterOutcome::Complete);
        assert!(!stop.is_cancelled());
        let seqs: Vec<u64> = lines(&path).iter().map(|event| event.seq).collect();
        assert_eq!(seqs, [1, 2, 3, 4]);
        let again = open_spool(path.to_str().expect("a path"));
        assert!(matches!(again, Err(SpoolError::NotEmpty(_))));
    }

    #[test]
    fn a_closed_output_without_a_spool_stops_the_run() {
        let stop = CancelFlag::new();
        let mut outlet: Lines<_> = Lines::new(Some(Closed), None, stop.clone());
        outlet
            .take(MeterEvent {
                seq: 1,
                at: now(),
                kind: stage_finished(0),
            })
            .expect("taken");
        outlet.flush().expect("no spool");
        assert!(stop.is_cancelled());
    }

    #[test]
    fn a_spool_that_fails_stops_the_run_and_is_named() {
        let stop = CancelFlag::new();
        // Opened for reading: every write fails.
        let file = File::open("/dev/null").expect("a file");
        let mut outlet = Lines::new(
            Some(Vec::new()),
            Some(("/dev/null".to_owned(), file)),
            stop.clone(),
        );
        let (sender, receiver) = sync_channel(8);
        let emitter = Emitter::new(sender, stop.clone());
        let writer = std::thread::spawn(move || {
            emitter.emit(stage_finished(0));
            while !emitter.stop.is_cancelled() {
                std::thread::yield_now();
            }
            emitter.emit(MeterEventKind::Finished {
                outcome: MeterOutcome::Cancelled,
            });
        });
        let outcome = pump(&receiver, &mut outlet, &stop);
        writer.join().expect("no panic");
        assert!(matches!(outcome, MeterOutcome::Failed { reason } if reason.contains("/dev/null")));
    }

    /// A disk with so many bytes left.
    struct Cramped {
        held: Vec<u8>,
        room: usize,
    }

    impl Write for Cramped {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.room - self.held.len());
            if fits == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.held.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Store for Cramped {
        fn length(&self) -> io::Result<u64> {
            Ok(self.held.len() as u64)
        }

        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.held.truncate(usize::try_from(length).expect("short"));
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_leaves_whole_lines_and_the_last_event() {
        let event = |seq, kind| MeterEvent {
            seq,
            at: now(),
            kind,
        };
        let length = |seq| {
            let event = event(seq, stage_finished(0));
            serde_json::to_vec(&event).expect("a line").len() + 1
        };
        // Room for the first event and most of the second.
        let spool = Cramped {
            held: Vec::new(),
            room: length(1) + length(2) - 10,
        };
        let mut outlet = Lines::new(
            Some(Vec::new()),
            Some(("spool".to_owned(), spool)),
            CancelFlag::new(),
        );
        for (seq, fits) in [(1, true), (2, false), (3, true)] {
            outlet.take(event(seq, stage_finished(0))).expect("room");
            assert_eq!(outlet.flush().is_ok(), fits, "{seq}");
        }
        // In one batch with the last event, as at the end of a run.
        outlet.take(event(4, stage_finished(0))).expect("room");
        let last = MeterEventKind::Finished {
            outcome: MeterOutcome::Cancelled,
        };
        outlet.take(event(5, last)).expect("room");
        outlet.flush().expect("short enough");
        let seqs = |text: &[u8]| -> Vec<u64> {
            String::from_utf8_lossy(text)
                .lines()
                .map(|line| serde_json::from_str::<MeterEvent>(line).expect("whole").seq)
                .collect()
        };
        let (_, spool) = outlet.spool.as_ref().expect("a spool");
        assert_eq!(seqs(&spool.held), [1, 5]);
        let output = outlet.output.as_ref().expect("open");
        assert_eq!(seqs(output), [1, 2, 3, 4, 5], "the output loses nothing");
    }

    #[test]
    fn a_spool_file_is_cut_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("spool");
        let (_, mut file) = open_spool(path.to_str().expect("a path")).expect("a spool");
        file.write_all(b"whole\ntor").expect("room");
        file.cut(6).expect("cut");
        append(&mut file, b"next\n").expect("room");
        assert_eq!(std::fs::read(&path).expect("a spool"), b"whole\nnext\n");
        assert_eq!(file.length().expect("a length"), 11);
    }

    #[test]
    fn a_reader_that_falls_behind_stops_the_run_and_loses_nothing() {
        let stop = CancelFlag::new();
        let (sender, receiver) = sync_channel(2);
        let emitter = Emitter::new(sender, stop.clone());
        let other = emitter.clone();
        let writer = std::thread::spawn(move || {
            for stage in 0..5 {
                other.emit(stage_finished(stage));
            }
        });
        while !stop.is_cancelled() {
            std::thread::yield_now();
        }
        assert!(emitter.has_overrun());
        drop(emitter);
        assert_eq!(receiver.iter().count(), 5);
        writer.join().expect("no panic");
    }

    #[test]
    fn a_lost_measuring_thread_is_a_failure() {
        let (sender, receiver) = sync_channel(1);
        drop(sender);
        let mut events = Vec::new();
        let mut outlet = Calls {
            call: |event: MeterEvent| events.push(event),
            spool: None,
        };
        let outcome = pump(&receiver, &mut outlet, &CancelFlag::new());
        assert!(matches!(outcome, MeterOutcome::Failed { .. }));
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].seq, 1);
    }
}
