//! The client's side of TLS (rustls): what is asked of a server's certificate.

use kiln_platform::file;
use kiln_platform::sync::Arc;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

use super::url::{Encryption, Target};

/// The client's side of a connection that begins.
///
/// # Errors
/// A sentence that says what is wrong with the certificates that are trusted, or with the host's
/// name.
pub(super) fn connect(target: &Target) -> Result<ClientConnection, String> {
    let refused = |error: Error| error.to_string();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier {
        authority: match target.encryption >= Encryption::VerifyAuthority {
            true => Some(authority(target, &provider)?),
            false => None,
        },
        checks_name: target.encryption == Encryption::VerifyFull,
        provider: provider.clone(),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    // A Unix socket has no name, and is never encrypted.
    let name = ServerName::try_from(target.host.clone());
    let name = name.map_err(|_| format!("\"{}\" is no host's name", target.host))?;
    ClientConnection::new(Arc::new(config), name).map_err(refused)
}

/// What verifies certificates with the authorities of the target.
fn authority(
    target: &Target,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let path = target.authorities.as_ref().ok_or(
        "to verify a server needs certificates of authorities: sslrootcert=FILE, behind the sslmode",
    )?;
    let text = file::read_to_string(path).map_err(|error| format!("cannot read {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        let added = certificate.map(|certificate| roots.add(certificate));
        match added {
            Ok(Ok(())) => {}
            _ => return Err(format!("{} has no certificates as PEM", path.display())),
        }
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Asks of a server's certificate what the target wants.
#[derive(Debug)]
struct Verifier {
    /// `None` where any certificate will do.
    authority: Option<Arc<WebPkiServerVerifier>>,
    /// Whether it has to be for the host.
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authority) = &self.authority else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified = authority.verify_server_cert(certificate, intermediates, name, ocsp, now);
        match verified {
            // The name is looked at last: all else is well.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
