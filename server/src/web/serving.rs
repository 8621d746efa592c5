//! Listening, and stopping to listen.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use axum::Router;

use super::Ending;

/// How long replies that have begun may take to end once the program stops.
const LAST_REPLIES: Duration = Duration::from_secs(5);

/// An address that is taken.
#[derive(Debug)]
pub(crate) struct Listener {
    inner: TcpListener,
    /// The address with the port the system chose.
    pub(crate) address: SocketAddr,
}

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    /// Somebody else has the port.
    #[error(
        "Port {port} on {ip} is already in use, perhaps by another Tokdyno. Stop that program, or choose another port such as {flag} {ip}:{next}.",
        port = .address.port(), ip = .address.ip(), next = .address.port().saturating_add(1)
    )]
    Taken {
        /// The address.
        address: SocketAddr,
        /// The option that names it.
        flag: &'static str,
    },
    /// Ports below 1024 are for privileged programs.
    #[error(
        "Port {} may only be opened by a privileged program. Choose one above 1023 with {flag}.", .address.port()
    )]
    Privileged {
        /// The address.
        address: SocketAddr,
        /// The option that names it.
        flag: &'static str,
    },
    /// Anything else.
    #[error(
        "{address} cannot be listened on ({reason}). Choose an address of this machine with {flag}."
    )]
    Other {
        /// The address.
        address: SocketAddr,
        /// The option that names it.
        flag: &'static str,
        /// What the system said.
        reason: io::Error,
    },
}

impl Listener {
    /// Takes an address; `flag` is the option that named it.
    ///
    /// # Errors
    /// [`ListenError`] with its remedy.
    pub(crate) fn bind(address: SocketAddr, flag: &'static str) -> Result<Self, ListenError> {
        let listened = TcpListener::bind(address).and_then(|inner| {
            inner.set_nonblocking(true)?;
            let address = inner.local_addr()?;
            Ok(Self { inner, address })
        });
        listened.map_err(|reason| match reason.kind() {
            io::ErrorKind::AddrInUse => ListenError::Taken { address, flag },
            io::ErrorKind::PermissionDenied => ListenError::Privileged { address, flag },
            _ => ListenError::Other {
                address,
                flag,
                reason,
            },
        })
    }
}

/// Serves until the end comes, then lets replies that have begun end.
///
/// # Errors
/// The listener cannot be handed to the runtime.
pub(crate) async fn serve(listener: Listener, router: Router, ending: Ending) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener.inner)?;
    // Handlers ask from where a request comes.
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let serving = axum::serve(listener, service)
        .with_graceful_shutdown(ending.clone().come())
        .into_future();
    let too_long = async {
        ending.come().await;
        tokio::time::sleep(LAST_REPLIES).await;
    };
    tokio::select! {
        served = serving => served,
        () = too_long => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_names_another() {
        let first = Listener::bind("127.0.0.1:0".parse().expect("an address"), "--listen")
            .expect("a free port");
        assert_ne!(first.address.port(), 0);
        let error = Listener::bind(first.address, "--listen").expect_err("taken");
        let text = error.to_string();
        assert!(
            text.contains("already in use") && text.contains("--listen"),
            "{text}"
        );
    }
}
