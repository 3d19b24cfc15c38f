//! Jobs over the hub's own API: post a job, wait for it, read its result.

use std::time::Duration;

use reqwest::Method;
use rialto_core::money::Credits;
use rialto_protocols::kit::raw_json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;
use uuid::Uuid;

use crate::call::{CallError, Hub};
use crate::retry::RetryPolicy;
use crate::{ids, json};

/// Number of decimals in a budget.
const DECIMALS: usize = 2;
/// The longest wait in one long poll, in seconds.
const WAIT_MAX: u64 = 30;
/// Terminal states.
const TERMINAL_STATES: [&str; 4] = ["completed", "failed", "expired", "cancelled"];

/// A job to post. It has an id, so sending it again does not create a second job.
#[derive(Clone, Debug)]
pub struct JobRequest {
    id: Uuid,
    skill: String,
    input: Box<RawValue>,
    budget: Credits,
    to: Option<String>,
    cheapest: bool,
}

/// The current state of a job.
#[derive(Clone, Debug, Deserialize)]
pub struct JobView {
    /// The job's id.
    pub id: String,
    /// The state. `completed`, `failed`, `expired` and `cancelled` are terminal.
    pub state: String,
    result: Option<JobResultView>,
    paid: Option<Box<RawValue>>,
}

#[derive(Clone, Debug, Deserialize)]
struct JobResultView {
    output: Option<Box<RawValue>>,
    text: Option<String>,
}

#[derive(Serialize)]
struct JobRequestBody<'a> {
    id: Uuid,
    skill: &'a str,
    input: &'a RawValue,
    budget: raw_json::Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    select: Option<&'static str>,
}

impl JobRequest {
    /// A job for a skill, with its input and a maximum price as decimal text such as `0.10`.
    pub fn new(skill: &str, input: &impl Serialize, budget: &str) -> Result<Self, CallError> {
        let invalid = |why: String| CallError::invalid(why, None);
        let budget = Credits::parse(budget, DECIMALS);
        Ok(Self {
            id: ids::random_id()?,
            skill: skill.to_owned(),
            input: serde_json::value::to_raw_value(input)
                .map_err(|why| invalid(format!("the input cannot be serialized to JSON: {why}")))?,
            budget: budget
                .map_err(|why| invalid(format!("the budget {why}: write it like 0.10")))?,
            to: None,
            cheapest: false,
        })
    }

    /// Sets the job's id. By default each job gets a new one.
    pub fn id(mut self, id: Uuid) -> Self {
        self.id = id;
        self
    }

    /// Assigns the job to one agent, by any of its names. By default the hub picks an agent.
    pub fn to_agent(mut self, agent: impl Into<String>) -> Self {
        self.to = Some(agent.into());
        self
    }

    /// Lets the hub pick the cheapest agent instead of the best one.
    pub fn cheapest(mut self) -> Self {
        self.cheapest = true;
        self
    }

    fn body(&self) -> Result<String, CallError> {
        let wire = JobRequestBody {
            id: self.id,
            skill: &self.skill,
            input: &self.input,
            budget: raw_json::amount(self.budget, DECIMALS),
            to: self.to.as_deref(),
            select: self.cheapest.then_some("cheapest"),
        };
        serde_json::to_string(&wire).map_err(|why| CallError::invalid(why.to_string(), None))
    }
}

impl JobView {
    /// Whether the job is in a terminal state.
    pub fn has_ended(&self) -> bool {
        TERMINAL_STATES.contains(&self.state.as_str())
    }

    /// The output, parsed as `T`. If there is none, the error contains the reason, including the
    /// worker's own text for a failure.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        let output = self.result.as_ref().and_then(|result| result.output.as_deref());
        match output {
            Some(output) if self.state == "completed" => serde_json::from_str(output.get())
                .map_err(|error| CallError::unreadable(format!("the output: {error}"))),
            _ => {
                let why = self.failure_reason().unwrap_or("the worker gave no output");
                Err(CallError::Unreadable(format!(
                    "the job is {}, so it has no output: {why}",
                    self.state
                )))
            }
        }
    }

    /// Why the job failed, as reported by the worker or the hub.
    pub fn failure_reason(&self) -> Option<&str> {
        self.result.as_ref().and_then(|result| result.text.as_deref())
    }

    /// The price paid, as decimal text.
    pub fn paid(&self) -> &str {
        self.paid.as_deref().map_or("0.00", RawValue::get)
    }
}

impl Hub {
    /// Posts a job; the hub's key is the payer's. Retries create no second job if a response is
    /// lost.
    pub async fn post_job(&self, request: &JobRequest) -> Result<JobView, CallError> {
        let body = request.body()?;
        let send = async || self.call_text(Method::POST, "/v1/jobs", Some(body.clone())).await;
        let (_, text) = RetryPolicy::default().call(send).await?;
        json::parse(text.as_bytes())
    }

    /// Posts a job and waits until it ends. After `within`, returns the job in its current state.
    pub async fn hire(&self, request: &JobRequest, within: Duration) -> Result<JobView, CallError> {
        let until = Instant::now() + within;
        let mut job = self.post_job(request).await?;
        while !job.has_ended() && Instant::now() < until {
            // Whole seconds: the last poll may end a little late, but never polls without a wait.
            let wait = (until - Instant::now()).as_secs().saturating_add(1).min(WAIT_MAX);
            job = self.fetch_job(&job.id, wait).await?;
        }
        Ok(job)
    }

    /// The current state of a job. Only its two parties may read it.
    pub async fn job(&self, id: &str) -> Result<JobView, CallError> {
        self.fetch_job(id, 0).await
    }

    async fn fetch_job(&self, id: &str, wait: u64) -> Result<JobView, CallError> {
        let path = format!("/v1/jobs/{id}?wait={wait}");
        let fetch = async || self.call_text(Method::GET, &path, None).await;
        let (_, text) = RetryPolicy::default().call(fetch).await?;
        json::parse(text.as_bytes())
    }
}
