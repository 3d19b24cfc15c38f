//! Where servers of agents push news of a task: a URL that is valid for one assignment of one job.
//! The news itself is not read; it only says that the task is worth asking for (R104).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use rialto_core::job::Job;
use rialto_engine::secret::HubSecret;
use sha2::Sha256;
use uuid::Uuid;

use crate::a2a::{A2aContext, ID};

/// The bytes of the MAC in a token.
const MAC_LEN: usize = 16;

/// What a token says: which job, and which assignment of it. Nothing about it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackToken {
    pub job: Uuid,
    pub epoch: u32,
}

/// The URL for the server of a job's worker; `None` if the hub cannot be reached by https.
pub fn url(context: &A2aContext, job: &Job) -> Option<String> {
    let hub = Some(&context.hub_url).filter(|hub| hub.starts_with("https://"))?;
    let token = CallbackToken { job: job.uuid, epoch: job.epoch };
    Some(format!("{hub}/{ID}/callbacks/{}", token.write(context.engine.hub_secret())))
}

impl CallbackToken {
    /// The token as text.
    pub fn write(self, secret: &HubSecret) -> String {
        let mut bytes = self.bytes();
        bytes.extend(self.mac(secret).finalize().into_bytes().iter().take(MAC_LEN));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// What a token says, if this hub made it.
    pub fn read(secret: &HubSecret, text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (job, rest) = bytes.split_first_chunk::<16>()?;
        let (epoch, mac) = rest.split_first_chunk::<4>()?;
        let token = Self { job: Uuid::from_bytes(*job), epoch: u32::from_be_bytes(*epoch) };
        if mac.len() != MAC_LEN {
            return None;
        }
        token.mac(secret).verify_truncated_left(mac).ok()?;
        Some(token)
    }

    fn bytes(self) -> Vec<u8> {
        let mut bytes = self.job.as_bytes().to_vec();
        bytes.extend(self.epoch.to_be_bytes());
        bytes
    }

    fn mac(self, secret: &HubSecret) -> Hmac<Sha256> {
        let key = secret.derive("rialto a2a callback v1", "token");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
        mac.update(&self.bytes());
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hub_that_made_a_token_reads_it_and_no_change_passes() {
        let secret = |first| HubSecret::from_bytes([first; 32]);
        let token = CallbackToken { job: Uuid::from_u128(7), epoch: 3 };
        let text = token.write(&secret(1));
        assert_eq!(CallbackToken::read(&secret(1), &text), Some(token));
        assert_eq!(CallbackToken::read(&secret(2), &text), None);
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).expect("ASCII");
            let read = CallbackToken::read(&secret(1), &other);
            assert!(read.is_none() || read == Some(token), "{other}");
        }
        assert_eq!(CallbackToken::read(&secret(1), &text[..text.len() - 2]), None);
        assert_eq!(CallbackToken::read(&secret(1), ""), None);
    }
}
