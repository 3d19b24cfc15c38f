//! An identity: a seed, the signing key made from it, and the envelopes it signs. The holder of the
//! key is the agent.

use std::fmt;

use rialto_core::time::Timestamp;
use rialto_protocols::agora::{EnvelopeSigner, MessageType, UnsignedEnvelope};
use rialto_protocols::kit::base64url;
use rialto_protocols::kit::ed25519::{KEY_LEN, PublicKey, SecretKey};

use crate::call::CallError;
use crate::{clock, ids};

/// Prefix of a seed's text form, so that it cannot be mistaken for a public key.
const PREFIX: &str = "ed25519-seed:";

/// The secret of an identity. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed([u8; KEY_LEN]);

impl Seed {
    /// A new random seed.
    pub fn random() -> Result<Self, CallError> {
        ids::random_bytes().map(Self)
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

/// An envelope that is ready to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedEnvelope {
    /// Its id, by which answers refer to it.
    pub id: String,
    /// The message type.
    pub kind: MessageType,
    /// The recipient.
    pub recipient: Option<PublicKey>,
    /// The only hub that may act on it, if set.
    pub hub: Option<PublicKey>,
    /// When it was signed.
    pub timestamp: Timestamp,
    /// SHA-256 of the signed text, as used in receipts.
    pub sha256: [u8; 32],
    payload: String,
    text: String,
}

impl SignedEnvelope {
    /// The whole envelope, as sent over the wire.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The payload: a JSON object, as text.
    pub fn payload(&self) -> &str {
        &self.payload
    }
}

/// A signing key with its public key.
#[derive(Clone, Debug)]
pub struct Identity {
    signer: EnvelopeSigner,
    secret: SecretKey,
}

impl Identity {
    /// The identity of this seed.
    pub fn new(seed: &Seed) -> Self {
        let secret = seed.key();
        Self { signer: EnvelopeSigner::new(secret.clone()), secret }
    }

    /// The public key.
    pub fn key(&self) -> PublicKey {
        self.signer.key()
    }

    /// The public key as `did:key:z6Mk…`.
    pub fn did(&self) -> &str {
        self.signer.did()
    }

    pub(super) fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// Signs a payload, a JSON object as text, with the current time and a new id.
    pub fn sign(
        &self,
        kind: MessageType,
        payload: &str,
        recipient: Option<PublicKey>,
    ) -> Result<SignedEnvelope, CallError> {
        self.sign_with_id(&new_id()?, clock::now(), kind, payload, recipient)
    }

    /// Like `sign`, but valid at one hub only, so that it cannot be used elsewhere. Addressed to an
    /// agent there, or to one the hub chooses.
    pub fn sign_for_hub(
        &self,
        hub: PublicKey,
        kind: MessageType,
        payload: &str,
        recipient: Option<PublicKey>,
    ) -> Result<SignedEnvelope, CallError> {
        let to = (Some(recipient.unwrap_or(hub)), Some(hub));
        self.sign_draft(&new_id()?, clock::now(), kind, payload, to)
    }

    /// Like `sign`, with an id and a time of your own. An id must not be used twice.
    pub fn sign_with_id(
        &self,
        id: &str,
        timestamp: Timestamp,
        kind: MessageType,
        payload: &str,
        recipient: Option<PublicKey>,
    ) -> Result<SignedEnvelope, CallError> {
        self.sign_draft(id, timestamp, kind, payload, (recipient, None))
    }

    fn sign_draft(
        &self,
        id: &str,
        timestamp: Timestamp,
        kind: MessageType,
        payload: &str,
        (recipient, hub): (Option<PublicKey>, Option<PublicKey>),
    ) -> Result<SignedEnvelope, CallError> {
        let draft = UnsignedEnvelope { id, timestamp, kind, payload, recipient, hub, bridge: None };
        let signed = self.signer.sign(&draft).map_err(|bad| {
            let hint = format!("the payload of {kind} must be a JSON object; see {}", bad.field);
            CallError::invalid(bad.message, Some(hint))
        })?;
        Ok(SignedEnvelope {
            id: id.to_owned(),
            kind,
            recipient,
            hub,
            timestamp,
            sha256: signed.sha256(),
            payload: payload.to_owned(),
            text: signed.text,
        })
    }

    /// Signs the same message with a new time. It keeps its id, so that a receiver that already
    /// accepted it refuses it instead of executing it twice.
    pub fn sign_again(&self, old: &SignedEnvelope) -> Result<SignedEnvelope, CallError> {
        let to = (old.recipient, old.hub);
        self.sign_draft(&old.id, clock::now(), old.kind, &old.payload, to)
    }
}

/// A random UUID (version 4).
pub(super) fn new_id() -> Result<String, CallError> {
    ids::random_id().map(|id| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rialto_core::time::Millis;
    use rialto_protocols::agora::wire::envelope::read_json;
    use rialto_protocols::agora::{Envelope, prove};

    fn is_v4(id: &str) -> bool {
        uuid::Uuid::parse_str(id).is_ok_and(|uuid| uuid.get_version_num() == 4)
    }

    #[test]
    fn a_signed_envelope_can_be_proven_and_has_an_id_of_its_own() {
        let me = Identity::new(&Seed::from_bytes([1; 32]));
        let you = Identity::new(&Seed::from_bytes([2; 32]));
        let one = me.sign(MessageType::Hello, r#"{"name":"é"}"#, Some(you.key())).expect("signed");
        let two = me.sign(MessageType::Hello, "{}", None).expect("signed");
        assert!(is_v4(&one.id) && one.id != two.id);
        let json = read_json(one.as_str().as_bytes()).expect("JSON");
        let envelope = Envelope::read(&json).expect("an envelope");
        let proof = prove(&envelope, clock::now(), Millis::seconds(60)).expect("a proof");
        assert_eq!((proof.key, proof.canonical_sha256), (me.key(), one.sha256));
        assert_eq!(envelope.recipient, Some(you.key()));
        let again = me.sign_again(&one).expect("signed");
        assert_eq!((again.id, again.payload), (one.id, one.payload));
        let error = me.sign(MessageType::Hello, "[]", None).expect_err("no object");
        assert!(matches!(error, CallError::Refused { status: 400, .. }));
    }

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
