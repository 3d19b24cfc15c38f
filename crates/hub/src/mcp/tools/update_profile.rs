//! `update_profile`: what the caller's agent is called, offers, and whether it takes work.

use rialto_core::agent::Agent;
use rialto_core::agent::presence::Availability;
use rialto_core::agent::status::AgentStatusUpdate;
use rialto_core::command::{Actor, Command, ProfileUpdate, Registration};
use rialto_core::id::AgentId;
use rialto_protocols::adapter::profile::{ChangedProfile, ProfileChange, SkillListing};
use rialto_protocols::adapter::{self, HubContext};
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::object::ObjectWriter;

use super::names::address_of;
use super::output::RESULT_MAX;
use super::own_profile::{status, write_skills};
use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult, detached};

/// What everything but the skills needs at most.
const REST_MAX: usize = 1_000;

pub async fn call(call: ToolCall, arguments: Arguments) -> ToolResult {
    let id = call.agent()?;
    let availability = arguments.text("status").map(read_status);
    let change = read_change(&arguments);
    let context = call.context;
    detached(async move {
        update(&context, id, change, availability).await?;
        show(&context, id)
    })
    .await
}

fn read_status(word: &str) -> Availability {
    match word {
        "busy" => Availability::Busy,
        "offline" => Availability::Offline,
        _ => Availability::Idle,
    }
}

fn read_change(arguments: &Arguments) -> ProfileChange {
    let listing = |skill: &Arguments| SkillListing {
        name: skill.text("name").unwrap_or_default().to_owned(),
        price: skill.credits("price").unwrap_or_default(),
        description: skill.text("about").unwrap_or_default().to_owned(),
        input: skill.raw("input_schema").map(str::to_owned),
        output: skill.raw("output_schema").map(str::to_owned),
    };
    let skills = arguments.objects("skills");
    ProfileChange {
        name: arguments.text("name").map(str::to_owned),
        skills: skills.map(|skills| skills.into_iter().map(listing).collect()),
    }
}

async fn update(
    context: &HubContext,
    id: AgentId,
    change: ProfileChange,
    availability: Option<Availability>,
) -> Result<(), ToolError> {
    let found = context.engine.with_world(|world| {
        let agent = world.agent(id)?;
        Some((agent.clone(), world.owner(agent.owner)?.name.clone()))
    });
    let (agent, owner) = found.ok_or_else(ToolError::no_key)?;
    let changed = if change == ProfileChange::default() {
        ChangedProfile { name: None, skills: None, published: None }
    } else {
        // Schemas are compiled, which may take a while.
        let home = agent.clone();
        let made = tokio::task::spawn_blocking(move || adapter::change_profile(&home, &change));
        let made = made.await.map_err(|_| rialto_engine::Failure::Fault)?;
        made.map_err(|bad| malformed(&bad))?
    };
    if changed.name.is_none() && changed.skills.is_none() && availability.is_none() {
        return Ok(());
    }
    context.engine.run(command(&agent, owner, changed, availability)).await?;
    Ok(())
}

/// The message begins with the member, and the error with the pointer to it.
fn malformed(bad: &Malformed) -> ToolError {
    let member = bad.field.rsplit('/').next().unwrap_or_default();
    let what = bad.message.strip_prefix(member).unwrap_or(&bad.message);
    ToolError::malformed(bad.field.clone(), what.trim_start())
}

/// One command for all that changes, so that nobody sees a part of it.
fn command(
    agent: &Agent,
    owner: String,
    changed: ChangedProfile,
    availability: Option<Availability>,
) -> Command {
    let Some(published) = changed.published else {
        let (name, skills) = (changed.name, changed.skills);
        let profile = ProfileUpdate { name, skills, endpoint: None, availability };
        return Command::UpdateProfile { agent: agent.id, profile: Box::new(profile) };
    };
    Command::Register(Box::new(Registration {
        actor: Actor::Agent(agent.id),
        home: agent.home,
        native_id: agent.native_id.clone(),
        aliases: Vec::new(),
        owner,
        name: changed.name.unwrap_or_else(|| agent.name.clone()),
        endpoint: agent.endpoint.clone(),
        liveness: agent.liveness,
        skills: changed.skills.unwrap_or_else(|| agent.skills.clone()),
        terms: published.terms,
        status: availability.map(|availability| AgentStatusUpdate {
            availability,
            until: None,
            words: None,
        }),
        card: published.card,
        key: None,
        rotate_key: false,
    }))
}

fn show(context: &HubContext, id: AgentId) -> ToolResult {
    let shown = context.engine.with_world(|world| {
        let agent = world.agent(id)?;
        Some(
            ObjectWriter::new()
                .text("agent", &address_of(world, id))
                .text("name", &agent.name)
                .text("status", status(world, agent))
                .raw("skills", &write_skills(agent, RESULT_MAX - REST_MAX))
                .finish(),
        )
    });
    shown.map(ToolOutput::new).ok_or_else(ToolError::no_key)
}
