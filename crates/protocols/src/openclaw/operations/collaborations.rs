//! Shows one collaboration to its two parties, and lists the caller's own by page: running ones by
//! urgency, the others newest first.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::alias::{ClaimTarget, claim};
use rialto_core::command::JobRef;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::{Job, State as JobState};
use rialto_core::world::World;
use rialto_engine::run::JobRole;
use serde::Serialize;
use uuid::Uuid;

use super::{about, failed, query};
use crate::adapter::caller::{Caller, KnownCaller};
use crate::adapter::question_view::QuestionView;
use crate::adapter::shown_jobs;
use crate::kit::query::Query;
use crate::kit::{raw_json, rfc3339};
use crate::openclaw::OpenclawContext;
use crate::openclaw::auth::{PathUuid, calling_agent};
use crate::openclaw::errors::{self, ErrorResponse, HandlerResult};
use crate::openclaw::wire::CommonMembers;
use crate::openclaw::wire::answers::{CollaborationPage, CollaborationSummary, CollaborationView};
use crate::openclaw::wire::error::Failure;
use crate::openclaw::wire::stream::CollaborationCursor;
use crate::openclaw::wire::words::{Role, State as Stands};
use crate::openclaw::{ID, collaboration};

/// The default number of collaborations on one page.
const PAGE: i64 = 50;
const PAGE_MAX: i64 = 200;
/// A page ends with the collaboration that reaches this many bytes.
const PAGE_BYTES: usize = 1 << 20;
/// The most jobs scanned for one page, whether they match or not.
const LOOKED_AT_MAX: usize = 2_000;
const STEP: usize = 50;

/// A collaboration with the question of its responder, if one is open. The requester answers it with
/// `POST /v1/jobs/{id}/answer`.
#[derive(Serialize)]
struct CollaborationWithQuestion {
    #[serde(flatten)]
    view: CollaborationView,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<QuestionView>,
}

/// `GET /collaborations/{id}`.
pub async fn show(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    PathUuid(id): PathUuid,
) -> HandlerResult {
    let refuse = |failure| about(&context, failure, None);
    let unknown = || refuse(Failure::not_found("collaboration"));
    let own = match known.0.caller {
        Caller::Agent(agent) => Some(agent),
        // Only the two parties may read input and output (R91).
        Caller::Operator => return Err(unknown()),
        Caller::Anonymous | Caller::FormerAgent(_) => None,
    };
    let job = find_collaboration(&context, own, id.ok_or_else(unknown)?).await.map_err(refuse)?;
    let job = job.filter(|job| own.is_some() || is_open(&context, job)).ok_or_else(unknown)?;
    if let Some(agent) = own {
        shown_jobs::mark_jobs_shown(&context, agent, [&job]).await;
    }
    let CollaborationSummary { collaboration_id, state, request, response, result } =
        summarize(&context, &job);
    let common = CommonMembers {
        correlation_id: collaboration::ids(&job).correlation_id,
        timestamp: context.engine.now(),
    };
    let view = CollaborationView::new(common, collaboration_id, state, request, response, result);
    let question = QuestionView::of(&job, rfc3339::format_millis);
    let shown = CollaborationWithQuestion { view, question };
    Ok(errors::json_response(200, &shown))
}

/// Whether the collaboration can be read without a key, on an open hub.
fn is_open(context: &OpenclawContext, job: &Job) -> bool {
    let home = |world: &World, agent: AgentId| world.agent(agent).map(|agent| agent.home);
    let ours =
        |world: &World| job.intended_worker().is_none_or(|agent| home(world, agent) == Some(ID));
    job.request.origin == ID && context.engine.with_world(ours)
}

/// A collaboration as its parties see it.
pub fn summarize(context: &OpenclawContext, job: &Job) -> CollaborationSummary {
    let at = job.acceptance.accepted_at.or(job.ended_at).unwrap_or(job.request.opened_at);
    let response = collaboration::response(context, job, at).map(|response| response.write());
    let accepted = job.acceptance.accepted_at.is_some() || job.ended_at.is_some();
    CollaborationSummary {
        collaboration_id: accepted.then(|| collaboration::ids(job).collaboration_id.to_string()),
        state: collaboration::state(job),
        request: raw_json::verbatim(&collaboration::request(context, job)),
        response: response.as_deref().map(raw_json::verbatim),
        result: collaboration::result(context, job).as_deref().map(raw_json::verbatim),
    }
}

/// A collaboration by its own id or its request's id. With `own`, only those of that agent.
pub async fn find_collaboration(
    context: &OpenclawContext,
    own: Option<AgentId>,
    id: Uuid,
) -> Result<Option<Arc<Job>>, Failure> {
    let failed = |failure| errors::from_engine(&failure);
    let party = |job: &Arc<Job>| {
        own.is_none_or(|own| job.is_requested_by(own) || collaboration::is_responder(job, own))
    };
    let by_id = context.engine.find_job(&JobRef::Uuid(id)).await.map_err(failed)?;
    if let Some(job) = by_id.filter(party) {
        return Ok(Some(job));
    }
    let text = id.to_string();
    let named = |job: &&Arc<Job>| {
        job.request.origin == ID && request_of(&job.request.foreign_id) == Some(&text)
    };
    let Some(own) = own else {
        // For an operator, or any caller on an open hub. Two requesters may use the same request
        // id, which is then ambiguous.
        let live = context.engine.with_world(|world| {
            let mut live = world.live_jobs().filter(named);
            live.next().filter(|_| live.next().is_none()).cloned()
        });
        return match live {
            Some(job) => Ok(Some(job)),
            None => find_by_request(context, &text).await,
        };
    };
    let live = context.engine.with_world(|world| {
        let asked = world.jobs_requested_by(own).filter(named).last().cloned();
        let mut work = world.assigned_jobs(own).chain(world.deferred_jobs_for(own));
        asked.or_else(|| work.find(named).cloned())
    });
    if live.is_some() {
        return Ok(live);
    }
    if let Some(job) = find_by_request(context, &text).await?.filter(party) {
        return Ok(Some(job));
    }
    // The requester's own name for the job still finds it when another requester uses the same id,
    // and for requests from before the id index existed.
    let name = context
        .engine
        .with_world(|world| world.alias_of(own, ID).map(|name| format!("{name}/{id}")));
    let Some(name) = name else { return Ok(None) };
    let wanted = JobRef::Foreign { origin: ID, id: name };
    let found = context.engine.find_job(&wanted).await.map_err(failed)?;
    Ok(found.filter(|job| job.is_requested_by(own)))
}

/// The job that a request id leads to, including ended jobs.
async fn find_by_request(context: &OpenclawContext, id: &str) -> Result<Option<Arc<Job>>, Failure> {
    let failed = |failure| errors::from_engine(&failure);
    let found = context.engine.claim_target(claim::request(ID, id)).await.map_err(failed)?;
    let Some(ClaimTarget::Job(job)) = found else { return Ok(None) };
    let job = context.engine.load_job(job).await.map_err(failed)?;
    Ok(job.filter(|job| job.state != JobState::Withdrawn))
}

/// The request id inside the requester's name for the job.
fn request_of(name: &str) -> Option<&str> {
    let (_, request) = name.split_once('/')?;
    request.split('#').next()
}

/// The query of a list.
struct ListQuery {
    agent: AgentId,
    role: Option<Role>,
    state: Option<Stands>,
    limit: usize,
    at: CollaborationCursor,
}

/// `GET /collaborations?role=&state=&after=&limit=`.
pub async fn list(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = query(&context, raw.as_deref())?;
    let refuse = |failure| about(&context, failure, None);
    let agent =
        context.engine.with_world(|world| calling_agent(known, world, query.text("agent_id")));
    let wanted = read_list_query(&query, agent.map_err(refuse)?).map_err(refuse)?;
    let (rows, next) = page(&context, wanted).await?;
    let common = errors::common_members(&context, None);
    Ok(errors::json_response(
        200,
        &CollaborationPage::new(common, rows, next.map(CollaborationCursor::write)),
    ))
}

fn read_list_query(query: &Query, agent: AgentId) -> Result<ListQuery, Failure> {
    let wrong = |text: &str| Failure::with_violations(vec![text.to_owned()]);
    let role = match query.text("role").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => {
            Some(Role::read(text).ok_or_else(|| wrong("role must be requester or responder"))?)
        }
    };
    let state = match query.text("state").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => {
            let names: Vec<_> = Stands::ALL.iter().map(|state| state.as_str()).collect();
            let says = format!("state must be one of {}", names.join(", "));
            Some(Stands::read(text).ok_or_else(|| wrong(&says))?)
        }
    };
    let limit = query.integer("limit", 1..=PAGE_MAX)?.unwrap_or(PAGE);
    let first = match role {
        Some(Role::Requester) => CollaborationCursor::Asked(None),
        Some(Role::Responder) | None => CollaborationCursor::InHand(0, JobId(0)),
    };
    let at = match query.text("after").filter(|text| !text.is_empty()) {
        None => first,
        Some(text) => {
            let says = "after must be the next_cursor of an earlier page";
            CollaborationCursor::read(text).ok_or_else(|| wrong(says))?
        }
    };
    Ok(ListQuery { agent, role, state, limit: usize::try_from(limit).unwrap_or(1), at })
}

/// One page, and the cursor of the next.
async fn page(
    context: &OpenclawContext,
    wanted: ListQuery,
) -> Result<(Vec<CollaborationSummary>, Option<CollaborationCursor>), ErrorResponse> {
    let (mut rows, mut bytes, mut looked) = (Vec::new(), 0, 0);
    let mut seen = Vec::new();
    let mut at = Some(wanted.at);
    while let Some(here) = at {
        let (jobs, next) = step(context, wanted.agent, here).await?;
        let ended = next.is_none();
        at = next.or_else(|| here.next_list(wanted.role));
        for (job, place) in jobs {
            looked += 1;
            if wanted.state.is_some_and(|state| state != collaboration::state(&job)) {
                continue;
            }
            let row = summarize(context, &job);
            bytes += row.request.get().len()
                + row.result.as_ref().map_or(0, |result| result.get().len());
            rows.push(row);
            seen.push(job);
            if rows.len() >= wanted.limit || bytes >= PAGE_BYTES {
                note_fetch(context, &wanted, &seen).await;
                return Ok((rows, place.or_else(|| here.next_list(wanted.role))));
            }
        }
        if looked >= LOOKED_AT_MAX && !ended {
            break;
        }
    }
    note_fetch(context, &wanted, &seen).await;
    Ok((rows, at))
}

/// Records that the agent has seen its work. Listing the requester role only does not count.
async fn note_fetch(context: &OpenclawContext, wanted: &ListQuery, seen: &[Arc<Job>]) {
    if wanted.role != Some(Role::Requester) {
        shown_jobs::note_fetch(context, wanted.agent, seen).await;
    }
}

type ListStep = (Vec<(Arc<Job>, Option<CollaborationCursor>)>, Option<CollaborationCursor>);

/// The next jobs of one list, each with the cursor after it, and the cursor where the list
/// continues.
async fn step(
    context: &OpenclawContext,
    agent: AgentId,
    at: CollaborationCursor,
) -> Result<ListStep, ErrorResponse> {
    match at {
        CollaborationCursor::InHand(priority, after) => {
            Ok(current_jobs(context, agent, (priority, after)))
        }
        CollaborationCursor::Worked(from) => {
            let newest =
                || context.engine.with_world(|world| world.agent_state(agent)?.last_worked);
            past_jobs(context, agent, JobRole::Worker, from.or_else(newest)).await
        }
        CollaborationCursor::Asked(from) => {
            let newest =
                || context.engine.with_world(|world| world.agent_state(agent)?.last_requested);
            past_jobs(context, agent, JobRole::Requester, from.or_else(newest)).await
        }
    }
}

/// The jobs assigned to the agent, or waiting for it, most urgent first.
fn current_jobs(context: &OpenclawContext, agent: AgentId, after: (u8, JobId)) -> ListStep {
    let mut jobs: Vec<Arc<Job>> = context.engine.with_world(|world| {
        let all = world.assigned_jobs(agent).chain(world.deferred_jobs_for(agent));
        all.filter(|job| (job.request.priority, job.id) > after).cloned().collect()
    });
    jobs.sort_unstable_by_key(|job| (job.request.priority, job.id));
    jobs.dedup_by_key(|job| job.id);
    let placed = |job: Arc<Job>| {
        let place = CollaborationCursor::InHand(job.request.priority, job.id);
        (job, Some(place))
    };
    (jobs.into_iter().map(placed).collect(), None)
}

/// The jobs that the agent requested or worked on, newest first.
async fn past_jobs(
    context: &OpenclawContext,
    agent: AgentId,
    side: JobRole,
    from: Option<JobId>,
) -> Result<ListStep, ErrorResponse> {
    let place = |id: JobId| match side {
        JobRole::Requester => CollaborationCursor::Asked(Some(id)),
        JobRole::Worker => CollaborationCursor::Worked(Some(id)),
    };
    let found = context.engine.jobs_of(side, from, STEP).await;
    let found = found.map_err(|bad| failed(context, &bad, None))?;
    let before = |job: &Job| match side {
        JobRole::Requester => job.links.previous_requested,
        JobRole::Worker => job.links.previous_worked,
    };
    // A cursor can be forged, so only the caller's own jobs are shown.
    let own = |job: &Arc<Job>| match side {
        JobRole::Requester => job.is_requested_by(agent),
        JobRole::Worker => job.worker() == Some(agent),
    };
    let shown = found.rows.into_iter().filter(own).filter(|job| job.state != JobState::Withdrawn);
    let rows = shown.map(|job| {
        let next = before(&job).map(place);
        (job, next)
    });
    Ok((rows.collect(), found.next.map(|id| place(JobId(id)))))
}
