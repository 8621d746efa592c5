//! Files by address: what a page shows, as JSON, CSV or SVG.
//!
//! They stand beside the pages (`/runs/7` and `/runs/7.json`), which the router's
//! patterns cannot express, so they are recognised before routing.

mod address;
mod picture;
mod records;
mod stages;

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::stream;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    chart::ChartSpec,
    ids::ComparisonSlug,
};
use tokdyno_figures::Theme;
use tokdyno_lab::LabError;

use self::address::{ChartFormat, Export, FrozenFormat};
use super::{Problem, Site, query};
use crate::json_text::json_text;

/// Answers addresses of files; everything else goes on.
pub(crate) async fn intercept(State(site): State<Site>, request: Request, next: Next) -> Response {
    let reading = matches!(*request.method(), Method::GET | Method::HEAD);
    let Some(export) = reading
        .then(|| Export::of_path(request.uri().path()))
        .flatten()
    else {
        return next.run(request).await;
    };
    if site.is_shared() && !matches!(export, Export::Frozen { .. }) {
        return Problem::not_found().into_response();
    }
    let query = request.uri().query().unwrap_or_default();
    let actor = request.extensions().get().copied().unwrap_or(Actor::GUEST);
    answer(&site, &actor, export, query, request.headers())
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

async fn answer(
    site: &Site,
    actor: &Actor,
    export: Export,
    query: &str,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let lab = &site.lab;
    match export {
        Export::RunJson(run) => {
            let file = lab.result_file(actor, run).await?;
            let json = json_text(&file).map_err(failed)?;
            Ok(Kind::Json.file(&format!("tokdyno-run-{run}.json"), json))
        }
        Export::RunCsv(run) => {
            let view = lab.run(actor, run).await?;
            let csv = stages::csv(&view);
            Ok(Kind::Csv.file(&format!("tokdyno-run-{run}.csv"), csv))
        }
        Export::RecordsCsv(run) => {
            let csv = Body::from_stream(records::csv(lab, *actor, run).await?);
            Ok(Kind::Csv.file(&format!("tokdyno-run-{run}-records.csv"), csv))
        }
        Export::LaunchLog(launch) => {
            // Engines write what they like into it.
            authorise(actor, Capability::Launch)?;
            let log = lab.launch_log_file(actor, launch).await?;
            let bytes = stream::try_unfold(log, |mut log| async move {
                Ok::<_, LabError>(log.next().await?.map(|bytes| (bytes, log)))
            });
            Ok(Kind::Bytes.file(
                &format!("tokdyno-launch-{launch}.log"),
                Body::from_stream(bytes),
            ))
        }
        Export::RunChart { run, chart, format } => {
            let view = lab.run(actor, run).await?;
            let name = format!("tokdyno-run-{run}-{chart}");
            drawn(view.charts.iter(), &chart, format, &name, query)
        }
        Export::ExperimentChart {
            experiment,
            chart,
            format,
        } => {
            let view = lab.experiment(actor, experiment).await?;
            let charts = view.results.iter().flat_map(|results| &results.charts);
            let name = format!("tokdyno-experiment-{experiment}-{chart}");
            drawn(charts, &chart, format, &name, query)
        }
        Export::CompareChart { chart, format } => {
            let view = lab.compare(actor, &query::compare(query)?).await?;
            let name = format!("tokdyno-compare-{chart}");
            drawn(view.charts.iter(), &chart, format, &name, query)
        }
        Export::BoardChart { chart, format } => {
            let view = lab.board(actor, &query::board(query)).await?;
            let name = format!("tokdyno-board-{chart}");
            drawn(view.chart.iter(), &chart, format, &name, query)
        }
        Export::Frozen {
            slug,
            format: FrozenFormat::Png,
        } => {
            let stored = lab.frozen(actor, slug).await?;
            picture::answer(slug, stored, theme(query), headers).await
        }
        Export::Frozen { slug, format } => frozen(site, actor, slug, format, headers).await,
        Export::FrozenChart {
            slug,
            chart,
            format,
        } => {
            let stored = lab.frozen(actor, slug).await?;
            let name = format!("tokdyno-{slug}-{chart}");
            let charts = stored.comparison.view.charts.iter();
            drawn(charts, &chart, format, &name, query)
        }
    }
}

/// The stored bytes of a frozen comparison: they never change, so they may be kept.
async fn frozen(
    site: &Site,
    actor: &Actor,
    slug: ComparisonSlug,
    format: FrozenFormat,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let stored = site.lab.frozen(actor, slug).await?;
    let tag = format!("\"{}\"", stored.hash);
    let mut response = if is_known(headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let name = format!("tokdyno-{slug}.{}", format.extension());
        match format {
            FrozenFormat::Json => Kind::Json.file(&name, stored.document),
            FrozenFormat::Csv => Kind::Csv.file(&name, stored.csv),
            FrozenFormat::Svg => Kind::Svg.file(&name, stored.svg),
            FrozenFormat::Png => return Err(Problem::not_found()),
        }
    };
    let headers = response.headers_mut();
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    // Previews in chats and mails show the picture.
    headers.insert(
        "cross-origin-resource-policy",
        HeaderValue::from_static("cross-origin"),
    );
    Ok(response)
}

fn drawn<'a>(
    mut charts: impl Iterator<Item = &'a ChartSpec>,
    id: &str,
    format: ChartFormat,
    name: &str,
    query: &str,
) -> Result<Response, Problem> {
    let Some(spec) = charts.find(|spec| spec.id == id) else {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            format!(
                "There is no chart `{id}` here, or there are no figures for it. Open the page and copy the link below the chart."
            ),
        ));
    };
    let name = format!("{name}.{}", format.extension());
    Ok(match format {
        ChartFormat::Csv => Kind::Csv.file(&name, tokdyno_figures::csv(spec).map_err(failed)?),
        ChartFormat::Svg => Kind::Svg.file(&name, tokdyno_figures::svg(spec, theme(query))),
    })
}

fn theme(query: &str) -> Theme {
    if query::has(query, "theme", "dark") {
        Theme::Dark
    } else {
        Theme::Light
    }
}

/// Does the client have what this tag stands for?
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|tags| tags.to_str().ok())
        .any(|tags| tags.split(',').any(|one| one.trim() == tag))
}

fn failed(error: impl std::fmt::Display) -> Problem {
    tracing::error!(%error, "a file could not be written");
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "The file could not be made. Look into the program's log, and report it with what stands there.",
    )
}

/// What a file is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Json,
    Csv,
    Svg,
    Png,
    /// To be saved as it is, whatever it holds.
    Bytes,
}

impl Kind {
    fn file(self, name: &str, content: impl Into<Body>) -> Response {
        let content_type = match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Svg => "image/svg+xml",
            Self::Png => "image/png",
            Self::Bytes => "application/octet-stream",
        };
        let shown = match self {
            Self::Json | Self::Csv | Self::Svg | Self::Png => "inline",
            Self::Bytes => "attachment",
        };
        let mut response = Response::new(content.into());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Shown where a browser can show it, saved under this name otherwise.
        if let Ok(value) = HeaderValue::from_str(&format!("{shown}; filename=\"{name}\"")) {
            headers.insert(CONTENT_DISPOSITION, value);
        }
        response
    }
}
