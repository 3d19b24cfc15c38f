//! Sealing: credentials of others are encrypted before they are stored.
//!
//! AES-256-GCM with a random nonce, under a key that is derived from the hub's secret for each
//! purpose. The context (the row a text belongs to, for example) is authenticated, so a sealed text
//! that is copied into another row does not open there.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::random::RandomSource;
use crate::secret::HubSecret;

const SALT: &str = "rialto seal v1";
/// Begins every sealed text; another format gets another prefix.
const PREFIX: &str = "s1.";

impl HubSecret {
    /// Encrypts `plain` into a text that only [`open`](Self::open) with the same purpose and context
    /// can read.
    pub fn seal(
        &self,
        purpose: &str,
        context: &[u8],
        plain: &[u8],
        random: &dyn RandomSource,
    ) -> String {
        let mut nonce = [0; NONCE_LEN];
        random.fill_bytes(&mut nonce);
        let mut bytes = plain.to_vec();
        let tag = self
            .sealing_key(purpose)
            .seal_in_place_separate_tag(Nonce::from(&nonce), Aad::from(context), &mut bytes)
            .expect("AES-256-GCM takes up to 64 GiB");
        let sealed = [&nonce, bytes.as_slice(), tag.as_ref()].concat();
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Decrypts a text of [`seal`](Self::seal); `None` if it was changed, or sealed for another
    /// purpose or context or by another hub.
    pub fn open(&self, purpose: &str, context: &[u8], sealed: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed.strip_prefix(PREFIX)?).ok()?;
        let (nonce, bytes) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut bytes = bytes.to_vec();
        let key = self.sealing_key(purpose);
        let plain = key.open_in_place(Nonce::from(nonce), Aad::from(context), &mut bytes);
        let length = plain.ok()?.len();
        bytes.truncate(length);
        Some(bytes)
    }

    fn sealing_key(&self, purpose: &str) -> LessSafeKey {
        let key = UnboundKey::new(&AES_256_GCM, &self.derive(SALT, purpose));
        LessSafeKey::new(key.expect("a derived key has 32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::OsRandom;

    const PURPOSE: &str = "credentials";

    fn secret(first: u8) -> HubSecret {
        HubSecret::from_bytes(std::array::from_fn(|i| i as u8 + first))
    }

    fn sealed() -> String {
        secret(0).seal(PURPOSE, b"agent 7", b"Bearer abc", &OsRandom)
    }

    #[test]
    fn a_sealed_text_is_that_of_an_independent_implementation() {
        struct Zeros;
        impl RandomSource for Zeros {
            fn fill_bytes(&self, bytes: &mut [u8]) {
                bytes.fill(0);
            }
        }
        // python3, HKDF by hand over hmac and hashlib, then AESGCM of the package cryptography.
        let sealed = secret(0).seal(PURPOSE, b"agent 7", b"Bearer abc", &Zeros);
        assert_eq!(sealed, "s1.AAAAAAAAAAAAAAAAeIhtP-vJPRpRYokgf0YetuEfwMqVeS844PM");
    }

    #[test]
    fn a_sealed_text_opens_and_shows_nothing_of_its_content() {
        let text = sealed();
        assert_eq!(secret(0).open(PURPOSE, b"agent 7", &text).as_deref(), Some(&b"Bearer abc"[..]));
        let bytes = URL_SAFE_NO_PAD.decode(&text[PREFIX.len()..]).expect("base64url");
        assert!(!bytes.windows(6).any(|part| part == b"Bearer"));
        assert_ne!(sealed(), text, "every text has its own nonce");
    }

    #[test]
    fn another_purpose_context_or_hub_does_not_open_it() {
        let text = sealed();
        assert_eq!(secret(0).open("tokens", b"agent 7", &text), None);
        assert_eq!(secret(0).open(PURPOSE, b"agent 8", &text), None);
        assert_eq!(secret(0).open(PURPOSE, b"", &text), None);
        assert_eq!(secret(1).open(PURPOSE, b"agent 7", &text), None);
    }

    #[test]
    fn a_change_of_any_byte_or_of_the_length_is_noticed() {
        let text = sealed();
        let open = |text: &str| secret(0).open(PURPOSE, b"agent 7", text);
        let bytes = URL_SAFE_NO_PAD.decode(&text[PREFIX.len()..]).expect("base64url");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(open(&format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(changed))), None);
            let shorter = URL_SAFE_NO_PAD.encode(&bytes[..at]);
            assert_eq!(open(&format!("{PREFIX}{shorter}")), None);
        }
        for other in ["", "s1.", "s1", &text[3..], &format!("s2.{}", &text[3..])] {
            assert_eq!(open(other), None, "{other}");
        }
        for other in [format!("{text}="), format!("{text}A"), format!(" {text}")] {
            assert_eq!(open(&other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(
            plain in proptest::collection::vec(any::<u8>(), 0..300),
            context in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let text = secret(0).seal(PURPOSE, &context, &plain, &OsRandom);
            prop_assert_eq!(secret(0).open(PURPOSE, &context, &text), Some(plain));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(s1\\.)?[A-Za-z0-9_=.-]{0,60}") {
            prop_assert_eq!(secret(0).open(PURPOSE, b"", &text), None);
        }
    }
}
