//! A frozen comparison: the same page for ever.

use leptos::prelude::*;
use leptos_meta::{Meta, Title};
use leptos_router::hooks::{use_params_map, use_query_map};
use tokdyno_domain::{
    ids::{BadSlug, ComparisonSlug},
    views::compare::{FrozenView, TodayView},
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
        overridden,
        view,
        today,
    } = view;
    let address = use_query_map();
    // Which reading is asked for, and whether there is another.
    let by_today =
        Memo::new(move |_| address.with(|address| address.get("read").as_deref() == Some(TODAY)));
    let class = overridden.as_ref().map_or_else(
        || view.class.sentence.clone(),
        |overridden| format!("{} {}", view.class.sentence, overridden.sentence()),
    );
    let link = format!("{}/c/{slug}", browser::origin());
    let picture = format!("{link}.png");
    let description = description(&class, view.verdicts.first());
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
        {today
            .as_ref()
            .map(|today| {
                view! {
                    <Readings today=(**today).clone() frozen=analysis_version slug=slug by_today=by_today/>
                }
            })}
        {move || match today.as_ref().filter(|_| by_today.get()) {
            Some(today) => {
                view! { <Comparison view=today.view.clone() ties=ties overridden=overridden.clone()/> }
                    .into_any()
            }
            None => {
                view! { <Comparison view=view.clone() ties=ties overridden=overridden.clone()/> }
                    .into_any()
            }
        }}
    }
}

/// The value of `read` in the address that asks for the reading of today.
const TODAY: &str = "today";

/// Which of the two readings is shown, the way to the other, and what is another in it.
#[component]
fn Readings(
    today: TodayView,
    /// The version that it was frozen under.
    frozen: u32,
    slug: ComparisonSlug,
    by_today: Memo<bool>,
) -> impl IntoView {
    let TodayView {
        analysis_version,
        read_from,
        changes,
        ..
    } = today;
    let current = move |is: bool| (by_today.get() == is).then_some("page");
    view! {
        <section class="section readings" aria-labelledby="readings-title">
            <h2 id="readings-title">"Two readings"</h2>
            <p>
                {format!(
                    "It was frozen under analysis version {frozen}. The rules of judgement are now at version {analysis_version}. What was frozen stays as it was; beside it, the same figures by today's rules.",
                )}
            </p>
            <p class="cluster">
                <a class="button" href=format!("/c/{slug}") aria-current=move || current(false)>
                    "As frozen"
                </a>
                <a
                    class="button"
                    href=format!("/c/{slug}?read={TODAY}")
                    aria-current=move || current(true)
                >
                    "By today's rules"
                </a>
            </p>
            <ul class="sentences">
                {changes.into_iter().map(|change| view! { <li>{change}</li> }).collect_view()}
            </ul>
            <p class="muted">
                {move || {
                    if by_today.get() {
                        format!("Shown below: by today's rules. {read_from}")
                    } else {
                        "Shown below: as frozen.".to_owned()
                    }
                }}
            </p>
        </section>
    }
}

/// What a preview says.
fn description(class: &str, verdict: Option<&tokdyno_domain::verdict::Verdict>) -> String {
    match verdict {
        Some(verdict) => format!("{} {}", verdict.sentence, capital(class)),
        None => capital(class),
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use tokdyno_domain::views::compare::{ClassKind, CompareView, ComparisonClass};

    fn today() -> TodayView {
        TodayView {
            analysis_version: 4,
            read_from: "Read from the frozen document.".to_owned(),
            changes: vec![
                "Single stream: then better, by today's rules not established.".to_owned(),
            ],
            view: CompareView {
                runs: Vec::new(),
                groups: Vec::new(),
                rows: Vec::new(),
                differences: Vec::new(),
                equal_settings: 0,
                class: ComparisonClass {
                    kind: ClassKind::Controlled,
                    sentence: "Controlled.".to_owned(),
                },
                separating: Vec::new(),
                verdicts: Vec::new(),
                crossovers: Vec::new(),
                speculation: Vec::new(),
                charts: Vec::new(),
            },
        }
    }

    fn shown(by_today: bool) -> String {
        let slug = ComparisonSlug([7; 16]);
        Owner::new().with(|| {
            let by_today = Memo::new(move |_| by_today);
            view! { <Readings today=today() frozen=2 slug=slug by_today=by_today/> }.to_html()
        })
    }

    #[test]
    fn both_readings_are_offered_and_the_one_shown_is_marked() {
        let slug = ComparisonSlug([7; 16]);
        let frozen = shown(false);
        for part in [
            &format!("href=\"/c/{slug}\""),
            &format!("href=\"/c/{slug}?read=today\""),
            "analysis version 2",
            "now at version 4",
            "then better, by today",
            "Shown below: as frozen.",
        ] {
            assert!(frozen.contains(part), "{part}: {frozen}");
        }
        let current = |html: &str, label: &str| {
            html.split("<a ")
                .find(|link| link.contains(label))
                .is_some_and(|link| link.contains("aria-current=\"page\""))
        };
        assert!(current(&frozen, "As frozen") && !current(&frozen, "By today"));
        let today = shown(true);
        assert!(!current(&today, "As frozen") && current(&today, "By today"));
        assert!(today.contains("Read from the frozen document."), "{today}");
    }
}
