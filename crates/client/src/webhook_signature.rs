//! Verifies the signatures of webhook deliveries, as defined by the Standard Webhooks
//! specification.
//!
//! A delivery that verifies was sent by the server that issued the secret, is unchanged, and is
//! recent.

use std::fmt;
use std::ops::RangeInclusive;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use rialto_core::time::Timestamp;
use sha2::Sha256;

/// Header with the id of a delivery. All attempts of a delivery have the same id.
pub(super) const ID_HEADER: &str = "webhook-id";
/// Header with the time of an attempt, in whole seconds.
const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// Header with one or more signatures.
const SIGNATURE_HEADER: &str = "webhook-signature";

/// Prefix of a secret in text form.
const SECRET_PREFIX: &str = "whsec_";
/// Prefix of a symmetric signature.
const SIGNATURE_PREFIX: &str = "v1,";
/// Maximum clock skew in either direction; the same as in the reference libraries.
const CLOCK_SKEW_S_MAX: u64 = 300;
/// The length of a secret in bytes, according to the specification.
const SECRET_BYTES: RangeInclusive<usize> = 24..=64;

/// The secret shared by a server and one receiver.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

/// Why a delivery does not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// A header is missing or cannot be read.
    #[error("a webhook header is missing or malformed")]
    BadHeaders,
    /// The timestamp is too old or too far ahead.
    #[error("the webhook timestamp differs from this clock by more than {CLOCK_SKEW_S_MAX} s")]
    Stale,
    /// No signature matches.
    #[error("no webhook signature matches")]
    BadSignature,
}

impl WebhookSecret {
    /// Parses a secret in the form returned at registration: `whsec_` and base64.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(SECRET_PREFIX)?).ok()?;
        SECRET_BYTES.contains(&bytes.len()).then_some(Self(bytes))
    }

    /// The secret's text, to store it.
    pub fn reveal(&self) -> String {
        format!("{SECRET_PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Verifies a delivery by its headers, its body exactly as received, and the current time.
    pub fn verify(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), VerifyError> {
        let header = |name: &str| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.ok_or(VerifyError::BadHeaders)
        };
        let (id, seconds) = (header(ID_HEADER)?, header(TIMESTAMP_HEADER)?);
        let signatures = header(SIGNATURE_HEADER)?;
        let at: i64 = seconds.parse().map_err(|_| VerifyError::BadHeaders)?;
        if at.abs_diff(now.0.div_euclid(1_000)) > CLOCK_SKEW_S_MAX {
            return Err(VerifyError::Stale);
        }
        let mac = self.mac(id, seconds, body);
        // `verify_slice` compares in constant time.
        let fits = |text: &str| {
            let bytes =
                text.strip_prefix(SIGNATURE_PREFIX).and_then(|b64| STANDARD.decode(b64).ok());
            bytes.is_some_and(|bytes| mac.clone().verify_slice(&bytes).is_ok())
        };
        if signatures.split(' ').any(fits) { Ok(()) } else { Err(VerifyError::BadSignature) }
    }

    fn mac(&self, id: &str, seconds: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        for part in [id.as_bytes(), b".", seconds.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    /// The commonly used example of the specification.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const AT: Timestamp = Timestamp(1_614_265_330_000);

    fn headers() -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (ID_HEADER, "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            (TIMESTAMP_HEADER, "1614265330"),
            (SIGNATURE_HEADER, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers
    }

    fn secret() -> WebhookSecret {
        WebhookSecret::read(SECRET).expect("a secret of 24 bytes")
    }

    #[test]
    fn the_published_example_verifies_and_nothing_else_does() {
        assert_eq!(secret().verify(&headers(), BODY, AT), Ok(()));
        assert_eq!(secret().verify(&headers(), b"{}", AT), Err(VerifyError::BadSignature));
        let other = WebhookSecret(vec![9; 32]);
        assert_eq!(other.verify(&headers(), BODY, AT), Err(VerifyError::BadSignature));
        for name in [ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER] {
            let mut changed = headers();
            changed.remove(name);
            assert_eq!(secret().verify(&changed, BODY, AT), Err(VerifyError::BadHeaders), "{name}");
            changed.insert(name, HeaderValue::from_static("1614265331"));
            assert_eq!(
                secret().verify(&changed, BODY, AT),
                Err(VerifyError::BadSignature),
                "{name}"
            );
        }
    }

    #[test]
    fn one_good_signature_among_others_is_enough() {
        let mut several = headers();
        let good = several[SIGNATURE_HEADER].to_str().expect("text").to_owned();
        let all = format!("v1a,abc v1,AAAA {good}");
        several.insert(SIGNATURE_HEADER, HeaderValue::from_str(&all).expect("text"));
        assert_eq!(secret().verify(&several, BODY, AT), Ok(()));
    }

    #[test]
    fn a_delivery_is_believed_for_five_minutes_either_way() {
        for (off_s, fresh) in [(-301, false), (-300, true), (300, true), (301, false)] {
            let now = Timestamp(AT.0 + off_s * 1_000);
            assert_eq!(secret().verify(&headers(), BODY, now).is_ok(), fresh, "{off_s}");
        }
    }

    #[test]
    fn a_secret_is_read_as_shown_and_never_printed() {
        assert_eq!(secret().reveal(), SECRET);
        assert_eq!(format!("{:?}", secret()), "WebhookSecret(…)");
        for wrong in ["", "whsec_", "whsec_AAEC", &SECRET["whsec_".len()..]] {
            assert!(WebhookSecret::read(wrong).is_none(), "{wrong}");
        }
    }
}
