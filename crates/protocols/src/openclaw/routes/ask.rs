//! Asking for a collaboration: the checks in their order, and the answer in time.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response as Http;
use rialto_core::agent::Agent;
use rialto_core::alias::{Digest, claim};
use rialto_core::answer::Answer as Done;
use rialto_core::command::{Command, JobRef};
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, fit};
use rialto_core::memory::{Kept, Memory, Receipt};
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::{Failure as EngineFailure, Idempotency};
use tokio::time::Instant;
use uuid::Uuid;

use super::{about, choice, failed};
use crate::face::Floor;
use crate::kit::ijson;
use crate::kit::object::Object;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::{self, Answer, Message, Rejection, Request, Response};
use crate::openclaw::proof::{Known, Named, Sent};
use crate::openclaw::refusals::{self, Asked};
use crate::openclaw::say::{self, Answered, Refused};
use crate::openclaw::state::State as Stands;
use crate::openclaw::translate::{self, Order};
use crate::openclaw::{ID, view};

/// An agent that answers for itself has 9 s, and the requester its answer within 10 (R63).
const ANSWER_WAIT: Duration = Duration::from_millis(9_700);
/// A missed hint costs at most this long.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How many times one key may be used again for something that could not be done before.
const TRIES_MAX: usize = 1_000;
/// Tells that a key was used before, with another body (R65).
const MISMATCH: &str = "idempotency-mismatch";

/// `POST /collaborations`.
pub async fn post(State(floor): State<Floor>, known: Known, Sent(body): Sent) -> Answered {
    let message = message::read(&body).map_err(|bad| Refused::new(&floor, bad))?;
    ask(&floor, known, message, None).await
}

/// `POST /agents/{agent_id}/collaborations`.
pub async fn post_to(
    State(floor): State<Floor>,
    known: Known,
    Named(responder): Named,
    Sent(body): Sent,
) -> Answered {
    let message = message::read(&body).map_err(|bad| Refused::new(&floor, bad))?;
    let responder = responder
        .ok_or_else(|| about(&floor, Failure::not_found("agent"), message.correlation_id))?;
    ask(&floor, known, message, Some(responder)).await
}

/// A request on its way.
pub struct Asking {
    pub message: Message<Request>,
    pub requester: Requester,
    pub once: Idempotency,
    /// What the requester calls it.
    pub name: String,
}

/// What is answered.
pub enum Reply {
    /// There is a collaboration, now or since an earlier request.
    Job(Arc<Job>),
    /// There is none, and why; by whom.
    No(Rejection, Option<Uuid>),
}

/// Takes a request and answers it.
pub async fn ask(
    floor: &Floor,
    known: Known,
    mut message: Message<Request>,
    path: Option<Uuid>,
) -> Answered {
    let id = message.correlation_id;
    let said = &message.said;
    if let (Some(path), Some(named)) = (path, said.responder_agent_id)
        && path != named
    {
        let wrong = "responder_agent_id must be the agent in the path".to_owned();
        return Err(about(floor, Failure::violated(vec![wrong]), id));
    }
    let named = said.requester_agent_id;
    let requester = floor.engine.look(|world| known.requester(world, named));
    let requester = requester.map_err(|bad| about(floor, bad, id))?;
    message.said.responder_agent_id = message.said.responder_agent_id.or(path);
    let content = translate::content(&message.said);
    let keyed = message.said.idempotency_key.is_some();
    let mut scope = scope(&requester, &message.said);
    let mut asking = Asking {
        once: Idempotency { scope, request: content },
        name: format!("{named}/{}", message.said.request_id),
        requester,
        message,
    };
    for turn in 0..TRIES_MAX {
        asking.once.scope = scope;
        let (reply, before) = match floor.engine.kept(scope) {
            Some(memory) => (again(floor, &memory, id).await?, Some(memory)),
            None => match known_by_name(floor, &asking, keyed || turn > 0).await? {
                Some(job) if job.content != content => {
                    let failure = refusals::refused(&Refusal::SameIdOtherContent);
                    return Err(about(floor, failure, id));
                }
                Some(job) => (Some(Reply::Job(job)), None),
                None => (None, None),
            },
        };
        let other = before.is_some_and(|memory| memory.request != content);
        if other && !keyed {
            let failure = refusals::refused(&Refusal::SameIdOtherContent);
            return Err(about(floor, failure, id));
        }
        let reply = match reply {
            // What could not be done then may be done now; it is asked under a name that follows.
            Some(Reply::Job(job)) if may_be_asked_again(&job) => {
                scope = Digest::of(&[b"again", &scope.0, job.uuid.as_bytes()]);
                continue;
            }
            Some(reply) => reply,
            None => match named_anew(floor, &asking).await? {
                Some(reply) => reply,
                // Somebody else was faster with the same key.
                None => continue,
            },
        };
        return answer(floor, &asking, reply, other).await;
    }
    Err(failed(floor, &EngineFailure::StillRunning, id))
}

/// What makes a repeat one: the key, or without a key the request's own id (R64, R66).
fn scope(requester: &Requester, said: &Request) -> Digest {
    let who = match requester {
        Requester::Agent(agent) => agent.0.to_string(),
        Requester::Guest(name) => name.clone(),
    };
    match &said.idempotency_key {
        Some(key) => Digest::of(&[b"openclaw key", who.as_bytes(), key.as_bytes()]),
        None => Digest::of(&[b"openclaw request", who.as_bytes(), said.request_id.as_bytes()]),
    }
}

/// Whether the repeat of a request starts anew: it was rejected for want of something that comes
/// back (D12).
fn may_be_asked_again(job: &Job) -> bool {
    view::state(job) == Stands::Rejected && view::rejection(job).code.retryable()
}

/// What was answered before; nothing if that could not be told again.
async fn again(floor: &Floor, memory: &Memory, id: Option<Uuid>) -> Result<Option<Reply>, Refused> {
    Ok(match &memory.kept {
        Kept::Answer { body, .. } => remembered(body),
        Kept::Done(Receipt::Job(job)) => {
            let job = floor.engine.job(*job).await.map_err(|bad| failed(floor, &bad, id))?;
            job.map(Reply::Job)
        }
        Kept::Done(Receipt::Refused(refusal)) => {
            let now = floor.engine.now();
            let rejection = floor
                .engine
                .look(|world| refusals::rejection(refusal, Asked { world, agent: None, now }));
            Some(Reply::No(rejection.map_err(|bad| about(floor, bad, id))?, None))
        }
        Kept::Done(_) => None,
    })
}

/// A job under the request's own id, from before what is remembered.
async fn known_by_name(
    floor: &Floor,
    asking: &Asking,
    by_key: bool,
) -> Result<Option<Arc<Job>>, Refused> {
    if by_key {
        return Ok(None);
    }
    let wanted = JobRef::Foreign { origin: ID, id: asking.name.clone() };
    let found = floor.engine.find_job(&wanted).await;
    let found = found.map_err(|bad| failed(floor, &bad, asking.message.correlation_id))?;
    Ok(found.filter(|job| job.requester == asking.requester))
}

/// Asks under the request's own name, or if that was used before, under one that follows from it.
async fn named_anew(floor: &Floor, asking: &Asking) -> Result<Option<Reply>, Refused> {
    let id = asking.message.correlation_id;
    let used = floor.engine.claim(claim::job(ID, &asking.name)).await;
    match used.map_err(|bad| failed(floor, &bad, id))? {
        None => fresh(floor, asking).await,
        Some(_) => {
            let name = format!("{}#{}", asking.name, floor.engine.ids().uuid());
            let asking = Asking {
                message: asking.message.clone(),
                requester: asking.requester.clone(),
                once: asking.once,
                name,
            };
            fresh(floor, &asking).await
        }
    }
}

/// Asks whoever is named, or whoever the hub finds. `None` when the same was asked meanwhile.
async fn fresh(floor: &Floor, asking: &Asking) -> Result<Option<Reply>, Refused> {
    let id = asking.message.correlation_id;
    let tried = match asking.message.said.responder_agent_id {
        Some(responder) => direct(floor, asking, responder).await,
        None => choice::ask_somebody(floor, asking).await,
    };
    match tried {
        Ok(Tried::Job(job)) => Ok(Some(Reply::Job(job))),
        Ok(Tried::No(rejection, by)) => {
            // A rejection that stands is told again for a day; one that passes is not (D12).
            if !rejection.code.retryable() {
                remember(floor, asking, &rejection, by).await;
            }
            Ok(Some(Reply::No(rejection, by)))
        }
        Ok(Tried::Known) => Ok(None),
        Err(failure) => Err(about(floor, failure, id)),
    }
}

/// What came of asking somebody.
pub enum Tried {
    Job(Arc<Job>),
    No(Rejection, Option<Uuid>),
    /// It was asked already.
    Known,
}

async fn direct(floor: &Floor, asking: &Asking, responder: Uuid) -> Result<Tried, Failure> {
    let agent = floor.engine.look(|world| {
        let id = world.agent_named(ID, &responder.to_string())?;
        world.agent(id).filter(|agent| agent.active).cloned()
    });
    let Some(agent) = agent else { return no(floor, &Refusal::NoSuchAgent, None) };
    let by = Some(responder);
    match offer(floor, asking, &agent).await {
        Ok(job) => Ok(Tried::Job(job)),
        Err(Unasked::Rejected(rejection)) => Ok(Tried::No(rejection, by)),
        Err(Unasked::Known) => Ok(Tried::Known),
        Err(Unasked::Failed(failure)) => Err(failure),
    }
}

fn no(floor: &Floor, refusal: &Refusal, by: Option<Uuid>) -> Result<Tried, Failure> {
    let now = floor.engine.now();
    let rejection = floor
        .engine
        .look(|world| refusals::rejection(refusal, Asked { world, agent: None, now }))?;
    Ok(Tried::No(rejection, by))
}

/// Why somebody was not asked.
pub enum Unasked {
    Rejected(Rejection),
    Known,
    Failed(Failure),
}

/// Gives a request to an agent: capability, status and input here, the rest by the rules (R83).
pub async fn offer(
    floor: &Floor,
    asking: &Asking,
    agent: &Arc<Agent>,
) -> Result<Arc<Job>, Unasked> {
    let command = prepare(floor, asking, agent)?;
    let refused = match floor.engine.run_once(command, Some(asking.once)).await {
        Ok(ran) if ran.replayed => return Err(Unasked::Known),
        Ok(ran) => match ran.answer {
            Done::Job { job, .. } => return Ok(job),
            _ => return Err(Unasked::Failed(Failure::not_found("collaboration"))),
        },
        Err(EngineFailure::Refused(Refusal::SameIdOtherContent) | EngineFailure::StillRunning)
            if floor.engine.kept(asking.once.scope).is_some() =>
        {
            return Err(Unasked::Known);
        }
        Err(failure) => failure,
    };
    Err(match refused {
        EngineFailure::Refused(refusal) => because(floor, agent, &refusal),
        failure => Unasked::Failed(refusals::failed(&failure)),
    })
}

/// The order that gives a request to an agent, unless what is known here speaks against it.
pub fn prepare(floor: &Floor, asking: &Asking, agent: &Arc<Agent>) -> Result<Command, Unasked> {
    let said = &asking.message.said;
    let now = floor.engine.now();
    let Some(skill) = agent.skill(&said.capability_id) else {
        return Err(because(floor, agent, &Refusal::NoSuchSkill));
    };
    if asking.requester == Requester::Agent(agent.id) {
        return Err(because(floor, agent, &Refusal::BridgeLoop { max: 0 }));
    }
    let away = floor.engine.look(|world| fit::away(world, agent, now));
    let away = away.map_err(|refusal| because(floor, agent, &refusal))?;
    let flaw = flaw(floor, agent, said);
    // Whoever is away is asked later, and what is wrong with the input is told then.
    if let (Some(flaw), None) = (&flaw, away) {
        return Err(Unasked::Rejected(flaw.clone()));
    }
    let order = Order {
        request: &asking.message,
        requester: asking.requester.clone(),
        worker: agent.id,
        takes: skill.takes,
        free: skill.price.is_zero(),
        uuid: floor.engine.ids().uuid(),
        name: asking.name.clone(),
        flaw: flaw.as_ref(),
    };
    Ok(translate::open_job(order, &floor.openclaw.settings, now))
}

/// What the input breaks of the capability's schema (R62).
fn flaw(floor: &Floor, agent: &Arc<Agent>, said: &Request) -> Option<Rejection> {
    let identity = floor.openclaw.identity(agent)?;
    let schema = identity.capability(&said.capability_id)?.input.as_ref()?;
    let violations = schema.check(&said.input_data).err()?;
    let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
    Some(Rejection::invalid_input(told.iter().map(String::as_str)))
}

/// A refusal by the rules, as far as it answers a request.
pub fn because(floor: &Floor, agent: &Agent, refusal: &Refusal) -> Unasked {
    let now = floor.engine.now();
    let asked = |world: &_| refusals::rejection(refusal, Asked { world, agent: Some(agent), now });
    match floor.engine.look(asked) {
        Ok(rejection) => Unasked::Rejected(rejection),
        Err(failure) => Unasked::Failed(failure),
    }
}

/// Writes a rejection down, for repeats. The effect of a request that was rejected is nothing, so
/// nothing is lost if this is.
async fn remember(floor: &Floor, asking: &Asking, rejection: &Rejection, by: Option<Uuid>) {
    let body =
        Object::new().raw("rejection_reason", &rejection.write()).maybe_id("by", by).finish();
    let Idempotency { scope, request } = asking.once;
    let kept = Kept::Answer { status: 200, body };
    if let Err(failure) = floor.engine.run(Command::Remember { scope, request, kept }).await {
        tracing::warn!(%failure, "a rejection could not be written down");
    }
}

fn remembered(body: &str) -> Option<Reply> {
    let json = ijson::read(body.as_bytes()).ok()?;
    let rejection = Rejection::read(json.get("rejection_reason")?.raw())?;
    let by = json.get("by").and_then(crate::openclaw::common::uuid);
    Some(Reply::No(rejection, by))
}

/// The answer: the response under the repeat's own ids, with the result once there is one.
async fn answer(floor: &Floor, asking: &Asking, reply: Reply, other: bool) -> Answered {
    let said = &asking.message.said;
    let now = floor.engine.now();
    let (response, job) = match reply {
        Reply::No(rejection, by) => {
            let response = Response {
                request_id: said.request_id,
                responder_agent_id: by.or(said.responder_agent_id).unwrap_or(floor.openclaw.hub_id),
                answer: Answer::Rejected(rejection),
                correlation_id: said.correlation_id,
                timestamp: now,
                result: None,
            };
            (response, None)
        }
        Reply::Job(job) => {
            let job = settled(floor, job, &asking.requester).await;
            let job = job.map_err(|bad| failed(floor, &bad, Some(said.correlation_id)))?;
            (of_job(floor, said, &job, floor.engine.now()), Some(job.uuid))
        }
    };
    let mut answer = say::text(200, response.write());
    mark(&mut answer, job, other);
    Ok(answer)
}

fn of_job(floor: &Floor, said: &Request, job: &Job, now: Timestamp) -> Response {
    let silent = || Response {
        request_id: said.request_id,
        responder_agent_id: view::responder(floor, job),
        answer: Answer::Rejected(view::rejection(job)),
        correlation_id: said.correlation_id,
        timestamp: now,
        result: None,
    };
    let response = view::response(floor, job, now).unwrap_or_else(silent);
    let accepted = matches!(response.answer, Answer::Accepted { .. });
    Response {
        request_id: said.request_id,
        correlation_id: said.correlation_id,
        result: accepted.then(|| view::result(floor, job)).flatten().map(Into::into),
        ..response
    }
}

fn mark(answer: &mut Http, job: Option<Uuid>, other: bool) {
    let headers = answer.headers_mut();
    if let Some(value) = job.and_then(|job| HeaderValue::from_str(&job.to_string()).ok()) {
        headers.insert(say::JOB_HEADER, value);
    }
    if other {
        headers.insert(MISMATCH, HeaderValue::from_static("true"));
    }
}

/// Waits for an agent that answers for itself; the rules end the waiting after 9 s.
async fn settled(
    floor: &Floor,
    mut job: Arc<Job>,
    requester: &Requester,
) -> Result<Arc<Job>, EngineFailure> {
    let listener = match requester {
        Requester::Agent(agent) => Some(*agent),
        Requester::Guest(_) => job.worker(),
    };
    let until = Instant::now() + ANSWER_WAIT;
    while view::state(&job) == Stands::AwaitingResponse && Instant::now() < until {
        let bell = floor.engine.news_of(listener.unwrap_or(AgentId(0)));
        let told = bell.notified();
        tokio::pin!(told);
        // From here on nothing can be missed, so looking comes after it.
        told.as_mut().enable();
        job = floor.engine.job(job.id).await?.unwrap_or(job);
        if view::state(&job) == Stands::AwaitingResponse {
            let _ = tokio::time::timeout(LOOK_AGAIN, told).await;
            job = floor.engine.job(job.id).await?.unwrap_or(job);
        }
    }
    Ok(job)
}
