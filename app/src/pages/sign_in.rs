//! The operator's password. A plain HTML form: it works without scripts, and the
//! password passes through no code of this page.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

use crate::{
    api,
    components::{Glyph, Icon, Skeleton},
};

/// The page.
#[component]
pub fn SignInPage() -> impl IntoView {
    let query = use_query_map();
    let next = query.with_untracked(|query| local(query.get("next")));
    let facts = Resource::new_blocking(
        || (),
        |()| async { (api::me().await, api::sign_in_refusal().await) },
    );
    view! {
        <Title text="Sign in"/>
        <div class="sign-in">
            <h1>"Sign in"</h1>
            <Transition fallback=|| view! { <Skeleton lines=4/> }>
                {
                    let next = next.clone();
                    move || {
                        let next = next.clone();
                        Suspend::new(async move {
                            let (me, refusal) = facts.await;
                            let refusal = refusal.ok().flatten();
                            match me {
                                Ok(me) if me.signed_in || me.may_operate => {
                                    view! {
                                        <p>
                                            "You act as " <strong>{me.name}</strong>
                                            " and may launch, stop and edit. There is nothing to sign in for."
                                        </p>
                                        <p>
                                            <a class="button" href=next>
                                                "Go on"
                                            </a>
                                        </p>
                                    }
                                        .into_any()
                                }
                                Ok(me) if !me.password_set => view! { <NoPassword/> }.into_any(),
                                _ => view! { <Form next=next refusal=refusal/> }.into_any(),
                            }
                        })
                    }
                }
            </Transition>
        </div>
    }
}

#[component]
fn Form(next: String, refusal: Option<String>) -> impl IntoView {
    let refused = refusal.is_some();
    view! {
        <p>
            "From this machine or network one may look and measure. Launching, stopping, and editing hosts or profiles need the operator's password."
        </p>
        <form method="post" action="/sign-in" class="panel stack">
            <input type="hidden" name="next" value=next/>
            <p class="field">
                <label for="password">"Operator's password"</label>
                <input
                    id="password"
                    name="password"
                    type="password"
                    autocomplete="current-password"
                    required
                    autofocus
                    aria-describedby="password-error"
                    aria-invalid=refused.then_some("true")
                />
            </p>
            <div id="password-error" role="alert">
                {refusal
                    .map(|sentence| {
                        view! {
                            <p class="error-note">
                                <Icon glyph=Glyph::Warning/>
                                <span>{sentence}</span>
                            </p>
                        }
                    })}
            </div>
            <div>
                <button type="submit" class="button button-primary">
                    "Sign in"
                </button>
            </div>
        </form>
    }
}

/// Nobody can sign in yet.
#[component]
fn NoPassword() -> impl IntoView {
    view! {
        <div class="panel stack">
            <p>"No operator's password has been set, so nobody can sign in from here."</p>
            <p>"On the machine that runs Tokdyno, as the user that runs it:"</p>
            <pre class="verbatim">"tokdyno set-password"</pre>
            <p class="muted">
                "Whoever uses that machine itself needs no password: there, open Tokdyno under 127.0.0.1."
            </p>
        </div>
    }
}

/// Where to go afterwards: a path here, never another site's address.
fn local(next: Option<String>) -> String {
    next.filter(|next| {
        next.starts_with('/') && !next.starts_with("//") && !next.contains(['\\', '\n', '\r', '\t'])
    })
    .unwrap_or_else(|| "/servers".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_on_never_leaves_this_site() {
        assert_eq!(local(Some("/hosts/3".to_owned())), "/hosts/3");
        for bad in ["https://x", "//x", "/\\x", "x", "/\t/x"] {
            assert_eq!(local(Some(bad.to_owned())), "/servers", "{bad}");
        }
        assert_eq!(local(None), "/servers");
    }
}
