//! What stands behind the `?`, and the fields of a CSV file.

use http::StatusCode;
use tokdyno_domain::{
    comparison::RUNS,
    ids::RunId,
    run::RunState,
    source::Source,
    views::{board::BoardFilter, compare::CompareQuery, run::RunFilter},
};

use super::Problem;

fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    url::form_urlencoded::parse(query.as_bytes()).into_owned()
}

fn refused(sentence: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, sentence)
}

fn number<T: std::str::FromStr>(key: &str, text: &str) -> Result<T, Problem> {
    text.trim().parse().map_err(|_| {
        refused(format!(
            "`{key}={text}` in the address is not a whole number. Correct the address, or leave it out."
        ))
    })
}

/// Does the query hold this value under this key?
pub(crate) fn has(query: &str, key: &str, value: &str) -> bool {
    pairs(query).any(|(k, v)| k == key && v == value)
}

/// `runs=1,2` (also `runs=1&runs=2`), the baseline first; each run once.
pub(crate) fn runs_named(query: &str) -> Result<Vec<RunId>, Problem> {
    let mut runs: Vec<RunId> = Vec::new();
    for (key, value) in pairs(query).filter(|(key, _)| key == "runs") {
        for part in value.split(',').filter(|part| !part.trim().is_empty()) {
            let run = RunId(number(&key, part)?);
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
    }
    Ok(runs)
}

/// Two to twelve of them.
pub(crate) fn compare(query: &str) -> Result<CompareQuery, Problem> {
    let runs = runs_named(query)?;
    if RUNS.contains(&runs.len()) {
        Ok(CompareQuery { runs })
    } else {
        Err(refused(format!(
            "A comparison takes {} to {} runs, and the address names {}. Write it such as ?runs=1,2.",
            RUNS.start(),
            RUNS.end(),
            runs.len()
        )))
    }
}

/// The Board's choices, read as its page reads them.
pub(crate) fn board(query: &str) -> BoardFilter {
    tokdyno_app::query::board_filter(&pairs(query).collect())
}

/// What the list of runs shows.
pub(crate) fn runs(query: &str) -> Result<RunFilter, Problem> {
    let mut filter = RunFilter::default();
    for (key, value) in pairs(query) {
        match key.as_str() {
            "text" => filter.text = value,
            "state" if !value.is_empty() => {
                filter.state = Some(RunState::from_word(&value).ok_or_else(|| {
                    refused(format!(
                        "`state={value}` is not known. Choose one of {}.",
                        RunState::ALL.map(RunState::word).join(", ")
                    ))
                })?);
            }
            "source" if !value.is_empty() => {
                filter.source = Some(Source::from_word(&value).ok_or_else(|| {
                    refused(format!(
                        "`source={value}` is not known. Choose one of {}.",
                        Source::ALL.map(Source::word).join(", ")
                    ))
                })?);
            }
            "page" => filter.page = number(&key, &value)?,
            _ => {}
        }
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_name_their_runs_in_order() {
        let runs = |query| compare(query).map(|query| query.runs);
        assert_eq!(runs("runs=2,1"), Ok(vec![RunId(2), RunId(1)]));
        assert_eq!(
            runs("runs=2&runs=1&theme=dark"),
            Ok(vec![RunId(2), RunId(1)])
        );
        assert_eq!(runs("runs=2%2C1,2"), Ok(vec![RunId(2), RunId(1)]));
        for bad in [
            "",
            "runs=1",
            "runs=1,x",
            "runs=1,2,3,4,5,6,7,8,9,10,11,12,13",
        ] {
            assert!(runs(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_board_is_read_as_its_page_writes_it() {
        let filter = BoardFilter {
            model: Some("Kimi K2.5 & more".to_owned()),
            concurrency: Some(128),
            simulated: true,
            ..BoardFilter::default()
        };
        assert_eq!(board(&tokdyno_app::query::board_query(&filter)), filter);
        assert_eq!(board(""), BoardFilter::default());
    }

    #[test]
    fn runs_by_state_and_source() {
        let filter = runs("state=running&source=measured&page=2&text=a+b").expect("a filter");
        assert_eq!(filter.state, Some(RunState::Running));
        assert_eq!(filter.source, Some(Source::Measured));
        assert_eq!((filter.page, filter.text.as_str()), (2, "a b"));
        assert_eq!(runs("state="), Ok(RunFilter::default()));
        assert!(runs("state=x").is_err());
    }
}
