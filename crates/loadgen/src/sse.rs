//! Server-sent events, byte for byte.
//!
//! The parser is given bytes as they came from the socket, cut anywhere, and
//! yields whole events. Rules: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.

/// Most bytes of one event. Beyond that it is no token stream.
pub(crate) const MAX_EVENT_BYTES: usize = 8 << 20;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// The value of its `event:` line; empty for the usual kind.
    pub(crate) name: &'a [u8],
    /// Its `data:` lines, joined by line feeds.
    pub(crate) data: &'a [u8],
}

/// An event larger than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "One event of the reply is larger than {max} bytes. This is no token stream; check the address.",
    max = MAX_EVENT_BYTES
)]
pub(crate) struct EventTooLarge;

/// The state between two reads. Buffers are kept, so that an event costs no
/// allocation once they have grown to their working size.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    data: Vec<u8>,
    name: Vec<u8>,
    has_data: bool,
    /// The line before ended in CR: an LF that follows belongs to it.
    skip_lf: bool,
    past_first_line: bool,
    /// The event in `data` was handed out; clear before going on.
    handed_out: bool,
}

impl Parser {
    /// The next whole event, taking bytes off the front of `input`. None once
    /// `input` is used up.
    ///
    /// # Errors
    /// [`EventTooLarge`].
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Result<Option<Event<'_>>, EventTooLarge> {
        if self.handed_out {
            self.clear_event();
        }
        loop {
            if self.skip_lf
                && let Some(first) = input.first()
            {
                if *first == b'\n' {
                    *input = input.get(1..).unwrap_or_default();
                }
                self.skip_lf = false;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', input) else {
                self.hold(input)?;
                *input = &[];
                return Ok(None);
            };
            let (line, rest) = input.split_at(end);
            self.skip_lf = rest.first() == Some(&b'\r');
            *input = rest.get(1..).unwrap_or_default();
            let dispatch = if self.line.is_empty() {
                self.take_line(line)?
            } else {
                self.hold(line)?;
                let held = std::mem::take(&mut self.line);
                let dispatch = self.take_line(&held);
                self.line = held;
                self.line.clear();
                dispatch?
            };
            if dispatch {
                self.handed_out = true;
                return Ok(Some(Event {
                    name: &self.name,
                    data: &self.data,
                }));
            }
        }
    }

    /// The event that was under way when the stream ended. The rules discard it;
    /// servers that forget the last blank line exist, so the caller decides.
    pub(crate) fn finish(&mut self) -> Option<Event<'_>> {
        if self.handed_out {
            self.clear_event();
        }
        let held = std::mem::take(&mut self.line);
        let fits = self.take_line(&held).is_ok();
        (fits && self.has_data).then_some(Event {
            name: &self.name,
            data: &self.data,
        })
    }

    fn clear_event(&mut self) {
        self.data.clear();
        self.name.clear();
        self.has_data = false;
        self.handed_out = false;
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes a line without its end; true if it completes an event.
    fn take_line(&mut self, line: &[u8]) -> Result<bool, EventTooLarge> {
        let line = if self.past_first_line {
            line
        } else {
            self.past_first_line = true;
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        };
        if line.is_empty() {
            if self.has_data {
                return Ok(true);
            }
            self.name.clear();
            return Ok(false);
        }
        let colon = memchr::memchr(b':', line);
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.data.len() + value.len() + 1 > MAX_EVENT_BYTES {
                    return Err(EventTooLarge);
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // Comments (an empty field name), `id`, `retry` and the unknown.
            _ => {}
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Owned = (Vec<u8>, Vec<u8>);

    fn parse(pieces: &[&[u8]]) -> Vec<Owned> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(event) = parser.next(&mut input).expect("small events") {
                events.push((event.name.to_vec(), event.data.to_vec()));
            }
            assert!(input.is_empty());
        }
        events
    }

    fn data(pieces: &[&[u8]]) -> Vec<String> {
        parse(pieces)
            .into_iter()
            .map(|(_, data)| String::from_utf8(data).expect("text"))
            .collect()
    }

    #[test]
    fn the_three_line_ends() {
        for text in [
            "data: a\n\ndata: b\n\n",
            "data: a\r\n\r\ndata: b\r\n\r\n",
            "data: a\r\rdata: b\r\r",
        ] {
            assert_eq!(data(&[text.as_bytes()]), ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn a_pair_cut_in_the_middle_is_one_line_end() {
        assert_eq!(
            data(&[b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n"]),
            ["a", "b"]
        );
        assert_eq!(data(&[b"data: a\r", b"\ndata: b\r\n\r\n"]), ["a\nb"]);
    }

    #[test]
    fn fields_comments_and_names() {
        let text = b"\xEF\xBB\xBF: hello\nid: 7\nevent: extra\ndata:one\ndata:  two\ndata\nretry: 3\n\n: keep-alive\n\nevent: lost\n\ndata: x\n\n";
        assert_eq!(
            parse(&[text]),
            [
                (b"extra".to_vec(), b"one\n two\n".to_vec()),
                (Vec::new(), b"x".to_vec())
            ]
        );
    }

    #[test]
    fn what_was_under_way_at_the_end() {
        let mut parser = Parser::default();
        let mut input: &[u8] = b"data: a\n\ndata: [DONE]";
        assert!(parser.next(&mut input).expect("fits").is_some());
        assert!(parser.next(&mut input).expect("fits").is_none());
        assert_eq!(parser.finish().expect("an event").data, b"[DONE]");
        assert_eq!(Parser::default().finish(), None);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let block = vec![b'x'; 1 << 20];
        for line_end in [b"".as_slice(), b"\ndata: "] {
            let mut parser = Parser::default();
            let mut input: &[u8] = b"data: ";
            parser.next(&mut input).expect("fits");
            let refused = (0..9).any(|_| {
                let mut piece = block.clone();
                piece.extend_from_slice(line_end);
                parser.next(&mut piece.as_slice()).is_err()
            });
            assert!(refused);
        }
    }

    #[test]
    fn a_large_event_passes() {
        let mut text = b"data: ".to_vec();
        text.extend(std::iter::repeat_n(b'y', 1 << 20));
        text.extend_from_slice(b"\n\n");
        let pieces: Vec<&[u8]> = text.chunks(1000).collect();
        assert_eq!(parse(&pieces)[0].1.len(), 1 << 20);
    }

    proptest! {
        #[test]
        fn every_split_gives_the_same_events(
            lines in prop::collection::vec(
                prop_oneof![
                    Just("data: {\"t\":\"grüße 你好 🙂\"}".to_owned()),
                    Just(": comment".to_owned()),
                    Just("event: e".to_owned()),
                    Just(String::new()),
                    "data:[ -~]{0,12}",
                    "[ -~]{0,8}",
                ],
                0..12,
            ),
            ends in prop::collection::vec(0_usize..3, 12),
            bom in any::<bool>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut bytes = if bom { b"\xEF\xBB\xBF".to_vec() } else { Vec::new() };
            for (line, end) in lines.iter().zip(&ends) {
                bytes.extend_from_slice(line.as_bytes());
                bytes.extend_from_slice([b"\n".as_slice(), b"\r\n", b"\r"][*end]);
            }
            let whole = parse(&[&bytes]);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&parse(&single), &whole);
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(&parse(&pieces), &whole);
        }
    }
}
