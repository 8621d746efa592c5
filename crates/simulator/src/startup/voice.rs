//! The form of an engine's log lines. Each says that it is simulated.

use std::io::Write as _;

use time::OffsetDateTime;

use crate::config::Engine;

/// Who in an engine speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// The launcher.
    Main,
    /// The process that holds the first GPU.
    Worker,
    /// The same, of an error.
    Trouble,
    /// The web server.
    Web,
    /// No logger at all: a progress bar, a traceback.
    Bare,
}

/// A line to be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) voice: Voice,
    pub(crate) text: String,
}

impl Line {
    pub(crate) fn new(voice: Voice, text: impl Into<String>) -> Self {
        Self {
            voice,
            text: text.into(),
        }
    }

    /// As the engine would write it at this time.
    pub(crate) fn written(&self, engine: Engine, now: OffsetDateTime) -> String {
        let text = &self.text;
        let (year, month, day) = now.to_calendar_date();
        let month = u8::from(month);
        let (hour, minute, second) = now.to_hms();
        let clock = format!("{hour:02}:{minute:02}:{second:02}");
        let vllm = |level: &str, who: &str| {
            format!("{who}{level} {month:02}-{day:02} {clock} [simulated] {text}")
        };
        let sglang =
            |who: &str| format!("[{year:04}-{month:02}-{day:02} {clock}{who}] [simulated] {text}");
        match (engine, self.voice) {
            (_, Voice::Bare) => format!("[simulated] {text}"),
            (Engine::Vllm, Voice::Main) => vllm("INFO", ""),
            (Engine::Vllm, Voice::Worker) => vllm("INFO", "(EngineCore) "),
            (Engine::Vllm, Voice::Trouble) => vllm("ERROR", "(EngineCore) "),
            (Engine::Vllm, Voice::Web) => format!("INFO:     [simulated] {text}"),
            (Engine::Sglang, Voice::Main | Voice::Web) => sglang(""),
            (Engine::Sglang, Voice::Worker | Voice::Trouble) => sglang(" TP0"),
        }
    }
}

/// Where start-up lines go: standard error, stamped with the time of day (UTC).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    pub(crate) engine: Engine,
}

impl Log {
    pub(crate) fn say(self, voice: Voice, text: impl Into<String>) {
        self.print(&[Line::new(voice, text)]);
    }

    pub(crate) fn print(self, lines: &[Line]) {
        let now = OffsetDateTime::now_utc();
        let mut text = String::new();
        for line in lines {
            text.push_str(&line.written(self.engine, now));
            text.push('\n');
        }
        // Nobody reads any more: nothing to say it to.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_each_engines_form_and_say_that_they_are_simulated() {
        let now = OffsetDateTime::from_unix_timestamp(1_764_446_583).expect("a time");
        let written = |engine, voice| Line::new(voice, "x").written(engine, now);
        assert_eq!(
            written(Engine::Vllm, Voice::Main),
            "INFO 11-29 20:03:03 [simulated] x"
        );
        assert_eq!(
            written(Engine::Sglang, Voice::Worker),
            "[2025-11-29 20:03:03 TP0] [simulated] x"
        );
        for voice in [
            Voice::Main,
            Voice::Worker,
            Voice::Trouble,
            Voice::Web,
            Voice::Bare,
        ] {
            for engine in [Engine::Vllm, Engine::Sglang] {
                assert!(written(engine, voice).contains("[simulated] x"));
            }
        }
    }
}
