//! Reading what a plain HTML form sends, where WASM has not loaded.

use std::time::SystemTime;

use tokdyno_domain::{
    ids::LaunchId, launch::Afterwards, timestamp::Timestamp, views::measure::WorkloadForm,
    workload::Preset,
};

use crate::{AppError, clock};

/// The workload of a preset's word; the usual one where none is named.
pub(super) fn workload(word: &str) -> Result<WorkloadForm, AppError> {
    if word.is_empty() {
        return Ok(WorkloadForm::default());
    }
    let preset = Preset::ALL
        .into_iter()
        .find(|preset| preset.word() == word)
        .ok_or_else(|| {
            refuse(
                "Without JavaScript only the prepared workloads can be chosen: quick, standard or thorough.",
            )
        })?;
    Ok(WorkloadForm {
        preset: Some(preset),
        ..WorkloadForm::default()
    })
}

/// What is done afterwards, from a choice of two.
pub(super) const fn afterwards(stop: bool) -> Afterwards {
    if stop {
        Afterwards::Stop
    } else {
        Afterwards::Keep
    }
}

/// The number of a launch, or none where nothing is chosen.
pub(super) fn number(text: &str) -> Result<Option<LaunchId>, AppError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        refuse(&format!(
            "`{text}` is not the number of a launch. Choose one from the list."
        ))
    })
}

/// The next moment at which it is this time of the day in UTC; none for blank.
pub(super) fn moment(text: &str) -> Result<Option<Timestamp>, AppError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let now = Timestamp::from_datetime(SystemTime::now().into());
    clock::next(now, text, 0).map(Some).ok_or_else(|| {
        refuse(&format!(
            "`{text}` is not a time of the day. Write it as 18:30."
        ))
    })
}

fn refuse(sentence: &str) -> AppError {
    AppError::new(422, sentence).with_status()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_fields_ask_for_nothing_and_nonsense_is_refused() {
        assert_eq!(number(" "), Ok(None));
        assert_eq!(number("7"), Ok(Some(LaunchId(7))));
        assert_eq!(moment(""), Ok(None));
        assert!(number("seven").is_err() && moment("25:00").is_err());
        assert_eq!(workload(""), Ok(WorkloadForm::default()));
        assert_eq!(
            workload("thorough").map(|form| form.preset),
            Ok(Some(Preset::Thorough))
        );
        assert!(workload("custom").is_err());
    }
}
