//! Where the program may listen.

use std::net::SocketAddr;

/// The address is reachable by others and nobody said that this is meant.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Listening on {0} would let everybody who reaches this machine measure, read and delete, because nobody has to sign in. Listen on 127.0.0.1 and use an SSH tunnel, publish links alone with --share-listen {0}, or add --trust-network if the network is trusted."
)]
pub(crate) struct NotLoopback(SocketAddr);

/// Checks the address of the whole program.
///
/// # Errors
/// [`NotLoopback`] for any address but loopback, unless the network is trusted.
pub(crate) fn check(address: SocketAddr, trust_network: bool) -> Result<(), NotLoopback> {
    if trust_network || address.ip().to_canonical().is_loopback() {
        Ok(())
    } else {
        Err(NotLoopback(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_unless_trusted() {
        for (address, allowed) in [
            ("127.0.0.1:4000", true),
            ("127.9.9.9:4000", true),
            ("[::1]:4000", true),
            ("[::ffff:127.0.0.1]:4000", true),
            ("0.0.0.0:4000", false),
            ("[::]:4000", false),
            ("10.0.0.5:4000", false),
        ] {
            let address: SocketAddr = address.parse().expect("an address");
            assert_eq!(check(address, false).is_ok(), allowed, "{address}");
            assert_eq!(check(address, true), Ok(()));
        }
    }
}
