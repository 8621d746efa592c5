//! Whole replies, outside of any timing.

use crate::{
    connection::Connection,
    http::{Decoder, Head, HttpError, Piece},
};

/// Most bytes of a body.
const MAX_BODY: usize = 4 << 20;

/// A whole reply, outside of any timing.
///
/// # Errors
/// The cause, as the middle of a sentence.
pub(crate) async fn fetch(
    connection: &mut Connection,
    request: &[u8],
) -> Result<(Head, Vec<u8>), String> {
    connection
        .write_all(request)
        .await
        .map_err(|error| error.to_string())?;
    let mut decoder = Decoder::new();
    let (mut head, mut body) = (None, Vec::new());
    let mut buffer = vec![0; 16 << 10];
    loop {
        let (count, _) = std::future::poll_fn(|cx| connection.poll_read(cx, &mut buffer))
            .await
            .map_err(|error| format!("the connection broke ({error})"))?;
        if count == 0 {
            return match head {
                Some(head) if decoder.ends_with_connection() => Ok((head, body)),
                _ => Err("the connection was closed before the reply was over".to_owned()),
            };
        }
        let mut input = buffer.get(..count).unwrap_or_default();
        loop {
            match decoder
                .next(&mut input)
                .map_err(|error: HttpError| error.to_string())?
            {
                None => break,
                Some(Piece::Head(found)) => head = Some(found),
                Some(Piece::Body(bytes)) => body.extend_from_slice(bytes),
                Some(Piece::End) => return head.map(|head| (head, body)).ok_or_else(String::new),
            }
            if body.len() > MAX_BODY {
                return Err(format!("the reply is larger than {MAX_BODY} bytes"));
            }
        }
    }
}
