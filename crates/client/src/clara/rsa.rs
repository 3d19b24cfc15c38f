//! RSA keys of 4096 bits, as Arweave's wallets have them.

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PSS_SHA256, RsaPssSaltLength, RsaSignatureEncoding};

use super::jwk::Jwk;
use super::wallet::NotAWallet;
use crate::call::CallError;

/// Bytes of a modulus and of a signature.
const LENGTH: usize = 512;
/// How the DER of a public key of this length begins: a sequence and the head of its first number,
/// which is the modulus with a zero before it.
const HEAD: usize = 4;
const MODULUS: [u8; 5] = [0x02, 0x82, 0x02, 0x01, 0x00];
/// The longest salt there is room for, as Node's wallets take it.
static SALTED: RsaSignatureEncoding = RSA_PSS_SHA256.with_pss_salt_length(RsaPssSaltLength::Max);

/// A key and its public half.
#[derive(Clone)]
pub(super) struct RsaKey {
    pair: Arc<KeyPair>,
    owner: Arc<[u8]>,
}

impl RsaKey {
    pub(super) fn generate() -> Result<Self, CallError> {
        let broken = || CallError::Unreadable("no RSA key could be made".to_owned());
        let pair = KeyPair::generate(KeySize::Rsa4096).map_err(|_| broken())?;
        Self::of(pair).ok_or_else(broken)
    }

    pub(super) fn from_jwk(text: &str) -> Result<Self, NotAWallet> {
        let der = Jwk::read(text)?.der()?;
        let pair = KeyPair::from_der(&der).map_err(|_| NotAWallet::BadKey)?;
        Self::of(pair).ok_or(NotAWallet::BadKey)
    }

    /// `None` for keys of another length.
    fn of(pair: KeyPair) -> Option<Self> {
        let number = pair.public_key().as_ref().get(HEAD..)?.strip_prefix(&MODULUS)?;
        let owner = number.get(..LENGTH)?.into();
        Some(Self { pair: Arc::new(pair), owner })
    }

    /// The modulus.
    pub(super) fn owner(&self) -> &[u8] {
        &self.owner
    }

    /// A signature, another one every time.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, CallError> {
        let mut signature = vec![0; LENGTH];
        let signed = self.pair.sign(&SALTED, &SystemRandom::new(), message, &mut signature);
        match signed {
            Ok(()) => Ok(signature),
            Err(_) => Err(CallError::Unreadable("the RSA key does not sign".to_owned())),
        }
    }
}
