//! Completion: the skills of `hire` and the agents of the template, by how they begin.

use std::collections::BTreeSet;

use rialto_engine::Engine;
use rialto_protocols::kit::ijson::Json;
use rialto_protocols::kit::object::ObjectWriter;

use super::resources::AGENT_TEMPLATE;
use crate::mcp::tools::names;
use crate::mcp::wire::error::RpcError;
use crate::mcp::wire::result::{ResultObject, as_text, json_array, json_string};

/// The most values of an answer.
const VALUES_MAX: usize = 100;
/// Agents looked at under one lock; between two slices the commit lane may publish.
const SLICE: u64 = 4_096;

/// What can be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Skill,
    Agent,
}

/// The answer to `completion/complete`.
pub fn complete(engine: &Engine, params: &Json<'_>) -> Result<ResultObject, RpcError> {
    let invalid = |text: &str| RpcError::invalid_params(format!("Invalid params: {text}"));
    let reference = params.get("ref").ok_or_else(|| invalid("ref is missing"))?;
    let argument = params.get("argument");
    let text = |name: &str| as_text(argument.and_then(|argument| argument.get(name)));
    let name = text("name").ok_or_else(|| invalid("argument.name must be a string"))?;
    let begin = text("value").ok_or_else(|| invalid("argument.value must be a string"))?;
    let found = match field_of(reference, name) {
        Some(field) => find_all(engine, field, begin),
        None => BTreeSet::new(),
    };
    let shown = found.iter().take(VALUES_MAX).map(|value| json_string(value));
    let completion = ObjectWriter::new()
        .raw("values", &json_array(shown))
        .integer("total", i64::try_from(found.len()).unwrap_or(i64::MAX))
        .raw("hasMore", if found.len() > VALUES_MAX { "true" } else { "false" })
        .finish();
    Ok(ResultObject::default().raw("completion", completion))
}

/// Which values belong to an argument of a prompt, or to the variable of a template.
fn field_of(reference: &Json<'_>, argument: &str) -> Option<Field> {
    let member = |name: &str| as_text(reference.get(name));
    match (member("type")?, argument) {
        ("ref/prompt", "skill") if member("name") == Some("hire") => Some(Field::Skill),
        ("ref/resource", "agent") if member("uri") == Some(AGENT_TEMPLATE) => Some(Field::Agent),
        _ => None,
    }
}

/// All values that begin so, in order.
fn find_all(engine: &Engine, field: Field, begin: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut first = 0_u64;
    loop {
        let end = engine.with_world(|world| {
            // Numbers are assigned in order and never reused.
            let end = world.next.agent.0;
            let last = first.saturating_add(SLICE).min(end);
            let agents = (first..last).filter_map(|id| world.agent(rialto_core::id::AgentId(id)));
            for agent in agents.filter(|agent| agent.active && !world.is_agent_suspended(agent)) {
                match field {
                    Field::Agent => found.extend(Some(names::address_of(world, agent.id))),
                    Field::Skill => {
                        found.extend(agent.skills.iter().map(|skill| skill.name.clone()))
                    }
                }
            }
            found.retain(|value| value.starts_with(begin));
            end
        });
        first = first.saturating_add(SLICE);
        if first >= end {
            return found;
        }
    }
}
