//! Connects the agent's handlers to the receive endpoint: an envelope becomes a job, and the reply
//! contains its result.
//!
//! The protocol's reply is `{"status":"ok"}`, and a receiver may add more (D13). A peer has no
//! inbox for a result, so the result is in the reply. `reply` is its text, as a message of the
//! agent would say it (B19), and `output` is the result itself if it is more than a text.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::relay::wire::envelope::InvalidEnvelope;
use rialto_protocols::relay::wire::reply;
use rialto_protocols::relay::wire::work::{MESSAGE_SKILL, WorkTerms, json_as_text, message_skill};
use rialto_protocols::relay::{Code, Envelope, InvalidBody};

use super::BODY_BYTES_MAX;
use super::envelope_record::{EnvelopeRecord, Fingerprint};
use super::receiver::{self, ReceivedEnvelope, error_response};
use super::serve::body_error_response;
use crate::agent::direct::bounded_cache::{BoundedCache, RETENTION};
use crate::agent::direct::journal::{Entry, Journal};
use crate::agent::direct::request_key::RequestKey;
use crate::agent::direct::router::{ProtocolEndpoint, ResponseFuture};
use crate::agent::direct::shared_result::SharedResult;
use crate::agent::direct::worker_pool::{QueueSlot, WorkerPool, lock_ignoring_poison};
use crate::agent::{Job, JobRefusal, Outcome, Skill};
use crate::http_server::{BodyError, HttpResponse, has_content_encoding};
use crate::{clock, ids};

/// The path for envelopes.
const PATH: &str = "/receive";
/// The path of the envelope within a request.
const AT: &str = "/envelope";

/// The `Retry-After` of a refusal for lack of capacity.
const RETRY_AFTER_S: u32 = 5;

/// The relay endpoint of an agent that its peers call.
pub(crate) struct DirectEndpoint(Arc<EnvelopeService>);

struct EnvelopeService {
    pool: Arc<WorkerPool>,
    turns: Mutex<BoundedCache<RequestKey, EnvelopeRecord>>,
    journal: Journal,
}

/// Creates the relay endpoint for these handlers.
pub(crate) fn endpoint(
    bench: &Arc<WorkerPool>,
    (journal, before): (Journal, Vec<Entry>),
) -> impl ProtocolEndpoint + use<> {
    let mut turns = BoundedCache::default();
    for entry in &before {
        if let Some(turn) = EnvelopeRecord::restore(entry) {
            let since = Timestamp(entry.expires_at.0.saturating_sub(RETENTION.0));
            turns.insert_finished(RequestKey(entry.key), turn, entry.bytes(), since);
        }
    }
    DirectEndpoint(Arc::new(EnvelopeService {
        pool: Arc::clone(bench),
        turns: Mutex::new(turns),
        journal,
    }))
}

impl ProtocolEndpoint for DirectEndpoint {
    fn name(&self) -> &'static str {
        "relay"
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn handle<'a>(&'a self, head: &'a Parts, body: Result<Bytes, BodyError>) -> ResponseFuture<'a> {
        Box::pin(async move {
            if head.method != Method::POST {
                let said = receiver::ReceiverResponse::invalid(405, "envelopes are sent with POST");
                return HttpResponse { allow: Some("POST"), ..said.into() };
            }
            match body {
                _ if head.uri.path().trim_end_matches('/') != PATH => {
                    receiver::ReceiverResponse::invalid(404, "envelopes are sent to /receive")
                        .into()
                }
                Ok(_) if has_content_encoding(&head.headers) => {
                    receiver::ReceiverResponse::invalid(
                        415,
                        "send the body without Content-Encoding",
                    )
                    .into()
                }
                Ok(body) if body.len() > BODY_BYTES_MAX => {
                    body_error_response(BodyError::TooLong).into()
                }
                Ok(body) => match receiver::read_envelope(&head.headers, &body) {
                    Ok(received) => self.0.take(received).await,
                    Err(invalid) => invalid_envelope(&invalid),
                },
                Err(why) => body_error_response(why).into(),
            }
        })
    }
}

impl From<receiver::ReceiverResponse> for HttpResponse {
    fn from(receiver::ReceiverResponse { status, body }: receiver::ReceiverResponse) -> Self {
        Self::new(status, body)
    }
}

impl EnvelopeService {
    /// Handles a valid envelope as a new job or as a repeat.
    async fn take(self: &Arc<Self>, received: ReceivedEnvelope) -> HttpResponse {
        let name = Fingerprint::of(&received);
        let known =
            name.and_then(|name| lock_ignoring_poison(&self.turns).get(&name.key, clock::now()));
        if let (Some(name), Some(known)) = (name, known) {
            if !known.matches(name) {
                return conflict_response();
            }
            if !known.is_interrupted {
                return known.answer.wait().await;
            }
        }
        let (job, place) = match self.job(&received, name) {
            Ok(job) => job,
            Err(answer) => return answer,
        };
        let Some(name) = name else {
            let ongoing = SharedResult::new();
            self.begin(None, ongoing.clone(), job, place);
            return ongoing.wait().await;
        };
        let turn = EnvelopeRecord::new(name);
        let before = {
            let (mut turns, now) = (lock_ignoring_poison(&self.turns), clock::now());
            let before = turns.get(&name.key, now).filter(|turn| !turn.is_interrupted);
            if before.is_none() {
                turns.insert_running(name.key, turn.clone(), now);
            }
            before
        };
        // The same envelope may have arrived in the meantime.
        match before {
            Some(before) if before.matches(name) => before.answer.wait().await,
            Some(_) => conflict_response(),
            None => {
                self.begin(Some(name), turn.answer.clone(), job, place);
                turn.answer.wait().await
            }
        }
    }

    /// Works in a separate task: a caller that disconnects may come back for the answer.
    fn begin(
        self: &Arc<Self>,
        name: Option<Fingerprint>,
        told: SharedResult<HttpResponse>,
        job: Job,
        place: QueueSlot,
    ) {
        let agent_state = Arc::clone(self);
        self.pool.spawn(async move {
            let _seat = place.seat().await;
            let id = job.id.clone();
            let begun = name
                .map_or(Ok(()), |name| agent_state.journal.write(&name.begun_entry(clock::now())));
            let outcome = match begun {
                Ok(()) => agent_state.pool.handlers().run_job(job).await,
                Err(error) => {
                    Outcome::Declined(format!("the journal cannot be written: {}", error.kind()))
                }
            };
            let may_come_again = matches!(outcome, Outcome::Declined(_));
            let answer = outcome_response(outcome);
            let kept = name.map_or(Ok(()), |name| match may_come_again {
                true => agent_state.journal.remove(name.key.0),
                false => agent_state.journal.write(&name.finished_entry(&answer, clock::now())),
            });
            if kept.is_ok() {
                agent_state.pool.close_record(&id);
            }
            if let Some(Fingerprint { key: scope, .. }) = name {
                let mut turns = lock_ignoring_poison(&agent_state.turns);
                match may_come_again {
                    true => turns.remove(&scope),
                    false => turns.finish(&scope, answer.body.len(), clock::now()),
                }
            }
            told.complete(answer);
        });
    }

    /// The job of an envelope and its queue slot, or the refusal.
    fn job(
        &self,
        received: &ReceivedEnvelope,
        name: Option<Fingerprint>,
    ) -> Result<(Job, QueueSlot), HttpResponse> {
        let text = &received.contents.envelope;
        let wrong = |bad: InvalidBody| invalid_envelope(&bad.into());
        let json = ijson::read(text.as_bytes()).map_err(|bad| wrong(bad.into()))?;
        let wish = WorkTerms::read(&json).map_err(wrong)?;
        let envelope = Envelope::read(&json, AT).map_err(|invalid| invalid_envelope(&invalid))?;
        let skill = self.skill(wish.skill)?;
        let shape = skill.input_schema.as_ref().map_or("{}", |schema| schema.text()).to_owned();
        let shaped = rialto_core::agent::Skill { input: shape, ..message_skill() };
        let input = wish.input(&envelope, Some(&shaped));
        let budget = wish.budget.unwrap_or(Credits::ZERO);
        let refused = |why: JobRefusal| adaptation_failed(&refusal_text(&why));
        self.pool.handlers().check_job(&skill.name, budget, &input).map_err(refused)?;
        let id = match name {
            Some(name) => name.key.job_id(),
            None => ids::random_id().map_err(|error| adaptation_failed(&error.to_string()))?,
        };
        let job = Job {
            id: id.to_string(),
            epoch: 0,
            skill: skill.name.clone(),
            input,
            requester: received.sender_id.clone(),
            budget,
            deadline: None,
            time_limit: Duration::MAX,
        };
        let place = self.pool.try_enqueue().ok_or_else(at_capacity)?;
        Ok((job, place))
    }

    /// The requested skill, or the only one there is.
    fn skill(&self, named: Option<&str>) -> Result<&Skill, HttpResponse> {
        let shop = self.pool.handlers();
        let names =
            || shop.skills().map(|skill| skill.name.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(name) = named {
            let unknown = || {
                adaptation_failed(&format!(
                    "{}; its skills are {}",
                    JobRefusal::UnknownSkill,
                    names()
                ))
            };
            return shop.skill(name).ok_or_else(unknown);
        }
        let mut all = shop.skills();
        let only = all.next().filter(|_| all.next().is_none());
        let several = || {
            adaptation_failed(&format!(
                "the agent has several skills; add \"skill\" to the envelope, one of {}",
                names()
            ))
        };
        only.or_else(|| shop.skill(MESSAGE_SKILL)).ok_or_else(several)
    }
}

/// Why an envelope is not a valid job, and how to fix it.
fn refusal_text(why: &JobRefusal) -> String {
    match why {
        JobRefusal::BudgetTooLow { price } => {
            let price = price.to_text(2);
            format!("the skill costs {price} credits; add \"budget\": {price} to the envelope")
        }
        JobRefusal::UnknownSkill | JobRefusal::InvalidInput(_) => why.to_string(),
    }
}

/// The reply to an envelope whose job has ended.
fn outcome_response(outcome: Outcome) -> HttpResponse {
    let output = match outcome {
        Outcome::Done(output) => output,
        Outcome::Failed(why) | Outcome::Declined(why) | Outcome::InvalidInput(why) => {
            return adaptation_failed(&why);
        }
    };
    let text = json_as_text(&output);
    let structured = (text == output).then_some(output.as_str());
    let reply = ObjectWriter::new().text("status", "ok").text("reply", &text);
    let body = reply.maybe_raw("output", structured).finish();
    if body.len() > BODY_BYTES_MAX {
        return adaptation_failed(&format!("the result has more than {BODY_BYTES_MAX} bytes"));
    }
    HttpResponse::new(200, body)
}

fn invalid_envelope(InvalidEnvelope { body: bad, code }: &InvalidEnvelope) -> HttpResponse {
    error_response(*code, &bad.message()).into()
}

/// The same `webhook-id` was used for another envelope.
fn conflict_response() -> HttpResponse {
    error_response(Code::InvalidEnvelope, "this webhook-id was used for another envelope").into()
}

/// A reply that contains an error is still a reply: the envelope was delivered (R40, D13). The
/// code's own status, 500, is for a hub's receive endpoint. If an agent sent it, a hub would treat
/// the agent as unreachable, keep the message and retry it seven times (R45), always with the same
/// result.
fn adaptation_failed(detail: &str) -> HttpResponse {
    HttpResponse::new(200, reply::write_error_reply(Code::AdaptationFailed, detail))
}

/// At capacity: the delivery may be retried.
fn at_capacity() -> HttpResponse {
    let body = reply::write_error_reply(Code::AdaptationFailed, "the agent is at capacity");
    HttpResponse { retry_after_seconds: Some(RETRY_AFTER_S), ..HttpResponse::new(503, body) }
}
