//! Registering agents of this protocol: clients, and agents with a server of their own.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use rialto_config::suggest::nearest_key;
use rialto_core::agent::{Agent, Liveness};
use rialto_core::answer::Answer;
use rialto_core::command::{Actor, Command, Registration};
use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_core::refusal::Refusal;
use rialto_engine::Failure;
use rialto_engine::keys::{Key, KeyPrefix};

use super::PathNames;
use super::agents::Matched;
use crate::a2a::auth::{self, GUEST};
use crate::a2a::directory;
use crate::a2a::errors::{self, http_response, json_response};
use crate::a2a::remote::card_fetch::{self, FetchedCard, Terms};
use crate::a2a::remote::credentials::{Credentials, origin_of};
use crate::a2a::remote::refresh::{self, RefreshError, Refreshed};
use crate::a2a::remote::{OWNER, RemoteAgent, agent_content, owner_token};
use crate::a2a::wire::error::{A2aError, Reason};
use crate::a2a::wire::reader::{Reader, Violations};
use crate::a2a::wire::remote_card::SKILLS_MAX;
use crate::a2a::{A2aContext, ID};
use crate::adapter::caller::{Caller, KnownCaller, OptionalCaller, PresentedKey};
use crate::adapter::request::BodyBytes;
use crate::adapter::{NewAgent, make_aliases, naming};
use crate::kit::ijson::{self, JsonValue};
use crate::kit::object::ObjectWriter;

/// The longest name.
const NAME_MAX: usize = 64;
/// Names that paths of this protocol use, and the name of callers without a key.
const RESERVED: [&str; 6] = ["agents", "tasks", "callbacks", "v1", "hub", GUEST];
/// The longest URL of a card.
const URL_MAX: usize = 2_048;
/// Prices have six decimals.
const PRICE_DECIMALS: usize = 6;
/// The members of a registration, and those of its `auth`.
const MEMBERS: [&str; 5] = ["name", "card_url", "prices", "auth", "rotate_key"];
const AUTH_MEMBERS: [&str; 10] = [
    "scheme",
    "token",
    "username",
    "password",
    "name",
    "value",
    "token_url",
    "client_id",
    "client_secret",
    "scope",
];

/// What is registered.
struct RegistrationBody {
    /// `None` takes that of the card.
    name: Option<String>,
    rotate_key: bool,
    /// `None` for a mere client.
    server: Option<OwnServer>,
}

/// A server of the agent's own.
struct OwnServer {
    card_url: String,
    /// `None` leaves the prices as they were.
    asks: Option<BTreeMap<String, Credits>>,
    auth: AuthChange,
}

/// What a registration says of the credentials for the agent's server.
enum AuthChange {
    /// Nothing: they stay as they were.
    Keep,
    Clear,
    Set(Credentials),
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

impl RegistrationBody {
    fn read(body: &[u8]) -> Result<Self, A2aError> {
        let json = ijson::read(body)
            .map_err(|bad| A2aError::new(Reason::ParseError, format!("not valid JSON: {bad}")))?;
        let mut wrong = Violations::new();
        let Some(r) = Reader::new(&json, "", &mut wrong) else {
            return Err(A2aError::invalid(wrong));
        };
        reject_unknown(&r, &MEMBERS, "a registration", &mut wrong);
        let card_url = r.short_text("card_url", URL_MAX, &mut wrong);
        let name = r.text("name", &mut wrong);
        match &name {
            Some(name) => {
                if let Some(text) = name_error(name) {
                    r.reject("name", text, &mut wrong);
                }
            }
            None if r.get("card_url").is_none() => {
                r.reject("name", "is required without card_url", &mut wrong);
            }
            None => {}
        }
        let asks = r.exact("prices").map(|_| read_prices(&r, &mut wrong));
        let auth = match (r.exact("auth"), r.object("auth", &mut wrong)) {
            (None, _) => AuthChange::Keep,
            (_, Some(auth)) if auth.names().next().is_some() => {
                reject_unknown(&auth, &AUTH_MEMBERS, "auth", &mut wrong);
                Credentials::read(&auth, &mut wrong).map_or(AuthChange::Clear, AuthChange::Set)
            }
            _ => AuthChange::Clear,
        };
        if r.get("card_url").is_none() {
            for member in ["prices", "auth"].into_iter().filter(|name| r.get(name).is_some()) {
                r.reject(member, "is for agents with a card_url", &mut wrong);
            }
        }
        let rotate_key = r.flag("rotate_key", &mut wrong).unwrap_or(false);
        if !wrong.is_empty() {
            return Err(A2aError::invalid(wrong));
        }
        let server = card_url.map(|card_url| OwnServer { card_url, asks, auth });
        Ok(Self { name, rotate_key, server })
    }
}

/// Refuses members that do not exist, since a misspelt one would have no effect.
fn reject_unknown(
    r: &Reader<'_, '_>,
    known: &[&'static str],
    object: &str,
    wrong: &mut Violations,
) {
    for name in r.names().filter(|name| !known.contains(name)) {
        let help = match nearest_key(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("its members are {}", known.join(", ")),
        };
        r.reject(name, format!("is not a member of {object}; {help}"), wrong);
    }
}

/// The price of each skill, as its owner asks it.
fn read_prices(r: &Reader<'_, '_>, wrong: &mut Violations) -> BTreeMap<String, Credits> {
    let Some(prices) = r.object("prices", wrong) else { return BTreeMap::new() };
    let names: Vec<&str> = prices.names().collect();
    if names.len() > SKILLS_MAX {
        r.reject("prices", format!("must have at most {SKILLS_MAX} skills"), wrong);
        return BTreeMap::new();
    }
    let mut asks = BTreeMap::new();
    for name in names {
        let text = match prices.exact(name).map(|price| price.value()) {
            Some(JsonValue::String(text)) => text.as_ref(),
            Some(JsonValue::Number(digits)) => digits,
            _ => "",
        };
        let price = Credits::parse(text, PRICE_DECIMALS).ok();
        match price.filter(|price| *price >= Credits::ZERO) {
            Some(price) => drop(asks.insert(name.to_owned(), price)),
            None => {
                let text = "must be an amount from 0 to 1000000000 with at most 6 decimals, such as \"0.25\"";
                prices.reject(name, text, wrong);
            }
        }
    }
    asks
}

/// `POST /a2a/agents`: a client, or an agent with a server of its own, gets a key and an account.
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
    let RegistrationBody { name, rotate_key, server } = RegistrationBody::read(body)?;
    // Without its key nobody changes an agent, on an open hub neither.
    let actor = match anyone.caller {
        Caller::Anonymous => Actor::Anonymous,
        _ => anyone.actor(),
    };
    if let Some(name) = &name {
        check_name_is_free(context, name, actor)?;
    }
    let engine = &context.engine;
    let key = Key::from_random(KeyPrefix::AGENT, engine.random().new_key_bytes());
    let (name, order) = match (server, name) {
        (Some(server), name) => {
            let (name, fetched, remote) = fetch_server(context, name, &server, actor).await?;
            let new = NewAgent { home: ID, native: &name, name: &fetched.card.name };
            let order =
                auth::registration(&name, make_aliases(engine, new), actor, &key, rotate_key);
            let content = agent_content(&fetched.card, &remote);
            (name, with_content(order, content.name, content.skills, content.card))
        }
        (None, name) => {
            let name = name.unwrap_or_default();
            let new = NewAgent { home: ID, native: &name, name: &name };
            let order =
                auth::registration(&name, make_aliases(engine, new), actor, &key, rotate_key);
            // An agent that only wants another key keeps its server.
            let known = engine.with_world(|world| directory::find_agent(world, &name));
            let order = match known.filter(|known| RemoteAgent::of(known).is_some()) {
                Some(known) => {
                    let Agent { name, skills, card, .. } = Agent::clone(&known);
                    with_content(order, name, skills, card)
                }
                None => Command::Register(Box::new(order)),
            };
            (name, order)
        }
    };
    let ran =
        engine.run_once(order, anyone.idempotency).await.map_err(|failure| match failure {
            Failure::Refused(Refusal::IdTaken | Refusal::OwnerTaken) => name_is_taken(&name),
            other => errors::from_engine(&other),
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
        .maybe_text("api_key", api_key.as_ref().map(Key::expose));
    let body = match RemoteAgent::of(&agent) {
        Some(remote) => write_server(context, body, &agent, &remote),
        None => body.raw("skills", "[]"),
    };
    Ok(json_response(if new { 201 } else { 200 }, body.finish()))
}

fn name_is_taken(name: &str) -> A2aError {
    let text =
        format!("{name:?} is taken; send its key to change its agent, or choose another name");
    A2aError::new(Reason::Conflict, text)
}

/// Refuses a taken name before anything is fetched for it. Core decides.
fn check_name_is_free(context: &A2aContext, name: &str, actor: Actor) -> Result<(), A2aError> {
    context.engine.with_world(|world| {
        let Some(known) = world.agent_by_alias(ID, name) else { return Ok(()) };
        let owner = |id: AgentId| world.agent(id).map(|agent| agent.owner);
        match actor {
            Actor::Anonymous => Err(name_is_taken(name)),
            Actor::Agent(by) if by != known && owner(by) != owner(known) => {
                let text = "this name belongs to another agent";
                Err(A2aError::new(Reason::Unauthenticated, text))
            }
            _ => Ok(()),
        }
    })
}

/// A registration of an agent with a server of its own.
fn with_content(
    order: Registration,
    name: String,
    skills: Vec<rialto_core::agent::Skill>,
    card: String,
) -> Command {
    // The hub calls such an agent itself, so core has no endpoint to deliver to.
    let liveness = Liveness::ByEndpoint;
    Command::Register(Box::new(Registration { name, skills, card, liveness, ..order }))
}

/// Fetches the card of a new agent. Returns the agent's name, too.
async fn fetch_server(
    context: &A2aContext,
    name: Option<String>,
    server: &OwnServer,
    actor: Actor,
) -> Result<(String, FetchedCard, RemoteAgent), A2aError> {
    let OwnServer { card_url, asks, auth } = server;
    if let AuthChange::Set(Credentials::OAuth2(client)) = auth {
        let checked = context.egress.check_url(&client.token_url);
        checked.map_err(|why| A2aError::invalid_field("auth.token_url", why.to_string()))?;
    }
    let unusable = |why: String| A2aError::invalid_field("card_url", why);
    let (card_url, fetched) = card_fetch::find(context, card_url).await.map_err(unusable)?;
    let is_known = |id: &&String| fetched.card.skills.iter().any(|skill| skill.id == **id);
    if let Some(id) = asks.iter().flat_map(BTreeMap::keys).find(|id| !is_known(id)) {
        let ids: Vec<&str> = fetched.card.skills.iter().map(|skill| skill.id.as_str()).collect();
        let text = format!("is no skill of the card, which has {}", ids.join(", "));
        return Err(A2aError::invalid_field(&format!("prices.{id}"), text));
    }
    let name = match name {
        Some(name) => name,
        None => {
            let name = naming::slug(&fetched.card.name);
            let unfit = |why| format!("is required, because that of the card, {name:?}, {why}");
            if let Some(why) = name_error(&name) {
                return Err(A2aError::invalid_field("name", unfit(why)));
            }
            check_name_is_free(context, &name, actor)?;
            name
        }
    };
    // What an update does not name stays as it was.
    let known = context.engine.with_world(|world| directory::find_agent(world, &name));
    let known = known.and_then(|known| RemoteAgent::of(&known));
    let asks = match (asks, &known) {
        (Some(asks), _) => asks.clone(),
        (None, Some(known)) => known.asks.clone(),
        (None, None) => BTreeMap::new(),
    };
    let sealed = known.and_then(|known| known.auth).filter(|_| matches!(auth, AuthChange::Keep));
    let kept = sealed.as_ref().and_then(|auth| auth.open(context.engine.hub_secret(), &name));
    let credentials = match auth {
        AuthChange::Set(credentials) => Some(credentials),
        AuthChange::Keep | AuthChange::Clear => kept.as_ref(),
    };
    let origin = origin_of(&fetched.interface.url);
    if let Some(auth) = sealed.as_ref().filter(|auth| origin.as_ref() != Some(&auth.origin)) {
        let text = format!(
            "is for {}, and the interface is elsewhere; send auth for it, or null for none",
            auth.origin
        );
        return Err(A2aError::invalid_field("auth", text));
    }
    let terms = Terms { name: &name, card_url: &card_url, asks: &asks, credentials, sealed };
    let remote = card_fetch::remote_agent(context, &fetched, terms).map_err(unusable)?;
    Ok((name, fetched, remote))
}

/// Adds what is known of an agent with a server of its own.
fn write_server(
    context: &A2aContext,
    body: ObjectWriter,
    agent: &Agent,
    remote: &RemoteAgent,
) -> ObjectWriter {
    let proof = (!remote.proven).then(|| {
        let token = owner_token(context.engine.hub_secret(), &agent.native_id);
        let params = ObjectWriter::new().text("token", &token).finish();
        ObjectWriter::new().text("uri", OWNER).raw("params", &params).finish()
    });
    let free = agent.skills.iter().map(|skill| skill.name.as_str());
    let free: Vec<&str> = free.filter(|skill| !remote.asks.contains_key(*skill)).collect();
    let note = (!free.is_empty())
        .then(|| format!("free of charge, because prices does not name them: {}", free.join(", ")));
    let asks_something = remote.asks.values().any(|price| !price.is_zero());
    let next = proof.as_ref().filter(|_| asks_something).map(|_| {
        format!(
            "add proof to capabilities.extensions of your card, then POST {}/refresh with your \
             key; until then your prices are 0 and you work for free",
            directory::agent_url(context, &agent.native_id)
        )
    });
    body.raw("skills", &remote.write_skills(&agent.skills))
        .raw("interface", &remote.interface.write())
        .text("signature", remote.signature())
        .flag("proven", remote.proven)
        .maybe_raw("proof", proof.as_deref())
        .maybe_text("note", note.as_deref())
        .maybe_text("next", next.as_deref())
}

/// `POST /a2a/agents/{name}/refresh`: fetches the card again.
pub async fn refresh(
    State(context): State<A2aContext>,
    known: KnownCaller,
    names: PathNames,
    matched: Matched,
) -> Response {
    let name = names.agent.clone().unwrap_or_default();
    let found = context.engine.with_world(|world| directory::find_agent(world, &name));
    let is_own = |agent: &Agent| known.0.caller == Caller::Agent(agent.id);
    match found {
        Some(agent) if is_own(&agent) || known.0.is_operator() => {
            match try_refresh(&context, &agent).await {
                Ok(response) => response,
                Err(error) => http_response(&error),
            }
        }
        None if known.0.is_operator() => {
            http_response(&A2aError::new(Reason::NotFound, "agent not found"))
        }
        _ => auth::other_key_response(&context, known, &matched.0),
    }
}

async fn try_refresh(context: &A2aContext, agent: &Agent) -> Result<Response, A2aError> {
    let refreshed = refresh::refresh(context, agent.id).await.map_err(|error| match error {
        RefreshError::Gone => {
            let text = "this agent has no server of its own whose card could be fetched";
            A2aError::new(Reason::Conflict, text)
        }
        RefreshError::Unusable(why) => A2aError::invalid_field("card_url", why),
        RefreshError::Failed(failure) => errors::from_engine(&failure),
    })?;
    let Refreshed { agent, remote, is_changed } = refreshed;
    let body = ObjectWriter::new()
        .text("status", "refreshed")
        .text("name", &agent.native_id)
        .flag("changed", is_changed);
    let body = write_server(context, body, &agent, &remote);
    Ok(json_response(200, body.finish()))
}
