//! TLS 1.3 with raw public keys (RFC 7250) instead of certificates.
//!
//! Both sides show the Ed25519 key that is derived from the hub's secret, and each requires that the
//! other shows the very same one and signs the handshake with it. So a connection is open only
//! between two nodes that have the secret. The signatures of client and server are made over
//! different texts, so one side's cannot be sent back to it as the other's.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, PeerIncompatible,
    ServerConfig, SignatureScheme,
};
use subtle::ConstantTimeEq;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::secret::HubSecret;

/// PKCS#8 of an Ed25519 key, up to its seed (RFC 8410, section 7).
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// Opens both sides of a connection with the key of the hub's nodes.
pub(super) struct NodeTls {
    connector: TlsConnector,
    acceptor: TlsAcceptor,
}

impl NodeTls {
    pub(super) fn new(secret: &HubSecret) -> Result<Self, rustls::Error> {
        let mut pkcs8 = PKCS8_PREFIX.to_vec();
        pkcs8.extend(secret.hop_key_seed());
        let signer = aws_lc_rs::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8))?;
        let public = signer.public_key().map(SubjectPublicKeyInfoDer::into_owned);
        let public = public.ok_or(rustls::Error::General("the key has no public key".into()))?;
        // With raw public keys, the key takes the place of the certificate.
        let shown = CertificateDer::from(public.to_vec());
        let key = Arc::new(CertifiedKey::new(vec![shown], signer));

        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Arc::new(SameKey::new(public, &provider));
        Ok(Self {
            connector: TlsConnector::from(Arc::new(client_config(&provider, &verifier, &key)?)),
            acceptor: TlsAcceptor::from(Arc::new(server_config(&provider, &verifier, &key)?)),
        })
    }

    pub(super) async fn connect(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        // Neither sent nor checked: the key is what counts.
        let name = ServerName::try_from("node").expect("a valid name");
        Ok(self.connector.connect(name, socket).await?.into())
    }

    pub(super) async fn accept(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        Ok(self.acceptor.accept(socket).await?.into())
    }
}

/// Sessions are never resumed, so that every connection proves the key again.
fn client_config(
    provider: &Arc<CryptoProvider>,
    verifier: &Arc<SameKey>,
    key: &Arc<CertifiedKey>,
) -> Result<ClientConfig, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone())
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key.clone())));
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

fn server_config(
    provider: &Arc<CryptoProvider>,
    verifier: &Arc<SameKey>,
    key: &Arc<CertifiedKey>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier.clone())
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key.clone())));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// Accepts one public key only: that of this node, which all nodes of the hub have.
#[derive(Debug)]
struct SameKey {
    public: SubjectPublicKeyInfoDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl SameKey {
    fn new(public: SubjectPublicKeyInfoDer<'static>, provider: &CryptoProvider) -> Self {
        Self { public, algorithms: provider.signature_verification_algorithms }
    }

    fn check_key(
        &self,
        shown: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> Result<(), rustls::Error> {
        let is_same: bool = self.public.as_ref().ct_eq(shown.as_ref()).into();
        if is_same && others.is_empty() {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

/// The methods that both sides' verifiers have, under the same names in two traits.
macro_rules! verify_handshake_with_same_key {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _cert: &CertificateDer<'_>,
            _dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(PeerIncompatible::Tls12NotOffered.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            _cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            verify_tls13_signature_with_raw_key(message, &self.public, dss, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for SameKey {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check_key(end_entity, intermediates)?;
        Ok(ServerCertVerified::assertion())
    }

    verify_handshake_with_same_key!();
}

impl ClientCertVerifier for SameKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check_key(end_entity, intermediates)?;
        Ok(ClientCertVerified::assertion())
    }

    verify_handshake_with_same_key!();
}
