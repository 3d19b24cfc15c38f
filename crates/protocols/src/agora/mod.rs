//! agora: the adapter of Agora Protocol 1.0. Agents are identified by their keys and request,
//! offer, accept and deliver work in signed envelopes.

pub mod wire;

#[cfg(feature = "server")]
mod auth;
#[cfg(feature = "server")]
mod delivery;
#[cfg(feature = "server")]
mod directory;
#[cfg(feature = "server")]
mod envelope;
#[cfg(feature = "server")]
mod errors;
#[cfg(feature = "server")]
mod fields;
#[cfg(feature = "server")]
mod hub_envelope;
#[cfg(feature = "server")]
mod operations;
#[cfg(feature = "server")]
mod settings;
#[cfg(feature = "server")]
mod stored_envelope;
#[cfg(feature = "server")]
mod translate;

#[cfg(test)]
mod tests;

#[cfg(feature = "server")]
pub use adapter::{Agora, AgoraContext, AgoraState};
#[cfg(feature = "server")]
use settings::Settings;
pub use wire::envelope::{Bridge, Envelope, MessageType};
pub use wire::error::{Code, Failure};
pub use wire::receipt::Receipt;
pub use wire::signature::{
    EnvelopeSigner, Proof, SignatureForm, SignedMessage, UnsignedEnvelope, prove,
};

use rialto_core::alias::Protocol;
use rialto_core::time::Millis;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("agora");
/// The value of `protocol` in every envelope.
pub const VERSION: &str = "agora/1.0";
/// The largest envelope, in bytes (section 2.2).
pub const BODY_MAX: usize = 1_048_576;
/// The most characters of an envelope's id.
pub const ID_MAX: usize = 128;
/// The default of the largest difference between a timestamp and the clock, either way (R5).
pub const WINDOW: Millis = Millis::seconds(60);
/// The most decimals of an amount, by value (R52).
pub const DECIMALS: usize = 6;
/// The only currency (R65).
pub const CURRENCY: &str = "credits";

#[cfg(feature = "server")]
mod adapter {
    //! The adapter and its state in memory, which only the hub needs.

    use std::collections::HashMap;
    use std::sync::{Arc, RwLock};

    use axum::http::HeaderMap;
    use axum::response::Response;
    use rialto_config::Layers;
    use rialto_core::alias::Protocol;
    use rialto_core::id::AgentId;
    use rialto_core::time::Timestamp;
    use rialto_engine::delivery::DeliveryEncoder;
    use rialto_engine::secret::HubSecret;

    use super::auth::InboxTokens;
    use super::delivery::AgoraEncoder;
    use super::fields::AgoraFieldMap;
    use super::operations::operations;
    use super::wire::envelope::Envelope;
    use super::wire::error::Failure;
    use super::wire::signature::{self, EnvelopeSigner, Proof};
    use super::{BODY_MAX, ID, Settings, auth, errors};
    use crate::adapter::fidelity::{FieldMap, JobMessages};
    use crate::adapter::operation::{ErrorInfo, bind_operations, describe_operations};
    use crate::adapter::settings::ProtocolSettings;
    use crate::adapter::{
        Api, EdgeError, HubContext, NewAgent, OpenProtocol, Operation, OperationInfo,
        ProtocolAdapter, ProtocolContext,
    };
    use crate::kit::ed25519::{PublicKey, SecretKey, Verifier};

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
        /// Creating a verifier costs a tenth of a signature check. Only senders with a valid
        /// signature are cached.
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
            let kept =
                self.verifiers.read().ok().and_then(|kept| kept.get(&envelope.sender).copied());
            if let Some(verifier) = kept {
                return signature::prove_with_verifier(&verifier, envelope, now, window);
            }
            let verifier = signature::verifier(envelope)?;
            let proof = signature::prove_with_verifier(&verifier, envelope, now, window)?;
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
    pub fn bridged_agent_signer(
        secret: &HubSecret,
        home: Protocol,
        native: &str,
    ) -> EnvelopeSigner {
        EnvelopeSigner::new(SecretKey::from_seed(&secret.derive(KEYS, &format!("{home}:{native}"))))
    }

    /// The adapter of this protocol.
    pub struct Agora;

    impl ProtocolAdapter for Agora {
        fn id(&self) -> Protocol {
            ID
        }

        fn read_settings(&self, layers: &mut Layers<'_>) -> Arc<dyn ProtocolSettings> {
            Arc::new(Settings::read(layers))
        }

        fn operations(&self) -> Vec<OperationInfo> {
            describe_operations(ID, operations())
        }

        fn errors(&self) -> ErrorInfo {
            errors::error_info()
        }

        fn field_map(&self) -> &'static dyn FieldMap {
            &AgoraFieldMap
        }

        fn alias(&self, secret: &HubSecret, new: &NewAgent<'_>, taken: bool) -> Option<String> {
            // Two agents with the same name in their protocol stay two agents here.
            let spare = format!("{} again", new.native);
            let native = if taken { &spare } else { new.native };
            Some(bridged_agent_signer(secret, new.home, native).did().to_owned())
        }
    }

    /// What the operations of this protocol get.
    pub type AgoraContext = ProtocolContext<AgoraState>;

    impl OpenProtocol for AgoraState {
        fn adapter(&self) -> &'static dyn ProtocolAdapter {
            &Agora
        }

        fn api(self: Arc<Self>, context: &HubContext) -> Arc<dyn Api> {
            Arc::new(ProtocolContext::new(context, self))
        }

        fn delivery_encoder(self: Arc<Self>, context: &HubContext) -> Arc<dyn DeliveryEncoder> {
            Arc::new(AgoraEncoder { context: ProtocolContext::new(context, self) })
        }

        fn job_messages(self: Arc<Self>, context: &HubContext) -> Box<dyn JobMessages> {
            Box::new(ProtocolContext::new(context, self))
        }

        fn authenticate_reader(
            self: Arc<Self>,
            context: &HubContext,
            headers: &HeaderMap,
        ) -> Option<AgentId> {
            let context = ProtocolContext::new(context, self);
            let agent = auth::read_token(&context, headers)?.agent;
            context.engine.with_world(|world| world.may_act(agent)).then_some(agent)
        }
    }

    impl Api for AgoraContext {
        fn prefix(&self) -> &str {
            ID.as_str()
        }

        fn operations(&self) -> Vec<Operation<()>> {
            bind_operations(ID, operations(), self)
        }

        fn error_response(&self, error: EdgeError) -> Response {
            errors::error_response(self, &errors::from_edge(error), None)
        }

        fn body_max(&self) -> usize {
            BODY_MAX
        }
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
            let settings = Settings::read(&mut Layers::new(rialto_config::Profile::Serve));
            let state = AgoraState::new(settings, &worked());
            let hub = "did:key:z6MkshWLjEnbWLWHeQeFqmuLGuu45GiRuTykNCTWboBhBhnR";
            assert_eq!(state.signer.did(), hub);
            let native = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";
            let alias = bridged_agent_signer(&worked(), Protocol::new("registry"), native);
            assert_eq!(alias.did(), "did:key:z6MkvCk6gX4MWxypJfYrBxVz3HRcJCStjkYa8eTGKsPN5m5u");
        }
    }
}
