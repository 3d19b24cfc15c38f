//! `subscriptions/listen`: one stream of what changes, until the client hangs up.
//!
//! Nothing is queued. A stream knows in which state it last told of each subject, looks at the state
//! after every commit for its agent, and tells of those that differ. So a slow reader misses no change
//! and holds nothing but its own stream; and a node that follows others looks at the same state.

mod filter;
mod subject;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rialto_core::id::AgentId;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::context::StreamOwner;
use rialto_protocols::kit::object::ObjectWriter;
use tokio::time::Instant;

use self::filter::Filter;
pub use self::filter::SUBJECTS_MAX;
use self::subject::{Subject, What};
use super::caller::McpCaller;
use super::catalogue::{Catalogue, ToolChanges};
use super::wire::error::{INVALID_REQUEST, RpcError};
use super::wire::message::{ClientCapabilities, ClientRequest};
use super::wire::method::Method;
use super::wire::progress::Outgoing;
use super::wire::result::ResultObject;

/// The member of `_meta` that says which stream a message belongs to.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The most streams of one key.
const STREAMS_MAX: u32 = 8;
/// The least time between two notifications about one subject: four in a second at most.
const PAUSE: Duration = Duration::from_millis(250);
/// A burst of commits is looked at once.
const BURST: Duration = Duration::from_millis(25);
/// A revoked key, a suspended owner and a lost wake-up are noticed within this time.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often an open stream counts as a sign of life.
const SEEN_EVERY: Duration = Duration::from_secs(15);

/// What can be listened to at an endpoint, and who listens.
pub struct Listener<C> {
    pub context: HubContext,
    pub caller: McpCaller,
    /// Answers `tasks/get`.
    pub catalogue: Arc<C>,
    /// Whether the endpoint has resources.
    pub has_resources: bool,
    /// Watches the list of tools, where it changes.
    pub tools: Option<Box<dyn ToolChanges>>,
}

/// One open stream, counted.
struct StreamPermit {
    context: HubContext,
    owner: StreamOwner,
}

impl StreamPermit {
    fn acquire(context: &HubContext, owner: StreamOwner) -> Result<Self, RpcError> {
        let mut all = context.open_streams.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(owner).or_default();
        if *count >= STREAMS_MAX {
            let data = ObjectWriter::new()
                .text("code", "rate_limited")
                .raw("retryable", "true")
                .integer("retry_after_seconds", 1)
                .finish();
            let text =
                format!("this key already has {STREAMS_MAX} streams; close one of them first");
            return Err(RpcError::new(INVALID_REQUEST, text).with_data(data));
        }
        *count += 1;
        Ok(Self { context: context.clone(), owner })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut all = self.context.open_streams.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(&self.owner) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(all.remove(&self.owner)),
        }
    }
}

impl<C: Catalogue> Listener<C> {
    /// Listens until the hub stops. The future is dropped when the client hangs up.
    pub async fn listen(self, request: ClientRequest) -> Result<ResultObject, RpcError> {
        let wanted = Filter::read(&request.params)?;
        if !wanted.task_ids.is_empty() && !request.client.tasks {
            return Err(RpcError::tasks_not_declared());
        }
        let (Some(agent), Some(owner)) = (self.caller.agent(), self.caller.stream_owner()) else {
            return Err(RpcError::no_key());
        };
        let _permit = StreamPermit::acquire(&self.context, owner)?;
        let tag = ObjectWriter::new().raw(SUBSCRIPTION_ID, &request.id).finish();
        let (honoured, subjects) = self.honour(agent, wanted).await;
        let acknowledgement =
            ObjectWriter::new().raw("notifications", &honoured.write()).raw("_meta", &tag).finish();
        let outgoing = request.outgoing.clone();
        outgoing.send("notifications/subscriptions/acknowledged", &acknowledgement).await;
        let tools = self.tools.filter(|_| honoured.tools);
        let stream = ChangeStream {
            context: self.context,
            caller: self.caller,
            agent,
            catalogue: self.catalogue,
            request,
            tag,
            outgoing,
            subjects,
        };
        stream.run(tools).await
    }

    /// What of a filter is honoured, and its subjects.
    async fn honour(&self, agent: AgentId, wanted: Filter) -> (Filter, Vec<Subject>) {
        let engine = &self.context.engine;
        let mut honoured =
            Filter { tools: wanted.tools && self.tools.is_some(), ..Filter::default() };
        let mut subjects = Vec::new();
        for uri in wanted.uris.into_iter().filter(|_| self.has_resources) {
            if let Some(subject) = Subject::resource(engine, agent, &uri).await {
                subjects.push(subject);
                honoured.uris.push(uri);
            }
        }
        for id in wanted.task_ids {
            if let Some(subject) = Subject::task(engine, agent, &id).await {
                subjects.push(subject);
                honoured.task_ids.push(id);
            }
        }
        (honoured, subjects)
    }
}

struct ChangeStream<C> {
    context: HubContext,
    caller: McpCaller,
    agent: AgentId,
    catalogue: Arc<C>,
    request: ClientRequest,
    /// `_meta` of every message of the stream.
    tag: String,
    outgoing: Outgoing,
    subjects: Vec<Subject>,
}

impl<C: Catalogue> ChangeStream<C> {
    async fn run(mut self, tools: Option<Box<dyn ToolChanges>>) -> Result<ResultObject, RpcError> {
        let mut tools_changed = Box::pin(next_change(tools));
        let mut shutdown = self.context.shutdown.clone();
        let notify = self.context.engine.subscribe_agent(self.agent);
        let mut seen_at = Instant::now();
        loop {
            let notified = notify.notified();
            tokio::pin!(notified);
            // Register for the wake-up first and look afterwards, so that none is missed.
            notified.as_mut().enable();
            if shutdown.is_requested() {
                let id = self.request.id;
                return Ok(ResultObject::default().meta(SUBSCRIPTION_ID, id));
            }
            if !self.caller.is_still_valid(&self.context.engine) {
                return Err(RpcError::key_revoked());
            }
            if seen_at.elapsed() >= SEEN_EVERY {
                seen_at = Instant::now();
                self.context.engine.record_seen(self.agent);
            }
            let due = self.tell_news().await;
            let until = due.unwrap_or(Instant::now() + LOOK_EVERY);
            tokio::select! {
                () = notified => tokio::time::sleep(BURST).await,
                () = shutdown.wait() => {}
                () = tokio::time::sleep_until(until) => {}
                tools = &mut tools_changed => {
                    tools_changed.set(next_change(tools));
                    let params = ObjectWriter::new().raw("_meta", &self.tag).finish();
                    self.outgoing.send("notifications/tools/list_changed", &params).await;
                }
            }
        }
    }

    /// Tells of every subject that has news, and returns when the next one may be told of.
    async fn tell_news(&mut self) -> Option<Instant> {
        let (engine, agent) = (self.context.engine.clone(), self.agent);
        let changed: Vec<usize> = engine.with_world(|world| {
            let subjects = self.subjects.iter().enumerate();
            subjects.filter(|(_, one)| one.has_news(world, agent)).map(|(at, _)| at).collect()
        });
        let mut next: Option<Instant> = None;
        for at in changed {
            let free_at = self.subjects[at].last_told_at.map(|last| last + PAUSE);
            match free_at.filter(|free_at| *free_at > Instant::now()) {
                Some(later) => next = Some(next.map_or(later, |next| next.min(later))),
                None => {
                    // Before it is told: what changes from now on is told of again.
                    self.subjects[at].take_news(&engine, agent);
                    self.tell(at).await;
                }
            }
        }
        next
    }

    async fn tell(&self, at: usize) {
        match &self.subjects[at].what {
            What::Resource { uri, .. } => {
                let params = ObjectWriter::new().text("uri", uri).raw("_meta", &self.tag).finish();
                self.outgoing.send("notifications/resources/updated", &params).await;
            }
            What::Task { id, .. } => {
                // A task that cannot be read now is read when the client asks for it.
                if let Ok(task) = self.load_task(id).await {
                    let params = task.meta(SUBSCRIPTION_ID, self.request.id.clone()).write_inner();
                    self.outgoing.send("notifications/tasks", &params).await;
                }
            }
        }
    }

    /// What `tasks/get` says of a task now.
    async fn load_task(&self, id: &str) -> Result<ResultObject, RpcError> {
        let request = ClientRequest {
            id: self.request.id.clone(),
            method: Method::GetTask,
            params: ObjectWriter::new().text("taskId", id).finish(),
            era: self.request.era,
            client: ClientCapabilities { tasks: true, ..self.request.client },
            trace_parent: None,
            progress: self.request.progress.clone(),
            outgoing: self.outgoing.clone(),
        };
        self.catalogue.clone().call(request).await
    }
}

/// Waits until the tools change, if they ever do.
async fn next_change(tools: Option<Box<dyn ToolChanges>>) -> Option<Box<dyn ToolChanges>> {
    match tools {
        Some(mut tools) => {
            tools.changed().await;
            Some(tools)
        }
        None => std::future::pending().await,
    }
}
