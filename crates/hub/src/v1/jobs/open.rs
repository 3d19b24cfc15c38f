//! Opens jobs.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use http::{HeaderValue, StatusCode};
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, State as JobState};
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::Failure;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::BodyBytes;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson;
use rialto_protocols::registry::job::{self, JOB_LIFETIME, JobOrder, JobPreferences, WorkerChoice};
use rialto_protocols::registry::wire::{DECIMALS, JobPost, NAME_MAX};

use super::view::{JobView, Viewer};
use crate::v1::auth::AgentCaller;
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, json_response};
use crate::v1::{agent_names, page, strict_fields, wait};

/// Members of the request body.
const MEMBERS: [&str; 8] =
    ["id", "skill", "input", "budget", "to", "select", "callback", "deadline"];
/// Response header with the id of the job.
const JOB_HEADER: &str = "rialto-job";

/// The parsed request.
struct OpenJobRequest {
    wire: JobPost,
    /// The agent that is to do it, by any of its names.
    to: Option<String>,
    preferences: JobPreferences,
}

impl OpenJobRequest {
    fn parse(body: &[u8], now: Timestamp) -> Result<Self, Malformed> {
        let json = ijson::read(body)?;
        let f = strict_fields::parse_fields(&json, &MEMBERS)?;
        let skill = f.required_name("skill", NAME_MAX)?.to_owned();
        let input = f.object("input")?.and(f.get("input"));
        let budget = f.required_credits("budget", DECIMALS)?;
        let callback = f.text("callback")?.filter(|url| !url.is_empty());
        let to = agent_names::parse_agent_name(&f, "to")?;
        let choice = parse_choice(&f)?;
        if to.is_some() && choice != WorkerChoice::Best {
            return Err(f.malformed("select", "must be omitted if \"to\" names an agent"));
        }
        let wishes = JobPreferences {
            choice,
            deadline: parse_deadline(&f, now)?,
            ..JobPreferences::default()
        };
        let id = f.uuid("id")?;
        let wire = JobPost::minimal(skill, input, budget, callback, &canonical_preferences(wishes));
        Ok(Self { wire: JobPost { job_id: id, ..wire }, to, preferences: wishes })
    }
}

/// What the preferences add to the job's digest; without any, the digest is the same as for a job
/// opened in the protocol itself.
fn canonical_preferences(wishes: JobPreferences) -> Vec<u8> {
    let choice = match wishes.choice {
        WorkerChoice::Best => "",
        WorkerChoice::Cheapest => "cheapest",
        WorkerChoice::Offers => "offers",
    };
    let deadline = wishes.deadline.map(|deadline| format!(" by {}", deadline.0));
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
    match deadline.is_some_and(|deadline| deadline > now.plus(JOB_LIFETIME)) {
        true => Err(f.malformed("deadline", "must be within the next 24 hours")),
        false => Ok(deadline),
    }
}

/// `POST /v1/jobs`: opens a job for the named agent, or for one the hub chooses, and may wait for
/// its end.
pub async fn open_job(
    State(context): State<HubContext>,
    by: AgentCaller,
    RawQuery(raw): RawQuery,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let at_most = wait::parse_wait(&page::parse_query(raw.as_deref(), &["wait"])?)?;
    let OpenJobRequest { wire, to, preferences: wishes } =
        OpenJobRequest::parse(&body, context.engine.now())?;
    let find = |name: &String| {
        context.engine.with_world(|world| agent_names::find_agent(world, name, "/to"))
    };
    let worker = to.as_ref().map(find).transpose()?;
    if let Some(url) = &wire.callback_url {
        let blocked = |why| Problem::invalid_field("/callback", format!("callback {why}"));
        context.egress.check_url(url).map_err(blocked)?;
    }
    let order =
        JobOrder { request: wire, requester: Requester::Agent(by.id), worker, preferences: wishes };
    let job = job::open_job(&context, order, by.once).await?;
    let job = wait_or_mark_pending(&context, by.id, job, at_most).await?;
    let mut answer = json_response(StatusCode::CREATED, &JobView::full(&job, Viewer::Requester));
    if let Ok(id) = HeaderValue::from_str(&job.uuid.to_string()) {
        answer.headers_mut().insert(JOB_HEADER, id);
    }
    Ok(answer)
}

/// Waits for the end as long as the caller wants. If the job does not end in time, the caller gets
/// a notice later.
async fn wait_or_mark_pending(
    context: &HubContext,
    by: AgentId,
    job: Arc<Job>,
    at_most: Duration,
) -> Result<Arc<Job>, Problem> {
    let mut job = super::wait_until_ended(context, by, job, at_most).await?;
    if !job.state.is_final() && !job.pending {
        job = match context.engine.run(Command::MarkPending { job: job.id }).await {
            Ok(Answer::Job { job, .. }) => job,
            // It ended just before it could be marked as pending.
            Ok(_) | Err(Failure::Refused(_)) => super::load_job(context, job.id).await?,
            Err(failure) => return Err(failure.into()),
        };
    }
    match job.state {
        JobState::Withdrawn => Err(Refusal::Offline.into()),
        _ => Ok(job),
    }
}
