//! Who the reader is to the program, asked once for every page.

use leptos::prelude::*;
use leptos_router::hooks::use_location;
use tokdyno_domain::views::servers::Me;

use crate::{AppError, api};

/// The answer, as a context of the whole program.
#[derive(Clone, Copy)]
pub struct Who(Resource<Result<Me, AppError>>);

impl Who {
    /// Asks, for all components below.
    pub fn provide() {
        provide_context(Self(Resource::new(|| (), |()| api::me())));
    }

    /// May the reader launch, and edit hosts and profiles? Nobody may where it is not
    /// known.
    pub async fn may_operate() -> bool {
        match use_context::<Self>() {
            Some(who) => who.0.await.is_ok_and(|me| me.may_operate),
            None => false,
        }
    }
}

/// In the header: who one is, where that is not simply the person at this machine,
/// and the way in or out.
#[component]
pub fn Account() -> impl IntoView {
    let who = use_context::<Who>();
    view! {
        <Transition>
            {move || Suspend::new(async move {
                match who {
                    Some(who) => who.0.await.ok().map(account),
                    None => None,
                }
            })}
        </Transition>
    }
}

fn account(me: Me) -> Option<AnyView> {
    if me.signed_in {
        return Some(
            view! {
                <form method="post" action="/sign-out" class="account">
                    <span class="account-name">{me.name}</span>
                    <button type="submit" class="button button-small">
                        "Sign out"
                    </button>
                </form>
            }
            .into_any(),
        );
    }
    (!me.may_operate).then(|| {
        view! {
            <p class="account">
                <span class="account-name">{me.name}</span>
                <a class="button button-small" href="/sign-in" rel="external">
                    "Sign in"
                </a>
            </p>
        }
        .into_any()
    })
}

/// Why a page offers no buttons, and what to do about it.
#[component]
pub fn OperatorNote(
    /// What only operators may do: `Launching and stopping`.
    #[prop(into)]
    what: String,
) -> impl IntoView {
    let location = use_location();
    let path = location.pathname.get_untracked();
    view! {
        <p class="operator-note">
            {what} ": for operators only. "
            <a href=format!("/sign-in?next={path}") rel="external">
                "Sign in"
            </a>
            ", or open this page on the machine that runs Tokdyno."
        </p>
    }
}
