//! What the operator may do. Every action is a command, and so a line of the history.

pub mod jobs;
pub mod keys;
pub mod people;
pub mod pushes;
pub mod stats;

use axum::extract::State;
use http::StatusCode;
use rialto_core::answer::Answer;
use rialto_core::command::{Canceller, Command, JobRef};
use rialto_core::money::Credits;
use rialto_protocols::face::{Floor, naming};
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;
use serde::Serialize;

use super::accounts::AccountView;
use super::answer::{Answered, json, ok};
use super::codes::NO_SUCH_OWNER;
use super::jobs as shown;
use super::jobs::view::{Eyes, JobView};
use super::known;
use super::problem::Problem;
use super::proof::{AsOperator, Part, Sent};

/// Longest name in the ledger: an owner's own, or one that begins with its protocol.
const OWNER_MAX: usize = 160;
/// Decimals an amount may have.
const DECIMALS: usize = 6;

/// What to do about a name that nobody has.
const UNKNOWN_OWNER: &str =
    "owner not found; check the name, or set \"create\": true to create the account";

/// Credits and whose they are.
struct Sum {
    owner: String,
    amount: Credits,
    /// An owner that does not exist is made.
    create: bool,
}

impl Sum {
    fn read(body: &[u8]) -> Result<Self, Malformed> {
        let json = ijson::read(body)?;
        let f = known::fields(&json, &["owner", "amount", "create"])?;
        let owner = f.required_name("owner", OWNER_MAX)?.to_owned();
        let amount = f.required_credits("amount", DECIMALS)?;
        let create = f.flag("create")?.unwrap_or(false);
        match amount.is_zero() {
            true => Err(f.fail("amount", "must be above zero")),
            false => Ok(Self { owner, amount, create }),
        }
    }
}

/// `POST /v1/operator/grants`: new credits for an owner. One that does not exist is made only where
/// `create` says so: a misspelt name would get credits that nobody can ever spend.
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

/// `POST /v1/operator/burns`: credits out of circulation.
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

/// `POST /v1/operator/jobs/{uuid}/cancel`: called off, as long as nobody has started on it.
pub async fn cancel(State(floor): State<Floor>, by: AsOperator, Part(id): Part) -> Answered {
    let job = JobRef::Uuid(shown::uuid(&id)?);
    change_job(&floor, by, Command::Cancel { job, by: Canceller::Operator, reason: None }).await
}

/// `POST /v1/operator/jobs/{uuid}/requeue`: taken from its worker and given to the next.
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

/// `POST /v1/operator/agents/{id}/revoke-keys`: none of its keys works any more.
pub async fn revoke_keys(State(floor): State<Floor>, by: AsOperator, Part(id): Part) -> Answered {
    let agent = people::find(&floor, &id)?;
    floor.engine.run_once(Command::RevokeKeys { agent, by_operator: true }, by.once).await?;
    Ok(ok(&Touched { agent: agent.0 }))
}

/// `DELETE /v1/operator/agents/{id}`: off the lists; its id stays reserved.
pub async fn remove(State(floor): State<Floor>, _by: AsOperator, Part(id): Part) -> Answered {
    let agent = people::find(&floor, &id)?;
    floor.engine.run(Command::Remove { agent, by_operator: true }).await?;
    Ok(ok(&Touched { agent: agent.0 }))
}
