//! What the page knows of its run, and how it hears of news.

use leptos::prelude::*;
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
    refresh::Refreshed,
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
    fresh: Refreshed<RunView>,
}

impl RunData {
    /// Begins with what the server told at first.
    pub(super) fn new(view: RunView) -> Self {
        let (id, progress) = (view.summary.id, view.progress.clone());
        let fresh = Refreshed::new(view);
        Self {
            id,
            progress: RwSignal::new(progress),
            view: fresh.view,
            samples: RwSignal::new(Vec::new()),
            link: RwSignal::new(Link::default()),
            trouble: fresh.trouble,
            fresh,
        }
    }

    /// A part of the view that changes only when its value does.
    pub(super) fn part<T: PartialEq + Send + Sync + 'static>(
        self,
        of: impl Fn(&RunView) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        self.fresh.part(of)
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
        self.fresh.refresh(
            move || api::run(self.id),
            move |view| {
                if view.summary.state.is_over() {
                    self.progress.try_set(None);
                } else if view.progress.is_some() {
                    self.progress.try_set(view.progress.clone());
                }
            },
        );
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
