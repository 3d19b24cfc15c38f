//! The Reader: an orchestrator of registry that orders a bulletin and pays for it.

use std::time::Duration;

use rialto_client::{CallError, Hub, Method};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Wings;
use crate::commands::demo::role::{self, Who};
use crate::commands::demo::event::Beat;
use crate::commands::demo::balance::{self, Purse};

/// The name of the Reader's account.
const OWNER: &str = "demo-reader";
/// How often it polls for its bulletin.
const LOOK: Duration = Duration::from_millis(100);

/// The Reader, with its key.
pub struct Reader {
    hub: Hub,
    pub id: String,
}

/// The bulletin the Reader ordered.
pub struct Bulletin {
    /// The Reader's own id of the job.
    pub job: String,
    pub text: Value,
}

impl Reader {
    pub async fn enter(wings: &Wings) -> Result<Self, CallError> {
        let hub = wings.hub()?;
        let body = json!({"agent_name": Who::Reader.name(), "owner_id": OWNER, "skills": []});
        let answer = hub.post("/registry/register", &body).await?;
        let text = |name: &str| {
            let found = answer.get(name).and_then(Value::as_str).map(str::to_owned);
            found.ok_or_else(|| CallError::Unreadable(format!("no {name}")))
        };
        Ok(Self { hub: hub.with_key(&text("api_key")?), id: text("agent_id")? })
    }

    /// A client for the hub, with the Reader's key.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Hires the Editor and waits for the bulletin.
    pub async fn ask(&self, wings: &Wings) -> Result<Bulletin, CallError> {
        let before = Purse::own(&self.hub).await?;
        let editor = self.find("write_bulletin").await?;
        let price = balance::text(role::BULLETIN);
        let said =
            format!("hires Editor for a bulletin at {price}: the credits are held, not yet paid");
        wings.tell.tell(Who::Reader, Beat::Hires.with(Who::Editor).of(role::BULLETIN), said);
        let job = self.post(&editor, &price).await?;
        wings.tell.doing(Who::Reader, "waits for its bulletin");
        let text = self.result(&job).await?;
        let after = Purse::own(&self.hub).await?;
        let paid = before.available.pay(after.available).unwrap_or_default();
        let said = format!("gets its bulletin and pays {}", balance::text(paid));
        wings.tell.tell(Who::Reader, Beat::Pays.with(Who::Editor).of(paid), said);
        Ok(Bulletin { job, text })
    }

    /// The best agent with a skill.
    async fn find(&self, skill: &str) -> Result<String, CallError> {
        let found = self.hub.get(&format!("/registry/discover?skill={skill}")).await?;
        let id = found.pointer("/agents/0/agent_id").and_then(Value::as_str).map(str::to_owned);
        id.ok_or_else(|| CallError::Unreadable(format!("no agent has the skill {skill}")))
    }

    async fn post(&self, editor: &str, price: &str) -> Result<String, CallError> {
        // Built as text, so that the budget never passes through a float.
        let body = format!(
            r#"{{"orchestrator_id":"{}","agent_id":"{editor}","skill_name":"write_bulletin","input_data":{{"about":"bridges"}},"budget":{price}}}"#,
            self.id
        );
        let (_, text) = self.hub.call_text(Method::POST, "/registry/jobs", Some(body)).await?;
        let answer: Value = serde_json::from_str(&text).map_err(balance::unreadable)?;
        let job = answer.get("job_id").and_then(Value::as_str).map(str::to_owned);
        job.ok_or_else(|| CallError::Unreadable(format!("no job_id: {answer}")))
    }

    async fn result(&self, job: &str) -> Result<Value, CallError> {
        loop {
            let mut job = self.hub.get(&format!("/registry/jobs/{job}")).await?;
            match job.get("status").and_then(Value::as_str) {
                Some("SUCCESS") => return Ok(job["output_data"].take()),
                Some("PENDING") => sleep(LOOK).await,
                _ => return Err(CallError::Unreadable(format!("the job has no bulletin: {job}"))),
            }
        }
    }
}
