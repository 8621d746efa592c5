//! Where: address, key, certificate, model, and what to call it.

use leptos::{html, prelude::*, task::spawn_local};
use tokdyno_domain::{endpoint::EndpointUrl, views::measure::ProbeView};

use super::{
    field::{Field, Wrong},
    file::read_chosen,
    form::{Form, Trust},
    note::{Note, invalid, note_id},
    probe::{Check, Probe, ProbeAnswer},
};

/// Address, key, certificate; below it who answered.
#[component]
pub(super) fn EndpointFields(
    form: Form,
    probe: Probe,
    wrong: Signal<Option<Wrong>>,
) -> impl IntoView {
    view! {
        <fieldset class="panel">
            <legend>"Server"</legend>
            <div class="field">
                <label for=Field::Url.id()>"Address"</label>
                <input
                    id=Field::Url.id()
                    type="text"
                    inputmode="url"
                    autocomplete="off"
                    autocapitalize="off"
                    spellcheck="false"
                    placeholder="http://127.0.0.1:8000"
                    required
                    aria-describedby=format!("{} run-url-probe", note_id(Field::Url))
                    aria-invalid=invalid(Field::Url, wrong)
                    value=form.url.get_untracked()
                    prop:value=form.url
                    on:input=move |event| {
                        form.url.set(event_target_value(&event));
                        probe.soon();
                    }
                    on:blur=move |_| probe.now()
                />
                <Note field=Field::Url wrong/>
                <ProbeAnswer probe/>
            </div>
            <div class="field">
                <label for="run-key">"Key, if the server asks for one"</label>
                <input
                    id="run-key"
                    type="password"
                    autocomplete="off"
                    aria-describedby="run-key-help"
                    prop:value=form.key
                    on:input=move |event| {
                        form.key.set(event_target_value(&event));
                        probe.soon();
                    }
                    on:blur=move |_| probe.now()
                />
                <span id="run-key-help" class="muted">
                    "Encrypted while the run waits, handed to the meter alone, deleted after the run. It is never shown, logged or exported."
                </span>
            </div>
            <Certificate form probe/>
            <Model form probe/>
        </fieldset>
        <fieldset class="panel">
            <legend>"Configuration"</legend>
            <div class="field">
                <label for=Field::Name.id()>"Name"</label>
                <input
                    id=Field::Name.id()
                    type="text"
                    autocomplete="off"
                    aria-describedby=format!("run-name-help {}", note_id(Field::Name))
                    aria-invalid=invalid(Field::Name, wrong)
                    value=form.name.get_untracked()
                    prop:value=form.name
                    on:input=move |event| {
                        let typed = event_target_value(&event);
                        form.name_typed.set(!typed.trim().is_empty());
                        form.name.set(typed);
                    }
                />
                <span id="run-name-help" class="muted">
                    "Runs of one name count as one configuration on the Board. Blank takes a suggestion."
                </span>
                <Note field=Field::Name wrong/>
            </div>
            <div class="field">
                <label for=Field::Hardware.id()>"Hardware, in words"</label>
                <input
                    id=Field::Hardware.id()
                    type="text"
                    autocomplete="off"
                    placeholder="8 × RTX PRO 6000"
                    aria-describedby=note_id(Field::Hardware)
                    aria-invalid=invalid(Field::Hardware, wrong)
                    value=form.hardware.get_untracked()
                    prop:value=form.hardware
                    on:input=move |event| form.hardware.set(event_target_value(&event))
                />
                <Note field=Field::Hardware wrong/>
            </div>
        </fieldset>
    }
}

/// Whose certificates are believed; only where the connection is encrypted.
#[component]
fn Certificate(form: Form, probe: Probe) -> impl IntoView {
    let encrypted = Memo::new(move |_| {
        form.url
            .with(|url| url.parse::<EndpointUrl>().is_ok_and(|url| url.is_tls()))
    });
    let trouble = RwSignal::new(None::<String>);
    let input = NodeRef::<html::Input>::new();
    let choice = move |value: Trust, id: &'static str, label: &'static str| {
        view! {
            <p class="choice">
                <input
                    id=id
                    type="radio"
                    name="trust"
                    prop:checked=move || form.trust.get() == value
                    checked=form.trust.get_untracked() == value
                    on:change=move |_| {
                        form.trust.set(value);
                        probe.now();
                    }
                />
                <label for=id>{label}</label>
            </p>
        }
    };
    let read = move |_| {
        let Some(input) = input.get_untracked() else {
            return;
        };
        spawn_local(async move {
            match read_chosen(input).await {
                Ok(Some((_, text))) => {
                    trouble.try_set(None);
                    form.pem.try_set(text);
                    probe.now();
                }
                Ok(None) => {}
                Err(sentence) => {
                    trouble.try_set(Some(sentence));
                }
            }
        });
    };
    view! {
        <Show when=move || encrypted.get()>
            <fieldset class="choices">
                <legend>"Certificate"</legend>
                {choice(Trust::System, "trust-system", "As this machine trusts")}
                {choice(Trust::Ca, "trust-ca", "From this authority as well (CA file)")}
                {choice(Trust::AcceptAny, "trust-any", "Accept any certificate")}
                {move || match form.trust.get() {
                    Trust::System => ().into_any(),
                    Trust::Ca => {
                        view! {
                            <div class="field">
                                <label for="run-ca-file">"CA file (PEM)"</label>
                                <input
                                    id="run-ca-file"
                                    type="file"
                                    accept=".pem,.crt,.cer"
                                    node_ref=input
                                    on:change=read
                                />
                                <label for="run-ca-text">"or its text"</label>
                                <textarea
                                    id="run-ca-text"
                                    rows="4"
                                    spellcheck="false"
                                    placeholder="-----BEGIN CERTIFICATE-----"
                                    prop:value=form.pem
                                    on:input=move |event| {
                                        form.pem.set(event_target_value(&event));
                                        probe.soon();
                                    }
                                ></textarea>
                                <span class="field-error" role="alert">
                                    {move || trouble.get()}
                                </span>
                            </div>
                        }
                            .into_any()
                    }
                    Trust::AcceptAny => {
                        view! {
                            <p class="caution" role="note">
                                "The connection is encrypted, but nobody knows with whom: somebody in between could read the key and answer in the server's place. For networks you trust only."
                            </p>
                        }
                            .into_any()
                    }
                }}
            </fieldset>
        </Show>
    }
}

/// Under which name the server is asked, once it has said which it knows.
#[component]
fn Model(form: Form, probe: Probe) -> impl IntoView {
    let models = Memo::new(move |_| {
        probe.check.with(|check| match check {
            Check::Answer(ProbeView::Reachable { info, .. }) => info.models.clone(),
            _ => Vec::new(),
        })
    });
    let known = Memo::new(move |_| models.with(|models| !models.is_empty()));
    view! {
        <div class="field">
            <label for="run-model">"Model"</label>
            <Show
                when=move || known.get()
                fallback=move || {
                    view! {
                        <input
                            id="run-model"
                            type="text"
                            autocomplete="off"
                            spellcheck="false"
                            placeholder="the first one the server lists"
                            value=form.model.get_untracked()
                            prop:value=form.model
                            on:input=move |event| form.model.set(event_target_value(&event))
                        />
                    }
                }
            >
                <select
                    id="run-model"
                    on:change=move |event| form.model.set(event_target_value(&event))
                >
                    {move || {
                        let chosen = form.model.get();
                        models
                            .get()
                            .into_iter()
                            .map(|model| {
                                view! {
                                    <option value=model.clone() selected=model == chosen>
                                        {model.clone()}
                                    </option>
                                }
                            })
                            .collect_view()
                    }}
                </select>
            </Show>
        </div>
    }
}
