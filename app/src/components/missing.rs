//! The page of a thing that is not there or cannot be shown.

use leptos::prelude::*;
use leptos_meta::Title;

use super::feedback::ErrorBanner;
use crate::AppError;

/// Says why, and leads to the list.
#[component]
pub fn MissingPage(
    /// The error.
    error: AppError,
    /// Tries again.
    again: Callback<()>,
    /// What was looked for, such as `host`.
    what: &'static str,
    /// Address of the list.
    list: &'static str,
    /// The link's words.
    to_list: &'static str,
) -> impl IntoView {
    let title = if error.status == 404 {
        format!("No such {what}")
    } else {
        format!("The {what} cannot be shown")
    };
    view! {
        <Title text=title.clone()/>
        <h1>{title}</h1>
        <ErrorBanner error retry=again/>
        <p>
            <a href=list>{to_list}</a>
        </p>
    }
}
