//! Who is about to be measured.

use tokdyno_domain::{
    endpoint::{EndpointUrl, TlsTrust},
    engine::{EngineInfo, EngineKind},
    meter::ApiKey,
    result_file::MAX_MODEL,
};
use tokdyno_engines::{ProbeError, probe};

use super::terminal::name;

/// What answered, and what is to be known about it.
#[derive(Debug)]
pub(crate) struct Subject {
    /// Who it is; nobody knows for a server that lists no models.
    pub(crate) info: Option<EngineInfo>,
    /// Remarks for people.
    pub(crate) notes: Vec<String>,
}

/// Why nothing is measured.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubjectError {
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error(
        "The server does not serve a model named `{asked}`. It serves {}. Name one of these with --model.", listed(.served)
    )]
    NoSuchModel { asked: String, served: Vec<String> },
    #[error(
        "The first model that the server lists has a name of {0} characters, and at most {MAX_MODEL} are kept. Give the server a shorter one (--served-model-name), or name another of its models with --model."
    )]
    LongModel(usize),
}

/// Asks the address who it is. Nothing is generated.
///
/// # Errors
/// It cannot be measured, or does not serve the model.
pub(crate) async fn ask(
    endpoint: &EndpointUrl,
    model: Option<&str>,
    key: Option<&ApiKey>,
    trust: &TlsTrust,
) -> Result<Subject, SubjectError> {
    judge(
        probe(endpoint, key, trust)
            .await
            .map(|report| (report.info, report.notes)),
        model,
    )
}

fn judge(
    answer: Result<(EngineInfo, Vec<String>), ProbeError>,
    model: Option<&str>,
) -> Result<Subject, SubjectError> {
    match (answer, model) {
        (Ok((info, notes)), model) => {
            if let Some(asked) = model
                && !info.models.iter().any(|served| served == asked)
            {
                return Err(SubjectError::NoSuchModel {
                    asked: asked.to_owned(),
                    served: info.models,
                });
            }
            if model.is_none() {
                check_first(&info.models)?;
            }
            Ok(Subject {
                info: Some(info),
                notes,
            })
        }
        // Gateways exist that list nothing and serve all the same.
        (
            Err(
                error @ (ProbeError::NotOpenAi { .. }
                | ProbeError::NotJson { .. }
                | ProbeError::NotModels { .. }
                | ProbeError::NoModels { .. }),
            ),
            Some(_),
        ) => Ok(Subject {
            info: None,
            notes: vec![format!(
                "{error} Measuring all the same, because a model was named."
            )],
        }),
        (Err(error), _) => Err(error.into()),
    }
}

/// Can the name of the model that will be measured be kept?
fn check_first(served: &[String]) -> Result<(), SubjectError> {
    let length = served.first().map_or(0, |first| first.chars().count());
    if length > MAX_MODEL {
        return Err(SubjectError::LongModel(length));
    }
    Ok(())
}

impl SubjectError {
    /// Do other arguments help, rather than another server?
    pub(crate) const fn is_of_arguments(&self) -> bool {
        matches!(
            self,
            Self::LongModel(_) | Self::Probe(ProbeError::BadCaPem { .. })
        )
    }
}

impl Subject {
    /// Which engine, if it could be told.
    pub(crate) fn engine(&self) -> Option<EngineKind> {
        self.info.as_ref().map(|info| info.kind)
    }
}

fn listed(models: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = models
        .iter()
        .take(SHOWN)
        .map(|model| format!("`{}`", name(model)))
        .collect::<Vec<_>>()
        .join(", ");
    if models.len() > SHOWN {
        text.push_str(&format!(" and {} more", models.len() - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> EngineInfo {
        EngineInfo {
            kind: EngineKind::Vllm,
            version: None,
            models: vec!["a".to_owned(), "b".to_owned()],
            max_model_len: None,
            settings: std::collections::BTreeMap::new(),
            max_running_requests: None,
            simulated: false,
        }
    }

    #[test]
    fn a_model_that_is_not_served_is_named_with_those_that_are() {
        let error = judge(Ok((info(), Vec::new())), Some("c")).expect_err("refused");
        assert!(
            error.to_string().contains("`c`. It serves `a`, `b`."),
            "{error}"
        );
        assert!(judge(Ok((info(), Vec::new())), Some("b")).is_ok());
        assert!(judge(Ok((info(), Vec::new())), None).is_ok());
    }

    #[test]
    fn a_name_that_no_result_may_have_is_refused_unless_another_is_named() {
        let info = EngineInfo {
            models: vec!["x".repeat(MAX_MODEL + 1), "b\u{1b}[2J".to_owned()],
            ..info()
        };
        let answer = || Ok((info.clone(), Vec::new()));
        let error = judge(answer(), None).expect_err("refused");
        assert_eq!(error, SubjectError::LongModel(MAX_MODEL + 1));
        assert!(error.is_of_arguments());
        assert!(judge(answer(), Some("b\u{1b}[2J")).is_ok());
        let other = judge(answer(), Some("c")).expect_err("refused").to_string();
        assert!(other.contains("`b␛[2J`"), "{other}");
    }

    #[test]
    fn a_server_without_a_list_is_measured_only_under_a_named_model() {
        let missing = || ProbeError::NoModels {
            at: "h:1".to_owned(),
        };
        let subject = judge(Err(missing()), Some("m")).expect("a subject");
        assert!(subject.info.is_none() && subject.notes.len() == 1);
        assert!(judge(Err(missing()), None).is_err());
        let refused = ProbeError::Refused {
            at: "h:1".to_owned(),
        };
        assert!(judge(Err(refused), Some("m")).is_err());
    }
}
