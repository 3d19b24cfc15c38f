//! Who calls: the agent of the key, or nobody in particular.

use rialto_core::id::AgentId;
use rialto_engine::Engine;
use rialto_protocols::adapter::caller::{Caller, CallerKey, Credential, KeyRejection};

/// A caller whose key, if it sent one, is valid.
#[derive(Clone, Copy, Debug)]
pub enum McpCaller {
    Agent {
        id: AgentId,
        key: CallerKey,
    },
    /// The request has no key.
    Anonymous,
}

/// Why the caller is refused before its body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerError {
    /// The key is malformed, unknown or revoked.
    BadKey,
    /// The operator suspended the agent or its owner.
    Suspended,
    /// The key is the operator's.
    OperatorKey,
}

impl McpCaller {
    /// The caller of a request. Records activity of the agent.
    pub fn authenticate(engine: &Engine, credential: Credential) -> Result<Self, CallerError> {
        match (credential.caller, credential.key) {
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
            Self::Agent { id, .. } => Some(id),
            Self::Anonymous => None,
        }
    }
}
