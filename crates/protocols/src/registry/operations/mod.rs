//! The table of operations. Handlers authenticate, translate, run and translate back.

mod agents;
mod audit;
mod discover;
mod jobs;
mod payments;
mod results;

use axum::response::Response;
use uuid::Uuid;

use super::errors::{self, ErrorBody, Failure};
use super::translate::ResultBody;
use super::wire::{Amount, JobMembers, RegisterMembers, ResultMembers, TransferMembers};
use crate::adapter::Access::{
    Agent, AgentOrOperator, AnyAgent, AnyAgentOrOperator, Owner, OwnerOrOperator, Party, Public,
    Register, Requester, Token, Worker,
};
use crate::adapter::Operation;
use crate::adapter::operation::{delete, get, post};
use crate::kit::api_doc::AnyOf;
use crate::kit::fields::Malformed;
use crate::kit::ijson::{Json, JsonValue};
use crate::kit::query::Query;
use crate::registry::RegistryContext;
use agents::{
    HeartbeatAnswer, RegistrationAnswer, ReputationClaimAnswer, ReputationScoreAnswer,
    UnregisterAnswer,
};
use audit::AuditAnswer;
use discover::{AgentEntry, DiscoveryAnswer, HealthAnswer, SkillsAnswer};
use jobs::JobsAnswer;
use payments::{AccountAnswer, EconomyAnswer, TransferAnswer};
use results::ResultAnswer;

/// The result of every handler.
type HandlerResult = Result<Response, Failure>;

crate::request_members! {
    /// How long to wait.
    WaitQuery {
        /// Seconds to wait for the end of the job; by default as the hub is configured.
        #[schemars(range(max = 30))]
        wait: Option<u8>,
    }
}

crate::words! {
    /// The status of a job that waits.
    PendingName: "PENDING"
}

crate::request_members! {
    /// Which jobs to fetch.
    FetchQuery {
        status: Option<PendingName>,
        /// Seconds to wait for a job.
        #[schemars(range(max = 30))]
        wait: Option<u8>,
    }
}

crate::request_members! {
    /// Which skills to list.
    SkillsQuery {
        /// The last name of the previous page.
        after: Option<String>,
    }
}

crate::words! {
    /// The order of payments.
    AuditOrder: "newest" | "oldest"
}

crate::request_members! {
    /// Which payments to list.
    AuditQuery {
        owner_id: Option<String>,
        job_id: Option<Uuid>,
        /// `next_from` of the previous page.
        #[schemars(range(min = 1))]
        from: Option<u64>,
        order: Option<AuditOrder>,
        #[schemars(range(min = 1, max = 500))]
        limit: Option<u16>,
    }
}

crate::request_members! {
    /// Which agents to find: as a query, or as a body.
    DiscoverMembers {
        #[schemars(length(min = 1))]
        skill: String,
        #[schemars(range(min = 0, max = 100))]
        min_reputation: Option<f64>,
        max_cost: Option<Amount>,
        min_jobs: Option<u64>,
        #[schemars(range(min = 1, max = 200))]
        limit: Option<u16>,
        offset: Option<u64>,
    }
}

crate::request_members! {
    /// The body of `POST /heartbeat`.
    HeartbeatBody {
        agent_id: Uuid,
    }
}

crate::request_members! {
    /// The body of `POST /accounts`.
    AccountBody {
        #[schemars(length(min = 1, max = 160))]
        owner_id: String,
        /// What the operator grants; ignored for others.
        initial_balance: Option<Amount>,
    }
}

/// An owner in a path.
pub enum OwnerRef {}
crate::value_schema!(OwnerRef, {"type": "string", "description": "The name of an owner"});

/// The token of a callback URL.
pub enum CallbackToken {}
crate::value_schema!(CallbackToken, {"type": "string", "description": "A token that the hub made for one job"});

pub fn operations() -> Vec<Operation<RegistryContext>> {
    vec![
        post("/register", Register, agents::register)
            .summary("Register an agent, or update it with its key")
            .recognizes(is_registration)
            .request::<RegisterMembers>(errors::REGISTRATION_EXAMPLE)
            .responds::<RegistrationAnswer>(201, "A new agent")
            .responds::<RegistrationAnswer>(200, "An updated agent")
            .at_root(),
        get("/discover", Public, discover::discover_by_query)
            .summary("Find agents by skill, reputation and cost")
            .as_is()
            .query::<DiscoverMembers>()
            .responds::<DiscoveryAnswer>(200, "Agents, best first")
            .at_root(),
        post("/discover", Public, discover::discover_by_body)
            .summary("Find agents; the query is a JSON body")
            .as_is()
            .request::<DiscoverMembers>(errors::DISCOVERY_EXAMPLE)
            .responds::<DiscoveryAnswer>(200, "Agents, best first")
            .at_root(),
        post("/jobs", AnyAgent, jobs::create_job)
            .summary("Request a job; the hub picks the worker unless the body names one")
            .query::<WaitQuery>()
            .request::<JobMembers>(errors::JOB_EXAMPLE)
            .responds::<ResultBody<'static>>(200, "The result")
            .responds::<ResultBody<'static>>(202, "No result yet")
            .responds::<AnyOf<ResultBody<'static>, ErrorBody<'static>>>(
                502,
                "The worker's result was unusable",
            )
            .at_root(),
        post("/agents/{agent_id}/jobs", AnyAgent, jobs::create_job_for_agent)
            .summary("Request a job from this agent")
            .path_param::<Uuid>()
            .query::<WaitQuery>()
            .request::<JobMembers>(errors::JOB_EXAMPLE)
            .responds::<ResultBody<'static>>(200, "The result")
            .responds::<ResultBody<'static>>(202, "No result yet")
            .responds::<AnyOf<ResultBody<'static>, ErrorBody<'static>>>(
                502,
                "The worker's result was unusable",
            ),
        get("/jobs/{job_id}", Party, jobs::show)
            .summary("Get a job's status")
            .path_param::<Uuid>()
            .responds::<ResultBody<'static>>(200, "The result")
            .responds::<ResultBody<'static>>(202, "No result yet")
            .at_root(),
        post("/jobs/{job_id}/cancel", Requester, jobs::cancel)
            .summary("Cancel a job before it is handed to its worker")
            .path_param::<Uuid>()
            .responds::<ResultBody<'static>>(200, "The cancelled job")
            .at_root(),
        get("/agents/{agent_id}/jobs", Agent, jobs::fetch_jobs)
            .summary("Fetch the jobs that wait for an agent")
            .path_param::<Uuid>()
            .query::<FetchQuery>()
            .responds::<JobsAnswer>(200, "The jobs"),
        post("/results", Worker, results::post_result)
            .summary("Report the result of a job")
            .request::<ResultMembers>(errors::RESULT_EXAMPLE)
            .responds::<ResultAnswer<'static>>(200, "The result is recorded")
            .at_root(),
        post("/callbacks/{token}", Token, results::post_callback)
            .summary("Report the result of the job that this callback URL belongs to")
            .path_param::<CallbackToken>()
            .request::<ResultMembers>(errors::RESULT_EXAMPLE)
            .responds::<ResultAnswer<'static>>(200, "The result is recorded"),
        post("/transfer", Owner, payments::transfer)
            .summary("Transfer credits, or confirm what a job's escrow has paid")
            .request::<TransferMembers>(errors::TRANSFER_EXAMPLE)
            .responds::<TransferAnswer>(200, "The transfer")
            .at_root(),
        post("/heartbeat", Agent, agents::heartbeat)
            .summary("Send a heartbeat")
            .request::<HeartbeatBody>(errors::HEARTBEAT_EXAMPLE)
            .responds::<HeartbeatAnswer>(200, "The agent is online")
            .at_root(),
        post("/accounts", OwnerOrOperator, payments::open_account)
            .summary("Open an account; with the operator key, grant credits")
            .request::<AccountBody>(errors::ACCOUNT_EXAMPLE)
            .responds::<AccountAnswer<'static>>(201, "The account")
            .at_root(),
        get("/accounts/{owner_id}", OwnerOrOperator, payments::account)
            .summary("Balance and escrow of an owner")
            .path_param::<OwnerRef>()
            .responds::<AccountAnswer<'static>>(200, "The account")
            .at_root(),
        get("/agents/{agent_id}", Public, agents::show)
            .summary("Get an agent's public entry")
            .path_param::<Uuid>()
            .responds::<AgentEntry>(200, "The agent"),
        delete("/agents/{agent_id}", AgentOrOperator, agents::unregister)
            .summary("Unregister an agent")
            .path_param::<Uuid>()
            .responds::<UnregisterAnswer>(200, "Unregistered"),
        get("/skills", Public, discover::skills)
            .summary("All skills on offer")
            .as_is()
            .query::<SkillsQuery>()
            .responds::<SkillsAnswer>(200, "The names of skills")
            .at_root(),
        get("/reputation/{agent_id}", Public, agents::reputation)
            .summary("An agent's score")
            .path_param::<Uuid>()
            .responds::<ReputationScoreAnswer>(200, "The score")
            .at_root(),
        post("/reputation/{agent_id}/success", Public, agents::claim_reputation)
            .summary("Accepted for compatibility; has no effect")
            .path_param::<Uuid>()
            .responds::<ReputationClaimAnswer>(200, "The unchanged score")
            .at_root(),
        post("/reputation/{agent_id}/failure", Public, agents::claim_reputation)
            .summary("Accepted for compatibility; has no effect")
            .path_param::<Uuid>()
            .responds::<ReputationClaimAnswer>(200, "The unchanged score")
            .at_root(),
        get("/audit", AnyAgentOrOperator, audit::audit)
            .summary("Payments, newest first")
            .query::<AuditQuery>()
            .responds::<AuditAnswer>(200, "Payments")
            .at_root(),
        get("/economy", AnyAgentOrOperator, payments::economy)
            .summary("Totals of all accounts, and the balances visible to the caller")
            .responds::<EconomyAnswer>(200, "Totals and balances")
            .at_root(),
        get("/health", Public, discover::health)
            .summary("Health of the registry")
            .as_is()
            .responds::<HealthAnswer>(200, "The hub accepts writes")
            .responds::<HealthAnswer>(503, "It does not")
            .health_check(),
    ]
}

fn read_query(raw: Option<String>) -> Result<Query, Malformed> {
    Query::read(raw.as_deref().unwrap_or_default())
}

/// Whether a registration posted at the root is meant for this protocol.
fn is_registration(body: &Json<'_>) -> bool {
    let has_member =
        ["agent_name", "owner_id", "skills"].iter().any(|name| body.get(name).is_some());
    let by_uuid = body.get("agent_id").is_some_and(|id| match id.value() {
        JsonValue::String(text) => text.parse::<uuid::fmt::Hyphenated>().is_ok(),
        _ => false,
    });
    has_member || by_uuid
}
