//! Handlers, which are asked for terms and then for the work, with or without a hub.

use std::future::Future;
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::agora::Code;
use rialto_protocols::kit::ed25519::PublicKey;

use super::agent::Agent;
use super::incoming::IncomingEnvelope;
use super::payload::EnvelopePayload;
use crate::call::CallError;
use crate::worker::ServeError;

/// A job offered to this agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The id of the REQUEST.
    pub request_id: String,
    /// The requester.
    pub requester: PublicKey,
    /// The kind of work, such as `agora:search:v1`.
    pub resource: String,
    /// The input: a JSON object, as text.
    pub params: String,
    /// The maximum price, if set.
    pub max: Option<Credits>,
    /// The time limit, if set.
    pub timeout: Option<Duration>,
    /// Whether the work may be delivered without an offer. It may not if several agents may have
    /// been asked.
    pub may_skip_offer: bool,
}

/// The terms for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terms {
    /// Does the work at once. Where that is not possible, sends an offer for 0 credits.
    Work,
    /// Does the work if this offer is accepted.
    Offer {
        /// The price.
        cost: Credits,
        /// How long the offer is valid.
        ttl: Duration,
        /// How long the work will take.
        eta: Duration,
    },
    /// Declines the job.
    Decline(WorkError),
}

/// Why the work is not done: 404 if it is not supported, 503 if not now, 500 for an internal error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkError {
    /// The error code.
    pub code: Code,
    /// The error message, for people to read.
    pub message: String,
}

/// Does the work.
pub trait Handler: Send + Sync + 'static {
    /// The terms on which it does a job.
    fn terms(&self, job: &Job) -> impl Future<Output = Terms> + Send;

    /// Does a job and returns a JSON object as text, or an error.
    fn work(
        &self,
        job: Job,
        progress: Progress,
    ) -> impl Future<Output = Result<String, WorkError>> + Send;

    /// Called with errors around the work, to log them.
    fn on_error(&self, _: &ServeError) {}
}

/// Sends partial results before the work is finished.
#[derive(Clone, Debug)]
pub struct Progress(Option<(Box<Agent>, PublicKey, String)>);

impl Terms {
    /// Declines a resource that is not supported.
    pub fn unsupported(resource: &str) -> Self {
        Self::Decline(WorkError::new(Code::NotFound, format!("{resource} is not supported here")))
    }
}

impl WorkError {
    /// An error with a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl Progress {
    /// Sends partial results to the requester.
    pub(super) fn new(agent: &Agent, job: &Job) -> Self {
        Self(Some((Box::new(agent.clone()), job.requester, job.request_id.clone())))
    }

    /// Drops partial results: the caller gets a single answer.
    pub(super) fn disabled() -> Self {
        Self(None)
    }

    /// Sends a partial result: a JSON object, as text. Without a hub there is no way to send it
    /// before the end, and it is dropped.
    pub async fn send_part(&self, data: &str) -> Result<(), CallError> {
        match &self.0 {
            Some((agent, to, id)) => agent.send_partial(*to, id, data, false).await.map(drop),
            None => Ok(()),
        }
    }
}

impl Job {
    /// The job of a REQUEST; `None` for other envelopes.
    pub(super) fn from_request(incoming: &IncomingEnvelope) -> Option<Self> {
        let EnvelopePayload::Request { resource, params, has_budget, max, timeout, .. } =
            &incoming.payload
        else {
            return None;
        };
        Some(Self {
            request_id: incoming.id.clone(),
            requester: incoming.sender,
            resource: resource.clone(),
            params: params.clone(),
            max: *max,
            timeout: timeout.map(|timeout| Duration::from_millis(timeout.0.unsigned_abs())),
            // Without a recipient, a budget asks several agents for offers (R28).
            may_skip_offer: incoming.recipient.is_some() || !has_budget,
        })
    }
}

/// A duration as the protocol writes it.
pub(super) fn millis(duration: Duration) -> Millis {
    Millis(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}
