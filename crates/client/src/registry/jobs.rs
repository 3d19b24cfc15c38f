//! Jobs from both sides: requesting one, waiting for it, fetching it and reporting its result.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::fields::{Fields, Malformed};
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::{ijson, rfc3339};
use rialto_protocols::registry::wire::{CURRENCY, DECIMALS, JobPost, JobStatus, ResultPost};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::decimals;
use super::server::{Call, Server};
use crate::call::CallError;
use crate::json::check_object;
use crate::origin_client::{self, Reply};
use crate::{clock, ids};

/// How often a long job is polled: soon at first, then less often.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(200);
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(5);

/// The job to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    skill: String,
    input: String,
    budget: Credits,
    job_id: Option<Uuid>,
    orchestrator: Option<String>,
    worker: Option<Uuid>,
    callback: Option<String>,
}

/// A job that is ready to send. It is idempotent: sent again, it stays one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRequest {
    id: Uuid,
    body: String,
}

impl JobSpec {
    /// A job for a skill, with its input: a JSON object, as text. The budget is 0 unless set.
    pub fn new(skill: impl Into<String>, input: impl Into<String>) -> Self {
        Self {
            skill: skill.into(),
            input: input.into(),
            budget: Credits::ZERO,
            job_id: None,
            orchestrator: None,
            worker: None,
            callback: None,
        }
    }

    /// Sets the maximum price.
    pub fn budget(mut self, budget: Credits) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the job's id. By default each job gets a new one.
    pub fn id(mut self, id: Uuid) -> Self {
        self.job_id = Some(id);
        self
    }

    /// Sets the requester's id. A hub knows it from the key.
    pub fn orchestrator(mut self, orchestrator: impl Into<String>) -> Self {
        self.orchestrator = Some(orchestrator.into());
        self
    }

    /// Assigns the job to one agent. By default the hub picks an agent.
    pub fn worker(mut self, worker: Uuid) -> Self {
        self.worker = Some(worker);
        self
    }

    /// Sets a URL to which the result is sent if it takes long.
    pub fn callback_url(mut self, url: impl Into<String>) -> Self {
        self.callback = Some(url.into());
        self
    }

    /// Builds the job; fails if its receiver would have to refuse it.
    pub fn build(&self) -> Result<JobRequest, CallError> {
        check_object("the input", &self.input)?;
        let id = self.job_id.map_or_else(ids::random_id, Ok)?;
        let body = ObjectWriter::new()
            .uuid("job_id", id)
            .maybe_text("orchestrator_id", self.orchestrator.as_deref())
            .maybe_uuid("agent_id", self.worker)
            .text("skill_name", &self.skill)
            .raw("input_data", &self.input)
            .raw("budget", &self.budget.to_text(DECIMALS))
            .text("currency", CURRENCY)
            .maybe_text("callback_url", self.callback.as_deref())
            .text("timestamp_utc", &rfc3339::format_seconds(clock::now()))
            .finish();
        let invalid = |bad: Malformed| CallError::invalid(bad.message, None);
        JobPost::read(body.as_bytes()).map_err(invalid)?;
        Ok(JobRequest { id, body })
    }
}

impl JobRequest {
    /// The job's id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The request body: JSON text.
    pub(super) fn body(&self) -> &str {
        &self.body
    }
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSnapshot {
    /// The job's id.
    pub job_id: Uuid,
    /// The worker, if there is one.
    pub agent_id: Option<Uuid>,
    /// The outcome.
    pub outcome: JobOutcome,
    /// The amount paid, or to be paid.
    pub cost: Credits,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// The time of this state, by its writer's clock.
    pub at: Option<Timestamp>,
}

/// The outcome of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// Not finished yet.
    Pending,
    /// Success: a JSON object, as text.
    Done(String),
    /// It failed permanently.
    Failed {
        /// One of the protocol's codes; `None` for a cancelled job.
        code: Option<String>,
        /// The error message, for people to read.
        message: String,
    },
}

impl JobSnapshot {
    /// Whether the job has ended.
    pub fn is_finished(&self) -> bool {
        self.outcome != JobOutcome::Pending
    }

    /// Parses the response to a job: a result under any status, or else a refusal.
    pub(super) fn read(reply: &Reply, job_id: Uuid) -> Result<Self, CallError> {
        let is_result = match reply.status.as_u16() {
            200..=299 => true,
            // For an agent's unusable response, the hub creates a result; refusals have an `error`.
            502 => ijson::read(&reply.body)
                .is_ok_and(|json| json.get("status").is_some() && json.get("error").is_none()),
            _ => false,
        };
        if !is_result {
            return Err(reply.refusal(origin_client::refusal_from_body));
        }
        let result = ResultPost::read(&reply.body);
        let result = result.map_err(|bad| CallError::Unreadable(bad.message))?;
        if result.job_id.is_some_and(|id| id != job_id) {
            return Err(CallError::unreadable("the answer is about another job"));
        }
        let outcome = match (result.status, result.output_data) {
            (JobStatus::Success, output) => {
                JobOutcome::Done(output.unwrap_or_else(|| "{}".to_owned()))
            }
            (JobStatus::Failure, _) => JobOutcome::Failed {
                code: result.error_code,
                message: result.error_message.unwrap_or_else(|| "it gave no reason".to_owned()),
            },
            (JobStatus::Pending, _) => JobOutcome::Pending,
        };
        Ok(Self {
            job_id,
            agent_id: result.agent_id,
            outcome,
            cost: result.execution_cost.unwrap_or(Credits::ZERO),
            took_ms: result.execution_time_ms,
            at: written_at(&reply.body),
        })
    }
}

fn written_at(body: &[u8]) -> Option<Timestamp> {
    let json = ijson::read(body).ok()?;
    Fields::read(&json, "").ok()?.time("timestamp_utc").ok().flatten()
}

/// A job that waits for its worker.
#[derive(Clone, Debug, Deserialize)]
pub struct FetchedJob {
    /// The job's id.
    pub job_id: Uuid,
    /// The requester.
    pub orchestrator_id: String,
    /// The requested skill.
    pub skill_name: String,
    /// The input, as the requester wrote it.
    pub input_data: Box<RawValue>,
    /// The maximum price.
    #[serde(deserialize_with = "decimals::credits")]
    pub budget: Credits,
    /// An additional URL for the result.
    #[serde(default)]
    pub callback_url: String,
}

#[derive(Deserialize)]
struct Page {
    jobs: Vec<FetchedJob>,
}

/// A worker's result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobResult {
    /// Success: a JSON object as text, and the cost.
    Done {
        /// The output.
        output: String,
        /// The cost; never more than the price is paid.
        cost: Credits,
    },
    /// The job was tried and failed.
    Failed(String),
}

/// The hub's response to a result.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ResultReceipt {
    /// The job's id.
    pub job_id: Uuid,
    /// The amount paid.
    #[serde(deserialize_with = "decimals::credits")]
    pub paid: Credits,
}

impl JobResult {
    fn write(&self, job_id: Uuid, agent_id: Uuid, took: Duration) -> Result<String, CallError> {
        let took = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        let body = ObjectWriter::new()
            .uuid("job_id", job_id)
            .uuid("agent_id", agent_id)
            .integer("execution_time_ms", took)
            .text("timestamp_utc", &rfc3339::format_seconds(clock::now()));
        let body = match self {
            Self::Done { output, cost } => {
                check_object("the output", output)?;
                body.text("status", "SUCCESS")
                    .raw("output_data", output)
                    .raw("execution_cost", &cost.to_text(DECIMALS))
                    .raw("error_message", "null")
            }
            Self::Failed(why) => body
                .text("status", "FAILURE")
                .raw("output_data", "null")
                .raw("execution_cost", "0.00")
                .text("error_message", why)
                .text("error_code", "EXECUTION_ERROR"),
        };
        Ok(body.finish())
    }
}

impl Server {
    /// Posts a job. Sending it again does not create a second job. A hub may respond before it is
    /// finished: [`Server::hire`] waits.
    pub async fn post_job(&self, job: &JobRequest) -> Result<JobSnapshot, CallError> {
        let call = Call::post(self.url(&["jobs"]), job.body().to_owned());
        self.fetch_snapshot(&call, job.id()).await
    }

    /// Posts a job and waits for its result. After `within`, returns the job in its current state.
    pub async fn hire(&self, job: &JobRequest, within: Duration) -> Result<JobSnapshot, CallError> {
        let until = Instant::now() + within;
        let mut snapshot = self.post_job(job).await?;
        let mut pause = POLL_INTERVAL_MIN;
        while !snapshot.is_finished() && Instant::now() < until {
            sleep(pause.min(until - Instant::now())).await;
            pause = (pause * 2).min(POLL_INTERVAL_MAX);
            snapshot = self.job(job.id()).await?;
        }
        Ok(snapshot)
    }

    /// The state of a job. Only its two parties may read it.
    pub async fn job(&self, job_id: Uuid) -> Result<JobSnapshot, CallError> {
        let call = Call::get(self.url(&["jobs", &job_id.to_string()]));
        self.fetch_snapshot(&call, job_id).await
    }

    /// Cancels a job that its worker has not fetched yet.
    pub async fn cancel(&self, job_id: Uuid) -> Result<JobSnapshot, CallError> {
        let url = self.url(&["jobs", &job_id.to_string(), "cancel"]);
        let call = Call::post_idempotent(url, None)?;
        self.fetch_snapshot(&call, job_id).await
    }

    /// Makes a call, with retries, whose response is a job.
    async fn fetch_snapshot(&self, call: &Call, job_id: Uuid) -> Result<JobSnapshot, CallError> {
        self.retry_call(|| async { JobSnapshot::read(&self.call_once(call).await?, job_id) }).await
    }

    /// Fetches the jobs of an agent, with its key; waits up to `seconds` for the first.
    pub async fn fetch_jobs(
        &self,
        agent_id: Uuid,
        seconds: u8,
    ) -> Result<Vec<FetchedJob>, CallError> {
        let mut url = self.url(&["agents", &agent_id.to_string(), "jobs"]);
        let wait = seconds.min(30).to_string();
        url.query_pairs_mut().append_pair("status", "PENDING").append_pair("wait", &wait);
        self.get::<Page>(url).await.map(|page| page.jobs)
    }

    /// Reports the result of a job, with the key of the agent that did it.
    pub async fn report_result(
        &self,
        agent_id: Uuid,
        job_id: Uuid,
        report: &JobResult,
        took: Duration,
    ) -> Result<ResultReceipt, CallError> {
        let body = report.write(job_id, agent_id, took)?;
        self.post(self.url(&["results"]), body).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_becomes_a_job_with_an_id_that_stays() {
        let spec = JobSpec::new("sum", r#"{"a":1.50}"#).budget(Credits::from_micros(150_000));
        let (one, two) = (spec.build().expect("a job"), spec.build().expect("a job"));
        assert_ne!(one.id(), two.id());
        assert!(one.body().contains(r#""input_data":{"a":1.50},"budget":0.15,"#), "{one:?}");
        let id = Uuid::from_u128(7);
        assert_eq!(spec.id(id).build().expect("a job").id(), id);
    }

    #[test]
    fn what_would_be_refused_is_not_sent() {
        for spec in [
            JobSpec::new("", "{}"),
            JobSpec::new("sum", "[]"),
            JobSpec::new("sum", r#"{},"budget":9"#),
            JobSpec::new("sum", "{}").budget(Credits::from_micros(1)),
        ] {
            assert!(spec.build().is_err(), "{spec:?}");
        }
    }
}
