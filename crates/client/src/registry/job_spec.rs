//! A job to request.

use rialto_core::money::Credits;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;
use rialto_protocols::registry::wire::{CURRENCY, DECIMALS, JobPost};
use uuid::Uuid;

use super::json_object;
use crate::call::CallError;
use crate::{clock, ids};

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
        json_object::check_object("the input", &self.input)?;
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
        let wrong = |bad: Malformed| CallError::invalid(bad.message, None);
        JobPost::read(body.as_bytes()).map_err(wrong)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_becomes_a_job_with_an_id_that_stays() {
        let order = JobSpec::new("sum", r#"{"a":1.50}"#).budget(Credits::from_micros(150_000));
        let (one, two) = (order.build().expect("a job"), order.build().expect("a job"));
        assert_ne!(one.id(), two.id());
        assert!(one.body().contains(r#""input_data":{"a":1.50},"budget":0.15,"#), "{one:?}");
        let id = Uuid::from_u128(7);
        assert_eq!(order.id(id).build().expect("a job").id(), id);
    }

    #[test]
    fn what_would_be_refused_is_not_sent() {
        for order in [
            JobSpec::new("", "{}"),
            JobSpec::new("sum", "[]"),
            JobSpec::new("sum", r#"{},"budget":9"#),
            JobSpec::new("sum", "{}").budget(Credits::from_micros(1)),
        ] {
            assert!(order.build().is_err(), "{order:?}");
        }
    }
}
