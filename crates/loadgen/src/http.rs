//! Reading HTTP/1.1 replies, close to the socket.
//!
//! Written here and not taken from a client library, because a time stamp must
//! belong to one read of the socket, and nothing may be sent twice.

use tokdyno_domain::engine::SIMULATED_MARKER;

/// Most bytes of a reply's head.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Most header lines.
const MAX_HEADERS: usize = 128;
/// Most bytes of a line that gives a chunk's size.
const MAX_SIZE_LINE: usize = 1024;

/// What the head of a reply said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code.
    pub(crate) status: u16,
    /// The media type in lower case, without parameters.
    pub(crate) content_type: Option<String>,
    /// A content encoding other than `identity`.
    pub(crate) encoding: Option<String>,
    /// Where a redirect points to.
    pub(crate) location: Option<String>,
    /// When a server that refuses would be asked again.
    pub(crate) retry_after: Option<String>,
    /// May the connection be used again?
    pub(crate) keep_alive: bool,
    /// Was the stand-in's marker there?
    pub(crate) simulated: bool,
}

/// A piece of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// The head, once.
    Head(Head),
    /// Bytes of the body.
    Body(&'a [u8]),
    /// The body is over.
    End,
}

/// Why bytes are no reply. Sentences with cause and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpError {
    /// An HTTP/2 frame came.
    #[error("The server speaks only HTTP/2 here. Let it, or a proxy before it, accept HTTP/1.1.")]
    Http2,
    /// A TLS record came on a plain connection.
    #[error("The server speaks TLS on this port. Use an address that begins with https://.")]
    Tls,
    /// Something else.
    #[error("What answered is no HTTP/1.1 server ({0}). Check the address and the port.")]
    NotHttp(String),
    /// The head is endless.
    #[error("The head of the reply is larger than {MAX_HEAD_BYTES} bytes. Check the address.")]
    HeadTooLarge,
    /// The chunks are not framed as they should be.
    #[error("The chunks of the reply are not framed as HTTP/1.1 wants. Look for a faulty proxy.")]
    Chunking,
}

/// How the end of the body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

#[derive(Debug)]
enum State {
    Head,
    Length(u64),
    UntilClose,
    ChunkSize {
        size: u64,
        digits: u32,
        length: usize,
        extension: bool,
    },
    ChunkData(u64),
    /// The line end behind a chunk's data.
    ChunkEnd,
    /// Lines behind the last chunk; true while the present one is empty so far.
    Trailer {
        empty: bool,
        length: usize,
    },
    End,
    Over,
}

/// Decodes one reply from bytes that are cut anywhere.
#[derive(Debug)]
pub(crate) struct Decoder {
    state: State,
    head: Vec<u8>,
}

const NEXT_CHUNK: State = State::ChunkSize {
    size: 0,
    digits: 0,
    length: 0,
    extension: false,
};

impl Decoder {
    pub(crate) const fn new() -> Self {
        Self {
            state: State::Head,
            head: Vec::new(),
        }
    }

    /// Is the end of the body told by the end of the connection?
    pub(crate) const fn ends_with_connection(&self) -> bool {
        matches!(self.state, State::UntilClose)
    }

    /// The next piece, taking bytes off the front of `input`. None when more
    /// bytes are needed, or when the reply is over.
    pub(crate) fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
    ) -> Result<Option<Piece<'a>>, HttpError> {
        loop {
            match &mut self.state {
                State::Head => return self.take_head(input),
                State::Length(0) => self.state = State::End,
                State::Length(left) => {
                    let piece = split_at_most(input, *left);
                    *left -= piece.len() as u64;
                    return Ok((!piece.is_empty()).then_some(Piece::Body(piece)));
                }
                State::UntilClose => {
                    let piece = std::mem::take(input);
                    return Ok((!piece.is_empty()).then_some(Piece::Body(piece)));
                }
                State::ChunkSize {
                    size,
                    digits,
                    length,
                    extension,
                } => {
                    let Some(byte) = take_byte(input) else {
                        return Ok(None);
                    };
                    *length += 1;
                    if *length > MAX_SIZE_LINE {
                        return Err(HttpError::Chunking);
                    }
                    match byte {
                        b'\n' if *digits == 0 => return Err(HttpError::Chunking),
                        b'\n' if *size == 0 => {
                            self.state = State::Trailer {
                                empty: true,
                                length: 0,
                            }
                        }
                        b'\n' => self.state = State::ChunkData(*size),
                        b'\r' => {}
                        b';' | b' ' | b'\t' => *extension = true,
                        _ if *extension => {}
                        _ => {
                            let digit = char::from(byte).to_digit(16).ok_or(HttpError::Chunking)?;
                            *digits += 1;
                            if *digits > 15 {
                                return Err(HttpError::Chunking);
                            }
                            *size = *size * 16 + u64::from(digit);
                        }
                    }
                }
                State::ChunkData(0) => self.state = State::ChunkEnd,
                State::ChunkData(left) => {
                    let piece = split_at_most(input, *left);
                    *left -= piece.len() as u64;
                    return Ok((!piece.is_empty()).then_some(Piece::Body(piece)));
                }
                State::ChunkEnd => match take_byte(input) {
                    None => return Ok(None),
                    Some(b'\r') => {}
                    Some(b'\n') => self.state = NEXT_CHUNK,
                    Some(_) => return Err(HttpError::Chunking),
                },
                State::Trailer { empty, length } => {
                    let Some(byte) = take_byte(input) else {
                        return Ok(None);
                    };
                    *length += 1;
                    if *length > MAX_HEAD_BYTES {
                        return Err(HttpError::HeadTooLarge);
                    }
                    match byte {
                        b'\n' if *empty => self.state = State::End,
                        b'\n' => *empty = true,
                        b'\r' => {}
                        _ => *empty = false,
                    }
                }
                State::End => {
                    self.state = State::Over;
                    return Ok(Some(Piece::End));
                }
                State::Over => return Ok(None),
            }
        }
    }

    fn take_head<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, HttpError> {
        loop {
            if input.is_empty() && self.head.is_empty() {
                return Ok(None);
            }
            let before = self.head.len();
            self.head.extend_from_slice(input);
            let Some((length, head, framing)) = parse_head(&self.head)? else {
                *input = &[];
                if self.head.len() > MAX_HEAD_BYTES {
                    return Err(HttpError::HeadTooLarge);
                }
                return Ok(None);
            };
            *input = input
                .get(length.saturating_sub(before)..)
                .unwrap_or_default();
            self.head.clear();
            // 1xx are notices; the reply itself follows.
            if (100..200).contains(&head.status) {
                continue;
            }
            self.state = match framing {
                Framing::Length(length) => State::Length(length),
                Framing::Chunked => NEXT_CHUNK,
                Framing::UntilClose => State::UntilClose,
            };
            return Ok(Some(Piece::Head(head)));
        }
    }
}

fn take_byte(input: &mut &[u8]) -> Option<u8> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    Some(*first)
}

fn split_at_most<'a>(input: &mut &'a [u8], most: u64) -> &'a [u8] {
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(input.len());
    let (piece, rest) = input.split_at(most);
    *input = rest;
    piece
}

fn parse_head(bytes: &[u8]) -> Result<Option<(usize, Head, Framing)>, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(foreign(bytes, error)),
    };
    let status = response.code.unwrap_or(0);
    let mut keep_alive = response.version == Some(1);
    let mut framing = None;
    let mut head = Head {
        status,
        content_type: None,
        encoding: None,
        location: None,
        retry_after: None,
        keep_alive,
        simulated: false,
    };
    for header in response.headers.iter() {
        let value = || String::from_utf8_lossy(header.value).trim().to_owned();
        let name = header.name;
        if name.eq_ignore_ascii_case("content-length") {
            if framing != Some(Framing::Chunked) {
                let length = value().parse().map_err(|_| {
                    HttpError::NotHttp("its Content-Length is no number".to_owned())
                })?;
                framing = Some(Framing::Length(length));
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if value().to_ascii_lowercase().ends_with("chunked") {
                framing = Some(Framing::Chunked);
            }
        } else if name.eq_ignore_ascii_case("connection") {
            for word in value().split(',') {
                if word.trim().eq_ignore_ascii_case("close") {
                    keep_alive = false;
                } else if word.trim().eq_ignore_ascii_case("keep-alive") {
                    keep_alive = true;
                }
            }
        } else if name.eq_ignore_ascii_case("content-type") {
            let media = value().to_ascii_lowercase();
            head.content_type = media.split(';').next().map(|kind| kind.trim().to_owned());
        } else if name.eq_ignore_ascii_case("content-encoding") {
            head.encoding = Some(value())
                .filter(|text| !text.is_empty() && !text.eq_ignore_ascii_case("identity"));
        } else if name.eq_ignore_ascii_case("location") {
            head.location = Some(value());
        } else if name.eq_ignore_ascii_case("retry-after") {
            head.retry_after = Some(value()).filter(|text| !text.is_empty());
        } else if name.eq_ignore_ascii_case(SIMULATED_MARKER) {
            head.simulated = true;
        }
    }
    let framing = match framing {
        _ if matches!(status, 100..200 | 204 | 304) => Framing::Length(0),
        Some(framing) => framing,
        None => Framing::UntilClose,
    };
    head.keep_alive = keep_alive && framing != Framing::UntilClose;
    Ok(Some((length, head, framing)))
}

/// Who else may have answered?
fn foreign(bytes: &[u8], error: httparse::Error) -> HttpError {
    match bytes {
        // A SETTINGS or GOAWAY frame: 24-bit length, type, flags, stream 0.
        [0, _, _, 4 | 7, ..] => HttpError::Http2,
        [b'H', b'T', b'T', b'P', b'/', b'2', ..] => HttpError::Http2,
        [0x15 | 0x16, 3, ..] => HttpError::Tls,
        _ => HttpError::NotHttp(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Head, body and whether the end was seen, of a reply cut into pieces.
    fn decode(pieces: &[&[u8]]) -> Result<(Option<Head>, Vec<u8>, bool), HttpError> {
        let mut decoder = Decoder::new();
        let (mut head, mut body, mut end) = (None, Vec::new(), false);
        for piece in pieces {
            let mut input = *piece;
            while let Some(piece) = decoder.next(&mut input)? {
                match piece {
                    Piece::Head(found) => head = Some(found),
                    Piece::Body(bytes) => body.extend_from_slice(bytes),
                    Piece::End => end = true,
                }
            }
        }
        Ok((head, body, end))
    }

    const CHUNKED: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nX-Tokdyno-Simulated: 1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nTrailer: t\r\n\r\n";

    #[test]
    fn a_chunked_reply() {
        let (head, body, end) = decode(&[CHUNKED]).expect("a reply");
        let head = head.expect("a head");
        assert_eq!(head.status, 200);
        assert_eq!(head.content_type.as_deref(), Some("text/event-stream"));
        assert!(head.keep_alive && head.simulated && end);
        assert_eq!(body, b"hello world");
    }

    #[test]
    fn lengths_and_open_ends() {
        let (head, body, end) = decode(&[
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\nnoX",
        ])
        .expect("a reply");
        assert_eq!(body, b"no");
        assert!(end && !head.expect("a head").keep_alive);

        let (head, body, end) = decode(&[b"HTTP/1.0 200 OK\r\n\r\nabc", b"def"]).expect("a reply");
        assert_eq!(body, b"abcdef");
        assert!(!end && !head.expect("a head").keep_alive);

        let (_, body, end) = decode(&[b"HTTP/1.1 204 No Content\r\n\r\n"]).expect("a reply");
        assert!(end && body.is_empty());
    }

    #[test]
    fn others_are_recognised() {
        let error = |bytes: &[u8]| decode(&[bytes]).expect_err("no reply");
        assert_eq!(error(b"\0\0\x12\x04\0\0\0\0\0"), HttpError::Http2);
        assert_eq!(error(b"\x15\x03\x01\0\x02"), HttpError::Tls);
        assert!(matches!(error(b"SSH-2.0-x\r\n"), HttpError::NotHttp(_)));
        assert_eq!(
            error(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            HttpError::Chunking
        );
        let mut endless = b"HTTP/1.1 200 OK\r\nx: ".to_vec();
        endless.extend(std::iter::repeat_n(b'a', MAX_HEAD_BYTES));
        assert_eq!(error(&endless), HttpError::HeadTooLarge);
    }

    proptest! {
        #[test]
        fn every_split_gives_the_same_reply(cuts in prop::collection::vec(0..=CHUNKED.len(), 0..30)) {
            let mut cuts = cuts;
            cuts.extend([0, CHUNKED.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &CHUNKED[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&pieces), decode(&[CHUNKED]));
        }
    }
}
