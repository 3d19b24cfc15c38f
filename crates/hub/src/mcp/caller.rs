//! Who calls: the agent of the key, the guest, or nobody in particular.

use rialto_core::id::AgentId;
use rialto_engine::Engine;
use rialto_engine::keys::KeyPrefix;
use rialto_protocols::adapter::caller::{Caller, CallerKey, Credential, KeyRejection};
use rialto_protocols::adapter::context::StreamOwner;
use rialto_protocols::adapter::{HubContext, Signer, guest};

use crate::v1::auth::AgentCaller;
use crate::v1::problem::Problem;

/// The agent of callers without a key, where the operator allows them to act.
const GUEST: &str = "mcp-guest";

/// A caller whose key, if it sent one, is valid.
#[derive(Clone, Copy, Debug)]
pub enum McpCaller {
    Agent {
        id: AgentId,
        key: CallerKey,
    },
    /// The request has no key, and the guest acts for it.
    Guest {
        id: AgentId,
    },
    /// The request has no key.
    Anonymous,
}

/// Why the caller is refused before its body is read.
#[derive(Clone, Debug)]
pub enum CallerError {
    /// The key is malformed, unknown or revoked.
    BadKey,
    /// The operator suspended the agent or its owner.
    Suspended,
    /// The key is the operator's.
    OperatorKey,
    /// There is no guest, and it cannot be registered now.
    NoGuest(Box<Problem>),
}

impl McpCaller {
    /// The caller of a request. Records activity of the agent.
    pub async fn authenticate(
        context: &HubContext,
        credential: Credential,
    ) -> Result<Self, CallerError> {
        let engine = &context.engine;
        match (credential.caller, credential.key) {
            (Ok(Caller::Anonymous), _) if context.settings.mcp.guest => {
                let id = guest::find_or_register(engine, GUEST).await;
                let id = id.map_err(|failure| CallerError::NoGuest(Box::new(failure.into())))?;
                if !engine.with_world(|world| world.may_act(id)) {
                    return Err(CallerError::Suspended);
                }
                engine.record_seen(id);
                Ok(Self::Guest { id })
            }
            (Ok(Caller::Anonymous), _) => Ok(Self::Anonymous),
            (Ok(Caller::Agent(id)), Some(key)) => {
                engine.record_seen(id);
                Ok(Self::Agent { id, key })
            }
            (Ok(Caller::Operator), _) => Err(CallerError::OperatorKey),
            (Err(KeyRejection::Suspended), _) => Err(CallerError::Suspended),
            _ => Err(CallerError::BadKey),
        }
    }

    pub fn agent(self) -> Option<AgentId> {
        match self {
            Self::Agent { id, .. } | Self::Guest { id } => Some(id),
            Self::Anonymous => None,
        }
    }

    /// The same as `/v1` knows its callers.
    pub fn agent_caller(self) -> Option<AgentCaller> {
        let prefix = match self {
            Self::Agent { key, .. } => key.prefix,
            Self::Guest { .. } | Self::Anonymous => KeyPrefix::AGENT,
        };
        self.agent().map(|id| AgentCaller { id, prefix, once: None })
    }

    /// Counts a call that may write (C11). A caller without an agent cannot write.
    pub fn count_write(self, context: &HubContext) -> Result<(), Problem> {
        let Some(agent) = self.agent() else { return Ok(()) };
        context.write_limiter.count_write(Signer::Agent(agent)).map_err(Problem::from)
    }

    /// Whether the caller may still act: its key is valid and its agent registered.
    pub fn is_still_valid(self, engine: &Engine) -> bool {
        let now = engine.now();
        engine.with_world(|world| match self {
            Self::Agent { id, key } => {
                let stored = world.key(&key.hash);
                stored.is_some_and(|stored| stored.is_valid(now)) && world.may_act(id)
            }
            Self::Guest { id } => world.may_act(id),
            Self::Anonymous => true,
        })
    }

    /// Whose streams its streams are counted with.
    pub fn stream_owner(self) -> Option<StreamOwner> {
        match self {
            Self::Agent { key, .. } => Some(StreamOwner::Key(key.hash)),
            Self::Guest { id } => Some(StreamOwner::Guest(id)),
            Self::Anonymous => None,
        }
    }
}
