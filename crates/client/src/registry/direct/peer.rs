//! The requester's side: hires an agent directly at its URL.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;
use uuid::Uuid;

use crate::call::CallError;
use crate::origin_client::{OriginClient, Reply, join_path, parse_http_url};
use crate::registry::jobs::{JobRequest, JobSnapshot};
use crate::registry::server::{ANSWER_BYTES_MAX, min_retry_delay};
use crate::retry::RetryPolicy;

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
        let mut jobs = parse_http_url(url)?;
        jobs.set_query(None);
        jobs.set_fragment(None);
        let last = jobs.path_segments().and_then(|all| all.rev().find(|name| !name.is_empty()));
        let there = last == Some(JOBS);
        let jobs = if there { join_path(&jobs, &[]) } else { join_path(&jobs, &[JOBS]) };
        let line = OriginClient::with_idle_timeout(&jobs, DEFAULT_TIMEOUT)?;
        Ok(Self { client: line, jobs, retry: RetryPolicy::default(), timeout: DEFAULT_TIMEOUT })
    }

    /// Sets the retry policy.
    pub fn with_retry(&self, retry: RetryPolicy) -> Self {
        Self { retry, ..self.clone() }
    }

    /// Sets how long to wait for a result.
    pub fn with_timeout(&self, wait_limit: Duration) -> Self {
        Self { timeout: wait_limit, ..self.clone() }
    }

    /// Hires the agent for a job and waits for the result. If a response is lost, the job is sent
    /// again under its id: a peer that already has it does not do it twice. A job that is not
    /// finished in time is returned in its current state.
    pub async fn hire(&self, job: &JobRequest) -> Result<JobSnapshot, CallError> {
        let until = Instant::now() + self.timeout;
        let asked = self.retry.run(min_retry_delay, || self.ask(Method::POST, job.id(), Some(job)));
        let late = |_: Elapsed| CallError::TimedOut { url: self.jobs.to_string() };
        let mut standing = timeout_at(until, asked).await.map_err(late)??;
        while !standing.is_finished() && Instant::now() < until {
            sleep(POLL_INTERVAL.min(until - Instant::now())).await;
            standing = match self.job(job.id()).await {
                // The peer was restarted before it finished this job, so the job is sent once more.
                Err(CallError::Refused { status: 404, .. }) => {
                    let asked = self
                        .retry
                        .run(min_retry_delay, || self.ask(Method::POST, job.id(), Some(job)));
                    timeout_at(until, asked).await.map_err(late)??
                }
                seen => seen?,
            };
        }
        Ok(standing)
    }

    /// The state of a job.
    pub async fn job(&self, job_id: Uuid) -> Result<JobSnapshot, CallError> {
        self.retry.run(min_retry_delay, || self.ask(Method::GET, job_id, None)).await
    }

    async fn ask(
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
        for (given, wanted) in [
            ("http://a:8010", "http://a:8010/jobs"),
            ("https://a/jobs", "https://a/jobs"),
            ("https://a/jobs/", "https://a/jobs"),
            ("https://a/x/?q#f", "https://a/x/jobs"),
        ] {
            assert_eq!(Peer::new(given).expect(given).jobs.as_str(), wanted);
        }
    }
}
