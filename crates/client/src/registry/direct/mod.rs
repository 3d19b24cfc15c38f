//! Direct calls from agent to agent, without a hub: a job is posted to the agent itself.
//!
//! An agent answers `POST /jobs` with the result, and `GET /jobs/{id}` with the state of a job;
//! [`agent::direct::serve`](crate::agent::direct::serve) serves both. If the work takes longer than
//! 25 seconds and the job has a permitted `callback_url`, the response is `PENDING` and the result
//! is posted there later. Permitted are only the machine the job came from and the origins set with
//! [`PeerIdentity::allow_callback_origin`](crate::agent::direct::PeerIdentity::allow_callback_origin): a requester must not be
//! able to make the agent call a third party. Any other `callback_url` is ignored, and the response
//! waits for the result.
//!
//! A [`Peer`] hires such an agent. No money is held: the cost in a result is paid afterwards, for
//! example by a transfer at a hub that both use.
//!
//! ```no_run
//! use rialto_client::registry::direct::Peer;
//! use rialto_client::registry::{Credits, JobSpec};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let job = JobSpec::new("count_words", r#"{"text":"one two"}"#).budget(Credits::parse("0.05", 2)?);
//! let snapshot = Peer::new("http://127.0.0.1:8010")?.hire(&job.build()?).await?;
//! println!("{:?}", snapshot.outcome);
//! # Ok(())
//! # }
//! ```

mod answers;
mod callback;
mod service;

use std::time::Duration;

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;
use uuid::Uuid;

use super::jobs::{JobRequest, JobSnapshot};
use super::server::{ANSWER_BYTES_MAX, min_retry_delay};
use crate::call::CallError;
use crate::origin_client::{OriginClient, Reply, join_path, parse_http_url, with_mount};
use crate::retry::RetryPolicy;

pub(crate) use service::endpoint;

/// The path for jobs below an agent's URL.
const JOBS: &str = "jobs";
/// The default timeout of a job.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// How often a long job is polled.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Another agent, known by its URL.
#[derive(Clone, Debug)]
pub struct Peer {
    client: OriginClient,
    jobs: Url,
    retry: RetryPolicy,
    timeout: Duration,
}

impl Peer {
    /// The agent at this URL, with or without the `/jobs` at its end.
    pub fn new(url: &str) -> Result<Self, CallError> {
        let jobs = with_mount(parse_http_url(url)?, JOBS);
        let client = OriginClient::with_idle_timeout(&jobs, DEFAULT_TIMEOUT)?;
        Ok(Self { client, jobs, retry: RetryPolicy::default(), timeout: DEFAULT_TIMEOUT })
    }

    /// Sets the retry policy.
    pub fn with_retry(&self, retry: RetryPolicy) -> Self {
        Self { retry, ..self.clone() }
    }

    /// Sets how long to wait for a result.
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// Hires the agent for a job and waits for the result. If a response is lost, the job is sent
    /// again under its id: a peer that already has it does not do it twice. A job that is not
    /// finished in time is returned in its current state.
    pub async fn hire(&self, job: &JobRequest) -> Result<JobSnapshot, CallError> {
        let until = Instant::now() + self.timeout;
        let posted =
            self.retry.run(min_retry_delay, || self.send(Method::POST, job.id(), Some(job)));
        let late = |_: Elapsed| CallError::TimedOut { url: self.jobs.to_string() };
        let mut snapshot = timeout_at(until, posted).await.map_err(late)??;
        while !snapshot.is_finished() && Instant::now() < until {
            sleep(POLL_INTERVAL.min(until - Instant::now())).await;
            snapshot = match self.job(job.id()).await {
                // The peer was restarted before it finished this job, so the job is sent once more.
                Err(CallError::Refused { status: 404, .. }) => {
                    let posted = self
                        .retry
                        .run(min_retry_delay, || self.send(Method::POST, job.id(), Some(job)));
                    timeout_at(until, posted).await.map_err(late)??
                }
                polled => polled?,
            };
        }
        Ok(snapshot)
    }

    /// The state of a job.
    pub async fn job(&self, job_id: Uuid) -> Result<JobSnapshot, CallError> {
        self.retry.run(min_retry_delay, || self.send(Method::GET, job_id, None)).await
    }

    async fn send(
        &self,
        method: Method,
        job_id: Uuid,
        job: Option<&JobRequest>,
    ) -> Result<JobSnapshot, CallError> {
        let url = match job {
            Some(_) => self.jobs.clone(),
            None => join_path(&self.jobs, &[&job_id.to_string()]),
        };
        let mut request = self.client.streaming_request(method, url)?;
        if let Some(job) = job {
            request = request.header(CONTENT_TYPE, "application/json").body(job.body().to_owned());
        }
        JobSnapshot::read(&Reply::fetch(request, ANSWER_BYTES_MAX).await?, job_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_path_is_appended_once() {
        for (given, expected) in [
            ("http://a:8010", "http://a:8010/jobs"),
            ("https://a/jobs", "https://a/jobs"),
            ("https://a/jobs/", "https://a/jobs"),
            ("https://a/x/?q#f", "https://a/x/jobs"),
        ] {
            assert_eq!(Peer::new(given).expect(given).jobs.as_str(), expected);
        }
    }
}
