//! Answers a peer's envelope with an envelope (the order of checks is R73's).

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rialto_core::alias::Digest;
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::payload::result::Status;
use rialto_protocols::agora::payload::{self, Notice, Output, Welcome};
use rialto_protocols::agora::{
    BODY_MAX, CURRENCY, Code, Envelope, Failure, Kind, WINDOW, envelope, prove,
};
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::sync::watch;

use super::journal_notes;
use super::idempotency::{Known, Memory, Name};
use super::offers::{Offers, WORK_TIME, Written};
use crate::agent::direct::worker_pool::Bench;
use crate::agent::direct::journal::{Entry, Journal};
use crate::agent::direct::request_key::Scope;
use crate::agora::handler::{Broken, Handler, Job, Progress, Terms};
use crate::agora::identity::{Identity, fresh_id};
use crate::agora::incoming::{Incoming, NotTrusted, Reader};
use crate::agora::json_object;
use crate::agora::payload::Said;
use crate::clock;
use crate::http_server::Answer;

/// The `retry_after_seconds` of a refusal for lack of capacity.
const BACK_AFTER_S: u32 = 5;

/// Answers envelopes.
pub(super) struct Desk<H> {
    identity: Identity,
    handler: Arc<H>,
    memory: Mutex<Memory>,
    offers: Mutex<Offers>,
    journal: Journal,
    /// The worker pool, if there is one; it holds the job records.
    bench: Option<Arc<Bench>>,
    /// Envelopes signed before this are refused. Set without a journal, because earlier messages
    /// are unknown then.
    deaf_before: Option<Timestamp>,
}

/// Side effects of answering a message.
#[derive(Default)]
struct Trail {
    /// The offer that was made.
    offer: Option<Written>,
    /// The request that was worked on.
    worked_on: Option<String>,
}

/// The answer to send.
struct Words {
    kind: Kind,
    payload: String,
    /// The envelope's id, if it is known before: it becomes the offer's id.
    id: Option<String>,
}

type Reply = Result<Words, Failure>;

impl<H: Handler> Desk<H> {
    /// Creates a service with the state of an earlier run of this program.
    pub(super) fn new(
        identity: Identity,
        handler: Arc<H>,
        bench: Option<Arc<Bench>>,
        (journal, before): (Journal, Vec<Entry>),
    ) -> Self {
        let (mut memory, mut offers) = (Memory::new(WINDOW), Offers::default());
        journal_notes::recall(&before, &mut memory, &mut offers);
        let deaf_before = (!journal.is_kept()).then(clock::now);
        let (memory, offers) = (Mutex::new(memory), Mutex::new(offers));
        Self { identity, handler, memory, offers, journal, bench, deaf_before }
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
    ) -> Answer {
        let (incoming, content) = match self.read(body, to, now) {
            Ok(read) => read,
            Err(failure) => return self.refuse(&failure, None),
        };
        let sender = incoming.sender;
        let name = Name {
            scope: Scope::of("agora", &sender.did(), &incoming.id),
            content: Digest::of(&[&content]),
            sender,
            is_order: matches!(incoming.said, Said::Request { .. } | Said::Accept { .. }),
        };
        let known = lock(&self.memory).meet(name, now);
        let answer = match known {
            Known::Same(answer) => heard(answer).await,
            Known::New(tell) => {
                let answer = tell.subscribe();
                // In a separate task: a caller that disconnects may come back for the answer.
                let desk = Arc::clone(self);
                self.run(async move {
                    let answer = desk.made(&incoming, name, now).await;
                    let mut memory = lock(&desk.memory);
                    match is_for_later(answer.status) {
                        true => memory.allow_again(name.scope),
                        false => memory.answered(name.scope, answer.body.len()),
                    }
                    drop(memory);
                    let _ = tell.send(Some(answer));
                });
                heard(answer).await
            }
            Known::Forgotten => {
                let failure =
                    Failure::new(Code::Internal, "the answer to this message is no longer stored");
                return self.refuse(&failure.answering(&incoming.id), Some(sender));
            }
            Known::Other => {
                let failure = Failure::bad_field("/id", "was used for another message");
                return self.refuse(&failure.with_hint("sign it under a new id"), Some(sender));
            }
            Known::Full => {
                let failure = Failure::new(Code::Unavailable, "too many messages at once");
                let retry_after_seconds = Some(BACK_AFTER_S);
                return self.refuse(&Failure { retry_after_seconds, ..failure }, Some(sender));
            }
        };
        let broken = || Failure::new(Code::Internal, "the agent failed");
        answer.unwrap_or_else(|| self.refuse(&broken(), Some(sender)))
    }

    /// Spawns work that continues when its caller disconnects.
    fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        match &self.bench {
            Some(bench) => bench.run(work),
            None => drop(tokio::spawn(work)),
        }
    }

    fn read(
        &self,
        body: &[u8],
        to: Option<PublicKey>,
        now: Timestamp,
    ) -> Result<(Incoming, [u8; 32]), Failure> {
        let json = envelope::parse(body)?;
        let envelope = Envelope::read(&json)?;
        let about = |failure: Failure| failure.answering(envelope.id);
        let proof = prove(&envelope, now, WINDOW).map_err(about)?;
        if self.deaf_before.is_some_and(|start| envelope.timestamp < start) {
            let early = Failure::unauthorized("the envelope was signed before this agent started");
            return Err(about(early.with_hint("sign it again, if it was not answered")));
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
        let reader = Reader { me, hub: me, window: WINDOW };
        let incoming = Incoming::fresh(json.raw(), now, reader).map_err(|why| match why {
            NotTrusted::Envelope(failure) => about(*failure),
            other => about(Failure::bad_request(other.to_string())),
        })?;
        Ok((incoming, proof.content))
    }

    /// Answers a new message. The start of work is written to the journal first, and the answer
    /// before it is sent.
    async fn made(&self, incoming: &Incoming, name: Name, now: Timestamp) -> Answer {
        let takes = match &incoming.said {
            Said::Accept { offer_id, .. } => Some(offer_id.as_str()),
            _ => None,
        };
        if name.is_order && self.journal.write(&journal_notes::begun(name, takes, now)).is_err() {
            let failure =
                Failure::new(Code::Unavailable, "the journal cannot be written; try again later");
            let failure = Failure { retry_after_seconds: Some(BACK_AFTER_S), ..failure };
            return self.refuse(&failure.answering(&incoming.id), Some(incoming.sender));
        }
        let mut trail = Trail::default();
        let answer = self.said(incoming, &mut trail).await;
        let is_kept = match is_for_later(answer.status) {
            _ if !name.is_order => Ok(()),
            true => self.journal.forget(name.scope.0),
            false => self.journal.write(&journal_notes::over(name, &answer, trail.offer, takes, now)),
        };
        if let (Ok(()), Some(id), Some(bench)) = (is_kept, trail.worked_on, &self.bench) {
            let scope = Scope::of("agora", &incoming.sender.did(), &id);
            bench.put_away(&scope.job_id().to_string());
        }
        answer
    }

    async fn said(&self, incoming: &Incoming, trail: &mut Trail) -> Answer {
        let about = |failure: Failure| {
            let failure = failure.answering(&incoming.id);
            match (&incoming.said, incoming.said.request_id()) {
                (Said::Request { .. }, _) => failure.about(&incoming.id),
                (_, Some(id)) => failure.about(id),
                (_, None) => failure,
            }
        };
        let to = Some(incoming.sender);
        let said = match self.reply(incoming, trail).await {
            Ok(words) => self.seal(if words.kind == Kind::Status { 202 } else { 200 }, &words, to),
            Err(failure) => Err(failure),
        };
        said.unwrap_or_else(|failure| self.refuse(&about(failure), to))
    }

    async fn reply(&self, incoming: &Incoming, trail: &mut Trail) -> Reply {
        match &incoming.said {
            Said::Hello { nonce, .. } => {
                let sender = incoming.sender.did();
                let welcome = Welcome {
                    nonce: nonce.as_deref(),
                    hello_id: Some(&incoming.id),
                    hello_sender: Some(&sender),
                    ..Welcome::default()
                };
                Ok(Words::new(Kind::Welcome, welcome.write()))
            }
            Said::Request { currency: Some(currency), .. } if currency != CURRENCY => {
                Err(Failure::new(Code::PaymentRequired, "budget.currency must be \"credits\""))
            }
            Said::Request { .. } => match Job::of(incoming) {
                Some(job) => self.asked(Job { direct: true, ..job }, trail).await,
                None => Err(Failure::bad_request("this is not a REQUEST")),
            },
            Said::Accept { offer_id, .. } => {
                let job = lock(&self.offers).take(offer_id, incoming.sender, clock::now())?;
                let reply = self.work(job, trail).await;
                let later = reply.as_ref().is_err_and(|failure| is_for_later(failure.http));
                lock(&self.offers).settle(offer_id, later);
                reply
            }
            Said::Error { request_id: Some(id), .. } => {
                match lock(&self.offers).withdraw(id, incoming.sender) {
                    true => Ok(accepted(incoming)),
                    false => Err(not_yours()),
                }
            }
            Said::Offer { .. } | Said::Result { .. } => Err(not_yours()),
            _ => Ok(accepted(incoming)),
        }
    }

    async fn asked(&self, job: Job, trail: &mut Trail) -> Reply {
        let (cost, ttl, eta) = match self.handler.terms(&job).await {
            Terms::Work => return self.work(job, trail).await,
            Terms::Decline(why) => return Err(refusal(why)),
            Terms::Offer { cost, ttl, eta } => (cost, millis(ttl), millis(eta)),
        };
        if job.max.is_some_and(|max| cost > max) {
            let text = format!("this costs {}, more than budget.max", Credits::text(cost, 0));
            return Err(Failure::new(Code::PaymentRequired, text));
        }
        let (now, id) = (clock::now(), job.request_id.clone());
        if !lock(&self.offers).has_room(&job, now) {
            return Err(Failure::new(Code::Unavailable, "too many open offers"));
        }
        let payload = payload::Offer { request_id: &id, cost, ttl, eta }.write();
        let no_name = |_| Failure::new(Code::Internal, "the random number generator failed");
        let offer_id = fresh_id().map_err(no_name)?;
        trail.offer = Some(lock(&self.offers).make(offer_id.clone(), job, ttl, now));
        Ok(Words { kind: Kind::Offer, payload, id: Some(offer_id) })
    }

    async fn work(&self, job: Job, trail: &mut Trail) -> Reply {
        trail.worked_on = Some(job.request_id.clone());
        let (id, limit) = (job.request_id.clone(), job.timeout.unwrap_or(WORK_TIME));
        let work = self.handler.work(job, Progress::none());
        match tokio::time::timeout(limit, work).await {
            Ok(Ok(data)) => {
                let unusable = |_| Failure::new(Code::Internal, "the result is not a JSON object");
                json_object::check("data", &data).map_err(unusable)?;
                let output = Output { request_id: &id, status: Status::Success, data: &data };
                Ok(Words::new(Kind::Result, output.write()))
            }
            Ok(Err(why)) => Err(refusal(why).about(&id)),
            Err(_) => Err(Failure::new(Code::Timeout, "the work took too long").about(&id)),
        }
    }

    /// A signed refusal.
    pub(super) fn refuse(&self, failure: &Failure, to: Option<PublicKey>) -> Answer {
        let words = Words::new(Kind::Error, failure.payload());
        // Without randomness there is no id, and without an id no envelope.
        let answer = self.seal(failure.http, &words, to);
        let answer = answer.unwrap_or_else(|_| Answer::new(500, "{}"));
        Answer { retry_after_seconds: failure.retry_after_seconds, ..answer }
    }

    /// Signs an answer. A handler's output may be valid JSON and still not be signable or
    /// acceptable to the requester: numbers beyond a double, or more than an envelope can hold.
    fn seal(&self, status: u16, words: &Words, to: Option<PublicKey>) -> Result<Answer, Failure> {
        let Words { kind, payload, id } = words;
        let sealed = match id {
            Some(id) => self.identity.seal_as(id, clock::now(), *kind, payload, to),
            None => self.identity.seal(*kind, payload, to),
        };
        let unusable = |why: String| Failure::new(Code::Internal, why);
        let sealed =
            sealed.map_err(|why| unusable(format!("the answer cannot be signed: {why}")))?;
        if sealed.as_str().len() > BODY_MAX {
            return Err(unusable(format!("the answer has more than {BODY_MAX} bytes")));
        }
        Ok(Answer::new(status, sealed.as_str()))
    }
}

impl Words {
    fn new(kind: Kind, payload: String) -> Self {
        Self { kind, payload, id: None }
    }
}

/// Waits for the answer; `None` if the task that makes it is gone.
async fn heard(mut answer: watch::Receiver<Option<Answer>>) -> Option<Answer> {
    answer.wait_for(Option::is_some).await.ok()?.clone()
}

/// Whether the same message may be sent again after this answer.
fn is_for_later(status: u16) -> bool {
    matches!(status, 429 | 503)
}

fn accepted(incoming: &Incoming) -> Words {
    Words::new(Kind::Status, Notice::accepted(&incoming.id, None).write())
}

/// The same error for an unknown request and for another agent's request (D19).
fn not_yours() -> Failure {
    Failure::unauthorized("no request with this id, or you are not a party of it")
}

fn refusal(why: Broken) -> Failure {
    Failure::new(why.code, why.message)
}

fn millis(duration: Duration) -> Millis {
    Millis(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
