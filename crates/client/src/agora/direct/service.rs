//! Answers a peer's envelope with an envelope (the order of checks is R73's).

use std::sync::{Arc, Mutex};

use rialto_core::alias::Digest;
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::agora::wire::envelope;
use rialto_protocols::agora::wire::hello::Welcome;
use rialto_protocols::agora::wire::payload::{self, ResultPayload, ResultStatus};
use rialto_protocols::agora::wire::status::MessageStatus;
use rialto_protocols::agora::{
    BODY_MAX, CURRENCY, Code, Envelope, Failure, MessageType, WINDOW, prove,
};
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::sync::watch;

use super::idempotency::{self, IdempotencyCache, Lookup, MessageRef, journal_entry};
use super::offers::{DEFAULT_WORK_TIME, OfferRecord, Offers};
use crate::agent::direct::OpenedJournal;
use crate::agora::handler::{Handler, Job, Progress, Terms, WorkError, millis};
use crate::agora::identity::{Identity, new_id};
use crate::agora::incoming::{IncomingEnvelope, TrustContext, TrustError};
use crate::agora::payload::EnvelopePayload;
use crate::clock;
use crate::http_server::HttpResponse;
use crate::json;
use crate::worker::journal::Journal;
use crate::worker::lock_ignoring_poison as lock;
use crate::worker::pool::WorkerPool;
use crate::worker::request_log::{Fingerprint, RequestKey};

/// The `retry_after_seconds` of a refusal for lack of capacity.
const RETRY_AFTER_S: u32 = 5;

/// Answers envelopes.
pub(super) struct EnvelopeService<H> {
    identity: Identity,
    handler: Arc<H>,
    idempotency: Mutex<IdempotencyCache>,
    offers: Mutex<Offers>,
    journal: Journal,
    pool: Arc<WorkerPool>,
    /// Envelopes signed before this are refused. Set without a journal, because earlier messages
    /// are unknown then.
    not_before: Option<Timestamp>,
}

/// Side effects of answering a message.
#[derive(Default)]
struct AnswerTrace {
    /// The offer that was made.
    offer: Option<OfferRecord>,
    /// The request that was worked on.
    worked_on: Option<String>,
}

/// The answer to send.
struct ReplyEnvelope {
    kind: MessageType,
    payload: String,
    /// The envelope's id, if it is known before: it becomes the offer's id.
    id: Option<String>,
}

type ReplyResult = Result<ReplyEnvelope, Failure>;

impl<H: Handler> EnvelopeService<H> {
    /// Creates a service with the state of an earlier run of this program.
    pub(super) fn new(
        identity: Identity,
        handler: Arc<H>,
        pool: Arc<WorkerPool>,
        (journal, entries): OpenedJournal,
    ) -> Self {
        let (idempotency, offers) = idempotency::restore(&entries, WINDOW);
        let not_before = (!journal.is_persistent()).then(clock::now);
        let (idempotency, offers) = (Mutex::new(idempotency), Mutex::new(offers));
        Self { identity, handler, idempotency, offers, journal, pool, not_before }
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Answers an envelope for the agent in the path, if the path contains one.
    pub(super) async fn answer(
        self: &Arc<Self>,
        body: &[u8],
        to: Option<PublicKey>,
        now: Timestamp,
    ) -> HttpResponse {
        let (incoming, content) = match self.read(body, to, now) {
            Ok(read) => read,
            Err(failure) => return self.refuse(&failure, None),
        };
        let sender = incoming.sender;
        let key = RequestKey::new("agora", &sender.did(), &incoming.id);
        let is_order = matches!(
            incoming.payload,
            EnvelopePayload::Request { .. } | EnvelopePayload::Accept { .. }
        );
        let fingerprint = Fingerprint { key, content: Digest::of(&[&content]) };
        let message = MessageRef { fingerprint, sender, is_order };
        let known = lock(&self.idempotency).register(message, now);
        let answer = match known {
            Lookup::Repeat(answer) => wait_for_answer(answer).await,
            Lookup::New(answer_sender) => {
                let answer = answer_sender.subscribe();
                // In a separate task: a caller that disconnects may come back for the answer.
                let service = Arc::clone(self);
                self.pool.spawn(async move {
                    let answer = service.answer_new(&incoming, message, now).await;
                    let mut idempotency = lock(&service.idempotency);
                    if is_retry_later(answer.status) {
                        idempotency.remove(key);
                    } else {
                        idempotency.record_answer(key, answer.body.len());
                    }
                    drop(idempotency);
                    let _ = answer_sender.send(Some(answer));
                });
                wait_for_answer(answer).await
            }
            Lookup::Evicted => {
                let failure =
                    Failure::new(Code::Internal, "the answer to this message is no longer stored");
                return self.refuse(&failure.in_answer_to(&incoming.id), Some(sender));
            }
            Lookup::Conflict => {
                let failure = Failure::bad_field("/id", "was used for another message");
                return self.refuse(&failure.with_hint("sign it under a new id"), Some(sender));
            }
            Lookup::Full => {
                let failure = Failure::new(Code::Unavailable, "too many messages at once");
                let retry_after_seconds = Some(RETRY_AFTER_S);
                return self.refuse(&Failure { retry_after_seconds, ..failure }, Some(sender));
            }
        };
        let broken = || Failure::new(Code::Internal, "the agent failed");
        answer.unwrap_or_else(|| self.refuse(&broken(), Some(sender)))
    }

    fn read(
        &self,
        body: &[u8],
        to: Option<PublicKey>,
        now: Timestamp,
    ) -> Result<(IncomingEnvelope, [u8; 32]), Failure> {
        let json = envelope::read_json(body)?;
        let envelope = Envelope::read(&json)?;
        let about = |failure: Failure| failure.in_answer_to(envelope.id);
        let proof = prove(&envelope, now, WINDOW).map_err(about)?;
        if self.not_before.is_some_and(|start| envelope.timestamp < start) {
            let failure =
                Failure::unauthorized("the envelope was signed before this agent started");
            return Err(about(failure.with_hint("sign it again, if it was not answered")));
        }
        let me = self.identity.key();
        if to.is_some() && envelope.recipient.is_some() && to != envelope.recipient {
            let why = "names another agent than the path";
            return Err(about(Failure::bad_field("/recipient", why)));
        }
        if to.or(envelope.recipient).is_some_and(|key| key != me) {
            let hint = format!("the agent here is {}", self.identity.did());
            let unknown = Failure::new(Code::NotFound, "no agent has that key");
            return Err(about(unknown.with_hint(hint)));
        }
        if envelope.hub.is_some_and(|key| key != me) {
            return Err(about(Failure::unauthorized("this envelope is signed for a hub")));
        }
        let reader = TrustContext { me, hub: me, window: WINDOW };
        let incoming =
            IncomingEnvelope::verify_fresh(json.raw(), now, reader).map_err(|why| match why {
                TrustError::Envelope(failure) => about(*failure),
                other => about(Failure::bad_request(other.to_string())),
            })?;
        Ok((incoming, proof.content))
    }

    /// Answers a new message. The start of work is written to the journal first, and the answer
    /// before it is sent.
    async fn answer_new(
        &self,
        incoming: &IncomingEnvelope,
        message: MessageRef,
        now: Timestamp,
    ) -> HttpResponse {
        let takes = match &incoming.payload {
            EnvelopePayload::Accept { offer_id, .. } => Some(offer_id.as_str()),
            _ => None,
        };
        let MessageRef { fingerprint, is_order, .. } = message;
        let begun = || journal_entry(fingerprint, now, takes, None, None);
        if is_order && self.journal.write(&begun()).is_err() {
            let failure =
                Failure::new(Code::Unavailable, "the journal cannot be written; try again later");
            let failure = Failure { retry_after_seconds: Some(RETRY_AFTER_S), ..failure };
            return self.refuse(&failure.in_answer_to(&incoming.id), Some(incoming.sender));
        }
        let mut trace = AnswerTrace::default();
        let answer = self.run_message(incoming, &mut trace).await;
        let written = if !is_order {
            Ok(())
        } else if is_retry_later(answer.status) {
            self.journal.remove(fingerprint.key.0)
        } else {
            let entry = journal_entry(fingerprint, now, takes, Some(&answer), trace.offer);
            self.journal.write(&entry)
        };
        if let (Ok(()), Some(id)) = (written, trace.worked_on) {
            let key = RequestKey::new("agora", &incoming.sender.did(), &id);
            self.pool.close_record(&key.job_id().to_string());
        }
        answer
    }

    async fn run_message(
        &self,
        incoming: &IncomingEnvelope,
        trace: &mut AnswerTrace,
    ) -> HttpResponse {
        let about = |failure: Failure| {
            let failure = failure.in_answer_to(&incoming.id);
            match (&incoming.payload, incoming.payload.request_id()) {
                (EnvelopePayload::Request { .. }, _) => failure.for_request(&incoming.id),
                (_, Some(id)) => failure.for_request(id),
                (_, None) => failure,
            }
        };
        let to = Some(incoming.sender);
        let sealed = self.reply(incoming, trace).await.and_then(|reply| {
            self.seal(if reply.kind == MessageType::Status { 202 } else { 200 }, &reply, to)
        });
        sealed.unwrap_or_else(|failure| self.refuse(&about(failure), to))
    }

    async fn reply(&self, incoming: &IncomingEnvelope, trace: &mut AnswerTrace) -> ReplyResult {
        match &incoming.payload {
            EnvelopePayload::Hello { nonce, .. } => {
                let sender = incoming.sender.did();
                let welcome = Welcome {
                    nonce: nonce.as_deref(),
                    hello_id: Some(&incoming.id),
                    hello_sender: Some(&sender),
                    ..Welcome::default()
                };
                Ok(ReplyEnvelope::new(MessageType::Welcome, welcome.write()))
            }
            EnvelopePayload::Request { currency: Some(currency), .. } if currency != CURRENCY => {
                Err(Failure::new(Code::PaymentRequired, "budget.currency must be \"credits\""))
            }
            EnvelopePayload::Request { .. } => match Job::from_request(incoming) {
                Some(job) => self.answer_request(Job { may_skip_offer: true, ..job }, trace).await,
                None => Err(Failure::bad_request("this is not a REQUEST")),
            },
            EnvelopePayload::Accept { offer_id, .. } => {
                let job = lock(&self.offers).accept(offer_id, incoming.sender, clock::now())?;
                let reply = self.work(job, trace).await;
                let later =
                    reply.as_ref().is_err_and(|failure| is_retry_later(failure.http_status));
                lock(&self.offers).finish(offer_id, later);
                reply
            }
            EnvelopePayload::Error { request_id: Some(id), .. } => {
                if !lock(&self.offers).withdraw(id, incoming.sender) {
                    return Err(unknown_request());
                }
                Ok(accepted(incoming))
            }
            EnvelopePayload::Offer { .. } | EnvelopePayload::Result { .. } => {
                Err(unknown_request())
            }
            _ => Ok(accepted(incoming)),
        }
    }

    async fn answer_request(&self, job: Job, trace: &mut AnswerTrace) -> ReplyResult {
        let (cost, ttl, eta) = match self.handler.terms(&job).await {
            Terms::Work => return self.work(job, trace).await,
            Terms::Decline(why) => return Err(refusal(why)),
            Terms::Offer { cost, ttl, eta } => (cost, millis(ttl), millis(eta)),
        };
        if job.max.is_some_and(|max| cost > max) {
            let text = format!("this costs {}, more than budget.max", Credits::to_text(cost, 0));
            return Err(Failure::new(Code::PaymentRequired, text));
        }
        let (now, id) = (clock::now(), job.request_id.clone());
        if !lock(&self.offers).has_room(&job, now) {
            return Err(Failure::new(Code::Unavailable, "too many open offers"));
        }
        let payload = payload::Offer { request_id: &id, cost, ttl, eta }.write();
        let no_id = |_| Failure::new(Code::Internal, "the random number generator failed");
        let offer_id = new_id().map_err(no_id)?;
        trace.offer = Some(lock(&self.offers).add(offer_id.clone(), job, ttl, now));
        Ok(ReplyEnvelope { kind: MessageType::Offer, payload, id: Some(offer_id) })
    }

    async fn work(&self, job: Job, trace: &mut AnswerTrace) -> ReplyResult {
        trace.worked_on = Some(job.request_id.clone());
        let (id, limit) = (job.request_id.clone(), job.timeout.unwrap_or(DEFAULT_WORK_TIME));
        let work = self.handler.work(job, Progress::disabled());
        match tokio::time::timeout(limit, work).await {
            Ok(Ok(data)) => {
                let unusable = |_| Failure::new(Code::Internal, "the result is not a JSON object");
                json::check_object("data", &data).map_err(unusable)?;
                let output =
                    ResultPayload { request_id: &id, status: ResultStatus::Success, data: &data };
                Ok(ReplyEnvelope::new(MessageType::Result, output.write()))
            }
            Ok(Err(why)) => Err(refusal(why).for_request(&id)),
            Err(_) => Err(Failure::new(Code::Timeout, "the work took too long").for_request(&id)),
        }
    }

    /// A signed refusal.
    pub(super) fn refuse(&self, failure: &Failure, to: Option<PublicKey>) -> HttpResponse {
        let reply = ReplyEnvelope::new(MessageType::Error, failure.payload());
        // Without randomness there is no id, and without an id no envelope.
        let answer = self.seal(failure.http_status, &reply, to);
        let answer = answer.unwrap_or_else(|_| HttpResponse::new(500, "{}"));
        HttpResponse { retry_after_seconds: failure.retry_after_seconds, ..answer }
    }

    /// Signs an answer. A handler's output may be valid JSON and still not be signable or
    /// acceptable to the requester: numbers beyond a double, or more than an envelope can hold.
    fn seal(
        &self,
        status: u16,
        reply: &ReplyEnvelope,
        to: Option<PublicKey>,
    ) -> Result<HttpResponse, Failure> {
        let ReplyEnvelope { kind, payload, id } = reply;
        let sealed = match id {
            Some(id) => self.identity.sign_with_id(id, clock::now(), *kind, payload, to),
            None => self.identity.sign(*kind, payload, to),
        };
        let unusable = |why: String| Failure::new(Code::Internal, why);
        let sealed =
            sealed.map_err(|why| unusable(format!("the answer cannot be signed: {why}")))?;
        if sealed.as_str().len() > BODY_MAX {
            return Err(unusable(format!("the answer has more than {BODY_MAX} bytes")));
        }
        Ok(HttpResponse::new(status, sealed.as_str()))
    }
}

impl ReplyEnvelope {
    fn new(kind: MessageType, payload: String) -> Self {
        Self { kind, payload, id: None }
    }
}

/// Waits for the answer; `None` if the task that makes it is gone.
async fn wait_for_answer(
    mut answer: watch::Receiver<Option<HttpResponse>>,
) -> Option<HttpResponse> {
    answer.wait_for(Option::is_some).await.ok()?.clone()
}

/// Whether the same message may be sent again after this answer.
fn is_retry_later(status: u16) -> bool {
    matches!(status, 429 | 503)
}

fn accepted(incoming: &IncomingEnvelope) -> ReplyEnvelope {
    ReplyEnvelope::new(MessageType::Status, MessageStatus::accepted(&incoming.id, None).write())
}

/// The same error for an unknown request and for another agent's request (D19).
fn unknown_request() -> Failure {
    Failure::unauthorized("no request with this id, or you are not a party of it")
}

fn refusal(why: WorkError) -> Failure {
    Failure::new(why.code, why.message)
}
