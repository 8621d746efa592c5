//! The one error that crosses from server to page.

use leptos::server_fn::{
    codec::JsonEncoding,
    error::{FromServerFnError, ServerFnErrorErr},
};
use serde::{Deserialize, Serialize};

/// Why a server function could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{sentence}")]
pub struct AppError {
    /// HTTP status.
    pub status: u16,
    /// Cause and remedy, for people.
    pub sentence: String,
}

impl AppError {
    /// An error with its status.
    #[must_use]
    pub fn new(status: u16, sentence: impl Into<String>) -> Self {
        Self {
            status,
            sentence: sentence.into(),
        }
    }

    /// Is the database (or the server) away, so that trying again makes sense?
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        self.status == 503
    }

    /// Answers the present request with this error's status as well, be it a
    /// server function's or a page's.
    #[cfg(feature = "ssr")]
    #[must_use]
    pub fn with_status(self) -> Self {
        if let Some(response) = leptos::prelude::use_context::<leptos_axum::ResponseOptions>()
            && let Ok(status) = http::StatusCode::from_u16(self.status)
        {
            response.set_status(status);
        }
        self
    }

    /// What stands in a page's address is no number of such a thing.
    #[must_use]
    pub fn no_number(typed: &str, what: &str, list: &str) -> Self {
        let error = Self::new(
            404,
            format!(
                "`{typed}` is not the number of a {what}. The list of {list} shows what there is."
            ),
        );
        #[cfg(feature = "ssr")]
        let error = error.with_status();
        error
    }

    /// What was sent to a server function cannot be read.
    fn unreadable(reason: &str) -> Self {
        let error = Self::new(
            400,
            format!("The request could not be read: {reason}. Reload the page and try again."),
        );
        #[cfg(feature = "ssr")]
        let error = error.with_status();
        error
    }
}

/// Why the last attempt to sign in did not work: a context that the server provides
/// with the sign-in page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInTrouble(pub String);

impl FromServerFnError for AppError {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(value: ServerFnErrorErr) -> Self {
        match value {
            // The browser could not reach us: the same as being away for a while.
            ServerFnErrorErr::Request(_) => Self::new(
                503,
                "The server does not answer. Check that Tokdyno is running; this page tries again by itself.",
            ),
            ServerFnErrorErr::Args(reason) | ServerFnErrorErr::MissingArg(reason) => {
                Self::unreadable(&reason)
            }
            // In the server, only what was sent to it is read by this road; in the
            // browser, it is the answer.
            #[cfg(feature = "ssr")]
            ServerFnErrorErr::Deserialization(reason) => Self::unreadable(&reason),
            _ => Self::new(
                500,
                format!("The server's answer could not be used: {value}. Reload the page."),
            ),
        }
    }
}
