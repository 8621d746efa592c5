//! The dashboard's side: reaching a host and asking its agent.

mod asking;
mod build;
mod error;
mod forward;
mod host;
mod program;
mod relay;
mod session;
mod stream;
mod stub;
mod tail;
mod transport;
mod trouble;
mod tunnel;

pub use error::RemoteError;
pub use forward::Forward;
pub use host::{Checked, Host, RemoteConfig};
pub use program::{Piped, RemoteProgram};
pub use stream::{Follow, Samples};
