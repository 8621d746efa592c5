//! What the page knows of its run, and how it hears of news.

use leptos::{prelude::*, task::spawn_local};
use tokdyno_domain::{
    ids::RunId,
    live::{LiveEvent, LiveKind},
    meter::Progress,
    run::RunState,
    views::run::{RunSummary, RunView},
};

use crate::{
    AppError, api,
    live::{self, Link},
};

/// Samples the small live curve keeps: two minutes at a sample a second.
const SAMPLES: usize = 120;
/// Shortest distance between two samples, in seconds.
const SAMPLE_EVERY_S: f64 = 1.0;

/// The run as the page knows it.
#[derive(Clone, Copy)]
pub(super) struct RunData {
    /// Which run.
    pub(super) id: RunId,
    /// What the server told last.
    pub(super) view: RwSignal<RunView>,
    /// How far it is, by the latest event.
    pub(super) progress: RwSignal<Option<Progress>>,
    /// Tokens per second over the last minutes: seconds since the start, and tok/s.
    /// Kept by this page alone.
    pub(super) samples: RwSignal<Vec<(f64, f64)>>,
    /// How the page hears of news.
    pub(super) link: RwSignal<Link>,
    /// Why the last refresh did not work.
    pub(super) trouble: RwSignal<Option<AppError>>,
    busy: StoredValue<bool>,
    once_more: StoredValue<bool>,
}

impl RunData {
    /// Begins with what the server told at first.
    pub(super) fn new(view: RunView) -> Self {
        Self {
            id: view.summary.id,
            progress: RwSignal::new(view.progress.clone()),
            view: RwSignal::new(view),
            samples: RwSignal::new(Vec::new()),
            link: RwSignal::new(Link::default()),
            trouble: RwSignal::new(None),
            busy: StoredValue::new(false),
            once_more: StoredValue::new(false),
        }
    }

    /// A part of the view that changes only when its value does.
    pub(super) fn part<T: PartialEq + Send + Sync + 'static>(
        self,
        of: impl Fn(&RunView) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        Memo::new(move |_| self.view.with(&of))
    }

    /// A part of the summary that changes only when its value does.
    pub(super) fn summary<T: PartialEq + Send + Sync + 'static>(
        self,
        of: impl Fn(&RunSummary) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        self.part(move |view| of(&view.summary))
    }

    /// Where the run stands.
    pub(super) fn state(self) -> Memo<RunState> {
        self.summary(|summary| summary.state)
    }

    /// Follows the run until it is over.
    pub(super) fn follow(self) {
        let state = self.state();
        let wanted = Signal::derive(move || !state.get().is_over());
        let link = live::follow(
            Some(self.id),
            wanted,
            move |event| self.take(event),
            move || self.refresh(),
        );
        Effect::new(move |_| self.link.set(link.get()));
    }

    /// Asks the server again. Several requests in short order become one or two.
    pub(super) fn refresh(self) {
        if self.busy.try_get_value().unwrap_or(true) {
            self.once_more.try_set_value(true);
            return;
        }
        self.busy.try_set_value(true);
        spawn_local(async move {
            loop {
                self.once_more.try_set_value(false);
                let answer = api::run(self.id).await;
                // Whoever has left the page meanwhile has taken its signals away.
                if self.view.is_disposed() {
                    return;
                }
                match answer {
                    Ok(view) => {
                        if view.summary.state.is_over() {
                            self.progress.try_set(None);
                        } else if view.progress.is_some() {
                            self.progress.try_set(view.progress.clone());
                        }
                        self.view.try_set(view);
                        self.trouble.try_set(None);
                    }
                    Err(error) => {
                        self.trouble.try_set(Some(error));
                    }
                }
                if self.once_more.try_get_value() != Some(true) {
                    break;
                }
            }
            self.busy.try_set_value(false);
        });
    }

    fn take(self, event: LiveEvent) {
        if event.run != self.id {
            return;
        }
        match event.kind {
            LiveKind::Progress(progress) => {
                self.sample(&progress);
                self.progress.try_set(Some(progress));
            }
            LiveKind::Stage { .. } | LiveKind::State { .. } => self.refresh(),
        }
    }

    fn sample(self, progress: &Progress) {
        let Some(speed) = progress.current_tps else {
            return;
        };
        self.samples.try_update(|samples| {
            let due = samples
                .last()
                .is_none_or(|(at, _)| progress.elapsed_s - at >= SAMPLE_EVERY_S);
            if due {
                if samples.len() >= SAMPLES {
                    samples.remove(0);
                }
                samples.push((progress.elapsed_s, speed));
            }
        });
    }
}
