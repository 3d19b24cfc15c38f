//! An agent as the directory shows it, whichever protocol it is at home in.

use rialto_core::agent::presence::Stance;
use rialto_core::agent::{Agent, Desk, Skill};
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use uuid::Uuid;

use super::ID;
use super::directory::Standing;
use super::message::report::Details;
use super::message::{Metrics, Report, StatusUpdate, identity};
use super::score::Score;
use super::state::{Category, Status};
use crate::face::naming;
use crate::kit::ijson;
use crate::kit::object::Object;

/// What agents without a finished collaboration are ranked as (R87).
const UNKNOWN: i64 = 500_000;

/// The hub's own score of an agent; none before the first finished collaboration.
pub fn score(desk: &Desk, scale: Millis) -> Option<Score> {
    let millionths = desk.window.score(scale)?;
    u32::try_from(millionths).ok().and_then(Score::new)
}

/// What an agent is ranked by.
pub fn rank(desk: &Desk, scale: Millis) -> i64 {
    desk.window.score(scale).unwrap_or(UNKNOWN)
}

/// What the score is made of: rates over the last hundred, counts over a life (R44).
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

/// How an agent counts, its work considered.
pub fn effective(world: &World, agent: &Agent) -> Status {
    let stance = world.desk(agent.id).map_or(Stance::Idle, |desk| desk.presence.stance);
    let works = world.work_of(agent.id).any(|job| job.is_worked_on());
    match stance {
        Stance::Error | Stance::Broken if agent.home == ID => Status::Error,
        Stance::Maintenance if agent.home == ID => Status::Maintenance,
        Stance::Busy => Status::Busy,
        // Errors and maintenance of other protocols are never invented here (between, section 7).
        _ if works => Status::Busy,
        _ => Status::Idle,
    }
}

/// Whether an agent that should be heard has not been (R33).
pub fn is_stale(world: &World, agent: &Agent, now: Timestamp) -> bool {
    let away = matches!(effective(world, agent), Status::Error | Status::Maintenance);
    !away && !world.is_online(agent.id, now)
}

/// How many of its collaborations run.
pub fn active(world: &World, agent: &Agent) -> u64 {
    world.work_of(agent.id).filter(|job| job.is_worked_on()).count() as u64
}

/// How an agent is, as the hub would say it.
pub fn report(world: &World, agent: &Agent, since: Timestamp) -> Report {
    let status = effective(world, agent);
    let busy = (status == Status::Busy).then(|| active(world, agent).max(1));
    let active_tasks = busy.and_then(|n| i64::try_from(n).ok());
    let details = Details { active_tasks, ..Details::default() };
    Report { status, at: since, details }
}

/// How an agent last said it is.
pub fn said(desk: &Desk) -> Option<Report> {
    let words = &desk.said.as_ref()?.words;
    let update = super::message::read::<StatusUpdate>(words.as_bytes()).ok()?;
    Some(update.said.report)
}

/// What the hub knows of an agent.
pub fn standing<'w>(
    world: &'w World,
    agent: &'w Agent,
    scale: Millis,
    now: Timestamp,
) -> Option<Standing<'w>> {
    let desk = world.desk(agent.id)?;
    let effective_status = effective(world, agent);
    let last = said(desk).filter(|report| report.status == effective_status);
    let began = world.work_of(agent.id).filter_map(|job| job.accepted_at).max();
    let said_at = || desk.said.as_ref().map_or(desk.presence.seen, |said| said.at);
    let since = began.unwrap_or_else(said_at);
    Some(Standing {
        report: Some(last.unwrap_or_else(|| report(world, agent, since))),
        effective_status,
        stale: is_stale(world, agent, now),
        active_collaborations: active(world, agent),
        score: score(desk, scale),
        metrics: metrics(desk),
        registered_at: agent.registered_at,
        native: (agent.home != ID).then(|| (agent.home.as_str(), agent.native.as_str())),
    })
}

/// The identity of an agent: what it published, or what it would have if it were at home here.
pub fn identity(world: &World, agent: &Agent) -> Option<String> {
    if agent.home == ID && agent.card.len() > 2 {
        return Some(agent.card.clone());
    }
    let id: Uuid = world.name_of(agent.id, ID)?.parse().ok()?;
    let digits = id.simple().to_string();
    let name = format!("chimera-bridge-{}-{}", naming::slug(&agent.name), &digits[..8]);
    let listed: Vec<_> = agent.skills.iter().map(capability).collect();
    let schemas = |of: fn(&Skill) -> &str| {
        let all = agent.skills.iter();
        all.fold(Object::new(), |map, skill| map.raw(&skill.name, &schema(of(skill)))).finish()
    };
    let capabilities = Object::new()
        .raw("advertised_capabilities", &format!("[{}]", listed.join(",")))
        .raw("input_schemas", &schemas(|skill| &skill.input))
        .raw("output_schemas", &schemas(|skill| &skill.output))
        .finish();
    let identity = Object::new()
        .id("agent_id", id)
        .text("agent_name", &name)
        .text("agent_type", identity::AGENT_TYPE)
        .text("version", "0.0.0")
        .raw("capabilities", &capabilities);
    Some(identity.finish())
}

fn capability(skill: &Skill) -> String {
    let about: String = skill.about.chars().take(1_000).collect();
    Object::new()
        .text("capability_id", &skill.name)
        .text("capability_name", &skill.name)
        .text("description", &about)
        .text("category", category(&skill.name).as_str())
        .maybe_whole("estimated_duration_ms", skill.takes.map(|takes| takes.0))
        .flag("requires_approval", skill.approval)
        .amount("price", skill.price)
        .finish()
}

/// What sort of thing a capability of an agent does: as it says, or as its name does.
pub fn category_of(agent: &Agent, name: &str) -> Category {
    said_category(agent, name).unwrap_or_else(|| category(name))
}

/// Looked for in the text: compiling an identity only to list it would cost too much.
fn said_category(agent: &Agent, name: &str) -> Option<Category> {
    if agent.home != ID {
        return None;
    }
    let json = ijson::read(agent.card.as_bytes()).ok()?;
    let ijson::Kind::List(all) = json.get("capabilities")?.get("advertised_capabilities")?.kind()
    else {
        return None;
    };
    let text = |json: &ijson::Json<'_>, member: &str| match json.get(member)?.kind() {
        ijson::Kind::Text(text) => Some(text.to_string()),
        _ => None,
    };
    let own = all.iter().find(|one| text(one, "capability_id").as_deref() == Some(name))?;
    Category::read(&text(own, "category")?)
}

/// What sort of thing a capability of another protocol does, by words in its name.
pub fn category(name: &str) -> Category {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["trend"]) {
        Category::TrendAnalysis
    } else if has(&["consume", "ingest"]) {
        Category::TrendConsumption
    } else if has(&["valid", "check", "review", "moderat"]) {
        Category::ContentValidation
    } else {
        Category::ContentGeneration
    }
}

/// A schema that only names types, as a JSON Schema; what is one already stays.
fn schema(given: &str) -> String {
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
    fn categories_go_by_words_in_the_name() {
        for (name, category_of) in [
            ("find_trends", Category::TrendAnalysis),
            ("ingest_feed", Category::TrendConsumption),
            ("consume", Category::TrendConsumption),
            ("moderation", Category::ContentValidation),
            ("fact_check", Category::ContentValidation),
            ("translate", Category::ContentGeneration),
        ] {
            assert_eq!(category(name), category_of, "{name}");
        }
    }

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
