//! The state of this protocol in memory: the hub's key, and a cache of checked keys.

use std::collections::HashMap;
use std::sync::RwLock;

use rialto_core::alias::Protocol;
use rialto_engine::secret::HubSecret;

use super::compose::EnvelopeSigner;
use super::envelope::Envelope;
use super::failure::Failure;
use super::proof::{self, Proof};
use super::settings::Settings;
use super::token::InboxTokens;
use crate::kit::ed25519::{PublicKey, SecretKey, Verifier};
use rialto_core::time::Timestamp;

/// The derivation label of every key that the hub holds, its own included.
const KEYS: &str = "rialto agora alias v1";
/// The name of the hub's own key in that derivation.
const OWN: &str = "hub";
/// The most cached verifiers.
const KEPT_MAX: usize = 16_384;

/// The state of the protocol, shared by all its operations.
pub struct AgoraState {
    pub settings: Settings,
    pub signer: EnvelopeSigner,
    pub tokens: InboxTokens,
    /// Creating a verifier costs a tenth of a signature check. Only senders with a valid signature
    /// are cached.
    verifiers: RwLock<HashMap<PublicKey, Verifier>>,
}

impl AgoraState {
    pub fn new(settings: Settings, secret: &HubSecret) -> Self {
        Self {
            settings,
            signer: EnvelopeSigner::new(SecretKey::from_seed(&secret.derive(KEYS, OWN))),
            tokens: InboxTokens::new(secret.derive("rialto agora inbox token v1", OWN)),
            verifiers: RwLock::default(),
        }
    }

    /// Verifies an envelope that arrives now.
    pub fn prove(&self, envelope: &Envelope<'_>, now: Timestamp) -> Result<Proof, Failure> {
        let window = self.settings.window;
        let kept = self.verifiers.read().ok().and_then(|kept| kept.get(&envelope.sender).copied());
        if let Some(verifier) = kept {
            return proof::prove_with_verifier(&verifier, envelope, now, window);
        }
        let verifier = proof::verifier(envelope)?;
        let proof = proof::prove_with_verifier(&verifier, envelope, now, window)?;
        if let Ok(mut kept) = self.verifiers.write() {
            // Clearing the cache when it is full is cheaper than tracking recency.
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            kept.insert(envelope.sender, verifier);
        }
        Ok(proof)
    }
}

/// The key that the hub holds for an agent of another protocol (R70).
pub fn bridged_agent_signer(secret: &HubSecret, home: Protocol, native: &str) -> EnvelopeSigner {
    EnvelopeSigner::new(SecretKey::from_seed(&secret.derive(KEYS, &format!("{home}:{native}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hub secret 00 01 … 1f of docs/requirements.md, section 9.
    fn worked() -> HubSecret {
        HubSecret::from_bytes(std::array::from_fn(|i| i as u8))
    }

    #[test]
    fn the_books_worked_keys() {
        let room = AgoraState::new(Settings::default(), &worked());
        let hub = "did:key:z6MkshWLjEnbWLWHeQeFqmuLGuu45GiRuTykNCTWboBhBhnR";
        assert_eq!(room.signer.did(), hub);
        let native = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";
        let alias = bridged_agent_signer(&worked(), Protocol::new("registry"), native);
        assert_eq!(alias.did(), "did:key:z6MkvCk6gX4MWxypJfYrBxVz3HRcJCStjkYa8eTGKsPN5m5u");
    }
}
