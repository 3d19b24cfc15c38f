//! Who does the work: asked for terms, then for the work, the same behind a hub and without one.

use std::future::Future;
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_protocols::agora::Code;
use rialto_protocols::kit::ed25519::PublicKey;

use super::agent::Agent;
use super::incoming::Incoming;
use super::said::Said;
use super::serve::Mishap;
use crate::call::CallError;

/// Work that is wanted from us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The id of the REQUEST.
    pub request_id: String,
    /// Who wants it.
    pub requester: PublicKey,
    /// What kind of work, such as `agora:search:v1`.
    pub resource: String,
    /// The input: JSON text of an object.
    pub params: String,
    /// The most that will be paid, if that was said.
    pub max: Option<Credits>,
    /// How long it may take, if that was said.
    pub timeout: Option<Duration>,
    /// Whether the work may be delivered without an offer. Where several may have been asked, it
    /// may not.
    pub direct: bool,
}

/// On what terms a job would be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terms {
    /// At once. Where that is not possible this is an offer for nothing.
    Work,
    /// If this is accepted.
    Offer {
        /// What it costs.
        cost: Credits,
        /// How long the offer stands.
        ttl: Duration,
        /// How long the work will take.
        eta: Duration,
    },
    /// Not at all.
    Decline(Broken),
}

/// Why there is no work: 404 for what one cannot do, 503 for not now, 500 for what went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What it means.
    pub code: Code,
    /// The same for people.
    pub message: String,
}

/// A worker.
pub trait Handler: Send + Sync + 'static {
    /// Says on what terms it would do a job.
    fn terms(&self, job: &Job) -> impl Future<Output = Terms> + Send;

    /// Does a job: JSON text of an object, or why not.
    fn work(
        &self,
        job: Job,
        progress: Progress,
    ) -> impl Future<Output = Result<String, Broken>> + Send;

    /// Is told what went wrong around its work, to log it.
    fn mishap(&self, _: &Mishap) {}
}

/// Where parts of the work go before it is finished.
#[derive(Clone, Debug)]
pub struct Progress(Option<(Box<Agent>, PublicKey, String)>);

impl Terms {
    /// Declines what is not supported.
    pub fn unsupported(resource: &str) -> Self {
        Self::Decline(Broken::new(Code::NotFound, format!("{resource} is not supported here")))
    }
}

impl Broken {
    /// With a code and a reason.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl Progress {
    /// Parts are sent to who asked.
    pub(super) fn to(agent: &Agent, job: &Job) -> Self {
        Self(Some((Box::new(agent.clone()), job.requester, job.request_id.clone())))
    }

    /// Parts go nowhere: one answer is all there is room for.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Sends a part: JSON text of an object. Without a hub nobody can be told before the end, and
    /// parts are dropped.
    pub async fn part(&self, data: &str) -> Result<(), CallError> {
        match &self.0 {
            Some((agent, to, id)) => agent.partial(*to, id, data, false).await.map(drop),
            None => Ok(()),
        }
    }
}

impl Job {
    /// The job of a REQUEST; `None` for other envelopes.
    pub(super) fn of(incoming: &Incoming) -> Option<Self> {
        let Said::Request { resource, params, has_budget, max, timeout, .. } = &incoming.said
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
            // Without an address, a budget asks for offers of several (R28).
            direct: incoming.recipient.is_some() || !has_budget,
        })
    }
}
