//! Messages: sent, delivered as far as possible at once, and received from peers.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use rialto_core::agent::Agent;
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, JobRef, MessageIdentity, SendMessage};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::Job;
use rialto_core::refusal::Refusal;
use rialto_core::time::Millis;
use rialto_core::world::World;

use super::read_address;
use crate::adapter::EdgeError;
use crate::adapter::idempotency::RequestIdempotency;
use crate::adapter::request::{BodyBytes, BodyRejection, PathParam};
use crate::kit::ijson;
use crate::relay::RelayContext;
use crate::relay::auth::{AgentOrOperator, listed_agent};
use crate::relay::delivery::attempt::{attempt_delivery, join_running_attempt};
use crate::relay::delivery::reply_stream::{STREAM_TIMEOUT, stream_reply};
use crate::relay::errors::{
    self, ErrorResponse, HandlerResult, engine_error, error_response, json_response, with_turn_hint,
};
use crate::relay::loop_guard::GuardedMessage;
use crate::relay::message::{self, MessageState, write_stored_message};
use crate::relay::settings::{FailedStatus, Offline};
use crate::relay::wire::envelope::read_receive_body;
use crate::relay::wire::error::REGISTRATION_EXAMPLE;
use crate::relay::wire::inbox::MessageFlags;
use crate::relay::wire::reply;
use crate::relay::wire::response::success_response_with;
use crate::relay::wire::send::SendRequest;
use crate::relay::{
    Code, DeliveryOutcome, DeliveryReport, Envelope, Failure, ID, InvalidBody, job, translate,
};

/// How much longer than a call the retry schedule leaves the first attempt to the waiting request,
/// so that an endpoint is not called twice for one message.
const SPARE: Duration = Duration::from_secs(15);

/// `POST /messages`: durable before it is answered (R39, R44).
pub async fn send_message(
    State(context): State<RelayContext>,
    by: AgentOrOperator,
    body: Result<BodyBytes, BodyRejection>,
) -> HandlerResult {
    let BodyBytes(body) = body.map_err(|rejection| {
        error_response(&context, errors::from_edge(rejection.error)).into_rejected_message()
    })?;
    accept(context, by, body).await
}

async fn accept(context: RelayContext, by: AgentOrOperator, body: Bytes) -> HandlerResult {
    let rejected = |failure: Failure| error_response(&context, failure).into_rejected_message();
    let json =
        ijson::read(&body).map_err(|unreadable| rejected(InvalidBody::from(unreadable).into()))?;
    let send = SendRequest::read(&json, &context.state.settings.host);
    let send = send.map_err(|bad| rejected(bad.into()))?;
    let ClassifiedMessage { from, work, parties } = open(&context, by, &send).await?;
    if let Some(job) = work {
        return job::take_report(&context, by, from, &job, &send).await;
    }
    let parties = parties.map_err(rejected)?;
    if parties.foreign.is_some()
        && let Some(answer) = job::answer_question(&context, by, from, parties.to, &send).await?
    {
        return Ok(answer);
    }
    let delay = delay(&context, (from, parties.to), &send);
    if let Some(worker) = &parties.foreign
        && let Some(answer) = job::open_job(&context, by, from, worker, &send, delay).await?
    {
        return Ok(answer);
    }
    let to = parties.to;
    let heard = context.engine.has_inbox_reader(to);
    // A held-back message keeps its endpoint: where it goes is decided after the delay, and an open
    // inbox stream still takes precedence.
    let url = parties.endpoint.filter(|_| !heard || delay.is_some());
    if !heard
        && url.is_none()
        && context.state.settings.offline == Offline::Fail
        && parties.foreign.is_none()
    {
        return Ok(offline(&context));
    }
    let marks = MessageFlags {
        by_operator: by.agent.is_none(),
        loop_guard: delay,
        ..MessageFlags::default()
    };
    let calls = url.is_some();
    let order = SendMessage {
        from: Some(from),
        to,
        protocol: ID,
        body: write_stored_message(send.envelope.raw(), marks),
        url,
        first_try: delay.unwrap_or_else(|| first_try(&context, send.stream)),
        identity: turn(&send),
        by_operator: by.agent.is_none(),
    };
    let streams = send.stream && calls;
    let ran = context.engine.run_once(Command::SendMessage(Box::new(order)), by.once).await;
    let ran = ran.map_err(|failure| with_turn_hint(errors::from_engine(failure)));
    let Answer::Message { notice, repeated } = ran.map_err(rejected)?.answer else {
        return Err(engine_error(&context, rialto_engine::Failure::Fault));
    };
    if repeated {
        return again(&context, notice).await;
    }
    if delay.is_some() {
        return Ok(delivery_response(&context, notice, DeliveryOutcome::Queued, true));
    }
    if streams {
        return Ok(stream_reply(&context, notice));
    }
    let ended = if calls { Some(attempt_delivery(&context, notice).await) } else { None };
    let outcome = match &ended {
        Some(ended) => ended.outcome(),
        None if heard => DeliveryOutcome::Streamed,
        None => DeliveryOutcome::Queued,
    };
    Ok(delivery_response(&context, notice, outcome, false))
}

/// What a message is about.
struct ClassifiedMessage {
    from: AgentId,
    /// The sender's own job, if this is its result.
    work: Option<Arc<Job>>,
    parties: Result<MessageReceiver, Failure>,
}

/// Finds the sender, the receiver, and whether the message is about the sender's own job. One read
/// of the world is enough for messages within this protocol.
async fn open(
    context: &RelayContext,
    by: AgentOrOperator,
    send: &SendRequest<'_>,
) -> Result<ClassifiedMessage, ErrorResponse> {
    // Only the worker itself can send a result, and not the operator in its name.
    let conversation = by.agent.and(job::job_of_conversation(&send.envelope));
    let opened = context.engine.with_world(|world| {
        let from = sender(world, by, send)?;
        let live = conversation.and_then(|uuid| world.job_by_uuid(uuid));
        let parties = MessageReceiver::of(world, from, send);
        let to = parties.as_ref().ok().map(|parties| parties.to);
        let work = live
            .filter(|job| job::is_work_of(job, from) && job::is_for_requester(job, to))
            .cloned();
        Ok(ClassifiedMessage { from, work, parties })
    });
    let mut opened = opened
        .map_err(|failure: Failure| error_response(context, failure).into_rejected_message())?;
    let at_home = opened.parties.as_ref().is_ok_and(|parties| parties.foreign.is_none());
    if let Some(uuid) = conversation.filter(|_| opened.work.is_none() && !at_home) {
        // A message about ended work is answered as such, and not sent to the requester.
        let ended = context.engine.find_job(&JobRef::Uuid(uuid)).await;
        let ended =
            ended.map_err(|failure| engine_error(context, failure).into_rejected_message())?;
        let to = opened.parties.as_ref().ok().map(|parties| parties.to);
        let own =
            |job: &Arc<Job>| job::is_work_of(job, opened.from) && job::is_for_requester(job, to);
        opened.work = ended.filter(own);
    }
    Ok(opened)
}

/// The sending agent: the key's own, unless it is the operator's key.
fn sender(world: &World, by: AgentOrOperator, send: &SendRequest<'_>) -> Result<AgentId, Failure> {
    let Some(from) = listed_agent(world, send.envelope.sender.canonical()) else {
        let text = "sender_id is not registered here; register it with POST /register";
        let field = Some("/envelope/sender_id".into());
        let example = Some(REGISTRATION_EXAMPLE.into());
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
struct MessageReceiver {
    to: AgentId,
    endpoint: Option<String>,
    /// The receiver, if it is an agent of another protocol.
    foreign: Option<Arc<Agent>>,
}

impl MessageReceiver {
    fn of(world: &World, from: AgentId, send: &SendRequest<'_>) -> Result<Self, Failure> {
        let receiver =
            listed_agent(world, send.receiver.canonical()).and_then(|id| world.agent(id));
        let receiver = receiver.ok_or_else(|| Failure {
            field: Some("/receiver_id".into()),
            ..errors::agent_not_found()
        })?;
        // Before anything is delayed or attempted for a blocked sender (R90).
        if receiver.blocked.binary_search(&from).is_ok() {
            return Err(errors::from_engine(Refusal::Blocked.into()));
        }
        let endpoint = translate::callable_endpoint(receiver).map(str::to_owned);
        let foreign = (receiver.home != ID).then(|| receiver.clone());
        Ok(Self { to: receiver.id, endpoint, foreign })
    }
}

/// How long the loop guard holds the message back, if it does (R89). The sender is answered at
/// once: only the delivery waits.
fn delay(
    context: &RelayContext,
    pair: (AgentId, AgentId),
    send: &SendRequest<'_>,
) -> Option<Millis> {
    let envelope = &send.envelope;
    let (conversation, now) = (envelope.conversation_id, context.engine.now());
    let said =
        GuardedMessage { conversation, turn: envelope.turn_number, text: envelope.original_text };
    context.state.loop_guard.delay(pair, said, now)
}

/// How long the first attempt belongs to this request.
fn first_try(context: &RelayContext, stream: bool) -> Millis {
    let call =
        context.egress.max_call_duration() + if stream { STREAM_TIMEOUT } else { Duration::ZERO };
    Millis(i64::try_from((call + SPARE).as_millis()).unwrap_or(i64::MAX))
}

/// What identifies a repeat of this message (R47).
fn turn(send: &SendRequest<'_>) -> Option<MessageIdentity> {
    let (conversation, number) = send.envelope.conversation_id.zip(send.envelope.turn_number)?;
    let content = Digest::of(&[send.envelope.raw().as_bytes()]);
    Some(MessageIdentity { conversation: conversation.to_owned(), number, content })
}

/// The first outcome of a message again; after a failure, one new attempt (R47).
async fn again(context: &RelayContext, notice: NoticeId) -> HandlerResult {
    let message = message::load_message(context, notice).await;
    let message = message.map_err(|failure| engine_error(context, failure))?;
    let loop_guard = message.as_ref().is_some_and(|message| message.was_delayed());
    let lost = message.is_some_and(|message| message.lost_first_attempt(context));
    // The first attempt may still be running: then its result is the answer.
    let joined = join_running_attempt(context, notice).await;
    let state = message::message_state(context, notice).await;
    let state = state.map_err(|failure| engine_error(context, failure))?;
    let tried = match (joined, &state) {
        (Some(ended), _) => Some(ended),
        (None, MessageState::Failed { .. }) => Some(attempt_delivery(context, notice).await),
        (None, MessageState::Queued) if lost => Some(attempt_delivery(context, notice).await),
        (None, _) => None,
    };
    let outcome = match (&tried, &state) {
        (Some(ended), _) => ended.outcome(),
        (None, MessageState::Delivered { reply: Some(reply), .. })
        | (None, MessageState::Acked { reply: Some(reply), .. }) => {
            DeliveryOutcome::Delivered { reply }
        }
        (
            None,
            MessageState::Delivered { .. } | MessageState::Streamed | MessageState::Acked { .. },
        ) => DeliveryOutcome::Streamed,
        (None, MessageState::Queued | MessageState::Failed { .. } | MessageState::Expired) => {
            DeliveryOutcome::Queued
        }
    };
    let mut answer = delivery_response(context, notice, outcome, loop_guard);
    let replayed = HeaderValue::from_static("true");
    answer.headers_mut().insert("idempotency-replayed", replayed);
    Ok(answer)
}

/// The response to the sender of a message.
pub fn delivery_response(
    context: &RelayContext,
    notice: NoticeId,
    outcome: DeliveryOutcome<'_>,
    loop_guard: bool,
) -> Response {
    context.state.delivery_counts.count(&outcome);
    let trace = context.state.trace_ids.of(notice);
    let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
    let trace_id = trace.hyphenated().encode_lower(&mut buffer);
    answered(context, &DeliveryReport { outcome, trace_id, loop_guard })
}

fn answered(context: &RelayContext, delivery: &DeliveryReport<'_>) -> Response {
    let now = context.engine.now();
    match delivery.outcome {
        DeliveryOutcome::Failed { code, detail }
            if context.state.settings.failed_status == FailedStatus::Error =>
        {
            let mut data = Vec::new();
            delivery.write(&mut data);
            let data = String::from_utf8(data).unwrap_or_default();
            let failure = Failure::new(code, detail.to_owned());
            let failure = Failure { data: Some(data.into()), ..failure };
            json_response(failure.status, failure.write(now))
        }
        _ => {
            let body = success_response_with(now, delivery.size_hint(), |out| delivery.write(out));
            json_response(delivery.status(), body)
        }
    }
}

/// The receiver cannot be reached, and the hub is configured not to store the message (D11).
fn offline(context: &RelayContext) -> Response {
    let detail = "the receiver has no open inbox and no endpoint; the message was not stored";
    let outcome = DeliveryOutcome::Failed { code: Code::AgentUnreachable, detail };
    context.state.delivery_counts.count(&outcome);
    let trace = context.engine.random().new_uuid().to_string();
    answered(context, &DeliveryReport { outcome, trace_id: &trace, loop_guard: false })
}

/// `POST /relay/receive/{id}`: the hub as the receive endpoint of an agent it hosts (R75, R85). The
/// envelope comes from a peer, whose identity cannot be checked.
pub async fn receive_envelope(
    State(context): State<RelayContext>,
    PathParam(id): PathParam,
    once: Option<Extension<RequestIdempotency>>,
    BodyBytes(body): BodyBytes,
) -> Response {
    if !context.state.settings.accept_direct {
        return error_response(&context, errors::from_edge(EdgeError::NotFound)).into_response();
    }
    let json = match ijson::read(&body) {
        Ok(json) => json,
        Err(unreadable) => return invalid(&InvalidBody::from(unreadable).message()),
    };
    let envelope = match read_receive_body(&json) {
        Ok(envelope) => envelope,
        Err(bad) => return said(bad.code.status(), bad.code, &bad.body.message()),
    };
    let known = context.engine.with_world(|world| {
        if world.agent_by_alias(ID, envelope.sender.canonical()).is_some() {
            return Err("sender_id is registered at this hub; send to /messages with its key");
        }
        let to = read_address(&context, &id).and_then(|to| listed_agent(world, to.canonical()));
        let to = to.and_then(|to| world.agent(to)).ok_or("no agent has this address here")?;
        Ok((to.id, translate::callable_endpoint(to).map(str::to_owned)))
    });
    let (to, endpoint) = match known {
        Ok(found) => found,
        Err(why) => return invalid(why),
    };
    let marks = MessageFlags { unverified: true, ..MessageFlags::default() };
    let order = SendMessage {
        from: None,
        to,
        protocol: ID,
        body: write_stored_message(envelope.raw(), marks),
        url: endpoint.filter(|_| !context.engine.has_inbox_reader(to)),
        first_try: Millis(0),
        identity: peer_turn(&envelope),
        by_operator: false,
    };
    let once = once.map(|Extension(RequestIdempotency(once))| once);
    match context.engine.run_once(Command::SendMessage(Box::new(order)), once).await {
        Ok(_) => json_response(200, reply::OK.as_bytes().to_vec()),
        Err(failure) => {
            let failure = errors::from_engine(failure);
            said(failure.status, Code::AdaptationFailed, &failure.message)
        }
    }
}

/// The same turn of the same sender is one message (R55).
fn peer_turn(envelope: &Envelope<'_>) -> Option<MessageIdentity> {
    let (conversation, number) = envelope.conversation_id.zip(envelope.turn_number)?;
    // The sender has no id here, so its address is stored with the conversation id.
    let conversation = format!("{}\n{conversation}", envelope.sender.canonical());
    let content = Digest::of(&[envelope.raw().as_bytes()]);
    Some(MessageIdentity { conversation, number, content })
}

fn invalid(detail: &str) -> Response {
    said(400, Code::InvalidEnvelope, detail)
}

fn said(status: u16, code: Code, detail: &str) -> Response {
    json_response(status, reply::write_error_reply(code, detail))
}
