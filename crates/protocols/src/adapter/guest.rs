//! The guest: one agent for all callers without a key, where the operator allows them to act.

use rialto_core::agent::Liveness;
use rialto_core::answer::Answer;
use rialto_core::command::{Actor, Command, Registration};
use rialto_core::id::AgentId;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::{Engine, Failure};

use super::{NewAgent, api_protocol, make_aliases};

/// The guest with this name, which is registered when it is first needed. It has an owner of its own,
/// with the same name, and no key.
pub async fn find_or_register(engine: &Engine, name: &str) -> Result<AgentId, Failure> {
    let home = api_protocol().id();
    // Derived from the secret, so that nobody else can register the id first.
    let bytes = engine.hub_secret().derive("guest", name);
    let native = uuid::Builder::from_random_bytes(first_bytes(bytes)).into_uuid().to_string();
    let find = || engine.with_world(|world| find(world, &native));
    if let Some(known) = find() {
        return Ok(known);
    }
    let aliases = make_aliases(engine, NewAgent { home, native: &native, name });
    let registration = Registration {
        actor: Actor::Anonymous,
        home,
        native_id: native.clone(),
        aliases,
        owner: name.to_owned(),
        name: name.to_owned(),
        endpoint: None,
        liveness: Liveness::ByPolling,
        skills: Vec::new(),
        terms: Default::default(),
        status: None,
        card: "{}".to_owned(),
        key: None,
        rotate_key: false,
    };
    match engine.run(Command::Register(Box::new(registration))).await {
        Ok(Answer::Agent { agent, .. }) => Ok(agent.id),
        // Another request has registered it meanwhile.
        Err(Failure::Refused(Refusal::IdTaken)) => find().ok_or(Refusal::IdTaken.into()),
        Err(failure) => Err(failure),
        Ok(_) => Err(Failure::Unavailable),
    }
}

fn first_bytes(bytes: [u8; 32]) -> [u8; 16] {
    std::array::from_fn(|at| bytes[at])
}

fn find(world: &World, native: &str) -> Option<AgentId> {
    world.agent_by_alias(api_protocol().id(), native)
}
