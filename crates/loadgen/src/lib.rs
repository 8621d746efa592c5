//! The measuring engine of Tokdyno.
//!
//! It sends a workload to an OpenAI-compatible server and keeps what each
//! request did: when it was sent, when every chunk came, and how it ended. The
//! program `tokdyno-meter` is a thin shell around [`run_lines`]; others link the
//! library and call [`run_blocking`].
//!
//! How it measures:
//!
//! - One thread measures and does nothing else. Another one numbers, writes and
//!   hands over the events.
//! - Each read of the socket has one time, on `CLOCK_MONOTONIC`, and all chunks
//!   decoded from it share it: when the kernel received the last of its bytes,
//!   where the kernel tells, else the moment after the read.
//! - *sent* is just before the first byte of a request is written on an open
//!   connection. Connections are opened before a stage's clock starts; where one
//!   is opened later, its time is a figure of its own.
//! - No request that counts is ever sent twice. A kept connection that the server
//!   has closed meanwhile is noticed before it is used; if the close crosses the
//!   request, the request counts as broken.
//! - Redirects are not followed, compression is refused.

mod alarm;
mod arrival;
mod cancel;
mod certify;
mod chunk;
mod client_load;
mod connection;
mod events;
mod exchange;
mod fetch;
mod fit;
mod http;
mod load;
mod looping;
mod machine;
mod preflight;
mod progress;
mod replay;
mod reply;
mod request;
mod run;
mod saturation;
mod schedule;
mod scrape;
mod sse;
mod tls;

pub use cancel::CancelFlag;
pub use events::SpoolError;
pub use replay::Replay;
pub use run::{SpecError, check, run_blocking, run_lines};
