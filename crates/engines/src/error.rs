//! Why an address cannot be measured: for each cause a sentence for people and a
//! word for programs.

use std::{error::Error, io};

use rustls::CertificateError;
use tokdyno_trust::TrustError;

use crate::line::one_line;

/// Why a probe found nothing that can be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// Nobody listens there.
    #[error(
        "Nothing listens at {at} (connection refused). Check host and port, and that the server has finished starting."
    )]
    Refused {
        /// Host and port.
        at: String,
    },
    /// The host's name has no address.
    #[error(
        "The host name in {at} could not be found ({detail}). Check its spelling, or use the IP address."
    )]
    NameNotFound {
        /// Host and port.
        at: String,
        /// What the resolver said.
        detail: String,
    },
    /// No network leads there.
    #[error("{at} cannot be reached ({detail}). Check the network, the VPN and the firewall.")]
    Unreachable {
        /// Host and port.
        at: String,
        /// What the system said.
        detail: String,
    },
    /// No answer in time.
    #[error(
        "{at} did not answer within {seconds} seconds ({stage}). Check that the address is right, that no firewall swallows the connection, and that the server is not overloaded."
    )]
    TimedOut {
        /// Host and port.
        at: String,
        /// How long it was waited for.
        seconds: u64,
        /// What was being waited for.
        stage: &'static str,
    },
    /// Nobody who is trusted signed the certificate.
    #[error(
        "The certificate of {at} is self-signed or from an unknown authority ({detail}). Give its CA file (PEM) for this address, or choose to accept any certificate."
    )]
    TlsUntrusted {
        /// Host and port.
        at: String,
        /// What the TLS library said.
        detail: String,
    },
    /// The certificate is for somebody else.
    #[error(
        "The certificate of {at} is made out for another name ({detail}). Use the name that stands in the certificate, or choose to accept any certificate."
    )]
    TlsName {
        /// Host and port.
        at: String,
        /// What the TLS library said.
        detail: String,
    },
    /// The certificate's time has not come or has passed.
    #[error(
        "The certificate of {at} is not valid at this time ({detail}). Renew it, check both machines' clocks, or choose to accept any certificate."
    )]
    TlsDate {
        /// Host and port.
        at: String,
        /// What the TLS library said.
        detail: String,
    },
    /// TLS failed in another way.
    #[error(
        "No encrypted connection to {at} came about ({detail}). Check that the server speaks TLS 1.2 or newer on this port; if it speaks plain HTTP, write http:// instead."
    )]
    Tls {
        /// Host and port.
        at: String,
        /// What the TLS library said.
        detail: String,
    },
    /// `https://` was typed, plain HTTP is spoken.
    #[error(
        "{at} speaks plain HTTP, but the address says https. Write http:// instead of https://."
    )]
    SpeaksPlainHttp {
        /// Host and port.
        at: String,
    },
    /// `http://` was typed, TLS is spoken.
    #[error("{at} speaks TLS, but the address says http. Write https:// instead of http://.")]
    SpeaksTls {
        /// Host and port.
        at: String,
    },
    /// The connection broke, or what came is not HTTP.
    #[error(
        "{at} accepted the connection but gave no usable HTTP reply ({detail}). Check that the port is the one of the engine's HTTP server."
    )]
    Broken {
        /// Host and port.
        at: String,
        /// The innermost cause.
        detail: String,
    },
    /// A key is wanted and none was given.
    #[error("{at} asks for a key (HTTP {status}). Give the key the server was started with.")]
    KeyMissing {
        /// Host and port.
        at: String,
        /// 401 or 403.
        status: u16,
    },
    /// The key that was given is refused.
    #[error(
        "{at} refused the key (HTTP {status}). Give the key the server was started with; an administrator's key may not be accepted here."
    )]
    KeyRefused {
        /// Host and port.
        at: String,
        /// 401 or 403.
        status: u16,
    },
    /// The key holds characters that no header can carry.
    #[error(
        "The key holds characters that cannot be sent, such as line breaks. Copy it again, without anything around it."
    )]
    KeyUnsendable,
    /// There is no `/v1/models`.
    #[error(
        "{at} has no {path} (HTTP 404), so it does not look like an OpenAI-compatible server. Check the port, and the path before /v1 if the server has one."
    )]
    NotOpenAi {
        /// Host and port.
        at: String,
        /// The path that was asked for.
        path: String,
    },
    /// The engine is not ready yet.
    #[error(
        "{at} says it is not ready (HTTP 503): the model is probably still loading. Wait until it is ready, then try again."
    )]
    Loading {
        /// Host and port.
        at: String,
    },
    /// Redirects are not followed: a key must not travel to an unknown address.
    #[error(
        "{at} redirects to another address ({location}). Use that address, if you trust it; redirects are not followed."
    )]
    Redirected {
        /// Host and port.
        at: String,
        /// Where to.
        location: String,
    },
    /// Any other status.
    #[error(
        "{at} answered HTTP {status} when asked for its models ({start}). Look into the server's log."
    )]
    Status {
        /// Host and port.
        at: String,
        /// The HTTP status.
        status: u16,
        /// The first characters of the body.
        start: String,
    },
    /// The reply is no JSON.
    #[error(
        "{at} answered its list of models with something that is not JSON (it starts: {start}). Check that the port is the engine's and not a web page's or a proxy's."
    )]
    NotJson {
        /// Host and port.
        at: String,
        /// The first 80 characters.
        start: String,
    },
    /// The reply is JSON, but no list of models.
    #[error(
        "{at} answered JSON that is not a list of models (it starts: {start}). Check that the server is OpenAI-compatible."
    )]
    NotModels {
        /// Host and port.
        at: String,
        /// The first 80 characters.
        start: String,
    },
    /// The list of models is empty.
    #[error("{at} serves no model at the moment: its list is empty. Load a model, then try again.")]
    NoModels {
        /// Host and port.
        at: String,
    },
    /// The reply is larger than any list of models.
    #[error(
        "{at} sent more than {mebibytes} MiB as its list of models. Check that the port is the engine's."
    )]
    TooLarge {
        /// Host and port.
        at: String,
        /// The limit.
        mebibytes: usize,
    },
    /// The CA text is no PEM.
    #[error(
        "The CA file cannot be used ({detail}). It must hold certificates in PEM form, beginning with -----BEGIN CERTIFICATE-----."
    )]
    BadCaPem {
        /// What is wrong with it.
        detail: String,
    },
    /// This machine's own TLS or HTTP set-up failed.
    #[error(
        "The probe could not be prepared on this machine ({detail}). This is not the server's fault; look into Tokdyno's log."
    )]
    Setup {
        /// What failed.
        detail: String,
    },
}

impl From<TrustError> for ProbeError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::BadCa(detail) => Self::BadCaPem {
                detail: one_line(&detail, 120),
            },
            TrustError::Setup(detail) => Self::Setup {
                detail: one_line(&detail, 160),
            },
        }
    }
}

impl ProbeError {
    /// The machine word of the cause.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "refused",
            Self::NameNotFound { .. } => "name_not_found",
            Self::Unreachable { .. } => "unreachable",
            Self::TimedOut { .. } => "timed_out",
            Self::TlsUntrusted { .. } => "tls_untrusted",
            Self::TlsName { .. } => "tls_name",
            Self::TlsDate { .. } => "tls_date",
            Self::Tls { .. } => "tls",
            Self::SpeaksPlainHttp { .. } => "speaks_plain_http",
            Self::SpeaksTls { .. } => "speaks_tls",
            Self::Broken { .. } => "broken",
            Self::KeyMissing { .. } => "key_missing",
            Self::KeyRefused { .. } => "key_refused",
            Self::KeyUnsendable => "key_unsendable",
            Self::NotOpenAi { .. } => "not_openai",
            Self::Loading { .. } => "loading",
            Self::Redirected { .. } => "redirected",
            Self::Status { .. } => "status",
            Self::NotJson { .. } => "not_json",
            Self::NotModels { .. } => "not_models",
            Self::NoModels { .. } => "no_models",
            Self::TooLarge { .. } => "too_large",
            Self::BadCaPem { .. } => "bad_ca_pem",
            Self::Setup { .. } => "setup",
        }
    }

    /// Names the cause that lies at the bottom of a failed call.
    pub(crate) fn of_transport(error: &reqwest::Error, at: &str, seconds: u64) -> Self {
        let at = at.to_owned();
        let chain = causes(error);
        for cause in &chain {
            if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                return Self::of_tls(tls, at);
            }
        }
        let handshaking = chain
            .iter()
            .any(|cause| cause.to_string().contains("tls handshake"));
        let detail = chain
            .last()
            .map_or_else(String::new, |cause| one_line(&cause.to_string(), 160));
        if handshaking {
            return Self::Tls { at, detail };
        }
        if error.is_timeout() {
            return Self::TimedOut {
                at,
                seconds,
                stage: if error.is_connect() {
                    "while connecting"
                } else {
                    "while waiting for the reply"
                },
            };
        }
        let kind = chain
            .iter()
            .find_map(|cause| cause.downcast_ref::<io::Error>())
            .map(io::Error::kind);
        match kind {
            Some(io::ErrorKind::ConnectionRefused) => Self::Refused { at },
            Some(
                io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::AddrNotAvailable
                | io::ErrorKind::PermissionDenied,
            ) => Self::Unreachable { at, detail },
            Some(io::ErrorKind::TimedOut) => Self::TimedOut {
                at,
                seconds,
                stage: "while connecting",
            },
            _ => Self::Broken { at, detail },
        }
    }

    fn of_tls(error: &rustls::Error, at: String) -> Self {
        let detail = one_line(&error.to_string(), 160);
        match error {
            // A plain HTTP reply, read as if it were a TLS record.
            rustls::Error::InvalidMessage(_) => Self::SpeaksPlainHttp { at },
            rustls::Error::InvalidCertificate(cause) => match cause {
                CertificateError::UnknownIssuer => Self::TlsUntrusted { at, detail },
                // What `openssl req -x509` makes: an authority that serves itself.
                CertificateError::Other(other)
                    if other.to_string().contains("CaUsedAsEndEntity") =>
                {
                    Self::TlsUntrusted { at, detail }
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => Self::TlsName { at, detail },
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => Self::TlsDate { at, detail },
                _ => Self::Tls { at, detail },
            },
            _ => Self::Tls { at, detail },
        }
    }
}

/// The error and everything behind it, outermost first.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut chain = Vec::new();
    let mut next = Some(error);
    // The bound is a fuse against chains that bite their tail.
    while let (Some(cause), true) = (next, chain.len() < 32) {
        chain.push(cause);
        // `io::Error::source` skips the error it wraps; that one is what we want.
        next = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .map(|inner| inner as &(dyn Error + 'static))
            .or_else(|| cause.source());
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_cause_is_reached_through_wrapping_io_errors() {
        let wrapped = io::Error::new(
            io::ErrorKind::InvalidData,
            io::Error::other(rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer,
            )),
        );
        let chain = causes(&wrapped);
        assert!(
            chain
                .iter()
                .any(|cause| cause.downcast_ref::<rustls::Error>().is_some())
        );
    }
}
