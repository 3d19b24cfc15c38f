//! Agents: register, list, show, unregister, and keys minted by the operator.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use rialto_core::agent::key::Holder;
use rialto_core::agent::{Agent, Liveness};
use rialto_core::answer::Answer;
use rialto_core::command::{Actor, Command, Enrol};
use rialto_core::id::AgentId;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::keys::{Key, Kind};

use super::{Answered, address, done, failed, malformed, query, refuse};
use crate::adapter::caller::Caller;
use crate::adapter::{Floor, Newcomer, RowsRead, aliases};
use crate::kit::budget::ByteBudget;
use crate::kit::ijson;
use crate::kit::query::Query;
use crate::relay::proof::{Anyone, AsEither, AsOperator, Named, Sent, Shown, listed};
use crate::relay::refusals::{self, Refused};
use crate::relay::register::{By, Register};
use crate::relay::shape::{self, text};
use crate::relay::{Address, Bad, Code, Failure, ID, LOOKS, examples, record, skill};

/// How many agents one page has.
const PAGE: i64 = 1_000;
/// How many agents are scanned at a time, and for one page; a rare match may be a few pages on.
const SLICE: u64 = 1_024;
const LOOKED_AT: u64 = 200_000;

/// `POST /register`: an agent registers itself, or updates itself with its key.
pub async fn register(
    State(floor): State<Floor>,
    anyone: Anyone,
    Shown(shown): Shown,
    Sent(body): Sent,
) -> Answered {
    let actor = match anyone.caller {
        Caller::Nobody => Actor::Nobody,
        Caller::Agent(id) | Caller::Former(id) => Actor::Agent(id),
        Caller::Operator => Actor::Operator,
    };
    let key = Key::make(Kind::Relay, floor.engine.ids().key_bits());
    let enrolled = enrol(&floor, &body, By::Itself, actor, Some(&key), anyone.once).await?;
    let Enrolled { agent, created, fresh } = enrolled;
    // The presented key stays valid; an operator key is not an agent's api_key (D17).
    let kept = shown.filter(|key| key.kind() != Kind::Operator);
    let key = if fresh { Some(key) } else { kept };
    let secret = (agent.liveness == Liveness::Reached)
        .then(|| floor.engine.secret().webhook_secret(agent.id, agent.secret_generation).text());
    Ok(done(&floor, if created { 201 } else { 200 }, |out| {
        floor.engine.look(|world| {
            out.extend_from_slice(b"{\"agent_id\":");
            text(out, &record::address(world, &agent));
            if let Some(key) = key {
                out.extend_from_slice(b",\"api_key\":");
                text(out, key.expose());
            }
            if let Some(secret) = secret {
                out.extend_from_slice(b",\"webhook_secret\":");
                text(out, &secret);
            }
            out.extend_from_slice(b",\"registration\":");
            record::write(out, &floor.engine, world, &agent, true);
            out.push(b'}');
        });
    }))
}

/// `POST /agents`: the operator registers an agent, which has no key until one is minted (D8).
pub async fn announce(State(floor): State<Floor>, by: AsOperator, Sent(body): Sent) -> Answered {
    let enrolled = enrol(&floor, &body, By::Operator, Actor::Operator, None, by.once).await?;
    let Enrolled { agent, created, .. } = enrolled;
    Ok(done(&floor, if created { 201 } else { 200 }, |out| {
        let engine = &floor.engine;
        engine.look(|world| record::write(out, engine, world, &agent, true));
    }))
}

struct Enrolled {
    agent: Arc<Agent>,
    /// Whether it was not listed before: new, or back after it was unregistered.
    created: bool,
    /// Whether the generated key is now the agent's.
    fresh: bool,
}

async fn enrol(
    floor: &Floor,
    body: &[u8],
    by: By,
    actor: Actor,
    key: Option<&Key>,
    once: Option<rialto_engine::Idempotency>,
) -> Result<Enrolled, Refused> {
    let unreadable = |bad| refuse(floor, Bad::from(bad).with_example(examples::REGISTRATION));
    let json = ijson::read(body).map_err(unreadable)?;
    let wire = Register::read(&json, by, &floor.relay.settings.host);
    let wire = wire.map_err(|bad| refuse(floor, bad))?;
    if let Some((name, max)) = wire.too_large() {
        let text = format!("{name} has more than {max} bytes; send less");
        let failure = Failure::new(Code::PayloadTooLarge, text);
        return Err(refuse(floor, Failure { field: Some(format!("/{name}").into()), ..failure }));
    }
    if let Some(url) = wire.endpoint {
        floor.egress.check(url).map_err(|why| {
            let failure = Failure::new(Code::EndpointBlocked, format!("endpoint {why}"));
            let example = r#"{"endpoint":"https://agent.example/receive"}"#;
            let (field, example) = (Some("/endpoint".into()), Some(example.into()));
            refuse(floor, Failure { field, example, ..failure })
        })?;
    }
    let (rotate, fresh_key) = (wire.rotate_key, key.map(Key::hash));
    let native = wire.address.canonical().to_owned();
    let newcomer = Newcomer { home: ID, native: &native, name: wire.address.name() };
    let mut names = aliases(&floor.engine, newcomer);
    // Two confusable names are one name to a reader (R20).
    names.push((LOOKS, wire.address.skeleton()));
    if looks_like_another(floor, &wire.address) {
        return Err(taken(floor, failed(floor, Refusal::IdTaken.into())));
    }
    let liveness = if wire.endpoint.is_some() { Liveness::Reached } else { Liveness::Polls };
    let order = Enrol {
        actor,
        home: ID,
        owner: format!("{ID}:{native}"),
        native,
        aliases: names,
        name: wire.address.name().to_owned(),
        endpoint: wire.endpoint.map(str::to_owned),
        liveness,
        skills: vec![skill::message()],
        terms: Default::default(),
        condition: None,
        card: record::card(wire.address.shown(), wire.card.as_ref().map(|c| c.raw()), wire.format),
        key: fresh_key,
        rotate: rotate && fresh_key.is_some(),
    };
    let ran = floor.engine.run_once(Command::Enrol(Box::new(order)), once).await;
    let ran = ran.map_err(|failure| taken(floor, failed(floor, failure)))?;
    let Answer::Agent { agent, new, returned, .. } = ran.answer else {
        return Err(failed(floor, rialto_engine::Failure::Fault));
    };
    // A repeat after a crash finds the agent registered, but its key was not stored and is lost.
    let fresh = (new || rotate) && !ran.replayed;
    Ok(Enrolled { agent, created: new || returned, fresh })
}

/// Whether an address, as it will be displayed, is confusable with that of another agent (R20). One
/// that is already displayed like that is kept.
fn looks_like_another(floor: &Floor, address: &Address<'_>) -> bool {
    floor.engine.look(|world| {
        let own = world.agent_named(ID, address.canonical());
        let shown = own.and_then(|id| world.agent(id)).map(|agent| record::address(world, agent));
        let other =
            world.agent_named(LOOKS, &address.shown_skeleton()).filter(|id| Some(*id) != own);
        other.is_some() && shown.as_deref() != Some(address.shown())
    })
}

/// Adds to "id taken" how the id can be used.
fn taken(floor: &Floor, refused: Refused) -> Refused {
    if refused.code() != Code::AgentIdTaken {
        return refused;
    }
    let failure = Failure::new(
        Code::AgentIdTaken,
        "this id or a confusable one is or was registered; it can only be reused with its key",
    );
    let hint = "if it is yours, send its key as Authorization: Bearer ca_…; if the key is lost, \
                ask the operator for a new one (POST /agents/{id}/key); else choose another name";
    refuse(floor, Failure { hint: Some(hint.into()), ..failure })
}

/// `GET /agents`: all registered agents, of any protocol.
pub async fn list(State(floor): State<Floor>, by: Anyone, RawQuery(raw): RawQuery) -> Answered {
    let query = query(&floor, raw.as_deref())?;
    let wanted = Wanted::read(&query).map_err(|bad| malformed(&floor, bad))?;
    // No agent follows the newest one, whatever a cursor says.
    let after = wanted.after.min(floor.engine.look(|world| world.next.agent.0));
    let mut page = Page {
        data: Vec::from(b"["),
        found: 0,
        budget: ByteBudget::default(),
        last: after,
        rest: Rest::Unseen,
    };
    // In slices, so that writers need not wait for a long list.
    let last = after + LOOKED_AT;
    while page.rest == Rest::Unseen && page.last < last {
        page.extend(&floor, &wanted, by.caller);
    }
    let next = (page.rest != Rest::None).then(|| page.last.to_string());
    let mut data = page.data;
    data.push(b']');
    let data = String::from_utf8(data).unwrap_or_default();
    let mut answer = refusals::json(200, shape::page(&data, next.as_deref(), floor.engine.now()));
    let looked_at = usize::try_from(page.last.saturating_sub(after)).unwrap_or(usize::MAX);
    answer.extensions_mut().insert(RowsRead(looked_at));
    Ok(answer)
}

/// A page being built.
struct Page {
    data: Vec<u8>,
    found: usize,
    budget: ByteBudget,
    /// The last agent that was scanned.
    last: u64,
    rest: Rest,
}

/// What follows a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// There may be more, and the page has room.
    Unseen,
    /// There is more, and the page is full.
    Full,
    None,
}

impl Page {
    /// Scans the next agents. Only their ids are collected while the world is locked; cards are
    /// read and records are written one at a time.
    fn extend(&mut self, floor: &Floor, wanted: &Wanted<'_>, caller: Caller) {
        let (candidates, last, end) = floor.engine.look(|world| {
            let end = world.next.agent.0;
            let last = end.saturating_sub(1).min(self.last + SLICE);
            let agents = (self.last + 1..=last).filter_map(|id| world.agent(AgentId(id)));
            let fitting =
                agents.filter(|agent| agent.active && wanted.fits(floor, world, agent)).cloned();
            (fitting.collect::<Vec<Arc<Agent>>>(), last, end)
        });
        for agent in candidates.iter().filter(|agent| wanted.speaks(agent)) {
            if self.found == wanted.limit {
                return self.rest = Rest::Full;
            }
            let (mut text, engine) = (Vec::new(), &floor.engine);
            let shown = sees_endpoint(floor, caller, agent);
            engine.look(|world| record::write(&mut text, engine, world, agent, shown));
            if !self.budget.take(text.len()) {
                return self.rest = Rest::Full;
            }
            self.data.extend_from_slice(if self.found == 0 { b"" } else { b"," });
            self.data.extend_from_slice(&text);
            (self.found, self.last) = (self.found + 1, agent.id.0);
        }
        self.last = last;
        self.rest = if last + 1 < end { Rest::Unseen } else { Rest::None };
    }
}

/// The filter of a list request.
struct Wanted<'q> {
    culture: Option<&'q str>,
    language: Option<&'q str>,
    online: Option<bool>,
    protocol: Option<&'q str>,
    text: Option<String>,
    limit: usize,
    after: u64,
}

impl<'q> Wanted<'q> {
    fn read(query: &'q Query) -> Result<Self, crate::kit::fields::Malformed> {
        let wrong = |field: &str, message: &str| crate::kit::fields::Malformed {
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
    fn fits(&self, floor: &Floor, world: &World, agent: &Agent) -> bool {
        self.protocol.is_none_or(|protocol| agent.home.as_str() == protocol)
            && self.online.is_none_or(|on| record::is_online(&floor.engine, world, agent) == on)
            && self.text.as_deref().is_none_or(|text| {
                record::address(world, agent).to_lowercase().contains(text)
                    || agent.name.to_lowercase().contains(text)
            })
    }

    /// Whether its card has the requested culture and language.
    fn speaks(&self, agent: &Agent) -> bool {
        if self.culture.is_none() && self.language.is_none() {
            return true;
        }
        let text = record::card_text(agent);
        let Ok(json) = ijson::read(text.as_bytes()) else { return false };
        let Ok(card) = crate::relay::Card::read(&json, "") else { return false };
        self.culture.is_none_or(|culture| card.culture().eq_ignore_ascii_case(culture))
            && self.language.is_none_or(|language| {
                card.languages().iter().any(|one| one.eq_ignore_ascii_case(language))
            })
    }
}

/// An agent's endpoint is private, unless the hub shows all of them.
fn sees_endpoint(floor: &Floor, caller: Caller, agent: &Agent) -> bool {
    floor.relay.settings.show_endpoints
        || caller == Caller::Operator
        || caller == Caller::Agent(agent.id)
}

/// `GET /agents/{id}`: one record.
pub async fn show(State(floor): State<Floor>, by: Anyone, Named(id): Named) -> Answered {
    let engine = &floor.engine;
    let mut found = Vec::new();
    engine.look(|world| {
        let id = address(&floor, &id).and_then(|address| listed(world, address.canonical()))?;
        let agent = world.agent(id)?;
        record::write(&mut found, engine, world, agent, sees_endpoint(&floor, by.caller, agent));
        Some(())
    });
    match found.is_empty() {
        true => Err(refuse(&floor, refusals::no_such_agent())),
        false => Ok(done(&floor, 200, |out| out.extend_from_slice(&found))),
    }
}

/// `DELETE /agents/{id}`: removes the agent from the lists; the id stays reserved.
pub async fn unregister(State(floor): State<Floor>, by: AsEither, Named(id): Named) -> Answered {
    let found = floor.engine.look(|world| {
        let address = address(&floor, &id)?;
        let agent = listed(world, address.canonical())?;
        let agent = world.agent(agent)?;
        Some((agent.id, agent.home, record::address(world, agent).into_owned()))
    });
    let Some((agent, home, shown)) = found else { return Ok(gone(&floor, false, &id)) };
    // Another caller's agent does not exist for it; an alias is deleted in its home protocol.
    if by.agent.is_some_and(|own| own != agent) || home != ID {
        return Err(refuse(&floor, refusals::no_such_agent()));
    }
    let by_operator = by.agent.is_none();
    match floor.engine.run_once(Command::Remove { agent, by_operator }, by.once).await {
        Ok(_) => Ok(gone(&floor, true, &shown)),
        Err(failure) => Err(failed(&floor, failure)),
    }
}

fn gone(floor: &Floor, deleted: bool, id: &str) -> Response {
    done(floor, 200, |out| {
        let start: &[u8] = if deleted { b"{\"deleted\":true" } else { b"{\"deleted\":false" };
        out.extend_from_slice(start);
        out.extend_from_slice(b",\"agent_id\":");
        text(out, id);
        out.push(b'}');
    })
}

/// `POST /agents/{id}/key`: the operator mints a key; older ones expire.
pub async fn mint(State(floor): State<Floor>, by: AsOperator, Named(id): Named) -> Answered {
    let found = floor.engine.look(|world| {
        let agent = world.agent(world.agent_named(ID, address(&floor, &id)?.canonical())?)?;
        (agent.home == ID).then(|| (agent.id, record::address(world, agent).into_owned()))
    });
    let (agent, shown) = found.ok_or_else(|| refuse(&floor, refusals::no_such_agent()))?;
    let key = Key::make(Kind::Relay, floor.engine.ids().key_bits());
    let (holder, hash) = (Holder::Agent(agent), key.hash());
    let order = Command::IssueKey { holder, hash, retire_others: true, by_operator: true };
    let ran = floor.engine.run_once(order, by.once).await;
    let ran = ran.map_err(|failure| failed(&floor, failure))?;
    Ok(done(&floor, 201, |out| {
        out.extend_from_slice(b"{\"agent_id\":");
        text(out, &shown);
        // A repeat after a crash finds a key that was minted but not stored, and is lost.
        if !ran.replayed {
            out.extend_from_slice(b",\"api_key\":");
            text(out, key.expose());
        }
        out.push(b'}');
    }))
}
