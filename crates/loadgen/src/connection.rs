//! Connections: name resolution, TCP, TLS, and reads with a time stamp each.

use std::{
    cell::Cell,
    io,
    net::SocketAddr,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use rustix::{io::Errno, net::RecvFlags};
use rustls::pki_types::ServerName;
use tokdyno_domain::endpoint::{EndpointUrl, TlsTrust};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, Interest, ReadBuf},
    net::{TcpStream, lookup_host},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    arrival::{self, ArrivalClock, Reads},
    tls,
};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Where connections go.
pub(crate) struct Target {
    authority: String,
    addresses: Vec<SocketAddr>,
    /// Which address answered last: it is tried first.
    preferred: Cell<usize>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    timeout: Duration,
    clock: Rc<ArrivalClock>,
}

/// An open connection.
pub(crate) enum Connection {
    Plain(Stamped),
    Tls(Box<TlsStream<Stamped>>),
}

/// A TCP stream that remembers when what it read last arrived. Under TLS several
/// decrypted pieces may come from one read; they share its stamp.
pub(crate) struct Stamped {
    tcp: TcpStream,
    clock: Rc<ArrivalClock>,
    arrived: Instant,
}

impl Target {
    /// Resolves the name once, and reads the certificates.
    ///
    /// # Errors
    /// A sentence with cause and remedy.
    pub(crate) async fn resolve(
        endpoint: &EndpointUrl,
        trust: &TlsTrust,
        idle: Duration,
    ) -> Result<Self, String> {
        let url = endpoint.as_url();
        let host = url
            .host_str()
            .unwrap_or_default()
            .trim_matches(['[', ']'])
            .to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        let addresses: Vec<SocketAddr> = lookup_host((host.as_str(), port))
            .await
            .map_err(|error| format!("The name `{host}` is not known here ({error}). Check its spelling, or use an IP address."))?
            .collect();
        if addresses.is_empty() {
            return Err(format!(
                "The name `{host}` has no address. Check its spelling, or use an IP address."
            ));
        }
        let tls = if endpoint.is_tls() {
            let config = tls::client_config(trust).map_err(|error| error.to_string())?;
            let name = ServerName::try_from(host.clone()).map_err(|_| {
                format!("`{host}` cannot stand in a certificate. Use a host name or an IP address.")
            })?;
            Some((TlsConnector::from(Arc::new(config)), name))
        } else {
            None
        };
        Ok(Self {
            authority: endpoint.authority().to_owned(),
            addresses,
            preferred: Cell::new(0),
            tls,
            timeout: CONNECT_TIMEOUT.min(idle),
            clock: Rc::new(ArrivalClock::new()),
        })
    }

    /// Reads of all its connections so far that brought something.
    pub(crate) fn reads(&self) -> Reads {
        self.clock.reads()
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// A sentence with cause and remedy.
    pub(crate) async fn connect(&self) -> Result<Connection, String> {
        match tokio::time::timeout(self.timeout, self.open()).await {
            Ok(result) => result,
            Err(_) => Err(format!(
                "No connection to {} within {} seconds. Check the address, the network and firewalls in between.",
                self.authority,
                self.timeout.as_secs()
            )),
        }
    }

    async fn open(&self) -> Result<Connection, String> {
        let tcp = self
            .open_tcp()
            .await
            .map_err(|error| self.tcp_sentence(&error))?;
        // Without this, small requests may wait for an acknowledgement.
        tcp.set_nodelay(true)
            .map_err(|error| self.tcp_sentence(&error))?;
        arrival::ask_for_notes(&tcp);
        let stamped = Stamped {
            tcp,
            clock: Rc::clone(&self.clock),
            arrived: Instant::now(),
        };
        let Some((connector, name)) = &self.tls else {
            return Ok(Connection::Plain(stamped));
        };
        connector
            .connect(name.clone(), stamped)
            .await
            .map(|stream| Connection::Tls(Box::new(stream)))
            .map_err(|error| tls::handshake_sentence(&self.authority, &error))
    }

    async fn open_tcp(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        let first = self.preferred.get();
        for step in 0..self.addresses.len() {
            let place = (first + step) % self.addresses.len();
            let Some(address) = self.addresses.get(place) else {
                continue;
            };
            match TcpStream::connect(address).await {
                Ok(tcp) => {
                    self.preferred.set(place);
                    return Ok(tcp);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn tcp_sentence(&self, error: &io::Error) -> String {
        let at = &self.authority;
        match Errno::from_io_error(error) {
            Some(Errno::ADDRNOTAVAIL) => {
                return format!(
                    "No connection to {at}: this machine has no local port left for it. Wait a minute until closed connections have given theirs back, widen net.ipv4.ip_local_port_range, or let the server keep its connections open."
                );
            }
            Some(Errno::MFILE | Errno::NFILE) => {
                return format!(
                    "No connection to {at}: no more files can be opened here. Raise the limit (ulimit -n), or send fewer requests at once."
                );
            }
            _ => {}
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused => format!(
                "The connection to {at} was refused: nothing listens there. Check that the server runs and that host and port are right."
            ),
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                format!("{at} cannot be reached from here. Check the address and the network.")
            }
            _ => format!("No connection to {at}: {error}. Check the address and the network."),
        }
    }
}

impl Connection {
    /// One read, with the time of its last byte. Zero bytes is the end.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, Instant)>> {
        let mut buffer = ReadBuf::new(buffer);
        let polled = match self {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, &mut buffer),
        };
        match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => {
                let stamp = if buffer.filled().is_empty() {
                    Instant::now()
                } else {
                    self.stamped().arrived
                };
                Poll::Ready(Ok((buffer.filled().len(), stamp)))
            }
        }
    }

    /// Writes everything.
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes).await,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Did the server leave the idle connection open, and say nothing on it?
    /// Asked right before a request, because nothing is ever sent twice.
    pub(crate) async fn is_fresh(&mut self) -> bool {
        let mut byte = [0_u8; 1];
        // Straight from the kernel: the runtime may not know of a close yet.
        match rustix::net::recv(
            &self.stamped().tcp,
            &mut byte,
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        ) {
            Err(rustix::io::Errno::AGAIN) => return true,
            Ok((_, 0)) | Err(_) => return false,
            Ok(_) => {}
        }
        if let Self::Plain(_) = self {
            return false;
        }
        // Under TLS it may be a session ticket, or the notice of a close. Let the
        // runtime see the bytes, then let TLS read them.
        tokio::task::yield_now().await;
        let mut buffer = [0_u8; 256];
        std::future::poll_fn(|cx| Poll::Ready(self.poll_read(cx, &mut buffer).is_pending())).await
    }

    fn stamped(&self) -> &Stamped {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

impl AsyncRead for Stamped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stamped = &mut *self;
        loop {
            std::task::ready!(stamped.tcp.poll_read_ready(cx))?;
            let room = buffer.initialize_unfilled();
            let mut result = Err(io::ErrorKind::WouldBlock.into());
            let _ = stamped.tcp.try_io(Interest::READABLE, || {
                result = arrival::read(&stamped.tcp, room, &stamped.clock, stamped.arrived);
                match &result {
                    // The socket is empty now. Saying so to the runtime saves the
                    // read that would find out.
                    Ok((count, _)) if *count > 0 && *count < room.len() => {
                        Err(io::ErrorKind::WouldBlock.into())
                    }
                    Ok(_) => Ok(()),
                    Err(error) => Err(error.kind().into()),
                }
            });
            match result {
                Ok((count, arrived)) => {
                    buffer.advance(count);
                    if count > 0 {
                        stamped.arrived = arrived;
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        net::{TcpListener, TcpStream as Blocking},
    };

    use super::*;

    async fn pair() -> (Connection, Blocking) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let endpoint = format!("http://{address}").parse().expect("an address");
        let target = Target::resolve(&endpoint, &TlsTrust::System, Duration::from_secs(5))
            .await
            .expect("a target");
        let connection = target.connect().await.expect("a connection");
        (connection, listener.accept().expect("its other end").0)
    }

    #[tokio::test]
    async fn what_this_machine_has_run_out_of_is_named() {
        let target = Target::resolve(
            &"http://127.0.0.1:9".parse().expect("an address"),
            &TlsTrust::System,
            Duration::from_secs(5),
        )
        .await
        .expect("a target");
        let sentence = |errno: Errno| target.tcp_sentence(&errno.into());
        assert!(sentence(Errno::ADDRNOTAVAIL).contains("no local port left"));
        assert!(sentence(Errno::MFILE).contains("ulimit -n"));
        assert!(sentence(Errno::CONNREFUSED).contains("nothing listens"));
    }

    /// Asks until the answer is no, without letting the runtime look meanwhile.
    async fn becomes_stale(connection: &mut Connection) -> bool {
        for _ in 0..1000 {
            if !connection.is_fresh().await {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    #[tokio::test]
    async fn a_close_is_noticed_before_use() {
        let (mut connection, other) = pair().await;
        assert!(connection.is_fresh().await);
        drop(other);
        assert!(becomes_stale(&mut connection).await);
    }

    #[tokio::test]
    async fn bytes_nobody_asked_for_make_a_connection_unusable() {
        let (mut connection, mut other) = pair().await;
        other
            .write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
            .expect("written");
        assert!(becomes_stale(&mut connection).await);
    }
}
