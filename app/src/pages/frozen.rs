//! A frozen comparison: the same page for ever.

use leptos::prelude::*;
use leptos_meta::{Meta, Title};
use leptos_router::hooks::use_params_map;
use tokdyno_domain::{
    ids::{BadSlug, ComparisonSlug},
    views::compare::FrozenView,
};

use crate::{
    AppError, Surface, api, browser,
    components::{
        CopyButton, ErrorBanner, Glyph, Icon, Skeleton,
        comparison::{Comparison, Ties},
        figures::capital,
    },
};

/// The page.
#[component]
pub fn FrozenPage() -> impl IntoView {
    let params = use_params_map();
    let slug = Memo::new(move |_| params.with(|params| params.get("slug").unwrap_or_default()));
    let frozen = Resource::new(move || slug.get(), load);
    view! {
        <Transition fallback=|| view! { <Skeleton lines=8/> }>
            {move || Suspend::new(async move {
                match frozen.await {
                    Ok(view) => view! { <Frozen view=view/> }.into_any(),
                    Err(error) => {
                        view! {
                            <Title text="Shared comparison"/>
                            <h1>"Shared comparison"</h1>
                            <ErrorBanner
                                error=error
                                retry=Callback::new(move |()| frozen.refetch())
                            />
                            <WayOn/>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

/// Where to go from a link that shows nothing.
#[component]
fn WayOn() -> impl IntoView {
    match use_context::<Surface>().unwrap_or_default() {
        Surface::Full => view! {
            <p>
                <a href="/compare">"Make a new comparison"</a>
                " or go to the "
                <a href="/">"Board"</a>
                "."
            </p>
        }
        .into_any(),
        Surface::Shared => {
            view! { <p>"Ask whoever sent you the link for a new one."</p> }.into_any()
        }
    }
}

async fn load(slug: String) -> Result<FrozenView, AppError> {
    match slug.parse::<ComparisonSlug>() {
        Ok(slug) => api::frozen(slug).await,
        Err(bad) => Err(mistyped(&bad)),
    }
}

fn mistyped(bad: &BadSlug) -> AppError {
    let error = AppError::new(404, bad.to_string());
    #[cfg(feature = "ssr")]
    let error = error.with_status();
    error
}

#[component]
fn Frozen(view: FrozenView) -> impl IntoView {
    let surface = use_context::<Surface>().unwrap_or_default();
    let ties = match surface {
        Surface::Full => Ties::Frozen,
        Surface::Shared => Ties::Shared,
    };
    let FrozenView {
        slug,
        hash,
        title,
        frozen_at,
        analysis_version,
        metric_version,
        view,
    } = view;
    let link = format!("{}/c/{slug}", browser::origin());
    let picture = format!("{link}.png");
    let description = description(&view.class.sentence, view.verdicts.first());
    let file = move |extension: &str| format!("/c/{slug}.{extension}");
    let download = move |extension: &'static str, label: &'static str| {
        view! {
            <a class="button button-small" href=file(extension) rel="external" download="">
                {label}
            </a>
        }
    };
    view! {
        <Title text=title.clone()/>
        <Meta name="description" content=description.clone()/>
        <Meta property="og:type" content="article"/>
        <Meta property="og:site_name" content="Tokdyno"/>
        <Meta property="og:title" content=title.clone()/>
        <Meta property="og:description" content=description.clone()/>
        <Meta property="og:url" content=link.clone()/>
        <Meta property="og:image" content=picture.clone()/>
        <Meta property="og:image:type" content="image/png"/>
        <Meta property="og:image:width" content="1200"/>
        <Meta property="og:image:height" content="630"/>
        <Meta name="twitter:card" content="summary_large_image"/>
        <Meta name="twitter:title" content=title.clone()/>
        <Meta name="twitter:description" content=description/>
        <Meta name="twitter:image" content=picture/>
        <div class="page-head">
            <h1>{title}</h1>
            <CopyButton text=Signal::stored(link) label="Copy link"/>
        </div>
        <div class="frozen-banner">
            <Icon glyph=Glyph::Lock/>
            <div>
                <p class="frozen-line">
                    "Frozen on " <time datetime=frozen_at.to_string()>{frozen_at.exact()}</time>
                    ". It shows what was known then, and always will."
                </p>
                <p class="muted frozen-facts">
                    {format!("Analysis version {analysis_version} · metric version {metric_version}")}
                </p>
                <p class="muted frozen-facts">"SHA-256 " <code class="hash">{hash}</code></p>
            </div>
            <p class="cluster frozen-files">
                {download("json", "JSON")} {download("csv", "CSV")} {download("svg", "SVG")} {download("png", "PNG")}
            </p>
        </div>
        <Comparison view=view ties=ties/>
    }
}

/// What a preview says.
fn description(class: &str, verdict: Option<&tokdyno_domain::verdict::Verdict>) -> String {
    match verdict {
        Some(verdict) => format!("{} {}", verdict.sentence, capital(class)),
        None => capital(class),
    }
}
