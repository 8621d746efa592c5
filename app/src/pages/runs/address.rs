//! The list's address: `/runs?text=&state=&source=&page=`, only what is not the default.

use leptos_router::params::ParamsMap;
use tokdyno_domain::{run::RunState, source::Source, views::run::RunFilter};

/// What the address asks for. What does not read is left out; pages count from 1.
pub(super) fn read(query: &ParamsMap) -> RunFilter {
    let word = |key: &str| query.get(key).unwrap_or_default();
    RunFilter {
        text: word("text").trim().to_owned(),
        state: RunState::from_word(&word("state")),
        source: Source::from_word(&word("source")),
        page: word("page")
            .parse::<u32>()
            .map_or(0, |page| page.saturating_sub(1)),
    }
}

/// The address of what is asked for.
pub(super) fn write(filter: &RunFilter) -> String {
    let mut query = ParamsMap::new();
    if !filter.text.is_empty() {
        query.insert("text", filter.text.clone());
    }
    if let Some(state) = filter.state {
        query.insert("state", state.word().to_owned());
    }
    if let Some(source) = filter.source {
        query.insert("source", source.word().to_owned());
    }
    if filter.page > 0 {
        query.insert("page", (filter.page + 1).to_string());
    }
    format!("/runs{}", query.to_query_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&'static str, &str)]) -> ParamsMap {
        pairs
            .iter()
            .map(|(key, value)| (*key, (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_plain_address_is_the_default() {
        assert_eq!(read(&params(&[])), RunFilter::default());
        // An empty form sends empty values.
        let blank = params(&[("text", ""), ("state", ""), ("source", ""), ("page", "")]);
        assert_eq!(read(&blank), RunFilter::default());
    }

    #[test]
    fn what_was_asked_for_reads() {
        let filter = read(&params(&[
            ("text", " kimi "),
            ("state", "running"),
            ("source", "simulated"),
            ("page", "3"),
        ]));
        assert_eq!(
            filter,
            RunFilter {
                text: "kimi".to_owned(),
                state: Some(RunState::Running),
                source: Some(Source::Simulated),
                page: 2,
            }
        );
    }

    #[test]
    fn nonsense_is_left_out() {
        let filter = read(&params(&[("state", "dancing"), ("page", "-1")]));
        assert_eq!(filter, RunFilter::default());
    }
}
