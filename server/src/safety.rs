//! What keeps other people's pages and machines away: where the program listens,
//! which names it answers to, where changes may come from, who acts, and what a page
//! may load.

pub(crate) mod body;
pub(crate) mod headers;
pub(crate) mod hosts;
pub(crate) mod listen;
pub(crate) mod origin;
pub(crate) mod who;
