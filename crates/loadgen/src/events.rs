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

/// Lines to an output, to a spool file, or both.
pub(crate) struct Lines<W> {
    /// None once it is closed.
    output: Option<W>,
    spool: Option<(String, File)>,
    batch: Vec<u8>,
    stop: CancelFlag,
}

impl<W: Write> Lines<W> {
    pub(crate) const fn new(
        output: Option<W>,
        spool: Option<(String, File)>,
        stop: CancelFlag,
    ) -> Self {
        Self {
            output,
            spool,
            batch: Vec::new(),
            stop,
        }
    }
}

impl<W: Write> Outlet for Lines<W> {
    fn take(&mut self, event: MeterEvent) -> Result<(), SpoolError> {
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
        let spooled = match &mut self.spool {
            Some((path, file)) => file
                .write_all(&self.batch)
                .map_err(|source| SpoolError::Io {
                    path: path.clone(),
                    source,
                }),
            None => Ok(()),
        };
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
        let mut outlet = Lines::new(Some(Closed), None, stop.clone());
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
