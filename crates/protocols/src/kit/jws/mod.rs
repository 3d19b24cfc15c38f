//! JSON Web Signatures (RFC 7515) with a detached payload, and the public keys (RFC 7517) that
//! verify them.
//!
//! The key decides what is accepted: an `alg` that does not fit its type is refused before
//! anything is computed, so a signature cannot choose a weaker check. Secret keys (`HS256`), `none`
//! and critical extensions are not supported. Whether a key is trusted is decided elsewhere.

#[cfg(test)]
mod tests;

use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaParameters, RsaPublicKeyComponents,
};

use super::base64url;
use super::ed25519::{PublicKey, SecretKey, Verifier};
use super::ijson::{self, Json, JsonValue};
use super::object::ObjectWriter;

/// The longest protected header in bytes of Base64Url.
pub const HEADER_BYTES_MAX: usize = 8_192;
/// The most keys that are read from one document.
pub const KEYS_MAX: usize = 64;
/// The longest `kid`, `jku` or `typ` in bytes.
const TEXT_BYTES_MAX: usize = 2_048;
/// The longest signature in bytes: one of an RSA key of 8192 bits.
const SIGNATURE_BYTES_MAX: usize = 1_024;
/// The sizes of an RSA key in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
/// The longest RSA exponent in bytes; common keys have three.
const EXPONENT_BYTES_MAX: usize = 4;

/// Why a signature or a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwsError {
    /// The protected header is not Base64Url of a JSON object, or a member has the wrong type.
    #[error("has a protected header that is not Base64Url of a JSON object with a text `alg`")]
    MalformedHeader,
    /// The `alg` is none of those supported.
    #[error("has an unsupported `alg`; use EdDSA, ES256, ES384, RS256 or PS256")]
    UnsupportedAlgorithm,
    /// The header requires an extension.
    #[error("has a `crit` or `b64` header; extensions are not supported")]
    UnsupportedExtension,
    /// The document is not a JSON object with a list of keys.
    #[error("is not a JWK set of the form {{\"keys\":[…]}} with at most {KEYS_MAX} keys")]
    MalformedKeySet,
    /// The key is incomplete, weak or of another type.
    #[error("is not a usable public key (Ed25519, P-256, P-384, or RSA of 2048 to 8192 bits)")]
    BadKey,
    /// The key is for another algorithm.
    #[error("has an `alg` that does not fit the key")]
    WrongKeyType,
    /// The signature is not one of this key over this header and payload.
    #[error("is not a valid signature")]
    BadSignature,
}

/// The supported signature algorithms (RFC 7518, section 3; RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Ed25519.
    EdDsa,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// RSA-PSS with SHA-256 and a salt of 32 bytes.
    Ps256,
}

impl Algorithm {
    /// The algorithm with this `alg`.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::EdDsa, Self::Es256, Self::Es384, Self::Rs256, Self::Ps256];
        all.into_iter().find(|algorithm| algorithm.as_str() == text)
    }

    /// Its `alg`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
        }
    }
}

/// The members of a protected header that matter to a verifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedHeader {
    /// The algorithm of the signature.
    pub alg: Algorithm,
    /// The id of the key.
    pub kid: Option<String>,
    /// The URL of the document with the key, as the signer claims it.
    pub jku: Option<String>,
    /// The media type of the whole.
    pub typ: Option<String>,
}

impl ProtectedHeader {
    /// Reads the Base64Url text of a protected header.
    pub fn parse(protected_b64: &str) -> Result<Self, JwsError> {
        if protected_b64.len() > HEADER_BYTES_MAX {
            return Err(JwsError::MalformedHeader);
        }
        let bytes = decode_unpadded(protected_b64).ok_or(JwsError::MalformedHeader)?;
        let json = ijson::read(&bytes).map_err(|_| JwsError::MalformedHeader)?;
        if !matches!(json.value(), JsonValue::Object(_)) {
            return Err(JwsError::MalformedHeader);
        }
        // `b64` (RFC 7797) changes what is signed.
        if json.get("crit").is_some() || json.get("b64").is_some() {
            return Err(JwsError::UnsupportedExtension);
        }
        let text = |name| text_member(&json, name).map_err(|NotText| JwsError::MalformedHeader);
        let alg = text("alg")?.ok_or(JwsError::MalformedHeader)?;
        Ok(Self {
            alg: Algorithm::parse(alg).ok_or(JwsError::UnsupportedAlgorithm)?,
            kid: text("kid")?.map(str::to_owned),
            jku: text("jku")?.map(str::to_owned),
            typ: text("typ")?.map(str::to_owned),
        })
    }
}

/// A public key that passed all checks.
#[derive(Clone)]
pub struct Jwk {
    kid: Option<String>,
    /// The only algorithm the key is for, if it names one.
    alg: Option<Algorithm>,
    key: KeyMaterial,
}

#[derive(Clone)]
enum KeyMaterial {
    Ed25519(Verifier),
    P256(ParsedPublicKey),
    P384(ParsedPublicKey),
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

impl Jwk {
    /// Reads one key; members that are not needed are ignored.
    pub fn parse(json: &Json<'_>) -> Result<Self, JwsError> {
        let text = |name| text_member(json, name).map_err(|NotText| JwsError::BadKey);
        let number = |name| text(name)?.and_then(decode_unpadded).ok_or(JwsError::BadKey);
        if text("use")?.is_some_and(|usage| usage != "sig") || !may_verify(json) {
            return Err(JwsError::BadKey);
        }
        let key = match (text("kty")?, text("crv")?) {
            (Some("OKP"), Some("Ed25519")) => KeyMaterial::ed25519(&number("x")?),
            (Some("EC"), Some("P-256")) => KeyMaterial::p256(&number("x")?, &number("y")?),
            (Some("EC"), Some("P-384")) => KeyMaterial::p384(&number("x")?, &number("y")?),
            (Some("RSA"), None) => KeyMaterial::rsa(number("n")?, number("e")?),
            _ => None,
        };
        let alg = match text("alg")? {
            Some(alg) => Some(Algorithm::parse(alg).ok_or(JwsError::BadKey)?),
            None => None,
        };
        let key = key.ok_or(JwsError::BadKey)?;
        if alg.is_some_and(|alg| !key.fits(alg)) {
            return Err(JwsError::BadKey);
        }
        Ok(Self { kid: text("kid")?.map(str::to_owned), alg, key })
    }

    /// The key of an Ed25519 identity.
    pub fn from_ed25519(key: PublicKey, kid: Option<&str>) -> Result<Self, JwsError> {
        let key = KeyMaterial::ed25519(key.as_bytes()).ok_or(JwsError::BadKey)?;
        Ok(Self { kid: kid.map(str::to_owned), alg: Some(Algorithm::EdDsa), key })
    }

    /// The id of the key.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// Whether signatures with `alg` can be verified with this key.
    pub fn fits(&self, alg: Algorithm) -> bool {
        self.alg.is_none_or(|only| only == alg) && self.key.fits(alg)
    }
}

impl fmt::Debug for Jwk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwk").field("kid", &self.kid).finish_non_exhaustive()
    }
}

impl KeyMaterial {
    fn ed25519(x: &[u8]) -> Option<Self> {
        let key = PublicKey::from_bytes(x.try_into().ok()?);
        Verifier::new(key).ok().map(Self::Ed25519)
    }

    fn p256(x: &[u8], y: &[u8]) -> Option<Self> {
        let point = uncompressed_point(x, y, 32)?;
        ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).ok().map(Self::P256)
    }

    fn p384(x: &[u8], y: &[u8]) -> Option<Self> {
        let point = uncompressed_point(x, y, 48)?;
        ParsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).ok().map(Self::P384)
    }

    /// Both numbers are odd and without leading zeros (RFC 7518, section 6.3.1), and the exponent is
    /// above one, with which every number would be its own signature.
    fn rsa(modulus: Vec<u8>, exponent: Vec<u8>) -> Option<Self> {
        let is_odd = |number: &[u8]| number.last().is_some_and(|byte| byte & 1 == 1);
        let bits = modulus.len() * 8 - modulus.first()?.leading_zeros() as usize;
        let whole = modulus[0] != 0 && RSA_BITS.contains(&bits) && is_odd(&modulus);
        let usual = (1..=EXPONENT_BYTES_MAX).contains(&exponent.len())
            && exponent[0] != 0
            && exponent != [1]
            && is_odd(&exponent);
        (whole && usual).then_some(Self::Rsa { modulus, exponent })
    }

    fn fits(&self, alg: Algorithm) -> bool {
        match self {
            Self::Ed25519(_) => alg == Algorithm::EdDsa,
            Self::P256(_) => alg == Algorithm::Es256,
            Self::P384(_) => alg == Algorithm::Es384,
            Self::Rsa { .. } => matches!(alg, Algorithm::Rs256 | Algorithm::Ps256),
        }
    }

    fn verify(&self, alg: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Ed25519(verifier) => signature
                .try_into()
                .is_ok_and(|signature| verifier.verify(message, signature).is_ok()),
            Self::P256(key) | Self::P384(key) => key.verify_sig(message, signature).is_ok(),
            Self::Rsa { modulus, exponent } => {
                let parameters: &RsaParameters = match alg {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, message, signature).is_ok()
            }
        }
    }
}

/// The usable keys of a document.
#[derive(Clone, Debug)]
pub struct JwkSet {
    keys: Vec<Jwk>,
}

impl JwkSet {
    /// Reads a document of the form `{"keys":[…]}`. Keys that cannot be used are left out (RFC 7517,
    /// section 5).
    pub fn parse(document: &[u8]) -> Result<Self, JwsError> {
        let json = ijson::read(document).map_err(|_| JwsError::MalformedKeySet)?;
        let keys = match json.get("keys").map(Json::value) {
            Some(JsonValue::Array(keys)) if keys.len() <= KEYS_MAX => keys,
            _ => return Err(JwsError::MalformedKeySet),
        };
        Ok(Self { keys: keys.iter().filter_map(|key| Jwk::parse(key).ok()).collect() })
    }

    /// All usable keys.
    pub fn keys(&self) -> &[Jwk] {
        &self.keys
    }

    /// The key a signature with this header claims to be made with. Without a `kid` that is the only
    /// fitting key of the document; with one, the first fitting key that has it.
    pub fn find(&self, header: &ProtectedHeader) -> Option<&Jwk> {
        let mut fitting = self.keys.iter().filter(|key| key.fits(header.alg));
        match &header.kid {
            Some(kid) => fitting.find(|key| key.kid() == Some(kid)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        }
    }
}

/// Verifies a detached signature over `payload`. The `kid` and `jku` of the header are not compared
/// with the key: the caller chose it.
pub fn verify(
    protected_b64: &str,
    payload: &[u8],
    signature_b64: &str,
    key: &Jwk,
) -> Result<(), JwsError> {
    let header = ProtectedHeader::parse(protected_b64)?;
    if !key.fits(header.alg) {
        return Err(JwsError::WrongKeyType);
    }
    if signature_b64.len() > (SIGNATURE_BYTES_MAX * 4).div_ceil(3) {
        return Err(JwsError::BadSignature);
    }
    let signature = decode_unpadded(signature_b64).ok_or(JwsError::BadSignature)?;
    let message = signing_input(protected_b64, payload);
    if key.key.verify(header.alg, message.as_bytes(), &signature) {
        Ok(())
    } else {
        Err(JwsError::BadSignature)
    }
}

/// The two texts of a detached signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetachedSignature {
    /// The protected header in Base64Url.
    pub protected: String,
    /// The signature in Base64Url.
    pub signature: String,
}

/// Signs `payload` with Ed25519. The header has `"alg":"EdDSA"`, then `members` in their order; a
/// further `alg` among them is left out.
pub fn sign_ed25519(
    key: &SecretKey,
    members: &[(&str, &str)],
    payload: &[u8],
) -> DetachedSignature {
    let header = ObjectWriter::new().text("alg", Algorithm::EdDsa.as_str());
    let members = members.iter().filter(|(name, _)| *name != "alg");
    let header = members.fold(header, |header, (name, value)| header.text(name, value));
    let protected = base64url::encode(header.finish().as_bytes());
    let message = signing_input(&protected, payload);
    let signature = key.sign(message.as_bytes());
    DetachedSignature { protected, signature: base64url::encode(&signature) }
}

/// The JSON of an Ed25519 key, for a document that others verify our signatures with.
pub fn write_ed25519_jwk(key: PublicKey, kid: &str) -> String {
    ObjectWriter::new()
        .text("kty", "OKP")
        .text("crv", "Ed25519")
        .text("kid", kid)
        .text("alg", Algorithm::EdDsa.as_str())
        .text("use", "sig")
        .text("x", &base64url::encode(key.as_bytes()))
        .finish()
}

/// What is signed (RFC 7515, section 5.1).
fn signing_input(protected_b64: &str, payload: &[u8]) -> String {
    format!("{protected_b64}.{}", base64url::encode(payload))
}

/// JWS allows no padding (RFC 7515, section 2).
fn decode_unpadded(text: &str) -> Option<Vec<u8>> {
    if text.ends_with('=') { None } else { base64url::decode(text).ok() }
}

/// The bytes 04, x and y. Coordinates have the full length of the curve (RFC 7518, section 6.2.1).
fn uncompressed_point(x: &[u8], y: &[u8], length: usize) -> Option<Vec<u8>> {
    (x.len() == length && y.len() == length).then(|| [&[4], x, y].concat())
}

struct NotText;

/// A member that is a text of bounded length, if it is there.
fn text_member<'j>(json: &'j Json<'_>, name: &str) -> Result<Option<&'j str>, NotText> {
    match json.get(name).map(Json::value) {
        None => Ok(None),
        Some(JsonValue::String(text)) if text.len() <= TEXT_BYTES_MAX => Ok(Some(text)),
        Some(_) => Err(NotText),
    }
}

/// Whether `key_ops`, if it is there, includes verifying.
fn may_verify(json: &Json<'_>) -> bool {
    let is_verify =
        |item: &Json<'_>| matches!(item.value(), JsonValue::String(op) if op == "verify");
    match json.get("key_ops").map(Json::value) {
        None => true,
        Some(JsonValue::Array(operations)) => operations.iter().any(is_verify),
        Some(_) => false,
    }
}
