//! What a page says when it has nothing to show: not yet, nothing there, or an error.

use std::time::Duration;

use leptos::prelude::*;

use super::icon::{Glyph, Icon};
use crate::AppError;

/// How often a page tries again while the database is away.
const RETRY: Duration = Duration::from_secs(2);

/// An error in a sentence, with a way on. While the database or the server is
/// away the page tries again by itself.
#[component]
pub fn ErrorBanner(
    /// The error.
    error: AppError,
    /// Tries again.
    #[prop(into)]
    retry: Callback<()>,
) -> impl IntoView {
    let temporary = error.is_temporary();
    // The same question would get the same answer.
    let again = (!(400..500).contains(&error.status)).then(|| {
        view! {
            <button type="button" class="button script-only" on:click=move |_| retry.run(())>
                "Try again"
            </button>
        }
    });
    if temporary {
        Effect::new(move |_| {
            if let Ok(handle) = set_interval_with_handle(
                move || {
                    retry.try_run(());
                },
                RETRY,
            ) {
                on_cleanup(move || handle.clear());
            }
        });
    }
    let title = match error.status {
        503 => "The database is away; this page tries again by itself",
        404 => "Not found",
        403 => "Not allowed",
        400..=499 => "That is not possible",
        _ => "Something went wrong",
    };
    let detail = if temporary && error.sentence.contains("tries again") {
        None
    } else {
        Some(view! { <p>{error.sentence}</p> })
    };
    view! {
        <div class="banner banner-bad" class:banner-wait=temporary role="alert">
            <Icon glyph=if temporary { Glyph::Clock } else { Glyph::Warning }/>
            <div class="banner-text">
                <p class="banner-title">{title}</p>
                {detail}
            </div>
            {again}
        </div>
    }
}

/// The sentence of an error beside what caused it: a form, a button.
#[component]
pub fn ErrorNote(
    /// The error, where there is one.
    #[prop(into)]
    error: Signal<Option<AppError>>,
) -> impl IntoView {
    view! {
        <div role="alert" class="error-note-place">
            {move || {
                error
                    .get()
                    .map(|error| {
                        view! {
                            <p class="error-note">
                                <Icon glyph=Glyph::Warning/>
                                <span>{error.sentence}</span>
                            </p>
                        }
                    })
            }}
        </div>
    }
}

/// Nothing is there: why, and what to do next.
#[component]
pub fn EmptyState(
    /// What is missing.
    #[prop(into)]
    title: String,
    /// What to do next.
    children: Children,
) -> impl IntoView {
    view! {
        <section class="empty-state">
            <h2>{title}</h2>
            {children()}
        </section>
    }
}

/// Stands where text will.
#[component]
pub fn Skeleton(
    /// How many lines.
    #[prop(default = 4)]
    lines: usize,
) -> impl IntoView {
    view! {
        <div class="skeleton" aria-hidden="true">
            {(0..lines).map(|_| view! { <div class="skeleton-line"></div> }).collect_view()}
        </div>
        <p class="visually-hidden" role="status">"Loading"</p>
    }
}

/// Stands where a chart will, in its size.
#[component]
pub fn ChartSkeleton() -> impl IntoView {
    view! { <div class="chart-box skeleton-box" aria-hidden="true"></div> }
}
