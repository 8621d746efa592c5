//! The meter against small servers on loopback.

mod faults;
mod floods;
mod limits;
mod program;
mod refusals;
mod runs;
mod support;
mod tls;
