//! Agents: register, list, show, unregister, and keys minted by the operator.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use rialto_core::agent::key::Holder;
use rialto_core::agent::{Agent, Liveness};
use rialto_core::answer::Answer;
use rialto_core::command::{Actor, Command, Registration};
use rialto_core::id::AgentId;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::Idempotency;
use rialto_engine::keys::{Key, KeyPrefix};

use super::{read_address, read_query, success};
use crate::adapter::caller::{Caller, OptionalCaller, PresentedKey};
use crate::adapter::request::{BodyBytes, PathParam};
use crate::adapter::{NewAgent, RowsRead, make_aliases};
use crate::kit::budget::ByteBudget;
use crate::kit::fields::Malformed;
use crate::kit::ijson;
use crate::kit::query::Query;
use crate::relay::auth::{AgentOrOperator, OperatorCaller, listed_agent};
use crate::relay::errors::{
    self, ErrorResponse, HandlerResult, engine_error, error_response, malformed_error,
};
use crate::relay::wire::error::REGISTRATION_EXAMPLE;
use crate::relay::wire::registration::{RegisterBody, RegisteredBy};
use crate::relay::wire::response::{page_response, write_json_string};
use crate::relay::wire::work::message_skill;
use crate::relay::{Address, AgentCard, CONFUSABLES, Code, Failure, ID, InvalidBody, translate};
use crate::relay::{KEY_PREFIX, RelayContext};

/// How many agents one page has.
const PAGE: i64 = 1_000;
/// How many agents are scanned at a time, and for one page; a rare match may be a few pages on.
const SLICE: u64 = 1_024;
const LOOKED_AT: u64 = 200_000;

/// `POST /register`: an agent registers itself, or updates itself with its key.
pub async fn register(
    State(context): State<RelayContext>,
    anyone: OptionalCaller,
    PresentedKey(shown): PresentedKey,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let actor = anyone.actor();
    let key = Key::from_random(KEY_PREFIX, context.engine.random().new_key_bytes());
    let enrolled =
        enrol(&context, &body, RegisteredBy::Agent, actor, Some(&key), anyone.idempotency).await?;
    let RegisteredAgent { agent, created, fresh } = enrolled;
    // The presented key stays valid; an operator key is not an agent's api_key (D17).
    let kept = shown.filter(|key| key.prefix() != KeyPrefix::OPERATOR);
    let key = if fresh { Some(key) } else { kept };
    let secret = (agent.liveness == Liveness::ByEndpoint).then(|| {
        context.engine.hub_secret().webhook_secret(agent.id, agent.secret_generation).to_text()
    });
    Ok(success(&context, if created { 201 } else { 200 }, |out| {
        context.engine.with_world(|world| {
            out.extend_from_slice(b"{\"agent_id\":");
            write_json_string(out, &translate::address(world, &agent));
            if let Some(key) = key {
                out.extend_from_slice(b",\"api_key\":");
                write_json_string(out, key.expose());
            }
            if let Some(secret) = secret {
                out.extend_from_slice(b",\"webhook_secret\":");
                write_json_string(out, &secret);
            }
            out.extend_from_slice(b",\"registration\":");
            translate::write_record(out, &context.engine, world, &agent, true);
            out.push(b'}');
        });
    }))
}

/// `POST /agents`: the operator registers an agent, which has no key until one is minted (D8).
pub async fn register_as_operator(
    State(context): State<RelayContext>,
    by: OperatorCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let enrolled =
        enrol(&context, &body, RegisteredBy::Operator, Actor::Operator, None, by.once).await?;
    let RegisteredAgent { agent, created, .. } = enrolled;
    Ok(success(&context, if created { 201 } else { 200 }, |out| {
        let engine = &context.engine;
        engine.with_world(|world| translate::write_record(out, engine, world, &agent, true));
    }))
}

struct RegisteredAgent {
    agent: Arc<Agent>,
    /// Whether it was not listed before: new, or back after it was unregistered.
    created: bool,
    /// Whether the generated key is now the agent's.
    fresh: bool,
}

async fn enrol(
    context: &RelayContext,
    body: &[u8],
    by: RegisteredBy,
    actor: Actor,
    key: Option<&Key>,
    once: Option<Idempotency>,
) -> Result<RegisteredAgent, ErrorResponse> {
    let unreadable =
        |bad| error_response(context, InvalidBody::from(bad).with_example(REGISTRATION_EXAMPLE));
    let json = ijson::read(body).map_err(unreadable)?;
    let wire = RegisterBody::read(&json, by, &context.state.settings.host);
    let wire = wire.map_err(|bad| error_response(context, bad))?;
    if let Some((name, max)) = wire.oversized_member() {
        let text = format!("{name} has more than {max} bytes; send less");
        let failure = Failure::new(Code::PayloadTooLarge, text);
        return Err(error_response(
            context,
            Failure { field: Some(format!("/{name}").into()), ..failure },
        ));
    }
    if let Some(url) = wire.endpoint {
        context.egress.check_url(url).map_err(|why| {
            let failure = Failure::new(Code::EndpointBlocked, format!("endpoint {why}"));
            let example = r#"{"endpoint":"https://agent.example/receive"}"#;
            let (field, example) = (Some("/endpoint".into()), Some(example.into()));
            error_response(context, Failure { field, example, ..failure })
        })?;
    }
    let (rotate, fresh_key) = (wire.rotate_key, key.map(Key::hash));
    let native = wire.address.canonical().to_owned();
    let new_agent = NewAgent { home: ID, native: &native, name: wire.address.name() };
    let mut names = make_aliases(&context.engine, new_agent);
    // Two confusable names are one name to a reader (R20).
    names.push((CONFUSABLES, wire.address.skeleton()));
    if looks_like_another(context, &wire.address) {
        return Err(taken(context, engine_error(context, Refusal::IdTaken.into())));
    }
    let liveness = if wire.endpoint.is_some() { Liveness::ByEndpoint } else { Liveness::ByPolling };
    let order = Registration {
        actor,
        home: ID,
        owner: format!("{ID}:{native}"),
        native_id: native,
        aliases: names,
        name: wire.address.name().to_owned(),
        endpoint: wire.endpoint.map(str::to_owned),
        liveness,
        skills: vec![message_skill()],
        terms: Default::default(),
        status: None,
        card: translate::write_stored_card(
            wire.address.display(),
            wire.card.as_ref().map(|c| c.raw()),
            wire.format,
        ),
        key: fresh_key,
        rotate_key: rotate && fresh_key.is_some(),
    };
    let ran = context.engine.run_once(Command::Register(Box::new(order)), once).await;
    let ran = ran.map_err(|failure| taken(context, engine_error(context, failure)))?;
    let Answer::Agent { agent, new, returned, .. } = ran.answer else {
        return Err(engine_error(context, rialto_engine::Failure::Fault));
    };
    // A repeat after a crash finds the agent registered, but its key was not stored and is lost.
    let fresh = (new || rotate) && !ran.replayed;
    Ok(RegisteredAgent { agent, created: new || returned, fresh })
}

/// Whether an address, as it will be displayed, is confusable with that of another agent (R20). One
/// that is already displayed like that is kept.
fn looks_like_another(context: &RelayContext, address: &Address<'_>) -> bool {
    context.engine.with_world(|world| {
        let own = world.agent_by_alias(ID, address.canonical());
        let shown =
            own.and_then(|id| world.agent(id)).map(|agent| translate::address(world, agent));
        let other = world
            .agent_by_alias(CONFUSABLES, &address.display_skeleton())
            .filter(|id| Some(*id) != own);
        other.is_some() && shown.as_deref() != Some(address.display())
    })
}

/// Adds to "id taken" how the id can be used.
fn taken(context: &RelayContext, refused: ErrorResponse) -> ErrorResponse {
    if refused.code() != Code::AgentIdTaken {
        return refused;
    }
    let failure = Failure::new(
        Code::AgentIdTaken,
        "this id or a confusable one is or was registered; it can only be reused with its key",
    );
    let hint = "if it is yours, send its key as Authorization: Bearer ca_…; if the key is lost, \
                ask the operator for a new one (POST /agents/{id}/key); else choose another name";
    error_response(context, Failure { hint: Some(hint.into()), ..failure })
}

/// `GET /agents`: all registered agents, of any protocol.
pub async fn list(
    State(context): State<RelayContext>,
    by: OptionalCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = read_query(&context, raw.as_deref())?;
    let wanted = AgentFilter::read(&query).map_err(|bad| malformed_error(&context, bad))?;
    // No agent follows the newest one, whatever a cursor says.
    let after = wanted.after.min(context.engine.with_world(|world| world.next.agent.0));
    let mut page = AgentPage {
        data: Vec::from(b"["),
        found: 0,
        budget: ByteBudget::default(),
        last: after,
        rest: PageEnd::Unseen,
    };
    // In slices, so that writers need not wait for a long list.
    let last = after + LOOKED_AT;
    while page.rest == PageEnd::Unseen && page.last < last {
        page.extend(&context, &wanted, by.caller);
    }
    let next = (page.rest != PageEnd::None).then(|| page.last.to_string());
    let mut data = page.data;
    data.push(b']');
    let data = String::from_utf8(data).unwrap_or_default();
    let mut answer =
        errors::json_response(200, page_response(&data, next.as_deref(), context.engine.now()));
    let looked_at = usize::try_from(page.last.saturating_sub(after)).unwrap_or(usize::MAX);
    answer.extensions_mut().insert(RowsRead(looked_at));
    Ok(answer)
}

/// A page being built.
struct AgentPage {
    data: Vec<u8>,
    found: usize,
    budget: ByteBudget,
    /// The last agent that was scanned.
    last: u64,
    rest: PageEnd,
}

/// What follows a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageEnd {
    /// There may be more, and the page has room.
    Unseen,
    /// There is more, and the page is full.
    Full,
    None,
}

impl AgentPage {
    /// Scans the next agents. Only their ids are collected while the world is locked; cards are
    /// read and records are written one at a time.
    fn extend(&mut self, context: &RelayContext, wanted: &AgentFilter<'_>, caller: Caller) {
        let (candidates, last, end) = context.engine.with_world(|world| {
            let end = world.next.agent.0;
            let last = end.saturating_sub(1).min(self.last + SLICE);
            let agents = (self.last + 1..=last).filter_map(|id| world.agent(AgentId(id)));
            let fitting =
                agents.filter(|agent| agent.active && wanted.fits(context, world, agent)).cloned();
            (fitting.collect::<Vec<Arc<Agent>>>(), last, end)
        });
        for agent in candidates.iter().filter(|agent| wanted.speaks(agent)) {
            if self.found == wanted.limit {
                return self.rest = PageEnd::Full;
            }
            let (mut text, engine) = (Vec::new(), &context.engine);
            let shown = sees_endpoint(context, caller, agent);
            engine.with_world(|world| {
                translate::write_record(&mut text, engine, world, agent, shown)
            });
            if !self.budget.take(text.len()) {
                return self.rest = PageEnd::Full;
            }
            self.data.extend_from_slice(if self.found == 0 { b"" } else { b"," });
            self.data.extend_from_slice(&text);
            (self.found, self.last) = (self.found + 1, agent.id.0);
        }
        self.last = last;
        self.rest = if last + 1 < end { PageEnd::Unseen } else { PageEnd::None };
    }
}

/// The filter of a list request.
struct AgentFilter<'q> {
    culture: Option<&'q str>,
    language: Option<&'q str>,
    online: Option<bool>,
    protocol: Option<&'q str>,
    text: Option<String>,
    limit: usize,
    after: u64,
}

impl<'q> AgentFilter<'q> {
    fn read(query: &'q Query) -> Result<Self, Malformed> {
        let wrong = |field: &str, message: &str| Malformed {
            field: format!("?{field}"),
            message: format!("{field} {message}"),
        };
        let online = match query.text("online") {
            None => None,
            Some("true" | "1") => Some(true),
            Some("false" | "0") => Some(false),
            Some(_) => return Err(wrong("online", "must be true or false")),
        };
        let after = query.text("cursor").map(str::parse).transpose();
        Ok(Self {
            culture: query.text("culture"),
            language: query.text("language"),
            online,
            protocol: query.text("protocol"),
            text: query.text("q").map(str::to_lowercase),
            limit: query.integer("limit", 1..=PAGE)?.unwrap_or(PAGE).unsigned_abs() as usize,
            after: after
                .map_err(|_| wrong("cursor", "must be the next_cursor of an earlier page"))?
                .unwrap_or(0),
        })
    }

    /// Everything that can be checked without reading the card.
    fn fits(&self, context: &RelayContext, world: &World, agent: &Agent) -> bool {
        self.protocol.is_none_or(|protocol| agent.home.as_str() == protocol)
            && self
                .online
                .is_none_or(|on| translate::is_online(&context.engine, world, agent) == on)
            && self.text.as_deref().is_none_or(|text| {
                translate::address(world, agent).to_lowercase().contains(text)
                    || agent.name.to_lowercase().contains(text)
            })
    }

    /// Whether its card has the requested culture and language.
    fn speaks(&self, agent: &Agent) -> bool {
        if self.culture.is_none() && self.language.is_none() {
            return true;
        }
        let text = translate::public_card(agent);
        let Ok(json) = ijson::read(text.as_bytes()) else { return false };
        let Ok(card) = AgentCard::read(&json, "") else { return false };
        self.culture.is_none_or(|culture| card.culture().eq_ignore_ascii_case(culture))
            && self.language.is_none_or(|language| {
                card.languages().iter().any(|one| one.eq_ignore_ascii_case(language))
            })
    }
}

/// An agent's endpoint is private, unless the hub shows all of them.
fn sees_endpoint(context: &RelayContext, caller: Caller, agent: &Agent) -> bool {
    context.state.settings.show_endpoints
        || caller == Caller::Operator
        || caller == Caller::Agent(agent.id)
}

/// `GET /agents/{id}`: one record.
pub async fn show(
    State(context): State<RelayContext>,
    by: OptionalCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let engine = &context.engine;
    let mut found = Vec::new();
    engine.with_world(|world| {
        let id = read_address(&context, &id)
            .and_then(|address| listed_agent(world, address.canonical()))?;
        let agent = world.agent(id)?;
        translate::write_record(
            &mut found,
            engine,
            world,
            agent,
            sees_endpoint(&context, by.caller, agent),
        );
        Some(())
    });
    if found.is_empty() {
        return Err(error_response(&context, errors::agent_not_found()));
    }
    Ok(success(&context, 200, |out| out.extend_from_slice(&found)))
}

/// `DELETE /agents/{id}`: removes the agent from the lists; the id stays reserved.
pub async fn unregister(
    State(context): State<RelayContext>,
    by: AgentOrOperator,
    PathParam(id): PathParam,
) -> HandlerResult {
    let found = context.engine.with_world(|world| {
        let address = read_address(&context, &id)?;
        let agent = listed_agent(world, address.canonical())?;
        let agent = world.agent(agent)?;
        Some((agent.id, agent.home, translate::address(world, agent).into_owned()))
    });
    let Some((agent, home, shown)) = found else { return Ok(gone(&context, false, &id)) };
    // Another caller's agent does not exist for it; an alias is deleted in its home protocol.
    if by.agent.is_some_and(|own| own != agent) || home != ID {
        return Err(error_response(&context, errors::agent_not_found()));
    }
    let by_operator = by.agent.is_none();
    match context.engine.run_once(Command::Remove { agent, by_operator }, by.once).await {
        Ok(_) => Ok(gone(&context, true, &shown)),
        Err(failure) => Err(engine_error(&context, failure)),
    }
}

fn gone(context: &RelayContext, deleted: bool, id: &str) -> Response {
    success(context, 200, |out| {
        let start: &[u8] = if deleted { b"{\"deleted\":true" } else { b"{\"deleted\":false" };
        out.extend_from_slice(start);
        out.extend_from_slice(b",\"agent_id\":");
        write_json_string(out, id);
        out.push(b'}');
    })
}

/// `POST /agents/{id}/key`: the operator mints a key; older ones expire.
pub async fn mint_key(
    State(context): State<RelayContext>,
    by: OperatorCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let found = context.engine.with_world(|world| {
        let agent =
            world.agent(world.agent_by_alias(ID, read_address(&context, &id)?.canonical())?)?;
        (agent.home == ID).then(|| (agent.id, translate::address(world, agent).into_owned()))
    });
    let (agent, shown) =
        found.ok_or_else(|| error_response(&context, errors::agent_not_found()))?;
    let key = Key::from_random(KEY_PREFIX, context.engine.random().new_key_bytes());
    let (holder, hash) = (Holder::Agent(agent), key.hash());
    let order = Command::IssueKey { holder, hash, retire_others: true, by_operator: true };
    let ran = context.engine.run_once(order, by.once).await;
    let ran = ran.map_err(|failure| engine_error(&context, failure))?;
    Ok(success(&context, 201, |out| {
        out.extend_from_slice(b"{\"agent_id\":");
        write_json_string(out, &shown);
        // A repeat after a crash finds a key that was minted but not stored, and is lost.
        if !ran.replayed {
            out.extend_from_slice(b",\"api_key\":");
            write_json_string(out, key.expose());
        }
        out.push(b'}');
    }))
}
