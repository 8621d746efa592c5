//! Addresses as typed things: a query is read once, here, and written here. Only
//! what is not the default stands in an address.

use leptos_router::params::ParamsMap;
use tokdyno_domain::{
    ids::{ContentHash, RunId},
    views::{
        board::{BoardFilter, ThroughputMetric},
        compare::CompareQuery,
    },
    workload::StageKind,
};

/// The Board's choices from its address. What does not read is the default.
#[must_use]
pub fn board_filter(query: &ParamsMap) -> BoardFilter {
    let filled = |key: &str| query.get(key).filter(|value| !value.is_empty());
    BoardFilter {
        model: filled("model"),
        hardware: query.get("hardware"),
        workload: filled("workload").map(ContentHash),
        metric: match query.get("metric").as_deref() {
            Some("steady_output_tps") => ThroughputMetric::SteadyOutputTps,
            _ => ThroughputMetric::OutputTps,
        },
        concurrency: query.get("concurrency").and_then(|text| text.parse().ok()),
        simulated: query.get("simulated").as_deref() == Some("true"),
    }
}

/// The same as a query without `?`; empty for the defaults.
#[must_use]
pub fn board_query(filter: &BoardFilter) -> String {
    let mut query = Query::default();
    if let Some(model) = &filter.model {
        query.push("model", model);
    }
    if let Some(hardware) = &filter.hardware {
        query.push("hardware", hardware);
    }
    if let Some(workload) = &filter.workload {
        query.push("workload", &workload.0);
    }
    if filter.metric != ThroughputMetric::default() {
        query.push("metric", filter.metric.word());
    }
    if let Some(concurrency) = filter.concurrency {
        query.push("concurrency", &concurrency.to_string());
    }
    if filter.simulated {
        query.push("simulated", "true");
    }
    query.0
}

/// The Board's choices after one control was set. A choice further up takes back
/// those below it, which belong to the old one.
#[must_use]
pub fn board_choice(filter: &BoardFilter, name: &str, value: &str) -> BoardFilter {
    let mut next = filter.clone();
    match name {
        "model" => {
            next = BoardFilter {
                model: Some(value.to_owned()),
                metric: filter.metric,
                simulated: filter.simulated,
                ..BoardFilter::default()
            };
        }
        "hardware" => {
            next.hardware = Some(value.to_owned());
            next.workload = None;
            next.concurrency = None;
        }
        "workload" => {
            next.workload = Some(ContentHash(value.to_owned()));
            next.concurrency = None;
        }
        "metric" => {
            next.metric = if value == ThroughputMetric::SteadyOutputTps.word() {
                ThroughputMetric::SteadyOutputTps
            } else {
                ThroughputMetric::OutputTps
            };
        }
        "concurrency" => next.concurrency = value.parse().ok(),
        "simulated" => {
            next = BoardFilter {
                simulated: value == "true",
                ..BoardFilter::default()
            };
        }
        _ => {}
    }
    next
}

/// The runs of a comparison from its address: `runs=1,2`, or as a form writes it,
/// `runs=1&runs=2`. What is no number is passed over; each run counts once.
#[must_use]
pub fn compare_query(query: &ParamsMap) -> CompareQuery {
    let mut runs: Vec<RunId> = Vec::new();
    for value in query.get_all("runs").into_iter().flatten() {
        for id in value
            .split(',')
            .filter_map(|part| part.trim().parse::<RunId>().ok())
        {
            if !runs.contains(&id) {
                runs.push(id);
            }
        }
    }
    CompareQuery { runs }
}

/// `runs=1,2`.
#[must_use]
pub fn compare_text(runs: &[RunId]) -> String {
    let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
    format!("runs={}", runs.join(","))
}

/// Where the request records of a run's load level are shown.
#[must_use]
pub fn records_address(run: RunId, kind: StageKind) -> String {
    format!("/runs/{run}?level={}#records", kind.slug())
}

/// The same runs with another one first.
#[must_use]
pub fn with_baseline(runs: &[RunId], baseline: RunId) -> Vec<RunId> {
    std::iter::once(baseline)
        .chain(runs.iter().copied().filter(|run| *run != baseline))
        .collect()
}

/// A query being written.
#[derive(Default)]
struct Query(String);

impl Query {
    fn push(&mut self, key: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(key);
        self.0.push('=');
        for byte in value.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    self.0.push(char::from(byte));
                }
                _ => {
                    self.0.push_str(&format!("%{byte:02X}"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> ParamsMap {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn an_empty_address_is_the_default_and_back() {
        let filter = board_filter(&params(&[]));
        assert_eq!(filter, BoardFilter::default());
        assert_eq!(board_query(&filter), "");
    }

    #[test]
    fn an_empty_hardware_is_a_choice_of_its_own() {
        let filter = board_filter(&params(&[("hardware", ""), ("model", "")]));
        assert_eq!(filter.hardware.as_deref(), Some(""));
        assert_eq!(filter.model, None);
        assert_eq!(board_query(&filter), "hardware=");
    }

    #[test]
    fn names_survive_the_address() {
        let filter = BoardFilter {
            model: Some("Kimi K2.5 & co/ö".to_owned()),
            concurrency: Some(128),
            ..BoardFilter::default()
        };
        assert_eq!(
            board_query(&filter),
            "model=Kimi%20K2.5%20%26%20co%2F%C3%B6&concurrency=128"
        );
    }

    #[test]
    fn another_model_takes_back_what_belonged_to_the_old_one() {
        let filter = BoardFilter {
            model: Some("a".to_owned()),
            hardware: Some("8 GPUs".to_owned()),
            workload: Some(ContentHash("f".repeat(64))),
            metric: ThroughputMetric::SteadyOutputTps,
            concurrency: Some(32),
            simulated: true,
        };
        let next = board_choice(&filter, "model", "b");
        assert_eq!(
            board_query(&next),
            "model=b&metric=steady_output_tps&simulated=true"
        );
    }

    #[test]
    fn records_are_found_by_run_and_level() {
        let address = records_address(RunId(7), StageKind::ClosedLoop { concurrency: 32 });
        assert_eq!(address, "/runs/7?level=c-32#records");
    }

    #[test]
    fn runs_are_read_in_both_forms_once_each() {
        let mut query = params(&[("runs", "3, 1,x,3")]);
        query.insert("runs", "2".to_owned());
        let runs = compare_query(&query).runs;
        assert_eq!(runs, [RunId(3), RunId(1), RunId(2)]);
        assert_eq!(compare_text(&runs), "runs=3,1,2");
        assert_eq!(
            with_baseline(&runs, RunId(1)),
            [RunId(1), RunId(3), RunId(2)]
        );
    }
}
