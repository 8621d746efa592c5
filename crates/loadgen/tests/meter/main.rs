//! The meter against small servers on loopback.

mod clocks;
mod conversations;
mod faults;
mod floods;
mod ladder;
mod lengths;
mod limits;
mod loops;
mod open_loops;
mod program;
mod refusals;
mod runs;
mod support;
mod tls;
