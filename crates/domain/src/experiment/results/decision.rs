//! Whether a cell needs no more launches.

use super::{
    super::{
        figures::FigureKey,
        settle::{Decision, Look},
    },
    attribution::step_pairs,
    findings::{Findings, Standing},
    metric,
    table::Table,
};
use crate::statistics::Looks;

/// Decides at a declared look by the figures: a cell is settled if it is told apart from
/// the first cell, or shown to be alike within the effect that matters, by each figure
/// that is judged. In an ablation the same is asked of every step that it is a part of.
///
/// Every pair is judged at the look's confidence, corrected for all pairs of its family
/// as planned (Bonferroni). Holm's procedure at a later look can only be milder, so what
/// was settled stays so.
#[derive(Debug, Clone)]
pub struct ByFigures<'a> {
    findings: Findings<'a>,
    keys: Vec<FigureKey>,
}

impl<'a> ByFigures<'a> {
    /// Over what was measured so far.
    #[must_use]
    pub fn new(findings: Findings<'a>) -> Self {
        let keys = metric::keys(findings.figures)
            .into_iter()
            .filter(metric::is_judged)
            .collect();
        Self { findings, keys }
    }

    fn is_decided(&self, table: &Table<'_>, (one, other): (u32, u32), error: f64) -> bool {
        if table.objection(&[one, other]).is_some() {
            return false;
        }
        let near = self.findings.spec.relevant_effect.ln_1p();
        table
            .contest(one, other)
            .estimate()
            .and_then(|estimate| estimate.ends(1.0 - error))
            .is_some_and(|(low, high)| low > 0.0 || high < 0.0 || low.abs().max(high.abs()) < near)
    }
}

impl Decision for ByFigures<'_> {
    fn is_settled(&mut self, cell: u32, look: Look) -> bool {
        let Ok(looks) = Looks::new(look.of, look.number) else {
            return false;
        };
        let standing = Standing {
            looks: Some(looks),
            blocks_before: Some(look.blocks),
            ..Standing::of(&self.findings)
        };
        let others = self.findings.cells.len().saturating_sub(1).max(1);
        !self.keys.is_empty()
            && self.keys.iter().all(|key| {
                let table = Table::of(self.findings, standing, key);
                let steps = step_pairs(&table);
                let step_error = looks.error() / steps.len().max(1) as f64;
                self.is_decided(&table, (0, cell), looks.error() / others as f64)
                    && steps
                        .iter()
                        .filter(|(from, to)| *from == cell || *to == cell)
                        .all(|pair| self.is_decided(&table, *pair, step_error))
            })
    }
}
