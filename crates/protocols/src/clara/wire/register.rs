//! `Register-Agent-Profile`: an agent, its topic and its fee.

use rialto_core::money::Credits;

use super::{AGENT_ID, FEE, TOPIC, json, required};
use crate::clara::fault::OrderError;
use crate::clara::message::IncomingMessage;
use crate::clara::process::Dialect;
use crate::clara::topics::Topics;
use crate::clara::{AGENT_ID_MAX, METADATA_MAX, PROTOCOLS, price};
use crate::kit::ijson;
use crate::kit::name::check_name;

/// The most characters of a name.
const NAME_MAX: usize = 128;

/// An agent's profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterAgent<'a> {
    /// Its unique id.
    pub id: &'a str,
    /// Its topic and lowest fee; `None` if it only posts tasks.
    pub service: Option<Service<'a>>,
    /// JSON text with its metadata.
    pub metadata: &'a str,
}

/// The service that an agent offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// The lowest fee.
    pub fee: Credits,
}

impl<'a> RegisterAgent<'a> {
    /// Reads the order from a message.
    pub fn read(
        message: &IncomingMessage<'a>,
        topics: &Topics,
        dialect: Dialect,
    ) -> Result<Self, OrderError> {
        let id = required(message, AGENT_ID)?;
        let topic = message.tag(TOPIC).filter(|topic| !topic.is_empty());
        if let Some(topic) = topic.filter(|topic| !topics.allows_agent(topic, dialect)) {
            return Err(OrderError::UnknownTopic(Some(topic.to_owned())));
        }
        // An agent without a service may leave out its fee, but an invalid fee is still an error.
        let fee = match message.tag(FEE) {
            None if topic.is_none() => None,
            fee => Some(fee.and_then(price::read_price).ok_or(OrderError::BadFee)?),
        };
        check_id(id)?;
        let metadata = json(message)?;
        if metadata.len() > METADATA_MAX {
            return Err(OrderError::MetadataTooLarge);
        }
        let service = topic.zip(fee).map(|(topic, fee)| Service { topic, fee });
        Ok(Self { id, service, metadata })
    }

    /// The agent's display name: a valid `name` in its metadata, otherwise its id.
    pub fn name(&self) -> String {
        let metadata = ijson::read(self.metadata.as_bytes()).ok();
        let name = metadata.as_ref().and_then(|metadata| match metadata.get("name")?.value() {
            ijson::JsonValue::String(name) => Some(name.trim()),
            _ => None,
        });
        let name = name.filter(|name| check_name(name, NAME_MAX).is_ok());
        name.unwrap_or(self.id).to_owned()
    }
}

/// Checks whether an agent may have this id (R5).
fn check_id(id: &str) -> Result<(), OrderError> {
    check_name(id, AGENT_ID_MAX).map_err(OrderError::BadAgentId)?;
    let reserved = |protocol: &&str| {
        id.split_once('/').is_some_and(|(first, _)| first.eq_ignore_ascii_case(protocol))
    };
    match PROTOCOLS.into_iter().find(reserved) {
        Some(protocol) => Err(OrderError::ReservedAgentId(protocol)),
        None => Ok(()),
    }
}
