//! A way to a port of a host's loopback.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    net::{TcpListener, TcpStream},
    process::Child,
    time::{sleep, timeout},
};

use super::{error::RemoteError, host::Host, tail::Tail, transport::Transport, trouble::Ending};

/// How long a forward may take to accept connections.
const OPENING: Duration = Duration::from_secs(45);
/// How long taking one back from a shared connection may take.
const CLOSING: Duration = Duration::from_secs(5);

/// A way from a port here to a port there. Closed when dropped.
#[derive(Debug)]
pub struct Forward {
    transport: Arc<dyn Transport>,
    port: u16,
    local: SocketAddr,
    /// None on this machine, where the port itself is used.
    tunnel: Option<Tunnel>,
}

#[derive(Debug)]
struct Tunnel {
    child: Child,
    stderr: Option<Tail>,
}

impl Forward {
    pub(super) async fn open(host: &Host, port: u16) -> Result<Self, RemoteError> {
        let mut forward = Self {
            transport: Arc::clone(host.transport()),
            port,
            local: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            tunnel: None,
        };
        if !host.is_local() {
            forward.dig().await?;
        }
        Ok(forward)
    }

    /// The address here.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Makes the way anew if it has ended, on the same port here if that is still
    /// free. Afterwards [`Self::local`] is to be read again.
    ///
    /// # Errors
    /// [`RemoteError`], as reaching a host.
    pub async fn ensure(&mut self) -> Result<(), RemoteError> {
        let Some(tunnel) = &mut self.tunnel else {
            return Ok(());
        };
        let alive = matches!(tunnel.child.try_wait(), Ok(None));
        if alive && TcpStream::connect(self.local).await.is_ok() {
            return Ok(());
        }
        self.dig().await
    }

    async fn dig(&mut self) -> Result<(), RemoteError> {
        let broken = |error: std::io::Error| RemoteError::Protocol {
            host: self.transport.label().to_owned(),
            detail: format!("no port could be opened here: {error}"),
        };
        if let Some(mut old) = self.tunnel.take() {
            let _ = old.child.start_kill();
            let _ = timeout(CLOSING, old.child.wait()).await;
        }
        let wanted = TcpListener::bind(self.local).await;
        let listener = match wanted {
            // Below 1024, or taken: any will do.
            Ok(listener) if self.local.port() != self.port => listener,
            _ => TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .map_err(broken)?,
        };
        self.local = listener.local_addr().map_err(broken)?;
        // ssh takes the port over; whoever comes in between makes ssh say so.
        drop(listener);
        let Some(mut command) = self.transport.forward(self.local.port(), self.port) else {
            return Ok(());
        };
        command.kill_on_drop(true);
        let mut child = command
            .spawn()
            .map_err(|error| self.transport.not_started(&error))?;
        let mut stderr = child.stderr.take().map(Tail::of);
        let until = Instant::now() + OPENING;
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                if let Some(stderr) = &mut stderr {
                    stderr.settle().await;
                }
                return Err(self.transport.explain(&Ending {
                    code: status.code(),
                    stderr: stderr.as_ref().map(Tail::text).unwrap_or_default(),
                    ..Ending::default()
                }));
            }
            if TcpStream::connect(self.local).await.is_ok() {
                break;
            }
            if Instant::now() >= until {
                return Err(RemoteError::TimedOut {
                    host: self.transport.label().to_owned(),
                    seconds: OPENING.as_secs(),
                });
            }
            sleep(Duration::from_millis(20)).await;
        }
        self.tunnel = Some(Tunnel { child, stderr });
        Ok(())
    }

    /// What ssh said last, if anything.
    #[must_use]
    pub fn said(&self) -> Option<String> {
        let stderr = self.tunnel.as_ref()?.stderr.as_ref()?;
        Some(stderr.text()).filter(|text| !text.is_empty())
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        let Some(mut tunnel) = self.tunnel.take() else {
            return;
        };
        // It may have ended already.
        let _ = tunnel.child.start_kill();
        let cancel = self.transport.cancel_forward(self.local.port(), self.port);
        if let (Ok(runtime), Some(mut cancel)) = (tokio::runtime::Handle::try_current(), cancel) {
            // A connection that others share would keep the port open.
            runtime.spawn(async move {
                let _ = timeout(CLOSING, tunnel.child.wait()).await;
                timeout(CLOSING, async { cancel.status().await }).await
            });
        }
    }
}
