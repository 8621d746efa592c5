//! Asking the address who it is while one types, and the answer.

use std::time::Duration;

use leptos::{leptos_dom::helpers::TimeoutHandle, prelude::*, task::spawn_local};
use tokdyno_domain::{
    endpoint::EndpointUrl,
    engine::EngineInfo,
    source::Source,
    text,
    views::{
        measure::{EndpointForm, ProbeView},
        run::RunFilter,
    },
};

use super::{form::Form, plan::Speeds};
use crate::{
    AppError, api,
    components::{
        badges::{Badge, SourceBadge, Tone},
        icon::Glyph,
    },
};

/// How long after the last keystroke the address is asked.
const PAUSE: Duration = Duration::from_millis(400);

/// What is known of the address.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Check {
    /// Nothing was typed.
    Blank,
    /// It is being asked.
    Asking,
    /// What it answered.
    Answer(ProbeView),
    /// It could not even be asked.
    Trouble(AppError),
}

/// The question in flight and its answer.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    form: Form,
    pub(super) check: RwSignal<Check>,
    /// Run whose speeds are known for this endpoint, and the speeds.
    pub(super) speeds: RwSignal<Option<Speeds>>,
    /// Number of the newest question: answers to older ones come too late.
    newest: StoredValue<u32>,
    asked: StoredValue<Option<EndpointForm>>,
    waiting: StoredValue<Option<TimeoutHandle>>,
}

impl Probe {
    pub(super) fn new(form: Form) -> Self {
        let probe = Self {
            form,
            check: RwSignal::new(Check::Blank),
            speeds: RwSignal::new(None),
            newest: StoredValue::new(0),
            asked: StoredValue::new(None),
            waiting: StoredValue::new(None),
        };
        on_cleanup(move || probe.forget());
        // The address may have come with the page, or been typed before WASM had loaded.
        Effect::new(move |_| probe.now());
        probe
    }

    /// Asks after a pause in typing.
    pub(super) fn soon(self) {
        self.forget();
        self.waiting
            .set_value(set_timeout_with_handle(move || self.now(), PAUSE).ok());
    }

    /// Asks at once, unless this very question has been asked.
    pub(super) fn now(self) {
        self.forget();
        let endpoint = untrack(|| self.form.endpoint());
        if self.asked.get_value().as_ref() == Some(&endpoint) {
            return;
        }
        self.asked.set_value(Some(endpoint.clone()));
        let number = self.newest.get_value().wrapping_add(1);
        self.newest.set_value(number);
        if endpoint.url.trim().is_empty() {
            self.check.set(Check::Blank);
            return;
        }
        // A spelling that cannot be right needs no journey to the server.
        if let Err(error) = endpoint.url.parse::<EndpointUrl>() {
            self.check.set(Check::Answer(ProbeView::Unreachable {
                word: "address".to_owned(),
                reason: error.to_string(),
            }));
            return;
        }
        self.check.set(Check::Asking);
        spawn_local(async move {
            let url = endpoint.url.clone();
            let answer = api::probe(endpoint).await;
            if self.newest.try_get_value() != Some(number) {
                return;
            }
            match answer {
                Ok(view) => {
                    self.suggest(&view);
                    let reachable = matches!(view, ProbeView::Reachable { .. });
                    self.check.try_set(Check::Answer(view));
                    if reachable {
                        self.look_up_speeds(&url, number).await;
                    }
                }
                Err(error) => {
                    // It may work the next time, so asking again is allowed.
                    self.asked.try_set_value(None);
                    self.check.try_set(Check::Trouble(error));
                }
            }
        });
    }

    /// Asks again, whatever was answered.
    pub(super) fn again(self) {
        self.asked.set_value(None);
        self.now();
    }

    fn forget(self) {
        if let Some(handle) = self.waiting.try_update_value(Option::take).flatten() {
            handle.clear();
        }
    }

    /// A name for the configuration, unless somebody typed one, and a model that is served.
    fn suggest(self, view: &ProbeView) {
        let ProbeView::Reachable {
            info,
            suggested_name,
            ..
        } = view
        else {
            return;
        };
        if !self.form.name_typed.get_untracked() {
            self.form.name.try_set(suggested_name.clone());
        }
        let wanted = self.form.model.get_untracked();
        if !info.models.contains(&wanted) {
            self.form
                .model
                .try_set(info.models.first().cloned().unwrap_or_default());
        }
    }

    /// Speeds of the newest run against this endpoint. Where they cannot be had, the
    /// plan simply names no time.
    async fn look_up_speeds(self, url: &str, number: u32) {
        let Ok(url) = url.parse::<EndpointUrl>() else {
            return;
        };
        let endpoint = url.to_string();
        let found = api::runs(RunFilter {
            text: endpoint.clone(),
            ..Default::default()
        })
        .await;
        if self.newest.try_get_value() != Some(number) {
            return;
        }
        let speeds = found.ok().and_then(|page| {
            page.runs.iter().find_map(|run| {
                let single = run
                    .single_stream
                    .filter(|_| run.endpoint.as_deref() == Some(endpoint.as_str()))?;
                Some(Speeds {
                    single: single.mean,
                    peak: run.peak_output.map(|(_, estimate)| estimate.mean),
                })
            })
        });
        self.speeds.try_set(speeds);
    }
}

/// The answer, or why there is none.
#[component]
pub(super) fn ProbeAnswer(probe: Probe) -> impl IntoView {
    view! {
        <div class="probe" role="status" id="run-url-probe">
            {move || match probe.check.get() {
                Check::Blank => {
                    view! {
                        <p class="muted">
                            "The server's base address. It is asked at once who it is; nothing is generated."
                        </p>
                    }
                        .into_any()
                }
                Check::Asking => {
                    view! {
                        <p class="probe-line">
                            <Badge tone=Tone::Info glyph=Glyph::Pulse text="asking"/>
                            <span class="muted">"Who is there?"</span>
                        </p>
                    }
                        .into_any()
                }
                Check::Answer(ProbeView::Reachable { info, round_trip_ms, notes, .. }) => {
                    reachable(&info, round_trip_ms, notes).into_any()
                }
                Check::Answer(ProbeView::Unreachable { reason, .. }) => {
                    view! { <Unreachable sentence=reason probe/> }.into_any()
                }
                Check::Trouble(error) => {
                    view! { <Unreachable sentence=error.sentence probe/> }.into_any()
                }
            }}
        </div>
    }
}

fn reachable(info: &EngineInfo, round_trip_ms: f64, notes: Vec<String>) -> impl IntoView + use<> {
    let settings = info.settings.len() as u64;
    let mut facts = vec![text::plural(info.models.len() as u64, "model", "models")];
    if let Some(length) = info.max_model_len {
        facts.push(format!("context of {} tokens", text::count(length.into())));
    }
    if let Some(most) = info.max_running_requests {
        facts.push(format!("{} requests at once", text::count(most.into())));
    }
    facts.push(if settings == 0 {
        "settings unknown".to_owned()
    } else {
        text::plural(settings, "setting read", "settings read")
    });
    facts.push(format!("answers in {} ms", text::figure(round_trip_ms)));
    view! {
        <p class="probe-line">
            <Badge tone=Tone::Ok glyph=Glyph::Check text="reachable"/>
            <strong>{info.title()}</strong>
            {info.simulated.then(|| view! { <SourceBadge source=Source::Simulated/> })}
        </p>
        <p class="muted">{facts.join(" · ")}</p>
        <ul class="probe-notes">
            {info
                .simulated
                .then(|| {
                    view! {
                        <li>
                            "This is the stand-in engine: whatever is measured here is marked as simulated for good."
                        </li>
                    }
                })}
            {notes.into_iter().map(|note| view! { <li>{note}</li> }).collect_view()}
        </ul>
    }
}

#[component]
fn Unreachable(sentence: String, probe: Probe) -> impl IntoView {
    view! {
        <p class="probe-line">
            <Badge tone=Tone::Bad glyph=Glyph::Cross text="cannot be measured"/>
            <button type="button" class="button button-quiet" on:click=move |_| probe.again()>
                "Ask again"
            </button>
        </p>
        <p class="probe-reason">{sentence}</p>
    }
}
