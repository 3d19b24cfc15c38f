//! One tracked job: its sender and its result.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::alias::Digest;
use rialto_core::time::Timestamp;
use rialto_protocols::registry::wire::JobPost;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use uuid::Uuid;

use super::callback::Callback;
use super::refusal::Refusal;
use super::result_body::JobRef;
use crate::agent::direct::bounded_cache::RETENTION;
use crate::agent::direct::journal::Entry;
use crate::agent::direct::request_key::RequestKey;
use crate::agent::direct::shared_result::SharedResult;
use crate::http_server::HttpResponse;

/// How long a caller with a callback waits. Hubs wait for half a minute.
const WAIT: Duration = Duration::from_secs(25);
/// Approximate size of a tracked job besides its texts.
const JOB_BYTES: usize = 512;

/// A job that was received.
pub(super) struct TrackedJob {
    pub(super) job_ref: JobRef,
    pub(super) orchestrator: Option<String>,
    pub(super) content: Digest,
    pub(super) callback: Option<Callback>,
    pub(super) result: SharedResult<Arc<str>>,
    /// An earlier run of this program started it and did not finish. It is not running now.
    pub(super) is_interrupted: bool,
}

/// The journal's note of a job.
#[derive(Serialize, Deserialize)]
struct Note {
    job_id: Uuid,
    orchestrator: Option<String>,
    result: Option<String>,
}

impl TrackedJob {
    /// Restores a job of an earlier run of this program.
    pub(super) fn restore(entry: &Entry, agent_id: Uuid) -> Option<Self> {
        let note: Note = serde_json::from_str(entry.note.as_deref()?).ok()?;
        let result = SharedResult::new();
        let is_left = note.result.is_none();
        if let Some(text) = note.result {
            result.complete(text.into());
        }
        let (names, content) = (JobRef { job_id: note.job_id, agent_id }, entry.content);
        Some(Self {
            job_ref: names,
            orchestrator: note.orchestrator,
            content,
            callback: None,
            result,
            is_interrupted: is_left,
        })
    }

    /// The journal entry: that the job started, or its result.
    pub(super) fn entry(&self, result: Option<&str>, now: Timestamp) -> Entry {
        let job_id = self.job_ref.job_id;
        let orchestrator = self.orchestrator.clone();
        let note = Note { job_id, orchestrator, result: result.map(str::to_owned) };
        Entry {
            // One id is one job here, regardless of its sender (R38).
            key: RequestKey::new("registry", "", &job_id.to_string()).0,
            content: self.content,
            expires_at: now.plus(RETENTION),
            is_finished: result.is_some(),
            note: serde_json::to_string(&note).ok(),
        }
    }

    /// The size once there is a result.
    pub(super) fn bytes(&self, result: &str) -> usize {
        let who = self.orchestrator.as_ref().map_or(0, String::len);
        let callback = self.callback.as_ref().map_or(0, Callback::bytes);
        JOB_BYTES + result.len() + who + callback
    }

    /// Checks whether a job is a repeat of this one.
    pub(super) fn check_same(&self, post: &JobPost) -> Result<(), Refusal> {
        match () {
            () if self.orchestrator != post.orchestrator_id => Err(Refusal::id_taken()),
            () if self.content != post.content => Err(Refusal::content_differs()),
            () => Ok(()),
        }
    }

    /// The result or, for a caller with a callback, that it will be sent later.
    pub(super) async fn answer(&self) -> HttpResponse {
        if let Some(callback) = &self.callback
            && timeout(WAIT, self.result.wait()).await.is_err()
            && callback.is_allowed().await
            && self.result.get_or_promise().is_none()
        {
            return self.pending();
        }
        HttpResponse::new(200, self.result.wait().await.as_bytes())
    }

    pub(super) fn pending(&self) -> HttpResponse {
        HttpResponse::new(202, self.job_ref.pending())
    }
}
