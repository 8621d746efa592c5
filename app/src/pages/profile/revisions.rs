//! All revisions, and what differs between any two: `?from=1&to=3` in the address.

use leptos::prelude::*;
use leptos_router::params::ParamsMap;
use tokdyno_domain::{
    ids::RevisionId,
    text,
    views::profiles::{DiffLine, RevisionSummary},
};

use crate::{
    AppError, api,
    components::{ErrorBanner, RelativeTime, Skeleton, TableBox},
};

/// What the address asks for, by numbers of revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Asked {
    /// Compare this one …
    pub(super) from: Option<u32>,
    /// … with this one.
    pub(super) to: Option<u32>,
    /// Take this one into the editor.
    pub(super) edit: Option<u32>,
}

impl Asked {
    /// What does not read is left out.
    pub(super) fn read(query: &ParamsMap) -> Self {
        let number = |key: &str| query.get(key).and_then(|text| text.parse().ok());
        Self {
            from: number("from"),
            to: number("to"),
            edit: number("edit"),
        }
    }
}

/// The section.
#[component]
pub(super) fn Revisions(
    /// The profile's name.
    name: String,
    /// Newest first.
    revisions: Vec<RevisionSummary>,
    /// What the address asks for.
    asked: Memo<Asked>,
    /// May a revision be taken into the editor?
    may_edit: bool,
) -> impl IntoView {
    let rows = revisions
        .iter()
        .cloned()
        .map(|revision| row(&name, revision, may_edit))
        .collect_view();
    let several = revisions.len() > 1;
    let compare = several.then(|| view! { <Compare name=name revisions=revisions asked=asked/> });
    view! {
        <section class="section" id="revisions" aria-labelledby="revisions-title">
            <h2 id="revisions-title">"Revisions"</h2>
            {compare}
            <TableBox label="All revisions">
                <table class="data">
                    <thead>
                        <tr>
                            <th scope="col">"Revision"</th>
                            <th scope="col">"Made"</th>
                            <th scope="col">"By"</th>
                            <th scope="col">"Notes"</th>
                            {may_edit.then(|| view! { <th scope="col">"Editor"</th> })}
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </TableBox>
        </section>
    }
}

fn row(name: &str, revision: RevisionSummary, may_edit: bool) -> impl IntoView + use<> {
    let edit = may_edit.then(|| {
        view! {
            <td>
                <a href=format!("/profiles/{name}?edit={}", revision.number)>"Take into the editor"</a>
            </td>
        }
    });
    view! {
        <tr>
            <th scope="row">
                {revision.number}
                <span class="row-note">
                    <code>{revision.hash.short().to_owned()}</code>
                </span>
            </th>
            <td>
                <RelativeTime at=revision.at/>
            </td>
            <td>{revision.by}</td>
            <td class="remark">{revision.notes}</td>
            {edit}
        </tr>
    }
}

/// Two choices, and what differs. A plain form: it works without scripts.
#[component]
fn Compare(name: String, revisions: Vec<RevisionSummary>, asked: Memo<Asked>) -> impl IntoView {
    let numbers: Vec<(u32, RevisionId)> = revisions
        .iter()
        .map(|revision| (revision.number, revision.id))
        .collect();
    let newest = numbers.first().map(|(number, _)| *number);
    let before = numbers.get(1).map(|(number, _)| *number);
    let pair = {
        let numbers = numbers.clone();
        Memo::new(move |_| {
            let asked = asked.get();
            let find = |wanted: u32| {
                numbers
                    .iter()
                    .find(|(number, _)| *number == wanted)
                    .map(|(_, id)| *id)
            };
            Some((find(asked.from?)?, find(asked.to?)?))
        })
    };
    let lines = Resource::new_blocking(
        move || pair.get(),
        |pair| async move {
            match pair {
                Some((first, second)) => api::profile_diff(first, second).await.map(Some),
                None => Ok::<_, AppError>(None),
            }
        },
    );
    let select = |id: &'static str, key: &'static str, label: &'static str, chosen: Option<u32>| {
        view! {
            <p class="field">
                <label for=id>{label}</label>
                <select id=id name=key>
                    {numbers
                        .iter()
                        .map(|(number, _)| {
                            view! {
                                <option value=number.to_string() selected=Some(*number) == chosen>
                                    {format!("revision {number}")}
                                </option>
                            }
                        })
                        .collect_view()}
                </select>
            </p>
        }
    };
    let first = asked.get_untracked();
    view! {
        <form
            class="revision-pair"
            method="get"
            action=format!("/profiles/{name}#revisions")
            aria-label="Compare two revisions"
        >
            {select("diff-from", "from", "From", first.from.or(before))}
            {select("diff-to", "to", "To", first.to.or(newest))}
            <button type="submit" class="button">
                "Show what differs"
            </button>
        </form>
        <Transition fallback=|| view! { <Skeleton lines=2/> }>
            {move || Suspend::new(async move {
                match lines.await {
                    Ok(None) => ().into_any(),
                    Ok(Some(lines)) => view! { <Diff lines=lines asked=asked.get_untracked()/> }.into_any(),
                    Err(error) => {
                        view! {
                            <ErrorBanner error=error retry=Callback::new(move |()| lines.refetch())/>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

#[component]
fn Diff(lines: Vec<DiffLine>, asked: Asked) -> impl IntoView {
    let heading = |number: Option<u32>| match number {
        Some(number) => format!("Revision {number}"),
        None => String::new(),
    };
    if lines.is_empty() {
        return view! { <p>"The two run alike; at most their notes differ."</p> }.into_any();
    }
    view! {
        <TableBox label="What differs">
            <table class="data differences">
                <thead>
                    <tr>
                        <th scope="col">"What"</th>
                        <th scope="col">{heading(asked.from)}</th>
                        <th scope="col">{heading(asked.to)}</th>
                    </tr>
                </thead>
                <tbody>
                    {lines
                        .into_iter()
                        .map(|line| {
                            view! {
                                <tr>
                                    <th scope="row">
                                        <code>{line.name}</code>
                                    </th>
                                    <td>{value(line.first)}</td>
                                    <td>{value(line.second)}</td>
                                </tr>
                            }
                        })
                        .collect_view()}
                </tbody>
            </table>
        </TableBox>
    }
    .into_any()
}

fn value(value: Option<String>) -> impl IntoView {
    match value {
        Some(value) if value.is_empty() => {
            view! { <span class="muted">"set, without a value"</span> }.into_any()
        }
        Some(value) => view! { <code>{value}</code> }.into_any(),
        None => {
            view! { <span class="muted">{text::NO_FIGURE} <span class="visually-hidden">"absent"</span></span> }
                .into_any()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_in_the_address_is_left_out() {
        let params: ParamsMap = [("from", "1"), ("to", "x"), ("edit", "")]
            .into_iter()
            .map(|(key, value)| (key, value.to_owned()))
            .collect();
        assert_eq!(
            Asked::read(&params),
            Asked {
                from: Some(1),
                ..Asked::default()
            }
        );
    }
}
