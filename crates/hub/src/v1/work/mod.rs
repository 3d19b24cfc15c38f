//! The caller's assigned jobs, at once or as soon as they change.

mod instances;
mod view;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::world::World;
use rialto_protocols::adapter::caller::{Caller, Credential};
use rialto_protocols::adapter::{HubContext, shown_jobs};
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::budget::ByteBudget;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::query::Query;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::auth::{AgentCaller, is_registered};
use super::problem::Problem;
use super::response::{HandlerResult, format_time, ok_response};
use super::{errors, page, wait};
use crate::v1::params::WaitSeconds;
pub use instances::Instances;
use view::{AnswerView, MessageView, WorkView};

/// Jobs returned at once.
const LISTED_MAX: i64 = 50;
/// Jobs a worker may list as known.
const KNOWN_MAX: usize = 200;

/// An assignment as a worker refers to it: job id and epoch; without an epoch, any assignment.
type AssignmentRef = (Uuid, Option<u32>);

/// The assignments a worker has.
type KnownAssignments = HashMap<AssignmentRef, KnownDialogue>;

/// What a worker has of the dialogue about a job. `None` if it does not want it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KnownDialogue {
    /// The number of the last question whose answer it has.
    answer: Option<u32>,
    /// The number of the last message of the requester that it has.
    message: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
pub struct WorkResponse {
    /// Assigned jobs that the caller did not list as known.
    jobs: Vec<WorkView>,
    /// Known jobs that the caller does not have any more.
    gone: Vec<Uuid>,
    /// Answers to the caller's questions that it did not list as known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<AnswerView>,
    /// Later messages of the requesters that it did not list as known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<MessageView>,
    /// There are more new jobs than were returned.
    more: bool,
    /// The hub's current time, because deadlines refer to its clock.
    now: Time,
}

/// What is new to a worker.
struct WorkChanges {
    new_jobs: Vec<Arc<Job>>,
    gone: Vec<Uuid>,
    answers: Vec<AnswerView>,
    messages: Vec<MessageView>,
    more: bool,
}

impl WorkChanges {
    fn is_empty(&self) -> bool {
        self.new_jobs.is_empty()
            && self.gone.is_empty()
            && self.answers.is_empty()
            && self.messages.is_empty()
    }
}

rialto_protocols::request_members! {
    /// Which assigned jobs to list.
    WorkQuery {
        wait: Option<WaitSeconds>,
        /// How many new jobs to return at most.
        #[schemars(range(max = LISTED_MAX))]
        limit: Option<u8>,
        /// The jobs the caller already has, separated by commas: ids, each optionally with `.` and
        /// its epoch, then `.` and the number of the last question whose answer the caller has, and
        /// then `.` and the number of the last message of the requester that it has.
        known: Option<String>,
        /// A name of the program, so that two programs cannot work as one agent.
        instance: Option<String>,
    }
}

/// `GET /v1/work`: assigned jobs that the caller did not list as known, oldest first, and known
/// jobs that it lost. With `wait` the response is sent once there is either.
pub async fn list_work(
    State(context): State<HubContext>,
    Extension(instances): Extension<Instances>,
    Extension(credential): Extension<Credential>,
    by: Result<AgentCaller, Problem>,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let by = by.map_err(|problem| match credential.caller {
        Ok(Caller::FormerAgent(_)) => unregistered_problem(),
        _ => problem,
    })?;
    let query = page::parse_query(raw.as_deref(), WorkQuery::MEMBERS)?;
    let at_most = wait::parse_wait(&query)?;
    let limit = query.integer("limit", 0..=LISTED_MAX)?.unwrap_or(LISTED_MAX) as usize;
    let known = parse_known(&query)?;
    let _asking = match instances::parse_instance(&query)? {
        Some(name) => Some(instances.begin_request(&context.engine, by.id, name).await?),
        None => None,
    };
    context.engine.record_seen(by.id);
    let look = || context.engine.with_world(|world| find_changes(world, by.id, &known, limit));
    let is_gone = || !context.engine.with_world(|world| is_registered(world, by.id));
    let changed = || {
        let is_new = !look().is_empty();
        (is_new || is_gone()).then_some(())
    };
    shown_jobs::note_fetch(&context, by.id, []).await;
    wait::wait_until(&context, by.id, at_most, changed).await?;
    if is_gone() {
        return Err(unregistered_problem());
    }
    wait::ensure_key_is_valid(&context)?;
    let WorkChanges { new_jobs: fresh, gone, answers, messages, more } = look();
    let jobs = mark_handed_over(&context, by.id, fresh).await?;
    // One at a time, because each may be large.
    let shown = |job: &Arc<Job>| context.engine.with_world(|world| WorkView::of(world, job));
    let (jobs, now) = (jobs.iter().filter_map(shown).collect(), format_time(context.engine.now()));
    Ok(ok_response(&WorkResponse { jobs, gone, answers, messages, more, now }))
}

/// An unregistered worker gets this error instead of an authentication error; otherwise it would
/// register again by itself.
fn unregistered_problem() -> Problem {
    let text = "the agent was unregistered; register again with the same key to restore it";
    Problem::new(&errors::UNREGISTERED, text)
}

/// `?known=`: the jobs the caller already has, by the hub's ids, each optionally with its epoch, the
/// last question whose answer the caller has, and the last message that it has (0: none).
fn parse_known(query: &Query) -> Result<KnownAssignments, Malformed> {
    let fail = |message: String| Malformed { field: "?known".to_owned(), message };
    let given = query.text("known").filter(|text| !text.is_empty());
    let turns: Vec<&str> = given.map(|text| text.split(',').collect()).unwrap_or_default();
    if turns.len() > KNOWN_MAX {
        return Err(fail(format!("known has more than {KNOWN_MAX} jobs")));
    }
    let known: Option<KnownAssignments> = turns.into_iter().map(parse_assignment).collect();
    known.ok_or_else(|| fail("known must be job ids (UUIDs), separated by commas".to_owned()))
}

fn parse_assignment(text: &str) -> Option<(AssignmentRef, KnownDialogue)> {
    let mut pieces = text.splitn(4, '.');
    let id = pieces.next()?.parse::<uuid::fmt::Hyphenated>().ok()?;
    let mut number = || pieces.next().map(str::parse::<u32>).transpose().ok();
    let (epoch, answer, message) = (number()?, number()?, number()?);
    Some(((id.into(), epoch), KnownDialogue { answer, message }))
}

/// The jobs an agent has now and may report, oldest first.
pub fn assigned_jobs(world: &World, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
    world.assigned_jobs(agent).filter(|job| job.state.is_assigned())
}

fn find_changes(
    world: &World,
    agent: AgentId,
    known: &KnownAssignments,
    limit: usize,
) -> WorkChanges {
    let known_as = |job: &Job| {
        known.get(&(job.uuid, Some(job.epoch))).or_else(|| known.get(&(job.uuid, None))).copied()
    };
    let unknown =
        || assigned_jobs(world, agent).filter(|job| known_as(job).is_none()).take(limit + 1);
    let mut budget = ByteBudget::default();
    let size = |job: &Job| job.request.input.len() + job.dialogue_bytes();
    let fitting = unknown().take(limit).take_while(|job| budget.take(size(job)));
    let fresh: Vec<Arc<Job>> = fitting.cloned().collect();
    let more = unknown().count() > fresh.len();
    let has = |(id, epoch): &&AssignmentRef| {
        let same = |job: &Arc<Job>| job.uuid == *id && epoch.is_none_or(|epoch| epoch == job.epoch);
        assigned_jobs(world, agent).any(same)
    };
    let gone = known.keys().filter(|turn| !has(turn)).map(|(id, _)| *id).collect();
    // What does not fit is still new at the next request.
    let mut budget = ByteBudget::default();
    let talked = assigned_jobs(world, agent).filter(|job| job.dialogue_bytes() > 0);
    let known_jobs: Vec<_> = talked.filter_map(|job| Some((job, known_as(job)?))).collect();
    let answers = known_jobs.iter().filter_map(|(job, known)| Some((job, known.answer?)));
    let answers = answers.flat_map(|(job, last)| AnswerView::after(job, last));
    let answers = answers.take_while(|answer| budget.take(answer.content_bytes())).collect();
    let messages = known_jobs.iter().filter_map(|(job, known)| Some((job, known.message?)));
    let messages = messages.flat_map(|(job, last)| MessageView::after(job, last));
    let messages = messages.take_while(|message| budget.take(message.content_bytes())).collect();
    WorkChanges { new_jobs: fresh, gone, answers, messages, more }
}

/// Returns these jobs, marked as handed over if they were not.
pub async fn mark_handed_over(
    context: &HubContext,
    agent: AgentId,
    jobs: Vec<Arc<Job>>,
) -> Result<Vec<Arc<Job>>, Problem> {
    let unseen = |job: &Arc<Job>| job.assignment.is_some_and(|turn| !turn.handed_over);
    if !jobs.iter().any(unseen) {
        shown_jobs::note_fetch(context, agent, &jobs).await;
        return Ok(jobs);
    }
    let jobs = jobs.iter().map(|job| job.id).collect();
    match context.engine.run(Command::HandOver { agent, jobs }).await? {
        Answer::Jobs(jobs) => Ok(jobs),
        _ => Ok(Vec::new()),
    }
}
