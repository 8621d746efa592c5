//! What the program writes about itself: to standard error, so that standard
//! output stays for results.

use std::io::{self, IsTerminal, Write};

use tokdyno_domain::secrets::masked_text;
use tracing_subscriber::EnvFilter;

/// The variable that chooses what is logged, such as `tokdyno_lab=debug`.
const VARIABLE: &str = "TOKDYNO_LOG";

/// Our own crates at `info`, everybody else's at `warn`.
const USUAL: &str = "warn,tokdyno=info,tokdyno_app=info,tokdyno_engines=info,tokdyno_lab=info,tokdyno_loadgen=info,tokdyno_pgcluster=info,tokdyno_simulator=info";

/// Starts logging. A filter that cannot be read is said so and ignored.
pub(crate) fn start() {
    let filter = match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => EnvFilter::try_new(&text).unwrap_or_else(|error| {
            eprintln!("tokdyno: {VARIABLE}={text} cannot be read ({error}); the usual filter is used. Write it such as `{VARIABLE}=tokdyno_lab=debug`.");
            EnvFilter::new(USUAL)
        }),
        _ => EnvFilter::new(USUAL),
    };
    // A second start (in tests) is no fault.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Masking(io::stderr()))
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}

/// Writes lines with their secrets masked: what went wrong may quote a command, an
/// address or an engine's own words.
struct Masking<W>(W);

impl<W: Write> Write for Masking<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(masked_text(&text, None).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_logged_holds_no_secret() {
        let mut masking = Masking(Vec::new());
        for line in [
            "WARN command=\"vllm serve --api-key abc\" failed\n",
            "WARN args: ServerArgs(api_key='def')\n",
        ] {
            masking.write_all(line.as_bytes()).expect("written");
        }
        let text = String::from_utf8(masking.0).expect("text");
        assert!(!text.contains("abc") && !text.contains("def"), "{text}");
        assert!(text.contains("failed\n") && text.ends_with(")\n"), "{text}");
    }
}
