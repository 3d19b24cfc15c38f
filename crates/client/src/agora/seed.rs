//! A seed: the 32 secret bytes of a key, and their text form.

use std::fmt;

use rialto_protocols::kit::base64url;
use rialto_protocols::kit::ed25519::{KEY_LEN, SecretKey};

use crate::call::CallError;

/// Prefix of a seed's text form, so that it cannot be mistaken for a public key.
const PREFIX: &str = "ed25519-seed:";

/// The secret of an identity. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed([u8; KEY_LEN]);

impl Seed {
    /// A new random seed.
    pub fn random() -> Result<Self, CallError> {
        let mut bytes = [0; KEY_LEN];
        match getrandom::fill(&mut bytes) {
            Ok(()) => Ok(Self(bytes)),
            Err(error) => Err(CallError::Unreadable(format!(
                "the system's random number generator failed: {error}"
            ))),
        }
    }

    /// The seed with these bytes.
    pub const fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// Parses `ed25519-seed:` and 43 Base64Url digits, the first line of a key file. A failed write
    /// can leave all zeros, so those are rejected.
    pub fn read(text: &str) -> Option<Self> {
        let digits = text.lines().next()?.trim().strip_prefix(PREFIX)?;
        let bytes = base64url::decode_array(digits).ok()?;
        (bytes != [0; KEY_LEN]).then_some(Self(bytes))
    }

    /// The text that [`Seed::read`] parses, to store it.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", base64url::encode(&self.0))
    }

    pub(crate) fn key(&self) -> SecretKey {
        SecretKey::from_seed(&self.0)
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_read_as_it_is_kept_and_printed_only_on_purpose() {
        let seed = Seed::from_bytes([7; 32]);
        assert_eq!(Seed::read(&seed.reveal()), Some(seed.clone()));
        assert_eq!(Seed::read(&format!(" {} \r\ndid x\n", seed.reveal())), Some(seed.clone()));
        assert_eq!(format!("{seed:?}"), "Seed(…)");
        let zero = Seed::from_bytes([0; 32]).reveal();
        let bare = seed.reveal().replace(PREFIX, "");
        for wrong in ["", "ed25519-seed:", "ed25519-seed:AAAA", &zero, &bare] {
            assert_eq!(Seed::read(wrong), None, "{wrong}");
        }
        assert_ne!(Seed::random().expect("random"), Seed::random().expect("random"));
    }
}
