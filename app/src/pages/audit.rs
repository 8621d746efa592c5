//! Who did what, newest first.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;
use tokdyno_domain::views::servers::{AuditEntry, AuditPage as Entries};

use crate::{
    api,
    components::{EmptyState, ErrorBanner, OperatorNote, RelativeTime, Skeleton, TableBox},
};

/// The page.
#[component]
pub fn AuditPage() -> impl IntoView {
    let query = use_query_map();
    let before = Memo::new(move |_| {
        query.with(|query| {
            query
                .get("before")
                .and_then(|text| text.parse::<i64>().ok())
        })
    });
    let page = Resource::new_blocking(move || before.get(), api::audit);
    view! {
        <Title text="Audit log"/>
        <h1>"Audit log"</h1>
        <p class="muted">
            "Every launch, stop, change of a host or profile, and sign-in: who, what, from where."
        </p>
        <Transition fallback=|| view! { <Skeleton lines=10/> }>
            {move || Suspend::new(async move {
                match page.await {
                    Ok(page) => view! { <Log page=page first=before.get_untracked().is_none()/> }.into_any(),
                    Err(error) if error.status == 403 => {
                        view! { <OperatorNote what="Reading the audit log"/> }.into_any()
                    }
                    Err(error) => {
                        view! {
                            <ErrorBanner error=error retry=Callback::new(move |()| page.refetch())/>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

#[component]
fn Log(page: Entries, first: bool) -> impl IntoView {
    let pager = (!first || page.before.is_some()).then(|| {
        view! {
            <nav class="pager" aria-label="Pages of the audit log">
                {(!first)
                    .then(|| {
                        view! {
                            <a class="button" href="/audit">
                                "Newest"
                            </a>
                        }
                    })}
                {page
                    .before
                    .map(|before| {
                        view! {
                            <a class="button" href=format!("/audit?before={before}") rel="next">
                                "Older"
                            </a>
                        }
                    })}
            </nav>
        }
    });
    if page.entries.is_empty() {
        return view! {
            <EmptyState title=if first { "Nothing was done yet" } else { "Nothing is older" }>
                <p>"Entries appear here as soon as somebody acts."</p>
            </EmptyState>
            {pager}
        }
        .into_any();
    }
    view! {
        <TableBox label="Audit log">
            <table class="data audit">
                <thead>
                    <tr>
                        <th scope="col">"What"</th>
                        <th scope="col">"When"</th>
                        <th scope="col">"Who"</th>
                        <th scope="col">"To what"</th>
                        <th scope="col">"Detail"</th>
                        <th scope="col">"From"</th>
                    </tr>
                </thead>
                <tbody>{page.entries.into_iter().map(row).collect_view()}</tbody>
            </table>
        </TableBox>
        {pager}
    }
    .into_any()
}

fn row(entry: AuditEntry) -> impl IntoView {
    let subject = match entry.link {
        Some(link) => view! { <a href=link>{entry.subject}</a> }.into_any(),
        None => entry.subject.into_any(),
    };
    view! {
        <tr>
            <th scope="row">{entry.action}</th>
            <td>
                <RelativeTime at=entry.at/>
            </td>
            <td>{entry.by}</td>
            <td>{subject}</td>
            <td class="remark">{entry.detail}</td>
            <td>{entry.origin}</td>
        </tr>
    }
}
