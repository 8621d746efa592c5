//! What a file must not claim. Files come from anywhere.

use std::collections::HashSet;

use serde::Deserialize;

use super::{
    ResultFile, ResultFileError, ResultStage,
    figures::{impossible_condition, impossible_figure},
};
use crate::{
    conditions::{CacheReset, StageConditions},
    endpoint::EndpointUrl,
    meter::{MeterOutcome, RequestEvent},
    metrics::METRIC_VERSION,
    timestamp::Timestamp,
    views::measure::MAX_NAME,
    workload::{StageKind, StagePlan, Workload, limits},
};

/// No run lasts as long: 36 years, in nanoseconds. Sums of such times still fit.
const LONGEST_NS: u64 = 1 << 60;

/// 2000-01-01 and 2200-01-01, in UTC: no run is older, and a later one is a
/// clock's fault.
pub(super) const TIMES: std::ops::Range<Timestamp> =
    Timestamp(946_684_800_000_000)..Timestamp(7_258_118_400_000_000);

/// Most characters of a model's name.
pub const MAX_MODEL: usize = 500;
/// Most characters of an address.
pub const MAX_ADDRESS: usize = 2000;
/// Most settings of a server.
pub(super) const MAX_SETTINGS: usize = 1000;
/// Most characters of a setting's value.
pub(super) const MAX_SETTING: usize = 10_000;

/// Most characters of a sentence about a stage.
const MAX_SENTENCE: usize = 10_000;
/// Most places of a draft that are counted apart.
const MAX_PLACES: usize = 1000;

impl ResultFile {
    pub(super) fn check(&self) -> Result<(), ResultFileError> {
        let inconsistent = |text: String| Err(ResultFileError::Inconsistent(text));
        if self.metric_version != METRIC_VERSION {
            return inconsistent(format!(
                "its metric definitions are version {}, this program's are {METRIC_VERSION}",
                self.metric_version
            ));
        }
        if let Err(error) = self.workload.validate() {
            return inconsistent(format!("its workload is not possible ({error})"));
        }
        self.check_times()?;
        self.check_names()?;
        self.check_endpoint()?;
        self.check_figures()?;
        self.check_skipped()?;
        self.check_plan()?;
        for (place, stage) in self.stages.iter().enumerate() {
            check_counts(place, stage)?;
            check_conditions(place, &stage.conditions)?;
            let mut seen = HashSet::new();
            for request in &stage.records {
                let record = &request.record;
                if record.stage != stage.index || !seen.insert(record.seq) {
                    return inconsistent(format!(
                        "a request of stage {place} stands there twice or belongs elsewhere"
                    ));
                }
                check_request(place, request)?;
            }
        }
        Ok(())
    }

    /// Are the stages those of the workload, in its order, as many as the outcome
    /// says?
    fn check_plan(&self) -> Result<(), ResultFileError> {
        let whole = self.workload.plan();
        let plan: Vec<_> = whole
            .iter()
            .filter(|planned| !self.skipped.contains(&planned.index))
            .collect();
        if self.outcome == MeterOutcome::Complete && self.stages.len() < plan.len() {
            return Err(inconsistent(format!(
                "it says that it is complete and holds {} of the {} stages of its workload",
                self.stages.len(),
                plan.len()
            )));
        }
        for (place, stage) in self.stages.iter().enumerate() {
            let is_planned = plan.get(place).is_some_and(|planned| {
                planned.index == stage.index
                    && planned.level.kind == stage.kind
                    && planned.repeat == stage.repeat
            });
            if !is_planned {
                return Err(inconsistent(format!(
                    "stage {place} is not the one its workload plans there"
                )));
            }
        }
        Ok(())
    }

    /// Only a climb that stops leaves stages out: all its steps above one concurrency,
    /// in each repeat as far as it was run.
    fn check_skipped(&self) -> Result<(), ResultFileError> {
        if self.skipped.is_empty() {
            return Ok(());
        }
        if self.workload.saturation.is_none() {
            return Err(inconsistent(
                "it skipped stages, which its workload has no rule for".to_owned(),
            ));
        }
        let plan = self.workload.plan();
        let mut seen = HashSet::new();
        for index in &self.skipped {
            let planned = usize::try_from(*index).ok().and_then(|at| plan.get(at));
            let is_step = planned
                .is_some_and(|planned| matches!(planned.level.kind, StageKind::ClosedLoop { .. }));
            if !is_step || !seen.insert(index) {
                return Err(inconsistent(format!(
                    "it skipped stage {index}, which is no step of its climb or is named twice"
                )));
            }
        }
        let is_skipped = |planned: &StagePlan| self.skipped.contains(&planned.index);
        let steps = || {
            plan.iter()
                .filter_map(|planned| Some((planned, planned.level.kind.closed_loop()?)))
        };
        let lowest = steps()
            .filter(|(planned, _)| is_skipped(planned))
            .map(|(_, concurrency)| concurrency)
            .min();
        // A run that ended early skipped nothing beyond its end.
        let ran = self.stages.iter().map(|stage| stage.index);
        let end = match self.outcome {
            MeterOutcome::Complete => u32::MAX,
            _ => ran.chain(seen.into_iter().copied()).max().unwrap_or(0),
        };
        if !steps().any(|(_, concurrency)| Some(concurrency) < lowest) {
            return Err(inconsistent(
                "it skipped every step of its climb, which cannot have ended there".to_owned(),
            ));
        }
        let above = |concurrency| lowest.is_some_and(|lowest| concurrency >= lowest);
        match steps().find(|(planned, concurrency)| {
            planned.index <= end && above(*concurrency) && !is_skipped(planned)
        }) {
            Some((planned, concurrency)) => Err(inconsistent(format!(
                "it skipped lower steps of its climb than stage {} at C = {concurrency}, which it did not skip",
                planned.index
            ))),
            None => Ok(()),
        }
    }

    fn check_times(&self) -> Result<(), ResultFileError> {
        let inconsistent = |text: &str| Err(ResultFileError::Inconsistent(text.to_owned()));
        if !TIMES.contains(&self.started_at) || !TIMES.contains(&self.finished_at) {
            return inconsistent("it was not measured between the years 2000 and 2200");
        }
        if self.finished_at < self.started_at {
            return inconsistent("it ended before it began");
        }
        Ok(())
    }

    fn check_endpoint(&self) -> Result<(), ResultFileError> {
        self.endpoint
            .url
            .parse::<EndpointUrl>()
            .map(drop)
            .map_err(|error| {
                let sentence = error.to_string();
                let sentence = sentence.trim_end_matches('.');
                ResultFileError::Inconsistent(format!(
                    "its endpoint's address is none ({sentence})"
                ))
            })
    }

    fn check_names(&self) -> Result<(), ResultFileError> {
        let inconsistent = |text: String| Err(ResultFileError::Inconsistent(text));
        for (what, text, max) in [
            (
                "configuration's name",
                self.configuration.as_deref(),
                MAX_NAME,
            ),
            ("hardware's name", self.hardware.as_deref(), MAX_NAME),
            (
                "model's name",
                Some(self.endpoint.model.as_str()),
                MAX_MODEL,
            ),
            ("address", Some(self.endpoint.url.as_str()), MAX_ADDRESS),
        ] {
            let length = text.map_or(0, |text| text.chars().count());
            if length > max {
                return inconsistent(format!(
                    "its {what} is {length} characters long and at most {max} are kept"
                ));
            }
        }
        let settings = &self.endpoint.settings;
        if settings.len() > MAX_SETTINGS {
            return inconsistent(format!(
                "it lists {} settings and at most {MAX_SETTINGS} are kept",
                settings.len()
            ));
        }
        let long = |text: &String| text.chars().count() > MAX_SETTING;
        if settings
            .iter()
            .any(|(name, value)| long(name) || long(value))
        {
            return inconsistent(format!(
                "one of its settings is longer than {MAX_SETTING} characters"
            ));
        }
        Ok(())
    }

    pub(super) fn check_figures(&self) -> Result<(), ResultFileError> {
        for (place, stage) in self.stages.iter().enumerate() {
            let impossible =
                impossible_figure(&stage.figures).or(impossible_condition(&stage.conditions));
            if let Some((name, value)) = impossible {
                return Err(inconsistent(format!(
                    "{name} of stage {place} is {value:e}, which no measurement yields"
                )));
            }
        }
        Ok(())
    }
}

/// Are there no more stages than its workload, or any workload, plans? Looked at
/// before anything is made of the stages: a short text may stand for large histograms.
pub(super) fn stage_count(value: &serde_json::Value) -> Result<(), ResultFileError> {
    let stages = value
        .get("stages")
        .and_then(serde_json::Value::as_array)
        .map_or(0, Vec::len);
    let most = limits::LEVELS.saturating_mul(limits::REPEATS as usize);
    // One that does not read is refused with its own words.
    let planned = value
        .get("workload")
        .and_then(|workload| Workload::deserialize(workload).ok())
        .map_or(most, |workload| {
            workload
                .levels
                .len()
                .saturating_mul(workload.repeats as usize)
        });
    let most = most.min(planned);
    if stages > most {
        return Err(inconsistent(format!(
            "it holds {stages} stages, and its workload can have {most} at most"
        )));
    }
    Ok(())
}

fn inconsistent(text: String) -> ResultFileError {
    ResultFileError::Inconsistent(text)
}

fn check_counts(place: usize, stage: &ResultStage) -> Result<(), ResultFileError> {
    let figures = &stage.figures;
    let sum = |counts: [u64; 3]| counts.into_iter().map(u128::from).sum::<u128>();
    let goodput = figures.goodput.as_ref();
    if sum([figures.completed, figures.failed, figures.cancelled]) != u128::from(figures.requests)
        || goodput.is_some_and(|goodput| {
            sum([goodput.good, goodput.undefined, 0]) > u128::from(figures.completed)
        })
    {
        return Err(inconsistent(format!(
            "the request counts of stage {place} do not add up"
        )));
    }
    if !stage.records.is_empty() && stage.records.len() as u64 != figures.requests {
        return Err(inconsistent(format!(
            "stage {place} states {} requests and lists {}",
            figures.requests,
            stage.records.len()
        )));
    }
    Ok(())
}

fn check_conditions(place: usize, conditions: &StageConditions) -> Result<(), ResultFileError> {
    let refusal = match &conditions.cache_reset {
        Some(CacheReset::Refused { reason }) => Some(reason),
        _ => None,
    };
    let client = conditions.client.as_ref();
    let texts = [
        refusal,
        conditions.ended_early.as_ref(),
        client.and_then(|client| client.governor.as_ref()),
    ];
    let speculation = conditions
        .engine
        .as_ref()
        .and_then(|engine| engine.speculation.as_ref());
    if texts
        .into_iter()
        .flatten()
        .any(|text| text.chars().count() > MAX_SENTENCE)
        || speculation.is_some_and(|speculation| speculation.accepted_at.len() > MAX_PLACES)
    {
        return Err(inconsistent(format!(
            "the conditions of stage {place} are longer than any that are written"
        )));
    }
    if conditions
        .certificate
        .as_ref()
        .is_some_and(|certificate| !TIMES.contains(&certificate.at))
    {
        return Err(inconsistent(format!(
            "the certificate of stage {place} was not issued between the years 2000 and 2200"
        )));
    }
    Ok(())
}

fn check_request(place: usize, request: &RequestEvent) -> Result<(), ResultFileError> {
    let record = &request.record;
    let times = [
        Some(record.sent_ns),
        Some(record.end_ns),
        record.intended_ns,
        record.connect_ns,
        record.headers_ns,
        record.first_answer_ns,
        record.e2el_ns,
    ];
    if times.into_iter().flatten().any(|time| time > LONGEST_NS)
        || record.prompt > LONGEST_NS
        || record
            .asked_tokens
            .is_some_and(|asked| asked > limits::OUTPUT_TOKENS)
    {
        return Err(inconsistent(format!(
            "request {} of stage {place} holds a number that no measurement reaches",
            record.seq
        )));
    }
    if record.failure.is_none()
        && (record.completion_tokens.unwrap_or(0) == 0
            || record.ttft_ns.is_none()
            || record.e2el_ns.is_none())
    {
        return Err(inconsistent(format!(
            "request {} of stage {place} succeeded without tokens or without their times",
            record.seq
        )));
    }
    if record.ttft_ns > record.e2el_ns || record.e2el_ns.is_some_and(|e2el| e2el > record.end_ns) {
        return Err(inconsistent(format!(
            "request {} of stage {place} ends before it begins",
            record.seq
        )));
    }
    if !counts_agree(request) {
        return Err(inconsistent(format!(
            "the chunks and tokens of request {} of stage {place} do not add up",
            record.seq
        )));
    }
    Ok(())
}

/// Do the parts of a request's counts fit into their wholes? What reads records
/// relies on it.
fn counts_agree(request: &RequestEvent) -> bool {
    let record = &request.record;
    let total = u64::from(record.completion_tokens.unwrap_or(0));
    let first = u64::from(record.first_chunk_tokens.unwrap_or(0));
    let coalesced_fit = record.coalesced_chunks == 0 || record.coalesced_chunks < record.chunks;
    let trace_fits = request.trace.as_ref().is_none_or(|trace| {
        let told: u64 = trace.tokens.iter().map(|count| u64::from(*count)).sum();
        trace.gaps_us.len() <= record.chunks as usize
            && trace.tokens.len() <= trace.gaps_us.len()
            && told <= total
    });
    first <= total && coalesced_fit && trace_fits
}
