//! The benchmark's agents, registered directly through the commit lane, without HTTP.

use std::io;

use rialto_core::agent::{Liveness, Skill};
use rialto_core::answer::Answer;
use rialto_core::command::{Actor, Command, Registration};
use rialto_core::money::Credits;
use rialto_engine::Engine;
use rialto_engine::keys::{Key, KeyPrefix};
use rialto_protocols::registry::ID;
use uuid::Uuid;

/// An agent and its key.
#[derive(Clone, Debug)]
pub struct BenchAgent {
    pub id: Uuid,
    pub key: String,
}

/// A skill of an agent and its price.
#[derive(Clone, Debug)]
pub struct SkillPrice {
    pub skill: String,
    pub price: Credits,
}

/// Registers an agent.
pub async fn register_agent(
    engine: &Engine,
    owner: &str,
    liveness: Liveness,
    sells: Option<SkillPrice>,
) -> io::Result<BenchAgent> {
    let id = engine.random().new_uuid();
    let key = Key::from_random(KeyPrefix::AGENT, engine.random().new_key_bytes());
    let skill = |sells: SkillPrice| Skill {
        name: sells.skill,
        price: sells.price,
        by_offer: false,
        expected_duration: None,
        needs_approval: false,
        category: None,
        native_name: None,
        description: "benchmark".to_owned(),
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    };
    let order = Registration {
        actor: Actor::Operator,
        home: ID,
        native_id: id.to_string(),
        aliases: Vec::new(),
        owner: owner.to_owned(),
        name: "benchmark agent".to_owned(),
        endpoint: None,
        liveness,
        skills: sells.into_iter().map(skill).collect(),
        terms: Default::default(),
        status: None,
        card: "{}".to_owned(),
        key: Some(key.hash()),
        rotate_key: false,
    };
    match engine.run(Command::Register(Box::new(order))).await {
        Ok(Answer::Agent { .. }) => Ok(BenchAgent { id, key: key.expose().to_owned() }),
        Ok(_) => Err(io::Error::other("the registration returned an unexpected answer")),
        Err(failure) => Err(io::Error::other(failure)),
    }
}

/// Grants an owner more credits than a benchmark can spend.
pub async fn grant_credits(engine: &Engine, owner: &str) -> io::Result<()> {
    let grant = Command::Grant { name: owner.to_owned(), amount: Credits::MAX };
    engine.run(grant).await.map(drop).map_err(io::Error::other)
}
