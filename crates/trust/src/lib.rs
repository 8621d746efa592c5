//! Whose certificates are believed, as a rustls configuration. Probe and measurement
//! share it, so that an address that was found reachable can also be measured. The
//! cryptography is ring's, named outright, so that no process-wide default is needed.

use std::sync::Arc;

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use tokdyno_domain::endpoint::TlsTrust;

/// Why no TLS connection can be tried.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The CA text is unusable.
    #[error(
        "The CA file cannot be used: {0}. It must hold certificates in PEM form (-----BEGIN CERTIFICATE-----)."
    )]
    BadCa(String),
    /// The TLS library refused its settings.
    #[error("TLS could not be set up on this machine: {0}.")]
    Setup(String),
}

/// Builds the client side of TLS for an endpoint. Reads the machine's certificates
/// from disk, so call it where blocking is allowed.
///
/// With [`TlsTrust::Ca`] a server whose own certificate is in the PEM text is
/// believed too, whatever name or purpose stands in it: the usual self-signed
/// certificate is its own authority, which path validation alone refuses.
///
/// # Errors
/// [`TrustError::BadCa`] when the PEM text holds no usable certificate,
/// [`TrustError::Setup`] when the TLS library refuses the configuration.
pub fn client_config(trust: &TlsTrust) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(setup)?;
    let config = match trust {
        TlsTrust::System => builder
            .with_root_certificates(system_roots())
            .with_no_client_auth(),
        TlsTrust::Ca { pem } => {
            let given = certificates(pem)?;
            let mut roots = system_roots();
            for certificate in &given {
                roots
                    .add(certificate.clone())
                    .map_err(|error| TrustError::BadCa(error.to_string()))?;
            }
            let inner =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                    .build()
                    .map_err(setup)?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(GivenOrTrusted { given, inner }))
                .with_no_client_auth()
        }
        TlsTrust::AcceptAny => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate { provider }))
            .with_no_client_auth(),
    };
    Ok(config)
}

fn setup(error: impl std::fmt::Display) -> TrustError {
    TrustError::Setup(error.to_string())
}

/// The machine's authorities. One that cannot be read is left out: the servers it
/// signed are then reported as untrusted, which names the way on.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let given = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TrustError::BadCa(error.to_string()))?;
    if given.is_empty() {
        return Err(TrustError::BadCa("it holds no certificate".to_owned()));
    }
    Ok(given)
}

/// Believes the given certificates themselves, and what trusted authorities signed.
#[derive(Debug)]
struct GivenOrTrusted {
    given: Vec<CertificateDer<'static>>,
    inner: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for GivenOrTrusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.given.iter().any(|given| given == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        self.inner
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Believes everybody who holds the key of the certificate shown.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_certificates_is_refused() {
        for pem in [
            "",
            "hello",
            "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let error = client_config(&TlsTrust::Ca {
                pem: pem.to_owned(),
            })
            .expect_err(pem);
            assert!(matches!(error, TrustError::BadCa(_)), "{pem}: {error}");
        }
    }
}
