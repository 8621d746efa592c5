//! The web server: routers, pages, plain routes, and how errors are shown.
//!
//! From outside in, a request passes: security headers, the page around errors,
//! the check of `Host`, the check of where a change comes from, the bound on its
//! size, the question who acts, the time-out; then exports by address, then the routes.

mod api;
mod assets;
mod contexts;
mod dev;
mod events;
mod exports;
mod health;
mod problem;
mod query;
mod router;
mod serving;
mod sign_in;
mod site;

pub(crate) use assets::{AssetStore, AssetsError};
pub(crate) use dev::is_on as is_followed;
pub(crate) use problem::Problem;
pub(crate) use router::{full, shared};
pub(crate) use serving::{ListenError, Listener, serve};
pub(crate) use site::{Ending, Site};
