//! Authentication: any agent's key is that agent. A hub without keys serves callers without one as
//! one shared guest, which can only have free work.

use axum::http::{HeaderValue, header};
use axum::response::Response;
use rialto_core::agent::{Liveness, Terms};
use rialto_core::answer::Answer;
use rialto_core::command::{Actor, Command, Registration};
use rialto_core::id::AgentId;
use rialto_engine::keys::{Key, KeyPrefix};

use super::errors::{self, http_response};
use super::operations::is_rpc;
use super::wire::Version;
use super::wire::error::{A2aError, Reason};
use super::{A2aContext, ID};
use crate::adapter::caller::{AcceptsKeys, Caller, KeyRejection, KnownCaller};
use crate::adapter::{NewAgent, OperationInfo, make_aliases};

/// The name of the agent that all callers without a key are.
pub const GUEST: &str = "guest";

impl AcceptsKeys for A2aContext {
    fn key_error(&self, rejection: KeyRejection, operation: &OperationInfo) -> Response {
        let unauthenticated = |text: &str| {
            let next = format!("POST {}/{ID}/agents {{\"name\":\"…\"}} gives one", self.hub_url);
            A2aError::new(Reason::Unauthenticated, format!("{text}; {next}"))
        };
        let error = match rejection {
            KeyRejection::Missing => {
                unauthenticated("authentication required: send Authorization: Bearer with a key")
            }
            KeyRejection::Unknown => {
                unauthenticated("this key is not known here: send a key of this hub")
            }
            KeyRejection::Suspended => {
                A2aError::new(Reason::Forbidden, "this agent or its owner is suspended")
            }
        };
        key_error_response(&error, operation)
    }

    fn is_open(&self) -> bool {
        self.state.settings.is_open()
    }
}

fn key_error_response(error: &A2aError, operation: &OperationInfo) -> Response {
    let mut response = match is_rpc(operation) {
        true => errors::rpc_error_response(error, "null", Version::V1),
        false => http_response(error),
    };
    if error.reason == Reason::Unauthenticated {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

/// The answer to a caller that would need the key of another agent, or of one that does not exist.
pub fn other_key_response(
    context: &A2aContext,
    known: KnownCaller,
    operation: &OperationInfo,
) -> Response {
    if known.0.caller == Caller::Anonymous {
        return context.key_error(KeyRejection::Missing, operation);
    }
    let error = A2aError::new(Reason::Unauthenticated, "this is not the key of this agent");
    key_error_response(&error, operation)
}

/// The caller of an operation on tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    pub agent: AgentId,
    /// Has no key, and so no credits to pay with.
    pub is_guest: bool,
}

/// The agent behind a caller.
pub async fn client(context: &A2aContext, known: KnownCaller) -> Result<Client, A2aError> {
    match known.0.caller {
        Caller::Agent(agent) => Ok(Client { agent, is_guest: false }),
        Caller::Operator => {
            let text = "an operator key cannot act for an agent; use the key of an agent";
            Err(A2aError::new(Reason::Forbidden, text))
        }
        Caller::Anonymous | Caller::FormerAgent(_) => {
            Ok(Client { agent: guest(context).await?, is_guest: true })
        }
    }
}

/// The agent of callers without a key; registered when the first of them calls.
async fn guest(context: &A2aContext) -> Result<AgentId, A2aError> {
    let engine = &context.engine;
    if let Some(guest) = engine.with_world(|world| world.agent_by_alias(ID, GUEST)) {
        return Ok(guest);
    }
    // Its key is never given to anyone. It shows that the guest can answer questions.
    let key = Key::from_random(KeyPrefix::AGENT, engine.random().new_key_bytes());
    let new = NewAgent { home: ID, native: GUEST, name: GUEST };
    let order = registration(GUEST, make_aliases(engine, new), Actor::Anonymous, &key, false);
    match engine.run(Command::Register(Box::new(order))).await {
        Ok(Answer::Agent { agent, .. }) => Ok(agent.id),
        Ok(_) => Err(A2aError::new(Reason::InternalError, "internal error")),
        // Another request was faster.
        Err(failure) => {
            let guest = engine.with_world(|world| world.agent_by_alias(ID, GUEST));
            guest.ok_or_else(|| errors::from_engine(&failure))
        }
    }
}

/// The registration of an agent that only calls others.
pub fn registration(
    name: &str,
    aliases: Vec<(rialto_core::alias::Protocol, String)>,
    actor: Actor,
    key: &Key,
    rotate_key: bool,
) -> Registration {
    Registration {
        actor,
        home: ID,
        native_id: name.to_owned(),
        aliases,
        owner: format!("{ID}:{name}"),
        name: name.to_owned(),
        endpoint: None,
        liveness: Liveness::ByPolling,
        skills: Vec::new(),
        terms: Terms::default(),
        status: None,
        card: "{}".to_owned(),
        key: Some(key.hash()),
        rotate_key,
    }
}
