//! An ablation: what each step from A to B is worth.

mod sentence;

use serde::{Deserialize, Serialize};

use super::{
    super::{
        ablation::{Step, StepSet},
        design::Design,
        figures::FigureKey,
    },
    contest::{Contest, Entrant, judge},
    lookup::find_steps,
    table::Table,
};
use crate::{
    statistics::{Launch, LogShare, RatioInterval, log_share},
    verdict::{Verdict, VerdictKind},
};

/// What the steps of an ablation are worth, by one figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// The figure.
    pub key: FigureKey,
    /// From A to B, a question of its own.
    pub total: Part,
    /// The steps in the order of the chain.
    pub steps: Vec<StepAttribution>,
    /// Whether steps depend on each other.
    pub interactions: Vec<Interaction>,
    /// The answer.
    pub sentence: String,
}

/// What one step is worth, three ways. All ways of all steps are one family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepAttribution {
    /// The step.
    pub step: String,
    /// Added to the steps before it, in the order of the chain. These ratios multiply to
    /// the total.
    pub added: Option<Part>,
    /// Alone, on A.
    pub alone: Option<Part>,
    /// Left out of B: B against B without it.
    pub left_out: Option<Part>,
    /// What may be said of it.
    pub standing: StepStanding,
}

/// What may be said of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStanding {
    /// It changes the figure beyond doubt, where the chain adds it.
    Changes,
    /// However it is measured, its change is within the effect that matters.
    Nothing,
    /// What it does depends on the other steps, beyond doubt.
    Depends,
    /// The data do not tell.
    NotEstablished,
}

/// The ratio of two cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The cell without.
    pub from: u32,
    /// The cell with.
    pub to: u32,
    /// The ratio; none without figures.
    pub ratio: Option<RatioInterval>,
    /// Confidence of its interval: of a verdict, the level at which it was tested.
    pub confidence: Option<f64>,
    /// Whether there is a difference.
    pub verdict: Verdict,
    /// The share of the total's logarithm; none where the total may be nothing.
    pub share: Option<LogShare>,
}

/// Whether a step does the same alone and with all the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interaction {
    /// The step; of two steps it is the same for both, and stated once.
    pub step: String,
    /// What it does with all the others over what it does alone. *Better* and *worse*
    /// mean that the order of the steps matters.
    pub verdict: Verdict,
}

impl Interaction {
    /// Does the order matter, beyond doubt?
    #[must_use]
    pub const fn matters(&self) -> bool {
        matches!(self.verdict.kind, VerdictKind::Better | VerdictKind::Worse)
    }
}

/// From where to where, of one step.
#[derive(Debug, Clone, Copy, Default)]
struct Ways {
    added: Option<(u32, u32)>,
    alone: Option<(u32, u32)>,
    left_out: Option<(u32, u32)>,
}

/// None unless it is an ablation whose A and B are cells.
pub(super) fn attribution(table: &Table<'_>) -> Option<Attribution> {
    let steps = steps(table)?;
    let (a, b) = ends(table)?;
    let ways: Vec<Ways> = ways(table, steps);
    let confidence = table.standing.confidence();
    let part = |(from, to): (u32, u32), contest: &Contest, verdict: Verdict| {
        let tested = verdict.across_launches.zip(verdict.confidence);
        let ratio = tested.or_else(|| Some((contest.estimate()?.ratio(confidence), confidence)));
        Part {
            from,
            to,
            ratio: ratio.map(|(ratio, _)| ratio),
            confidence: ratio.map(|(_, confidence)| confidence),
            share: share(table, (from, to), (a, b), confidence),
            verdict,
        }
    };
    let whole = [table.contest(a, b)];
    let total = judge(table, "from A to B", &whole)
        .pop()
        .zip(whole.first())
        .map(|(verdict, contest)| part((a, b), contest, verdict))?;
    let pairs = step_pairs(table);
    let contests = contests(table, &pairs);
    let verdicts = judge(table, "every step, added, alone and left out", &contests);
    let parts: Vec<Part> = pairs
        .iter()
        .zip(contests.iter().zip(verdicts))
        .map(|(pair, (contest, verdict))| part(*pair, contest, verdict))
        .collect();
    let of = |pair: Option<(u32, u32)>| -> Option<Part> {
        let pair = pair?;
        parts
            .iter()
            .find(|part| (part.from, part.to) == pair)
            .cloned()
    };
    let interactions = interactions(table, steps, &ways);
    let count = steps.len();
    let steps = steps
        .iter()
        .zip(&ways)
        .map(|(step, ways)| {
            let mut step = StepAttribution {
                step: step.label.clone(),
                added: of(ways.added),
                alone: of(ways.alone),
                left_out: of(ways.left_out),
                standing: StepStanding::NotEstablished,
            };
            step.standing = standing(&step, &interactions, count);
            step
        })
        .collect();
    let mut attribution = Attribution {
        key: table.key.clone(),
        total,
        steps,
        interactions,
        sentence: String::new(),
    };
    attribution.sentence = sentence::sentence(table, &attribution);
    Some(attribution)
}

fn steps<'a>(table: &Table<'a>) -> Option<&'a [Step]> {
    match &table.findings.spec.design {
        Design::Ablation { steps } => Some(steps),
        _ => None,
    }
}

/// A and B.
fn ends(table: &Table<'_>) -> Option<(u32, u32)> {
    let steps = steps(table)?;
    let count = u32::try_from(steps.len()).ok()?;
    let cell = |set: StepSet| find_steps(table.findings.cells, steps, set);
    Some((cell(StepSet::NONE)?, cell(StepSet::all(count))?))
}

fn ways(table: &Table<'_>, steps: &[Step]) -> Vec<Ways> {
    let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let cell = |set: StepSet| find_steps(table.findings.cells, steps, set);
    // Two sets that come to the same command are one cell, which tells nothing of itself.
    let pair =
        |from: StepSet, to: StepSet| cell(from).zip(cell(to)).filter(|(from, to)| from != to);
    let all = StepSet::all(count);
    (0..count)
        .map(|step| Ways {
            added: pair(StepSet::all(step), StepSet::all(step + 1)),
            alone: pair(StepSet::NONE, StepSet::NONE.with(step)),
            left_out: pair(all.without(step), all),
        })
        .collect()
}

/// The pairs of cells that tell of the steps, each once: the first step alone is the
/// chain's first.
pub(super) fn step_pairs(table: &Table<'_>) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for ways in steps(table).map_or_else(Vec::new, |steps| ways(table, steps)) {
        for pair in [ways.added, ways.alone, ways.left_out]
            .into_iter()
            .flatten()
        {
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    pairs
}

pub(super) fn contests(table: &Table<'_>, pairs: &[(u32, u32)]) -> Vec<Contest> {
    pairs
        .iter()
        .map(|(from, to)| table.contest(*from, *to))
        .collect()
}

/// The share of a pair in the whole, block by block.
fn share(
    table: &Table<'_>,
    (from, to): (u32, u32),
    (a, b): (u32, u32),
    confidence: f64,
) -> Option<LogShare> {
    if table.objection(&[from, to, a, b]).is_some() {
        return None;
    }
    let logs: Vec<(f64, f64)> = table
        .shared_blocks(&[from, to, a, b])
        .into_iter()
        .filter_map(|block| {
            let log = |cell: u32| table.log(cell, block);
            Some((log(to)? - log(from)?, log(b)? - log(a)?))
        })
        .collect();
    log_share(&logs, confidence)
}

fn interactions(table: &Table<'_>, steps: &[Step], ways: &[Ways]) -> Vec<Interaction> {
    let mut labels = Vec::new();
    let mut contests = Vec::new();
    for (step, ways) in steps.iter().zip(ways) {
        let (Some(alone), Some(left_out)) = (ways.alone, ways.left_out) else {
            continue;
        };
        // Of a single step, both are the total; of two, the second says what the first
        // has said.
        if alone == left_out || (steps.len() == 2 && !contests.is_empty()) {
            continue;
        }
        contests.push(interaction(table, &step.label, alone, left_out));
        labels.push(step.label.clone());
    }
    labels
        .into_iter()
        .zip(judge(
            table,
            "every step with all others against alone",
            &contests,
        ))
        .map(|(step, verdict)| Interaction { step, verdict })
        .collect()
}

/// The ratio with all the others over the ratio alone, block by block.
fn interaction(table: &Table<'_>, label: &str, alone: (u32, u32), left_out: (u32, u32)) -> Contest {
    let cells = [alone.0, alone.1, left_out.0, left_out.1];
    let blocks = table.shared_blocks(&cells);
    let entrant = |name: String, (from, to): (u32, u32)| Entrant {
        name,
        launches: blocks
            .iter()
            .filter_map(|block| {
                let log = table.log(to, *block)? - table.log(from, *block)?;
                Launch::single(log.exp())
            })
            .collect(),
        objection: table.objection(&[from, to]),
        failed: table.has_failed(from) || table.has_failed(to),
    };
    Contest::of_blocks(
        entrant(format!("what {label} does alone"), alone),
        entrant(format!("what {label} does with all others"), left_out),
        2,
    )
}

fn standing(step: &StepAttribution, interactions: &[Interaction], steps: usize) -> StepStanding {
    let depends = interactions
        .iter()
        .any(|found| found.matters() && (found.step == step.step || steps == 2));
    if depends {
        return StepStanding::Depends;
    }
    let kind = |part: &Part| part.verdict.kind;
    if let Some(VerdictKind::Better | VerdictKind::Worse) = step.added.as_ref().map(kind) {
        return StepStanding::Changes;
    }
    let mut ways = [&step.added, &step.alone, &step.left_out]
        .into_iter()
        .flatten()
        .peekable();
    if ways.peek().is_some() && ways.all(|part| kind(part) == VerdictKind::NoClearChange) {
        StepStanding::Nothing
    } else {
        StepStanding::NotEstablished
    }
}
