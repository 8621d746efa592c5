//! Frozen comparisons: canonical bytes under an address that nobody can guess.

#[cfg(test)]
mod store_tests;

use std::time::SystemTime;

use time::OffsetDateTime;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    analysis,
    chart::ChartSpec,
    comparison::{COMPARISON_SCHEMA, FrozenComparison, Override, to_override},
    ids::{ComparisonSlug, ContentHash},
    metrics::METRIC_VERSION,
    statistics::ANALYSIS_VERSION,
    timestamp::Timestamp,
    verdict::{Basis, Verdict},
    views::{
        compare::{CompareQuery, CompareView, OverrideForm, TodayView},
        measure::MAX_NAME,
    },
};

use crate::{
    Lab, LabError,
    audit::{self, Action},
    clean,
    commands::version,
};

/// Longest reason for an override, in characters.
const MAX_REASON: usize = 500;

/// What is stored beside a frozen comparison's document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artefacts {
    /// Its figures as CSV.
    pub csv: String,
    /// Its picture.
    pub svg: String,
}

/// A frozen comparison as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredComparison {
    /// Its address.
    pub slug: ComparisonSlug,
    /// SHA-256 of [`Self::document`].
    pub hash: ContentHash,
    /// Its canonical bytes.
    pub document: Vec<u8>,
    /// The same, read.
    pub comparison: FrozenComparison,
    /// Its figures as CSV.
    pub csv: String,
    /// Its picture.
    pub svg: String,
}

impl Lab {
    /// Freezes a comparison: what it shows now is what its address shows for ever.
    /// `artefacts` draws and tabulates it. A blank title becomes the names of the
    /// configurations. With a reason in `signed`, a confounded or invalid comparison
    /// bears the word of whoever shares it.
    ///
    /// # Errors
    /// As [`Lab::compare`], and [`LabError::Invalid`] for an overlong title, reason or
    /// name, for a reason where there is nothing to override, for a run that is not
    /// over, or with the words of `artefacts` where it has nothing to draw.
    pub async fn freeze(
        &self,
        actor: &Actor,
        query: &CompareQuery,
        title: &str,
        signed: &OverrideForm,
        artefacts: impl FnOnce(&FrozenComparison) -> Result<Artefacts, String> + Send,
    ) -> Result<ComparisonSlug, LabError> {
        authorise(actor, Capability::Share)?;
        let title = kept("title", title, MAX_NAME)?;
        let view = self.comparison(actor, query).await?;
        if let Some(run) = view.runs.iter().find(|run| !run.state.is_over()) {
            return Err(LabError::Conflict(format!(
                "Run {} is not over yet ({}). Wait for its end: a shared comparison does not change any more.",
                run.id, run.state
            )));
        }
        let title = if title.is_empty() {
            let names: Vec<&str> = view
                .runs
                .iter()
                .map(|run| run.configuration.as_str())
                .collect();
            names.join(" · ").chars().take(MAX_NAME).collect()
        } else {
            title
        };
        let frozen_at = Timestamp::from_datetime(OffsetDateTime::from(SystemTime::now()));
        let comparison = FrozenComparison {
            schema_version: COMPARISON_SCHEMA,
            title,
            frozen_at,
            overridden: self.signed(actor, signed, &view, frozen_at).await?,
            analysis_version: ANALYSIS_VERSION,
            metric_version: METRIC_VERSION,
            view,
        };
        let document = canonical(&comparison)?;
        // Drawn from what will be read, not from what was written.
        let comparison = read(&document)?;
        // What cannot be drawn is for whoever chose the runs to mend.
        let drawn = artefacts(&comparison).map_err(LabError::Invalid)?;
        let mut slug = [0_u8; 16];
        getrandom::fill(&mut slug)
            .map_err(|error| LabError::internal("making an address", error))?;
        let slug = ComparisonSlug(slug);

        let mut tx = self.0.pool.begin().await?;
        sqlx::query!(
            "INSERT INTO comparisons (slug, team_id, actor_id, title, hash, document, csv, svg,
                 metric_version, analysis_version)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            slug.0.as_slice(),
            actor.team.0,
            actor.id.0,
            comparison.title,
            ContentHash::of(&document).0,
            document,
            drawn.csv,
            drawn.svg,
            version(comparison.metric_version),
            version(comparison.analysis_version),
        )
        .execute(&mut *tx)
        .await?;
        for (place, run) in (0_i32..).zip(&query.runs) {
            sqlx::query!(
                "INSERT INTO comparison_runs (slug, place, run_id) VALUES ($1, $2, $3)",
                slug.0.as_slice(),
                place,
                run.0,
            )
            .execute(&mut *tx)
            .await?;
        }
        let in_spite = comparison
            .overridden
            .as_ref()
            .map_or_else(String::new, |it| format!(" in spite of {}", it.in_spite_of));
        let subject = format!("comparison {slug}{in_spite}");
        audit::note(&mut tx, actor, Action::Share, subject).await?;
        tx.commit().await?;
        Ok(slug)
    }

    /// The override that a form asks for; none without a reason.
    async fn signed(
        &self,
        actor: &Actor,
        form: &OverrideForm,
        view: &CompareView<ChartSpec>,
        at: Timestamp,
    ) -> Result<Option<Override>, LabError> {
        let reason = kept("reason", &form.reason, MAX_REASON)?;
        let name = kept("name", &form.name, MAX_NAME)?;
        if reason.is_empty() {
            return Ok(None);
        }
        let Some(in_spite_of) = to_override(view) else {
            return Err(LabError::Invalid(
                "There is nothing to override: the comparison is neither confounded nor invalid. Share it without a reason.".to_owned(),
            ));
        };
        let account = sqlx::query_scalar!("SELECT name FROM actors WHERE id = $1", actor.id.0)
            .fetch_one(&self.0.pool)
            .await?;
        Ok(Some(Override {
            in_spite_of,
            by: if name.is_empty() {
                account
            } else {
                format!("{name} ({account})")
            },
            at,
            reason,
        }))
    }

    /// A frozen comparison by the rules of today; none where it was frozen under them, or
    /// where they cannot be applied to it, which is logged: what was frozen is shown all
    /// the same. For whoever may read the runs and finds all of them, from what is stored
    /// of them; otherwise from what its document holds.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn frozen_today(
        &self,
        actor: &Actor,
        frozen: &FrozenComparison,
    ) -> Result<Option<TodayView<ChartSpec>>, LabError> {
        authorise(actor, Capability::OpenShared)?;
        if frozen.analysis_version >= ANALYSIS_VERSION {
            return Ok(None);
        }
        match self.read_again(actor, frozen).await {
            Ok(view) => Ok(Some(view)),
            Err(LabError::DatabaseUnavailable) => Err(LabError::DatabaseUnavailable),
            Err(error) => {
                tracing::warn!(title = frozen.title, %error, "a frozen comparison is not read by today's rules");
                Ok(None)
            }
        }
    }

    async fn read_again(
        &self,
        actor: &Actor,
        frozen: &FrozenComparison,
    ) -> Result<TodayView<ChartSpec>, LabError> {
        let query = CompareQuery {
            runs: frozen.view.runs.iter().map(|run| run.id).collect(),
        };
        let live = if authorise(actor, Capability::Read).is_ok() {
            match self.comparison(actor, &query).await {
                Err(LabError::NoSuchRun(_)) => None,
                live => Some(live?),
            }
        } else {
            None
        };
        let (view, read_from) = match live {
            Some(view) => (
                view,
                "Read from the runs as they are stored now.".to_owned(),
            ),
            None => (
                analysis::reread(frozen).map_err(LabError::Invalid)?,
                from_document(frozen),
            ),
        };
        Ok(TodayView {
            analysis_version: ANALYSIS_VERSION,
            read_from,
            changes: analysis::verdicts_changed(&frozen.view, &view),
            view,
        })
    }

    /// A frozen comparison. Whoever has the link may see it.
    ///
    /// # Errors
    /// [`LabError::NoSuchComparison`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn frozen(
        &self,
        actor: &Actor,
        slug: ComparisonSlug,
    ) -> Result<StoredComparison, LabError> {
        authorise(actor, Capability::OpenShared)?;
        let row = sqlx::query!(
            "SELECT hash, document, csv, svg FROM comparisons WHERE slug = $1",
            slug.0.as_slice(),
        )
        .fetch_optional(&self.0.pool)
        .await?
        .ok_or(LabError::NoSuchComparison)?;
        let hash = ContentHash::of(&row.document);
        if hash.0 != row.hash {
            return Err(LabError::internal(
                "reading a shared comparison",
                format!("the bytes of {slug} no longer have their hash"),
            ));
        }
        Ok(StoredComparison {
            slug,
            hash,
            comparison: read(&row.document)?,
            document: row.document,
            csv: row.csv,
            svg: row.svg,
        })
    }
}

/// What was read where the runs are gone, or not for this reader.
fn from_document(frozen: &FrozenComparison) -> String {
    let limit = if analysis::holds_all_repeats(&frozen.view) {
        ""
    } else {
        " It holds no single values of more than three repeats, so of those the mean speaks and there is no interval within a launch."
    };
    let doubtful = frozen
        .view
        .rows
        .iter()
        .flat_map(|row| row.cells.iter().flatten())
        .any(|cell| cell.doubtful);
    let why = if doubtful {
        " Why a figure was doubtful is not in it."
    } else {
        ""
    };
    let by_history = |verdict: &Verdict| matches!(verdict.basis, Some(Basis::History { .. }));
    let history = if frozen.view.verdicts.iter().any(by_history) {
        " What was known then of earlier launches on the host is not in it, so a verdict that rested on that is given without."
    } else {
        ""
    };
    format!("Read from the frozen document.{limit}{why}{history}")
}

/// A trimmed text that can be stored.
fn kept(what: &str, text: &str, most: usize) -> Result<String, LabError> {
    let text = clean::owned(text.trim());
    let length = text.chars().count();
    if length > most {
        return Err(LabError::Invalid(format!(
            "The {what} is {length} characters long; at most {most} are kept. Shorten it."
        )));
    }
    Ok(text)
}

/// Keys sorted, no spaces: the same comparison is the same bytes.
fn canonical(comparison: &FrozenComparison) -> Result<Vec<u8>, LabError> {
    // serde_json keeps objects sorted by key (no `preserve_order`).
    serde_json::to_value(comparison)
        .and_then(|value| serde_json::to_vec(&value))
        .map_err(|error| LabError::internal("writing the comparison", error))
}

fn read(document: &[u8]) -> Result<FrozenComparison, LabError> {
    serde_json::from_slice(document)
        .map_err(|error| LabError::internal("reading a shared comparison", error))
}
