//! Runs one step of a job: from a request to a response, and from acceptance to a result.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::openclaw::wire::answers::ResultPublished;
use rialto_protocols::openclaw::wire::words::{Role, State};
use rialto_protocols::openclaw::wire::{
    CollaborationResult, Rejection, Response, ResponseAnswer, ResultError, ResultOutcome,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use uuid::Uuid;

use super::agent::Agent;
use super::collaboration::{Collaboration, CollaborationFilter};
use super::event::IncomingRequest;
use super::handler::{Decision, Handler, Job, WorkError};
use super::presence::{BusyCounter, FinishedCollaboration};
use super::request::retry_forever;
use crate::call::CallError;
use crate::clock;
use crate::json::check_object;
use crate::worker::ServeError;

/// Maximum number of pages per state.
const PAGES_MAX: usize = 100;
/// Page size.
const PAGE: u32 = 100;

/// How a step of a job ended.
#[derive(Debug)]
pub(super) enum StepEnd {
    /// Nothing is left to do.
    Finished,
    /// The hub has the result.
    Delivered(FinishedCollaboration),
    /// The hub will never accept the result: it has already ended the work, or does not know it.
    Undelivered(Uuid, CallError),
    /// Another call failed.
    NotSent(&'static str, CallError),
    /// The work the hub considers running.
    Listed(Vec<IncomingRequest>),
}

impl StepEnd {
    /// The end of a step whose last message was sent, or failed as this action.
    fn of(sent: Result<(), CallError>, action: &'static str) -> Self {
        sent.map_or_else(|error| Self::NotSent(action, error), |()| Self::Finished)
    }
}

/// Runs one step of a job: from a request to a response, and from acceptance to a result.
pub(super) struct JobRunner<H> {
    pub(super) agent: Agent,
    pub(super) handler: Arc<H>,
    pub(super) counter: BusyCounter,
    /// Limits how much work runs at a time.
    pub(super) permits: Arc<Semaphore>,
}

impl<H> Clone for JobRunner<H> {
    fn clone(&self) -> Self {
        Self {
            agent: self.agent.clone(),
            handler: Arc::clone(&self.handler),
            counter: self.counter.clone(),
            permits: Arc::clone(&self.permits),
        }
    }
}

impl<H: Handler> JobRunner<H> {
    /// Asks the handler for approval, and sends its decision.
    pub(super) async fn approve(self, id: Uuid, waiting: IncomingRequest) -> StepEnd {
        let decision = async { self.handler.approve(&waiting).await };
        let Some(Some(approved)) = self.catch_panic(None, decision).await else {
            return StepEnd::Finished;
        };
        let sent = retry_forever(|| self.agent.approve(id, approved)).await;
        StepEnd::of(sent, "an approval was refused")
    }

    /// Responds to a request that waits for this agent's own decision, and does the work if it is
    /// accepted.
    pub(super) async fn answer_request(self, known_as: Uuid, job: Job) -> StepEnd {
        let decision =
            self.catch_panic(None, async { self.handler.decide(&job.request).await }).await;
        let (answer, promised) = match decision {
            Some(Decision::Accept { estimated_completion }) => {
                let collaboration_id = job.collaboration_id;
                let answer = ResponseAnswer::Accepted { collaboration_id, estimated_completion };
                (answer, estimated_completion)
            }
            Some(Decision::Reject(why)) => return self.reject(known_as, job, why).await,
            Some(Decision::Defer { until }) => (ResponseAnswer::Deferred { until }, None),
            // The hub rejects the request after its timeout.
            None => return StepEnd::Finished,
        };
        let accepts = matches!(answer, ResponseAnswer::Accepted { .. });
        match self.respond(known_as, &job, answer).await {
            Ok(()) if accepts => self.run_job(job, promised).await,
            Ok(()) => StepEnd::Finished,
            // An earlier attempt may have been accepted, with only its response lost.
            Err(_) if accepts && self.is_running_at_hub(&job).await => {
                self.run_job(job, promised).await
            }
            Err(error) => StepEnd::NotSent("a response was refused", error),
        }
    }

    /// Rejects a request.
    pub(super) async fn reject(self, known_as: Uuid, job: Job, why: Rejection) -> StepEnd {
        let sent = self.respond(known_as, &job, ResponseAnswer::Rejected(why)).await;
        StepEnd::of(sent, "a response was refused")
    }

    /// Does accepted work and delivers the result.
    pub(super) async fn run_job(self, job: Job, promised: Option<Timestamp>) -> StepEnd {
        let (_busy, accepted) = (self.counter.begin(), Instant::now());
        let _permit = self.permits.acquire().await;
        let began = Instant::now();
        let id = job.collaboration_id;
        let work = async { self.handler.work(job.clone()).await };
        let outcome = match self.catch_panic(Some(id), work).await {
            Some(Ok(output)) => completed(output),
            Some(Err(why)) => ResultOutcome::Failed(why.into()),
            None => broken("INTERNAL_ERROR", "the handler panicked"),
        };
        let at = clock::now();
        let took = |since: Instant| i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
        let output = CollaborationResult {
            collaboration_id: id,
            request_id: job.request.request_id,
            responder_agent_id: self.agent.id(),
            outcome,
            execution_duration_ms: Some(took(began)),
            completed_at: Some(at),
            correlation_id: job.request.correlation_id,
            timestamp: at,
        };
        match self.deliver(output).await {
            Ok(ok) => StepEnd::Delivered(FinishedCollaboration {
                collaboration_id: id,
                ok,
                on_time: FinishedCollaboration::is_on_time(at, job.request.deadline, promised),
                took: Millis(took(accepted)),
            }),
            Err(error) => StepEnd::Undelivered(id, error),
        }
    }

    /// Delivers a result until the hub responds; returns whether it counts as done.
    async fn deliver(&self, output: CollaborationResult) -> Result<bool, CallError> {
        let is_completed = matches!(output.outcome, ResultOutcome::Completed { .. });
        match self.post(&output).await {
            Ok(answer) => Ok(is_completed && answer.output_valid),
            // The requester waits, so an unusable output is reported as a failure.
            Err(CallError::Refused { status: 400 | 413 | 422, .. }) if is_completed => {
                let outcome = broken("INVALID_OUTPUT", "the output cannot be delivered");
                self.post(&CollaborationResult { outcome, ..output }).await.map(|_| false)
            }
            Err(error) => Err(error),
        }
    }

    async fn post(&self, output: &CollaborationResult) -> Result<ResultPublished, CallError> {
        let (server, text) = (self.agent.server(), output.write());
        let url = server.url(&["collaborations", &output.collaboration_id.to_string(), "result"]);
        retry_forever(|| server.post(url.clone(), text.clone())).await?.json()
    }

    async fn respond(
        &self,
        known_as: Uuid,
        job: &Job,
        answer: ResponseAnswer,
    ) -> Result<(), CallError> {
        let response = Response {
            request_id: job.request.request_id,
            responder_agent_id: self.agent.id(),
            answer,
            correlation_id: job.request.correlation_id,
            timestamp: clock::now(),
            result: None,
        };
        let (server, text) = (self.agent.server(), response.write());
        let url = server.url(&["collaborations", &known_as.to_string(), "response"]);
        retry_forever(|| server.post(url.clone(), text.clone())).await.map(drop)
    }

    /// Whether the hub considers this job running.
    async fn is_running_at_hub(&self, job: &Job) -> bool {
        let found = retry_forever(|| self.agent.collaboration(job.collaboration_id)).await;
        found.is_ok_and(|collaboration| collaboration.state == State::Running)
    }

    /// Runs the handler; `None` if it panics.
    async fn catch_panic<T>(&self, id: Option<Uuid>, work: impl Future<Output = T>) -> Option<T> {
        let result = AssertUnwindSafe(work).catch_unwind().await;
        if result.is_err() {
            self.report_error(id, "the handler failed", "it panicked");
        }
        result.ok()
    }

    pub(super) fn report_error(
        &self,
        id: Option<Uuid>,
        action: &'static str,
        reason: impl Display,
    ) {
        let (job_id, reason) = (id.map(|id| id.to_string()), reason.to_string());
        self.handler.on_error(&ServeError { job_id, action, reason });
    }
}

/// The outcome for an output, after checking it.
fn completed(output: String) -> ResultOutcome {
    match check_object("the output", &output) {
        Ok(()) => ResultOutcome::Completed { output_data: output.into() },
        Err(_) => broken("INVALID_OUTPUT", "the output is not an object"),
    }
}

fn broken(code: &str, message: &str) -> ResultOutcome {
    ResultOutcome::Failed(ResultError::from(WorkError::permanent(code, message)))
}

/// Lists everything that runs or waits for a response, across temporary errors.
pub(super) async fn list_unfinished(agent: &Agent) -> Result<Vec<IncomingRequest>, CallError> {
    let mut requests = Vec::new();
    for state in [State::Running, State::AwaitingResponse] {
        let filter = CollaborationFilter {
            role: Some(Role::Responder),
            state: Some(state),
            limit: Some(PAGE),
        };
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let page = retry_forever(|| agent.collaborations(&filter, cursor.as_deref())).await?;
            // Running work comes first: after an empty page there is only finished work.
            cursor = page.next_cursor.filter(|_| !page.collaborations.is_empty());
            requests.extend(page.collaborations.into_iter().filter_map(incoming));
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(requests)
}

/// Converts a collaboration to its event.
fn incoming(collaboration: Collaboration) -> Option<IncomingRequest> {
    let Collaboration { collaboration_id, state, request, .. } = collaboration;
    let accepted = match state {
        State::Running => collaboration_id.is_some().then_some(true)?,
        State::AwaitingResponse => false,
        _ => return None,
    };
    Some(IncomingRequest { request, collaboration_id, accepted, awaiting_approval: false })
}
