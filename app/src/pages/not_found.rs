//! Nothing is at this address.

use leptos::prelude::*;
use leptos_meta::Title;

use crate::{AppError, Surface};

/// Says so, with the true status, and offers a way on.
#[component]
pub fn NotFoundPage() -> impl IntoView {
    let error = AppError::new(
        404,
        "There is nothing at this address. Check it for a typing error.",
    );
    #[cfg(feature = "ssr")]
    let error = error.with_status();
    let full = use_context::<Surface>().unwrap_or_default() == Surface::Full;
    view! {
        <Title text="Not found"/>
        <section class="empty-state">
            <h1>"Not found"</h1>
            <p>{error.sentence}</p>
            {full
                .then(|| {
                    view! {
                        <p>
                            <a class="button" href="/">
                                "Go to the Board"
                            </a>
                        </p>
                    }
                })}
        </section>
    }
}
