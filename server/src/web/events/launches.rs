//! The news of launches: of one, or of all.
//!
//! They are not kept: a reader who comes back fetches the launch again. While an
//! engine loads its log grows many times a second, which matters to who reads that
//! log; the list of all hears of it now and then.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use axum::response::sse::Event;
use futures::{Stream, stream};
use serde::{Deserialize, Deserializer, de};
use tokdyno_domain::{ids::LaunchId, launch::LaunchState, live::LaunchEvent};
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// How often the list of all launches hears that one went on in the same state.
const NOW_AND_THEN: Duration = Duration::from_secs(2);

/// `launches=all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct All;

impl<'de> Deserialize<'de> for All {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        if word == "all" {
            Ok(Self)
        } else {
            Err(de::Error::custom("`launches` is `all`"))
        }
    }
}

/// Who listens.
pub(super) enum Reader {
    /// To one launch: everything.
    One {
        /// Which.
        launch: LaunchId,
        /// Where it stands, as far as was heard.
        state: LaunchState,
        /// What it stopped is brought back afterwards, as a launch of its own.
        brings_back: bool,
    },
    /// To all: when each was last heard of, and in which state.
    All(HashMap<LaunchId, (LaunchState, Instant)>),
}

impl Reader {
    /// Who hears of all.
    pub(super) fn of_all() -> Self {
        Self::All(HashMap::new())
    }

    /// What the reader hears of this event, at this moment.
    fn hears(&mut self, event: LaunchEvent, now: Instant) -> Option<LaunchEvent> {
        match self {
            Self::One { launch, state, .. } if *launch == event.launch => {
                *state = event.state;
                Some(event)
            }
            // How bringing back goes is a step of this one. Which launch does that is
            // not known before it begins, but it is a later one.
            Self::One {
                launch,
                state,
                brings_back: true,
            } if event.launch > *launch && event.log_size.is_none() => Some(LaunchEvent {
                launch: *launch,
                state: *state,
                log_size: None,
            }),
            Self::One { .. } => None,
            Self::All(heard) if event.state.is_over() => {
                heard.remove(&event.launch);
                Some(event)
            }
            Self::All(heard) => {
                let wanted = event.log_size.is_none()
                    || heard.get(&event.launch).is_none_or(|(state, at)| {
                        *state != event.state || now.duration_since(*at) >= NOW_AND_THEN
                    });
                wanted.then(|| {
                    heard.insert(event.launch, (event.state, now));
                    event
                })
            }
        }
    }
}

/// The events for this reader. A reader that falls behind is cut off.
pub(super) fn following(reader: Reader, live: Receiver<LaunchEvent>) -> impl Stream<Item = Event> {
    stream::unfold((reader, live), |(mut reader, mut live)| async move {
        loop {
            let event = match live.recv().await {
                Ok(event) => event,
                Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
            };
            if let Some(news) = reader.hears(event, Instant::now())
                && let Ok(data) = serde_json::to_string(&news)
            {
                return Some((Event::default().data(data), (reader, live)));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(launch: i64, state: LaunchState, log_size: Option<u64>) -> LaunchEvent {
        LaunchEvent {
            launch: LaunchId(launch),
            state,
            log_size,
        }
    }

    fn of_one(brings_back: bool) -> Reader {
        Reader::One {
            launch: LaunchId(7),
            state: LaunchState::Loading,
            brings_back,
        }
    }

    #[test]
    fn a_reader_of_one_launch_hears_all_of_it_and_of_no_other() {
        let now = Instant::now();
        let mut reader = of_one(false);
        for size in 1..4 {
            let growing = event(7, LaunchState::Loading, Some(size));
            assert_eq!(reader.hears(growing.clone(), now), Some(growing));
        }
        assert_eq!(reader.hears(event(8, LaunchState::Ready, None), now), None);
    }

    #[test]
    fn bringing_back_is_news_of_the_launch_that_stopped_it() {
        let now = Instant::now();
        let mut reader = of_one(true);
        let over = event(7, LaunchState::Stopped, None);
        assert_eq!(reader.hears(over.clone(), now), Some(over.clone()));
        let back = event(9, LaunchState::Ready, None);
        assert_eq!(reader.hears(back, now), Some(over));
        for other in [
            event(9, LaunchState::Loading, Some(5)),
            event(3, LaunchState::Ready, None),
        ] {
            assert_eq!(reader.hears(other, now), None);
        }
    }

    #[test]
    fn a_reader_of_all_hears_of_a_growing_log_now_and_then() {
        let now = Instant::now();
        let mut reader = Reader::of_all();
        let mut hears = |event, at| reader.hears(event, at).is_some();
        let growing = event(7, LaunchState::Loading, Some(1));
        assert!(hears(growing.clone(), now));
        assert!(!hears(growing, now));
        assert!(hears(event(8, LaunchState::Loading, Some(1)), now));
        assert!(hears(event(7, LaunchState::Ready, Some(2)), now));
        assert!(hears(event(7, LaunchState::Ready, None), now));
        let later = now + NOW_AND_THEN;
        assert!(hears(event(7, LaunchState::Ready, Some(3)), later));
        assert!(hears(event(7, LaunchState::Stopped, None), now));
        let Reader::All(heard) = reader else {
            panic!("it hears of all");
        };
        assert!(!heard.contains_key(&LaunchId(7)), "nothing is kept of it");
    }

    #[tokio::test]
    async fn a_slow_reader_is_cut_off() {
        use futures::StreamExt;

        let (sender, live) = tokio::sync::broadcast::channel(2);
        let stream = following(of_one(false), live);
        futures::pin_mut!(stream);
        let send = || {
            sender
                .send(event(7, LaunchState::Ready, None))
                .expect("sent");
        };
        send();
        assert!(stream.next().await.is_some());
        (0..5).for_each(|_| send());
        assert!(stream.next().await.is_none());
    }
}
