use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};

#[derive(Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

impl From<String> for TlsError {
    fn from(text: String) -> Self {
        TlsError(text)
    }
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let explain = |error| TlsError(format!("cannot read certificates from {}: {error}", path.display()));
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(explain)?.collect();
    let certificates = certificates.map_err(explain)?;
    match certificates.is_empty() {
        true => Err(TlsError(format!("{} holds no certificate in PEM form", path.display()))),
        false => Ok(certificates),
    }
}

/// The identity that we show to a server which asks for a certificate: the chain and its key, both PEM files.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'p> {
    pub certificate: &'p Path,
    pub key: &'p Path,
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| TlsError(format!("cannot read the private key {}: {error}", path.display())))
}

fn misfit(certificate: &Path, key: &Path, error: &rustls::Error) -> TlsError {
    let (certificate, key) = (certificate.display(), key.display());
    TlsError(match error {
        rustls::Error::InconsistentKeys(_) => format!("{key} is not the key of the certificate in {certificate}"),
        _ => format!("{certificate} and {key} can't be used: {error}"),
    })
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots.add(certificate).map_err(|error| TlsError(format!("{}: {error}", path.display())))?;
    }
    Ok(roots)
}

/// Makes the TLS configuration for connections to a server. It trusts the certificates in `ca_file`, or those
/// that the system trusts.
///
/// # Errors
/// Fails where a file can't be read, the key is not that of the certificate, or no certificate is trusted.
pub fn client_config(ca_file: Option<&Path>, identity: Option<Identity<'_>>) -> Result<Arc<ClientConfig>, TlsError> {
    let roots = match ca_file {
        Some(path) => authorities(path)?,
        None => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(TlsError("the system has no trusted certificates, and no CA file is named".into()));
            }
            roots
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError(error.to_string()))?
        .with_root_certificates(roots);
    let Some(Identity { certificate, key }) = identity else { return Ok(Arc::new(config.with_no_client_auth())) };
    let config = config
        .with_client_auth_cert(read_certificates(certificate)?, read_key(key)?)
        .map_err(|error| misfit(certificate, key, &error))?;
    Ok(Arc::new(config))
}

/// Makes the TLS configuration for connections to a port of this process. Nobody else listens there, so
/// whatever certificate it shows is its own: the certificate need not be for the address by which the port is
/// reached here.
pub(crate) fn client_config_for_own_port() -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OwnPort(provider)))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[derive(Debug)]
struct OwnPort(Arc<CryptoProvider>);

impl ServerCertVerifier for OwnPort {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// TLS configuration of a port of ours.
pub type ServerTls = Arc<ServerConfig>;

/// Makes the TLS configuration of a port of ours from the certificate chain and its key. `client_ca` names
/// the authorities of clients, which then have to show a certificate. All of them are PEM files.
///
/// # Errors
/// Fails where a file can't be read, or the key is not that of the certificate.
pub fn server_config(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<ServerTls, TlsError> {
    let chain = read_certificates(certificate)?;
    let key_der = read_key(key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = match client_ca {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(path) => WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(path)?), provider.clone())
            .build()
            .map_err(|error| TlsError(format!("{}: {error}", path.display())))?,
    };
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError(error.to_string()))?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key_der)
        .map_err(|error| misfit(certificate, key, &error))?;
    Ok(Arc::new(config))
}
