//! Accounts: an owner's available and held credits.

use axum::extract::State;
use rialto_core::owner::Owner;
use rialto_core::world::World;
use rialto_protocols::adapter::request::PathParam;
use rialto_protocols::adapter::{HubContext, naming};
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;

use super::auth::{AuthenticatedCaller, KeyHolder};
use super::problem::Problem;
use super::response::{HandlerResult, format_amount, format_time, ok_response};

/// An account as its owner and the operator see it.
#[derive(Serialize, JsonSchema)]
pub struct AccountView {
    owner: String,
    /// Credits that can be spent now.
    available: Number,
    /// Credits held for jobs in progress.
    held: Number,
    opened_at: Time,
}

impl AccountView {
    pub fn of(owner: &Owner) -> Self {
        Self {
            owner: owner.name.clone(),
            available: format_amount(owner.available),
            held: format_amount(owner.held),
            opened_at: format_time(owner.opened_at),
        }
    }
}

/// `GET /v1/accounts/{name}`: for its owner and the operator; other callers get a 404.
pub async fn show_account(
    State(context): State<HubContext>,
    known: KeyHolder,
    PathParam(name): PathParam,
) -> HandlerResult {
    let view = context.engine.with_world(|world| {
        let name = naming::canonical_owner_name(world, name);
        let owner = world.owner_by_name(&name).and_then(|id| world.owner(id))?;
        can_view_account(world, known.key.caller, owner).then(|| AccountView::of(owner))
    });
    Ok(ok_response(&view.ok_or_else(Problem::not_found)?))
}

/// Whether the caller may see this owner's account.
pub fn can_view_account(world: &World, who: AuthenticatedCaller, owner: &Owner) -> bool {
    match who {
        AuthenticatedCaller::Operator => true,
        AuthenticatedCaller::Agent(id) => {
            world.agent(id).is_some_and(|agent| agent.owner == owner.id)
        }
    }
}
