//! Signatures on deliveries, following the Standard Webhooks specification.
//!
//! The receiver can check that a delivery is ours, unchanged and recent. The id is the same for all
//! attempts of one delivery; the timestamp is that of the attempt. `secret` derives the secret.

use std::fmt;
use std::ops::RangeInclusive;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rialto_core::time::Timestamp;
use sha2::Sha256;

/// Header with the id of a delivery.
pub const ID_HEADER: &str = "webhook-id";
/// Header with the time of an attempt, in whole seconds.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// Header with one or more signatures.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

/// Prefix of a secret in its text form.
const SECRET_PREFIX: &str = "whsec_";
/// Prefix of a symmetric signature.
const SIGNATURE_PREFIX: &str = "v1,";
/// How far a timestamp may be off in either direction: the tolerance of the reference libraries.
const CLOCK_SKEW_S_MAX: u64 = 300;

/// Bytes a secret may have by the specification. Ours have 32; receivers may hold others.
const SECRET_BYTES: RangeInclusive<usize> = 24..=64;

/// The secret that the hub shares with one receiver.
#[derive(Clone)]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    /// The secret with these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes.to_vec())
    }

    /// The secret as shown once at registration: `whsec_` and base64.
    pub fn to_text(&self) -> String {
        format!("{SECRET_PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Parses the text form of a secret.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(SECRET_PREFIX)?).ok()?;
        SECRET_BYTES.contains(&bytes.len()).then_some(Self(bytes))
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

/// Why a delivery cannot be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// A header is missing or cannot be parsed.
    #[error("a webhook header is missing or malformed")]
    Headers,
    /// Too old or too far ahead.
    #[error("the timestamp is more than {CLOCK_SKEW_S_MAX} s off")]
    Stale,
    /// No signature matches.
    #[error("no signature matches")]
    Signature,
}

/// The three headers for one attempt. `id` is ours and contains no dot.
pub fn sign(secret: &WebhookSecret, id: &str, at: Timestamp, body: &[u8]) -> [(String, String); 3] {
    sign_with_all(&[secret], id, at, body)
}

/// The same with several secrets, while an old one is being replaced.
pub fn sign_with_all(
    secrets: &[&WebhookSecret],
    id: &str,
    at: Timestamp,
    body: &[u8],
) -> [(String, String); 3] {
    let seconds = at.0.div_euclid(1_000).to_string();
    let one = |secret: &&WebhookSecret| {
        let mac = secret.mac(id, &seconds, body).finalize().into_bytes();
        format!("{SIGNATURE_PREFIX}{}", STANDARD.encode(mac))
    };
    let signatures: Vec<String> = secrets.iter().map(one).collect();
    let signatures = signatures.join(" ");
    [(ID_HEADER, id.to_owned()), (TIMESTAMP_HEADER, seconds), (SIGNATURE_HEADER, signatures)]
        .map(|(name, value)| (name.to_owned(), value))
}

/// Verifies a delivery the way its receiver does.
pub fn verify<'a>(
    secret: &WebhookSecret,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    body: &[u8],
    now: Timestamp,
) -> Result<(), VerifyError> {
    let (mut id, mut seconds, mut signatures) = (None, None, None);
    for (name, value) in headers {
        match name.to_ascii_lowercase().as_str() {
            ID_HEADER => id = Some(value),
            TIMESTAMP_HEADER => seconds = Some(value),
            SIGNATURE_HEADER => signatures = Some(value),
            _ => {}
        }
    }
    let (Some(id), Some(seconds), Some(signatures)) = (id, seconds, signatures) else {
        return Err(VerifyError::Headers);
    };
    let at: i64 = seconds.parse().map_err(|_| VerifyError::Headers)?;
    if at.abs_diff(now.0.div_euclid(1_000)) > CLOCK_SKEW_S_MAX {
        return Err(VerifyError::Stale);
    }
    let mac = secret.mac(id, seconds, body);
    // `verify_slice` compares in constant time.
    let fits = |text: &str| {
        let bytes = text.strip_prefix(SIGNATURE_PREFIX).and_then(|b64| STANDARD.decode(b64).ok());
        bytes.is_some_and(|bytes| mac.clone().verify_slice(&bytes).is_ok())
    };
    if signatures.split(' ').any(fits) { Ok(()) } else { Err(VerifyError::Signature) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_754_000_000_999);
    const BODY: &[u8] = br#"{"type":"job.offered","data":{"n":1}}"#;

    fn secret() -> WebhookSecret {
        WebhookSecret::new(std::array::from_fn(|i| i as u8))
    }

    fn check(headers: &[(String, String)], body: &[u8], now: Timestamp) -> Result<(), VerifyError> {
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        verify(&secret(), headers, body, now)
    }

    #[test]
    fn the_headers_are_those_of_an_independent_implementation() {
        // python3: base64.b64encode(hmac.new(bytes(range(32)), b"msg_1.1754000000." + body,
        //          hashlib.sha256).digest())
        let signature = "v1,6W0zmt0nA/INrWCtK5RTvNL36GAERFlSiUhIzCvOS7s=";
        let expected = [
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", "1754000000"),
            ("webhook-signature", signature),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(sign(&secret(), "msg_1", NOW, BODY), expected);
    }

    #[test]
    fn the_example_that_circulates_with_the_specification_holds() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let [_, _, (_, signature)] = sign(
            &secret.expect("a secret of 24 bytes"),
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            Timestamp(1_614_265_330_000),
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_is_signed_verifies_and_nothing_else_does() {
        let headers = sign(&secret(), "msg_1", NOW, BODY);
        assert_eq!(check(&headers, BODY, NOW), Ok(()));
        assert_eq!(check(&headers, b"{}", NOW), Err(VerifyError::Signature));
        for changed in 0..headers.len() {
            let mut headers = headers.clone();
            headers[changed].1.insert(3, '1');
            assert!(check(&headers, BODY, NOW).is_err(), "{headers:?}");
        }
        let foreign = sign(&WebhookSecret::new([9; 32]), "msg_1", NOW, BODY);
        assert_eq!(check(&foreign, BODY, NOW), Err(VerifyError::Signature));
        assert_eq!(check(&headers[..2], BODY, NOW), Err(VerifyError::Headers));
    }

    #[test]
    fn a_delivery_is_believed_for_five_minutes_either_way() {
        let headers = sign(&secret(), "msg_1", NOW, BODY);
        for (off_s, fresh) in [(-301, false), (-300, true), (300, true), (301, false)] {
            let now = Timestamp(NOW.0 + off_s * 1_000);
            assert_eq!(check(&headers, BODY, now).is_ok(), fresh, "{off_s}");
        }
    }

    #[test]
    fn while_a_secret_is_replaced_the_old_and_the_new_one_both_verify() {
        let (old, new) = (secret(), WebhookSecret::new([9; 32]));
        let headers = sign_with_all(&[&new, &old], "msg_1", NOW, BODY);
        for secret in [&old, &new] {
            let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            assert_eq!(verify(secret, headers, BODY, NOW), Ok(()));
        }
    }

    #[test]
    fn header_names_are_read_in_any_case() {
        let headers = sign(&secret(), "msg_1", NOW, BODY).map(|(n, v)| (n.to_uppercase(), v));
        assert_eq!(check(&headers, BODY, NOW), Ok(()));
    }

    #[test]
    fn a_secret_is_read_as_shown_and_never_printed() {
        let text = secret().to_text();
        assert_eq!(text, "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        assert_eq!(WebhookSecret::parse(&text).map(|s| s.to_text()), Some(text.clone()));
        assert_eq!(format!("{:?}", secret()), "WebhookSecret(…)");
        for wrong in ["", "whsec_", "whsec_AAEC", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="] {
            assert!(WebhookSecret::parse(wrong).is_none(), "{wrong}");
        }
    }
}
