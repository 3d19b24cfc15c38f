//! Push notifications: every entry of a task's log as a POST to the client's URL.

use rialto_core::job::{Job, JobWebhook, RequesterMessage};
use rialto_core::notice::{Delivery, NoticeKind};
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{
    AttemptResult, AttemptStatus, DeliveryEncoder, OutboundRequest, RESPONSE_BYTES_MAX,
    RequestsFuture,
};
use rialto_engine::run::LogEntry;
use rialto_engine::{Engine, Failure};
use serde::{Deserialize, Serialize};

use super::A2aContext;
use super::task_log::{self, Artifacts, TaskEvent, TaskLog};
use super::translate::{self, Moment, TaskMeta, TaskView};
use super::wire::Version;
use super::wire::params::{PushAuthentication, PushConfig};
use super::wire::task::StreamEvent;

/// What is kept of a push configuration besides its id and URL.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoredPush {
    /// Whether it was made with 0.3, whose receivers get whole tasks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub old: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Token and credentials, sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
}

/// The secrets of a push configuration.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct PushSecrets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}

/// A stored push configuration, as clients see it.
pub fn push_config(job: &Job, webhook: &JobWebhook) -> PushConfig {
    let stored: StoredPush = serde_json::from_str(&webhook.meta).unwrap_or_default();
    let authentication =
        stored.scheme.map(|scheme| PushAuthentication { scheme, credentials: None });
    PushConfig {
        id: Some(webhook.id.clone()),
        task_id: Some(job.uuid.to_string()),
        url: webhook.url.clone(),
        token: None,
        authentication,
        tenant: None,
    }
}

/// Encodes deliveries of this protocol.
pub struct A2aEncoder {
    pub context: A2aContext,
}

impl DeliveryEncoder for A2aEncoder {
    /// Its agents have inboxes that nothing is delivered from; see [`Self::encode_all`].
    fn encode(&self, _: &Engine, _: &Delivery, _: Option<&Job>) -> Option<OutboundRequest> {
        None
    }

    fn encode_all<'a>(
        &'a self,
        engine: &'a Engine,
        push: &'a Delivery,
        job: Option<&'a Job>,
    ) -> RequestsFuture<'a> {
        Box::pin(async move {
            let pushed = job.and_then(|job| PushedEntry::of(push, job));
            match pushed {
                Some(pushed) => self.encode_entry(engine, &pushed).await.map(Some),
                None => Ok(None),
            }
        })
    }

    fn interpret_response(
        &self,
        _: &Engine,
        _: &Delivery,
        _: Option<&Job>,
        answer: &Result<HttpResponse, SendError>,
    ) -> AttemptResult {
        let status = match answer {
            Ok(answer) if (200..300).contains(&answer.status) => {
                AttemptStatus::Delivered { reply: None }
            }
            Ok(answer) if answer.status == 410 => AttemptStatus::EndpointGone,
            Ok(answer) => AttemptStatus::Failed(format!("HTTP status {}", answer.status)),
            Err(error) => AttemptStatus::Failed(error.to_string()),
        };
        AttemptResult { status, report: None }
    }
}

/// An entry of a job's log on its way to a webhook.
struct PushedEntry<'a> {
    job: &'a Job,
    meta: TaskMeta,
    webhook: &'a JobWebhook,
    stored: StoredPush,
    entry: LogEntry,
    /// The number of the part that it begins or continues.
    part: u32,
}

impl<'a> PushedEntry<'a> {
    /// `None` if the webhook was removed meanwhile.
    fn of(push: &Delivery, job: &'a Job) -> Option<Self> {
        let NoticeKind::LogEntry { webhook, number, part, content, .. } = &push.kind else {
            return None;
        };
        let webhook = job.webhooks.iter().find(|known| known.id == *webhook)?;
        let stored = serde_json::from_str(&webhook.meta).unwrap_or_default();
        let (number, epoch, content) = (*number, job.epoch, (**content).clone());
        let entry = LogEntry { at: push.at, number, epoch, content };
        Some(Self { job, meta: TaskMeta::of(job)?, webhook, stored, entry, part: *part })
    }

    /// Whether it can only be written with what came before it.
    fn needs_log(&self) -> bool {
        let part = self.entry.content.update().and_then(|update| update.part.as_ref());
        self.stored.old || part.is_some_and(|part| part.append)
    }
}

impl A2aEncoder {
    /// A request for each event of an entry.
    async fn encode_entry(
        &self,
        engine: &Engine,
        pushed: &PushedEntry<'_>,
    ) -> Result<Vec<OutboundRequest>, Failure> {
        let PushedEntry { job, meta, webhook, stored, entry, part } = pushed;
        let log = match pushed.needs_log() {
            true => TaskLog::load(engine, job, 0).await?,
            false => TaskLog::default(),
        };
        let mut artifacts = Artifacts::default();
        let headers = self.secret_headers(job, webhook, stored);
        let requests = engine.with_world(|world| {
            for earlier in log.entries.iter().take_while(|earlier| earlier.number < entry.number) {
                let part = artifacts.number_of(earlier);
                for mut event in task_log::events(job, meta, earlier, part) {
                    artifacts.admit(&mut event.event);
                }
            }
            let mut events = task_log::events(job, meta, entry, *part);
            if stored.old {
                // Receivers of 0.3 get the whole task, once for the entry.
                let before = |message: &&RequesterMessage| message.after < entry.number;
                let messages = job.messages.iter().filter(before).count();
                let moment = Moment::After { entry: entry.number, messages };
                let view = TaskView { moment, ..TaskView::FULL };
                let task = translate::task(world, job, meta, &log, view);
                let event = StreamEvent::Task(Box::new(task));
                let last = events.pop();
                events = last.map(|last| TaskEvent { event, ..last }).into_iter().collect();
            }
            let version = if stored.old { Version::V03 } else { Version::V1 };
            let request = |TaskEvent { position, mut event }| {
                artifacts.admit(&mut event);
                let body = task_log::with_position(event, position).write(version, false);
                OutboundRequest {
                    url: webhook.url.clone(),
                    body: body.into(),
                    id: format!("{}-{position}", job.uuid),
                    headers: headers.clone(),
                    response_max: RESPONSE_BYTES_MAX,
                }
            };
            events.into_iter().map(request).collect()
        });
        Ok(requests)
    }

    fn secret_headers(
        &self,
        job: &Job,
        webhook: &JobWebhook,
        stored: &StoredPush,
    ) -> Vec<(String, String)> {
        let secrets = self.context.state.open_secrets(job, &webhook.id, stored).unwrap_or_default();
        let mut headers = Vec::new();
        if let (Some(scheme), Some(credentials)) = (&stored.scheme, &secrets.credentials) {
            headers.push(("authorization".to_owned(), format!("{scheme} {credentials}")));
        }
        if let Some(token) = secrets.token {
            headers.push(("x-a2a-notification-token".to_owned(), token));
        }
        headers
    }
}
