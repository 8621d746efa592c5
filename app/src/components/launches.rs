//! Launches in a table: what ran where, and how it ended.

use leptos::prelude::*;
use tokdyno_domain::{
    launch::{LaunchOrigin, LaunchState},
    source::Source,
    text,
    views::servers::LaunchSummary,
};

use super::{
    badges::{LaunchBadge, SourceBadge, StampBadge},
    table::TableBox,
    time::RelativeTime,
};

/// Launches, newest first.
#[component]
pub fn LaunchTable(
    /// The launches.
    launches: Vec<LaunchSummary>,
    /// What the table shows.
    #[prop(into)]
    label: String,
) -> impl IntoView {
    view! {
        <TableBox label=label>
            <table class="data launches">
                <thead>
                    <tr>
                        <th scope="col">"Launch"</th>
                        <th scope="col">"State"</th>
                        <th scope="col">"Stamp"</th>
                        <th scope="col">"Host"</th>
                        <th scope="col">"Engine"</th>
                        <th scope="col">"By"</th>
                        <th scope="col">"Asked for"</th>
                        <th scope="col" class="num">"Ran"</th>
                    </tr>
                </thead>
                <tbody>{launches.into_iter().map(row).collect_view()}</tbody>
            </table>
        </TableBox>
    }
}

fn row(launch: LaunchSummary) -> impl IntoView {
    let why = launch.failure.as_ref().map(|failure| {
        view! { <span class="row-note">{failure.kind.sentence()}</span> }
    });
    let (_, profile, number, _) = launch.profile.clone();
    let ran = ran(&launch);
    view! {
        <tr>
            <th scope="row">
                <a href=format!("/servers/{}", launch.id)>{profile}</a>
                <span class="row-note">
                    {format!("launch {}, revision {number}{}", launch.id, origin(launch.origin))}
                </span>
            </th>
            <td>
                <LaunchBadge state=launch.state stop_requested=launch.stop_requested/>
                {why}
            </td>
            <td>
                {match launch.stamp {
                    Some(stamp) => view! { <StampBadge stamp=stamp/> }.into_any(),
                    None => view! { <span class="muted">{text::NO_FIGURE}</span> }.into_any(),
                }}
            </td>
            <td>
                <a href=format!("/hosts/{}", launch.host.0)>{launch.host.1}</a>
            </td>
            <td>
                {launch.engine.name()} {launch.engine_version.map(|version| format!(" {version}"))}
                {launch.simulated.then(|| view! { <div><SourceBadge source=Source::Simulated/></div> })}
            </td>
            <td>{launch.by}</td>
            <td>
                <RelativeTime at=launch.created_at/>
            </td>
            <td class="num">{ran}</td>
        </tr>
    }
}

/// A word for what was not simply launched from here.
pub const fn origin(origin: LaunchOrigin) -> &'static str {
    match origin {
        LaunchOrigin::Launched => "",
        LaunchOrigin::Adopted => ", adopted",
        LaunchOrigin::Restored => ", restored",
    }
}

/// How long its process ran, where both ends are known.
fn ran(launch: &LaunchSummary) -> String {
    match (launch.started_at, launch.ended_at) {
        (Some(from), Some(to)) if launch.state != LaunchState::Lost => {
            text::duration(to.0.saturating_sub(from.0) as f64 / 1e6)
        }
        _ => text::NO_FIGURE.to_owned(),
    }
}
