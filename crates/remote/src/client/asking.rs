//! One order on one connection: how every question to a host is put.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{
    error::RemoteError,
    host::Host,
    session::{AHEAD, Heartbeat, Opened, Session, store},
};
use crate::wire::{Block, Failure, Order};

/// For orders that are answered at once.
pub(super) const QUICK: Duration = Duration::from_secs(30);
/// For orders that ask drivers and file systems.
pub(super) const SLOW: Duration = Duration::from_secs(120);

impl Host {
    /// A connection with an agent at its end, and whether the agent was copied.
    pub(super) async fn session(&self, ahead: usize) -> Result<(Session, bool), RemoteError> {
        let transport = &self.0.transport;
        if let Opened::Ready(session) = Session::open(transport, ahead).await? {
            return Ok((*session, false));
        }
        let _storing = self.0.storing.lock().await;
        // Somebody else may have copied it while this one waited.
        let machine = match Session::open(transport, ahead).await? {
            Opened::Ready(session) => return Ok((*session, false)),
            Opened::NoAgent(machine) => machine,
        };
        tracing::info!(host = transport.label(), %machine, "the agent is copied");
        store(transport, &machine).await?;
        match Session::open(transport, ahead).await? {
            Opened::Ready(session) => Ok((*session, true)),
            Opened::NoAgent(_) => Err(RemoteError::NoPlace {
                host: transport.label().to_owned(),
                reason: "it was stored and is not there any more".to_owned(),
            }),
        }
    }

    pub(super) fn order(&self, order: &Order) -> Result<Block, RemoteError> {
        Block::new(order).map_err(|failure| self.refused(failure))
    }

    pub(super) fn refused(&self, failure: Failure) -> RemoteError {
        RemoteError::Agent {
            host: self.label().to_owned(),
            failure,
        }
    }

    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        order: &Order,
        limit: Duration,
    ) -> Result<T, RemoteError> {
        let block = self.order(order)?.finish();
        self.exchange(&[&block], limit).await
    }

    pub(super) async fn exchange<T: DeserializeOwned>(
        &self,
        parts: &[&[u8]],
        limit: Duration,
    ) -> Result<T, RemoteError> {
        let (mut session, _) = self.session(AHEAD).await?;
        let answer = async {
            session.send(parts).await?;
            session.reply().await
        };
        let result = timeout(limit, answer).await;
        result.unwrap_or_else(|_| Err(session.timed_out(limit)))
    }

    pub(super) async fn file(&self, order: &Order) -> Result<Option<Vec<u8>>, RemoteError> {
        let block = self.order(order)?.finish();
        let (mut session, _) = self.session(AHEAD).await?;
        let answer = async {
            session.send(&[&block]).await?;
            match session.reply::<Option<u64>>().await? {
                Some(length) => session.bytes(length).await.map(Some),
                None => Ok(None),
            }
        };
        let result = timeout(SLOW, answer).await;
        result.unwrap_or_else(|_| Err(session.timed_out(SLOW)))
    }

    pub(super) async fn streaming(
        &self,
        order: &Order,
    ) -> Result<(Session, Heartbeat), RemoteError> {
        let block = self.order(order)?.finish();
        let (mut session, _) = self.session(AHEAD).await?;
        let answer = async {
            session.send(&[&block]).await?;
            session.reply::<()>().await
        };
        match timeout(QUICK, answer).await {
            Ok(answer) => answer?,
            Err(_) => return Err(session.timed_out(QUICK)),
        }
        let beating = session.beat();
        Ok((session, beating))
    }
}
