//! Asking PostgreSQL whether it takes connections.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::DATABASE_NAME;

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Protocol version 3.0, as the first message carries it.
const PROTOCOL: u32 = 3 << 16;

/// `cannot_connect_now`: starting up, recovering, or shutting down.
const NOT_NOW: &[u8] = b"C57P03\0";

/// Whether the server on this socket answers a connection with anything but
/// "not now". The connection is dropped before any password is due.
pub(crate) fn accepts_connections(socket_dir: &Path, port: u16) -> bool {
    let socket = socket_dir.join(format!(".s.PGSQL.{port}"));
    ask(&socket).is_ok_and(|reply| means_ready(&reply))
}

fn ask(socket: &Path) -> std::io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&startup_message())?;
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let body = usize::try_from(u32::from_be_bytes(length)).unwrap_or(0);
    let mut reply = vec![kind];
    // The length counts itself; an error message is far shorter than the bound.
    stream
        .take(body.saturating_sub(4).min(65_536) as u64)
        .read_to_end(&mut reply)?;
    Ok(reply)
}

/// Message layout: <https://www.postgresql.org/docs/current/protocol-message-formats.html>.
fn startup_message() -> Vec<u8> {
    let mut body = PROTOCOL.to_be_bytes().to_vec();
    for word in ["user", DATABASE_NAME, "database", DATABASE_NAME] {
        body.extend_from_slice(word.as_bytes());
        body.push(0);
    }
    body.push(0);
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    let mut message = length.to_be_bytes().to_vec();
    message.extend_from_slice(&body);
    message
}

/// `R` asks for a password: ready. `E` is an error; only `57P03` among them
/// says that the server is not ready (too many connections, say, is).
fn means_ready(reply: &[u8]) -> bool {
    match reply.first() {
        Some(b'R') => true,
        Some(b'E') => !reply.windows(NOT_NOW.len()).any(|window| window == NOT_NOW),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_starting_up_counts_as_not_ready() {
        assert!(means_ready(b"R\0\0\0\x0a"));
        assert!(!means_ready(
            b"ESFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"
        ));
        assert!(means_ready(
            b"ESFATAL\0VFATAL\0C53300\0Mtoo many clients\0\0"
        ));
        assert!(!means_ready(b""));
    }

    #[test]
    fn the_startup_message_counts_its_own_length() {
        let message = startup_message();
        assert_eq!(message[..4], (message.len() as u32).to_be_bytes());
    }
}
