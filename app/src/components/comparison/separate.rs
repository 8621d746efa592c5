//! From a confounded comparison to the experiment that takes it apart.

use leptos::prelude::*;
use tokdyno_domain::{
    ids::{HostId, ProfileId, RunId},
    views::{
        compare::{ClassKind, CompareView},
        run::RunSummary,
    },
};

use super::Ties;

/// A chain of single changes that could be measured, from one profile to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ablation {
    base: (ProfileId, String),
    to: (ProfileId, String),
    host: HostId,
}

impl Ablation {
    fn address(&self) -> String {
        format!(
            "/experiments/new?design=ablation&base={}&to={}&host={}",
            self.base.0, self.to.0, self.host
        )
    }
}

/// What would take a confounded comparison apart: for each configuration that is
/// launches of one profile on the host on which the baseline's are launches of
/// another.
pub(super) fn ablations<C>(view: &CompareView<C>) -> Vec<Ablation> {
    if view.class.kind != ClassKind::Confounded {
        return Vec::new();
    }
    let mut groups = view.groups.iter().map(|group| launched(view, &group.runs));
    let Some((base, host)) = groups.next().flatten() else {
        return Vec::new();
    };
    groups
        .flatten()
        .filter(|(to, its)| *its == host && to.0 != base.0)
        .map(|(to, host)| Ablation {
            base: base.clone(),
            to,
            host,
        })
        .collect()
}

/// The profile and the host of runs, if all of them are launches of one on one.
fn launched<C>(view: &CompareView<C>, runs: &[RunId]) -> Option<((ProfileId, String), HostId)> {
    let of = |run: &RunSummary| {
        let launch = run.launch.as_ref()?;
        let (profile, name, revision) = &launch.profile;
        Some((*profile, name.clone(), *revision, launch.host.0))
    };
    let mut launches = view
        .runs
        .iter()
        .filter(|run| runs.contains(&run.id))
        .map(of);
    let first = launches.next()??;
    launches
        .all(|launch| launch.as_ref() == Some(&first))
        .then_some(((first.0, first.1), first.3))
}

/// A link per chain.
#[component]
pub(super) fn Ablations(ablations: Vec<Ablation>, ties: Ties) -> impl IntoView {
    (ties != Ties::Shared && !ablations.is_empty()).then(|| {
        let links = ablations
            .into_iter()
            .map(|ablation| {
                view! {
                    <a class="button" href=ablation.address()>
                        {format!("Plan the runs between {} and {}", ablation.base.1, ablation.to.1)}
                    </a>
                }
            })
            .collect_view();
        view! { <p class="cluster">{links}</p> }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokdyno_domain::{
        analysis::{RunFacts, compare},
        chart::ChartSpec,
        engine::EngineKind,
        ids::{ContentHash, LaunchId},
        metrics::METRIC_VERSION,
        run::RunState,
        source::Source,
        timestamp::Timestamp,
        views::run_host::RunLaunch,
    };

    fn run(id: i64, profile: i64, host: i64, settings: [(&str, &str); 2]) -> RunFacts {
        RunFacts {
            summary: RunSummary {
                id: RunId(id),
                configuration: format!("profile {profile}"),
                state: RunState::Finished,
                reason: None,
                cancel_requested: false,
                queue_place: None,
                source: Source::Measured,
                engine: EngineKind::Sglang,
                engine_version: None,
                model: "m".to_owned(),
                hardware: String::new(),
                endpoint: None,
                workload_name: "quick".to_owned(),
                workload_hash: ContentHash::of(b"quick"),
                workload_text: "quick".to_owned(),
                created_at: Timestamp(0),
                started_at: None,
                finished_at: None,
                single_stream: None,
                peak_output: None,
                peak_rate: None,
                flagged: false,
                launch: Some(RunLaunch {
                    launch: LaunchId(id),
                    host: (HostId(host), format!("gpu{host}")),
                    profile: (ProfileId(profile), format!("profile {profile}"), 1),
                    stamp: None,
                }),
            },
            stages: Vec::new(),
            settings: settings
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            metric_version: METRIC_VERSION,
            client: String::new(),
            remarks: Vec::new(),
            acceptance: None,
        }
    }

    fn addresses(runs: &[RunFacts]) -> Vec<String> {
        let view: CompareView<ChartSpec> = compare(runs).expect("a comparison");
        ablations(&view).iter().map(Ablation::address).collect()
    }

    #[test]
    fn two_profiles_on_one_host_can_be_taken_apart() {
        let base = run(1, 4, 1, [("tp", "8"), ("page", "1")]);
        let to = run(2, 5, 1, [("tp", "4"), ("page", "64")]);
        assert_eq!(
            addresses(&[base.clone(), to.clone()]),
            ["/experiments/new?design=ablation&base=4&to=5&host=1"]
        );
        let elsewhere = run(2, 5, 2, [("tp", "4"), ("page", "64")]);
        assert!(addresses(&[base.clone(), elsewhere]).is_empty());
        let one_change = run(2, 5, 1, [("tp", "4"), ("page", "1")]);
        assert!(
            addresses(&[base.clone(), one_change]).is_empty(),
            "controlled"
        );
        let mut address = to;
        address.summary.launch = None;
        assert!(addresses(&[base, address]).is_empty(), "not launched");
    }
}
