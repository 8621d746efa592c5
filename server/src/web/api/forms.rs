//! Forms as scripts send them: everything but the essential may be left out.

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokdyno_domain::{
    host::FoundEngine,
    launch::Afterwards,
    profile::ProfileSpec,
    timestamp::Timestamp,
    views::measure::{EndpointForm, NewRun, WorkloadForm},
};

use super::{body::over_usual, named::Named};

/// Fields of a workload that only count without a preset.
const OF_CUSTOM: [&str; 13] = [
    "load",
    "single_stream",
    "concurrencies",
    "up_to",
    "min_gain_percent",
    "rates",
    "arrivals",
    "burstiness",
    "requests",
    "seconds",
    "output_tokens",
    "repeats",
    "warmup_requests",
];

/// A workload: a preset, or whatever differs from the usual one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct WorkloadBody(pub(super) WorkloadForm);

impl<'de> Deserialize<'de> for WorkloadBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut sent = Map::deserialize(deserializer)?;
        // Who names sizes and no preset means these sizes.
        if !sent.contains_key("preset") && OF_CUSTOM.iter().any(|field| sent.contains_key(*field)) {
            sent.insert("preset".to_owned(), Value::Null);
        }
        over_usual(&WorkloadForm::default(), sent)
            .map(Self)
            .map_err(de::Error::custom)
    }
}

/// `POST /api/v1/runs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRunBody {
    endpoint: EndpointForm,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    configuration: String,
    #[serde(default)]
    hardware: String,
    #[serde(default)]
    workload: WorkloadBody,
}

impl From<NewRunBody> for NewRun {
    fn from(body: NewRunBody) -> Self {
        Self {
            endpoint: body.endpoint,
            model: body.model,
            configuration: body.configuration,
            hardware: body.hardware,
            workload: body.workload.0,
        }
    }
}

/// `POST /api/v1/hosts`: a destination, or the machine that this program runs on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostBody {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) destination: String,
    #[serde(default)]
    pub(super) local: bool,
    #[serde(default)]
    pub(super) notes: String,
}

/// `POST /api/v1/hosts/ID/adopt`: a process number, or an engine as `running` lists it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdoptBody {
    #[serde(default)]
    pub(super) pid: Option<u32>,
    #[serde(default)]
    pub(super) engine: Option<FoundEngine>,
    #[serde(default)]
    pub(super) profile_name: String,
}

/// `POST /api/v1/profiles`: a specification, or the name of a built-in profile.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileBody {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) spec: Option<ProfileSpec>,
    #[serde(default)]
    pub(super) builtin: Option<String>,
    /// Fields that differ from those of the built-in profile.
    #[serde(default)]
    pub(super) parameters: Map<String, Value>,
}

/// `POST /api/v1/profiles/paste`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PasteBody {
    pub(super) text: String,
}

/// `POST /api/v1/launches`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LaunchBody {
    pub(super) profile: Named,
    pub(super) host: Named,
    /// A workload, or `true` for the usual one.
    #[serde(default, deserialize_with = "measure")]
    pub(super) measure: Option<WorkloadForm>,
    #[serde(default)]
    pub(super) configuration: String,
    #[serde(default)]
    pub(super) through_forward: bool,
    #[serde(default)]
    pub(super) verify_nccl: bool,
    #[serde(default)]
    pub(super) afterwards: Afterwards,
    #[serde(default)]
    pub(super) restore: Option<tokdyno_domain::ids::LaunchId>,
    #[serde(default, deserialize_with = "moment")]
    pub(super) give_back_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) give_back_lead_s: Option<u32>,
}

/// `POST /api/v1/launches/ID/measure`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureBody {
    #[serde(default)]
    pub(super) workload: WorkloadBody,
    #[serde(default)]
    pub(super) configuration: String,
    #[serde(default)]
    pub(super) through_forward: bool,
}

fn measure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<WorkloadForm>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null | Value::Bool(false) => Ok(None),
        Value::Bool(true) => Ok(Some(WorkloadForm::default())),
        other => serde_json::from_value(other)
            .map(|WorkloadBody(form)| Some(form))
            .map_err(de::Error::custom),
    }
}

/// A moment: microseconds since 1970, as replies carry it, or RFC 3339.
pub(super) fn moment<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Moment {
        Microseconds(i64),
        Text(String),
    }
    match Option::deserialize(deserializer)? {
        None => Ok(None),
        Some(Moment::Microseconds(at)) => Ok(Some(Timestamp(at))),
        Some(Moment::Text(text)) => OffsetDateTime::parse(&text, &Rfc3339)
            .map(|at| Some(Timestamp::from_datetime(at)))
            .map_err(|_| {
                de::Error::custom(format!(
                    "`{text}` is no moment; write it such as 2030-01-31T07:30:00Z"
                ))
            }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokdyno_domain::workload::Preset;

    use super::*;

    fn new_run(body: Value) -> Result<NewRun, serde_json::Error> {
        serde_json::from_value::<NewRunBody>(body).map(NewRun::from)
    }

    #[test]
    fn an_address_alone_is_a_measurement() {
        let run = new_run(json!({"endpoint": {"url": "http://127.0.0.1:8000"}})).expect("a run");
        assert_eq!(run.workload, WorkloadForm::default());
        assert!(run.check().is_ok());
    }

    #[test]
    fn who_names_sizes_means_them() {
        let workload = |sent| {
            new_run(json!({"endpoint": {"url": "http://x"}, "workload": sent}))
                .map(|run| run.workload)
        };
        let custom = workload(json!({"concurrencies": "8"})).expect("a workload");
        assert_eq!((custom.preset, custom.concurrencies.as_str()), (None, "8"));
        let preset = workload(json!({"preset": "standard"})).expect("a workload");
        assert_eq!(preset.preset, Some(Preset::Standard));
        let chat = workload(json!({"api": "chat"})).expect("a workload");
        assert_eq!(chat.preset, Some(Preset::Quick));
        let error = workload(json!({"concurency": "8"})).expect_err("mistyped");
        assert!(error.to_string().contains("concurency"), "{error}");
    }

    #[test]
    fn a_launch_needs_a_profile_and_a_host_and_nothing_else() {
        let launch = |sent| serde_json::from_value::<LaunchBody>(sent);
        let plain = launch(json!({"profile": "a", "host": 1})).expect("a launch");
        assert_eq!((plain.measure, plain.give_back_at), (None, None));
        assert_eq!(plain.afterwards, Afterwards::Keep);
        let measured = launch(json!({
            "profile": 3, "host": "gpu1", "measure": true, "afterwards": "stop",
            "give_back_at": "1970-01-01T00:00:01Z",
        }))
        .expect("a launch");
        assert_eq!(measured.measure, Some(WorkloadForm::default()));
        assert_eq!(measured.give_back_at, Some(Timestamp(1_000_000)));
        let sized = launch(json!({"profile": 3, "host": 1, "measure": {"single_stream": 2}}));
        assert_eq!(
            sized.expect("a launch").measure.expect("a workload").preset,
            None
        );
        for bad in [
            json!({"profile": "a"}),
            json!({"profile": "a", "host": 1, "give_back_at": "07:30"}),
            json!({"profile": "a", "host": 1, "keep": true}),
        ] {
            assert!(launch(bad.clone()).is_err(), "{bad}");
        }
    }
}
