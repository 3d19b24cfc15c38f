//! Registration at a hub, over the registry protocol.

use std::collections::BTreeMap;

use reqwest::Method;
use rialto_protocols::kit::raw_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::handlers::Handlers;
use crate::agent::skill::Skill;
use crate::call::{CallError, Hub};

/// JSON types that the protocol has names for.
const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];

/// The agent to register.
#[derive(Clone, Debug)]
pub struct AgentRegistration<'a> {
    /// Its name.
    pub name: &'a str,
    /// The owner that receives its earnings.
    pub owner: &'a str,
    /// Its previous id.
    pub id: Option<&'a str>,
}

/// A registered agent.
#[derive(Clone, Debug, Deserialize)]
pub struct RegistrationResponse {
    /// Its id.
    pub agent_id: String,
    /// Its key.
    pub api_key: String,
}

#[derive(Serialize)]
struct RegisterBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    agent_name: &'a str,
    owner_id: &'a str,
    skills: Vec<SkillBody<'a>>,
    version: &'static str,
}

#[derive(Serialize)]
struct SkillBody<'a> {
    skill_name: &'a str,
    description: &'a str,
    cost_per_call: raw_json::Number,
    input_schema: BTreeMap<String, &'static str>,
    output_schema: BTreeMap<String, &'static str>,
}

/// Registers an agent or, with its key, updates its registration.
pub async fn register_agent(
    hub: &Hub,
    who: &AgentRegistration<'_>,
    shop: &Handlers,
) -> Result<RegistrationResponse, CallError> {
    let body = RegisterBody {
        agent_id: who.id,
        agent_name: who.name,
        owner_id: who.owner,
        skills: shop.skills().map(skill_body).collect(),
        version: "0.1",
    };
    let body = serde_json::to_string(&body);
    let body = body.map_err(|error| CallError::invalid(error.to_string(), None))?;
    let (_, text) = hub.call_text(Method::POST, "/registry/register", Some(body)).await?;
    serde_json::from_str(&text).map_err(|error| CallError::Unreadable(error.to_string()))
}

fn skill_body(skill: &Skill) -> SkillBody<'_> {
    let members = |schema: Option<&_>| schema.map(simple_schema).unwrap_or_default();
    SkillBody {
        skill_name: &skill.name,
        description: &skill.description,
        cost_per_call: raw_json::amount(skill.price, 2),
        input_schema: members(skill.input_schema.as_ref()),
        output_schema: members(skill.output_schema.as_ref()),
    }
}

/// The part of a schema that the protocol can express: required members and their types. The rest
/// is checked by the client.
fn simple_schema(schema: &rialto_protocols::kit::schema::Schema) -> BTreeMap<String, &'static str> {
    let schema: Value = serde_json::from_str(schema.text()).unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let kind = |name: &str| {
        let said = schema.get("properties")?.get(name)?.get("type")?.as_str()?;
        TYPES.into_iter().find(|known| *known == said)
    };
    names.map(|name| (name.to_owned(), kind(name).unwrap_or("any"))).collect()
}
