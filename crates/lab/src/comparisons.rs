//! Frozen comparisons: canonical bytes under an address that nobody can guess.

use std::time::SystemTime;

use time::OffsetDateTime;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    comparison::{COMPARISON_SCHEMA, FrozenComparison},
    ids::{ComparisonSlug, ContentHash},
    metrics::METRIC_VERSION,
    statistics::ANALYSIS_VERSION,
    timestamp::Timestamp,
    views::{compare::CompareQuery, measure::MAX_NAME},
};

use crate::{
    Lab, LabError,
    audit::{self, Action},
    clean,
    commands::version,
};

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
    /// configurations.
    ///
    /// # Errors
    /// As [`Lab::compare`], and [`LabError::Invalid`] for an overlong title or a
    /// run that is not over.
    pub async fn freeze(
        &self,
        actor: &Actor,
        query: &CompareQuery,
        title: &str,
        artefacts: impl FnOnce(&FrozenComparison) -> Result<Artefacts, String> + Send,
    ) -> Result<ComparisonSlug, LabError> {
        authorise(actor, Capability::Share)?;
        let title = clean::owned(title.trim());
        let length = title.chars().count();
        if length > MAX_NAME {
            return Err(LabError::Invalid(format!(
                "The title is {length} characters long; at most {MAX_NAME} are kept. Shorten it."
            )));
        }
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
        let comparison = FrozenComparison {
            schema_version: COMPARISON_SCHEMA,
            title,
            frozen_at: Timestamp::from_datetime(OffsetDateTime::from(SystemTime::now())),
            analysis_version: ANALYSIS_VERSION,
            metric_version: METRIC_VERSION,
            view,
        };
        let document = canonical(&comparison)?;
        // Drawn from what will be read, not from what was written.
        let comparison = read(&document)?;
        let drawn = artefacts(&comparison)
            .map_err(|error| LabError::internal("drawing the comparison", error))?;
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
        audit::note(&mut tx, actor, Action::Share, format!("comparison {slug}")).await?;
        tx.commit().await?;
        Ok(slug)
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
