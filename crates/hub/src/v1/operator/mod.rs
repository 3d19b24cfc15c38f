//! Operations for the operator. Every action is a command, so the history records it.

pub mod jobs;
pub mod keys;
pub mod agents;
pub mod deliveries;
pub mod stats;

use axum::extract::State;
use http::StatusCode;
use rialto_core::answer::Answer;
use rialto_core::command::{Canceller, Command, JobRef};
use rialto_core::money::Credits;
use rialto_protocols::adapter::{Floor, naming};
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;
use serde::Serialize;

use super::accounts::AccountView;
use super::response::{Answered, json, ok};
use super::errors::NO_SUCH_OWNER;
use super::jobs as shown;
use super::jobs::view::{Eyes, JobView};
use super::strict_fields;
use super::problem::Problem;
use super::auth::{AsOperator, Part, Sent};

/// Longest owner name in the ledger: a plain name, or one with its protocol as prefix.
const OWNER_MAX: usize = 160;
/// Decimals an amount may have.
const DECIMALS: usize = 6;

/// The error for an unknown owner.
const UNKNOWN_OWNER: &str =
    "owner not found; check the name, or set \"create\": true to create the account";

/// An amount and its owner.
struct Sum {
    owner: String,
    amount: Credits,
    /// Creates the owner if it does not exist.
    create: bool,
}

impl Sum {
    fn read(body: &[u8]) -> Result<Self, Malformed> {
        let json = ijson::read(body)?;
        let f = strict_fields::fields(&json, &["owner", "amount", "create"])?;
        let owner = f.required_name("owner", OWNER_MAX)?.to_owned();
        let amount = f.required_credits("amount", DECIMALS)?;
        let create = f.flag("create")?.unwrap_or(false);
        match amount.is_zero() {
            true => Err(f.fail("amount", "must be above zero")),
            false => Ok(Self { owner, amount, create }),
        }
    }
}

/// `POST /v1/operator/grants`: grants new credits to an owner. An unknown owner is created only
/// with `create`: a misspelt name would get credits that can never be spent.
pub async fn grant(State(floor): State<Floor>, by: AsOperator, Sent(body): Sent) -> Answered {
    let Sum { owner, amount, create } = Sum::read(&body)?;
    let (name, exists) = floor.engine.look(|world| {
        let name = naming::owner(world, owner);
        let exists = world.owner_named(&name).is_some();
        (name, exists)
    });
    if !exists && !create {
        return Err(Problem::new(&NO_SUCH_OWNER, UNKNOWN_OWNER));
    }
    move_credits(&floor, by, Command::Grant { name, amount }).await
}

/// `POST /v1/operator/burns`: removes credits from an owner's account.
pub async fn burn(State(floor): State<Floor>, by: AsOperator, Sent(body): Sent) -> Answered {
    let Sum { owner, amount, .. } = Sum::read(&body)?;
    let name = floor.engine.look(|world| naming::owner(world, owner));
    move_credits(&floor, by, Command::Burn { name, amount }).await
}

async fn move_credits(floor: &Floor, by: AsOperator, command: Command) -> Answered {
    match floor.engine.run_once(command, by.once).await?.answer {
        Answer::Account { owner, .. } => Ok(json(StatusCode::CREATED, &AccountView::of(&owner))),
        _ => Err(Problem::not_found()),
    }
}

/// `POST /v1/operator/jobs/{uuid}/cancel`: cancels a job before a worker has started.
pub async fn cancel(State(floor): State<Floor>, by: AsOperator, Part(id): Part) -> Answered {
    let job = JobRef::Uuid(shown::uuid(&id)?);
    change_job(&floor, by, Command::Cancel { job, by: Canceller::Operator, reason: None }).await
}

/// `POST /v1/operator/jobs/{uuid}/requeue`: takes a job from its worker and assigns the next one.
pub async fn requeue(State(floor): State<Floor>, by: AsOperator, Part(id): Part) -> Answered {
    let job = JobRef::Uuid(shown::uuid(&id)?);
    change_job(&floor, by, Command::Requeue { job }).await
}

async fn change_job(floor: &Floor, by: AsOperator, command: Command) -> Answered {
    match floor.engine.run_once(command, by.once).await?.answer {
        Answer::Job { job, .. } => Ok(ok(&JobView::outline(&job, Eyes::Operator))),
        _ => Err(Problem::no_such("job")),
    }
}

#[derive(Serialize)]
struct Touched {
    agent: u64,
}

/// `POST /v1/operator/agents/{id}/revoke-keys`: revokes all keys of an agent.
pub async fn revoke_keys(State(floor): State<Floor>, by: AsOperator, Part(id): Part) -> Answered {
    let agent = agents::find(&floor, &id)?;
    floor.engine.run_once(Command::RevokeKeys { agent, by_operator: true }, by.once).await?;
    Ok(ok(&Touched { agent: agent.0 }))
}

/// `DELETE /v1/operator/agents/{id}`: unregisters an agent; its id stays reserved.
pub async fn remove(State(floor): State<Floor>, _by: AsOperator, Part(id): Part) -> Answered {
    let agent = agents::find(&floor, &id)?;
    floor.engine.run(Command::Remove { agent, by_operator: true }).await?;
    Ok(ok(&Touched { agent: agent.0 }))
}
