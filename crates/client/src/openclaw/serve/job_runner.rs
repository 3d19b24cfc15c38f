//! Runs one step of a job: from a request to a response, and from acceptance to a result.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::openclaw::answers::ResultPublished;
use rialto_protocols::openclaw::message::{Answer, Failed, Outcome, Output, Rejection, Response};
use rialto_protocols::openclaw::state::State;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use uuid::Uuid;

use super::retry_forever::persist;
use crate::call::CallError;
use crate::clock;
use crate::openclaw::agent::Agent;
use crate::openclaw::presence::{Counter, Done};
use crate::openclaw::event::Incoming;
use crate::openclaw::handler::{Broken, Handler, Job, Mishap, Verdict};
use crate::openclaw::request_spec::check_object;

/// How a step ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// Nothing is left to do.
    Nothing,
    /// The hub has the result.
    Delivered(Done),
    /// The hub will never accept the result: it has already ended the work, or does not know it.
    Undelivered(Uuid, CallError),
    /// Another message could not be sent.
    Unsent(&'static str, CallError),
    /// The work the hub considers running, from the listing with this number.
    Found(u64, Result<Vec<Incoming>, CallError>),
}

/// Runs the steps.
pub(super) struct Clerk<H> {
    pub(super) agent: Agent,
    pub(super) handler: Arc<H>,
    pub(super) counter: Counter,
    /// Limits how much work runs at a time.
    pub(super) room: Arc<Semaphore>,
}

impl<H> Clone for Clerk<H> {
    fn clone(&self) -> Self {
        Self {
            agent: self.agent.clone(),
            handler: Arc::clone(&self.handler),
            counter: self.counter.clone(),
            room: Arc::clone(&self.room),
        }
    }
}

impl<H: Handler> Clerk<H> {
    /// Asks the handler for approval, and sends its decision.
    pub(super) async fn approve(self, id: Uuid, waiting: Incoming) -> Ended {
        let Some(Some(approved)) =
            self.caught(None, async { self.handler.approve(&waiting).await }).await
        else {
            return Ended::Nothing;
        };
        match persist(|| self.agent.approve(id, approved)).await {
            Ok(()) => Ended::Nothing,
            Err(error) => Ended::Unsent("an approval was refused", error),
        }
    }

    /// Responds to a request that waits for this agent's own decision, and does the work if it is
    /// accepted.
    pub(super) async fn answer(self, known_as: Uuid, job: Job) -> Ended {
        let verdict = self.caught(None, async { self.handler.decide(&job.request).await }).await;
        let (answer, promised) = match verdict {
            Some(Verdict::Accept { estimated_completion }) => {
                let collaboration_id = job.collaboration_id;
                let answer = Answer::Accepted { collaboration_id, estimated_completion };
                (answer, estimated_completion)
            }
            Some(Verdict::Reject(why)) => return self.reject(known_as, job, why).await,
            Some(Verdict::Defer { until }) => (Answer::Deferred { until }, None),
            // The hub rejects the request after its timeout.
            None => return Ended::Nothing,
        };
        let accepts = matches!(answer, Answer::Accepted { .. });
        match self.respond(known_as, &job, answer).await {
            Ok(()) if accepts => self.work(job, promised).await,
            Ok(()) => Ended::Nothing,
            // An earlier attempt may have been accepted, with only its response lost.
            Err(_) if accepts && self.is_ours(&job).await => self.work(job, promised).await,
            Err(error) => Ended::Unsent("a response was refused", error),
        }
    }

    /// Rejects a request.
    pub(super) async fn reject(self, known_as: Uuid, job: Job, why: Rejection) -> Ended {
        match self.respond(known_as, &job, Answer::Rejected(why)).await {
            Ok(()) => Ended::Nothing,
            Err(error) => Ended::Unsent("a response was refused", error),
        }
    }

    /// Does accepted work and delivers the result.
    pub(super) async fn work(self, job: Job, promised: Option<Timestamp>) -> Ended {
        let (_busy, taken) = (self.counter.begin(), Instant::now());
        let _room = self.room.acquire().await;
        let began = Instant::now();
        let id = job.collaboration_id;
        let outcome =
            match self.caught(Some(id), async { self.handler.work(job.clone()).await }).await {
                Some(Ok(output)) => completed(output),
                Some(Err(why)) => Outcome::Failed(why.into()),
                None => broken("INTERNAL_ERROR", "the handler panicked"),
            };
        let at = clock::now();
        let took = |since: Instant| i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
        let output = Output {
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
            Ok(ok) => Ended::Delivered(Done {
                collaboration_id: id,
                ok,
                on_time: Done::is_on_time(at, job.request.deadline, promised),
                took: Millis(took(taken)),
            }),
            Err(error) => Ended::Undelivered(id, error),
        }
    }

    /// Delivers a result until the hub responds; returns whether it counts as done.
    async fn deliver(&self, output: Output) -> Result<bool, CallError> {
        let is_completed = matches!(output.outcome, Outcome::Completed { .. });
        match self.post(&output).await {
            Ok(answer) => Ok(is_completed && answer.output_valid),
            // The requester waits, so an unusable output is reported as a failure.
            Err(CallError::Refused { status: 400 | 413 | 422, .. }) if is_completed => {
                let outcome = broken("INVALID_OUTPUT", "the output cannot be delivered");
                self.post(&Output { outcome, ..output }).await.map(|_| false)
            }
            Err(error) => Err(error),
        }
    }

    async fn post(&self, output: &Output) -> Result<ResultPublished, CallError> {
        let (server, text) = (self.agent.server(), output.write());
        let url = server.at(&["collaborations", &output.collaboration_id.to_string(), "result"]);
        persist(|| server.post(url.clone(), text.clone())).await?.value()
    }

    async fn respond(&self, known_as: Uuid, job: &Job, answer: Answer) -> Result<(), CallError> {
        let response = Response {
            request_id: job.request.request_id,
            responder_agent_id: self.agent.id(),
            answer,
            correlation_id: job.request.correlation_id,
            timestamp: clock::now(),
            result: None,
        };
        let (server, text) = (self.agent.server(), response.write());
        let url = server.at(&["collaborations", &known_as.to_string(), "response"]);
        persist(|| server.post(url.clone(), text.clone())).await.map(drop)
    }

    /// Whether the hub considers this job running.
    async fn is_ours(&self, job: &Job) -> bool {
        let seen = persist(|| self.agent.collaboration(job.collaboration_id)).await;
        seen.is_ok_and(|seen| seen.state == State::Running)
    }

    /// Runs the handler; `None` if it panics.
    async fn caught<T>(&self, about: Option<Uuid>, said: impl Future<Output = T>) -> Option<T> {
        let said = AssertUnwindSafe(said).catch_unwind().await;
        if said.is_err() {
            let (what, why) = ("the handler failed", "it panicked".to_owned());
            self.handler.mishap(&Mishap { collaboration_id: about, what, why });
        }
        said.ok()
    }
}

/// The outcome for an output, after checking it.
fn completed(output: String) -> Outcome {
    match check_object(&output) {
        Ok(()) => Outcome::Completed { output_data: output.into() },
        Err(_) => broken("INVALID_OUTPUT", "the output is not an object"),
    }
}

fn broken(code: &str, message: &str) -> Outcome {
    Outcome::Failed(Failed::from(Broken::for_good(code, message)))
}
