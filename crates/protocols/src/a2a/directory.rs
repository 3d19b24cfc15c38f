//! What the hub publishes about agents: cards, the list of agents, and the catalog.

use std::sync::Arc;

use rialto_core::agent::{Agent, Skill};
use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::Failure;

use super::translate::price_text;
use super::wire::agent_card::{AgentCard, CardSkill, Extension};
use super::wire::message::write_array;
use super::{A2aContext, ID, extensions};
use crate::adapter::INPUT_MODES;
use crate::adapter::rank::{RankPosition, RankRecord};
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::kit::rfc3339;

/// Schemas on a card that is public have at most this many bytes (2.4).
const SCHEMA_MAX: usize = 16 << 10;
/// The modes of agents of other protocols.
const MODES: [&str; 2] = ["application/json", "text/plain"];
/// How many agents of a search are shown, and how many are looked at.
pub const FOUND_MAX: usize = 20;
const SCANNED_MAX: usize = 10_000;

/// An agent that can be called here.
pub fn find_agent(world: &World, name: &str) -> Option<Arc<Agent>> {
    let id = world.agent_by_alias(ID, name)?;
    world.agent(id).filter(|agent| agent.active).cloned()
}

/// Where an agent is called.
pub fn agent_url(context: &A2aContext, name: &str) -> String {
    format!("{}/{ID}/agents/{name}", context.hub_url)
}

/// Where the card of an agent is.
pub fn card_url(context: &A2aContext, name: &str) -> String {
    format!("{}/.well-known/agent-card.json", agent_url(context, name))
}

/// Whether the card is for callers with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardAudience {
    Public,
    Extended,
}

/// The scores that protocols publish of an agent.
pub async fn scores(context: &A2aContext, id: AgentId) -> Result<Vec<(Protocol, String)>, Failure> {
    let Some(state) = context.engine.with_world(|world| world.agent_state(id).cloned()) else {
        return Ok(Vec::new());
    };
    let mut scores = Vec::new();
    for protocol in &context.protocols {
        let Some(score) = protocol.published_score(&context.engine, &state).await? else {
            continue;
        };
        let Ok(json) = ijson::read(score.get().as_bytes()) else { continue };
        if let Some(JsonValue::Number(digits)) = json.get("score").map(|score| score.value()) {
            scores.push((protocol.adapter().id(), (*digits).to_owned()));
        }
    }
    Ok(scores)
}

/// The card of an agent.
pub fn agent_card(
    context: &A2aContext,
    world: &World,
    agent: &Agent,
    scores: &[(Protocol, String)],
    audience: CardAudience,
) -> Option<AgentCard> {
    let name = world.alias_of(agent.id, ID)?;
    let owner = world.owner(agent.owner).map(|owner| owner.name.clone());
    let skills: Vec<&Skill> = agent.skills_for_other_protocols().collect();
    Some(AgentCard {
        name: agent.name.clone(),
        description: description(agent),
        version: own_text(agent, "version").unwrap_or_else(|| "1".to_owned()),
        organization: owner.unwrap_or_default(),
        hub_url: context.hub_url.clone(),
        url: agent_url(context, name),
        needs_key: !context.state.settings.is_open(),
        extensions: extensions_of(world, agent, &skills, scores, audience, context.engine.now()),
        input_modes: input_modes(agent),
        output_modes: MODES.map(str::to_owned).to_vec(),
        skills: skills.iter().map(|skill| card_skill(skill, agent.home.as_str())).collect(),
    })
}

fn card_skill(skill: &Skill, protocol: &str) -> CardSkill {
    let described = Some(&skill.description).filter(|text| !text.is_empty());
    CardSkill {
        id: skill.name.clone(),
        name: skill.name.clone(),
        description: described.unwrap_or(&skill.name).clone(),
        tags: vec![skill.name.clone(), protocol.to_owned()],
    }
}

fn extensions_of(
    world: &World,
    agent: &Agent,
    skills: &[&Skill],
    scores: &[(Protocol, String)],
    audience: CardAudience,
    now: Timestamp,
) -> Vec<Extension> {
    let extension = |uri: &str, description: &str, params: Option<String>| Extension {
        uri: uri.to_owned(),
        description: description.to_owned(),
        required: false,
        params,
    };
    let prices = skills.iter().fold(ObjectWriter::new(), |all, skill| {
        let terms = ObjectWriter::new()
            .text("price", &price_text(skill.price))
            .maybe_integer("takesMs", skill.expected_duration.map(|takes| takes.0))
            .maybe_raw("byOffer", skill.by_offer.then_some("true"));
        all.raw(&skill.name, &terms.finish())
    });
    let hire =
        ObjectWriter::new().text("currency", "credits").raw("skills", &prices.finish()).finish();
    let fits = |schema: &str| audience == CardAudience::Extended || schema.len() <= SCHEMA_MAX;
    let is_schema = |schema: &&str| schema.starts_with('{') && *schema != "{}" && fits(schema);
    let schemas = skills.iter().filter_map(|skill| {
        let input = Some(skill.input.as_str()).filter(is_schema);
        let output = Some(skill.output.as_str()).filter(is_schema);
        let both =
            ObjectWriter::new().maybe_raw("input", input).maybe_raw("output", output).finish();
        (both != "{}").then_some((&skill.name, both))
    });
    let schemas = schemas.fold(ObjectWriter::new(), |all, (name, both)| all.raw(name, &both));
    let schemas = schemas.finish();
    let mut all = vec![extension(
        extensions::HIRE,
        "Choose a skill, set a budget and a deadline",
        Some(hire),
    )];
    if schemas != "{}" {
        let params = ObjectWriter::new().raw("skills", &schemas).finish();
        all.push(extension(extensions::SCHEMAS, "JSON Schemas of the skills", Some(params)));
    }
    let trust = trust_params(world, agent, scores, audience, now);
    all.push(extension(extensions::TRUST, "What the hub has measured", Some(trust)));
    all.push(extension(extensions::RESUME, "Streams go on after Last-Event-ID", None));
    all
}

fn trust_params(
    world: &World,
    agent: &Agent,
    scores: &[(Protocol, String)],
    audience: CardAudience,
    now: Timestamp,
) -> String {
    let state = world.agent_state(agent.id);
    let standing = state.map(|state| state.standing).unwrap_or_default();
    let requesters = state.map_or(0, |state| state.customers.count() as u64);
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let scores = scores
        .iter()
        .fold(ObjectWriter::new(), |all, (name, score)| all.text(name.as_str(), score));
    let scores = scores.finish();
    let params = ObjectWriter::new()
        .text("protocol", agent.home.as_str())
        .text("nativeId", &agent.native_id)
        .integer("settled", count(standing.settled_jobs()))
        .integer("succeeded", count(standing.successes))
        .integer("requesters", count(requesters))
        .text("since", &rfc3339::format_millis(agent.registered_at))
        .maybe_raw("scores", Some(scores.as_str()).filter(|text| *text != "{}"));
    if audience == CardAudience::Public {
        return params.finish();
    }
    let seen = state.map(|state| rfc3339::format_millis(state.presence.last_seen));
    let presence = ObjectWriter::new()
        .text("state", presence(world, agent.id, now))
        .maybe_text("seenAt", seen.as_deref())
        .finish();
    let running = world.assigned_job_count(agent.id);
    params
        .raw("presence", &presence)
        .integer("running", i64::try_from(running).unwrap_or(i64::MAX))
        .maybe_integer("atOnce", agent.terms.capacity.max_concurrent_jobs.map(i64::from))
        .finish()
}

/// Whether an agent takes work now.
pub fn presence(world: &World, agent: AgentId, now: Timestamp) -> &'static str {
    if world.is_online(agent, now) { "ready" } else { "away" }
}

/// The card of the hub itself.
pub fn hub_card(context: &A2aContext) -> AgentCard {
    let params = ObjectWriter::new()
        .text("currency", "credits")
        .raw("select", r#"["best","cheapest","roundRobin","leastBusy","auction"]"#)
        .finish();
    let description = "Finds agents of every protocol on this hub, and hires them";
    AgentCard {
        name: "Rialto".to_owned(),
        description: description.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        organization: "Rialto".to_owned(),
        hub_url: context.hub_url.clone(),
        url: format!("{}/{ID}", context.hub_url),
        needs_key: !context.state.settings.is_open(),
        extensions: vec![
            Extension {
                uri: extensions::HIRE.to_owned(),
                description: "Name a skill and a budget, and the hub chooses the agent".to_owned(),
                required: false,
                params: Some(params),
            },
            Extension {
                uri: extensions::RESUME.to_owned(),
                description: "Streams go on after Last-Event-ID".to_owned(),
                required: false,
                params: None,
            },
        ],
        input_modes: MODES.map(str::to_owned).to_vec(),
        output_modes: MODES.map(str::to_owned).to_vec(),
        skills: vec![CardSkill {
            id: "find".to_owned(),
            name: "find".to_owned(),
            description: "Lists agents that match a text, or {\"find\":{…}}".to_owned(),
            tags: vec!["find".to_owned(), "rialto".to_owned()],
        }],
    }
}

/// Which agents are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFilter {
    pub skill: Option<String>,
    /// Words that name, description or skills contain.
    pub text: Option<String>,
    pub protocol: Option<String>,
    pub max_price: Option<Credits>,
    pub min_score: Option<Score>,
}

impl AgentFilter {
    /// Whether an agent matches, and if so by which skill.
    fn matching_skill(&self, world: &World, agent: &Agent) -> Option<Option<String>> {
        if !agent.active || self.protocol.as_deref().is_some_and(|id| id != agent.home.as_str()) {
            return None;
        }
        if let Some(min) = self.min_score
            && world.agent_state(agent.id)?.standing.score < min
        {
            return None;
        }
        let affordable = |skill: &&Skill| self.max_price.is_none_or(|max| skill.price <= max);
        let mut skills = agent.skills_for_other_protocols().filter(affordable);
        if let Some(wanted) = &self.skill {
            return skills
                .find(|skill| skill.name == *wanted)
                .map(|skill| Some(skill.name.clone()));
        }
        let text = self.text.as_deref().unwrap_or_default().to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        let has = |text: &str, word: &str| text.to_lowercase().contains(word);
        let named = words.iter().all(|word| has(&agent.name, word));
        let found = skills.find(|skill| {
            named
                || words.iter().all(|word| has(&skill.name, word) || has(&skill.description, word))
        });
        match found {
            Some(skill) => Some(Some(skill.name.clone())),
            None => (named && self.max_price.is_none()).then_some(None),
        }
    }
}

/// An agent that matches, with the skill by which it does.
pub type FoundAgent = (Arc<Agent>, Option<String>);

/// The agents that match, those online first, in the order of the hub's ranking.
pub fn search(world: &World, filter: &AgentFilter, now: Timestamp) -> Vec<FoundAgent> {
    let scanned = world.agents().take(SCANNED_MAX);
    let fits = |agent: &Arc<Agent>| Some((agent.clone(), filter.matching_skill(world, agent)?));
    // An agent without skills cannot be hired.
    let has_skill = |(agent, _): &FoundAgent| !agent.skills.is_empty();
    let mut found: Vec<FoundAgent> = scanned.filter_map(fits).filter(has_skill).collect();
    found.sort_by_cached_key(|(agent, _)| {
        let place = RankRecord::load(world, agent.id);
        let place = place.map(|record| RankPosition::new(agent.id, &record));
        (!world.is_online(agent.id, now), place.is_none(), place)
    });
    found
}

/// A page of the list of agents.
pub struct AgentPage {
    pub agents: Vec<FoundAgent>,
    /// The agent after which the next page begins.
    pub next: Option<AgentId>,
    pub rows_read: usize,
}

/// The agents that match in the order of their registration, after one of them.
pub fn list(context: &A2aContext, filter: &AgentFilter, after: AgentId, limit: usize) -> AgentPage {
    context.engine.with_world(|world| {
        // Numbers are given in order and never again.
        let end = world.next.agent.0;
        let mut page = AgentPage { agents: Vec::new(), next: None, rows_read: 0 };
        for number in after.0.saturating_add(1)..end {
            if page.agents.len() == limit || page.rows_read == SCANNED_MAX {
                page.next = Some(AgentId(number - 1));
                break;
            }
            page.rows_read += 1;
            let Some(agent) = world.agent(AgentId(number)) else { continue };
            if let Some(skill) = filter.matching_skill(world, agent) {
                page.agents.push((agent.clone(), skill));
            }
        }
        page
    })
}

/// What an agent does, in a few words.
pub fn one_sentence(world: &World, agent: &Agent, skill: Option<&str>) -> String {
    let name = world.alias_of(agent.id, ID).unwrap_or_default();
    match skill.and_then(|skill| agent.skill(skill)) {
        Some(skill) if skill.by_offer => format!("{name} does {} by offer", skill.name),
        Some(skill) if skill.price.is_zero() => format!("{name} does {} for free", skill.name),
        Some(skill) => {
            format!("{name} does {} for {} credits", skill.name, price_text(skill.price))
        }
        None => name.to_owned(),
    }
}

/// The media types that an agent takes: those it registered with, or the usual ones.
pub fn input_modes(agent: &Agent) -> Vec<String> {
    own_texts(agent, INPUT_MODES).unwrap_or_else(|| MODES.map(str::to_owned).to_vec())
}

/// What an agent says about itself, or the names of its skills.
pub fn description(agent: &Agent) -> String {
    let names = || {
        let skills = agent.skills_for_other_protocols();
        let names: Vec<&str> = skills.map(|skill| skill.name.as_str()).collect();
        Some(names.join(", ")).filter(|text| !text.is_empty())
    };
    own_text(agent, "description").or_else(names).unwrap_or_else(|| agent.name.clone())
}

/// A text that the agent registered with.
fn own_text(agent: &Agent, member: &str) -> Option<String> {
    let json = ijson::read(agent.card.as_bytes()).ok()?;
    match json.get(member)?.value() {
        JsonValue::String(text) if !text.is_empty() => Some(text.clone().into_owned()),
        _ => None,
    }
}

/// The texts of a list that the agent registered with.
fn own_texts(agent: &Agent, member: &str) -> Option<Vec<String>> {
    let json = ijson::read(agent.card.as_bytes()).ok()?;
    let JsonValue::Array(items) = json.get(member)?.value() else { return None };
    let text = |item: &Json<'_>| match item.value() {
        JsonValue::String(text) => Some(text.clone().into_owned()),
        _ => None,
    };
    let texts: Vec<String> = items.iter().filter_map(text).collect();
    (!texts.is_empty()).then_some(texts)
}

/// One agent in a list (R83).
pub fn write_listed(
    context: &A2aContext,
    world: &World,
    agent: &Agent,
    skill: Option<&str>,
    now: Timestamp,
) -> String {
    let name = world.alias_of(agent.id, ID).unwrap_or_default();
    let skill = skill.and_then(|skill| agent.skill(skill));
    let description = skill.map(|skill| skill.description.as_str()).filter(|text| !text.is_empty());
    let price = skill.map(|skill| price_text(skill.price));
    ObjectWriter::new()
        .text("name", name)
        .text("description", description.unwrap_or(&agent.name))
        .text("card", &card_url(context, name))
        .text("protocol", agent.home.as_str())
        .maybe_text("skill", skill.map(|skill| skill.name.as_str()))
        .maybe_text("price", price.as_deref())
        .text("presence", presence(world, agent.id, now))
        .finish()
}

/// A list of agents as data.
pub fn write_found(items: Vec<String>, total: usize) -> String {
    ObjectWriter::new()
        .raw("agents", &write_array(items))
        .integer("total", i64::try_from(total).unwrap_or(i64::MAX))
        .finish()
}
