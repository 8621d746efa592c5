//! The program `tokdyno` as people run it: processes, a real PostgreSQL, the
//! stand-in engine. One test program, so that it is linked once.

mod bench;
mod crashes;
mod gate;
mod hosts;
mod launches;
mod serve;
mod sign_in;
mod support;
