//! `Register-Agent-Profile`: an agent, what it can do and for how much.

use rialto_core::money::Credits;
use rialto_core::text::check_name;

use super::{AGENT_ID, FEE, TOPIC, json, required};
use crate::clara::fault::Fault;
use crate::clara::message::Message;
use crate::clara::process::Dialect;
use crate::clara::topics::Topics;
use crate::clara::{AGENT_ID_MAX, METADATA_MAX, PROTOCOLS, price};

/// An agent's profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterAgent<'a> {
    /// Its name, which nobody else has.
    pub id: &'a str,
    /// What it can do.
    pub topic: &'a str,
    /// The least it works for.
    pub fee: Credits,
    /// JSON text with more about it.
    pub metadata: &'a str,
}

impl<'a> RegisterAgent<'a> {
    /// Reads a message.
    pub fn read(message: &Message<'a>, topics: &Topics, dialect: Dialect) -> Result<Self, Fault> {
        let id = required(message, AGENT_ID)?;
        let topic = message.tag(TOPIC);
        let topic = topic
            .filter(|topic| topics.for_agent(topic, dialect))
            .ok_or_else(|| Fault::UnknownTopic(topic.map(str::to_owned)))?;
        let fee = message.tag(FEE).and_then(price::read).ok_or(Fault::BadFee)?;
        check_id(id)?;
        let metadata = json(message)?;
        if metadata.len() > METADATA_MAX {
            return Err(Fault::MetadataTooLarge);
        }
        Ok(Self { id, topic, fee, metadata })
    }
}

/// Whether an agent may be called so (R5).
fn check_id(id: &str) -> Result<(), Fault> {
    check_name(id, AGENT_ID_MAX).map_err(Fault::BadAgentId)?;
    let reserved = |protocol: &&str| {
        id.split_once('/').is_some_and(|(first, _)| first.eq_ignore_ascii_case(protocol))
    };
    match PROTOCOLS.into_iter().find(reserved) {
        Some(protocol) => Err(Fault::ReservedAgentId(protocol)),
        None => Ok(()),
    }
}
