//! From a confounded comparison to the experiment that takes it apart.

use leptos::prelude::*;
use tokdyno_domain::{
    ids::{HostId, ProfileId, RunId},
    views::{
        compare::{ClassKind, CompareView},
        profiles::ProfileList,
        run::RunSummary,
    },
};

use super::Ties;
use crate::api;

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

/// A link per chain whose ends can be chosen when one plans.
#[component]
pub(super) fn Ablations(ablations: Vec<Ablation>, ties: Ties) -> impl IntoView {
    (ties != Ties::Shared && !ablations.is_empty()).then(|| {
        let profiles = Resource::new(|| (), |()| api::profiles());
        let ablations = StoredValue::new(ablations);
        view! {
            <Suspense>
                {move || Suspend::new(async move {
                    // Without the list nobody knows what can be chosen.
                    let profiles = profiles.await.ok()?;
                    links(can_be_planned(ablations.get_value(), &profiles))
                })}
            </Suspense>
        }
    })
}

/// Those between profiles on the list. The profiles that an experiment makes for its
/// cells are not on it, and archived ones are not launched.
fn can_be_planned(ablations: Vec<Ablation>, list: &ProfileList) -> Vec<Ablation> {
    let is_offered = |id: ProfileId| {
        list.profiles
            .iter()
            .any(|card| card.id == id && !card.archived)
    };
    ablations
        .into_iter()
        .filter(|ablation| is_offered(ablation.base.0) && is_offered(ablation.to.0))
        .collect()
}

fn links(ablations: Vec<Ablation>) -> Option<impl IntoView> {
    (!ablations.is_empty()).then(|| {
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
        view! {
            <p class="cluster">
                {links} <span class="muted">"Of each profile the newest revision is taken."</span>
            </p>
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::new_experiment::samples;
    use tokdyno_domain::{
        analysis::{RunFacts, compare},
        chart::ChartSpec,
        engine::EngineKind,
        ids::LaunchId,
        metrics::METRIC_VERSION,
        source::Source,
        timestamp::Timestamp,
        views::run_host::RunLaunch,
        workload::Preset,
    };

    fn run(id: i64, profile: i64, host: i64, settings: [(&str, &str); 2]) -> RunFacts {
        RunFacts {
            summary: RunSummary {
                engine: EngineKind::Sglang,
                model: "m".to_owned(),
                launch: Some(RunLaunch {
                    launch: LaunchId(id),
                    host: (HostId(host), format!("gpu{host}")),
                    profile: (ProfileId(profile), format!("profile {profile}"), 1),
                    stamp: None,
                }),
                ..RunSummary::finished(
                    RunId(id),
                    format!("profile {profile}"),
                    Source::Measured,
                    &Preset::Quick.workload(),
                    Timestamp(0),
                )
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

    #[test]
    fn only_profiles_on_the_list_can_be_planned_with() {
        let view: CompareView<ChartSpec> = compare(&[
            run(1, 4, 1, [("tp", "8"), ("page", "1")]),
            run(2, 5, 1, [("tp", "4"), ("page", "64")]),
        ])
        .expect("a comparison");
        let found = ablations(&view);
        let planned = |cards: [(i64, bool); 2]| {
            let mut list = samples::profiles();
            for (card, (id, archived)) in list.profiles.iter_mut().zip(cards) {
                (card.id, card.archived) = (ProfileId(id), archived);
            }
            can_be_planned(found.clone(), &list)
        };
        assert_eq!(found.len(), 1);
        assert_eq!(planned([(4, false), (5, false)]), found);
        assert_eq!(planned([(6, false), (5, false)]), [], "not on the list");
        assert_eq!(planned([(4, false), (5, true)]), [], "archived");
    }
}
