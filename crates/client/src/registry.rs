//! registry, from the client's side: register, hire, work.

use serde_json::{Value, json};

use crate::call::{CallError, Hub};

/// An agent of the registry, with its key.
#[derive(Clone, Debug)]
pub struct Agent {
    hub: Hub,
    id: String,
}

/// One thing an agent sells. The price is decimal text, as it will stand in the JSON.
#[derive(Clone, Debug)]
pub struct Skill<'a> {
    pub name: &'a str,
    pub about: &'a str,
    pub price: &'a str,
}

/// What a worker makes of a job.
#[derive(Clone, Debug)]
pub enum Work {
    Done(Value),
    Failed(String),
}

impl Agent {
    /// Registers a new agent that fetches its work.
    pub async fn register(
        hub: &Hub,
        name: &str,
        owner: &str,
        skills: &[Skill<'_>],
    ) -> Result<Self, CallError> {
        let skills: Result<Vec<Value>, CallError> = skills.iter().map(skill).collect();
        let body =
            json!({"agent_name": name, "owner_id": owner, "skills": skills?, "version": "0.1"});
        let answer = hub.post("/registry/register", &body).await?;
        let text = |name: &str| {
            let found = answer.get(name).and_then(Value::as_str).map(str::to_owned);
            found.ok_or_else(|| CallError::Unreadable(format!("no {name}")))
        };
        Ok(Self { hub: hub.with_key(&text("api_key")?), id: text("agent_id")? })
    }

    /// The agent's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Jobs that wait for this agent, waiting up to `seconds` for the first.
    pub async fn fetch(&self, seconds: u8) -> Result<Vec<Value>, CallError> {
        let path = format!("/registry/agents/{}/jobs?status=PENDING&wait={seconds}", self.id);
        let answer = self.hub.get(&path).await?;
        Ok(answer.get("jobs").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    /// Reports what came of a job.
    pub async fn report(&self, job_id: &str, work: &Work) -> Result<Value, CallError> {
        let mut body = json!({"job_id": job_id, "agent_id": self.id, "execution_time_ms": 0});
        match work {
            Work::Done(output) => {
                body["status"] = "SUCCESS".into();
                body["output_data"] = output.clone();
            }
            Work::Failed(why) => {
                body["status"] = "FAILURE".into();
                body["error_message"] = why.clone().into();
                body["error_code"] = "EXECUTION_ERROR".into();
            }
        }
        self.hub.post("/registry/results", &body).await
    }

    /// Fetches and works until the hub is gone for good. `handle` gets a skill and its input.
    pub async fn work(&self, handle: impl Fn(&str, &Value) -> Work) -> Result<(), CallError> {
        loop {
            for job in self.fetch(25).await? {
                let text = |name: &str| job.get(name).and_then(Value::as_str).unwrap_or_default();
                let input = job.get("input_data").cloned().unwrap_or_default();
                let work = handle(text("skill_name"), &input);
                match self.report(text("job_id"), &work).await {
                    // Somebody else ended it meanwhile; there is nothing left to report.
                    Ok(_) | Err(CallError::Refused { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

/// The price stays the digits it is: parsed as a JSON number, never computed with.
fn skill(skill: &Skill<'_>) -> Result<Value, CallError> {
    let price: Value = serde_json::from_str(skill.price)
        .map_err(|_| CallError::Unreadable(format!("{} is no price", skill.price)))?;
    Ok(json!({"skill_name": skill.name, "description": skill.about, "cost_per_call": price}))
}
