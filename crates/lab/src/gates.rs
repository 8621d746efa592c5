//! Gates: runs held to rules, and what people make of it.

#[cfg(test)]
mod store_tests;

use sqlx::types::Json;
use time::OffsetDateTime;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    analysis::{History, RunFacts},
    gate::{self, GateOutcome, Measured, Rule, parse_lines},
    ids::{GateId, RunId},
    timestamp::Timestamp,
    views::gates::{Decision, DecisionKind, GateForm, GateView, MAX_REASON},
};

use crate::{
    Lab, LabError,
    audit::{self, Action},
    clean, skipped,
};

/// Most gates that are listed at once.
const LISTED: i64 = 100;

/// A gate as it stands in the database.
struct GateRow {
    id: i64,
    created_at: OffsetDateTime,
    by: String,
    rules: Vec<String>,
    outcome: Json<GateOutcome>,
    decision: Option<String>,
    decision_reason: Option<String>,
    decided_by: Option<String>,
    decided_at: Option<OffsetDateTime>,
    runs: Vec<i64>,
}

impl Lab {
    /// What rules come to, of one run or of several that are compared, without keeping
    /// it.
    ///
    /// # Errors
    /// [`LabError::Invalid`] for rules that are none and runs that cannot be compared,
    /// [`LabError::Conflict`] for a run that is not over, [`LabError::NoSuchRun`],
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn try_gate(&self, actor: &Actor, form: &GateForm) -> Result<GateOutcome, LabError> {
        authorise(actor, Capability::Read)?;
        let rules = rules(form)?;
        self.judge(actor, &form.runs, &rules).await
    }

    /// Judges and keeps what it came to.
    ///
    /// # Errors
    /// As [`Self::try_gate`].
    pub async fn record_gate(&self, actor: &Actor, form: &GateForm) -> Result<GateView, LabError> {
        authorise(actor, Capability::RecordGate)?;
        let rules = rules(form)?;
        let outcome = self.judge(actor, &form.runs, &rules).await?;
        let written: Vec<String> = rules.iter().map(Rule::to_string).collect();
        let stored = serde_json::to_value(&outcome)
            .map(clean::json)
            .map_err(|error| LabError::internal("writing what a gate came to", error))?;
        let mut tx = self.0.pool.begin().await?;
        let id = sqlx::query_scalar!(
            "INSERT INTO gates (team_id, actor_id, rules, outcome) VALUES ($1, $2, $3, $4)
             RETURNING id",
            actor.team.0,
            actor.id.0,
            &written,
            stored,
        )
        .fetch_one(&mut *tx)
        .await?;
        for (place, run) in (0_i32..).zip(&form.runs) {
            sqlx::query!(
                "INSERT INTO gate_runs (gate_id, place, run_id) VALUES ($1, $2, $3)",
                id,
                place,
                run.0,
            )
            .execute(&mut *tx)
            .await?;
        }
        let detail = format!("{}: {}", about(&form.runs), outcome.outcome);
        audit::note_more(&mut tx, actor, Action::Gate, format!("gate {id}"), &detail).await?;
        tx.commit().await?;
        self.gate(actor, GateId(id)).await
    }

    /// A gate that was recorded.
    ///
    /// # Errors
    /// [`LabError::NoSuchGate`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn gate(&self, actor: &Actor, gate: GateId) -> Result<GateView, LabError> {
        authorise(actor, Capability::Read)?;
        self.read(actor, Some(gate), None, None)
            .await?
            .pop()
            .ok_or(LabError::NoSuchGate(gate))
    }

    /// Gates, newest first, at most a hundred: of one run those that it takes part in,
    /// of several those about exactly these with the same baseline, of none all.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn gates(&self, actor: &Actor, runs: &[RunId]) -> Result<Vec<GateView>, LabError> {
        authorise(actor, Capability::Read)?;
        match runs {
            [] => self.read(actor, None, None, None).await,
            [run] => self.read(actor, None, Some(*run), None).await,
            several => self.read(actor, None, None, Some(several)).await,
        }
    }

    /// Accepts or rejects what a gate was about, also against its rules. It is decided
    /// once.
    ///
    /// # Errors
    /// [`LabError::Invalid`] without a reason, [`LabError::Conflict`] if it was decided
    /// already, [`LabError::NoSuchGate`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn decide_gate(
        &self,
        actor: &Actor,
        gate: GateId,
        decision: DecisionKind,
        reason: &str,
    ) -> Result<GateView, LabError> {
        authorise(actor, Capability::DecideGate)?;
        let reason = clean::owned(reason.trim());
        let length = reason.chars().count();
        if length == 0 {
            return Err(LabError::Invalid(
                "A decision needs a reason: who reads it later was not there. Write one in a sentence."
                    .to_owned(),
            ));
        }
        if length > MAX_REASON {
            return Err(LabError::Invalid(format!(
                "The reason is {length} characters long; at most {MAX_REASON} are kept. Shorten it."
            )));
        }
        let mut tx = self.0.pool.begin().await?;
        let decided = sqlx::query!(
            "UPDATE gates SET decision = $3, decision_reason = $4, decided_by = $5,
                 decided_at = now()
             WHERE id = $1 AND team_id = $2 AND decision IS NULL",
            gate.0,
            actor.team.0,
            decision.word(),
            reason,
            actor.id.0,
        )
        .execute(&mut *tx)
        .await?
        .rows_affected();
        if decided == 0 {
            drop(tx);
            let there = self.gate(actor, gate).await?;
            let how = there.decision.map_or_else(String::new, |decision| {
                format!(
                    " ({}, by {}: {})",
                    decision.kind, decision.by, decision.reason
                )
            });
            return Err(LabError::Conflict(format!(
                "Gate {gate} was decided already{how}. Record another one to decide anew."
            )));
        }
        let detail = format!("{decision}: {reason}");
        let subject = format!("gate {gate}");
        audit::note_more(&mut tx, actor, Action::GateDecide, subject, &detail).await?;
        tx.commit().await?;
        self.gate(actor, gate).await
    }

    async fn judge(
        &self,
        actor: &Actor,
        runs: &[RunId],
        rules: &[Rule],
    ) -> Result<GateOutcome, LabError> {
        let runs = self.measured(actor, runs).await?;
        let facts: Vec<RunFacts> = runs.iter().map(|run| run.facts.clone()).collect();
        let (past, minutes) = self.past(actor, &facts).await?;
        gate::evaluate(rules, &runs, &History::of(&past, minutes))
            .map_err(|error| LabError::Invalid(error.to_string()))
    }

    /// The runs as a gate looks at them.
    async fn measured(&self, actor: &Actor, runs: &[RunId]) -> Result<Vec<Measured>, LabError> {
        let mut measured = Vec::with_capacity(runs.len());
        for facts in self.facts_of(actor, runs).await? {
            let run = facts.summary.id;
            if !facts.summary.state.is_over() {
                return Err(LabError::Conflict(format!(
                    "Run {run} is not over yet ({}). Wait for its end: a gate does not change any more.",
                    facts.summary.state
                )));
            }
            measured.push(Measured {
                workload: self.workload(run).await?,
                skipped: skipped::of_run(&self.0.pool, run)
                    .await?
                    .into_iter()
                    .map(|(stage, _)| stage)
                    .collect(),
                facts,
            });
        }
        Ok(measured)
    }

    async fn read(
        &self,
        actor: &Actor,
        gate: Option<GateId>,
        run: Option<RunId>,
        exactly: Option<&[RunId]>,
    ) -> Result<Vec<GateView>, LabError> {
        let exactly: Option<Vec<i64>> = exactly.map(|runs| runs.iter().map(|run| run.0).collect());
        let rows = sqlx::query_as!(
            GateRow,
            r#"SELECT g.id, g.created_at, a.name AS by, g.rules,
                   g.outcome AS "outcome: Json<GateOutcome>", g.decision, g.decision_reason,
                   d.name AS "decided_by?", g.decided_at, about.runs AS "runs!"
               FROM gates g
               JOIN actors a ON a.id = g.actor_id
               LEFT JOIN actors d ON d.id = g.decided_by
               CROSS JOIN LATERAL (
                   SELECT array_agg(run_id ORDER BY place) AS runs FROM gate_runs
                   WHERE gate_id = g.id
               ) about
               WHERE g.team_id = $1
                 AND ($2::bigint IS NULL OR g.id = $2)
                 AND ($3::bigint IS NULL OR g.id IN
                     (SELECT gate_id FROM gate_runs WHERE run_id = $3))
                 AND ($4::bigint[] IS NULL OR (about.runs[1] = ($4::bigint[])[1]
                     AND about.runs @> $4 AND about.runs <@ $4))
               ORDER BY g.id DESC LIMIT $5"#,
            actor.team.0,
            gate.map(|gate| gate.0),
            run.map(|run| run.0),
            exactly.as_deref(),
            LISTED,
        )
        .fetch_all(&self.0.pool)
        .await?;
        Ok(rows.into_iter().map(GateRow::view).collect())
    }
}

impl GateRow {
    fn view(self) -> GateView {
        let decision = self
            .decision
            .as_deref()
            .and_then(DecisionKind::from_word)
            .zip(self.decided_at)
            .map(|(kind, at)| Decision {
                kind,
                reason: self.decision_reason.unwrap_or_default(),
                by: self.decided_by.unwrap_or_default(),
                at: Timestamp::from_datetime(at),
            });
        GateView {
            id: GateId(self.id),
            runs: self.runs.into_iter().map(RunId).collect(),
            by: self.by,
            at: Timestamp::from_datetime(self.created_at),
            rules: self.rules,
            outcome: self.outcome.0,
            decision,
        }
    }
}

fn rules(form: &GateForm) -> Result<Vec<Rule>, LabError> {
    parse_lines(&form.rules).map_err(|error| LabError::Invalid(error.to_string()))
}

/// `run 7`, `runs 5, 7`.
fn about(runs: &[RunId]) -> String {
    let numbers: Vec<String> = runs.iter().map(RunId::to_string).collect();
    let word = if runs.len() == 1 { "run" } else { "runs" };
    format!("{word} {}", numbers.join(", "))
}
