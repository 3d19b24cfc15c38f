//! Opens jobs.

use axum::extract::{RawQuery, State};
use http::StatusCode;
use rialto_core::id::AgentId;
use rialto_core::job::Requester;
use rialto_core::time::Timestamp;
use rialto_protocols::adapter::open_job::{self, JOB_LIFETIME, JobRequest, WorkerChoice};
use rialto_protocols::adapter::request::BodyBytes;
use rialto_protocols::adapter::{HubContext, api_protocol};
use rialto_protocols::kit::api_doc::AnyObject;
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::canonical::job_digest;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson::{self, Json};
use uuid::Uuid;

use super::WaitQuery;
use super::view::{JobView, Viewer};
use crate::v1::auth::AgentCaller;
use crate::v1::params::{AgentName, Amount};
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, json_response};
use crate::v1::{agent_names, page, strict_fields, wait};

/// The longest name of a skill.
pub const SKILL_MAX: usize = 128;
/// Decimals a budget may have.
pub const BUDGET_DECIMALS: usize = 2;

rialto_protocols::words! {
    /// How the hub chooses the worker: by rank, which is the default, by price, or among offers.
    WorkerSelection: "best" | "cheapest" | "offers"
}

rialto_protocols::request_members! {
    /// The body of `POST /v1/jobs`.
    #[schemars(deny_unknown_fields)]
    OpenJobBody {
        /// The requester's own id of the job; a repeat with the same id is the same job.
        id: Option<Uuid>,
        /// The skill that the job needs.
        #[schemars(length(min = 1, max = SKILL_MAX))]
        skill: String,
        /// What the worker gets.
        input: Option<AnyObject>,
        /// The most that the job may cost.
        budget: Amount,
        /// The agent that is to do it, by number or any of its names; otherwise the hub chooses.
        to: Option<AgentName>,
        select: Option<WorkerSelection>,
        /// Where the result is delivered, besides the requester's inbox.
        callback: Option<String>,
        /// When the result must be there; at most 24 hours from now.
        deadline: Option<Time>,
    }
}

/// The parsed request.
struct OpenJobRequest {
    /// The job, without its worker.
    job: JobRequest,
    /// The agent that is to do it, by any of its names.
    to: Option<String>,
}

impl OpenJobRequest {
    fn parse(body: &[u8], requester: AgentId, now: Timestamp) -> Result<Self, Malformed> {
        let json = ijson::read(body)?;
        let f = strict_fields::parse_fields(&json, OpenJobBody::MEMBERS)?;
        let skill = f.required_name("skill", SKILL_MAX)?.to_owned();
        let input = f.object("input")?.and(f.get("input"));
        let budget = f.required_credits("budget", BUDGET_DECIMALS)?;
        let callback = f.text("callback")?.filter(|url| !url.is_empty());
        let to = agent_names::parse_agent_name(&f, "to")?;
        let choice = parse_choice(&f)?;
        if to.is_some() && choice != WorkerChoice::Best {
            return Err(f.malformed("select", "must be omitted if \"to\" names an agent"));
        }
        let deadline = parse_deadline(&f, now)?;
        let job = JobRequest {
            id: f.uuid("id")?,
            requester: Requester::Agent(requester),
            worker: None,
            choice,
            content: job_digest(
                &skill,
                input,
                budget,
                callback,
                &preferences(choice, deadline.map(|deadline| format!(" by {}", deadline.0))),
            ),
            skill,
            input: input.map_or("{}", Json::raw).to_owned(),
            budget,
            callback: callback.map(str::to_owned),
            deadline,
            requester_waits: false,
            meta: "{}".to_owned(),
        };
        Ok(Self { job, to })
    }
}

/// What the preferences add to the job's digest; without any, the digest is the same as for a job
/// opened in the protocol itself.
pub fn preferences(choice: WorkerChoice, deadline: Option<String>) -> Vec<u8> {
    let choice = match choice {
        WorkerChoice::Best => "",
        WorkerChoice::Cheapest => "cheapest",
        WorkerChoice::Offers => "offers",
    };
    [choice, &deadline.unwrap_or_default()].concat().into_bytes()
}

fn parse_choice(f: &Fields<'_, '_>) -> Result<WorkerChoice, Malformed> {
    match f.text("select")? {
        None | Some("best") => Ok(WorkerChoice::Best),
        Some("cheapest") => Ok(WorkerChoice::Cheapest),
        Some("offers") => Ok(WorkerChoice::Offers),
        Some(_) => Err(f.malformed("select", "must be \"best\", \"cheapest\" or \"offers\"")),
    }
}

fn parse_deadline(f: &Fields<'_, '_>, now: Timestamp) -> Result<Option<Timestamp>, Malformed> {
    let deadline = f.time("deadline")?;
    if deadline.is_some_and(|deadline| deadline > now.plus(JOB_LIFETIME)) {
        return Err(f.malformed("deadline", "must be within the next 24 hours"));
    }
    Ok(deadline)
}

/// `POST /v1/jobs`: opens a job for the named agent, or for one the hub chooses, and may wait for
/// its end.
pub async fn open_job(
    State(context): State<HubContext>,
    by: AgentCaller,
    RawQuery(raw): RawQuery,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let at_most = wait::parse_wait(&page::parse_query(raw.as_deref(), WaitQuery::MEMBERS)?)?;
    let OpenJobRequest { mut job, to } = OpenJobRequest::parse(&body, by.id, context.engine.now())?;
    let find = |name: &String| {
        context.engine.with_world(|world| agent_names::find_agent(world, name, "/to"))
    };
    job.worker = to.as_ref().map(find).transpose()?;
    if let Some(url) = &job.callback {
        let blocked = |why| Problem::invalid_field("/callback", format!("callback {why}"));
        context.egress.check_url(url).map_err(blocked)?;
    }
    let opened = open_job::open_job(&context, api_protocol().id(), job, by.once).await?;
    let job = wait::wait_until_ended(&context, by.id, opened.job, at_most).await?;
    let job = open_job::settle(&context.engine, job).await?;
    let mut answer = json_response(StatusCode::CREATED, &JobView::full(&job, Viewer::Requester));
    open_job::set_job_header(&mut answer, job.uuid);
    Ok(answer)
}
