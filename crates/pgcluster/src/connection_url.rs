//! The address of a cluster, which holds its password.

use std::fmt;
use std::path::Path;

use crate::DATABASE_NAME;

/// A `postgres://` address for sqlx or libpq. It holds the password, so it has
/// no `Display`, and `Debug` leaves the password out.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionUrl {
    whole: String,
    redacted: String,
}

impl ConnectionUrl {
    /// The address of the database on the socket in `socket_dir`.
    ///
    /// Port and TLS mode are spelled out, because the libraries would otherwise
    /// take them from `PGPORT` and `PGSSLMODE`.
    pub(crate) fn on_socket(socket_dir: &Path, port: u16, password: &str) -> Self {
        let place = format!(
            "localhost:{port}/{DATABASE_NAME}?host={}&sslmode=disable",
            percent_encode(socket_dir.as_os_str().as_encoded_bytes()),
        );
        Self {
            whole: format!(
                "postgres://{DATABASE_NAME}:{}@{place}",
                percent_encode(password.as_bytes())
            ),
            redacted: format!("postgres://{DATABASE_NAME}:***@{place}"),
        }
    }

    /// The address with the password in it: for a connection, never for a log.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.whole
    }

    /// The address with `***` where the password stands: for people.
    #[must_use]
    pub fn redacted(&self) -> &str {
        &self.redacted
    }
}

impl fmt::Debug for ConnectionUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionUrl({})", self.redacted)
    }
}

fn percent_encode(bytes: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_in_the_address_and_not_in_its_debug_form() {
        let url = ConnectionUrl::on_socket(Path::new("/a b/é&x"), 5432, "secret");
        assert_eq!(
            url.as_str(),
            "postgres://tokdyno:secret@localhost:5432/tokdyno?host=/a%20b/%C3%A9%26x&sslmode=disable"
        );
        assert!(!format!("{url:?}").contains("secret"));
        assert!(!url.redacted().contains("secret"));
    }
}
