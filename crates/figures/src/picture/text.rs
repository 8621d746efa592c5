//! What a preview picture says.

use tokdyno_domain::{
    comparison::FrozenComparison,
    source::Source,
    statistics::Estimate,
    text::figure,
    timestamp::Timestamp,
    views::{
        compare::{CompareRow, CompareView},
        run::RunSummary,
    },
    workload::StageKind,
};

/// What a preview picture says, beside its chart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PictureText {
    /// What the comparison is called.
    pub title: String,
    /// The verdict, as its sentence. If it is too long, its middle is cut: the last
    /// words are those that say whether anything is established.
    pub verdict: String,
    /// What the verdict must be read with, such as how many things differ.
    pub remark: String,
    /// Name and figures of each configuration, in a line each. Those that bear the
    /// name of a series of the chart are shown with its mark.
    pub configurations: Vec<(String, String)>,
    /// Where the figures come from. Simulated ones are marked so, and so are those of
    /// a chart with a simulated series.
    pub sources: Vec<Source>,
    /// Where the comparison is found, such as its address.
    pub address: String,
    /// When it was frozen.
    pub frozen_at: Option<Timestamp>,
}

impl PictureText {
    /// What to say of a frozen comparison that is found at `address`. The headline is
    /// its first verdict, or what class of comparison it is if there is none.
    #[must_use]
    pub fn of(comparison: &FrozenComparison, address: &str) -> Self {
        let view = &comparison.view;
        let mut sources: Vec<Source> = view.runs.iter().map(|run| run.source).collect();
        sources.sort_unstable();
        sources.dedup();
        let class = &comparison.class_sentence();
        let (verdict, remark) = match view.verdicts.as_slice() {
            [] => (class.clone(), String::new()),
            [one] => (one.sentence.clone(), class.clone()),
            [first, rest @ ..] => (
                first.sentence.clone(),
                match rest.len() {
                    1 => format!("{class} One more verdict on the page."),
                    more => format!("{class} {more} more verdicts on the page."),
                },
            ),
        };
        Self {
            title: comparison.title.clone(),
            verdict,
            remark,
            configurations: configurations(view, sources.len() > 1),
            sources,
            address: address.to_owned(),
            frozen_at: Some(comparison.frozen_at),
        }
    }
}

/// A column of the comparison's tables: a configuration over its launches, or a run.
struct Column<'a> {
    name: String,
    /// The run, or the first of the configuration's.
    run: &'a RunSummary,
    /// Does it stand for more than that run?
    of_several: bool,
    place: Place,
}

/// Where in a row its figure stands.
#[derive(Clone, Copy)]
enum Place {
    Run(usize),
    Group(usize),
}

/// A figure, and whether it is doubtful.
type Shown = (Estimate, bool);

impl Column<'_> {
    fn cell(&self, row: &CompareRow) -> Option<Shown> {
        match self.place {
            Place::Run(place) => {
                let cell = row.cells.get(place).copied().flatten()?;
                Some((cell.estimate, cell.doubtful))
            }
            Place::Group(place) => {
                let cell = row.groups.get(place)?.as_ref()?;
                Some((cell.estimate, cell.doubtful))
            }
        }
    }
}

/// Configurations where several runs are launches of one, as the charts have them;
/// runs otherwise.
fn columns<C>(view: &CompareView<C>) -> Vec<Column<'_>> {
    let together = view.groups.len() > 1 && view.groups.iter().any(|group| group.runs.len() > 1);
    if !together {
        let runs = view.runs.iter().enumerate();
        return runs
            .map(|(place, run)| Column {
                name: name(run, &view.runs),
                run,
                of_several: false,
                place: Place::Run(place),
            })
            .collect();
    }
    let groups = view.groups.iter().enumerate();
    groups
        .filter_map(|(place, group)| {
            Some(Column {
                name: group.name.clone(),
                run: view.runs.iter().find(|run| group.runs.contains(&run.id))?,
                of_several: group.runs.len() > 1,
                place: Place::Group(place),
            })
        })
        .collect()
}

/// Names as the charts have them, and the two figures of the decision.
fn configurations<C>(view: &CompareView<C>, mixed: bool) -> Vec<(String, String)> {
    let columns = columns(view);
    let rows = |metric: &'static str| {
        view.rows
            .iter()
            .filter(move |row| row.metric.ends_with(metric))
    };
    let single = rows(SINGLE).find(|row| row.kind == StageKind::SingleStream);
    // The highest concurrency at which all of them have a throughput.
    let level = rows(OUTPUT)
        .filter(|row| row.kind != StageKind::SingleStream)
        .filter(|row| columns.iter().all(|column| column.cell(row).is_some()))
        .max_by_key(|row| row.kind);
    columns
        .iter()
        .map(|column| {
            let run = column.run;
            let alone = |figure: Option<Estimate>| figure.filter(|_| !column.of_several);
            let speed = single.and_then(|row| column.cell(row));
            let many = level.and_then(|row| Some((row.kind, column.cell(row)?)));
            let mut said: Vec<String> = Vec::new();
            if let Some(speed) = speed
                .map(|(estimate, _)| estimate)
                .or(alone(run.single_stream))
            {
                said.push(format!("{} for one user", rate(&speed)));
            }
            match (many, &run.peak_output) {
                (Some((kind, (estimate, _))), _) => {
                    said.push(format!("{} at {kind}", rate(&estimate)));
                }
                (None, Some((concurrency, peak))) if !column.of_several => {
                    said.push(format!("{} at C = {concurrency}", rate(peak)));
                }
                (None, _) => {}
            }
            if said.is_empty() {
                said.push("no figures".to_owned());
            }
            if mixed {
                said.push(run.source.word().to_owned());
            }
            let doubtful = [speed, many.map(|(_, shown)| shown)]
                .into_iter()
                .flatten()
                .any(|(_, doubtful)| doubtful);
            if doubtful || run.flagged && !column.of_several {
                said.push("flagged".to_owned());
            }
            (column.name.clone(), said.join(" · "))
        })
        .collect()
}

/// The metrics by the field's names for them, which stand in brackets behind ours.
const SINGLE: &str = "(e2e_tps)";
const OUTPUT: &str = "(output_tps)";

fn rate(estimate: &Estimate) -> String {
    format!("{} tok/s", figure(estimate.mean))
}

/// Runs of one configuration are told apart by their numbers.
fn name(run: &RunSummary, all: &[RunSummary]) -> String {
    let configuration = &run.configuration;
    let same = |other: &&RunSummary| other.configuration == *configuration;
    if all.iter().filter(same).count() > 1 {
        format!("{configuration} (run {})", run.id)
    } else {
        configuration.clone()
    }
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::{
        comparison::COMPARISON_SCHEMA,
        comparison::Override,
        engine::EngineKind,
        ids::RunId,
        statistics::{Better, Launch},
        verdict::{Question, Side, judge},
        views::compare::{ClassKind, CompareCell, CompareGroup, ComparisonClass, GroupCell},
        workload::Preset,
    };

    use super::*;

    fn run(id: i64, configuration: &str, source: Source) -> RunSummary {
        RunSummary {
            engine: EngineKind::Sglang,
            model: "tiny".to_owned(),
            ..RunSummary::finished(
                RunId(id),
                configuration.to_owned(),
                source,
                &Preset::Quick.workload(),
                Timestamp(0),
            )
        }
    }

    fn row(kind: StageKind, metric: &str, cells: [Option<f64>; 2]) -> CompareRow {
        CompareRow {
            kind,
            metric: metric.to_owned(),
            unit: "tok/s".to_owned(),
            more_is_better: true,
            groups: Vec::new(),
            cells: cells
                .into_iter()
                .map(|value| {
                    Some(CompareCell {
                        estimate: Estimate::of(value)?,
                        ratio: None,
                        doubtful: value == Some(2320.0),
                    })
                })
                .collect(),
        }
    }

    fn comparison(names: [&str; 2], sources: [Source; 2]) -> FrozenComparison {
        let verdict = |metric, values: [&[f64]; 2]| {
            let launches = values.map(|repeats| [Launch::new(repeats).expect("figures")]);
            let [first, second] = [0, 1].map(|at| Side {
                name: names[at],
                launches: &launches[at],
                source: sources[at],
                objection: None,
                failed: None,
            });
            let question = Question::of(metric, Better::Higher);
            judge(&question, &first, &second, Ok(()))
        };
        let level = |concurrency| StageKind::ClosedLoop { concurrency };
        FrozenComparison {
            schema_version: COMPARISON_SCHEMA,
            title: "vLLM or SGLang?".to_owned(),
            frozen_at: Timestamp(1_795_968_039_000_000),
            analysis_version: 2,
            metric_version: 1,
            overridden: None,
            view: CompareView {
                runs: vec![run(1, names[0], sources[0]), run(2, names[1], sources[1])],
                rows: vec![
                    row(
                        StageKind::SingleStream,
                        "single-stream speed (e2e_tps)",
                        [Some(82.5), Some(90.0)],
                    ),
                    row(
                        level(128),
                        "output throughput (output_tps)",
                        [Some(1536.0), Some(2320.0)],
                    ),
                    row(
                        level(256),
                        "output throughput (output_tps)",
                        [Some(1700.0), None],
                    ),
                ],
                differences: Vec::new(),
                equal_settings: 0,
                class: ComparisonClass {
                    kind: ClassKind::Controlled,
                    sentence: "Controlled: only engine differs.".to_owned(),
                },
                verdicts: vec![
                    verdict("Single stream", [&[82.5], &[90.0]]),
                    verdict("Output throughput at C = 128", [&[1536.0], &[2320.0]]),
                ],
                crossovers: Vec::new(),
                speculation: Vec::new(),
                charts: Vec::new(),
                groups: Vec::new(),
                separating: Vec::new(),
            },
        }
    }

    #[test]
    fn a_comparison_is_told_as_its_page_tells_it() {
        let comparison = comparison(["vLLM", "SGLang"], [Source::Measured; 2]);
        let text = PictureText::of(&comparison, "dyno.example/c/07");
        assert_eq!(text.title, "vLLM or SGLang?");
        assert_eq!(text.verdict, comparison.view.verdicts[0].sentence);
        assert_eq!(
            text.remark,
            "Controlled: only engine differs. One more verdict on the page."
        );
        assert_eq!(text.sources, [Source::Measured]);
        assert_eq!(text.address, "dyno.example/c/07");
        assert_eq!(text.frozen_at, Some(comparison.frozen_at));
        let rows = [
            ("vLLM", "82.5 tok/s for one user · 1,536 tok/s at C = 128"),
            (
                "SGLang",
                "90.0 tok/s for one user · 2,320 tok/s at C = 128 · flagged",
            ),
        ];
        assert_eq!(
            text.configurations,
            rows.map(|(name, figures)| (name.to_owned(), figures.to_owned()))
        );
    }

    #[test]
    fn launches_of_a_configuration_are_told_together() {
        let mut comparison = comparison(["vLLM", "SGLang"], [Source::Measured; 2]);
        let view = &mut comparison.view;
        view.runs.push(run(3, "SGLang", Source::Measured));
        let group = |name: &str, runs: &[i64]| CompareGroup {
            name: name.to_owned(),
            runs: runs.iter().map(|run| RunId(*run)).collect(),
            launches: 2,
            notes: Vec::new(),
        };
        view.groups = vec![group("vLLM", &[1]), group("SGLang", &[2, 3])];
        for row in &mut view.rows {
            row.groups = [82.5, 91.0]
                .map(|value| {
                    Some(GroupCell {
                        estimate: Estimate::of([value])?,
                        launches: 2,
                        ratio: None,
                        doubtful: false,
                        runs: Vec::new(),
                    })
                })
                .to_vec();
        }
        let text = PictureText::of(&comparison, "");
        assert_eq!(
            text.configurations[1],
            (
                "SGLang".to_owned(),
                "91.0 tok/s for one user · 91.0 tok/s at C = 256".to_owned()
            )
        );
        assert_eq!(text.configurations.len(), 2);
    }

    #[test]
    fn an_override_stands_by_the_class() {
        let mut comparison = comparison(["vLLM", "SGLang"], [Source::Measured; 2]);
        comparison.overridden = Some(Override {
            in_spite_of: "different workloads".to_owned(),
            by: "Ada".to_owned(),
            at: comparison.frozen_at,
            reason: "one is a part of the other".to_owned(),
        });
        let text = PictureText::of(&comparison, "");
        assert!(
            text.remark.starts_with(
                "Controlled: only engine differs. Compared in spite of different workloads, by Ada on 2026-11-29 16:00 UTC: one is a part of the other."
            ),
            "{}",
            text.remark
        );
    }

    #[test]
    fn without_a_verdict_the_class_is_the_headline() {
        let mut comparison = comparison(["vLLM", "SGLang"], [Source::Measured; 2]);
        comparison.view.verdicts.clear();
        let text = PictureText::of(&comparison, "");
        assert_eq!(text.verdict, "Controlled: only engine differs.");
        assert_eq!(text.remark, "");
    }

    #[test]
    fn runs_of_one_name_and_of_several_sources_are_told_apart() {
        let comparison = comparison(["a", "a"], [Source::Simulated, Source::Measured]);
        let text = PictureText::of(&comparison, "");
        assert_eq!(text.sources, [Source::Measured, Source::Simulated]);
        let [(first, figures), (second, _)] = text.configurations.as_slice() else {
            panic!("two rows");
        };
        assert_eq!(
            (first.as_str(), second.as_str()),
            ("a (run 1)", "a (run 2)")
        );
        assert!(figures.ends_with(" · simulated"), "{figures}");
    }
}
