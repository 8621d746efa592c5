//! The log of an engine that starts: how far it is, and why it failed.

mod failures;
mod stages;

use std::collections::VecDeque;

use tokdyno_domain::{
    engine::EngineKind,
    launch::{FailureKind, LaunchFailure, LoadStage},
};

use self::failures::{Signature, Weight};
use crate::{line::one_line, mask::masked_text};

/// Longest line that is looked at, in bytes; what is beyond is skipped. The line of
/// arguments, the longest that matters, has some kilobytes.
const LONGEST_LINE: usize = 64 * 1024;
/// Lines that are kept as the last ones.
const LAST_LINES: usize = 30;
/// Characters of a line that are kept.
const LINE_SHOWN: usize = 400;
/// Notices that are kept.
const MOST_NOTICES: usize = 20;

/// Reads a log piece by piece. How it is cut into pieces makes no difference, and
/// memory is bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogReader {
    engine: EngineKind,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The newest kept line ended with a carriage return: a progress bar, over which
    /// the next line is written.
    replaceable: bool,
    /// A carriage return was the last byte; a line feed after it makes a usual end.
    after_return: bool,
    stage: Option<(LoadStage, String)>,
    failure: Option<(Weight, LaunchFailure)>,
    went_down: bool,
    usage_error: Option<String>,
    ready: bool,
    nccl_last: bool,
    notices: Vec<String>,
    arguments: Option<String>,
    simulated: bool,
    last: VecDeque<String>,
}

impl LogReader {
    /// Begins with the log of an engine.
    #[must_use]
    pub fn new(engine: EngineKind) -> Self {
        Self {
            engine,
            line: Vec::new(),
            replaceable: false,
            after_return: false,
            stage: None,
            failure: None,
            went_down: false,
            usage_error: None,
            ready: false,
            nccl_last: false,
            notices: Vec::new(),
            arguments: None,
            simulated: false,
            last: VecDeque::new(),
        }
    }

    /// Takes the next bytes of the log.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' if self.after_return => {
                    self.after_return = false;
                    self.replaceable = false;
                }
                b'\n' => self.end_line(false),
                b'\r' => {
                    self.end_line(true);
                    self.after_return = true;
                }
                byte => {
                    self.after_return = false;
                    if self.line.len() < LONGEST_LINE {
                        self.line.push(*byte);
                    }
                }
            }
        }
    }

    /// How far loading is, and the newest line that told so. It never goes back.
    #[must_use]
    pub fn stage(&self) -> Option<(LoadStage, &str)> {
        self.stage
            .as_ref()
            .map(|(stage, text)| (*stage, text.as_str()))
    }

    /// Why it failed, as far as the log tells. The first cause counts, not what
    /// follows from it.
    #[must_use]
    pub fn failure(&self) -> Option<LaunchFailure> {
        self.weighed_failure().map(|(_, failure)| failure)
    }

    /// The engine said that it is ready. Only a hint: it counts what it answers.
    #[must_use]
    pub const fn said_ready(&self) -> bool {
        self.ready
    }

    /// Remarks of the engine worth knowing, which are no failures.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// The last lines, for people. Of a progress bar only the newest state.
    #[must_use]
    pub fn last_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.last.iter().cloned().collect();
        if let Some(line) = self.unfinished() {
            if self.replaceable {
                lines.pop();
            }
            lines.push(shown(&line));
        }
        lines
    }

    /// Since NCCL began to connect the GPUs, nothing has come that follows it.
    #[must_use]
    pub const fn after_nccl(&self) -> bool {
        self.nccl_last
    }

    /// What the stand-in wrote.
    #[must_use]
    pub const fn simulated(&self) -> bool {
        self.simulated
    }

    /// What vLLM logged after `non-default args:`.
    pub(crate) fn arguments(&self) -> Option<&str> {
        self.arguments.as_deref()
    }

    /// The last line in which a command line was refused.
    fn usage_error(&self) -> Option<String> {
        self.unfinished()
            .filter(|line| failures::is_usage_error(line))
            .map(|line| shown(&line))
            .or_else(|| self.usage_error.clone())
    }

    fn weighed_failure(&self) -> Option<(Weight, LaunchFailure)> {
        let newest = self
            .unfinished()
            .and_then(|line| Some((failures::of_line(&line)?, shown(&line))));
        match (&self.failure, newest) {
            (Some((weight, known)), Some((found, _))) if found.weight <= *weight => {
                Some((*weight, known.clone()))
            }
            (_, Some((found, text))) => Some((found.weight, LaunchFailure::new(found.kind, text))),
            (known, None) => known.clone(),
        }
    }

    fn unfinished(&self) -> Option<String> {
        let text = clean(&self.line);
        (!text.trim().is_empty()).then_some(text)
    }

    fn end_line(&mut self, by_return: bool) {
        let text = clean(&std::mem::take(&mut self.line));
        if text.trim().is_empty() {
            return;
        }
        self.read_line(&text);
        if self.replaceable {
            self.last.pop_back();
        }
        self.replaceable = by_return;
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(shown(&text));
    }

    fn read_line(&mut self, text: &str) {
        self.simulated |= text.contains("[simulated]");
        if stages::is_notice(text) {
            let notice = shown(&without_stamp(text));
            if self.notices.len() < MOST_NOTICES && !self.notices.contains(&notice) {
                self.notices.push(notice);
            }
            return;
        }
        if self.arguments.is_none()
            && let Some((_, arguments)) = text.split_once("non-default args:")
        {
            self.arguments = Some(arguments.trim().to_owned());
        }
        self.ready |= stages::says_ready(self.engine, text);
        let stage = stages::of_line(self.engine, text);
        if stages::is_nccl(text) {
            self.nccl_last = true;
        } else if stage.is_some_and(|stage| stage > LoadStage::Engine) {
            self.nccl_last = false;
        }
        if let Some(stage) = stage
            && self.stage.as_ref().is_none_or(|(now, _)| stage >= *now)
        {
            self.stage = Some((stage, shown(&without_stamp(text))));
        }
        if failures::is_usage_error(text) {
            self.usage_error = Some(shown(text));
        }
        let signature = failures::of_line(text);
        self.went_down |= signature.is_some_and(|found| found.weight == Weight::Consequence);
        if let Some(Signature { weight, kind, .. }) = signature
            && self
                .failure
                .as_ref()
                .is_none_or(|(known, _)| *weight > *known)
        {
            self.failure = Some((*weight, LaunchFailure::new(*kind, shown(text))));
        }
    }
}

/// What kind of end it was, from the log and from how the process ended.
#[must_use]
pub fn ended(reader: &LogReader, exit_code: Option<i32>, signal: Option<i32>) -> LaunchFailure {
    if let Some((weight, failure)) = reader.weighed_failure() {
        let explains = match weight {
            Weight::Cause => true,
            // A warning of NCCL explains no signal from outside, unless the engine
            // itself said that it goes down.
            Weight::Hint => signal.is_none() || reader.went_down,
            Weight::Consequence => exit_code != Some(2),
        };
        if explains {
            return failure;
        }
    }
    // A shell or a container's runtime reports a signal as 128 and its number.
    let signal = signal.or(match exit_code {
        Some(code @ 129..=159) => Some(code - 128),
        _ => None,
    });
    if let Some(signal) = signal {
        let name = failures::signal_name(signal);
        return match signal {
            // It broke by itself: nobody killed it.
            4 | 6 | 7 | 8 | 11 => LaunchFailure::new(
                FailureKind::EngineDied,
                format!("It crashed with signal {signal} ({name})."),
            ),
            _ => LaunchFailure::new(
                FailureKind::Killed,
                format!("Signal {signal} ({name}) ended it."),
            ),
        };
    }
    match (exit_code, reader.usage_error()) {
        (Some(2), Some(line)) => LaunchFailure::new(FailureKind::BadFlag, line),
        (Some(127), _) => LaunchFailure::new(
            FailureKind::NoProgram,
            with_last_line(reader, "Exit code 127"),
        ),
        (Some(125), _) => LaunchFailure::new(
            FailureKind::Activation,
            with_last_line(reader, "The container's runtime ended with exit code 125"),
        ),
        (Some(126), _) => LaunchFailure::new(
            FailureKind::NoProgram,
            with_last_line(reader, "It cannot be run (exit code 126)"),
        ),
        (Some(code), _) => LaunchFailure::new(
            FailureKind::Exited,
            with_last_line(reader, &format!("Exit code {code}")),
        ),
        (None, _) => LaunchFailure::new(
            FailureKind::Exited,
            with_last_line(reader, "How it ended was not recorded"),
        ),
    }
}

fn with_last_line(reader: &LogReader, text: &str) -> String {
    let cause = reader
        .last_lines()
        .into_iter()
        .rev()
        .find(|line| !failures::is_hint(line));
    match cause {
        Some(line) => format!("{text}; its last line was: {line}"),
        None => format!("{text}, and it logged nothing."),
    }
}

/// The line as text: bytes that are no UTF-8 replaced, colours taken out.
fn clean(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    if !text.contains('\u{1b}') {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(sequence) = rest.strip_prefix('[') {
            let end = sequence
                .find(|c: char| ('\u{40}'..='\u{7e}').contains(&c))
                .map_or(sequence.len(), |end| end + 1);
            rest = &sequence[end..];
        }
    }
    out.push_str(rest);
    out
}

/// One line of bounded length without secrets.
fn shown(text: &str) -> String {
    one_line(&masked_text(text, None), LINE_SHOWN)
}

/// The line without the time and the level in front, which the page shows itself.
fn without_stamp(text: &str) -> String {
    let text = text.trim();
    // `[2026-11-29 12:00:00 TP0] …`
    if let Some((stamp, rest)) = text.strip_prefix('[').and_then(|t| t.split_once("] "))
        && stamp.starts_with(|c: char| c.is_ascii_digit())
    {
        return rest.trim().to_owned();
    }
    // `(EngineCore pid=7) INFO 11-29 12:00:00 [gpu_worker.py:12] …`
    for level in ["INFO ", "WARNING ", "ERROR "] {
        if let Some((before, rest)) = text.split_once(level)
            && (before.trim().is_empty() || before.trim().ends_with(')'))
            && let Some((stamp, rest)) = rest.split_once("] ")
            && stamp.starts_with(|c: char| c.is_ascii_digit())
        {
            return rest.trim().to_owned();
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests;
