//! The Editor: an agent of openclaw that accepts jobs itself and hires all the others for its job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rialto_client::openclaw::{
    Agent, Broken, Category, Handler, Job, Mishap, Profile, Record, Request, Rhythm, Server, Skill,
    Timestamp, Verdict, Workplace,
};
use rialto_client::{CallError, Hub};
use rialto_core::money::Credits;
use serde_json::json;

use super::Wings;
use super::hiring::Desk;
use crate::commands::demo::role::{self, Who};
use crate::commands::demo::event::Beat;
use crate::commands::demo::reporter::Teller;

/// How long the Editor defers its first job.
const LATER: Duration = Duration::from_secs(1);

struct Editor {
    agent: Agent,
    /// A client for the hub, with the Editor's key.
    hub: Hub,
    tell: Teller,
    has_deferred: AtomicBool,
}

pub async fn enter(wings: &mut Wings) -> Result<String, CallError> {
    let skill = Skill::new("write_bulletin", Category::ContentGeneration, "Writes a bulletin");
    let identity =
        Profile::new("chimera-editor").can(skill.price(role::BULLETIN)).answers_itself().build()?;
    let published = Server::new(&wings.url)?.publish(&identity).await?;
    let key = published.key.ok_or_else(|| CallError::Unreadable("no key".to_owned()))?;
    let handler = Editor {
        agent: published.agent.clone(),
        hub: wings.hub()?.with_key(key.reveal()),
        tell: wings.tell.clone(),
        has_deferred: AtomicBool::new(false),
    };
    let id = format!("openclaw:{}", identity.agent_id);
    let work = async move {
        let duty = published.agent.on_duty(Rhythm::default(), Record::default());
        let how = Workplace::of(&identity);
        duty.serve(how, Arc::new(handler), std::future::pending()).await
    };
    wings.spawn(Who::Editor, work);
    Ok(id)
}

impl Handler for Editor {
    async fn decide(&self, _: &Request) -> Verdict {
        let (me, reader) = (Who::Editor, Who::Reader);
        if !self.has_deferred.swap(true, Ordering::Relaxed) {
            self.tell.tell(me, Beat::Defers.with(reader), "defers: \"ask me again in a second\"");
            return Verdict::Defer { until: after(LATER) };
        }
        self.tell.tell(me, Beat::Accepts.with(reader), "is asked again, and accepts");
        Verdict::Accept { estimated_completion: None }
    }

    async fn work(&self, _: Job) -> Result<String, Broken> {
        let bulletin = self.write().await.map_err(|error| {
            self.tell.stuck(Who::Editor, error.to_string());
            Broken::for_good("NO_BULLETIN", error.to_string())
        })?;
        let said = "delivers the bulletin";
        self.tell.tell(Who::Editor, Beat::Delivers.with(Who::Reader), said);
        Ok(bulletin)
    }

    fn mishap(&self, mishap: &Mishap) {
        self.tell.mishap(Who::Editor, mishap.what, &mishap.why);
    }
}

impl Editor {
    /// Hires others to find, check, translate and announce the news.
    async fn write(&self) -> Result<String, CallError> {
        let desk = Desk { agent: &self.agent, hub: &self.hub, tell: &self.tell };
        let found = desk.have("find_news", json!({"about": "bridges"}), role::NEWS_BID).await?;
        let headline = found["headline"].as_str().unwrap_or_default();
        let claim = json!({"claim": headline});
        let checked = desk.have("check_facts", claim, role::SECOND_CHECK).await?;
        let french = desk.have("message", json!({"text": headline}), Credits::ZERO).await?;
        let news = json!({"news": headline});
        let spread = desk.have("clara.discord", news, role::SPREADING).await?;
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
