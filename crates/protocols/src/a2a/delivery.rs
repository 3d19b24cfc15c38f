//! Push notifications: every entry of a task's log as a POST to the client's URL.

use rialto_core::job::{Job, JobWebhook};
use rialto_core::notice::{Delivery, NoticeKind};
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{
    AttemptResult, AttemptStatus, DeliveryEncoder, OutboundRequest, RESPONSE_BYTES_MAX,
};
use rialto_engine::run::LogEntry;
use serde::{Deserialize, Serialize};

use super::A2aContext;
use super::task_log::{self, TaskLog};
use super::translate::{self, TaskMeta, TaskView};
use super::wire::Version;
use super::wire::params::{PushAuthentication, PushConfig};

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
    fn encode(
        &self,
        engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
    ) -> Option<OutboundRequest> {
        let NoticeKind::LogEntry { webhook, number, part, content, .. } = &push.kind else {
            return None;
        };
        let job = job?;
        let meta = TaskMeta::of(job)?;
        let webhook = job.webhooks.iter().find(|known| known.id == *webhook)?;
        let stored: StoredPush = serde_json::from_str(&webhook.meta).unwrap_or_default();
        let entry = LogEntry {
            at: push.at,
            number: *number,
            epoch: job.epoch,
            content: (**content).clone(),
        };
        let body = engine.with_world(|world| {
            if stored.old {
                let log = TaskLog::default();
                let task = translate::task(world, job, &meta, &log, TaskView::FULL);
                return Some(task.write(Version::V03));
            }
            let event = task_log::events(world, job, &meta, &entry, *part).into_iter().next()?;
            let event = task_log::with_position(event.event, event.position);
            Some(event.write(Version::V1, false))
        })?;
        Some(OutboundRequest {
            url: webhook.url.clone(),
            body: body.into(),
            id: format!("{}-{}", job.uuid, number + 1),
            headers: self.secret_headers(job, webhook, &stored),
            response_max: RESPONSE_BYTES_MAX,
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
            Ok(answer) if answer.status == 410 => AttemptStatus::Obsolete,
            Ok(answer) => AttemptStatus::Failed(format!("HTTP status {}", answer.status)),
            Err(error) => AttemptStatus::Failed(error.to_string()),
        };
        AttemptResult { status, report: None }
    }
}

impl A2aEncoder {
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
