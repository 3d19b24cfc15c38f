//! Runs one step of a job: from a request to a response, and from acceptance to a result.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::openclaw::wire::answers::ResultPublished;
use rialto_protocols::openclaw::wire::words::State;
use rialto_protocols::openclaw::wire::{
    CollaborationResult, Rejection, Response, ResponseAnswer, ResultError, ResultOutcome,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use uuid::Uuid;

use crate::call::CallError;
use crate::clock;
use crate::json::check_object;
use crate::openclaw::agent::Agent;
use crate::openclaw::event::IncomingRequest;
use crate::openclaw::handler::{Decision, Handler, Job, ServeError, WorkError};
use crate::openclaw::presence::{BusyCounter, FinishedCollaboration};
use crate::openclaw::request::retry_forever;

/// How a step ended.
#[derive(Debug)]
pub(super) enum RunOutcome {
    /// Nothing is left to do.
    Finished,
    /// The hub has the result.
    Delivered(FinishedCollaboration),
    /// The hub will never accept the result: it has already ended the work, or does not know it.
    Undelivered(Uuid, CallError),
    /// Another message could not be sent.
    NotSent(&'static str, CallError),
    /// The work the hub considers running, from the listing with this number.
    Listed(u64, Result<Vec<IncomingRequest>, CallError>),
}

/// Runs the steps.
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
    pub(super) async fn approve(self, id: Uuid, waiting: IncomingRequest) -> RunOutcome {
        let Some(Some(approved)) =
            self.catch_panic(None, async { self.handler.approve(&waiting).await }).await
        else {
            return RunOutcome::Finished;
        };
        match retry_forever(|| self.agent.approve(id, approved)).await {
            Ok(()) => RunOutcome::Finished,
            Err(error) => RunOutcome::NotSent("an approval was refused", error),
        }
    }

    /// Responds to a request that waits for this agent's own decision, and does the work if it is
    /// accepted.
    pub(super) async fn answer_request(self, known_as: Uuid, job: Job) -> RunOutcome {
        let verdict =
            self.catch_panic(None, async { self.handler.decide(&job.request).await }).await;
        let (answer, promised) = match verdict {
            Some(Decision::Accept { estimated_completion }) => {
                let collaboration_id = job.collaboration_id;
                let answer = ResponseAnswer::Accepted { collaboration_id, estimated_completion };
                (answer, estimated_completion)
            }
            Some(Decision::Reject(why)) => return self.reject(known_as, job, why).await,
            Some(Decision::Defer { until }) => (ResponseAnswer::Deferred { until }, None),
            // The hub rejects the request after its timeout.
            None => return RunOutcome::Finished,
        };
        let accepts = matches!(answer, ResponseAnswer::Accepted { .. });
        match self.respond(known_as, &job, answer).await {
            Ok(()) if accepts => self.run_job(job, promised).await,
            Ok(()) => RunOutcome::Finished,
            // An earlier attempt may have been accepted, with only its response lost.
            Err(_) if accepts && self.is_running_at_hub(&job).await => {
                self.run_job(job, promised).await
            }
            Err(error) => RunOutcome::NotSent("a response was refused", error),
        }
    }

    /// Rejects a request.
    pub(super) async fn reject(self, known_as: Uuid, job: Job, why: Rejection) -> RunOutcome {
        match self.respond(known_as, &job, ResponseAnswer::Rejected(why)).await {
            Ok(()) => RunOutcome::Finished,
            Err(error) => RunOutcome::NotSent("a response was refused", error),
        }
    }

    /// Does accepted work and delivers the result.
    pub(super) async fn run_job(self, job: Job, promised: Option<Timestamp>) -> RunOutcome {
        let (_busy, taken) = (self.counter.begin(), Instant::now());
        let _room = self.permits.acquire().await;
        let began = Instant::now();
        let id = job.collaboration_id;
        let outcome = match self
            .catch_panic(Some(id), async { self.handler.work(job.clone()).await })
            .await
        {
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
            Ok(ok) => RunOutcome::Delivered(FinishedCollaboration {
                collaboration_id: id,
                ok,
                on_time: FinishedCollaboration::is_on_time(at, job.request.deadline, promised),
                took: Millis(took(taken)),
            }),
            Err(error) => RunOutcome::Undelivered(id, error),
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
        let seen = retry_forever(|| self.agent.collaboration(job.collaboration_id)).await;
        seen.is_ok_and(|seen| seen.state == State::Running)
    }

    /// Runs the handler; `None` if it panics.
    async fn catch_panic<T>(
        &self,
        about: Option<Uuid>,
        said: impl Future<Output = T>,
    ) -> Option<T> {
        let said = AssertUnwindSafe(said).catch_unwind().await;
        if said.is_err() {
            let (what, why) = ("the handler failed", "it panicked".to_owned());
            self.handler.on_error(&ServeError {
                collaboration_id: about,
                action: what,
                reason: why,
            });
        }
        said.ok()
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
