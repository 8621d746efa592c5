//! *New measurement*: asking an address who it is, and queueing a run.

use leptos::{prelude::*, server_fn::codec::Json};
use tokdyno_domain::{
    ids::RunId,
    views::measure::{EndpointForm, NewRun, ProbeView},
};

use crate::AppError;

/// Asks an address who it is. An address that cannot be measured is an answer, not
/// an error: the reason stands in it.
///
/// # Errors
/// This actor may not probe.
#[server(prefix = "/api/fn", endpoint = "probe", input = Json)]
pub async fn probe(endpoint: EndpointForm) -> Result<ProbeView, AppError> {
    use tokdyno_domain::{
        access::{Capability, authorise},
        endpoint::EndpointUrl,
    };

    let actor = super::context::actor()?;
    authorise(&actor, Capability::ProbeEndpoint)
        .map_err(|error| AppError::new(403, error.to_string()).with_status())?;
    let url: EndpointUrl = match endpoint.url.parse() {
        Ok(url) => url,
        Err(error) => {
            return Ok(ProbeView::Unreachable {
                word: "address".to_owned(),
                reason: error.to_string(),
            });
        }
    };
    // A key of blanks alone is none.
    let key = endpoint
        .api_key
        .as_ref()
        .filter(|key| !key.reveal().trim().is_empty());
    Ok(
        match tokdyno_engines::probe(&url, key, &endpoint.tls).await {
            Ok(report) => ProbeView::Reachable {
                suggested_name: tokdyno_engines::title_of_configuration(&report.info),
                info: Box::new(report.info),
                round_trip_ms: report.round_trip_ms,
                notes: report.notes,
            },
            Err(error) => ProbeView::Unreachable {
                word: error.word().to_owned(),
                reason: error.to_string(),
            },
        },
    )
}

/// Puts a measurement into the queue.
///
/// # Errors
/// A field that cannot be used, the database is away, or this actor may not measure.
#[server(prefix = "/api/fn", endpoint = "queue_run", input = Json)]
pub async fn queue_run(new_run: NewRun) -> Result<RunId, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.queue_run(&actor, &new_run)
        .await
        .map_err(super::context::answer)
}
