//! `find_agents`, `describe_agent` and `explain_reputation`.

use rialto_core::agent::{Agent, Skill};
use rialto_core::id::AgentId;
use rialto_core::reputation::Score;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::rank::RankRecord;
use rialto_protocols::adapter::skill_schema::to_json_schema;
use rialto_protocols::kit::ijson::{self, JsonValue};
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::raw_json;

use super::get_job::LIMIT;
use super::job_view::DECIMALS;
use super::names::{address_of, find_agent};
use super::stranger_text::{clean, cut};
use super::{Arguments, RESULT_MAX, ToolCall, ToolError, ToolOutput, ToolResult};
use crate::mcp::wire::result::json_array;
use crate::v1::agent_names;
use crate::v1::agents::ranking::{self, RANKED_LIST};
use crate::v1::agents::reputation::load_scores;
use crate::v1::agents::search::{self, AGENT_LIST, AgentFilter, AgentPage};
use crate::v1::auth::is_registered;
use crate::v1::page::read_cursor;
use crate::v1::problem::Problem;

/// Skills of an agent in a list.
const SKILLS_LISTED: usize = 5;
/// Characters of a description: in a list, and of one agent.
const ABOUT_LISTED: usize = 160;
const ABOUT_MAX: usize = 300;
/// Characters of a name.
const NAME_MAX: usize = 128;
/// What a result needs besides its agents or skills.
const MARGIN: usize = 1_500;
/// What holds for the scores of all protocols.
const EXPLANATION: &str = "The scores change only when a job for another owner ends, and the hub counts them alone: \
     agents cannot set them. find_agents ranks by a score that trusts many different paying requesters more than one.";

/// `find_agents`.
pub async fn find(call: ToolCall, arguments: Arguments) -> ToolResult {
    let filter = AgentFilter {
        skill: arguments.text("skill").map(str::to_owned),
        text: arguments.text("query").map(str::to_lowercase),
        // Only who asks for a name may mean an agent that cannot be hired.
        with_skills: arguments.text("query").is_none(),
        in_descriptions: true,
        // `false` means all agents, not only those that are away.
        online: arguments.flag("online").unwrap_or(true).then_some(true),
        max_price: arguments.credits("max_price"),
        min_score: arguments.millionths("min_score").map(Score::from_millionths),
        ..AgentFilter::default()
    };
    let limit = arguments.integer("limit").unwrap_or(LIMIT) as usize;
    let page = search(&call.context, &filter, arguments.text("cursor"), limit);
    let page = page.map_err(|problem| ToolError::from(problem).with_field("/cursor"))?;
    let now = call.context.engine.now();
    let (mut agents, mut length, mut next, mut last) = (Vec::new(), MARGIN, page.next, None);
    for (id, cursor) in page.agents {
        // One agent at a time, so that a long list does not block writers.
        let line = call.context.engine.with_world(|world| write_line(world, id, &filter, now));
        let Some(line) = line else { continue };
        length += line.chars().count() + 1;
        if length > RESULT_MAX && last.is_some() {
            next = last;
            break;
        }
        agents.push(line);
        last = Some(cursor);
    }
    let list = ObjectWriter::new()
        .raw("agents", &json_array(&agents))
        .maybe_text("next_cursor", next.map(|cursor| cursor.encode()).as_deref());
    let output = ToolOutput::new(list.finish());
    Ok(match agents.is_empty() {
        true => output,
        false => output.untrusted(&[
            "/agents/*/name",
            "/agents/*/skills/*/name",
            "/agents/*/skills/*/about",
        ]),
    })
}

/// The best first where a skill is named and only agents that are there now count, otherwise in the
/// order of registration, as `/v1` lists them.
fn search(
    context: &HubContext,
    filter: &AgentFilter,
    cursor: Option<&str>,
    limit: usize,
) -> Result<AgentPage, Problem> {
    let engine = &context.engine;
    Ok(match filter.skill.as_deref().filter(|_| filter.online == Some(true)) {
        Some(skill) => {
            let after = read_cursor(cursor, RANKED_LIST)?;
            ranking::rank_agents(engine, skill, filter, after, limit)
        }
        None => {
            let after = read_cursor(cursor, AGENT_LIST)?.map_or(0, |[after]| after);
            search::search_agents(engine, filter, after, limit)
        }
    })
}

/// What every view of an agent begins with.
fn head(world: &World, agent: &Agent, now: Timestamp) -> Option<ObjectWriter> {
    let record = RankRecord::load(world, agent.id)?;
    let head = ObjectWriter::new()
        .text("agent", &address_of(world, agent.id))
        .text("name", cut(&clean(&agent.name), NAME_MAX))
        .text("protocol", agent.home.as_str())
        .flag("online", world.is_online(agent.id, now))
        .raw("score", raw_json::score(record.score.millionths()).get())
        .integer("jobs_done", record.jobs_settled.cast_signed());
    Some(head)
}

fn write_line(world: &World, id: AgentId, filter: &AgentFilter, now: Timestamp) -> Option<String> {
    let agent = world.agent(id)?;
    let is_asked = |skill: &Skill| filter.skill.as_deref() == Some(skill.name.as_str());
    let fits = |skill: &&Skill| filter.affords(skill);
    let mut skills: Vec<&Skill> = agent.skills_for_other_protocols().filter(fits).collect();
    // A skill may have another name for other protocols than the one it was asked for by.
    let asked = agent.skills.iter().find(|skill| is_asked(skill));
    if let Some(asked) = asked {
        skills.retain(|skill| !is_asked(skill));
        skills.insert(0, asked);
    }
    let more = skills.len().saturating_sub(SKILLS_LISTED);
    let listed = skills.iter().take(SKILLS_LISTED);
    let listed = json_array(listed.map(|skill| begin_skill(skill, ABOUT_LISTED).finish()));
    let more = (more > 0).then(|| i64::try_from(more).unwrap_or(i64::MAX));
    let line = head(world, agent, now)?.raw("skills", &listed);
    Some(line.maybe_integer("more_skills", more).finish())
}

fn begin_skill(skill: &Skill, about_max: usize) -> ObjectWriter {
    let begun = ObjectWriter::new()
        .text("name", cut(&skill.name, NAME_MAX))
        .text("price", &skill.price.to_text(DECIMALS));
    let begun = if skill.by_offer { begun.flag("by_offer", true) } else { begun };
    let about = clean(cut(&skill.description, about_max));
    begun.maybe_text("about", Some(&*about).filter(|about| !about.is_empty()))
}

/// `describe_agent`.
pub async fn describe(call: ToolCall, arguments: Arguments) -> ToolResult {
    let engine = &call.context.engine;
    let id = find_agent(engine, arguments.text("agent").unwrap_or_default());
    let id = id.map_err(|error| error.with_field("/agent"))?;
    describe_agent(&call.context, id, arguments.text("skill"))
}

/// Everything public about an agent, or about one of its skills.
pub fn describe_agent(context: &HubContext, id: AgentId, skill: Option<&str>) -> ToolResult {
    let now = context.engine.now();
    let agent = context
        .engine
        .with_world(|world| world.agent(id).filter(|_| is_registered(world, id)).cloned());
    let not_found = || ToolError::not_found().with_field("/agent");
    let agent = agent.ok_or_else(not_found)?;
    let listed: Vec<&Skill> = match skill {
        Some(name) => agent.skill(name).into_iter().collect(),
        None => agent.skills_for_other_protocols().collect(),
    };
    if let (Some(_), true) = (skill, listed.is_empty()) {
        let what = "this agent does not offer this skill";
        return Err(ToolError::of("no_such_skill", what).with_field("/skill"));
    }
    let rest = context.engine.with_world(|world| {
        let owner = world.owner(agent.owner).map(|owner| owner.name.clone());
        let names = agent_names::names_of(world, id);
        Some((head(world, &agent, now)?, owner.unwrap_or_default(), names))
    });
    let (head, owner, names) = rest.ok_or_else(not_found)?;
    let names = names
        .iter()
        .fold(ObjectWriter::new(), |all, (protocol, name)| all.text(protocol, name))
        .finish();
    let mut length = MARGIN + names.chars().count() + owner.chars().count();
    let mut skills = Vec::new();
    for skill in &listed {
        let written = write_skill(skill, RESULT_MAX.saturating_sub(length));
        length += written.chars().count() + 1;
        if length > RESULT_MAX {
            break;
        }
        skills.push(written);
    }
    let more = listed.len() - skills.len();
    let more = (more > 0).then(|| i64::try_from(more).unwrap_or(i64::MAX));
    let view = head
        .raw("skills", &json_array(&skills))
        .maybe_integer("more_skills", more)
        .text("owner", &clean(&owner))
        .raw("names", &names);
    Ok(ToolOutput::new(view.finish()).untrusted(&[
        "/name",
        "/skills/*/name",
        "/skills/*/about",
        "/skills/*/input_schema",
        "/skills/*/output_schema",
        "/owner",
        "/names/*",
    ]))
}

/// A skill with its schemas, as far as they fit into so many characters.
fn write_skill(skill: &Skill, room: usize) -> String {
    let schemas = [("input_schema", &skill.input), ("output_schema", &skill.output)];
    let begun = begin_skill(skill, ABOUT_MAX);
    let mut left = room.saturating_sub(begun.clone().finish().chars().count());
    let with_schemas = schemas.into_iter().fold(begun, |begun, (name, given)| {
        let schema = to_json_schema(given);
        let length = schema.chars().count() + name.len() + 4;
        let is_object = matches!(
            ijson::read(schema.as_bytes()).map(|json| matches!(json.value(), JsonValue::Object(_))),
            Ok(true)
        );
        if !is_object || length > left {
            return begun;
        }
        left -= length;
        begun.raw(name, &schema)
    });
    with_schemas.finish()
}

/// `explain_reputation`.
pub async fn explain(call: ToolCall, arguments: Arguments) -> ToolResult {
    let engine = &call.context.engine;
    let id = match arguments.text("agent") {
        Some(name) => find_agent(engine, name).map_err(|error| error.with_field("/agent"))?,
        None => call.agent()?,
    };
    let state = engine.with_world(|world| {
        let state = world.agent_state(id).filter(|_| is_registered(world, id)).cloned()?;
        Some((address_of(world, id), state))
    });
    let (address, state) = state.ok_or_else(|| ToolError::not_found().with_field("/agent"))?;
    let scores = load_scores(&call.context, &state).await?;
    let view = scores.iter().fold(ObjectWriter::new().text("agent", &address), |view, score| {
        let (protocol, numbers) = score;
        view.raw(protocol.as_str(), &without_nulls(numbers.get()))
    });
    let rules = rialto_protocols::ALL
        .iter()
        .filter_map(|protocol| Some(format!("{}: {}.", protocol.id(), protocol.score_rule()?)));
    let explanation: Vec<String> = rules.chain([EXPLANATION.to_owned()]).collect();
    Ok(ToolOutput::new(view.text("explanation", &explanation.join(" ")).finish()))
}

/// What is unknown is left out.
fn without_nulls(object: &str) -> String {
    let Ok(json) = ijson::read(object.as_bytes()) else { return object.to_owned() };
    let JsonValue::Object(members) = json.value() else { return object.to_owned() };
    let unknown = members.iter().filter(|(_, value)| *value.value() == JsonValue::Null);
    let unknown: Vec<&str> = unknown.map(|(name, _)| name.as_ref()).collect();
    ObjectWriter::copy_without(&json, &unknown).finish()
}
