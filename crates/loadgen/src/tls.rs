//! Whose certificates are believed.

use std::io;

use rustls::{CertificateError, ClientConfig, Error};
use tokdyno_domain::endpoint::TlsTrust;
use tokdyno_trust::TrustError;

/// The settings of the client: HTTP/1.1 alone is offered.
pub(crate) fn client_config(trust: &TlsTrust) -> Result<ClientConfig, TrustError> {
    let mut config = tokdyno_trust::client_config(trust)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// What a failed handshake means, and what to do.
pub(crate) fn handshake_sentence(authority: &str, error: &io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => format!(
            "The certificate of {authority} is made out for another name. Use the name in the certificate, or accept any certificate."
        ),
        Some(Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => format!(
            "The certificate of {authority} has expired. Renew it, or accept any certificate."
        ),
        Some(Error::InvalidCertificate(reason)) => format!(
            "The certificate of {authority} is not trusted here ({reason}); it may be self-signed. Choose its CA file, or accept any certificate."
        ),
        Some(Error::InvalidMessage(_)) => format!(
            "{authority} does not speak TLS. Use an address that begins with http://, or check the port."
        ),
        Some(Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)) => format!(
            "{authority} speaks only HTTP/2. Let it, or a proxy before it, accept HTTP/1.1."
        ),
        _ => format!(
            "The TLS handshake with {authority} failed: {error}. Check the port and the server's TLS settings."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_ca_file_says_so() {
        let error = |pem: &str| {
            client_config(&TlsTrust::Ca {
                pem: pem.to_owned(),
            })
            .expect_err("unusable")
            .to_string()
        };
        assert!(error("hello").contains("no certificate"));
        assert!(
            error("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
                .starts_with("The CA file cannot be used")
        );
        assert!(client_config(&TlsTrust::AcceptAny).is_ok());
    }
}
