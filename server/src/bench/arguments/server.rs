//! Who is measured, and how it is reached.

use std::path::PathBuf;

use clap::Args;
use tokdyno_domain::{endpoint::TlsTrust, meter::ApiKey};

use super::{ArgumentError, text};

/// The variable of `--api-key-env` without a value.
const USUAL_KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// Who is measured, and how it is reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
#[group(conflicts_with_all = ["compare", "recover", "help_metrics"])]
pub(crate) struct ServerArguments {
    /// Model name to send; usually the first that the server lists.
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,

    /// What the measured configuration is called; kept in the result.
    #[arg(long, value_name = "CONFIGURATION")]
    pub(crate) name: Option<String>,

    /// The hardware the server runs on, in words; kept in the result.
    #[arg(long, value_name = "TEXT")]
    pub(crate) hardware: Option<String>,

    /// Send the key that stands in this environment variable (OPENAI_API_KEY if
    /// none is named). Without this option no key is sent.
    #[arg(long, value_name = "VAR", num_args = 0..=1, default_missing_value = USUAL_KEY_VARIABLE)]
    api_key_env: Option<String>,

    /// Certificates (PEM) to believe besides the machine's.
    #[arg(long, value_name = "PEM", conflicts_with = "insecure")]
    ca_file: Option<PathBuf>,

    /// Accept any certificate: encrypted, but nobody knows with whom.
    #[arg(long)]
    insecure: bool,
}

/// A key that was asked for and is not there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error(
        "--api-key-env names the environment variable {0}, which is not set or blank. Set it, or leave the option out if the server wants no key."
    )]
    Missing(String),
}

impl ServerArguments {
    /// The model that is asked for.
    ///
    /// # Errors
    /// It is blank.
    pub(crate) fn model(&self) -> Result<Option<String>, ArgumentError> {
        match self.model.as_deref().map(str::trim) {
            Some("") => Err(ArgumentError::BlankModel),
            model => Ok(model.map(str::to_owned)),
        }
    }

    /// Whose certificates are believed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn trust(&self) -> Result<TlsTrust, ArgumentError> {
        Ok(match (&self.ca_file, self.insecure) {
            (Some(path), _) => TlsTrust::Ca { pem: text(path)? },
            (None, true) => TlsTrust::AcceptAny,
            (None, false) => TlsTrust::System,
        })
    }

    /// The key, from the variable that was named.
    ///
    /// # Errors
    /// The variable is not set.
    pub(crate) fn key(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<ApiKey>, ArgumentError> {
        let Some(name) = &self.api_key_env else {
            return Ok(None);
        };
        match variable(name).as_deref().and_then(ApiKey::new) {
            Some(key) => Ok(Some(key)),
            None => Err(KeyError::Missing(name.clone()).into()),
        }
    }
}
