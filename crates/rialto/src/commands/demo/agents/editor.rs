//! The Editor: an agent of openclaw that accepts jobs itself and hires all the others for its job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rialto_client::openclaw::{
    Agent, Category, Decision, Handler, Job, PresenceOptions, Profile, Request, ServeError,
    ServeOptions, Server, Skill, Timestamp, WorkError, WorkHistory,
};
use rialto_client::{CallError, Hub};
use rialto_core::money::Credits;
use serde_json::json;

use super::AgentRunner;
use super::hiring::Hirer;
use crate::commands::demo::event::ActionKind;
use crate::commands::demo::reporter::Reporter;
use crate::commands::demo::role::{self, Role};

/// How long the Editor defers its first job.
const DEFER_TIME: Duration = Duration::from_secs(1);

struct Editor {
    agent: Agent,
    /// A client for the hub, with the Editor's key.
    hub: Hub,
    tell: Reporter,
    has_deferred: AtomicBool,
}

pub async fn start(wings: &mut AgentRunner) -> Result<String, CallError> {
    let skill = Skill::new("write_bulletin", Category::ContentGeneration, "Writes a bulletin");
    let identity = Profile::new("chimera-editor")
        .skill(skill.price(role::BULLETIN_PRICE))
        .respond_manually()
        .build()?;
    let published = Server::new(&wings.url)?.publish(&identity).await?;
    let key = published.key.ok_or_else(|| CallError::Unreadable("no key".to_owned()))?;
    let handler = Editor {
        agent: published.agent.clone(),
        hub: wings.hub()?.with_key(key.reveal()),
        tell: wings.reporter.clone(),
        has_deferred: AtomicBool::new(false),
    };
    let id = format!("openclaw:{}", identity.agent_id);
    let work = async move {
        let duty = published.agent.go_online(PresenceOptions::default(), WorkHistory::default());
        let how = ServeOptions::from_identity(&identity);
        duty.serve(how, Arc::new(handler), std::future::pending()).await
    };
    wings.spawn(Role::Editor, work);
    Ok(id)
}

impl Handler for Editor {
    async fn decide(&self, _: &Request) -> Decision {
        let (me, reader) = (Role::Editor, Role::Reader);
        if !self.has_deferred.swap(true, Ordering::Relaxed) {
            self.tell.report_action(
                me,
                ActionKind::Defers.with_party(reader),
                "defers: \"ask me again in a second\"",
            );
            return Decision::Defer { until: after(DEFER_TIME) };
        }
        self.tell.report_action(
            me,
            ActionKind::Accepts.with_party(reader),
            "is asked again, and accepts",
        );
        Decision::Accept { estimated_completion: None }
    }

    async fn work(&self, _: Job) -> Result<String, WorkError> {
        let bulletin = self.write().await.map_err(|error| {
            self.tell.report_failure(Role::Editor, error.to_string());
            WorkError::permanent("NO_BULLETIN", error.to_string())
        })?;
        let said = "delivers the bulletin";
        self.tell.report_action(Role::Editor, ActionKind::Delivers.with_party(Role::Reader), said);
        Ok(bulletin)
    }

    fn on_error(&self, serve_error: &ServeError) {
        self.tell.report_warning(Role::Editor, serve_error.action, &serve_error.reason);
    }
}

impl Editor {
    /// Hires others to find, check, translate and announce the news.
    async fn write(&self) -> Result<String, CallError> {
        let agent_state = Hirer { agent: &self.agent, hub: &self.hub, tell: &self.tell };
        let found = agent_state
            .get_done("find_news", json!({"about": "bridges"}), role::NEWS_BUDGET)
            .await?;
        let headline = found["headline"].as_str().unwrap_or_default();
        let claim = json!({"claim": headline});
        let checked = agent_state.get_done("check_facts", claim, role::SECOND_CHECK_PRICE).await?;
        let french =
            agent_state.get_done("message", json!({"text": headline}), Credits::ZERO).await?;
        let news = json!({"news": headline});
        let spread = agent_state.get_done("clara.discord", news, role::ANNOUNCEMENT_PRICE).await?;
        let bulletin = json!({"headline": headline, "is_so": checked["is_so"],
            "in_french": french["text"], "cried_by": spread["cried_by"]});
        Ok(bulletin.to_string())
    }
}

/// The time after `pause`.
fn after(pause: Duration) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + pause;
    Timestamp(i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}
