//! Agents of this protocol: register, list, unregister.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::refusal::Refusal;
use rialto_engine::Failure;
use rialto_engine::keys::{Key, KeyPrefix};

use super::PathNames;
use crate::a2a::auth::{self, GUEST};
use crate::a2a::directory::{self, AgentFilter, Words};
use crate::a2a::errors::{self, http_response, json_response};
use crate::a2a::wire::error::{A2aError, Reason};
use crate::a2a::wire::message::write_array;
use crate::a2a::wire::reader::Reader;
use crate::a2a::{A2aContext, ID};
use crate::adapter::caller::{AcceptsKeys, Caller, KeyRejection, OptionalCaller};
use crate::adapter::caller::{KnownCaller, PresentedKey};
use crate::adapter::request::{BodyBytes, MatchedOperation};
use crate::adapter::{NewAgent, RowsRead, make_aliases};
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;
use crate::kit::query::Query;

/// The longest name.
const NAME_MAX: usize = 64;
/// Names that paths of this protocol use, and the name of callers without a key.
const RESERVED: [&str; 6] = ["agents", "tasks", "callbacks", "v1", "hub", GUEST];
/// Agents on a page of the list.
const LIMIT: i64 = 50;
const LIMIT_MAX: i64 = 200;

/// What is registered.
struct Registration {
    name: String,
    rotate_key: bool,
}

/// What is wrong with a name; `None` if nothing is.
fn name_error(name: &str) -> Option<String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_allowed) {
        return Some(format!("must have 1 to {NAME_MAX} characters of a-z, 0-9 and -"));
    }
    if name.starts_with('-') || name.ends_with('-') {
        return Some("must not begin or end with -".to_owned());
    }
    // The hub gives such names to agents of other protocols.
    let is_given = name.rsplit_once('-').is_some_and(|(_, end)| {
        matches!(end.len(), 8 | 16) && end.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    });
    if is_given {
        return Some("must not end with - and 8 or 16 hexadecimal digits".to_owned());
    }
    RESERVED.contains(&name).then(|| "is reserved; choose another name".to_owned())
}

impl Registration {
    fn read(body: &[u8]) -> Result<Self, A2aError> {
        let json = ijson::read(body)
            .map_err(|bad| A2aError::new(Reason::ParseError, format!("not valid JSON: {bad}")))?;
        let mut wrong = Vec::new();
        let Some(r) = Reader::new(&json, "", &mut wrong) else {
            return Err(A2aError::invalid(wrong));
        };
        if r.get("card_url").is_some() {
            let text = "agents with a server of their own cannot be registered yet; leave it out \
                        to register a client";
            r.reject("card_url", text, &mut wrong);
        }
        let name = r.required_text("name", &mut wrong);
        if let Some(text) = name_error(&name).filter(|_| !name.is_empty()) {
            r.reject("name", text, &mut wrong);
        }
        let rotate_key = r.flag("rotate_key", &mut wrong).unwrap_or(false);
        if wrong.is_empty() { Ok(Self { name, rotate_key }) } else { Err(A2aError::invalid(wrong)) }
    }
}

/// `POST /a2a/agents`: a client gets a key and an account.
pub async fn register(
    State(context): State<A2aContext>,
    anyone: OptionalCaller,
    PresentedKey(presented): PresentedKey,
    BodyBytes(body): BodyBytes,
) -> Response {
    match try_register(&context, anyone, presented, &body).await {
        Ok(response) => response,
        Err(error) => http_response(&error),
    }
}

async fn try_register(
    context: &A2aContext,
    anyone: OptionalCaller,
    presented: Option<Key>,
    body: &[u8],
) -> Result<Response, A2aError> {
    let Registration { name, rotate_key } = Registration::read(body)?;
    let engine = &context.engine;
    let key = Key::from_random(KeyPrefix::AGENT, engine.random().new_key_bytes());
    let new = NewAgent { home: ID, native: &name, name: &name };
    let aliases = make_aliases(engine, new);
    // Without its key nobody changes an agent, on an open hub neither.
    let actor = match anyone.caller {
        Caller::Anonymous => rialto_core::command::Actor::Anonymous,
        _ => anyone.actor(),
    };
    let order = auth::registration(&name, aliases, actor, &key, rotate_key);
    let ran = engine.run_once(order, anyone.idempotency).await.map_err(|failure| {
        let taken = "this name is taken; send its key to change its agent, or choose another name";
        match failure {
            Failure::Refused(Refusal::IdTaken | Refusal::OwnerTaken) => {
                A2aError::new(Reason::Conflict, taken)
            }
            other => errors::from_engine(&other),
        }
    })?;
    let Answer::Agent { agent, new, .. } = ran.answer else {
        return Err(A2aError::new(Reason::InternalError, "internal error; see the hub's log"));
    };
    // A repeat after a crash finds the agent registered, but its key was not stored and is lost.
    let is_fresh = (new || rotate_key) && !ran.replayed;
    let presented = presented.filter(|key| key.prefix() == KeyPrefix::AGENT);
    let api_key = if is_fresh { Some(key) } else { presented };
    let body = ObjectWriter::new()
        .text("status", "registered")
        .text("name", &name)
        .text("url", &directory::agent_url(context, &agent.native_id))
        .text("owner", &format!("{ID}:{name}"))
        .maybe_text("api_key", api_key.as_ref().map(Key::expose))
        .raw("skills", "[]")
        .finish();
    Ok(json_response(if new { 201 } else { 200 }, body))
}

/// `DELETE /a2a/agents/{name}`.
pub async fn remove(
    State(context): State<A2aContext>,
    known: KnownCaller,
    names: PathNames,
    matched: Matched,
) -> Response {
    match try_remove(&context, known, &names).await {
        Ok(response) => response,
        Err(RemoveError::NotItsKey) => context.key_error(KeyRejection::Unknown, &matched.0),
        Err(RemoveError::Other(error)) => http_response(&error),
    }
}

enum RemoveError {
    NotItsKey,
    Other(A2aError),
}

async fn try_remove(
    context: &A2aContext,
    known: KnownCaller,
    names: &PathNames,
) -> Result<Response, RemoveError> {
    let name = names.agent.clone().unwrap_or_default();
    let missing = || RemoveError::Other(A2aError::new(Reason::NotFound, "agent not found"));
    let found = context.engine.with_world(|world| directory::find_agent(world, &name));
    let is_own = |agent: &AgentId| known.0.caller == Caller::Agent(*agent);
    let by_operator = known.0.is_operator();
    let agent = match found {
        Some(agent) if agent.home == ID && (by_operator || is_own(&agent.id)) => agent.id,
        None if by_operator => return Err(missing()),
        // Agents of other protocols are unregistered there.
        Some(agent) if by_operator || is_own(&agent.id) => {
            let text = format!("this agent is registered with {}; unregister it there", agent.home);
            return Err(RemoveError::Other(A2aError::new(Reason::Conflict, text)));
        }
        _ => return Err(RemoveError::NotItsKey),
    };
    let done = context.engine.run(Command::Remove { agent, by_operator }).await;
    done.map_err(|failure| RemoveError::Other(errors::from_engine(&failure)))?;
    let body = ObjectWriter::new().text("status", "unregistered").text("name", &name).finish();
    Ok(json_response(200, body))
}

/// The operation of a request, for its errors.
pub struct Matched(crate::adapter::OperationInfo);

impl<S: Sync> axum::extract::FromRequestParts<S> for Matched {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        _: &S,
    ) -> Result<Self, Self::Rejection> {
        Ok(Self(MatchedOperation::of(&parts.extensions).operation.info.clone()))
    }
}

/// `GET /a2a/agents`.
pub async fn list(State(context): State<A2aContext>, RawQuery(raw): RawQuery) -> Response {
    match try_list(&context, raw.as_deref().unwrap_or_default()) {
        Ok(response) => response,
        Err(error) => http_response(&error),
    }
}

fn try_list(context: &A2aContext, raw: &str) -> Result<Response, A2aError> {
    let query =
        Query::read(raw).map_err(|bad| A2aError::invalid_field("query", bad.to_string()))?;
    let text = |name: &str| query.text(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let limit = query.integer("limit", 1..=LIMIT_MAX);
    let limit = limit.map_err(|bad| A2aError::invalid_field("limit", bad.to_string()))?;
    let limit = usize::try_from(limit.unwrap_or(LIMIT)).unwrap_or_default();
    let after = text("cursor").map_or(Ok(0), |cursor| cursor.parse::<u64>());
    let wrong = |_| A2aError::invalid_field("cursor", "must be a next_cursor of this list");
    let after = AgentId(after.map_err(wrong)?);
    let filter = AgentFilter {
        skill: text("skill"),
        words: Words::of(text("text").as_deref().unwrap_or_default()),
        protocol: text("protocol"),
        ..AgentFilter::default()
    };
    let now = context.engine.now();
    let page = directory::list(context, &filter, after, limit, |world, agent, skill| {
        Some(directory::write_listed(context, world, agent, skill, now))
    });
    let body = ObjectWriter::new()
        .raw("agents", &write_array(page.items))
        .maybe_text("next_cursor", page.next.map(|next| next.0.to_string()).as_deref())
        .finish();
    let mut response = json_response(200, body);
    response.extensions_mut().insert(RowsRead(page.rows_read));
    Ok(response)
}
