//! Directory entries of agents, whatever their home protocol.

use std::sync::Arc;

use rialto_core::agent::presence::Stance;
use rialto_core::agent::{Agent, Desk, Skill};
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;

use super::ID;
use super::directory::Standing;
use super::message::report::Details;
use super::message::{Metrics, Report, StatusUpdate, identity};
use super::score::Score;
use super::state::{Category, Status};
use crate::adapter::naming;
use crate::kit::ijson;
use crate::kit::object::Object;

/// The rank of agents without a finished collaboration (R87).
const UNKNOWN: i64 = 500_000;

/// The hub's own score of an agent; `None` before the first finished collaboration.
pub fn score(desk: &Desk, scale: Millis) -> Option<Score> {
    let millionths = desk.window.score(scale)?;
    u32::try_from(millionths).ok().and_then(Score::new)
}

/// The value by which agents are ranked.
pub fn rank(desk: &Desk, scale: Millis) -> i64 {
    desk.window.score(scale).unwrap_or(UNKNOWN)
}

/// The figures of the score: rates over the last hundred collaborations, counts over all (R44).
pub fn metrics(desk: &Desk) -> Metrics {
    let whole = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
    let rates = desk.window.rates();
    let rate = |n: i64| u32::try_from(n).ok().and_then(Score::new);
    Metrics {
        total_collaborations: whole(desk.standing.settled()),
        successful_collaborations: whole(desk.standing.successes),
        failed_collaborations: whole(desk.standing.failures),
        success_rate: rates.and_then(|rates| rate(rates.success)),
        average_response_time_ms: rates.map(|rates| rates.average.0),
        on_time_completion_rate: rates.and_then(|rates| rate(rates.on_time)),
    }
}

/// The status that counts, with running work taken into account.
pub fn effective(world: &World, agent: &Agent) -> Status {
    let stance = world.desk(agent.id).map_or(Stance::Idle, |desk| desk.presence.stance);
    let works = world.work_of(agent.id).any(|job| job.is_worked_on());
    match stance {
        Stance::Error | Stance::Broken if agent.home == ID => Status::Error,
        Stance::Maintenance if agent.home == ID => Status::Maintenance,
        Stance::Busy => Status::Busy,
        // An error or maintenance is never invented for agents of other protocols
        // (docs/requirements.md, section 7).
        _ if works => Status::Busy,
        _ => Status::Idle,
    }
}

/// Whether an agent that must report has not done so in time (R33).
pub fn is_stale(world: &World, agent: &Agent, now: Timestamp) -> bool {
    let away = matches!(effective(world, agent), Status::Error | Status::Maintenance);
    !away && !world.is_online(agent.id, now)
}

/// The number of running collaborations of an agent.
pub fn active(world: &World, agent: &Agent) -> u64 {
    world.work_of(agent.id).filter(|job| job.is_worked_on()).count() as u64
}

/// An agent's status as the hub reports it.
pub fn report(world: &World, agent: &Agent, since: Timestamp) -> Report {
    let status = effective(world, agent);
    let busy = (status == Status::Busy).then(|| active(world, agent).max(1));
    let active_tasks = busy.and_then(|n| i64::try_from(n).ok());
    let details = Details { active_tasks, ..Details::default() };
    Report { status, at: since, details }
}

/// The last status that the agent reported.
pub fn said(desk: &Desk) -> Option<Report> {
    let words = &desk.said.as_ref()?.words;
    let update = super::message::read::<StatusUpdate>(words.as_bytes()).ok()?;
    Some(update.said.report)
}

/// An agent's data at one moment. Its own text is parsed later, without holding a lock.
pub struct Glimpse {
    pub agent: Arc<Agent>,
    desk: Arc<Desk>,
    effective: Status,
    stale: bool,
    active: u64,
    /// The status as the hub reports it.
    report: Report,
    name: String,
}

impl Glimpse {
    pub fn of(world: &World, agent: &Arc<Agent>, now: Timestamp) -> Option<Self> {
        let desk = world.desk(agent.id)?.clone();
        let began = world.work_of(agent.id).filter_map(|job| job.accepted_at).max();
        let said_at = || desk.said.as_ref().map_or(desk.presence.seen, |said| said.at);
        let since = began.unwrap_or_else(said_at);
        Some(Self {
            effective: effective(world, agent),
            stale: is_stale(world, agent, now),
            active: active(world, agent),
            report: report(world, agent, since),
            name: world.name_of(agent.id, ID)?.to_owned(),
            agent: agent.clone(),
            desk,
        })
    }

    /// What the hub knows about the agent.
    pub fn standing(&self, scale: Millis) -> Standing<'_> {
        let last = said(&self.desk).filter(|report| report.status == self.effective);
        let Agent { home, native, .. } = &*self.agent;
        Standing {
            report: Some(last.unwrap_or_else(|| self.report.clone())),
            effective_status: self.effective,
            stale: self.stale,
            active_collaborations: self.active,
            score: score(&self.desk, scale),
            metrics: metrics(&self.desk),
            registered_at: self.agent.registered_at,
            native: (*home != ID).then_some((home.as_str(), native.as_str())),
        }
    }

    /// The published identity, or for a bridged agent an equivalent one.
    pub fn identity(&self) -> String {
        identity(&self.agent, &self.name)
    }
}

/// Whether an agent can be shown as an identity, which needs at least one capability (R12).
pub fn has_identity(agent: &Agent) -> bool {
    agent.home == ID || agent.skills_for_others().next().is_some()
}

/// The identity of an agent: as published, or for a bridged agent an equivalent one.
fn identity(agent: &Agent, id: &str) -> String {
    if agent.home == ID && agent.card.len() > 2 {
        return agent.card.clone();
    }
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    let name = format!("chimera-bridge-{}-{digits}", naming::slug(agent.first_name()));
    let listed: Vec<_> = agent.skills_for_others().map(capability).collect();
    let schemas = |of: fn(&Skill) -> &str| {
        let all = agent.skills_for_others();
        all.fold(Object::new(), |map, skill| map.raw(&skill.name, &schema(of(skill)))).finish()
    };
    let capabilities = Object::new()
        .raw("advertised_capabilities", &format!("[{}]", listed.join(",")))
        .raw("input_schemas", &schemas(|skill| &skill.input))
        .raw("output_schemas", &schemas(|skill| &skill.output))
        .finish();
    let identity = Object::new()
        .text("agent_id", id)
        .text("agent_name", &name)
        .text("agent_type", identity::AGENT_TYPE)
        .text("version", "0.0.0")
        .raw("capabilities", &capabilities);
    identity.finish()
}

fn capability(skill: &Skill) -> String {
    let about: String = skill.about.chars().take(1_000).collect();
    Object::new()
        .text("capability_id", &skill.name)
        .text("capability_name", &skill.name)
        .text("description", &about)
        .text("category", Category::of_name(&skill.name).as_str())
        .maybe_whole("estimated_duration_ms", skill.takes.map(|takes| takes.0))
        .flag("requires_approval", skill.approval)
        .amount("price", skill.price)
        .maybe_raw("price_by", skill.by_offer.then_some("\"offer\""))
        .finish()
}

/// The category of a skill: as its agent states it, or guessed from its name.
pub fn category_of(skill: &Skill) -> Category {
    let said = skill.sort.as_deref().and_then(Category::read);
    said.unwrap_or_else(|| Category::of_name(&skill.name))
}

/// Turns a schema that only names types into a JSON Schema. A JSON Schema stays as it is.
pub fn schema(given: &str) -> String {
    let Ok(json) = ijson::read(given.as_bytes()) else { return "{}".to_owned() };
    let ijson::Kind::Object(members) = json.kind() else { return "{}".to_owned() };
    let toy = |value: &ijson::Json<'_>| matches!(value.kind(), ijson::Kind::Text(_));
    if members.is_empty() || !members.iter().all(|(_, value)| toy(value)) {
        return given.to_owned();
    }
    let properties = members.iter().fold(Object::new(), |all, (name, value)| {
        let ijson::Kind::Text(word) = value.kind() else { return all };
        match json_type(word) {
            Some(name_of_type) => {
                let one = Object::new().text("type", name_of_type).finish();
                all.raw(name, &one)
            }
            None => all.raw(name, "{}"),
        }
    });
    let required = crate::kit::object::texts(members.iter().map(|(name, _)| name.as_ref()));
    Object::new()
        .text("type", "object")
        .raw("properties", &properties.finish())
        .raw("required", &required)
        .finish()
}

fn json_type(word: &str) -> Option<&'static str> {
    Some(match word {
        "string" => "string",
        "number" | "float" => "number",
        "int" | "integer" => "integer",
        "bool" | "boolean" => "boolean",
        "list" | "array" => "array",
        "dict" | "object" => "object",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_in_words_become_a_schema_and_schemas_stay() {
        let toy = schema(r#"{"text":"string","n":"int","x":"money"}"#);
        let json: serde_json::Value = serde_json::from_str(&toy).expect("JSON");
        assert_eq!(json["properties"]["n"]["type"], "integer");
        assert_eq!(json["properties"]["x"], serde_json::json!({}));
        assert_eq!(json["required"], serde_json::json!(["text", "n", "x"]));
        let real = r#"{"type":"object","properties":{}}"#;
        assert_eq!(schema(real), real);
        assert_eq!((schema("{}").as_str(), schema("nonsense").as_str()), ("{}", "{}"));
    }
}
