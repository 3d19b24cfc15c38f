//! A peer's desk: an envelope comes in, an envelope goes out (the order of checks is R73's).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::payload::result::Status;
use rialto_protocols::agora::payload::{self, Notice, Output, Welcome};
use rialto_protocols::agora::{CURRENCY, Code, Envelope, Failure, Kind, WINDOW, envelope, prove};
use rialto_protocols::kit::ed25519::PublicKey;

use super::memory::{Known, Memory};
use super::offers::Offers;
use crate::agora::handler::{Broken, Handler, Job, Progress, Terms};
use crate::agora::identity::{Identity, fresh_id};
use crate::agora::incoming::{Incoming, NotTrusted, Reader};
use crate::agora::object;
use crate::agora::said::Said;
use crate::clock;
use crate::endpoint::Answer;

/// How long a work may take where nobody says so.
const WORK_TIME: Duration = Duration::from_secs(600);
/// When whoever finds no room should come back.
const BACK_AFTER_S: u32 = 5;

/// Somebody who answers envelopes.
pub(super) struct Desk<H> {
    identity: Identity,
    handler: Arc<H>,
    memory: Mutex<Memory>,
    offers: Mutex<Offers>,
}

/// What is said in return.
struct Words {
    kind: Kind,
    payload: String,
    /// The envelope's id, where it is known before: an offer is called by it.
    id: Option<String>,
}

type Reply = Result<Words, Failure>;

impl<H: Handler> Desk<H> {
    pub(super) fn new(identity: Identity, handler: Arc<H>) -> Self {
        let memory = Mutex::new(Memory::new(WINDOW));
        Self { identity, handler, memory, offers: Mutex::default() }
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Answers an envelope that arrived for the agent that the path names, if it names one.
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
        let known = lock(&self.memory).meet(sender, &incoming.id, content, now);
        let answer = match known {
            Known::Same(mut answer) => match answer.wait_for(Option::is_some).await {
                Ok(answer) => answer.clone(),
                Err(_) => None,
            },
            Known::New(tell) => {
                // In a task of its own: a caller that hangs up may come back for the answer.
                let desk = Arc::clone(self);
                let made = tokio::spawn(async move {
                    let answer = desk.made(&incoming).await;
                    if matches!(answer.status, 429 | 503) {
                        lock(&desk.memory).allow_again(sender, &incoming.id);
                    }
                    let _ = tell.send(Some(answer.clone()));
                    answer
                });
                made.await.ok()
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
        let me = self.identity.key();
        if to.is_some() && envelope.recipient.is_some() && to != envelope.recipient {
            let why = "names another agent than the path";
            return Err(about(Failure::bad_field("/recipient", why)));
        }
        if to.or(envelope.recipient).is_some_and(|key| key != me) {
            let hint = format!("only {} is here", self.identity.did());
            let unknown = Failure::new(Code::NotFound, "no agent has that key");
            return Err(about(unknown.with_hint(hint)));
        }
        let reader = Reader { me, hub: me, window: WINDOW };
        let incoming = Incoming::fresh(json.raw(), now, reader).map_err(|why| match why {
            NotTrusted::Envelope(failure) => about(*failure),
            other => about(Failure::bad_request(other.to_string())),
        })?;
        Ok((incoming, proof.content))
    }

    /// The answer to a message that was not heard before.
    async fn made(&self, incoming: &Incoming) -> Answer {
        let about = |failure: Failure| {
            let failure = failure.answering(&incoming.id);
            match (&incoming.said, incoming.said.request_id()) {
                (Said::Request { .. }, _) => failure.about(&incoming.id),
                (_, Some(id)) => failure.about(id),
                (_, None) => failure,
            }
        };
        let to = Some(incoming.sender);
        match self.reply(incoming).await {
            Ok(words) => self.say(if words.kind == Kind::Status { 202 } else { 200 }, &words, to),
            Err(failure) => self.refuse(&about(failure), to),
        }
    }

    async fn reply(&self, incoming: &Incoming) -> Reply {
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
                Some(job) => self.asked(Job { direct: true, ..job }).await,
                None => Err(Failure::bad_request("this is no REQUEST")),
            },
            Said::Accept { offer_id, .. } => {
                let job = lock(&self.offers).take(offer_id, incoming.sender, clock::now())?;
                self.work(job).await
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

    async fn asked(&self, job: Job) -> Reply {
        let (cost, ttl, eta) = match self.handler.terms(&job).await {
            Terms::Work => return self.work(job).await,
            Terms::Decline(why) => return Err(refusal(why)),
            Terms::Offer { cost, ttl, eta } => (cost, millis(ttl), millis(eta)),
        };
        if job.max.is_some_and(|max| cost > max) {
            let text = format!("this costs {}, more than budget.max", Credits::text(cost, 0));
            return Err(Failure::new(Code::PaymentRequired, text));
        }
        let (now, id) = (clock::now(), job.request_id.clone());
        if !lock(&self.offers).has_room(now) {
            return Err(Failure::new(Code::Unavailable, "too many offers stand already"));
        }
        let payload = payload::Offer { request_id: &id, cost, ttl, eta }.write();
        let no_name = |_| Failure::new(Code::Internal, "no randomness for an id");
        let offer_id = fresh_id().map_err(no_name)?;
        lock(&self.offers).make(offer_id.clone(), job, ttl, now);
        Ok(Words { kind: Kind::Offer, payload, id: Some(offer_id) })
    }

    async fn work(&self, job: Job) -> Reply {
        let (id, limit) = (job.request_id.clone(), job.timeout.unwrap_or(WORK_TIME));
        let work = self.handler.work(job, Progress::none());
        match tokio::time::timeout(limit, work).await {
            Ok(Ok(data)) => {
                let unusable = |_| Failure::new(Code::Internal, "the work is no JSON object");
                object::check("data", &data).map_err(unusable)?;
                let output = Output { request_id: &id, status: Status::Success, data: &data };
                Ok(Words::new(Kind::Result, output.write()))
            }
            Ok(Err(why)) => Err(refusal(why).about(&id)),
            Err(_) => Err(Failure::new(Code::Timeout, "the work took too long").about(&id)),
        }
    }

    /// A refusal, signed.
    pub(super) fn refuse(&self, failure: &Failure, to: Option<PublicKey>) -> Answer {
        let answer = self.say(failure.http, &Words::new(Kind::Error, failure.payload()), to);
        Answer { retry_after_seconds: failure.retry_after_seconds, ..answer }
    }

    fn say(&self, status: u16, words: &Words, to: Option<PublicKey>) -> Answer {
        let Words { kind, payload, id } = words;
        let sealed = match id {
            Some(id) => self.identity.seal_as(id, clock::now(), *kind, payload, to),
            None => self.identity.seal(*kind, payload, to),
        };
        let sealed = match sealed {
            Ok(sealed) => sealed,
            // Without randomness there is no id, and without an id no envelope.
            Err(_) => return Answer { status: 500, body: b"{}".to_vec(), ..Answer::default() },
        };
        Answer { status, body: sealed.as_str().into(), ..Answer::default() }
    }
}

impl Words {
    fn new(kind: Kind, payload: String) -> Self {
        Self { kind, payload, id: None }
    }
}

fn accepted(incoming: &Incoming) -> Words {
    Words::new(Kind::Status, Notice::accepted(&incoming.id, None).write())
}

/// The same for a request that is unknown and one that is somebody else's (D19).
fn not_yours() -> Failure {
    Failure::unauthorized("no request of that id concerns you")
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
