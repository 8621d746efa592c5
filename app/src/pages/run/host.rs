//! The launch and the host that were measured: what really ran, where the client
//! stood, what the host did meanwhile.

use leptos::prelude::*;
use tokdyno_domain::{
    effective::{EffectiveConfiguration, Finding},
    text,
};

use super::data::RunData;
use crate::components::{Charts, EffectiveTable, FlagNote, StampBadge};

/// The section; only where a launch was measured.
#[component]
pub(super) fn Host(data: RunData) -> impl IntoView {
    let there = data.part(|view| view.host.is_some());
    view! {
        <Show when=move || there.get()>
            <HostSection data/>
        </Show>
    }
}

#[component]
fn HostSection(data: RunData) -> impl IntoView {
    let launch = data.part(|view| view.host.as_ref().map(|host| host.launch.clone()));
    let place = data.part(|view| {
        view.host
            .as_ref()
            .map(|host| (host.place, host.round_trip_ms))
    });
    let effective = data.part(|view| view.host.as_ref().and_then(|host| host.effective.clone()));
    let flags = data.part(|view| {
        view.host
            .as_ref()
            .map(|host| host.flags.clone())
            .unwrap_or_default()
    });
    let charts = Signal::from(data.part(|view| {
        view.host
            .iter()
            .flat_map(|host| &host.charts)
            .filter(|chart| !chart.spec.is_empty())
            .cloned()
            .collect::<Vec<_>>()
    }));
    view! {
        <section class="run-host" aria-labelledby="host-title">
            <h2 id="host-title">"Host"</h2>
            {move || {
                launch
                    .get()
                    .map(|run| {
                        let (_, profile, number) = run.profile;
                        view! {
                            <p class="run-badges">
                                {run
                                    .stamp
                                    .map(|stamp| {
                                        view! { <StampBadge stamp=stamp launch=run.launch/> }
                                    })}
                                <span>
                                    <a href=format!("/servers/{}", run.launch)>
                                        {format!("Launch {}", run.launch)}
                                    </a>
                                    " of "
                                    <a href=format!("/profiles/{profile}")>{profile.clone()}</a>
                                    {format!(", revision {number}, on ")}
                                    <a href=format!("/hosts/{}", run.host.0)>{run.host.1}</a>
                                </span>
                            </p>
                        }
                    })
            }}
            <p>
                {move || {
                    place
                        .get()
                        .map(|(place, round_trip)| {
                            let time = round_trip
                                .map(|ms| {
                                    format!(
                                        "; a small question and its answer took {} ms",
                                        text::figure(ms),
                                    )
                                });
                            format!("Measured {}{}.", place.text(), time.unwrap_or_default())
                        })
                }}
            </p>
            {move || {
                let flags = flags.get();
                (!flags.is_empty())
                    .then(|| {
                        view! {
                            <ul class="remarks">
                                {flags
                                    .into_iter()
                                    .map(|flag| view! { <li><FlagNote text=flag/></li> })
                                    .collect_view()}
                            </ul>
                        }
                    })
            }}
            {move || {
                effective
                    .get()
                    .map(|effective| {
                        let summary = summary(&effective);
                        view! {
                            <details class="section-fold">
                                <summary>{format!("What really ran: {summary}")}</summary>
                                <EffectiveTable effective=effective/>
                            </details>
                        }
                    })
            }}
            <Charts views=charts base=None/>
        </section>
    }
}

/// `2 differ, 1 asked but inert, 14 as asked`: every finding there is, trouble first.
fn summary(effective: &EffectiveConfiguration) -> String {
    let counted: Vec<String> = Finding::ALL
        .into_iter()
        .filter_map(|finding| {
            let number = effective
                .items
                .iter()
                .filter(|item| item.finding == finding)
                .count();
            (number > 0).then(|| format!("{number} {}", finding.text()))
        })
        .collect();
    if counted.is_empty() {
        "nothing could be read".to_owned()
    } else {
        counted.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::{
        effective::{Item, Subject},
        timestamp::Timestamp,
    };

    use super::*;

    #[test]
    fn the_summary_counts_findings_with_trouble_first() {
        let item = |finding| Item {
            subject: Subject::Argument,
            name: "--x".to_owned(),
            asked: None,
            found: None,
            finding,
            read_from: String::new(),
            remark: None,
        };
        let found = |items| EffectiveConfiguration::conclude(Timestamp(0), items, None, Vec::new());
        assert_eq!(
            summary(&found(vec![
                item(Finding::AsAsked),
                item(Finding::Inert),
                item(Finding::AsAsked)
            ])),
            "1 asked but inert, 2 as asked"
        );
        assert_eq!(summary(&found(Vec::new())), "nothing could be read");
    }
}
