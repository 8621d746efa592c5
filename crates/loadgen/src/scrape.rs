//! What the engine says of itself around a stage, and clearing its prefix cache.
//!
//! ```text
//! let cleared = scrape::reset_cache(&target, &endpoint, key).await;   // before the stage
//! let scraper = Scraper::start(&endpoint, &trust, key).await;         // after the warm-up
//! // … the stage …
//! let engine = scraper.finish().await;
//! ```
//!
//! A thread of its own with a connection of its own asks: neither its reads nor the
//! reading of the text take anything from the measuring thread. Nothing that is asked
//! for makes an engine generate; SGLang's `/health` would, so it is never called.

mod reset;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::Value;
use tokdyno_domain::{
    conditions::EngineReport,
    endpoint::{EndpointUrl, TlsTrust},
    engine::EngineKind,
    meter::ApiKey,
};
use tokdyno_engines::metrics::{self, Readings};
use tokio::sync::oneshot;

use crate::{
    connection::{Connection, Target},
    fetch::fetch,
    request,
};

pub(crate) use reset::reset_cache;

/// From one reading to the next.
const EVERY: Duration = Duration::from_secs(1);
/// The first reading comes sooner, so that short stages have one as well.
const FIRST: Duration = Duration::from_millis(300);
/// Longest wait for one reply.
const PATIENCE: Duration = Duration::from_secs(3);
/// Looks at an engine until it is at rest, and the pause between them: what was just
/// answered may not be counted yet.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);
/// Readings that are kept: above that every other one is dropped.
const MOST: usize = 4096;

/// Reads an engine's metrics while a stage runs.
pub(crate) struct Scraper(Option<Reading>);

struct Reading {
    over: oneshot::Sender<()>,
    report: oneshot::Receiver<Option<EngineReport>>,
}

impl Scraper {
    /// Takes the reading before the stage, and begins. An engine that shows no
    /// metrics is left alone; that is no failure. Waits a few seconds at most.
    pub(crate) async fn start(
        endpoint: &EndpointUrl,
        trust: &TlsTrust,
        key: Option<&ApiKey>,
    ) -> Self {
        let (ready, begun) = oneshot::channel();
        let (over, ended) = oneshot::channel();
        let (reporting, report) = oneshot::channel();
        let asked = Asked {
            endpoint: endpoint.clone(),
            trust: trust.clone(),
            key: key.cloned(),
        };
        let thread = std::thread::Builder::new().name("tokdyno-scrape".to_owned());
        let spawned = thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            // Without a runtime there are no readings.
            let Ok(runtime) = runtime else { return };
            let told = runtime.block_on(read_until(asked, ready, ended));
            // Nobody may wait for it any more.
            let _ = reporting.send(told);
            runtime.shutdown_background();
        });
        if spawned.is_err() || begun.await.is_err() {
            return Self(None);
        }
        Self(Some(Reading { over, report }))
    }

    /// Takes the reading after the stage. None if the engine showed nothing. Waits a
    /// few seconds at most.
    pub(crate) async fn finish(self) -> Option<EngineReport> {
        let Reading { over, report } = self.0?;
        // If the thread is gone there is no report either.
        let _ = over.send(());
        report.await.ok().flatten()
    }
}

/// Whom to ask.
struct Asked {
    endpoint: EndpointUrl,
    trust: TlsTrust,
    key: Option<ApiKey>,
}

/// A connection for small questions.
struct Asker<'a> {
    target: &'a Target,
    endpoint: &'a EndpointUrl,
    key: Option<&'a ApiKey>,
    connection: Option<Connection>,
}

/// What came back.
struct Answer {
    status: u16,
    body: Vec<u8>,
}

async fn read_until(
    asked: Asked,
    ready: oneshot::Sender<()>,
    mut ended: oneshot::Receiver<()>,
) -> Option<EngineReport> {
    let target = Target::resolve(&asked.endpoint, &asked.trust, PATIENCE)
        .await
        .ok()?;
    let mut asker = Asker::new(&target, &asked.endpoint, asked.key.as_ref());
    let before = asker.at_rest().await?;
    let max_running = if before.kind == EngineKind::Sglang {
        asker.max_running().await
    } else {
        // vLLM's metrics do not hold it, and its server info may take seconds.
        None
    };
    ready.send(()).ok()?;
    let mut during: Vec<Readings> = Vec::new();
    let mut pause = FIRST;
    loop {
        match tokio::time::timeout(pause, &mut ended).await {
            Ok(Ok(())) => break,
            // Whoever measured is gone.
            Ok(Err(_)) => return None,
            Err(_) => during.extend(asker.readings().await),
        }
        pause = EVERY;
        if during.len() >= MOST {
            let mut keep = false;
            during.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }
    let after = asker.at_rest().await?;
    Some(EngineReport {
        max_running,
        ..metrics::report(&before, &during, &after)
    })
}

impl<'a> Asker<'a> {
    const fn new(target: &'a Target, endpoint: &'a EndpointUrl, key: Option<&'a ApiKey>) -> Self {
        Self {
            target,
            endpoint,
            key,
            connection: None,
        }
    }

    /// One reading; none if the engine shows none.
    async fn readings(&mut self) -> Option<Readings> {
        let answer = self.get("/metrics").await.ok()?;
        if answer.status != 200 {
            return None;
        }
        Readings::of(&String::from_utf8_lossy(&answer.body))
    }

    /// A reading of an engine that does nothing, if it comes to rest soon.
    async fn at_rest(&mut self) -> Option<Readings> {
        let mut readings = self.readings().await?;
        for _ in 1..LOOKS {
            if readings.at_rest() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            readings = self.readings().await?;
        }
        Some(readings)
    }

    async fn max_running(&mut self) -> Option<u64> {
        let answer = self.get("/server_info").await.ok()?;
        let Ok(Value::Object(info)) = serde_json::from_slice(&answer.body) else {
            return None;
        };
        metrics::max_running_requests(&info).map(u64::from)
    }

    async fn get(&mut self, path: &str) -> Result<Answer, String> {
        let request = request::get(&self.endpoint.route(path), self.key);
        self.ask(&request).await
    }

    async fn post(&mut self, path: &str) -> Result<Answer, String> {
        let request = request::post_nothing(&self.endpoint.route(path), self.key);
        self.ask(&request).await
    }

    async fn ask(&mut self, request: &[u8]) -> Result<Answer, String> {
        let asked = tokio::time::timeout(PATIENCE, self.ask_patiently(request)).await;
        asked.unwrap_or_else(|_| Err(format!("no answer within {} seconds", PATIENCE.as_secs())))
    }

    async fn ask_patiently(&mut self, request: &[u8]) -> Result<Answer, String> {
        if let Some(open) = &mut self.connection
            && !open.is_fresh().await
        {
            self.connection = None;
        }
        let mut connection = match self.connection.take() {
            Some(open) => open,
            None => self.target.connect().await?,
        };
        let (head, body) = fetch(&mut connection, request).await?;
        if head.keep_alive {
            self.connection = Some(connection);
        }
        Ok(Answer {
            status: head.status,
            body,
        })
    }
}
