//! As much of HTTP/1.1 as an engine's clients need, on a bare socket.
//!
//! A framework would put a task switch and several copies between the engine and
//! the socket for each token. Here the engine's thread writes a token's bytes
//! itself, at the deadline, and the time it notes is the time of that write.

use std::{fmt::Write as _, io, sync::Arc};

use tokdyno_domain::engine::SIMULATED_MARKER;
use tokio::net::TcpStream;

const MAX_HEAD: usize = 64 << 10;
const MAX_BODY: usize = 32 << 20;

/// A request, read to its end.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) keep_alive: bool,
}

impl Request {
    /// A value of the query string, taken as it stands.
    pub(crate) fn query_value(&self, name: &str) -> Option<&str> {
        self.query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }
}

/// Why no request could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    #[error("{1}")]
    Refused(u16, &'static str),
}

/// A connection with what was read of it and not yet used.
pub(crate) struct Connection {
    pub(crate) stream: Arc<TcpStream>,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream: Arc::new(stream),
            buffer: Vec::new(),
        }
    }

    /// The next request; none when the client has closed.
    pub(crate) async fn request(&mut self) -> Result<Option<Request>, ReadError> {
        let (mut request, framing) = loop {
            if let Some((head, request, framing)) = parse_head(&self.buffer)? {
                self.buffer.drain(..head);
                break (request, framing);
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(ReadError::Refused(
                    431,
                    "The head of the request is too long.",
                ));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        };
        if framing.expects_continue {
            write_all(&self.stream, b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        if framing.chunked {
            loop {
                if let Some((used, body)) = parse_chunked(&self.buffer)? {
                    self.buffer.drain(..used);
                    request.body = body;
                    break;
                }
                if self.buffer.len() > MAX_BODY || !self.fill().await? {
                    return Err(ReadError::Refused(
                        413,
                        "The body is too long or was cut short.",
                    ));
                }
            }
        } else if framing.length > MAX_BODY {
            return Err(ReadError::Refused(413, "The body is too long."));
        } else {
            while self.buffer.len() < framing.length {
                if !self.fill().await? {
                    return Ok(None);
                }
            }
            let rest = self.buffer.split_off(framing.length);
            request.body = std::mem::replace(&mut self.buffer, rest);
        }
        Ok(Some(request))
    }

    /// Reads what there is; false when the client has closed.
    async fn fill(&mut self) -> io::Result<bool> {
        loop {
            self.stream.readable().await?;
            self.buffer.reserve(4096);
            match self.stream.try_read_buf(&mut self.buffer) {
                Ok(read) => return Ok(read > 0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until the client closes. What it sends meanwhile is kept for the next
    /// request, as much as a request may have; the rest waits in the socket, and is
    /// no sign that the client has gone.
    pub(crate) async fn closed(&mut self) {
        while self.buffer.len() <= MAX_HEAD + MAX_BODY {
            if !matches!(self.fill().await, Ok(true)) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}

/// Writes all bytes to a socket that others may hold too.
pub(crate) async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[derive(Default)]
struct Framing {
    length: usize,
    chunked: bool,
    expects_continue: bool,
}

fn parse_head(buffer: &[u8]) -> Result<Option<(usize, Request, Framing)>, ReadError> {
    const UNREADABLE: ReadError = ReadError::Refused(400, "The request is not HTTP/1.1.");
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = parsed.parse(buffer).map_err(|_| UNREADABLE)? else {
        return Ok(None);
    };
    let target = parsed.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method: parsed.method.unwrap_or("").to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        keep_alive: parsed.version == Some(1),
        ..Default::default()
    };
    let mut framing = Framing::default();
    for header in parsed.headers.iter() {
        let value = str::from_utf8(header.value).unwrap_or("").trim();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => framing.length = value.parse().map_err(|_| UNREADABLE)?,
            "transfer-encoding" => {
                framing.chunked = value.to_ascii_lowercase().contains("chunked");
            }
            "connection" if value.eq_ignore_ascii_case("close") => request.keep_alive = false,
            "connection" if value.eq_ignore_ascii_case("keep-alive") => request.keep_alive = true,
            "authorization" => request.authorization = Some(value.to_owned()),
            "expect" => framing.expects_continue = true,
            _ => {}
        }
    }
    Ok(Some((head, request, framing)))
}

/// A whole chunked body, and how many bytes it took; none if more must come.
fn parse_chunked(buffer: &[u8]) -> Result<Option<(usize, Vec<u8>)>, ReadError> {
    let mut at = 0;
    let mut body = Vec::new();
    loop {
        let rest = buffer.get(at..).unwrap_or_default();
        let (start, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(ReadError::Refused(400, "The body's chunks are malformed.")),
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > MAX_BODY {
            return Err(ReadError::Refused(413, "The body is too long."));
        }
        let data = at + start;
        if size == 0 {
            // Trailers are not used by any client of an engine.
            let end = data + 2;
            return Ok((buffer.len() >= end).then_some((end, body)));
        }
        let Some(bytes) = buffer.get(data..data + size) else {
            return Ok(None);
        };
        body.extend_from_slice(bytes);
        at = data + size + 2;
        if buffer.len() < at {
            return Ok(None);
        }
    }
}

/// The head of an event stream's reply.
pub(crate) fn stream_head() -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
         cache-control: no-cache\r\n{SIMULATED_MARKER}: 1\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    .into_bytes()
}

/// A reply that is known as a whole.
pub(crate) fn whole(status: u16, content_type: &str, body: &[u8], keep_alive: bool) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Unknown",
    };
    let mut head = format!(
        "HTTP/1.1 {status} {reason}\r\nserver: uvicorn\r\n{SIMULATED_MARKER}: 1\r\ncontent-length: {}\r\n",
        body.len()
    );
    if !body.is_empty() {
        let _ = write!(head, "content-type: {content_type}\r\n");
    }
    if !keep_alive {
        head.push_str("connection: close\r\n");
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{io::AsyncWriteExt, net::TcpListener, time::timeout};

    use super::*;

    /// Both ends of a connection.
    async fn pair() -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address).await.expect("a client");
        let (server, _) = listener.accept().await.expect("a connection");
        (client, Connection::new(server))
    }

    #[tokio::test]
    async fn what_is_sent_ahead_is_no_hanging_up() {
        let (mut client, mut connection) = pair().await;
        let head = format!(
            "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
            2 * MAX_HEAD
        );
        let sending = tokio::spawn(async move {
            client.write_all(head.as_bytes()).await.expect("a head");
            let body = vec![b'x'; 2 * MAX_HEAD];
            client.write_all(&body).await.expect("a body");
            client
        });
        let client = tokio::select! {
            client = sending => client.expect("no panic"),
            () = connection.closed() => panic!("taken for an end"),
        };
        let early = timeout(Duration::from_millis(50), connection.closed()).await;
        assert!(early.is_err(), "taken for an end");
        drop(client);
        connection.closed().await;
        let request = connection.request().await.expect("readable");
        assert_eq!(request.expect("a request").body.len(), 2 * MAX_HEAD);
    }

    #[tokio::test]
    async fn reading_ahead_is_bounded() {
        let (mut client, mut connection) = pair().await;
        connection.buffer = vec![b'x'; MAX_HEAD + MAX_BODY + 1];
        client.write_all(b"more").await.expect("written");
        let early = timeout(Duration::from_millis(50), connection.closed()).await;
        assert!(early.is_err(), "taken for an end");
        assert_eq!(connection.buffer.len(), MAX_HEAD + MAX_BODY + 1);
    }

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = b"POST /v1/completions?a=1&b=2 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nAuthorization: Bearer k\r\n\r\nhello";
        for cut in 0..text.len() - 5 {
            assert!(parse_head(&text[..cut]).expect("no error").is_none());
        }
        let (head, request, framing) = parse_head(text).expect("no error").expect("a head");
        assert_eq!(&text[head..], b"hello");
        assert_eq!(framing.length, 5);
        assert_eq!(request.query_value("b"), Some("2"));
        assert_eq!(request.authorization.as_deref(), Some("Bearer k"));
        assert!(request.keep_alive);
        assert!(parse_head(b"\x01\x02\x03\r\n\r\n").is_err());
    }

    #[test]
    fn chunked_bodies_are_put_together() {
        let text = b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\nNEXT";
        for cut in 0..text.len() - 4 {
            assert!(
                parse_chunked(&text[..cut]).expect("no error").is_none(),
                "{cut}"
            );
        }
        let (used, body) = parse_chunked(text).expect("no error").expect("a body");
        assert_eq!(
            (&text[used..], body.as_slice()),
            (&b"NEXT"[..], &b"abcde"[..])
        );
        assert!(parse_chunked(b"zz\r\n").is_err());
    }
}
