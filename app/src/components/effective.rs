//! What really runs, item by item against what was asked for.

use leptos::prelude::*;
use tokdyno_domain::{
    effective::{EffectiveConfiguration, Finding, Item, Subject},
    text,
};

use super::{
    badges::{Badge, FindingBadge, StampBadge, Tone},
    icon::Glyph,
    table::TableBox,
    time::RelativeTime,
};

/// The whole of it: stamp, what matters, the rest on demand.
#[component]
pub fn EffectiveTable(
    /// What was read.
    effective: EffectiveConfiguration,
) -> impl IntoView {
    let (matter, rest): (Vec<Item>, Vec<Item>) = effective
        .items
        .into_iter()
        .partition(|item| matters(item.finding));
    let sentence = effective.stamp.sentence();
    let counted = text::plural(rest.len() as u64, "item", "items");
    let quiet = matter.is_empty();
    view! {
        <p class="effective-stamp">
            <StampBadge stamp=effective.stamp/>
            <span>{sentence}</span>
            <span class="muted">"Read " <RelativeTime at=effective.at/> "."</span>
        </p>
        {quiet
            .then(|| {
                view! { <p class="muted">"Nothing stands out: every item is as asked or confirmed."</p> }
            })}
        {(!quiet).then(|| view! { <Items items=matter label="Items that matter"/> })}
        {(!rest.is_empty())
            .then(|| {
                view! {
                    <details class="fold">
                        <summary>{format!("Everything else: {counted} as asked, confirmed or noted")}</summary>
                        <Items items=rest label="Everything else"/>
                    </details>
                }
            })}
        {(!effective.notes.is_empty())
            .then(|| {
                view! {
                    <ul class="remarks effective-notes">
                        {effective
                            .notes
                            .into_iter()
                            .map(|note| view! { <li class="muted">{note}</li> })
                            .collect_view()}
                    </ul>
                }
            })}
        <details class="fold">
            <summary>"What the words mean"</summary>
            <dl class="meanings">
                {Finding::ALL
                    .map(|finding| {
                        view! {
                            <div>
                                <dt>
                                    <FindingBadge finding=finding/>
                                </dt>
                                <dd>{finding.meaning()}</dd>
                            </div>
                        }
                    })}
            </dl>
        </details>
    }
}

/// A reader must see these without asking.
const fn matters(finding: Finding) -> bool {
    matches!(
        finding,
        Finding::Differs
            | Finding::NotAsked
            | Finding::Inert
            | Finding::NotReadable
            | Finding::Passed
    )
}

#[component]
fn Items(items: Vec<Item>, label: &'static str) -> impl IntoView {
    view! {
        <TableBox label=label>
            <table class="data effective">
                <thead>
                    <tr>
                        <th scope="col">"Item"</th>
                        <th scope="col">"Finding"</th>
                        <th scope="col">"Asked"</th>
                        <th scope="col">"Found"</th>
                        <th scope="col">"Read from"</th>
                    </tr>
                </thead>
                <tbody>{items.into_iter().map(item).collect_view()}</tbody>
            </table>
        </TableBox>
    }
}

fn item(item: Item) -> impl IntoView {
    let remark = item
        .remark
        .map(|remark| view! { <span class="row-note">{remark}</span> });
    view! {
        <tr>
            <th scope="row">
                <code>{item.name}</code>
                <span class="row-note">{subject(item.subject)}</span>
            </th>
            <td>
                <FindingBadge finding=item.finding/>
                {remark}
            </td>
            <td>{value(item.asked)}</td>
            <td>{value(item.found)}</td>
            <td class="muted">{item.read_from}</td>
        </tr>
    }
}

fn value(value: Option<String>) -> impl IntoView {
    match value {
        Some(value) => view! { <code>{value}</code> }.into_any(),
        None => view! { <span class="muted">{text::NO_FIGURE}</span> }.into_any(),
    }
}

const fn subject(subject: Subject) -> &'static str {
    match subject {
        Subject::Command => "command",
        Subject::Argument => "argument",
        Subject::Variable => "variable",
        Subject::Model => "model",
        Subject::Engine => "engine",
        Subject::Hardware => "hardware",
    }
}

/// A badge for every argument or variable that was asked for and does nothing.
#[component]
pub fn InertBadges(
    /// What was read.
    effective: EffectiveConfiguration,
) -> impl IntoView {
    effective
        .items
        .into_iter()
        .filter(|item| item.finding == Finding::Inert)
        .map(|item| {
            let why = item
                .remark
                .unwrap_or_else(|| Finding::Inert.meaning().to_owned());
            view! {
                <Badge
                    tone=Tone::Warn
                    glyph=Glyph::Empty
                    text=format!("no effect: {}", item.name)
                    title=why
                />
            }
        })
        .collect_view()
}
