//! What the figures of an experiment say. Pure: the same findings give the same results,
//! and the rules are those of [`crate::statistics`] and [`crate::verdict`].
//!
//! Everything is a ratio taken within blocks and judged over launches. What is judged
//! together is a family, by figure: the cells against the first one, the levels of the
//! factors against their first, the leader against the others, the steps of an ablation.
//! Within a family any false verdict is as unlikely as one alone; between families and
//! figures nothing is corrected. `docs/experiments.md` explains the results to readers.

mod attribution;
mod best;
mod charts;
mod contest;
mod decision;
mod effects;
mod findings;
mod heat;
mod lookup;
mod metric;
mod table;

use serde::{Deserialize, Serialize};

use self::table::Table;
pub use self::{
    attribution::{Attribution, Interaction, Part, StepAttribution, StepStanding},
    best::{Best, Front, FrontCell, Rival},
    decision::ByFigures,
    effects::{FactorEffects, LevelEffect},
    findings::{Doubt, EntryState, Findings, Standing},
    heat::{Facet, HeatEntry, HeatMap, Layout},
};
use crate::{chart::ChartSpec, statistics::ANALYSIS_VERSION};

/// What an experiment found, as far as it has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResults<C = ChartSpec> {
    /// The answers, in plain sentences.
    pub headline: Vec<String>,
    /// How far it has come, and at which look it is judged.
    pub standing: Standing,
    /// Every figure over all cells, those that are judged first.
    pub heat_maps: Vec<HeatMap>,
    /// What each level of a factor does; empty without factors. Of a full grid these are
    /// main effects, of a plan that varies one thing at a time the level against the
    /// base.
    pub effects: Vec<FactorEffects>,
    /// Which cell is best, by each figure that is judged.
    pub best: Vec<Best>,
    /// The cells that no other one dominates.
    pub front: Option<Front>,
    /// What each step of an ablation is worth; empty for other designs.
    pub attributions: Vec<Attribution>,
    /// Charts.
    pub charts: Vec<C>,
    /// Rules by which verdicts were reached.
    pub analysis_version: u32,
}

/// What the findings say.
#[must_use]
pub fn results(findings: &Findings<'_>) -> ExperimentResults {
    let standing = Standing::of(findings);
    let tables: Vec<Table<'_>> = metric::keys(findings.figures)
        .iter()
        .map(|key| Table::of(*findings, standing, key))
        .collect();
    let judged = || tables.iter().filter(|table| metric::is_judged(&table.key));
    let best: Vec<Best> = judged().filter_map(best::best).collect();
    let attributions: Vec<Attribution> = judged().filter_map(attribution::attribution).collect();
    let front = best::front_of(&tables);
    let mut headline: Vec<String> = standing.sentence().into_iter().collect();
    headline.extend(best.iter().map(|best| best.sentence.clone()));
    headline.extend(attributions.iter().map(|found| found.sentence.clone()));
    let charts = front
        .iter()
        .map(|front| charts::front_chart(findings, front))
        .chain(
            attributions
                .iter()
                .map(|found| charts::attribution_chart(findings, found)),
        )
        .filter(|chart| !chart.is_empty())
        .collect();
    ExperimentResults {
        headline,
        standing,
        heat_maps: tables.iter().map(heat::heat_map).collect(),
        effects: judged().flat_map(effects::effects).collect(),
        best,
        front,
        attributions,
        charts,
        analysis_version: ANALYSIS_VERSION,
    }
}

impl<C> ExperimentResults<C> {
    /// The same results with every chart drawn otherwise.
    #[must_use]
    pub fn map_charts<D>(self, draw: impl FnMut(C) -> D) -> ExperimentResults<D> {
        ExperimentResults {
            charts: self.charts.into_iter().map(draw).collect(),
            headline: self.headline,
            standing: self.standing,
            heat_maps: self.heat_maps,
            effects: self.effects,
            best: self.best,
            front: self.front,
            attributions: self.attributions,
            analysis_version: self.analysis_version,
        }
    }
}

#[cfg(test)]
mod tests;
