//! The last lines that a process writes to its standard error.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::AsyncReadExt, process::ChildStderr, sync::oneshot, task::JoinHandle, time::timeout,
};

/// Last lines of a stream that is read for as long as it stays open.
#[derive(Debug)]
pub(super) struct Tail {
    lines: Arc<Mutex<Lines>>,
    stop: Option<oneshot::Sender<()>>,
    reader: JoinHandle<ChildStderr>,
}

const LINES: usize = 20;
const CHARACTERS: usize = 400;

impl Tail {
    pub(super) fn of(mut stderr: ChildStderr) -> Self {
        let lines = Arc::new(Mutex::new(Lines::default()));
        let kept = Arc::clone(&lines);
        let (stop, mut stopped) = oneshot::channel();
        let reader = tokio::spawn(async move {
            let mut bytes = vec![0; 4096];
            loop {
                tokio::select! {
                    biased;
                    _ = &mut stopped => return stderr,
                    read = stderr.read(&mut bytes) => match read {
                        Ok(length @ 1..) => {
                            if let Ok(mut kept) = kept.lock() {
                                kept.add(&bytes[..length]);
                            }
                        }
                        Ok(0) | Err(_) => return stderr,
                    },
                }
            }
        });
        Self {
            lines,
            stop: Some(stop),
            reader,
        }
    }

    /// Waits a moment for what is still on its way. The end is not waited for: the
    /// first ssh of a shared connection may hold the stream open.
    pub(super) async fn settle(&mut self) {
        if !self.reader.is_finished() {
            // Either way what has come is there.
            let _ = timeout(Duration::from_millis(500), async {
                while !self.reader.is_finished() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
        }
    }

    /// Stops reading and gives the stream back.
    pub(super) async fn release(&mut self) -> Option<ChildStderr> {
        // A reader that is at the end has nobody to be told.
        let _ = self.stop.take()?.send(());
        (&mut self.reader).await.ok()
    }

    /// The last lines, without control characters.
    pub(super) fn text(&self) -> String {
        self.lines
            .lock()
            .map(|lines| lines.text())
            .unwrap_or_default()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

#[derive(Debug, Default)]
struct Lines {
    done: VecDeque<String>,
    open: Vec<u8>,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' || self.open.len() == 4 * CHARACTERS {
                let line = cleaned(&String::from_utf8_lossy(&std::mem::take(&mut self.open)));
                if !line.is_empty() {
                    self.done.push_back(line);
                }
                if self.done.len() > LINES {
                    self.done.pop_front();
                }
            }
            if byte != b'\n' {
                self.open.push(byte);
            }
        }
    }

    fn text(&self) -> String {
        let open = cleaned(&String::from_utf8_lossy(&self.open));
        let mut lines: Vec<&str> = self.done.iter().map(String::as_str).collect();
        if !open.is_empty() {
            lines.push(&open);
        }
        lines.join("\n")
    }
}

/// The last lines of a text, as [`Tail::text`] gives them.
pub(super) fn last_lines(text: &str) -> String {
    let mut lines = Lines::default();
    lines.add(text.as_bytes());
    lines.text()
}

fn cleaned(line: &str) -> String {
    let visible: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(CHARACTERS)
        .collect();
    visible.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_clean_and_short() {
        let text: String = (0..50)
            .map(|n| format!("\u{1b}[1mline {n}\r\n\n"))
            .collect();
        let kept = last_lines(&text);
        assert_eq!(kept.lines().count(), LINES);
        assert!(kept.ends_with("[1mline 49") && !kept.contains('\u{1b}'));
        assert_eq!(last_lines("no end"), "no end");
        assert!(last_lines(&"x".repeat(100_000)).len() < 50_000);
    }
}
