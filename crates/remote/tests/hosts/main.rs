//! Hosts for real: local processes, and a real `sshd` on loopback.

mod connection;
mod exact;
mod facts;
mod follow;
mod forwards;
mod launches;
mod programs;
mod restore;
mod support;
