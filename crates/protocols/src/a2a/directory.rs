//! What the hub publishes about agents: cards, the list of agents, and the catalog.

use std::sync::Arc;

use rialto_core::agent::{Agent, Skill};
use rialto_core::alias::Protocol;
use rialto_core::id::AgentId;
use rialto_core::money::Credits;
use rialto_core::reputation::{Outcome, Score};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::Failure;

use super::remote::RemoteAgent;
use super::translate::price_text;
use super::wire::agent_card::{AgentCard, CardSkill, Extension};
use super::wire::message::write_array;
use super::{A2aContext, ID, extensions};
use crate::adapter::INPUT_MODES;
use crate::adapter::rank::{RankPosition, RankRecord};
use crate::kit::budget::ByteBudget;
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::kit::rfc3339;

/// What cards say about the extension for hiring.
const HIRE_TEXT: &str = "Choose a skill, set a budget and a deadline";
/// Schemas on a card that is public have at most this many bytes (2.4).
const SCHEMA_MAX: usize = 16 << 10;
/// The modes of agents of other protocols.
const MODES: [&str; 2] = ["application/json", "text/plain"];
/// How many agents of a search are shown, and how many are looked at.
pub const FOUND_MAX: usize = 20;
const SCANNED_MAX: usize = 10_000;
/// Agents read at once; between two slices the lane may publish.
const SLICE: usize = 512;
/// Words of a text that are looked for, and characters of each.
const WORDS_MAX: usize = 16;
const WORD_CHARS_MAX: usize = 64;
/// Words shorter than this say little, unless all are.
const WORD_CHARS_MIN: usize = 3;

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

/// The newest job that an agent finished, which its card counts.
pub async fn last_outcome(context: &A2aContext, id: AgentId) -> Result<Option<Outcome>, Failure> {
    let last = context.engine.with_world(|world| world.agent_state(id)?.last_outcome);
    match last {
        Some(last) => Ok(context.engine.outcomes_of(Some(last), 1).await?.rows.pop()),
        None => Ok(None),
    }
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
    let mut extensions =
        extensions_of(world, agent, &skills, scores, audience, context.engine.now());
    extensions.extend(RemoteAgent::of(agent).iter().flat_map(RemoteAgent::card_extensions));
    Some(AgentCard {
        name: agent.name.clone(),
        description: description(agent),
        version: own_text(agent, "version").unwrap_or_else(|| "1".to_owned()),
        organization: owner.unwrap_or_default(),
        hub_url: context.hub_url.clone(),
        url: agent_url(context, name),
        needs_key: !context.state.settings.is_open(),
        extensions,
        input_modes: input_modes(agent),
        output_modes: output_modes(agent),
        skills: card_skills(&skills, agent.home.as_str()),
    })
}

/// The skills of a card. Lists of a card are never empty (R4), so an agent without skills says that
/// it has none.
fn card_skills(skills: &[&Skill], protocol: &str) -> Vec<CardSkill> {
    if !skills.is_empty() {
        return skills.iter().map(|skill| card_skill(skill, protocol)).collect();
    }
    vec![CardSkill {
        id: "none".to_owned(),
        name: "none".to_owned(),
        description: "This agent takes no tasks; it only calls others".to_owned(),
        tags: vec!["none".to_owned(), protocol.to_owned()],
    }]
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
    let prices = prices.finish();
    let hire = ObjectWriter::new()
        .text("currency", "credits")
        .maybe_raw("skills", Some(prices.as_str()).filter(|text| *text != "{}"))
        .finish();
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
    let mut all = vec![extension(extensions::HIRE, HIRE_TEXT, Some(hire))];
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
    let description = "The front desk of a market of agents: finds them and hires them";
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
                description: HIRE_TEXT.to_owned(),
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
        input_modes: hub_modes(),
        output_modes: hub_modes(),
        skills: vec![
            hub_skill(
                "find_agents",
                "Say what you need; the answer lists agents with prices and cards",
                "discovery",
            ),
            hub_skill(
                "hire",
                "Name a skill, a budget and a way to choose; the best agent does it",
                "market",
            ),
        ],
    }
}

fn hub_skill(name: &str, description: &str, tag: &str) -> CardSkill {
    CardSkill {
        id: name.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        tags: vec![tag.to_owned()],
    }
}

/// Which agents are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFilter {
    pub skill: Option<String>,
    /// Words in the agent's name, or in the name or description of a skill.
    pub words: Words,
    pub protocol: Option<String>,
    pub max_price: Option<Credits>,
    pub min_score: Option<Score>,
}

/// Words to look for, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(Vec<String>);

impl Words {
    /// The words of a text. Short ones are left out if there are others.
    pub fn of(text: &str) -> Self {
        let cut = |word: &str| word.chars().take(WORD_CHARS_MAX).collect::<String>();
        let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let text = text.to_lowercase();
        let all = text.split(|c: char| !is_letter(c)).filter(|word| !word.is_empty());
        let (long, short): (Vec<String>, Vec<String>) =
            all.map(cut).partition(|word| word.chars().count() >= WORD_CHARS_MIN);
        let mut words = if long.is_empty() { short } else { long };
        words.truncate(WORDS_MAX);
        Self(words)
    }

    /// How many of the words one of the texts contains.
    fn count_in(&self, texts: &[&str]) -> usize {
        let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
        let is_found = |word: &&String| texts.iter().any(|text| text.contains(word.as_str()));
        self.0.iter().filter(is_found).count()
    }
}

/// A skill of an agent that matches, and how many words it has.
struct Match {
    /// None if the agent matches by its name alone.
    skill: Option<String>,
    words: usize,
}

impl AgentFilter {
    /// By which of its skills an agent matches best, if it does.
    fn best_match(&self, world: &World, agent: &Agent) -> Option<Match> {
        if !agent.active || self.protocol.as_deref().is_some_and(|id| id != agent.home.as_str()) {
            return None;
        }
        if let Some(min) = self.min_score
            && world.agent_state(agent.id)?.standing.score < min
        {
            return None;
        }
        let affordable = |skill: &&Skill| self.max_price.is_none_or(|max| skill.price <= max);
        let named = |skill: &&Skill| self.skill.as_ref().is_none_or(|name| *name == skill.name);
        let skills = agent.skills_for_other_protocols().filter(affordable).filter(named);
        let found = skills.map(|skill| Match {
            words: self.words.count_in(&[&agent.name, &skill.name, &skill.description]),
            skill: Some(skill.name.clone()),
        });
        // Of equal skills the first.
        let best = found.reduce(|best, next| if next.words > best.words { next } else { best });
        let any_skill = self.skill.is_none() && self.max_price.is_none();
        let by_name = || Match { skill: None, words: self.words.count_in(&[&agent.name]) };
        best.or_else(|| any_skill.then(by_name))
            .filter(|found| found.words > 0 || self.words.0.is_empty())
    }
}

/// An agent that matches, with the skill by which it does.
pub type FoundAgent = (Arc<Agent>, Option<String>);

/// The next agents in the order of their registration, and the last one read if there are more.
fn read_slice(world: &World, after: AgentId) -> (Vec<Arc<Agent>>, Option<AgentId>) {
    // Numbers are given in order and never again.
    let end = world.next.agent.0;
    let first = after.0.saturating_add(1).min(end);
    let last = first.saturating_add(SLICE as u64).min(end);
    let agents = (first..last).filter_map(|number| world.agent(AgentId(number)).cloned());
    (agents.collect(), (last < end).then(|| AgentId(last - 1)))
}

/// What a search found.
#[derive(Default)]
pub struct SearchResult {
    /// The best agents, at most as many as wanted.
    pub agents: Vec<FoundAgent>,
    /// How many match.
    pub total: usize,
    pub rows_read: usize,
}

/// The agents that have the most of the words, those online first, in the order of the hub's
/// ranking.
pub fn search(context: &A2aContext, filter: &AgentFilter, limit: usize) -> SearchResult {
    let engine = &context.engine;
    let now = engine.now();
    let mut result = SearchResult::default();
    let (mut found, mut most, mut after) = (Vec::new(), 0, AgentId(0));
    while result.rows_read < SCANNED_MAX {
        let next = engine.with_world(|world| {
            let (agents, next) = read_slice(world, after);
            result.rows_read += agents.len();
            for agent in agents {
                // An agent without skills cannot be hired.
                let Some(one) = filter.best_match(world, &agent).filter(|one| one.skill.is_some())
                else {
                    continue;
                };
                if one.words < most {
                    continue;
                }
                if one.words > most {
                    most = one.words;
                    found.clear();
                }
                let record = RankRecord::load(world, agent.id);
                let place = record.map(|record| RankPosition::new(agent.id, &record));
                let key = (!world.is_online(agent.id, now), place.is_none(), place);
                found.push((key, agent, one.skill));
            }
            next
        });
        match next {
            Some(last) => after = last,
            None => break,
        }
    }
    found.sort_by_key(|(key, ..)| *key);
    result.total = found.len();
    let best = found.into_iter().take(limit);
    result.agents = best.map(|(_, agent, skill)| (agent, skill)).collect();
    result
}

/// A page of the list of agents.
pub struct AgentPage {
    /// JSON texts.
    pub items: Vec<String>,
    /// The agent after which the next page begins.
    pub next: Option<AgentId>,
    pub rows_read: usize,
}

/// The agents that match in the order of their registration, after one of them, each as it is
/// written. One without skills cannot be hired, and is left out. The page ends early when it is
/// long.
pub fn list(
    context: &A2aContext,
    filter: &AgentFilter,
    after: AgentId,
    limit: usize,
    write: impl Fn(&World, &Agent, Option<&str>) -> Option<String>,
) -> AgentPage {
    let mut budget = ByteBudget::default();
    let mut page = AgentPage { items: Vec::new(), next: None, rows_read: 0 };
    let mut after = after;
    loop {
        // One slice at a time, so that a long list does not block writers.
        let next = context.engine.with_world(|world| {
            let (agents, next) = read_slice(world, after);
            for agent in agents {
                let has_all = |one: &Match| one.words == filter.words.0.len();
                let is_hireable = agent.skills_for_other_protocols().next().is_some();
                let found = filter.best_match(world, &agent).filter(has_all);
                let found = found.filter(|_| is_hireable);
                let item = found.and_then(|one| write(world, &agent, one.skill.as_deref()));
                if let Some(item) = item {
                    if page.items.len() == limit || !budget.take(item.len()) {
                        page.next = Some(after);
                        return None;
                    }
                    page.items.push(item);
                }
                page.rows_read += 1;
                after = agent.id;
            }
            next
        });
        match next {
            Some(_) if page.rows_read >= SCANNED_MAX => {
                page.next = Some(after);
                return page;
            }
            Some(last) => after = last,
            None => return page,
        }
    }
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

/// The media types that the hub takes, and agents that state none.
pub fn hub_modes() -> Vec<String> {
    MODES.map(str::to_owned).to_vec()
}

/// The media types that an agent takes: those it registered with, or the usual ones.
pub fn input_modes(agent: &Agent) -> Vec<String> {
    own_texts(agent, INPUT_MODES).unwrap_or_else(hub_modes)
}

/// The media types of what an agent makes.
pub fn output_modes(agent: &Agent) -> Vec<String> {
    let own = Some(agent).filter(|agent| agent.home == ID);
    own.and_then(|agent| own_texts(agent, "output_modes")).unwrap_or_else(hub_modes)
}

/// The extensions that callers of an agent must support, because its own card requires them (R49).
pub fn required_extensions(agent: &Agent) -> Vec<String> {
    let own = Some(agent).filter(|agent| agent.home == ID);
    own.and_then(|agent| own_texts(agent, "required_extensions")).unwrap_or_default()
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
