//! The benchmark's agents, registered directly through the commit lane, without HTTP.

use std::io;

use rialto_core::agent::{Liveness, Skill};
use rialto_core::answer::Answer;
use rialto_core::command::{Actor, Command, Enrol};
use rialto_core::money::Credits;
use rialto_engine::Engine;
use rialto_engine::keys::{Key, Kind};
use rialto_protocols::registry::ID;
use uuid::Uuid;

/// An agent and its key.
#[derive(Clone, Debug)]
pub struct Person {
    pub id: Uuid,
    pub key: String,
}

/// A skill of an agent and its price.
#[derive(Clone, Debug)]
pub struct Sells {
    pub skill: String,
    pub price: Credits,
}

/// Registers an agent.
pub async fn enrol(
    engine: &Engine,
    owner: &str,
    liveness: Liveness,
    sells: Option<Sells>,
) -> io::Result<Person> {
    let id = engine.ids().uuid();
    let key = Key::make(Kind::Registry, engine.ids().key_bits());
    let skill = |sells: Sells| Skill {
        name: sells.skill,
        price: sells.price,
        by_offer: false,
        takes: None,
        approval: false,
        sort: None,
        stands_for: None,
        about: "benchmark".to_owned(),
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    };
    let order = Enrol {
        actor: Actor::Operator,
        home: ID,
        native: id.to_string(),
        aliases: Vec::new(),
        owner: owner.to_owned(),
        name: "benchmark agent".to_owned(),
        endpoint: None,
        liveness,
        skills: sells.into_iter().map(skill).collect(),
        terms: Default::default(),
        condition: None,
        card: "{}".to_owned(),
        key: Some(key.hash()),
        rotate: false,
    };
    match engine.run(Command::Enrol(Box::new(order))).await {
        Ok(Answer::Agent { .. }) => Ok(Person { id, key: key.expose().to_owned() }),
        Ok(_) => Err(io::Error::other("the registration returned an unexpected answer")),
        Err(failure) => Err(io::Error::other(failure)),
    }
}

/// Grants an owner more credits than a benchmark can spend.
pub async fn enrich(engine: &Engine, owner: &str) -> io::Result<()> {
    let grant = Command::Grant { name: owner.to_owned(), amount: Credits::MAX };
    engine.run(grant).await.map(drop).map_err(io::Error::other)
}
