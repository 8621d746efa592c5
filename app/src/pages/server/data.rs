//! What the page knows of its launch, and how it hears of news.

use std::time::Duration;

use leptos::prelude::*;
use tokdyno_domain::{
    ids::LaunchId,
    launch::LaunchState,
    live::LaunchEvent,
    views::servers::{LaunchSummary, LaunchView},
};

use crate::{
    AppError, api,
    live::{self, Link},
    refresh::Refreshed,
};

/// Shortest time between two questions that a growing log causes.
const REFRESH: Duration = Duration::from_millis(1200);

/// The launch as the page knows it.
#[derive(Clone, Copy)]
pub(super) struct LaunchData {
    /// Which launch.
    pub(super) id: LaunchId,
    /// What the server told last.
    pub(super) view: RwSignal<LaunchView>,
    /// Bytes of log there are, by the latest news.
    pub(super) log_size: RwSignal<u64>,
    /// How the page hears of news.
    pub(super) link: RwSignal<Link>,
    /// Why the last refresh did not work.
    pub(super) trouble: RwSignal<Option<AppError>>,
    fresh: Refreshed<LaunchView>,
    due: StoredValue<bool>,
}

impl LaunchData {
    /// Begins with what the server told at first.
    pub(super) fn new(view: LaunchView) -> Self {
        let (id, log_size) = (view.summary.id, view.log_size);
        let fresh = Refreshed::new(view);
        Self {
            id,
            log_size: RwSignal::new(log_size),
            view: fresh.view,
            link: RwSignal::new(Link::default()),
            trouble: fresh.trouble,
            fresh,
            due: StoredValue::new(false),
        }
    }

    /// A part of the view that changes only when its value does.
    pub(super) fn part<T: PartialEq + Send + Sync + 'static>(
        self,
        of: impl Fn(&LaunchView) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        self.fresh.part(of)
    }

    /// A part of the summary that changes only when its value does.
    pub(super) fn summary<T: PartialEq + Send + Sync + 'static>(
        self,
        of: impl Fn(&LaunchSummary) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        self.part(move |view| of(&view.summary))
    }

    /// Where the launch stands.
    pub(super) fn state(self) -> Memo<LaunchState> {
        self.summary(|summary| summary.state)
    }

    /// Follows the launch until it is over and all its steps are done: restoring what
    /// ran before comes after its own end.
    pub(super) fn follow(self) {
        let wanted = self.part(|view| {
            use tokdyno_domain::views::servers::StepState;

            !view.summary.state.is_over()
                || view
                    .steps
                    .iter()
                    .any(|step| matches!(step.state, StepState::Now | StepState::ToCome))
        });
        let link = live::follow_launches(
            Some(self.id),
            wanted.into(),
            move |event| self.take(&event),
            move || self.refresh(),
        );
        Effect::new(move |_| self.link.set(link.get()));
    }

    /// Asks the server again. Several requests in short order become one or two.
    pub(super) fn refresh(self) {
        self.fresh.refresh(
            move || api::launch(self.id),
            move |view| self.grow(view.log_size),
        );
    }

    fn take(self, event: &LaunchEvent) {
        if event.launch != self.id {
            return;
        }
        let same = self
            .view
            .with_untracked(|view| view.summary.state == event.state);
        match event.log_size {
            Some(size) if same => {
                self.grow(size);
                // The line that tells the stage comes with the log. A server that is
                // ready writes many lines that tell nothing.
                if event.state != LaunchState::Ready {
                    self.refresh_soon();
                }
            }
            _ => self.refresh(),
        }
    }

    fn grow(self, size: u64) {
        if self
            .log_size
            .try_get_untracked()
            .is_some_and(|known| known < size)
        {
            self.log_size.try_set(size);
        }
    }

    fn refresh_soon(self) {
        if self.due.try_get_value().unwrap_or(true) {
            return;
        }
        self.due.set_value(true);
        set_timeout(
            move || {
                if self.due.try_set_value(false).is_none() {
                    self.refresh();
                }
            },
            REFRESH,
        );
    }
}
