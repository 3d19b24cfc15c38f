//! A worker that fetches its jobs: its id, its key, and a polling loop.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_protocols::registry::wire::DECIMALS;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::jobs::{FetchedJob, JobResult, ResultReceipt};
use super::register::{Registration, SkillListing};
use super::server::Server;
use crate::call::{CallError, Hub};

/// How long one fetch waits for work, in seconds.
const FETCH_SECONDS: u8 = 25;

/// An agent of the registry, with its key.
#[derive(Clone, Debug)]
pub struct Agent {
    server: Server,
    id: Uuid,
    name: String,
}

/// One skill of an agent. The price is decimal text.
#[derive(Clone, Debug)]
pub struct Skill<'a> {
    /// The skill's name.
    pub name: &'a str,
    /// The description.
    pub description: &'a str,
    /// The price of one call, such as `0.05`.
    pub price: &'a str,
}

/// The outcome of a job.
#[derive(Clone, Debug)]
pub enum WorkOutcome {
    /// The output.
    Done(Value),
    /// The reason for the failure.
    Failed(String),
}

impl Agent {
    /// Registers a new agent that fetches its jobs.
    pub async fn register(
        hub: &Hub,
        name: &str,
        owner: &str,
        skills: &[Skill<'_>],
    ) -> Result<Self, CallError> {
        let mut registration = Registration::new(name, owner);
        for skill in skills {
            let invalid =
                |why| CallError::invalid(format!("the price of {} {why}", skill.name), None);
            let price = Credits::parse(skill.price, DECIMALS).map_err(invalid)?;
            registration = registration
                .skill(SkillListing::new(skill.name, price).description(skill.description));
        }
        let registered = Server::from_hub(hub)?.register(&registration).await?;
        Ok(Self::new(&registered.server, registered.agent_id))
    }

    /// An agent that was registered before, at a hub that is called with the agent's key.
    pub fn new(server: &Server, id: Uuid) -> Self {
        Self { server: server.clone(), id, name: id.to_string() }
    }

    /// The agent's id.
    pub fn id(&self) -> &str {
        &self.name
    }

    /// The hub, called with this agent's key.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Fetches the jobs of this agent; waits up to `seconds` for the first.
    pub async fn fetch_jobs(&self, seconds: u8) -> Result<Vec<FetchedJob>, CallError> {
        self.server.fetch_jobs(self.id, seconds).await
    }

    /// Reports the outcome of a job; on success at its full price.
    pub async fn report_result(
        &self,
        job: &FetchedJob,
        work: &WorkOutcome,
    ) -> Result<ResultReceipt, CallError> {
        self.report_with_duration(job, work, Duration::ZERO).await
    }

    async fn report_with_duration(
        &self,
        job: &FetchedJob,
        work: &WorkOutcome,
        took: Duration,
    ) -> Result<ResultReceipt, CallError> {
        let report = match work {
            // The hub pays the price, and never more.
            WorkOutcome::Done(output) => {
                JobResult::Done { output: output.to_string(), cost: job.budget }
            }
            WorkOutcome::Failed(why) => JobResult::Failed(why.clone()),
        };
        self.server.report_result(self.id, job.job_id, &report, took).await
    }

    /// Fetches and does jobs until the hub is permanently unavailable. `handle` gets a skill and
    /// its input.
    pub async fn run(&self, handle: impl Fn(&str, &Value) -> WorkOutcome) -> Result<(), CallError> {
        loop {
            for job in self.fetch_jobs(FETCH_SECONDS).await? {
                let input = serde_json::from_str(job.input_data.get()).unwrap_or_default();
                let began = Instant::now();
                let work = handle(&job.skill_name, &input);
                match self.report_with_duration(&job, &work, began.elapsed()).await {
                    // The job was ended by another party in the meantime; nothing is left to
                    // report.
                    Ok(_) | Err(CallError::Refused { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
