//! Operations for the operator. Every action is a command, so the history records it.

pub mod agents;
pub mod cluster;
pub mod deliveries;
pub mod jobs;
pub mod keys;
pub mod stats;

use axum::extract::State;
use http::StatusCode;
use rialto_core::answer::Answer;
use rialto_core::command::{Canceller, Command, JobRef};
use rialto_core::money::Credits;
use rialto_protocols::adapter::request::{BodyBytes, PathParam};
use rialto_protocols::adapter::{HubContext, naming};
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;
use schemars::JsonSchema;
use serde::Serialize;

use super::accounts::AccountView;
use super::auth::OperatorCaller;
use super::errors::NO_SUCH_OWNER;
use super::jobs as shown;
use super::jobs::view::{JobView, Viewer};
use super::problem::Problem;
use super::response::{HandlerResult, json_response, ok_response};
use super::strict_fields;
use crate::v1::params::Amount;

/// Longest owner name in the ledger: a plain name, or one with its protocol as prefix.
const OWNER_MAX: usize = 160;
/// Decimals an amount may have.
const DECIMALS: usize = 6;

/// The error for an unknown owner.
const UNKNOWN_OWNER_TEXT: &str =
    "owner not found; check the name, or set \"create\": true to create the account";

rialto_protocols::request_members! {
    /// The body of `POST /v1/operator/grants` and `POST /v1/operator/burns`.
    #[schemars(deny_unknown_fields)]
    CreditsBody {
        #[schemars(length(min = 1, max = OWNER_MAX))]
        owner: String,
        /// Above zero.
        amount: Amount,
        /// Creates the owner of a grant if it does not exist.
        create: Option<bool>,
    }
}

/// An amount and its owner.
struct CreditsRequest {
    owner: String,
    amount: Credits,
    /// Creates the owner if it does not exist.
    create: bool,
}

impl CreditsRequest {
    fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let json = ijson::read(body)?;
        let f = strict_fields::parse_fields(&json, CreditsBody::MEMBERS)?;
        let owner = f.required_name("owner", OWNER_MAX)?.to_owned();
        let amount = f.required_credits("amount", DECIMALS)?;
        let create = f.flag("create")?.unwrap_or(false);
        match amount.is_zero() {
            true => Err(f.malformed("amount", "must be above zero")),
            false => Ok(Self { owner, amount, create }),
        }
    }
}

/// `POST /v1/operator/grants`: grants new credits to an owner. An unknown owner is created only
/// with `create`: a misspelt name would get credits that can never be spent.
pub async fn grant_credits(
    State(context): State<HubContext>,
    by: OperatorCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let CreditsRequest { owner, amount, create } = CreditsRequest::parse(&body)?;
    let (name, exists) = context.engine.with_world(|world| {
        let name = naming::canonical_owner_name(world, owner);
        let exists = world.owner_by_name(&name).is_some();
        (name, exists)
    });
    if !exists && !create {
        return Err(Problem::new(&NO_SUCH_OWNER, UNKNOWN_OWNER_TEXT));
    }
    run_credits_command(&context, by, Command::Grant { name, amount }).await
}

/// `POST /v1/operator/burns`: removes credits from an owner's account.
pub async fn burn_credits(
    State(context): State<HubContext>,
    by: OperatorCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let CreditsRequest { owner, amount, .. } = CreditsRequest::parse(&body)?;
    let name = context.engine.with_world(|world| naming::canonical_owner_name(world, owner));
    run_credits_command(&context, by, Command::Burn { name, amount }).await
}

async fn run_credits_command(
    context: &HubContext,
    by: OperatorCaller,
    command: Command,
) -> HandlerResult {
    match context.engine.run_once(command, by.once).await?.answer {
        Answer::Account { owner, .. } => {
            Ok(json_response(StatusCode::CREATED, &AccountView::of(&owner)))
        }
        _ => Err(Problem::not_found()),
    }
}

/// `POST /v1/operator/jobs/{uuid}/cancel`: cancels a job before a worker has started.
pub async fn cancel_job(
    State(context): State<HubContext>,
    by: OperatorCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let job = JobRef::Uuid(shown::parse_job_id(&id)?);
    run_job_command(&context, by, Command::Cancel { job, by: Canceller::Operator, reason: None })
        .await
}

/// `POST /v1/operator/jobs/{uuid}/requeue`: takes a job from its worker and assigns the next one.
pub async fn requeue_job(
    State(context): State<HubContext>,
    by: OperatorCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let job = JobRef::Uuid(shown::parse_job_id(&id)?);
    run_job_command(&context, by, Command::Requeue { job }).await
}

async fn run_job_command(
    context: &HubContext,
    by: OperatorCaller,
    command: Command,
) -> HandlerResult {
    match context.engine.run_once(command, by.once).await?.answer {
        Answer::Job { job, .. } => Ok(ok_response(&JobView::summary(&job, Viewer::Operator))),
        _ => Err(Problem::no_such("job")),
    }
}

#[derive(Serialize, JsonSchema)]
pub struct AgentResponse {
    agent: u64,
}

/// `POST /v1/operator/agents/{id}/revoke-keys`: revokes all keys of an agent.
pub async fn revoke_keys(
    State(context): State<HubContext>,
    by: OperatorCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let agent = agents::find(&context, &id)?;
    context.engine.run_once(Command::RevokeKeys { agent, by_operator: true }, by.once).await?;
    Ok(ok_response(&AgentResponse { agent: agent.0 }))
}

/// `DELETE /v1/operator/agents/{id}`: unregisters an agent; its id stays reserved.
pub async fn remove_agent(
    State(context): State<HubContext>,
    _by: OperatorCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let agent = agents::find(&context, &id)?;
    context.engine.run(Command::Remove { agent, by_operator: true }).await?;
    Ok(ok_response(&AgentResponse { agent: agent.0 }))
}
