//! Requests as bytes: written on one side, read on the other.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::{
    answers::{Failure, FailureWord},
    command::{RawCommand, check_command},
};

/// Largest block of a request.
const MAX_BLOCK: u64 = 64 << 20;

/// A request in the making.
#[derive(Debug, Default)]
pub(crate) struct Block(Vec<u8>);

impl Block {
    /// Begins with the order.
    pub(crate) fn new<T: Serialize>(order: &T) -> Result<Self, Failure> {
        let json = serde_json::to_vec(order).map_err(|error| {
            Failure::new(
                FailureWord::BadRequest,
                format!("The request could not be written down: {error}."),
            )
        })?;
        let mut block = Self::default();
        block.field(&json);
        Ok(block)
    }

    fn field(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.push(0);
    }

    /// Appends a command: how many arguments, how many variables, 1 if there is a
    /// directory, then those. A variable is one field, `NAME=value`.
    pub(crate) fn command(mut self, command: &RawCommand) -> Result<Self, Failure> {
        check_command(command)?;
        self.field(command.argv.len().to_string().as_bytes());
        self.field(command.environment.len().to_string().as_bytes());
        self.field(if command.directory.is_some() {
            b"1"
        } else {
            b"0"
        });
        for word in &command.argv {
            self.field(word);
        }
        for (name, value) in &command.environment {
            self.field(&[name, b"=".as_slice(), value].concat());
        }
        if let Some(directory) = &command.directory {
            self.field(directory);
        }
        Ok(self)
    }

    /// The bytes to be sent: count, line feed, block.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut bytes = format!("{}\n", self.0.len()).into_bytes();
        bytes.extend_from_slice(&self.0);
        bytes
    }
}

/// The fields of a request that arrived.
#[derive(Debug)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    at: usize,
}

impl Fields {
    /// Reads one block and not a byte more: what follows may belong to another
    /// program.
    ///
    /// # Errors
    /// As reading does; `InvalidData` if this is no block.
    pub(crate) fn read(input: &mut impl Read) -> io::Result<Self> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut length: u64 = 0;
        let mut digits = 0;
        loop {
            let mut byte = [0];
            input.read_exact(&mut byte)?;
            match byte[0] {
                b'\n' if digits > 0 => break,
                digit @ b'0'..=b'9' if digits < 12 => {
                    length = length * 10 + u64::from(digit - b'0');
                    digits += 1;
                }
                _ => return Err(invalid("a request does not begin with its length")),
            }
        }
        if length > MAX_BLOCK {
            return Err(invalid("a request is too long"));
        }
        let mut bytes = Vec::new();
        input.take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { bytes, at: 0 })
    }

    fn next(&mut self) -> Option<&[u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|&byte| byte == 0)?;
        self.at += length + 1;
        Some(&rest[..length])
    }

    /// The order at the front.
    pub(crate) fn order<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T, Failure> {
        let field = self.next().ok_or_else(torn)?;
        serde_json::from_slice(field).map_err(|error| {
            Failure::new(
                FailureWord::BadRequest,
                format!("The agent does not understand the request ({error})."),
            )
        })
    }

    /// The command that follows.
    pub(crate) fn command(&mut self) -> Result<RawCommand, Failure> {
        let words = self.count()?;
        let variables = self.count()?;
        let with_directory = self.count()? == 1;
        let mut command = RawCommand::default();
        for _ in 0..words {
            command.argv.push(self.next().ok_or_else(torn)?.to_vec());
        }
        for _ in 0..variables {
            let field = self.next().ok_or_else(torn)?;
            let equals = field
                .iter()
                .position(|&byte| byte == b'=')
                .ok_or_else(torn)?;
            command
                .environment
                .push((field[..equals].to_vec(), field[equals + 1..].to_vec()));
        }
        if with_directory {
            command.directory = Some(self.next().ok_or_else(torn)?.to_vec());
        }
        check_command(&command)?;
        Ok(command)
    }

    fn count(&mut self) -> Result<u32, Failure> {
        self.next()
            .and_then(|field| std::str::from_utf8(field).ok()?.parse().ok())
            .ok_or_else(torn)
    }
}

fn torn() -> Failure {
    Failure::new(
        FailureWord::BadRequest,
        "The request ends too early. Dashboard and agent may be of different versions.",
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Order;

    fn bytes_without_nul(most: usize) -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(1_u8..=255, 0..most)
    }

    proptest! {
        #[test]
        fn any_command_survives_the_block(
            program in proptest::collection::vec(1_u8..=255, 1..20),
            words in proptest::collection::vec(bytes_without_nul(40), 0..8),
            values in proptest::collection::vec(bytes_without_nul(40), 0..8),
            directory in proptest::option::of(bytes_without_nul(20)),
            after in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let command = RawCommand {
                argv: std::iter::once(program).chain(words).collect(),
                environment: values
                    .into_iter()
                    .enumerate()
                    .map(|(index, value)| (format!("V{index}").into_bytes(), value))
                    .collect(),
                directory,
            };
            let mut sent = Block::new(&Order::Exec)
                .and_then(|block| block.command(&command))
                .expect("a command")
                .finish();
            sent.extend_from_slice(&after);
            let mut input = sent.as_slice();
            let mut fields = Fields::read(&mut input).expect("a block");
            prop_assert_eq!(fields.order::<Order>(), Ok(Order::Exec));
            prop_assert_eq!(fields.command(), Ok(command));
            prop_assert_eq!(input, after.as_slice());
        }
    }

    #[test]
    fn what_no_program_can_be_given_is_refused_with_a_sentence() {
        let refused = |command: RawCommand| {
            Block::new(&Order::Exec)
                .and_then(|block| block.command(&command))
                .expect_err("refused")
                .sentence
        };
        assert!(refused(RawCommand::default()).contains("empty"));
        assert!(refused(RawCommand::new(["a\0b"])).contains("NUL"));
        let mut command = RawCommand::new(["a"]);
        command.environment = vec![(b"A=B".to_vec(), Vec::new())];
        assert!(refused(command).contains('='));
    }

    #[test]
    fn a_torn_block_is_an_error_and_no_shorter_command() {
        let whole = Block::new(&Order::Exec)
            .and_then(|block| block.command(&RawCommand::new(["a", "b"])))
            .expect("a command")
            .finish();
        for end in 0..whole.len() {
            assert!(Fields::read(&mut &whole[..end]).is_err(), "{end}");
        }
        assert!(Fields::read(&mut b"abc\n".as_slice()).is_err());
        assert!(Fields::read(&mut b"99999999999\n".as_slice()).is_err());
    }
}
