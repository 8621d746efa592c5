//! The log of a launch, read as bytes: by pieces for a page, whole for a file.

#[cfg(test)]
mod store_tests;

use std::{collections::VecDeque, ops::Range};

use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    ids::LaunchId,
    views::servers::LogPage,
};

use crate::{Lab, LabError, clean::big, launch_rows::state_of, stages::unsigned};

/// Most bytes of one page.
const MOST: u64 = 256 * 1024;
/// Most lines that a search gives.
const MOST_FOUND: usize = 200;
/// Longest line that a search keeps in mind, in bytes.
const LONGEST_LINE: usize = 64 * 1024;
/// Most of a found line that is shown, in characters.
const SHOWN: usize = 2_000;
/// Stored pieces read at once.
const PIECES: i64 = 32;

/// The stored log, piece by piece.
pub struct LogFile {
    lab: Lab,
    launch: LaunchId,
    /// Where the next piece begins.
    at: i64,
    read: VecDeque<(i64, Vec<u8>)>,
}

impl LogFile {
    /// The next bytes; none at the end. A log that grows meanwhile is given as far
    /// as it is then.
    ///
    /// # Errors
    /// [`LabError::DatabaseUnavailable`].
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, LabError> {
        Ok(self.piece().await?.map(|(_, bytes)| bytes))
    }

    /// The same with the byte at which it begins.
    async fn piece(&mut self) -> Result<Option<(u64, Vec<u8>)>, LabError> {
        if self.read.is_empty() {
            let rows = sqlx::query!(
                "SELECT start, bytes FROM launch_log WHERE launch_id = $1 AND start >= $2
                 ORDER BY start LIMIT $3",
                self.launch.0,
                self.at,
                PIECES,
            )
            .fetch_all(&self.lab.0.pool)
            .await?;
            self.read
                .extend(rows.into_iter().map(|row| (row.start, row.bytes)));
        }
        let Some((start, bytes)) = self.read.pop_front() else {
            return Ok(None);
        };
        self.at = start.saturating_add(1);
        Ok(Some((unsigned(start), bytes)))
    }
}

impl Lab {
    /// A page of a launch's log from byte `start` on, at most `most` bytes; it ends
    /// with a whole character. With `find`, also the lines of the whole log that
    /// hold it, in upper or lower case, at most two hundred. A log may hold secrets,
    /// so only those who launch read it.
    ///
    /// # Errors
    /// [`LabError::NoSuchLaunch`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn launch_log(
        &self,
        actor: &Actor,
        launch: LaunchId,
        start: u64,
        most: u64,
        find: &str,
    ) -> Result<LogPage, LabError> {
        authorise(actor, Capability::Launch)?;
        let row = sqlx::query!(
            "SELECT state, log_size FROM launches WHERE id = $1 AND team_id = $2",
            launch.0,
            actor.team.0,
        )
        .fetch_optional(&self.0.pool)
        .await?
        .ok_or(LabError::NoSuchLaunch(launch))?;
        let size = unsigned(row.log_size);
        let over = state_of(&row.state)?.is_over();
        let most = most.clamp(1, MOST);
        let (start, mut bytes) = self.bytes_of(launch, start, most).await?;
        let more = start.saturating_add(length(&bytes)) < size;
        // The rest of a character is yet to come. A page that is smaller than its one
        // character gives it in pieces: each page must go on.
        if more || !over {
            let whole = whole_characters(&bytes);
            if whole > 0 || length(&bytes) < most {
                bytes.truncate(whole);
            }
        }
        let found = match find.trim() {
            "" => Vec::new(),
            find => self.found(launch, find).await?,
        };
        Ok(LogPage {
            start,
            next: start.saturating_add(length(&bytes)),
            size,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            found,
        })
    }

    /// The whole log as stored, byte for byte, for those who launch.
    ///
    /// # Errors
    /// [`LabError::NoSuchLaunch`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn launch_log_file(
        &self,
        actor: &Actor,
        launch: LaunchId,
    ) -> Result<LogFile, LabError> {
        authorise(actor, Capability::Launch)?;
        let there = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT 1 FROM launches
                   WHERE id = $1 AND team_id = $2) AS "there!""#,
            launch.0,
            actor.team.0,
        )
        .fetch_one(&self.0.pool)
        .await?;
        if there {
            Ok(self.log_file(launch))
        } else {
            Err(LabError::NoSuchLaunch(launch))
        }
    }

    fn log_file(&self, launch: LaunchId) -> LogFile {
        LogFile {
            lab: self.clone(),
            launch,
            at: 0,
            read: VecDeque::new(),
        }
    }

    /// At most so many bytes from `start` on, and where they begin: later if there
    /// is nothing stored at `start` itself.
    async fn bytes_of(
        &self,
        launch: LaunchId,
        start: u64,
        most: u64,
    ) -> Result<(u64, Vec<u8>), LabError> {
        let rows = sqlx::query!(
            "SELECT start, bytes FROM launch_log WHERE launch_id = $1 AND start < $3
               AND start >= coalesce((SELECT max(start) FROM launch_log
                   WHERE launch_id = $1 AND start <= $2), 0)
             ORDER BY start",
            launch.0,
            big(start),
            big(start.saturating_add(most)),
        )
        .fetch_all(&self.0.pool)
        .await?;
        let mut begun = start;
        let mut bytes = Vec::new();
        for row in rows {
            let at = unsigned(row.start);
            let next = begun.saturating_add(length(&bytes));
            let piece = match at.checked_sub(next) {
                None => {
                    let skipped = usize::try_from(next - at).unwrap_or(usize::MAX);
                    row.bytes.get(skipped..).unwrap_or_default()
                }
                Some(0) => &row.bytes,
                Some(_) if bytes.is_empty() => {
                    begun = at;
                    &row.bytes
                }
                Some(_) => break,
            };
            bytes.extend_from_slice(piece);
        }
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok((begun, bytes))
    }

    async fn found(&self, launch: LaunchId, find: &str) -> Result<Vec<(u64, String)>, LabError> {
        let mut search = Search::new(find);
        let mut file = self.log_file(launch);
        while let Some((start, bytes)) = file.piece().await? {
            search.push(start, &bytes);
            if search.is_full() {
                break;
            }
        }
        Ok(search.end())
    }
}

/// Finds lines as bytes come. A progress bar's carriage return ends a line too.
struct Search {
    wanted: String,
    line: Vec<u8>,
    line_start: u64,
    found: Vec<(u64, String)>,
}

impl Search {
    fn new(find: &str) -> Self {
        Self {
            wanted: find.to_lowercase(),
            line: Vec::new(),
            line_start: 0,
            found: Vec::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.found.len() >= MOST_FOUND
    }

    fn push(&mut self, start: u64, bytes: &[u8]) {
        let mut line = 0_usize;
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(byte, b'\n' | b'\r') {
                self.take(start, bytes, line..at);
                self.finish();
                line = at + 1;
            }
        }
        self.take(start, bytes, line..bytes.len());
    }

    fn take(&mut self, start: u64, bytes: &[u8], part: Range<usize>) {
        if self.line.is_empty() {
            self.line_start = start.saturating_add(u64::try_from(part.start).unwrap_or(0));
        }
        let room = LONGEST_LINE.saturating_sub(self.line.len());
        let part = bytes.get(part).unwrap_or_default();
        self.line
            .extend_from_slice(part.get(..room).unwrap_or(part));
    }

    fn finish(&mut self) {
        if !self.is_full() {
            let line = String::from_utf8_lossy(&self.line);
            if line.to_lowercase().contains(&self.wanted) {
                let line = line.chars().take(SHOWN).collect();
                self.found.push((self.line_start, line));
            }
        }
        self.line.clear();
    }

    fn end(mut self) -> Vec<(u64, String)> {
        self.finish();
        self.found
    }
}

/// Bytes up to the last whole character: what is no UTF-8 at all counts as whole.
fn whole_characters(bytes: &[u8]) -> usize {
    // A character of n bytes begins at most n - 1 bytes before the end.
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let needed = match bytes.get(at) {
            Some(0xC2..=0xDF) => 2,
            Some(0xE0..=0xEF) => 3,
            Some(0xF0..=0xF4) => 4,
            Some(0x80..=0xBF) => continue,
            _ => 1,
        };
        return if needed > back { at } else { bytes.len() };
    }
    bytes.len()
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_with_a_whole_character() {
        let text = "aä€😀".as_bytes();
        let ends: Vec<usize> = (0..=text.len())
            .map(|end| whole_characters(&text[..end]))
            .collect();
        assert_eq!(ends, [0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10]);
        assert_eq!(
            whole_characters(&[0xFF, 0xFE]),
            2,
            "no UTF-8 is not waited for"
        );
        assert_eq!(whole_characters(&[0x80, 0x80, 0x80, 0x80]), 4);
    }

    #[test]
    fn lines_are_found_wherever_the_pieces_are_cut() {
        let log = "Loading WEIGHTS\r\nä weights: 10%\rweights: 20%\nno\nlast weights".as_bytes();
        let whole = {
            let mut search = Search::new("Weights");
            search.push(0, log);
            search.end()
        };
        assert_eq!(
            whole,
            [
                (0, "Loading WEIGHTS".to_owned()),
                (17, "ä weights: 10%".to_owned()),
                (33, "weights: 20%".to_owned()),
                (49, "last weights".to_owned()),
            ]
        );
        for cut in 0..log.len() {
            let mut search = Search::new("Weights");
            search.push(0, &log[..cut]);
            search.push(u64::try_from(cut).expect("small"), &log[cut..]);
            assert_eq!(search.end(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_search_keeps_a_bounded_number_of_bounded_lines() {
        let mut search = Search::new("x");
        for _ in 0..300 {
            search.push(0, &[b'x'; 70_000]);
            search.push(0, b"\n");
        }
        let found = search.end();
        assert_eq!(found.len(), MOST_FOUND);
        assert!(found.iter().all(|(_, line)| line.len() == SHOWN));
    }
}
