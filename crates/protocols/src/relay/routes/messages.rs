//! Messages: sent, delivered as far as possible at once, and looked up.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use rialto_core::agent::Agent;
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, JobRef, SendMessage, Turn};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::Job;
use rialto_core::time::Millis;
use rialto_core::world::World;

use super::{Answered, failed, refuse};
use crate::adapter::{Answering, Floor, Head, Reading};
use crate::kit::ijson;
use crate::relay::attempt::{attempt, under_way};
use crate::relay::event::Marks;
use crate::relay::loop_guard::Said;
use crate::relay::proof::{AsEither, Sent, listed};
use crate::relay::refusals::{self, Refused};
use crate::relay::send::Send;
use crate::relay::{
    Bad, Code, Delivery, Failure, ID, Outcome, examples, hire, live, record, shape, stored, work,
};

/// How much longer than a call the retry schedule leaves the first attempt to the waiting request,
/// so that an endpoint is not called twice for one message.
const SPARE: Duration = Duration::from_secs(15);

/// `POST /messages`: durable before it is answered (R39, R44).
pub async fn post(State(floor): State<Floor>, by: AsEither, Sent(body): Sent) -> Answered {
    accept(floor, by, body).await
}

/// The same as a fast route, without the router.
pub fn express(floor: Floor, head: Head, body: Reading) -> Answering {
    Box::pin(async move {
        let by = AsEither::of(&floor, &head);
        let by = match by {
            Ok(by) => by,
            Err(refused) => return refused.rejected().into_response(),
        };
        match body.await {
            Ok(body) => accept(floor, by, body).await.into_response(),
            Err(trouble) => refuse(&floor, refusals::trouble(&trouble)).rejected().into_response(),
        }
    })
}

async fn accept(floor: Floor, by: AsEither, body: Bytes) -> Answered {
    let rejected = |failure: Failure| refuse(&floor, failure).rejected();
    let json = ijson::read(&body).map_err(|unreadable| rejected(Bad::from(unreadable).into()))?;
    let send = Send::read(&json, &floor.relay.settings.host);
    let send = send.map_err(|bad| rejected(bad.into()))?;
    let Opened { from, work, parties } = open(&floor, by, &send).await?;
    if let Some(job) = work {
        return work::take(&floor, by, from, &job, &send.envelope).await;
    }
    let parties = parties.map_err(rejected)?;
    let delay = delay(&floor, (from, parties.to), &send);
    if let Some(worker) = &parties.foreign
        && let Some(answer) = hire::hire(&floor, by, from, worker, &send, delay).await?
    {
        return Ok(answer);
    }
    let to = parties.to;
    let heard = floor.engine.is_heard(to);
    // A held-back message keeps its endpoint: where it goes is decided after the delay, and an open
    // inbox stream still takes precedence.
    let url = parties.endpoint.filter(|_| !heard || delay.is_some());
    if !heard && url.is_none() && floor.relay.settings.refuse_offline && parties.foreign.is_none() {
        return Ok(offline(&floor));
    }
    let marks = Marks { by_operator: by.agent.is_none(), loop_guard: delay, ..Marks::default() };
    let calls = url.is_some();
    let order = SendMessage {
        from: Some(from),
        to,
        words: ID,
        body: stored::write(send.envelope.raw(), marks),
        url,
        first_try: delay.unwrap_or_else(|| first_try(&floor, send.stream)),
        turn: turn(&send),
        by_operator: by.agent.is_none(),
    };
    let streams = send.stream && calls;
    let ran = floor.engine.run_once(Command::Send(Box::new(order)), by.once).await;
    let ran = ran.map_err(|failure| conflict(refusals::failed(failure)));
    let Answer::Sent { notice, repeated } = ran.map_err(rejected)?.answer else {
        return Err(failed(&floor, rialto_engine::Failure::Fault));
    };
    if repeated {
        return again(&floor, notice).await;
    }
    if delay.is_some() {
        return Ok(told(&floor, notice, Outcome::Queued, true));
    }
    if streams {
        return Ok(live::relay(&floor, notice));
    }
    let ended = match calls {
        true => Some(attempt(&floor, notice).await),
        false => None,
    };
    let outcome = match &ended {
        Some(ended) => ended.outcome(),
        None if heard => Outcome::Presented,
        None => Outcome::Queued,
    };
    Ok(told(&floor, notice, outcome, false))
}

/// What a message is about.
struct Opened {
    from: AgentId,
    /// The sender's own job, if this is its result.
    work: Option<Arc<Job>>,
    parties: Result<Parties, Failure>,
}

/// Finds the sender, the receiver, and whether the message is about the sender's own job. One read
/// of the world is enough for messages within this protocol.
async fn open(floor: &Floor, by: AsEither, send: &Send<'_>) -> Result<Opened, Refused> {
    // Only the worker itself can send a result, and not the operator in its name.
    let conversation = by.agent.and(work::conversation(&send.envelope));
    let opened = floor.engine.look(|world| {
        let from = sender(world, by, send)?;
        let live = conversation.and_then(|uuid| world.job_by_uuid(uuid));
        let parties = Parties::of(world, from, send);
        let to = parties.as_ref().ok().map(|parties| parties.to);
        let work = live.filter(|job| work::is_of(job, from) && work::is_for(job, to)).cloned();
        Ok(Opened { from, work, parties })
    });
    let mut opened = opened.map_err(|failure: Failure| refuse(floor, failure).rejected())?;
    let at_home = opened.parties.as_ref().is_ok_and(|parties| parties.foreign.is_none());
    if let Some(uuid) = conversation.filter(|_| opened.work.is_none() && !at_home) {
        // A message about ended work is answered as such, and not sent to the requester.
        let ended = floor.engine.find_job(&JobRef::Uuid(uuid)).await;
        let ended = ended.map_err(|failure| failed(floor, failure).rejected())?;
        let to = opened.parties.as_ref().ok().map(|parties| parties.to);
        let own = |job: &Arc<Job>| work::is_of(job, opened.from) && work::is_for(job, to);
        opened.work = ended.filter(own);
    }
    Ok(opened)
}

/// The sending agent: the key's own, unless it is the operator's key.
fn sender(world: &World, by: AsEither, send: &Send<'_>) -> Result<AgentId, Failure> {
    let Some(from) = listed(world, send.envelope.sender.canonical()) else {
        let text = "sender_id is not registered here; register it with POST /register";
        let field = Some("/envelope/sender_id".into());
        let example = Some(examples::REGISTRATION.into());
        return Err(Failure { field, example, ..Failure::new(Code::SenderNotRegistered, text) });
    };
    if by.agent.is_some_and(|own| own != from) {
        let text = "sender_id does not belong to this key";
        let field = Some("/envelope/sender_id".into());
        return Err(Failure { field, ..Failure::new(Code::SenderMismatch, text) });
    }
    Ok(from)
}

/// The receiver of a message, and how it is reached.
struct Parties {
    to: AgentId,
    endpoint: Option<String>,
    /// The receiver, if it is an agent of another protocol.
    foreign: Option<Arc<Agent>>,
}

impl Parties {
    fn of(world: &World, from: AgentId, send: &Send<'_>) -> Result<Self, Failure> {
        let receiver = listed(world, send.receiver.canonical()).and_then(|id| world.agent(id));
        let receiver = receiver.ok_or_else(|| Failure {
            field: Some("/receiver_id".into()),
            ..refusals::no_such_agent()
        })?;
        // Before anything is delayed or attempted for a blocked sender (R90).
        if receiver.blocked.binary_search(&from).is_ok() {
            return Err(refusals::failed(rialto_core::refusal::Refusal::Blocked.into()));
        }
        let endpoint = record::endpoint(receiver).map(str::to_owned);
        let foreign = (receiver.home != ID).then(|| receiver.clone());
        Ok(Self { to: receiver.id, endpoint, foreign })
    }
}

/// How long the loop guard holds the message back, if it does (R89). The sender is answered at
/// once: only the delivery waits.
fn delay(floor: &Floor, pair: (AgentId, AgentId), send: &Send<'_>) -> Option<Millis> {
    let envelope = &send.envelope;
    let (conversation, now) = (envelope.conversation_id, floor.engine.now());
    let said = Said { conversation, turn: envelope.turn_number, text: envelope.original_text };
    floor.relay.loop_guard.delay(pair, said, now)
}

/// How long the first attempt belongs to this request.
fn first_try(floor: &Floor, stream: bool) -> Millis {
    let call = floor.egress.patience() + if stream { live::WHOLE } else { Duration::ZERO };
    Millis(i64::try_from((call + SPARE).as_millis()).unwrap_or(i64::MAX))
}

/// What identifies a repeat of this message (R47).
fn turn(send: &Send<'_>) -> Option<Turn> {
    let (conversation, number) = send.envelope.conversation_id.zip(send.envelope.turn_number)?;
    let content = Digest::of(&[send.envelope.raw().as_bytes()]);
    Some(Turn { conversation: conversation.to_owned(), number, content })
}

/// Adds to "turn already used" how to continue.
pub fn conflict(failure: Failure) -> Failure {
    if failure.code != Code::IdempotencyConflict {
        return failure;
    }
    let hint = "this turn was already sent with a different envelope; increase turn_number";
    let field = Some("/envelope/turn_number".into());
    Failure { hint: Some(hint.into()), field, ..failure }
}

/// The first outcome of a message again; after a failure, one new attempt (R47).
async fn again(floor: &Floor, notice: NoticeId) -> Answered {
    let message = crate::relay::state::message(floor, notice).await;
    let message = message.map_err(|failure| failed(floor, failure))?;
    let loop_guard = message.as_ref().is_some_and(|message| message.was_slowed());
    let lost = message.is_some_and(|message| message.lost_its_try(floor));
    // The first attempt may still be running: then its result is the answer.
    let joined = under_way(floor, notice).await;
    let state = crate::relay::state::of(floor, notice).await;
    let state = state.map_err(|failure| failed(floor, failure))?;
    use crate::relay::state::State;
    let tried = match (joined, &state) {
        (Some(ended), _) => Some(ended),
        (None, State::Failed { .. }) => Some(attempt(floor, notice).await),
        (None, State::Queued) if lost => Some(attempt(floor, notice).await),
        (None, _) => None,
    };
    let outcome = match (&tried, &state) {
        (Some(ended), _) => ended.outcome(),
        (None, State::Delivered { reply: Some(reply), .. })
        | (None, State::Acked { reply: Some(reply), .. }) => Outcome::Delivered { reply },
        (None, State::Delivered { .. } | State::Presented | State::Acked { .. }) => {
            Outcome::Presented
        }
        (None, State::Queued | State::Failed { .. } | State::Expired) => Outcome::Queued,
    };
    let mut answer = told(floor, notice, outcome, loop_guard);
    let replayed = axum::http::HeaderValue::from_static("true");
    answer.headers_mut().insert("idempotency-replayed", replayed);
    Ok(answer)
}

/// The response to the sender of a message.
pub fn told(floor: &Floor, notice: NoticeId, outcome: Outcome<'_>, loop_guard: bool) -> Response {
    floor.relay.tally.count(&outcome);
    let trace = floor.relay.traces.of(notice);
    let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
    let trace_id = trace.hyphenated().encode_lower(&mut buffer);
    answered(floor, &Delivery { outcome, trace_id, loop_guard })
}

fn answered(floor: &Floor, delivery: &Delivery<'_>) -> Response {
    let now = floor.engine.now();
    match delivery.outcome {
        Outcome::Failed { code, detail } if floor.relay.settings.failed_is_error => {
            let mut data = Vec::new();
            delivery.write(&mut data);
            let data = String::from_utf8(data).unwrap_or_default();
            let failure = Failure::new(code, detail.to_owned());
            let failure = Failure { data: Some(data.into()), ..failure };
            refusals::json(failure.status, failure.write(now))
        }
        _ => {
            let body = shape::answered(now, delivery.size(), |out| delivery.write(out));
            refusals::json(delivery.status(), body)
        }
    }
}

/// The receiver cannot be reached, and the hub is configured not to store the message (D11).
fn offline(floor: &Floor) -> Response {
    let detail = "the receiver has no open inbox and no endpoint; the message was not stored";
    let outcome = Outcome::Failed { code: Code::AgentUnreachable, detail };
    floor.relay.tally.count(&outcome);
    let trace = floor.engine.ids().uuid().to_string();
    answered(floor, &Delivery { outcome, trace_id: &trace, loop_guard: false })
}
