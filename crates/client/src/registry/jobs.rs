//! Jobs from both sides: posting and waiting for them, fetching them and reporting results.

use std::time::Duration;

use reqwest::Method;
use rialto_core::money::Credits;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;
use rialto_protocols::registry::wire::DECIMALS;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::job_snapshot::JobSnapshot;
use super::job_spec::JobRequest;
use super::retry::with_retry;
use super::server::{Call, Server};
use super::{decimals, json_object};
use crate::call::CallError;
use crate::clock;

/// How often a long job is polled: soon at first, then less often.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(200);
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(5);

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
                json_object::check_object("the output", output)?;
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
        let (url, body) = (self.url(&["jobs"]), Some(job.body().to_owned()));
        let call = Call { method: Method::POST, url, body, idempotency_key: None };
        with_retry(self.retry(), || async {
            JobSnapshot::read(&self.call_once(&call).await?, job.id())
        })
        .await
    }

    /// Posts a job and waits for its result. After `within`, returns the job in its current state.
    pub async fn hire(&self, job: &JobRequest, within: Duration) -> Result<JobSnapshot, CallError> {
        let until = Instant::now() + within;
        let mut standing = self.post_job(job).await?;
        let mut pause = POLL_INTERVAL_MIN;
        while !standing.is_finished() && Instant::now() < until {
            sleep(pause.min(until - Instant::now())).await;
            pause = (pause * 2).min(POLL_INTERVAL_MAX);
            standing = self.job(job.id()).await?;
        }
        Ok(standing)
    }

    /// The state of a job. Only its two parties may read it.
    pub async fn job(&self, job_id: Uuid) -> Result<JobSnapshot, CallError> {
        let url = self.url(&["jobs", &job_id.to_string()]);
        let call = Call { method: Method::GET, url, body: None, idempotency_key: None };
        with_retry(self.retry(), || async {
            JobSnapshot::read(&self.call_once(&call).await?, job_id)
        })
        .await
    }

    /// Cancels a job that its worker has not fetched yet.
    pub async fn cancel(&self, job_id: Uuid) -> Result<JobSnapshot, CallError> {
        let url = self.url(&["jobs", &job_id.to_string(), "cancel"]);
        let once = Some(crate::ids::random_id()?);
        let call = Call { method: Method::POST, url, body: None, idempotency_key: once };
        with_retry(self.retry(), || async {
            JobSnapshot::read(&self.call_once(&call).await?, job_id)
        })
        .await
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
