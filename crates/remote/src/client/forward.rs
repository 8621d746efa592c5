//! A way to a port of a host's loopback.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use super::{error::RemoteError, host::Host, relay::Relay, transport::Transport, tunnel::Tunnel};

/// A way from a port here to a port there. Closed when dropped.
///
/// The port here belongs to this process for as long as this lives, also while the
/// way is broken: what is sent there reaches the host or nobody.
#[derive(Debug)]
pub struct Forward {
    port: u16,
    /// None on this machine, where the port itself is used.
    way: Option<Way>,
}

#[derive(Debug)]
struct Way {
    transport: Arc<dyn Transport>,
    relay: Relay,
    tunnel: Option<Tunnel>,
}

impl Forward {
    pub(super) async fn open(host: &Host, port: u16) -> Result<Self, RemoteError> {
        if host.is_local() {
            return Ok(Self { port, way: None });
        }
        let transport = Arc::clone(host.transport());
        let relay = Relay::open()
            .await
            .map_err(|error| RemoteError::NoForward {
                host: transport.label().to_owned(),
                port,
                reason: error.to_string(),
            })?;
        let mut way = Way {
            transport,
            relay,
            tunnel: None,
        };
        way.dig(port).await?;
        Ok(Self {
            port,
            way: Some(way),
        })
    }

    /// The address here. It stays the same.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.way.as_ref().map_or_else(
            || SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)),
            |way| way.relay.local(),
        )
    }

    /// Makes the way anew if it has ended.
    ///
    /// # Errors
    /// [`RemoteError`], as reaching a host.
    pub async fn ensure(&mut self) -> Result<(), RemoteError> {
        let Some(way) = &mut self.way else {
            return Ok(());
        };
        if let Some(tunnel) = &mut way.tunnel
            && tunnel.is_open().await
        {
            return Ok(());
        }
        way.dig(self.port).await
    }

    /// What ssh said last, if anything.
    #[must_use]
    pub fn said(&self) -> Option<String> {
        let said = self.way.as_ref()?.tunnel.as_ref()?.said()?;
        Some(said).filter(|text| !text.is_empty())
    }
}

impl Way {
    async fn dig(&mut self, port: u16) -> Result<(), RemoteError> {
        self.relay.lead_to(None);
        self.tunnel = None;
        let tunnel = Tunnel::dig(&self.transport, port).await?;
        self.relay.lead_to(Some(tunnel.socket()));
        self.tunnel = Some(tunnel);
        Ok(())
    }
}
