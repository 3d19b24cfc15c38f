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
use rialto_protocols::adapter::Floor;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::ijson;
use rialto_protocols::registry::lent::JOB_LIFE;
use rialto_protocols::registry::opening::{self, Choice, Order, Wishes};
use rialto_protocols::registry::wire::{DECIMALS, JobPost, NAME_MAX};

use super::view::{Eyes, JobView};
use crate::v1::response::{Answered, json};
use crate::v1::problem::Problem;
use crate::v1::auth::{AsAgent, Sent};
use crate::v1::{strict_fields, agent_names, page, wait};

/// Members of the request body.
const MEMBERS: [&str; 8] =
    ["id", "skill", "input", "budget", "to", "select", "callback", "deadline"];
/// Response header with the id of the job.
const JOB_HEADER: &str = "rialto-job";

/// The parsed request.
struct Asked {
    wire: JobPost,
    /// The agent that is to do it, by any of its names.
    to: Option<String>,
    wishes: Wishes,
}

impl Asked {
    fn read(body: &[u8], now: Timestamp) -> Result<Self, Malformed> {
        let json = ijson::read(body)?;
        let f = strict_fields::fields(&json, &MEMBERS)?;
        let skill = f.required_name("skill", NAME_MAX)?.to_owned();
        let input = f.object("input")?.and(f.get("input"));
        let budget = f.required_credits("budget", DECIMALS)?;
        let callback = f.text("callback")?.filter(|url| !url.is_empty());
        let to = agent_names::given(&f, "to")?;
        let choice = choice(&f)?;
        if to.is_some() && choice != Choice::Best {
            return Err(f.fail("select", "must be omitted if \"to\" names an agent"));
        }
        let wishes = Wishes { choice, deadline: deadline(&f, now)?, ..Wishes::default() };
        let id = f.uuid("id")?;
        let wire = JobPost::plain(skill, input, budget, callback, &meaning(wishes));
        Ok(Self { wire: JobPost { job_id: id, ..wire }, to, wishes })
    }
}

/// What the preferences add to the job's digest; without any, the digest is the same as for a job
/// opened in the protocol itself.
fn meaning(wishes: Wishes) -> Vec<u8> {
    let choice = match wishes.choice {
        Choice::Best => "",
        Choice::Cheapest => "cheapest",
        Choice::Offers => "offers",
    };
    let deadline = wishes.deadline.map(|deadline| format!(" by {}", deadline.0));
    [choice, &deadline.unwrap_or_default()].concat().into_bytes()
}

fn choice(f: &Fields<'_, '_>) -> Result<Choice, Malformed> {
    match f.text("select")? {
        None | Some("best") => Ok(Choice::Best),
        Some("cheapest") => Ok(Choice::Cheapest),
        Some("offers") => Ok(Choice::Offers),
        Some(_) => Err(f.fail("select", "must be \"best\", \"cheapest\" or \"offers\"")),
    }
}

fn deadline(f: &Fields<'_, '_>, now: Timestamp) -> Result<Option<Timestamp>, Malformed> {
    let deadline = f.time("deadline")?;
    match deadline.is_some_and(|deadline| deadline > now.plus(JOB_LIFE)) {
        true => Err(f.fail("deadline", "must be within the next 24 hours")),
        false => Ok(deadline),
    }
}

/// `POST /v1/jobs`: opens a job for the named agent, or for one the hub chooses, and may wait for
/// its end.
pub async fn open(
    State(floor): State<Floor>,
    by: AsAgent,
    RawQuery(raw): RawQuery,
    Sent(body): Sent,
) -> Answered {
    let at_most = wait::wanted(&page::query(raw.as_deref(), &["wait"])?)?;
    let Asked { wire, to, wishes } = Asked::read(&body, floor.engine.now())?;
    let find = |name: &String| floor.engine.look(|world| agent_names::find(world, name, "/to"));
    let worker = to.as_ref().map(find).transpose()?;
    if let Some(url) = &wire.callback_url {
        let blocked = |why| Problem::field("/callback", format!("callback {why}"));
        floor.egress.check(url).map_err(blocked)?;
    }
    let order = Order { wire, requester: Requester::Agent(by.id), worker, wishes };
    let job = opening::open(&floor, order, by.once).await?;
    let job = settle(&floor, by.id, job, at_most).await?;
    let mut answer = json(StatusCode::CREATED, &JobView::whole(&job, Eyes::Requester));
    if let Ok(id) = HeaderValue::from_str(&job.uuid.to_string()) {
        answer.headers_mut().insert(JOB_HEADER, id);
    }
    Ok(answer)
}

/// Waits for the end as long as the caller wants. If the job does not end in time, the caller gets
/// a notice later.
async fn settle(
    floor: &Floor,
    by: AgentId,
    job: Arc<Job>,
    at_most: Duration,
) -> Result<Arc<Job>, Problem> {
    let mut job = super::ended(floor, by, job, at_most).await?;
    if !job.state.is_final() && !job.pending {
        job = match floor.engine.run(Command::MarkPending { job: job.id }).await {
            Ok(Answer::Job { job, .. }) => job,
            // It ended just before it could be marked as pending.
            Ok(_) | Err(Failure::Refused(_)) => super::now(floor, job.id).await?,
            Err(failure) => return Err(failure.into()),
        };
    }
    match job.state {
        JobState::Withdrawn => Err(Refusal::Offline.into()),
        _ => Ok(job),
    }
}
