//! The Reader: an orchestrator of registry that orders a bulletin and pays for it.

use std::time::Duration;

use rialto_client::{CallError, Hub, Method};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::AgentRunner;
use crate::commands::demo::balance::{self, Balance};
use crate::commands::demo::event::ActionKind;
use crate::commands::demo::role::{self, Role};

/// The name of the Reader's account.
const OWNER: &str = "demo-reader";
/// How often it polls for its bulletin.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

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
    pub async fn register(wings: &AgentRunner) -> Result<Self, CallError> {
        let hub = wings.hub()?;
        let body = json!({"agent_name": Role::Reader.name(), "owner_id": OWNER, "skills": []});
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
    pub async fn request_bulletin(&self, wings: &AgentRunner) -> Result<Bulletin, CallError> {
        let before = Balance::of_caller(&self.hub).await?;
        let editor = self.find("write_bulletin").await?;
        let price = balance::format_amount(role::BULLETIN_PRICE);
        let said =
            format!("hires Editor for a bulletin at {price}: the credits are held, not yet paid");
        wings.reporter.report_action(
            Role::Reader,
            ActionKind::Hires.with_party(Role::Editor).for_amount(role::BULLETIN_PRICE),
            said,
        );
        let job = self.post(&editor, &price).await?;
        wings.reporter.report_activity(Role::Reader, "waits for its bulletin");
        let text = self.result(&job).await?;
        let after = Balance::of_caller(&self.hub).await?;
        let paid = before.available.checked_pay(after.available).unwrap_or_default();
        let said = format!("gets its bulletin and pays {}", balance::format_amount(paid));
        wings.reporter.report_action(
            Role::Reader,
            ActionKind::Pays.with_party(Role::Editor).for_amount(paid),
            said,
        );
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
                Some("PENDING") => sleep(POLL_INTERVAL).await,
                _ => return Err(CallError::Unreadable(format!("the job has no bulletin: {job}"))),
            }
        }
    }
}
