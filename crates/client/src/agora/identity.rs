//! An identity: a signing key. The holder of the key is the agent.

use rialto_core::time::Timestamp;
use rialto_protocols::agora::{EnvelopeSigner, MessageType, UnsignedEnvelope};
use rialto_protocols::kit::ed25519::{PublicKey, SecretKey};

use super::seed::Seed;
use super::signed_envelope::SignedEnvelope;
use crate::call::CallError;
use crate::clock;

/// A signing key with its public key.
#[derive(Clone, Debug)]
pub struct Identity {
    composer: EnvelopeSigner,
    secret: SecretKey,
}

impl Identity {
    /// The identity of this seed.
    pub fn new(seed: &Seed) -> Self {
        let secret = seed.key();
        Self { composer: EnvelopeSigner::new(secret.clone()), secret }
    }

    /// The public key.
    pub fn key(&self) -> PublicKey {
        self.composer.key()
    }

    /// The public key as `did:key:z6Mk…`.
    pub fn did(&self) -> &str {
        self.composer.did()
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
        let signed = self.composer.sign(&draft).map_err(|bad| {
            let hint = format!("the payload of {kind} must be a JSON object; see {}", bad.field);
            CallError::invalid(bad.message, Some(hint))
        })?;
        Ok(SignedEnvelope {
            id: id.to_owned(),
            kind,
            recipient,
            hub,
            timestamp,
            sha256: signed.sha256,
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
    let mut bytes = [0; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()),
        Err(error) => Err(CallError::Unreadable(format!(
            "the system's random number generator failed: {error}"
        ))),
    }
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
    fn what_is_sealed_can_be_proven_and_has_a_name_of_its_own() {
        let me = Identity::new(&Seed::from_bytes([1; 32]));
        let you = Identity::new(&Seed::from_bytes([2; 32]));
        let one = me.sign(MessageType::Hello, r#"{"name":"é"}"#, Some(you.key())).expect("sealed");
        let two = me.sign(MessageType::Hello, "{}", None).expect("sealed");
        assert!(is_v4(&one.id) && one.id != two.id);
        let json = read_json(one.as_str().as_bytes()).expect("JSON");
        let envelope = Envelope::read(&json).expect("an envelope");
        let proof = prove(&envelope, clock::now(), Millis::seconds(60)).expect("a proof");
        assert_eq!((proof.key, proof.canonical_sha256), (me.key(), one.sha256));
        assert_eq!(envelope.recipient, Some(you.key()));
        let again = me.sign_again(&one).expect("sealed");
        assert_eq!((again.id, again.payload), (one.id, one.payload));
        let error = me.sign(MessageType::Hello, "[]", None).expect_err("no object");
        assert!(matches!(error, CallError::Refused { status: 400, .. }));
    }
}
