//! What keeps other people's pages and machines away from a program that nobody
//! has to sign in to: where it listens, which names it answers to, where changes
//! may come from, and what a page may load.

pub(crate) mod body;
pub(crate) mod headers;
pub(crate) mod hosts;
pub(crate) mod listen;
pub(crate) mod origin;
