//! What a worker and its requester exchange before the result: progress, parts of the result,
//! questions, and later messages of the requester.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};

use super::handlers::JobPermit;
use super::hub::HubDialogue;
use crate::call::CallError;

/// The dialogue about one job. Clones share it.
///
/// Reports, parts and questions reach the requester in the order of the calls. After a restart the
/// handler does the job again from the start: the same reports and parts in the same order are not
/// repeated at the hub, and a question that was asked before is not asked again, whether or not its
/// answer is there.
///
/// Peers that call an agent directly have no dialogue: reports and parts for them are dropped, and
/// questions fail.
#[derive(Clone, Debug, Default)]
pub struct Dialogue {
    hub: Option<Arc<HubDialogue>>,
    /// How long the job may take, once it has begun.
    limits: Option<WorkLimits>,
}

/// Two dialogues are equal if they are the same one.
impl PartialEq for Dialogue {
    fn eq(&self, other: &Self) -> bool {
        match (&self.hub, &other.hub) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for Dialogue {}

/// A question to the requester. Any text is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewQuestion {
    pub(super) text: String,
    pub(super) schema: Option<String>,
}

impl NewQuestion {
    /// A question with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), schema: None }
    }

    /// Accepts only answers that match this JSON Schema.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }
}

impl From<&str> for NewQuestion {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for NewQuestion {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

/// What the requester sent after the request: an answer, or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequesterInput {
    /// A JSON object, as text. A plain text is `{"text":…}`.
    pub input: String,
    /// Members that the requester's protocol does not define: a JSON object, as text.
    pub meta: Option<String>,
}

impl RequesterInput {
    /// The text of `{"text":…}`.
    pub fn text(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Text {
            text: String,
        }
        serde_json::from_str::<Text>(&self.input).ok().map(|input| input.text)
    }

    /// The input, parsed as `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.input)
    }
}

/// Why the requester was not told or asked.
#[derive(Debug, thiserror::Error)]
pub enum DialogueError {
    /// The job is no longer this agent's: it was cancelled, went to another worker, or ended. A
    /// question that the requester cannot answer ends it.
    #[error("the job is no longer this agent's")]
    Over,
    /// The requester is a peer without a hub.
    #[error("a peer cannot be asked; only requesters at a hub can")]
    NoHub,
    /// The value cannot be sent.
    #[error("cannot be serialized to JSON: {0}")]
    Unserializable(#[from] serde_json::Error),
    /// The hub refused it.
    #[error(transparent)]
    Call(CallError),
}

impl Dialogue {
    pub(super) fn at_hub(dialogue: Arc<HubDialogue>) -> Self {
        Self { hub: Some(dialogue), limits: None }
    }

    /// Reports what the worker does now.
    pub async fn report(&self, text: &str) -> Result<(), DialogueError> {
        self.report_progress(None, Some(text)).await
    }

    /// Reports how much of the work is done, between 0 and 1, and what the worker does now.
    pub async fn report_progress(
        &self,
        fraction: Option<f64>,
        text: Option<&str>,
    ) -> Result<(), DialogueError> {
        match &self.hub {
            Some(hub) => hub.report(fraction, text).await,
            None => Ok(()),
        }
    }

    /// Hands over a part of the result, which must be a JSON object.
    pub async fn add_part(&self, part: &impl Serialize) -> Result<(), DialogueError> {
        self.send_part(&serde_json::to_string(part)?, false).await
    }

    /// Continues the part before.
    pub async fn append_to_part(&self, more: &impl Serialize) -> Result<(), DialogueError> {
        self.send_part(&serde_json::to_string(more)?, true).await
    }

    /// A part as JSON text.
    pub(super) async fn send_part(&self, part: &str, append: bool) -> Result<(), DialogueError> {
        match &self.hub {
            Some(hub) => hub.add_part(part, append).await,
            None => Ok(()),
        }
    }

    /// Asks the requester, and waits for the answer. The time until then does not count as work.
    pub async fn ask(
        &self,
        question: impl Into<NewQuestion>,
    ) -> Result<RequesterInput, DialogueError> {
        self.hub()?.ask(question.into()).await
    }

    /// Tells the requester to sign in elsewhere, as the text says. The hub takes no answer: find out
    /// yourself when it has signed in, and then report or go on. The time until then does not count
    /// as work.
    pub async fn ask_to_sign_in(&self, text: &str) -> Result<(), DialogueError> {
        self.hub()?.ask_to_sign_in(text).await
    }

    /// Says that the work goes on, for example after a sign-in.
    pub async fn go_on(&self) -> Result<(), DialogueError> {
        match &self.hub {
            Some(hub) => hub.go_on().await,
            None => Ok(()),
        }
    }

    /// The next message of the requester that answers no question. Waits for it, and never returns
    /// if there is none.
    pub async fn next_message(&self) -> RequesterInput {
        match &self.hub {
            Some(hub) => hub.next_message().await,
            None => pending().await,
        }
    }

    /// Waits until the result is no longer wanted. The future of a handler is dropped then; this is
    /// for what else it has started.
    pub async fn cancelled(&self) {
        match &self.hub {
            Some(hub) => hub.cancelled().await,
            None => pending().await,
        }
    }

    /// The work starts now. Requesters that follow the job are told.
    pub(super) async fn begin(&mut self, limits: WorkLimits, permit: &Arc<JobPermit>) {
        self.limits = Some(limits);
        if let Some(hub) = &self.hub {
            hub.begin(permit).await;
        }
    }

    /// How long the work has waited for the requester.
    pub(super) fn waited(&self) -> Duration {
        self.hub.as_ref().map_or(Duration::ZERO, |hub| hub.clock().waited)
    }

    /// Waits until the work has taken too long, counted from now. The time in which it waits for the
    /// requester does not count, and the deadline moves with the lease. `limit` counts for a job that
    /// has not begun.
    pub(super) fn limit_reached(
        &self,
        limit: Duration,
        grace: Duration,
    ) -> impl Future<Output = ()> + use<> {
        let alone = WorkLimits { work: limit, until_deadline: Duration::MAX };
        let limits = self.limits.unwrap_or(alone).with_grace(grace);
        let (began, dialogue) = (Instant::now(), self.hub.clone());
        async move {
            loop {
                let clock = dialogue.as_ref().map(|hub| hub.clock()).unwrap_or_default();
                let work = limits.work.checked_add(clock.waited);
                let lease = limits.until_deadline.checked_add(clock.lease_moved);
                let shortest = [work, lease].into_iter().flatten().min();
                let due = shortest.and_then(|limit| began.checked_add(limit));
                let changed = async {
                    match &dialogue {
                        Some(hub) => hub.clock_changed(clock).await,
                        None => pending().await,
                    }
                };
                match due.filter(|_| !clock.is_waiting) {
                    None => changed.await,
                    Some(due) => tokio::select! {
                        biased;
                        () = changed => {}
                        () = sleep_until(due) => return,
                    },
                }
            }
        }
    }

    fn hub(&self) -> Result<&HubDialogue, DialogueError> {
        self.hub.as_deref().ok_or(DialogueError::NoHub)
    }
}

/// How long a job may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkLimits {
    /// The work itself.
    pub(super) work: Duration,
    /// The time left until the deadline when the work began.
    pub(super) until_deadline: Duration,
}

impl WorkLimits {
    /// The same with more time.
    pub(super) fn with_grace(self, more: Duration) -> Self {
        Self {
            work: self.work.saturating_add(more),
            until_deadline: self.until_deadline.saturating_add(more),
        }
    }
}

/// What changes the limits of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkClock {
    /// Whether it waits for the requester now.
    pub(super) is_waiting: bool,
    /// How long it has waited, without the current wait.
    pub(super) waited: Duration,
    /// How far the hub has moved the end of the lease.
    pub(super) lease_moved: Duration,
}
