//! Operations that request a collaboration: the checks in order, and the answer in time.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::alias::{Digest, claim};
use rialto_core::job::{Job, Requester};
use rialto_core::refusal::Refusal;
use rialto_engine::{Failure as EngineFailure, Idempotency};
use uuid::Uuid;

use super::offering::{self, Tried};
use super::{about, choice, failed, repeat, settle};
use crate::adapter::{Floor, bridge};
use crate::kit::ijson;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::{self, Message, Rejection, Request};
use crate::openclaw::proof::{Known, Named, Sent};
use crate::openclaw::say::{Answered, Refused};
use crate::openclaw::{ID, WORDS_MAX, refusals, translate};

/// The most retries under one idempotency key after retryable rejections.
const TRIES_MAX: usize = 1_000;

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

/// Whether the request has the member that marks a request as written by the hub for another agent.
fn is_marked(raw: &str) -> bool {
    raw.contains(bridge::MEMBER)
        && ijson::read(raw.as_bytes()).is_ok_and(|json| json.get(bridge::MEMBER).is_some())
}

/// A request that is being handled.
pub struct Asking {
    pub message: Arc<Message<Request>>,
    pub requester: Requester,
    pub once: Idempotency,
    /// The requester's name for the job.
    pub name: String,
}

/// The outcome of a request.
pub enum Reply {
    /// There is a collaboration, from this request or an earlier one.
    Job(Arc<Job>),
    /// There is none: why, and who rejected it.
    No(Rejection, Option<Uuid>),
}

/// Handles a request and answers it.
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
    if message.raw.len() - said.input_data.len() > WORDS_MAX {
        let wrong = format!("members besides input_data must have at most {WORDS_MAX} bytes");
        return Err(about(floor, Failure::violated(vec![wrong]), id));
    }
    if is_marked(&message.raw) {
        let wrong = format!("{} is reserved for the hub; remove it", bridge::MEMBER);
        return Err(about(floor, Failure::violated(vec![wrong]), id));
    }
    let named = said.requester_agent_id;
    let requester = floor.engine.look(|world| known.requester(world, named));
    let requester = requester.map_err(|bad| about(floor, bad, id))?;
    message.said.responder_agent_id = message.said.responder_agent_id.or(path);
    let content = translate::content(&message.said);
    let keyed = message.said.idempotency_key.is_some();
    let mut scope = repeat::scope(&requester, &message.said);
    let mut asking = Asking {
        once: Idempotency { scope, request: content, principal: known.0.principal },
        name: format!("{named}/{}", message.said.request_id),
        requester,
        message: Arc::new(message),
    };
    for turn in 0..TRIES_MAX {
        asking.once.scope = scope;
        let kept = floor.engine.kept(scope).await.map_err(|bad| failed(floor, &bad, id))?;
        let (reply, before) = match kept {
            Some(memory) => (repeat::again(floor, &memory, id).await?, Some(memory)),
            None => match repeat::known_by_name(floor, &asking, keyed || turn > 0).await? {
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
            // A retryable rejection is tried again, under a scope derived from the earlier one.
            Some(Reply::Job(job)) if repeat::may_be_asked_again(&job) => {
                scope = Digest::of(&[b"again", &scope.0, job.uuid.as_bytes()]);
                continue;
            }
            Some(reply) => reply,
            None => match named_anew(floor, &asking).await? {
                Some(reply) => reply,
                // Another request with the same key was faster.
                None => continue,
            },
        };
        return settle::answer(floor, &asking, reply, other).await;
    }
    Err(failed(floor, &EngineFailure::StillRunning, id))
}

/// Asks under the request's own name. If that was used before, under a new name derived from it.
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

/// Asks the named agent, or one that the hub chooses. `None` when the same was asked meanwhile.
async fn fresh(floor: &Floor, asking: &Asking) -> Result<Option<Reply>, Refused> {
    let id = asking.message.correlation_id;
    let tried = match asking.message.said.responder_agent_id {
        Some(responder) => offering::direct(floor, asking, responder).await,
        None => choice::ask_somebody(floor, asking).await,
    };
    match tried {
        Ok(Tried::Job(job)) => Ok(Some(Reply::Job(job))),
        Ok(Tried::No(rejection, by)) => {
            // A final rejection is repeated for a day; a retryable one is not (D12).
            if !rejection.code.retryable() {
                repeat::remember(floor, asking, &rejection, by).await;
            }
            Ok(Some(Reply::No(rejection, by)))
        }
        Ok(Tried::Known) => Ok(None),
        Err(failure) => Err(about(floor, failure, id)),
    }
}
