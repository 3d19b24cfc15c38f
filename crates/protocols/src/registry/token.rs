//! Callback tokens: a job's own URL for late results, valid for one job and one assignment.
//!
//! A token is the job's public id, the assignment's epoch, and a MAC over both. Nothing about it is
//! stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use rialto_core::job::Job;
use rialto_engine::secret::HubSecret;
use sha2::Sha256;
use uuid::Uuid;

/// The length of the truncated MAC in bytes: 128 bits.
const MAC_LEN: usize = 16;

/// The content of a genuine token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackToken {
    pub job: Uuid,
    pub epoch: u32,
}

/// The token of a job's current assignment.
pub fn callback_token(secret: &HubSecret, job: &Job) -> String {
    let token = CallbackToken { job: job.uuid, epoch: job.epoch };
    let mut bytes = token.bytes();
    bytes.extend(token.mac(secret).finalize().into_bytes().iter().take(MAC_LEN));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The content of a token, if this hub made it.
pub fn read_callback_token(secret: &HubSecret, text: &str) -> Option<CallbackToken> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (job, rest) = bytes.split_first_chunk::<16>()?;
    let (epoch, mac) = rest.split_first_chunk::<4>()?;
    let token = CallbackToken { job: Uuid::from_bytes(*job), epoch: u32::from_be_bytes(*epoch) };
    if mac.len() != MAC_LEN {
        return None;
    }
    token.mac(secret).verify_truncated_left(mac).ok()?;
    Some(token)
}

impl CallbackToken {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = self.job.as_bytes().to_vec();
        bytes.extend(self.epoch.to_be_bytes());
        bytes
    }

    fn mac(self, secret: &HubSecret) -> Hmac<Sha256> {
        let key = secret.derive("rialto registry callback v1", "token");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
        mac.update(&self.bytes());
        mac
    }
}
