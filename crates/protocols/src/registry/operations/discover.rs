//! Discovery: which agents offer a skill, best first; and which skills exist.
//!
//! No key is needed. A key that is sent is checked all the same, and counts as activity of its
//! agent.

use std::collections::BTreeSet;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use rialto_core::agent::{Agent, AgentState, Liveness, Skill};
use rialto_core::money::{AmountError, Credits};
use rialto_core::reputation::Score;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_core::world::discover::DiscoveryQuery;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{HandlerResult, read_query};
use crate::adapter::RowsRead;
use crate::adapter::caller::OptionalCaller;
use crate::adapter::request::BodyBytes;
use crate::kit::budget::ByteBudget;
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{self, JsonValue};
use crate::kit::raw_json::Number;
use crate::kit::{raw_json, rfc3339};
use crate::registry::ID;
use crate::registry::RegistryContext;
use crate::registry::errors::{DISCOVERY_EXAMPLE, Failure, json_response, with_body_example};
use crate::registry::settings::DiscoverEndpoint;
use crate::registry::translate::format_amount;
use crate::registry::wire::DECIMALS;

/// The maximum and the default number of entries per page.
const LIMIT_MAX: i64 = 200;
const LIMIT: i64 = 50;
/// How many skills are listed at once.
const SKILLS_MAX: usize = 10_000;

#[derive(Serialize, JsonSchema)]
pub struct DiscoveryAnswer {
    #[schemars(with = "Vec<AgentEntry>")]
    agents: Vec<Box<RawValue>>,
    total: usize,
    /// Where the next page begins, if there is one. A page ends early when it is large.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

struct DiscoverParams {
    skill: String,
    min_reputation: i64,
    max_cost: Option<Credits>,
    min_jobs: u64,
    limit: usize,
    offset: usize,
}

/// `GET /discover?skill=…` (§3.2).
pub async fn discover_by_query(
    State(context): State<RegistryContext>,
    _: OptionalCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = read_query(raw)?;
    let skill = query.text("skill").filter(|skill| !skill.is_empty());
    let missing = || Failure::field("?skill", "skill is required");
    let no_score = || Failure::field("?min_reputation", format!("min_reputation {NOT_A_SCORE}"));
    let question = DiscoverParams {
        skill: skill.ok_or_else(missing)?.to_owned(),
        min_reputation: query
            .text("min_reputation")
            .map_or(Some(0), least_score)
            .ok_or_else(no_score)?,
        max_cost: query.credits("max_cost", DECIMALS)?,
        min_jobs: query.integer("min_jobs", 0..=i64::MAX)?.unwrap_or(0).unsigned_abs(),
        limit: query.integer("limit", 1..=LIMIT_MAX)?.unwrap_or(LIMIT) as usize,
        offset: query.integer("offset", 0..=i64::MAX)?.unwrap_or(0) as usize,
    };
    Ok(find(&context, &question))
}

/// `POST /discover`: the same parameters as JSON (D1).
pub async fn discover_by_body(
    State(context): State<RegistryContext>,
    _: OptionalCaller,
    sent: BodyBytes,
) -> HandlerResult {
    let whole = with_body_example(DISCOVERY_EXAMPLE);
    let body = ijson::read(&sent.0).map_err(Malformed::from).map_err(&whole)?;
    let f = Fields::read(&body, "").map_err(&whole)?;
    let within = |name: &str, low: i64, high: i64| match f.integer(name)? {
        Some(n) if !(low..=high).contains(&n) => {
            Err(f.malformed(name, format!("must be a whole number from {low} to {high}")))
        }
        found => Ok(found),
    };
    let skill = f.required_text("skill")?;
    if skill.is_empty() {
        return Err(f.malformed("skill", "is required").into());
    }
    let question = DiscoverParams {
        skill: skill.to_owned(),
        min_reputation: min_reputation(&f)?,
        max_cost: f.credits("max_cost", DECIMALS)?,
        min_jobs: within("min_jobs", 0, i64::MAX)?.unwrap_or(0).unsigned_abs(),
        limit: within("limit", 1, LIMIT_MAX)?.unwrap_or(LIMIT) as usize,
        offset: within("offset", 0, i64::MAX)?.unwrap_or(0) as usize,
    };
    Ok(find(&context, &question))
}

/// The lowest accepted score, from a body.
fn min_reputation(f: &Fields<'_, '_>) -> Result<i64, Malformed> {
    const NAME: &str = "min_reputation";
    let Some(given) = f.get(NAME) else { return Ok(0) };
    let found = match given.value() {
        JsonValue::Number(digits) => least_score(digits),
        _ => None,
    };
    found.ok_or_else(|| f.malformed(NAME, NOT_A_SCORE))
}

const NOT_A_SCORE: &str = "must be a number from 0 to 100";

/// The lowest score, in millionths, that is not below the number.
fn least_score(digits: &str) -> Option<i64> {
    let millionths = match Credits::parse(digits, 6) {
        Ok(exact) => exact.micros(),
        // A computed bound such as 66.66666666666667 falls between two scores; the upper one is
        // used.
        Err(AmountError::TooManyDecimals { .. }) => {
            (digits.parse::<f64>().ok()? * 1e6).ceil() as i64
        }
        Err(_) => return None,
    };
    Some(millionths).filter(|score| *score <= Score::MAX.millionths())
}

fn find(context: &RegistryContext, question: &DiscoverParams) -> Response {
    let wanted = DiscoveryQuery {
        skill: &question.skill,
        min_score: Score::from_millionths(question.min_reputation),
        max_price: question.max_cost,
        min_jobs: question.min_jobs,
        limit: question.limit,
        offset: question.offset,
    };
    let now = context.engine.now();
    let (found, candidates) = context.engine.with_world(|world| {
        let candidates =
            world.skills.count_online(wanted.skill, wanted.max_price, wanted.min_score);
        (world.discover(&wanted, now), candidates)
    });
    let (mut agents, mut budget) = (Vec::new(), ByteBudget::default());
    for one in &found.agents {
        // One at a time: an entry may be large, and writers wait while the world is being read.
        let entry = context.engine.with_world(|world| {
            let (agent, agent_state) = world.agent(one.agent).zip(world.agent_state(one.agent))?;
            Some(agent_entry(context, world, (agent, agent_state), Some(&question.skill), now))
        });
        let Some(text) = entry.and_then(|entry| budget.write(&entry)) else { break };
        agents.push(text);
    }
    let next = question.offset.saturating_add(agents.len());
    let next_offset = (!agents.is_empty() && next < found.total).then_some(next);
    let mut answer =
        json_response(200, &DiscoveryAnswer { agents, total: found.total, next_offset });
    // The index cannot filter by the number of jobs, so every agent with the skill is read.
    if question.min_jobs > 0 {
        answer.extensions_mut().insert(RowsRead(candidates));
    }
    answer
}

/// An agent as discovery shows it.
#[derive(Serialize, JsonSchema)]
pub struct AgentEntry {
    agent_id: String,
    agent_name: String,
    api_endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill: Option<MatchedSkill>,
    reputation_score: Number,
    status: &'static str,
    owner_id: String,
    skills: Vec<SkillEntry>,
    hub_endpoint: String,
    protocol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_id: Option<String>,
    jobs_settled: u64,
    registered_at: String,
    last_heartbeat: String,
}

/// The skill that was asked for.
#[derive(Serialize, JsonSchema)]
pub struct MatchedSkill {
    skill_name: String,
    cost_per_call: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
pub struct SkillEntry {
    skill_name: String,
    description: String,
    cost_per_call: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<&'static str>,
    input_schema: Box<RawValue>,
    output_schema: Box<RawValue>,
}

/// One discovery entry; with `asked`, the matching skill.
pub fn agent_entry(
    context: &RegistryContext,
    world: &World,
    (agent, agent_state): (&Agent, &AgentState),
    asked: Option<&str>,
    now: Timestamp,
) -> AgentEntry {
    let id = world.alias_of(agent.id, ID).unwrap_or_default().to_owned();
    let hub_endpoint = format!("{}/registry/agents/{id}", context.hub_url);
    let own = agent.endpoint.clone().filter(|_| {
        agent.home == ID
            && agent.liveness == Liveness::ByEndpoint
            && context.state.settings.discover_endpoint == DiscoverEndpoint::Agent
    });
    let owner = world.owner(agent.owner).map(|owner| owner.name.clone()).unwrap_or_default();
    let skill = asked.and_then(|name| agent.skill(name)).map(|skill| MatchedSkill {
        skill_name: skill.name.clone(),
        cost_per_call: format_amount(round_price_up(skill.price)),
        price: by_offer(skill),
    });
    let offered = agent.skills_for_other_protocols().map(|skill| SkillEntry {
        skill_name: skill.name.clone(),
        description: skill.description.clone(),
        cost_per_call: format_amount(round_price_up(skill.price)),
        price: by_offer(skill),
        input_schema: raw_json::verbatim(&skill.input),
        output_schema: raw_json::verbatim(&skill.output),
    });
    AgentEntry {
        agent_id: id,
        agent_name: agent.name.clone(),
        api_endpoint: own.unwrap_or_else(|| hub_endpoint.clone()),
        skill,
        reputation_score: raw_json::score(agent_state.standing.score.millionths()),
        status: if world.is_online(agent.id, now) { "online" } else { "offline" },
        owner_id: owner,
        skills: offered.collect(),
        hub_endpoint,
        protocol: agent.home.to_string(),
        native_id: (agent.home != ID).then(|| agent.native_id.clone()),
        jobs_settled: agent_state.standing.settled_jobs(),
        registered_at: rfc3339::format_seconds(agent.registered_at),
        // An agent that sent nothing since it registered was last active then.
        last_heartbeat: rfc3339::format_seconds(
            agent_state.presence.last_heartbeat.unwrap_or(agent.registered_at),
        ),
    }
}

/// Marks skills whose price is offered for each job (B9).
fn by_offer(skill: &Skill) -> Option<&'static str> {
    skill.by_offer.then_some("by_offer")
}

/// A price in this protocol's price step: rounded up, so that no worker gets less than it asked
/// for.
fn round_price_up(amount: Credits) -> Credits {
    amount.ceil(DECIMALS).unwrap_or(amount)
}

#[derive(Serialize, JsonSchema)]
pub struct SkillsAnswer {
    skills: Vec<String>,
    total_agents: usize,
    /// The last listed name, if there are more; `?after=` with it lists those.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<String>,
}

/// `GET /skills`: in alphabetical order, after a name if one is given.
pub async fn skills(
    State(context): State<RegistryContext>,
    _: OptionalCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = read_query(raw)?;
    let after = query.text("after").unwrap_or_default();
    let (names, total_agents) = context.engine.with_world(|world| {
        (first_names(world.skills.online_names(), after, SKILLS_MAX), world.online_count())
    });
    let (all, mut budget) = (names.len(), ByteBudget::default());
    let mut skills: Vec<String> = Vec::new();
    for name in names {
        // The length with every character escaped.
        if skills.len() == SKILLS_MAX || !budget.take(name.len() * 6 + 2) {
            break;
        }
        skills.push(name);
    }
    let next_after = skills.last().filter(|_| skills.len() < all).cloned();
    Ok(json_response(200, &SkillsAnswer { skills, total_agents, next_after }))
}

/// The first names after one, in order, and one more than requested if there are more. Only these
/// are copied.
fn first_names<'n>(
    names: impl Iterator<Item = &'n str>,
    after: &str,
    wanted: usize,
) -> Vec<String> {
    let mut first = BTreeSet::new();
    for name in names.filter(|name| *name > after) {
        first.insert(name);
        if first.len() > wanted + 1 {
            first.pop_last();
        }
    }
    first.into_iter().map(str::to_owned).collect()
}

#[derive(Serialize, JsonSchema)]
pub struct HealthAnswer {
    service: &'static str,
    status: &'static str,
    agents_online: usize,
    total_skills: usize,
}

/// `GET /health`.
pub async fn health(State(context): State<RegistryContext>, _: OptionalCaller) -> HandlerResult {
    let (agents_online, total_skills) = context
        .engine
        .with_world(|world| (world.online_count(), world.skills.online_names().count()));
    let writable = context.engine.is_writable();
    let status = if writable { "healthy" } else { "unavailable" };
    let body = HealthAnswer { service: "registry", status, agents_online, total_skills };
    Ok(json_response(if writable { 200 } else { 503 }, &body))
}
