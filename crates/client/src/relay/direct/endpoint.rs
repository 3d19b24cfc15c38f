//! Connects the agent's handlers to the receive endpoint: an envelope becomes a job, and the reply
//! contains its result.
//!
//! The protocol's reply is `{"status":"ok"}`, and a receiver may add more (D13). A peer has no
//! inbox for a result, so the result is in the reply. `reply` is its text, as a message of the
//! agent would say it (B19), and `output` is the result itself if it is more than a text.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_core::alias::Digest;
use rialto_core::money::Credits;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::relay::wire::envelope::InvalidEnvelope;
use rialto_protocols::relay::wire::reply;
use rialto_protocols::relay::wire::work::{MESSAGE_SKILL, WorkTerms, json_as_text, message_skill};
use rialto_protocols::relay::{Code, Envelope, InvalidBody};
use serde::{Deserialize, Serialize};

use super::BODY_BYTES_MAX;
use super::receiver::{
    ReceivedEnvelope, ReceiverResponse, body_error_response, error_response, post_only,
    read_envelope,
};
use crate::agent::direct::{OpenedJournal, ProtocolEndpoint, ResponseFuture};
use crate::agent::{Dialogue, Job, JobRefusal, Outcome, Skill};
use crate::http_server::{BodyError, HttpResponse, has_content_encoding};
use crate::ids;
use crate::relay::turn_dedup;
use crate::worker::journal::Entry;
use crate::worker::pool::{QueueSlot, WorkerPool};
use crate::worker::request_log::{
    Fingerprint, PeerRequest, RequestKey, RequestLog, SharedResult, TrackedRequest,
};

/// The path for envelopes.
const PATH: &str = "/receive";
/// The path of the envelope within a request.
const AT: &str = "/envelope";

/// The `Retry-After` of a refusal for lack of capacity.
const RETRY_AFTER_S: u32 = 5;

/// The relay endpoint of an agent that its peers call.
struct EnvelopeEndpoint(Arc<RequestLog<EnvelopeRequest>>);

/// An envelope that was accepted. Its fingerprint says all that is kept of it.
struct EnvelopeRequest;

/// The journal's note of an answer.
#[derive(Serialize, Deserialize)]
struct Note {
    status: u16,
    body: String,
}

/// Creates the relay endpoint for these handlers.
pub(crate) fn endpoint(
    pool: &Arc<WorkerPool>,
    journal: OpenedJournal,
) -> impl ProtocolEndpoint + use<> {
    let (log, _) = RequestLog::open(Arc::clone(pool), journal, EnvelopeRequest::restore);
    EnvelopeEndpoint(Arc::new(log))
}

impl EnvelopeRequest {
    /// Restores an envelope of an earlier run; `None` if its answer was not kept.
    fn restore(entry: &Entry) -> Option<(Self, Option<HttpResponse>)> {
        if !entry.is_finished {
            return Some((Self, None));
        }
        let Note { status, body } = serde_json::from_str(entry.note.as_deref()?).ok()?;
        Some((Self, Some(HttpResponse::new(status, body))))
    }
}

impl PeerRequest for EnvelopeRequest {
    type Answer = HttpResponse;

    fn note(&self, answer: Option<&HttpResponse>) -> Option<String> {
        let answer = answer?;
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        serde_json::to_string(&Note { status: answer.status, body }).ok()
    }

    fn bytes(&self, answer: &HttpResponse) -> usize {
        answer.body.len()
    }

    fn may_repeat(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Declined(_))
    }
}

impl ProtocolEndpoint for EnvelopeEndpoint {
    fn name(&self) -> &'static str {
        "relay"
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn handle<'a>(&'a self, head: &'a Parts, body: Result<Bytes, BodyError>) -> ResponseFuture<'a> {
        Box::pin(async move {
            let invalid = |status, detail| ReceiverResponse::invalid(status, detail).into();
            match body {
                _ if head.method != Method::POST => post_only(),
                _ if head.uri.path().trim_end_matches('/') != PATH => {
                    invalid(404, "envelopes are sent to /receive")
                }
                Ok(_) if has_content_encoding(&head.headers) => {
                    invalid(415, "send the body without Content-Encoding")
                }
                Ok(body) if body.len() > BODY_BYTES_MAX => {
                    body_error_response(BodyError::TooLong).into()
                }
                Ok(body) => match read_envelope(&head.headers, &body) {
                    Ok(received) => self.answer(&received).await.unwrap_or_else(|refusal| refusal),
                    Err(invalid) => invalid_envelope(&invalid),
                },
                Err(error) => body_error_response(error).into(),
            }
        })
    }
}

impl EnvelopeEndpoint {
    /// Answers a valid envelope as a new job or as a repeat. The work is a separate task: a caller
    /// that disconnects may come back for the answer.
    async fn answer(&self, received: &ReceivedEnvelope) -> Result<HttpResponse, HttpResponse> {
        let fingerprint = fingerprint(received);
        let job = self.job(received, fingerprint);
        let enqueue = || self.0.pool().try_enqueue().ok_or_else(at_capacity);
        let Some(fingerprint) = fingerprint else {
            let (job, slot) = (job?, enqueue()?);
            return Ok(self.run_unidentified(job, slot).await);
        };
        let check_same = |known: &TrackedRequest<EnvelopeRequest>| {
            if known.fingerprint == fingerprint { Ok(()) } else { Err(conflict_response()) }
        };
        let accept = |_| Ok((EnvelopeRequest, (job?, enqueue()?)));
        let (tracked, details) = self.0.admit(fingerprint, check_same, accept)?;
        if let Some((job, slot)) = details {
            let (log, tracked) = (Arc::clone(&self.0), Arc::clone(&tracked));
            self.0.pool().spawn(async move {
                log.execute(&tracked, slot, job, |outcome, _| outcome_response(outcome)).await;
            });
        }
        Ok(tracked.answer.wait().await)
    }

    /// Runs the job of an envelope whose repeats cannot be recognised.
    async fn run_unidentified(&self, job: Job, slot: QueueSlot) -> HttpResponse {
        let (answer, pool) = (SharedResult::new(), Arc::clone(self.0.pool()));
        let result = answer.clone();
        self.0.pool().spawn(async move {
            let _permit = slot.acquire().await;
            let id = job.id.clone();
            let outcome = pool.handlers().run_job(job).await;
            pool.close_record(&id);
            result.complete(outcome_response(&outcome));
        });
        answer.wait().await
    }

    /// The job of an envelope, or the refusal.
    fn job(
        &self,
        received: &ReceivedEnvelope,
        fingerprint: Option<Fingerprint>,
    ) -> Result<Job, HttpResponse> {
        let text = &received.contents.envelope;
        let wrong = |bad: InvalidBody| invalid_envelope(&bad.into());
        let json = ijson::read(text.as_bytes()).map_err(|bad| wrong(bad.into()))?;
        let terms = WorkTerms::read(&json).map_err(wrong)?;
        let envelope = Envelope::read(&json, AT).map_err(|invalid| invalid_envelope(&invalid))?;
        let skill = self.skill(terms.skill)?;
        let schema = skill.input_schema.as_ref().map_or("{}", |schema| schema.text()).to_owned();
        let message_skill = rialto_core::agent::Skill { input: schema, ..message_skill() };
        let input = terms.input(&envelope, Some(&message_skill));
        let budget = terms.budget.unwrap_or(Credits::ZERO);
        let refused = |why: JobRefusal| adaptation_failed(&refusal_text(&why));
        self.0.pool().handlers().check_job(&skill.name, budget, &input).map_err(refused)?;
        let id = match fingerprint {
            Some(fingerprint) => fingerprint.key.job_id(),
            None => ids::random_id().map_err(|error| adaptation_failed(&error.to_string()))?,
        };
        Ok(Job {
            id: id.to_string(),
            epoch: 0,
            skill: skill.name.clone(),
            input,
            requester: received.sender_id.clone(),
            budget,
            deadline: None,
            time_limit: Duration::MAX,
            meta: None,
            dialogue: Dialogue::default(),
        })
    }

    /// The requested skill, or the only one there is.
    fn skill(&self, name: Option<&str>) -> Result<Arc<Skill>, HttpResponse> {
        let handlers = self.0.pool().handlers();
        let names =
            || handlers.skills().map(|skill| skill.name.clone()).collect::<Vec<_>>().join(", ");
        if let Some(name) = name {
            let unknown = || {
                adaptation_failed(&format!(
                    "{}; its skills are {}",
                    JobRefusal::UnknownSkill,
                    names()
                ))
            };
            return handlers.skill(name).ok_or_else(unknown);
        }
        let mut all = handlers.skills();
        let only = all.next().filter(|_| all.next().is_none());
        let several = || {
            adaptation_failed(&format!(
                "the agent has several skills; add \"skill\" to the envelope, one of {}",
                names()
            ))
        };
        only.or_else(|| handlers.skill(MESSAGE_SKILL)).ok_or_else(several)
    }
}

/// A turn of a conversation is one message (spec, section 5). So is everything a server delivers
/// under one `webhook-id`, over all attempts (section 2.6 of the book). `None` if there is neither.
fn fingerprint(received: &ReceivedEnvelope) -> Option<Fingerprint> {
    let (sender, contents) = (&received.sender_id, &received.contents);
    if let Some(turn) = turn_dedup::turn_digest(sender, contents) {
        let key = RequestKey::new("relay turn", sender, &hex::encode(turn));
        return Some(Fingerprint { key, content: key.0 });
    }
    let key = RequestKey::new("relay delivery", sender, received.trace_id.as_deref()?);
    let normalized = serde_json::to_vec(&turn_dedup::normalized_envelope(contents)?).ok()?;
    Some(Fingerprint { key, content: Digest::of(&[&normalized]) })
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
fn outcome_response(outcome: &Outcome) -> HttpResponse {
    let output = match outcome {
        Outcome::Done(output) => output,
        Outcome::Failed(why)
        | Outcome::Declined(why)
        | Outcome::InvalidInput(why)
        | Outcome::Refused(why) => {
            return adaptation_failed(why);
        }
    };
    let text = json_as_text(output);
    let structured = (text == *output).then_some(output.as_str());
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
