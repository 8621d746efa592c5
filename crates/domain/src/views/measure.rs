//! *New measurement*: what is asked for, and what the address answered.

use serde::{Deserialize, Serialize};

use crate::{
    endpoint::{EndpointUrl, EndpointUrlError, TlsTrust},
    engine::EngineInfo,
    meter::ApiKey,
    workload::{Workload, WorkloadError},
};

pub use super::workload_form::{ArrivalsForm, LoadForm, SharedPrefixForm, WorkloadForm};

/// An address as typed, with what is needed to reach it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EndpointForm {
    /// The address.
    pub url: String,
    /// The key; blank for none. Encrypted before it is stored, never sent back.
    #[serde(default)]
    pub api_key: Option<ApiKey>,
    /// Whose certificates are believed.
    #[serde(default)]
    pub tls: TlsTrust,
}

/// What an address answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum ProbeView {
    /// It can be measured.
    Reachable {
        /// Who it is.
        info: Box<EngineInfo>,
        /// How long the question took, in ms.
        round_trip_ms: f64,
        /// A name for the configuration, to be changed.
        suggested_name: String,
        /// Remarks.
        notes: Vec<String>,
    },
    /// It cannot.
    Unreachable {
        /// The kind of trouble: `refused`, `tls`, `unauthorised` …
        word: String,
        /// A sentence with cause and remedy.
        reason: String,
    },
}

/// A measurement as typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewRun {
    /// Where.
    pub endpoint: EndpointForm,
    /// Under which model name; none means the first the server lists.
    pub model: Option<String>,
    /// What the configuration is called; blank for a suggestion.
    pub configuration: String,
    /// Hardware in words; may be blank.
    pub hardware: String,
    /// What is sent.
    pub workload: WorkloadForm,
}

/// Why a measurement cannot be queued.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NewRunError {
    /// The address.
    #[error(transparent)]
    Endpoint(#[from] EndpointUrlError),
    /// The workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A text beyond what is kept.
    #[error("{what} is {length} characters long; at most {max} are kept. Shorten it.")]
    TooLong {
        /// Which field.
        what: &'static str,
        /// Its length.
        length: usize,
        /// Most characters.
        max: usize,
    },
}

/// Most characters of a name.
pub const MAX_NAME: usize = 200;

impl NewRun {
    /// Checks what can be checked without asking the server.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn check(&self) -> Result<(EndpointUrl, Workload), NewRunError> {
        for (what, text) in [
            ("The configuration's name", &self.configuration),
            ("The hardware's description", &self.hardware),
        ] {
            let length = text.chars().count();
            if length > MAX_NAME {
                return Err(NewRunError::TooLong {
                    what,
                    length,
                    max: MAX_NAME,
                });
            }
        }
        Ok((self.endpoint.url.parse()?, self.workload.workload()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Preset;

    fn new_run() -> NewRun {
        NewRun {
            endpoint: EndpointForm {
                url: "http://127.0.0.1:8000".to_owned(),
                ..Default::default()
            },
            model: None,
            configuration: String::new(),
            hardware: String::new(),
            workload: WorkloadForm::default(),
        }
    }

    #[test]
    fn presets_and_typed_fields() {
        let (_, workload) = new_run().check().expect("a run");
        assert_eq!(workload, Preset::Quick.workload());
        let form = WorkloadForm {
            preset: None,
            repeats: 2,
            requests: Some(128),
            ..Default::default()
        };
        let workload = form.workload().expect("a workload");
        assert_eq!((workload.levels.len(), workload.repeats), (5, 2));
    }

    #[test]
    fn the_first_thing_wrong_is_said() {
        let mut run = new_run();
        run.workload.preset = None;
        run.workload.concurrencies = "0".to_owned();
        assert_eq!(
            run.check(),
            Err(NewRunError::Workload(WorkloadError::Concurrency(0)))
        );
        run.endpoint.url.clear();
        assert_eq!(
            run.check(),
            Err(NewRunError::Endpoint(EndpointUrlError::Empty))
        );
        run.hardware = "x".repeat(201);
        assert!(matches!(
            run.check(),
            Err(NewRunError::TooLong { length: 201, .. })
        ));
        let file = WorkloadForm {
            prompt_file: Some(("p".to_owned(), "\n".to_owned())),
            ..Default::default()
        };
        assert!(matches!(file.workload(), Err(WorkloadError::Prompts(_))));
    }
}
