//! Accounts: an owner's available and held credits.

use axum::extract::State;
use rialto_core::owner::Owner;
use rialto_core::world::World;
use rialto_protocols::adapter::{Floor, naming};
use serde::Serialize;
use serde_json::value::RawValue;

use super::response::{Answered, money, ok, time};
use super::problem::Problem;
use super::auth::{Known, Part, Who};

/// An account as its owner and the operator see it.
#[derive(Serialize)]
pub struct AccountView {
    owner: String,
    /// Credits that can be spent now.
    available: Box<RawValue>,
    /// Credits held for jobs in progress.
    held: Box<RawValue>,
    opened_at: String,
}

impl AccountView {
    pub fn of(owner: &Owner) -> Self {
        Self {
            owner: owner.name.clone(),
            available: money(owner.available),
            held: money(owner.held),
            opened_at: time(owner.opened_at),
        }
    }
}

/// `GET /v1/accounts/{name}`: for its owner and the operator; other callers get a 404.
pub async fn show(State(floor): State<Floor>, known: Known, Part(name): Part) -> Answered {
    let view = floor.engine.look(|world| {
        let name = naming::owner(world, name);
        let owner = world.owner_named(&name).and_then(|id| world.owner(id))?;
        may_see(world, known.proven.who, owner).then(|| AccountView::of(owner))
    });
    Ok(ok(&view.ok_or_else(Problem::not_found)?))
}

/// Whether the caller may see this owner's account.
pub fn may_see(world: &World, who: Who, owner: &Owner) -> bool {
    match who {
        Who::Operator => true,
        Who::Agent(id) => world.agent(id).is_some_and(|agent| agent.owner == owner.id),
    }
}
