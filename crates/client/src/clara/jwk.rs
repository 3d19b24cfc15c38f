//! The JWK of an RSA key, the format of Arweave wallets, and its conversion to DER.

use rialto_protocols::kit::base64url;
use serde::Deserialize;

use super::wallet::WalletError;

/// The only supported exponent.
const EXPONENT: [u8; 3] = [1, 0, 1];

/// The numbers of a key, each in Base64Url.
#[derive(Deserialize)]
pub(super) struct Jwk {
    kty: String,
    n: Option<String>,
    e: Option<String>,
    d: Option<String>,
    p: Option<String>,
    q: Option<String>,
    dp: Option<String>,
    dq: Option<String>,
    qi: Option<String>,
}

impl Jwk {
    pub(super) fn read(text: &str) -> Result<Self, WalletError> {
        let jwk: Self = serde_json::from_str(text).map_err(|_| WalletError::UnknownFormat)?;
        if jwk.kty == "RSA" { Ok(jwk) } else { Err(WalletError::UnknownFormat) }
    }

    /// An `RSAPrivateKey` of RFC 8017: the version, which is 0, and the numbers.
    pub(super) fn der(&self) -> Result<Vec<u8>, WalletError> {
        let named = [
            ("n", &self.n),
            ("e", &self.e),
            ("d", &self.d),
            ("p", &self.p),
            ("q", &self.q),
            ("dp", &self.dp),
            ("dq", &self.dq),
            ("qi", &self.qi),
        ];
        let mut numbers = integer(&[0]);
        for (name, text) in named {
            let bytes = text.as_ref().and_then(|text| base64url::decode(text).ok());
            let bytes = bytes.filter(|bytes| !bytes.is_empty());
            let bytes = bytes.ok_or(WalletError::BadMember(name))?;
            if name == "e" && bytes != EXPONENT {
                return Err(WalletError::BadKey);
            }
            numbers.extend(integer(&bytes));
        }
        Ok(tagged(0x30, &numbers))
    }
}

/// A non-negative DER integer. If the first bit is set, a zero byte goes first.
fn integer(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
    let digits = &bytes[start..];
    let sign = (digits[0] & 0x80 != 0).then_some(0);
    let content: Vec<u8> = sign.into_iter().chain(digits.iter().copied()).collect();
    tagged(0x02, &content)
}

/// A DER element: tag, length, content. A length up to 127 takes one byte.
fn tagged(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let bytes = length.to_be_bytes();
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
    let mut out = vec![kind];
    if length > 127 {
        // At most eight bytes, so the count always fits.
        out.push(0x80 | (bytes.len() - start) as u8);
    }
    out.extend_from_slice(&bytes[start..]);
    out.extend_from_slice(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_der_wants_them() {
        assert_eq!(integer(&[0]), [2, 1, 0]);
        assert_eq!(integer(&[0, 0, 7]), [2, 1, 7]);
        assert_eq!(integer(&[0x80]), [2, 2, 0, 0x80]);
        assert_eq!(tagged(4, &[1; 127])[..2], [4, 127]);
        assert_eq!(tagged(4, &[1; 128])[..3], [4, 0x81, 128]);
        assert_eq!(tagged(4, &[1; 300])[..4], [4, 0x82, 1, 44]);
    }
}
