//! `Register-Agent-Profile`: an agent, what it can do and for how much.

use rialto_core::money::Credits;

use super::{AGENT_ID, FEE, TOPIC, json, required};
use crate::clara::fault::Fault;
use crate::clara::message::Message;
use crate::clara::process::Dialect;
use crate::clara::topics::Topics;
use crate::clara::{AGENT_ID_MAX, METADATA_MAX, PROTOCOLS, price};
use crate::kit::ijson;
use crate::kit::name::check_name;

/// Characters of a name.
const NAME_MAX: usize = 128;

/// An agent's profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterAgent<'a> {
    /// Its name, which nobody else has.
    pub id: &'a str,
    /// What it can do, and the least it works for; `None` if it only posts tasks.
    pub service: Option<Service<'a>>,
    /// JSON text with more about it.
    pub metadata: &'a str,
}

/// What an agent does for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service<'a> {
    /// What it is about.
    pub topic: &'a str,
    /// The least it is done for.
    pub fee: Credits,
}

impl<'a> RegisterAgent<'a> {
    /// Reads a message.
    pub fn read(message: &Message<'a>, topics: &Topics, dialect: Dialect) -> Result<Self, Fault> {
        let id = required(message, AGENT_ID)?;
        let topic = message.tag(TOPIC).filter(|topic| !topic.is_empty());
        if let Some(topic) = topic.filter(|topic| !topics.for_agent(topic, dialect)) {
            return Err(Fault::UnknownTopic(Some(topic.to_owned())));
        }
        // Who does nothing for others may leave out its fee, but not write nonsense there.
        let fee = match message.tag(FEE) {
            None if topic.is_none() => None,
            fee => Some(fee.and_then(price::read).ok_or(Fault::BadFee)?),
        };
        check_id(id)?;
        let metadata = json(message)?;
        if metadata.len() > METADATA_MAX {
            return Err(Fault::MetadataTooLarge);
        }
        let service = topic.zip(fee).map(|(topic, fee)| Service { topic, fee });
        Ok(Self { id, service, metadata })
    }

    /// What the agent is called: its metadata's `name` if that is one, else its id.
    pub fn name(&self) -> String {
        let metadata = ijson::read(self.metadata.as_bytes()).ok();
        let name = metadata.as_ref().and_then(|metadata| match metadata.get("name")?.kind() {
            ijson::Kind::Text(name) => Some(name.trim()),
            _ => None,
        });
        let name = name.filter(|name| check_name(name, NAME_MAX).is_ok());
        name.unwrap_or(self.id).to_owned()
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
