//! Resolves the destination of an envelope: the URL's agent, else its `recipient`, else by its type
//! (R26–R29).

use rialto_core::id::AgentId;

use super::ID;
use super::codes::Code;
use super::envelope::Envelope;
use super::failure::Failure;
use crate::adapter::HubContext;
use crate::kit::ed25519::PublicKey;

/// A destination that is named by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// This hub, by the signed `recipient`.
    Hub,
    /// This hub, by the URL alone.
    HubByPath,
    Agent(AgentId),
}

/// The key that an envelope is addressed to. URL and `recipient` must not differ.
pub fn destination_key(
    envelope: &Envelope<'_>,
    url: Option<PublicKey>,
) -> Result<Option<PublicKey>, Failure> {
    match (url, envelope.recipient) {
        (Some(url), Some(recipient)) if url != recipient => {
            Err(Failure::bad_field("/recipient", "is not the agent that the URL names"))
        }
        (url, recipient) => Ok(url.or(recipient)),
    }
}

/// The destination with that key, which the envelope or its URL names.
pub fn resolve_destination(
    context: &HubContext,
    envelope: &Envelope<'_>,
    key: PublicKey,
) -> Result<Destination, Failure> {
    if key == context.agora.signer.key() {
        let signed = envelope.recipient.is_some();
        return Ok(if signed { Destination::Hub } else { Destination::HubByPath });
    }
    let known = context.engine.with_world(|world| {
        let id = world.agent_by_alias(ID, &key.did())?;
        world.agent(id).filter(|agent| agent.active).map(|agent| agent.id)
    });
    let unknown = || Failure::new(Code::NotFound, "no agent has the recipient's key");
    known.map(Destination::Agent).ok_or_else(unknown)
}
