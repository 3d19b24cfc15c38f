//! Jobs from both sides: posting and waiting for them, fetching them and reporting results.

use std::time::Duration;

use reqwest::Method;
use rialto_core::money::Credits;
use rialto_protocols::kit::object::Object;
use rialto_protocols::kit::rfc3339;
use rialto_protocols::registry::wire::DECIMALS;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::job_spec::Job;
use super::job_snapshot::Standing;
use super::retry::again;
use super::server::{Call, Server};
use super::{decimals, json_object};
use crate::call::CallError;
use crate::clock;

/// How often a long job is polled: soon at first, then less often.
const LOOK_FIRST: Duration = Duration::from_millis(200);
const LOOK_LAST: Duration = Duration::from_secs(5);

/// A job that waits for its worker.
#[derive(Clone, Debug, Deserialize)]
pub struct Fetched {
    /// The job's id.
    pub job_id: Uuid,
    /// The requester.
    pub orchestrator_id: String,
    /// The requested skill.
    pub skill_name: String,
    /// The input, as the requester wrote it.
    pub input_data: Box<RawValue>,
    /// The maximum price.
    #[serde(deserialize_with = "figures::credits")]
    pub budget: Credits,
    /// An additional URL for the result.
    #[serde(default)]
    pub callback_url: String,
}

#[derive(Deserialize)]
struct Page {
    jobs: Vec<Fetched>,
}

/// A worker's result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
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
pub struct Accepted {
    /// The job's id.
    pub job_id: Uuid,
    /// The amount paid.
    #[serde(deserialize_with = "figures::credits")]
    pub paid: Credits,
}

impl Report {
    fn write(&self, job_id: Uuid, agent_id: Uuid, took: Duration) -> Result<String, CallError> {
        let took = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        let body = Object::new()
            .id("job_id", job_id)
            .id("agent_id", agent_id)
            .whole("execution_time_ms", took)
            .text("timestamp_utc", &rfc3339::seconds(clock::now()));
        let body = match self {
            Self::Done { output, cost } => {
                json_object::check("the output", output)?;
                body.text("status", "SUCCESS")
                    .raw("output_data", output)
                    .raw("execution_cost", &cost.text(DECIMALS))
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
    pub async fn post_job(&self, job: &Job) -> Result<Standing, CallError> {
        let (url, body) = (self.at(&["jobs"]), Some(job.body().to_owned()));
        let call = Call { method: Method::POST, url, body, once: None };
        again(self.retry(), || async { Standing::read(&self.once(&call).await?, job.id()) }).await
    }

    /// Posts a job and waits for its result. After `within`, returns the job in its current state.
    pub async fn hire(&self, job: &Job, within: Duration) -> Result<Standing, CallError> {
        let until = Instant::now() + within;
        let mut standing = self.post_job(job).await?;
        let mut pause = LOOK_FIRST;
        while !standing.is_over() && Instant::now() < until {
            sleep(pause.min(until - Instant::now())).await;
            pause = (pause * 2).min(LOOK_LAST);
            standing = self.job(job.id()).await?;
        }
        Ok(standing)
    }

    /// The state of a job. Only its two parties may read it.
    pub async fn job(&self, job_id: Uuid) -> Result<Standing, CallError> {
        let url = self.at(&["jobs", &job_id.to_string()]);
        let call = Call { method: Method::GET, url, body: None, once: None };
        again(self.retry(), || async { Standing::read(&self.once(&call).await?, job_id) }).await
    }

    /// Cancels a job that its worker has not fetched yet.
    pub async fn cancel(&self, job_id: Uuid) -> Result<Standing, CallError> {
        let url = self.at(&["jobs", &job_id.to_string(), "cancel"]);
        let once = Some(crate::ids::id()?);
        let call = Call { method: Method::POST, url, body: None, once };
        again(self.retry(), || async { Standing::read(&self.once(&call).await?, job_id) }).await
    }

    /// Fetches the jobs of an agent, with its key; waits up to `seconds` for the first.
    pub async fn fetch(&self, agent_id: Uuid, seconds: u8) -> Result<Vec<Fetched>, CallError> {
        let mut url = self.at(&["agents", &agent_id.to_string(), "jobs"]);
        let wait = seconds.min(30).to_string();
        url.query_pairs_mut().append_pair("status", "PENDING").append_pair("wait", &wait);
        self.get::<Page>(url).await.map(|page| page.jobs)
    }

    /// Reports the result of a job, with the key of the agent that did it.
    pub async fn report(
        &self,
        agent_id: Uuid,
        job_id: Uuid,
        report: &Report,
        took: Duration,
    ) -> Result<Accepted, CallError> {
        let body = report.write(job_id, agent_id, took)?;
        self.post(self.at(&["results"]), body).await
    }
}
