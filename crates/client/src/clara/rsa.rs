//! 4096-bit RSA keys, as used by Arweave wallets.

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PSS_SHA256, RsaPssSaltLength, RsaSignatureEncoding};

use super::jwk::Jwk;
use super::wallet::WalletError;
use crate::call::CallError;

/// Length of a modulus and of a signature, in bytes.
const LENGTH: usize = 512;
/// Length of the DER prefix of a public key of this size: the sequence header. The header of the
/// modulus follows, and a zero byte.
const HEAD: usize = 4;
const MODULUS: [u8; 5] = [0x02, 0x82, 0x02, 0x01, 0x00];
/// The longest possible salt, as wallets on Node use it.
static SALTED: RsaSignatureEncoding = RSA_PSS_SHA256.with_pss_salt_length(RsaPssSaltLength::Max);

/// A key and its public half.
#[derive(Clone)]
pub(super) struct RsaKey {
    pair: Arc<KeyPair>,
    owner: Arc<[u8]>,
}

impl RsaKey {
    pub(super) fn generate() -> Result<Self, CallError> {
        let broken = || CallError::Unreadable("the RSA key could not be generated".to_owned());
        let pair = KeyPair::generate(KeySize::Rsa4096).map_err(|_| broken())?;
        Self::of(pair).ok_or_else(broken)
    }

    pub(super) fn from_jwk(text: &str) -> Result<Self, WalletError> {
        let der = Jwk::read(text)?.der()?;
        let pair = KeyPair::from_der(&der).map_err(|_| WalletError::BadKey)?;
        Self::of(pair).ok_or(WalletError::BadKey)
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

    /// A signature; a different one each time.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, CallError> {
        let mut signature = vec![0; LENGTH];
        let signed = self.pair.sign(&SALTED, &SystemRandom::new(), message, &mut signature);
        match signed {
            Ok(()) => Ok(signature),
            Err(_) => Err(CallError::Unreadable("signing with the RSA key failed".to_owned())),
        }
    }
}
