//! The meter against small servers on loopback.

mod faults;
mod program;
mod runs;
mod support;
mod tls;
