//! What the page knows of its experiment, and how it hears of news.

use std::time::Duration;

use leptos::prelude::*;
use tokdyno_domain::{
    experiment::{ExperimentState, results::ExperimentResults},
    ids::ExperimentId,
    views::{
        ChartView,
        experiments::{ExperimentSummary, ExperimentView},
    },
};

use crate::{
    api,
    refresh::{Refreshed, every},
};

/// How often the server is asked while the experiment is not over.
const REFRESH: Duration = Duration::from_secs(2);

/// The experiment as the page knows it.
#[derive(Clone, Copy)]
pub(super) struct ExperimentData {
    /// Which experiment.
    pub(super) id: ExperimentId,
    /// What the server told last.
    pub(super) fresh: Refreshed<ExperimentView<ChartView>>,
}

impl ExperimentData {
    /// Begins with what the server told at first.
    pub(super) fn new(view: ExperimentView<ChartView>) -> Self {
        Self {
            id: view.summary.id,
            fresh: Refreshed::new(view),
        }
    }

    /// A part of the view that changes only when its value does.
    pub(super) fn part<T: PartialEq + Send + Sync + 'static>(
        self,
        of: impl Fn(&ExperimentView<ChartView>) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        self.fresh.part(of)
    }

    /// A part of the summary that changes only when its value does.
    pub(super) fn summary<T: PartialEq + Send + Sync + 'static>(
        self,
        of: impl Fn(&ExperimentSummary) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        self.part(move |view| of(&view.summary))
    }

    /// A part of the results, blank before the first figure.
    pub(super) fn found<T: PartialEq + Default + Send + Sync + 'static>(
        self,
        of: impl Fn(&ExperimentResults<ChartView>) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        self.part(move |view| view.results.as_ref().map(&of).unwrap_or_default())
    }

    /// Where the experiment stands.
    pub(super) fn state(self) -> Memo<ExperimentState> {
        self.summary(|summary| summary.state)
    }

    /// Asks again and again until it is over.
    pub(super) fn follow(self) {
        let state = self.state();
        let wanted = Signal::derive(move || !state.get().is_over());
        every(REFRESH, wanted, move || self.refresh());
    }

    /// Asks the server again.
    pub(super) fn refresh(self) {
        self.fresh.refresh(move || api::experiment(self.id), |_| ());
    }
}
