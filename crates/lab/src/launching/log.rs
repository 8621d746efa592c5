//! The log of a launch: followed on its host, stored byte for byte, read for what it
//! tells of the start-up.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use sqlx::PgPool;
use tokdyno_domain::{
    launch::{LaunchState, LoadStage},
    live::LaunchEvent,
};
use tokdyno_engines::LogReader;
use tokdyno_remote::{Host, RemoteError};
use tokio::{task::JoinHandle, time::Instant};

use super::{
    lease::LaunchLease,
    notify::announce,
    patience::{BackOff, Patience},
    row::{self, Change, Launch},
};
use crate::{
    LabError, clean, launch_rows,
    worker::{drive::bounded, lease::LEASE},
};

/// The file in a launch's folder.
pub(super) const FILE: &str = "log";
/// Longest stored piece.
const PIECE: usize = 64 * 1024;
/// Most that is stored of the end of a log of which the middle is not kept.
const END: u64 = 256 * 1024;
/// Shortest time between two announcements.
const ANNOUNCE: Duration = Duration::from_millis(250);

/// A log that is being followed. Dropping it ends that.
pub(super) struct Log {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    pool: PgPool,
    lease: LaunchLease,
    reader: Mutex<LogReader>,
    /// The furthest stage that is stored.
    stage: Mutex<Option<LoadStage>>,
    size: AtomicU64,
    grown: Mutex<Instant>,
    /// There is something to be announced.
    news: AtomicBool,
    /// Most that is stored of its beginning, in bytes.
    most: u64,
    full: AtomicBool,
    /// No more of it is read.
    ended: AtomicBool,
}

impl Drop for Log {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Log {
    /// Reads what is stored already, and follows from there.
    pub(super) async fn follow(
        pool: &PgPool,
        lease: LaunchLease,
        host: &Host,
        launch: &Launch,
        patience: &Patience,
    ) -> Result<Self, LabError> {
        let (reader, size) = stored(pool, launch).await?;
        let shared = Arc::new(Shared {
            pool: pool.clone(),
            lease,
            reader: Mutex::new(reader),
            stage: Mutex::new(launch.stage),
            size: AtomicU64::new(size),
            grown: Mutex::new(Instant::now()),
            news: AtomicBool::new(false),
            most: patience.log_most,
            full: AtomicBool::new(size >= patience.log_most),
            ended: AtomicBool::new(size > patience.log_most),
        });
        let task = tokio::spawn(run(
            Arc::clone(&shared),
            host.clone(),
            launch.folder.clone(),
            *patience,
        ));
        Ok(Self { shared, task })
    }

    /// What the log tells.
    pub(super) fn reader(&self) -> LogReader {
        lock(&self.shared.reader).clone()
    }

    /// Why it failed, as far as the log tells.
    pub(super) fn tells_failure(&self) -> bool {
        lock(&self.shared.reader).failure().is_some()
    }

    /// How long nothing was added to it.
    pub(super) fn silent_for(&self) -> Duration {
        lock(&self.shared.grown).elapsed()
    }

    /// Bytes that are stored.
    pub(super) fn size(&self) -> u64 {
        self.shared.size.load(Ordering::Acquire)
    }

    /// Is no more of it stored until its process has ended?
    pub(super) fn is_full(&self) -> bool {
        self.shared.full.load(Ordering::Acquire)
    }

    /// Of a log that is longer than what is stored of its beginning: reads and stores
    /// its end as well, since that tells why the process ended. `there` is its size on
    /// the host.
    pub(super) async fn take_end(
        &self,
        host: &Host,
        folder: &str,
        there: u64,
        patience: &Patience,
    ) -> Result<(), RemoteError> {
        let stored = self.size();
        if there <= stored {
            return Ok(());
        }
        let from = stored.max(there.saturating_sub(END));
        let mut end = Vec::new();
        let mut follow = host.follow(folder, FILE, from).await?;
        let wanted = usize::try_from(there - from).unwrap_or(usize::MAX);
        while end.len() < wanted {
            match tokio::time::timeout(patience.log_rest, follow.next()).await {
                Ok(Ok(Some(bytes))) => end.extend_from_slice(&bytes),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(None)) | Err(_) => break,
            }
        }
        if end.len() < wanted {
            self.tell_missing(Some(there)).await;
        }
        let left_out = from - stored;
        if left_out > 0 {
            // From a whole line on.
            let begins = end.iter().position(|byte| *byte == b'\n');
            let rest = end.split_off(begins.map_or(0, |at| at + 1));
            let left_out = left_out + end.len() as u64;
            end = format!("\n[Here {left_out} bytes are not stored.]\n").into_bytes();
            end.extend_from_slice(&rest);
            self.shared
                .remark(format!(
                    "Its log is too long to be kept here whole: {left_out} bytes of its middle are left out. They stand in the file on the host."
                ))
                .await;
        }
        for piece in end.chunks(PIECE) {
            if self.shared.keep(piece, piece).await.is_err() {
                break;
            }
        }
        self.shared.ended.store(true, Ordering::Release);
        // Of a full one nobody tells any more.
        self.shared.tell().await;
        Ok(())
    }

    /// Says that the rest of it could not be read.
    pub(super) async fn tell_missing(&self, there: Option<u64>) {
        let stored = self.size();
        let remark = match there {
            Some(there) => format!(
                "Of its log {stored} of {there} bytes were read before it came no further. The rest stands in the file on the host."
            ),
            None => format!(
                "Whether more was logged than the {stored} bytes that are stored is not known: the host did not answer."
            ),
        };
        self.shared.ended.store(true, Ordering::Release);
        self.shared.remark(remark).await;
    }

    /// Is no more of it read?
    pub(super) fn is_ended(&self) -> bool {
        self.shared.ended.load(Ordering::Acquire)
    }
}

/// A log of which nothing is followed, as it stands.
pub(super) async fn stored(pool: &PgPool, launch: &Launch) -> Result<(LogReader, u64), LabError> {
    let mut reader = LogReader::new(launch.spec.engine);
    let mut size = 0;
    let mut next: i64 = 0;
    loop {
        let rows = sqlx::query!(
            "SELECT start, bytes FROM launch_log WHERE launch_id = $1 AND start >= $2
             ORDER BY start LIMIT 32",
            launch.id.0,
            next,
        )
        .fetch_all(pool)
        .await?;
        let Some(last) = rows.last() else {
            return Ok((reader, size));
        };
        next = last.start.saturating_add(1);
        for row in &rows {
            reader.push(&row.bytes);
            size = u64::try_from(row.start).unwrap_or(0) + row.bytes.len() as u64;
        }
    }
}

async fn run(shared: Arc<Shared>, host: Host, folder: String, patience: Patience) {
    // Following ends when the lease is lost, and at the most that is stored. Telling
    // ends with it.
    tokio::select! {
        () = follow(&shared, &host, &folder, &patience) => {}
        () = tell(&shared) => {}
    }
    // What was stored last, and what telling may have been about to say.
    shared.tell().await;
}

async fn follow(shared: &Shared, host: &Host, folder: &str, patience: &Patience) {
    if shared.full.load(Ordering::Acquire) {
        return;
    }
    let mut back_off = BackOff::new(patience);
    loop {
        match follow_once(shared, host, folder, &mut back_off, patience).await {
            Ok(()) => {}
            Err(Trouble::Host(error)) => {
                tracing::debug!(launch = %shared.lease.launch, %error, "a log is out of reach");
            }
            Err(Trouble::Over) => return,
        }
        back_off.wait().await;
    }
}

enum Trouble {
    Host(RemoteError),
    /// Nothing more may or can be stored.
    Over,
}

async fn follow_once(
    shared: &Shared,
    host: &Host,
    folder: &str,
    back_off: &mut BackOff,
    patience: &Patience,
) -> Result<(), Trouble> {
    let offset = shared.size.load(Ordering::Acquire);
    let mut follow = host
        .follow(folder, FILE, offset)
        .await
        .map_err(Trouble::Host)?;
    while let Some(bytes) = follow.next().await.map_err(Trouble::Host)? {
        *back_off = BackOff::new(patience);
        for piece in bytes.chunks(PIECE) {
            shared.take(piece).await?;
        }
    }
    Ok(())
}

impl Shared {
    /// Stores a piece, whatever time the database takes to come back.
    async fn take(&self, piece: &[u8]) -> Result<(), Trouble> {
        let start = self.size.load(Ordering::Acquire);
        let room = usize::try_from(self.most.saturating_sub(start)).unwrap_or(usize::MAX);
        let kept = &piece[..piece.len().min(room)];
        self.keep(kept, piece).await?;
        if self.size.load(Ordering::Acquire) >= self.most {
            self.full.store(true, Ordering::Release);
            return Err(Trouble::Over);
        }
        Ok(())
    }

    /// Reads a piece, and stores what is kept of it.
    async fn keep(&self, kept: &[u8], piece: &[u8]) -> Result<(), Trouble> {
        let start = self.size.load(Ordering::Acquire);
        *lock(&self.grown) = Instant::now();
        let stage = {
            let mut reader = lock(&self.reader);
            reader.push(piece);
            reader.stage().map(|(stage, text)| (stage, text.to_owned()))
        };
        let stage = stage.filter(|(stage, _)| lock(&self.stage).is_none_or(|old| *stage >= old));
        let mut pause = Duration::from_millis(250);
        loop {
            match bounded(store(&self.pool, &self.lease, start, kept, stage.as_ref())).await {
                Ok(()) => break,
                Err(LabError::DatabaseUnavailable) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(5));
                }
                Err(error) => {
                    tracing::warn!(launch = %self.lease.launch, %error, "a log is stored no further");
                    return Err(Trouble::Over);
                }
            }
        }
        if let Some((stage, _)) = stage {
            *lock(&self.stage) = Some(stage);
        }
        self.size
            .store(start + kept.len() as u64, Ordering::Release);
        self.news.store(true, Ordering::Release);
        Ok(())
    }

    async fn tell(&self) {
        if let Err(error) = tell_once(self).await {
            tracing::debug!(launch = %self.lease.launch, %error, "growth was not announced");
        }
    }

    async fn remark(&self, text: String) {
        let change = Change::remark(text);
        if let Err(error) = note(&self.pool, &self.lease, &change).await {
            tracing::warn!(launch = %self.lease.launch, %error, "a remark was not stored");
        }
    }
}

async fn note(pool: &PgPool, lease: &LaunchLease, change: &Change) -> Result<(), LabError> {
    let mut tx = pool.begin().await?;
    row::change(&mut tx, lease, change).await?;
    tx.commit().await?;
    Ok(())
}

/// Stores a piece and how far the log is in one go.
async fn store(
    pool: &PgPool,
    lease: &LaunchLease,
    start: u64,
    piece: &[u8],
    stage: Option<&(LoadStage, String)>,
) -> Result<(), LabError> {
    let (start, end) = (clean::big(start), clean::big(start + piece.len() as u64));
    let mut tx = pool.begin().await?;
    let moved = sqlx::query_scalar!(
        "UPDATE launches SET log_size = $5, stage = coalesce($6, stage),
             stage_text = coalesce($7, stage_text),
             lease_expires_at = now() + $8::float8 * interval '1 second'
         WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3 AND log_size = $4
         RETURNING id",
        lease.launch.0,
        lease.epoch,
        lease.owner,
        start,
        end,
        stage.map(|(stage, _)| stage.word()),
        stage.map(|(_, text)| clean::owned(text)),
        LEASE.as_secs_f64(),
    )
    .fetch_optional(&mut *tx)
    .await?;
    if moved.is_none() {
        let size = sqlx::query_scalar!(
            "SELECT log_size FROM launches
             WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3",
            lease.launch.0,
            lease.epoch,
            lease.owner,
        )
        .fetch_optional(&mut *tx)
        .await?
        .ok_or(LabError::LeaseLost)?;
        // It was stored, and the answer was lost with the connection.
        if size == end {
            return Ok(());
        }
        return Err(LabError::internal(
            "storing a log",
            format!("{size} bytes are stored and not {start}"),
        ));
    }
    sqlx::query!(
        "INSERT INTO launch_log (launch_id, start, bytes) VALUES ($1, $2, $3)",
        lease.launch.0,
        start,
        piece,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(())
}

/// Announces growth, a few times a second at most.
async fn tell(shared: &Shared) {
    let mut clock = tokio::time::interval(ANNOUNCE);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        if !shared.news.swap(false, Ordering::AcqRel) {
            continue;
        }
        shared.tell().await;
    }
}

async fn tell_once(shared: &Shared) -> Result<(), LabError> {
    let mut connection = shared.pool.acquire().await?;
    let state = sqlx::query_scalar!(
        "SELECT state FROM launches WHERE id = $1",
        shared.lease.launch.0
    )
    .fetch_one(&mut *connection)
    .await?;
    let state: LaunchState = launch_rows::state_of(&state)?;
    let event = LaunchEvent {
        launch: shared.lease.launch,
        state,
        log_size: Some(shared.size.load(Ordering::Acquire)),
    };
    announce(&mut connection, &event).await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these is whole after a panic as well.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
