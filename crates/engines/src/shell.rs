//! Command lines as text: written for a POSIX shell, and read back without ever
//! running one.

mod container;
mod expand;
mod lexer;
mod lift;
mod paste;
mod prepare;
mod quote;
mod read;

pub(crate) use lift::lift;
pub use paste::{PasteError, Pasted, paste};
pub use quote::{quote, quote_word};
