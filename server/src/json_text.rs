//! Result files as text: indented where people read, a line each for requests,
//! whose chunk times would otherwise fill a line per number.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Below this depth nothing is indented: file, stages, stage, records, request.
const DEEPEST_INDENTED: usize = 4;

/// The value as JSON with a newline at its end.
///
/// # Errors
/// It cannot be expressed in JSON.
pub(crate) fn json_text(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = Vec::new();
    let indented = Indented::default();
    value.serialize(&mut Serializer::with_formatter(&mut text, indented))?;
    text.push(b'\n');
    Ok(text)
}

#[derive(Default)]
struct Indented {
    depth: usize,
    /// Has the innermost array or object an element?
    filled: bool,
}

impl Indented {
    fn open<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        writer.write_all(bracket)
    }

    fn close<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        let was_indented = self.is_indented();
        self.depth -= 1;
        if was_indented && self.filled {
            self.new_line(writer)?;
        }
        self.filled = true;
        writer.write_all(bracket)
    }

    fn element<W: ?Sized + io::Write>(&self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        if self.is_indented() {
            self.new_line(writer)?;
        }
        Ok(())
    }

    const fn is_indented(&self) -> bool {
        self.depth <= DEEPEST_INDENTED
    }

    fn new_line<W: ?Sized + io::Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Indented {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.element(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.element(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.is_indented() { b": " } else { b":" })
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_take_a_line_each() {
        let value = json!({
            "stages": [{ "records": [{ "a": [1, 2] }, { "a": [] }], "flags": [] }],
        });
        let text = String::from_utf8(json_text(&value).expect("text")).expect("UTF-8");
        assert_eq!(
            text,
            "{\n  \"stages\": [\n    {\n      \"flags\": [],\n      \"records\": [\n        \
             {\"a\":[1,2]},\n        {\"a\":[]}\n      ]\n    }\n  ]\n}\n"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).expect("JSON"),
            value
        );
    }
}
