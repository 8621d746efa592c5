//! What an open page hears: `GET /events`, a stream of live events.
//!
//! With `?run=ID` all events of that run; without it the changes of state of all
//! runs. Each carries the id `run:seq`; a browser that comes back with the last one
//! it saw (`Last-Event-ID`) first gets what it missed of that run. A reader that
//! falls behind is cut off rather than given a stream with holes: its browser comes
//! back by itself. With `?launch=ID` or `?launches=all` it carries the news of
//! launches instead.

mod launches;

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::{Query, State, rejection::QueryRejection},
    response::sse::{Event, KeepAlive, Sse},
};
use futures::{Stream, StreamExt, stream, stream::BoxStream};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    ids::{LaunchId, RunId},
    live::{LiveEvent, LiveKind},
};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use self::launches::All;
use super::{Problem, Site};
use crate::safety::who::Who;

const KEEP_ALIVE: Duration = Duration::from_secs(15);
const COME_BACK_AFTER: Duration = Duration::from_secs(2);

/// What is listened to; nothing means all runs.
#[derive(Debug, Deserialize)]
pub(crate) struct Which {
    run: Option<RunId>,
    launch: Option<LaunchId>,
    launches: Option<All>,
}

pub(crate) async fn events(
    State(site): State<Site>,
    who: Who,
    which: Result<Query<Which>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    authorise(&who.actor, Capability::Read)?;
    let news = match readable(which)? {
        Which {
            launch: None,
            launches: None,
            run,
        } => of_runs(&site, &who.actor, run, &headers).await?,
        Which { launch, .. } => of_launches(&site, &who.actor, launch).await?,
    };
    let greeting = stream::once(async { Event::default().retry(COME_BACK_AFTER).comment("open") });
    let events = greeting.chain(news).take_until(site.ending.come()).map(Ok);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

async fn of_runs(
    site: &Site,
    actor: &Actor,
    run: Option<RunId>,
    headers: &HeaderMap,
) -> Result<BoxStream<'static, Event>, Problem> {
    // Subscribed before the past is read, so that nothing falls between the two.
    let live = site.lab.live(actor)?;
    let seen = last_seen(headers, run)?;
    let past = match run {
        // Also refuses a run that is not there for this actor.
        Some(run) => site.lab.events_after(actor, run, seen).await?,
        None => Vec::new(),
    };
    let reader = Reader {
        run,
        seen: seen.unwrap_or(0),
    };
    Ok(following(reader, past, live).boxed())
}

async fn of_launches(
    site: &Site,
    actor: &Actor,
    launch: Option<LaunchId>,
) -> Result<BoxStream<'static, Event>, Problem> {
    let live = site.lab.hear_launches(actor)?;
    let reader = match launch {
        Some(launch) => {
            // Also refuses a launch that is not there for this actor.
            let view = site.lab.launch(actor, launch).await?;
            launches::Reader::One {
                launch,
                state: view.summary.state,
                brings_back: view.plan.restore.is_some(),
            }
        }
        None => launches::Reader::of_all(),
    };
    Ok(launches::following(reader, live).boxed())
}

fn readable(which: Result<Query<Which>, QueryRejection>) -> Result<Which, Problem> {
    which.map(|Query(which)| which).map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "The address does not read `/events?run=NUMBER`, `/events?launch=NUMBER` or `/events?launches=all`. Correct it, or leave the question out to hear of all runs.",
        )
    })
}

/// The sequence number after which to go on, if the browser names an event of this run.
fn last_seen(headers: &HeaderMap, run: Option<RunId>) -> Result<Option<i64>, Problem> {
    let (Some(run), Some(id)) = (run, headers.get("last-event-id")) else {
        return Ok(None);
    };
    let unreadable = || {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "The header Last-Event-ID does not read `run:number`. Leave it out to begin anew.",
        )
    };
    let (of, seq) = id
        .to_str()
        .ok()
        .and_then(|id| id.split_once(':'))
        .ok_or_else(unreadable)?;
    let of: RunId = of.parse().map_err(|_| unreadable())?;
    let seq: i64 = seq.parse().map_err(|_| unreadable())?;
    Ok((of == run).then_some(seq))
}

/// Who listens, and how far it has come.
struct Reader {
    run: Option<RunId>,
    seen: i64,
}

impl Reader {
    /// Is this event for the reader and new to it? Progress is never old.
    fn wants(&mut self, event: &LiveEvent) -> bool {
        match (self.run, &event.kind) {
            (None, kind) => matches!(kind, LiveKind::State { .. }),
            (Some(run), _) if run != event.run => false,
            (Some(_), LiveKind::Progress(_)) => true,
            (Some(_), _) => {
                let new = event.seq > self.seen;
                self.seen = self.seen.max(event.seq);
                new
            }
        }
    }
}

fn following(
    reader: Reader,
    past: Vec<LiveEvent>,
    live: Receiver<LiveEvent>,
) -> impl Stream<Item = Event> {
    let past = past.into_iter().collect::<std::collections::VecDeque<_>>();
    stream::unfold(
        (reader, past, live),
        |(mut reader, mut past, mut live)| async move {
            loop {
                let event = match past.pop_front() {
                    Some(event) => event,
                    None => match live.recv().await {
                        Ok(event) => event,
                        Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
                    },
                };
                if reader.wants(&event)
                    && let Ok(data) = serde_json::to_string(&event)
                {
                    let id = format!("{}:{}", event.run, event.seq);
                    return Some((Event::default().id(id).data(data), (reader, past, live)));
                }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::{
        meter::{Phase, Progress},
        run::RunState,
    };

    use super::*;

    fn state(run: i64, seq: i64) -> LiveEvent {
        LiveEvent {
            run: RunId(run),
            seq,
            kind: LiveKind::State {
                state: RunState::Running,
            },
        }
    }

    fn progress(run: i64, seq: i64) -> LiveEvent {
        LiveEvent {
            run: RunId(run),
            seq,
            kind: LiveKind::Progress(Progress {
                stage: 0,
                stages: 1,
                phase: Phase::Measuring,
                done: 1,
                failed: 0,
                planned: None,
                in_flight: 1,
                current_tps: None,
                elapsed_s: 1.0,
                left_s: None,
            }),
        }
    }

    #[test]
    fn a_run_reader_gets_each_event_of_its_run_once() {
        let mut reader = Reader {
            run: Some(RunId(1)),
            seen: 2,
        };
        assert!(!reader.wants(&state(1, 2)), "seen before");
        assert!(reader.wants(&progress(1, 2)), "progress is never old");
        assert!(reader.wants(&state(1, 3)));
        assert!(!reader.wants(&state(1, 3)), "twice");
        assert!(!reader.wants(&state(2, 9)), "another run");
    }

    #[test]
    fn a_reader_of_all_runs_gets_states_alone() {
        let mut reader = Reader { run: None, seen: 0 };
        assert!(reader.wants(&state(1, 5)) && reader.wants(&state(2, 1)));
        assert!(!reader.wants(&progress(1, 6)));
    }

    #[test]
    fn a_run_that_is_no_number_is_explained() {
        let which =
            |address: &'static str| readable(Query::try_from_uri(&http::Uri::from_static(address)));
        assert_eq!(which("/events?run=7").expect("read").run, Some(RunId(7)));
        assert_eq!(which("/events").expect("read").run, None);
        let launch = which("/events?launch=3").expect("read");
        assert_eq!(launch.launch, Some(LaunchId(3)));
        assert!(
            which("/events?launches=all")
                .expect("read")
                .launches
                .is_some()
        );
        assert!(which("/events?launches=some").is_err());
        let response = axum::response::IntoResponse::into_response(
            which("/events?run=abc").expect_err("no number"),
        );
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn the_last_seen_event_must_be_of_the_same_run() {
        let mut headers = HeaderMap::new();
        let seen = |headers: &HeaderMap| last_seen(headers, Some(RunId(7)));
        assert_eq!(seen(&headers), Ok(None));
        for (id, expected) in [("7:12", Ok(Some(12))), ("8:12", Ok(None))] {
            headers.insert("last-event-id", id.parse().expect("a value"));
            assert_eq!(seen(&headers), expected);
        }
        for id in ["12", "x:1", "7:"] {
            headers.insert("last-event-id", id.parse().expect("a value"));
            assert!(seen(&headers).is_err(), "{id}");
        }
    }

    #[tokio::test]
    async fn the_past_comes_first_and_a_slow_reader_is_cut_off() {
        let (sender, live) = tokio::sync::broadcast::channel(2);
        let reader = Reader {
            run: Some(RunId(1)),
            seen: 0,
        };
        for seq in 2..=3 {
            sender.send(state(1, seq)).expect("sent");
        }
        let stream = following(reader, vec![state(1, 1), state(1, 2)], live);
        futures::pin_mut!(stream);
        // 1 and 2 from the past, 2 not again, then 3.
        for _ in 0..3 {
            assert!(stream.next().await.is_some());
        }
        for seq in 4..=9 {
            sender.send(state(1, seq)).expect("sent");
        }
        assert!(stream.next().await.is_none(), "fell behind");
    }
}
