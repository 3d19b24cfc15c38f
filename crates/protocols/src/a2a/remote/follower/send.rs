//! Sending: the request, and what its requester sends after it. Each at most once.

use std::time::Duration;

use rialto_core::alias::{ClaimTarget, Digest};
use rialto_core::command::{Command, HandoverStage, JobRef};
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Requester};

use super::{FollowEnd, Follower, OpenStream, PAUSE_MAX, Step};
use crate::a2a::remote::client::{
    Call, CallError, Meaning, RemoteClient, RemoteError, read_event, read_page,
};
use crate::a2a::remote::handover_state::{HandoverState, Outgoing};
use crate::a2a::remote::outgoing::{self, WorkerIds};
use crate::a2a::remote::{RemoteAgent, callback};
use crate::a2a::translate::TaskMeta;
use crate::a2a::wire::Version;
use crate::a2a::wire::message::Role;
use crate::a2a::wire::rpc::Method;
use crate::a2a::wire::task::Task;
use crate::a2a::{A2aContext, ID};
use crate::adapter::fidelity;
use crate::kit::object::ObjectWriter;

/// How often a message is sent again whose earlier try was not found at the server (R100).
const LOST_MAX: u32 = 1;
/// When a message is looked for whose fate is unknown: it may be on its way for a while.
const LOOKS: [Duration; 5] = [
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(2),
];
/// Tasks of a page, and pages that are read, when a task is looked for.
const PAGE_SIZE: u32 = 100;
const PAGES_MAX: usize = 20;
/// The most tasks that a message may refer to.
const REFERENCES_MAX: usize = 32;

impl Follower {
    /// Sends the request (R95).
    pub(super) async fn send_request(&mut self) -> Step {
        let push = callback::url(&self.context, &self.job).filter(|_| self.remote.push);
        let ids = self.ids_for_request().await?;
        self.begin(Outgoing::Request).await?;
        let Some((message, extensions)) = self.message(Outgoing::Request, ids) else {
            return self.fail(Cause::Unusable, "the request cannot be read").await;
        };
        let version = self.client.interface.version;
        let url = self.client.interface.url.clone();
        let slot = match self.remote.streaming {
            true => self.context.egress.try_reserve_slot(&url),
            false => None,
        };
        if let Some(slot) = slot {
            let params = outgoing::send_params(&self.job, &message, version, false, None);
            let call = Call { extensions, ..Call::new(Method::SendStreamingMessage, params) };
            return match self.client.stream(&call, slot).await {
                Ok(stream) => {
                    self.stream = Some(OpenStream::whole(stream));
                    self.read_first_event().await
                }
                Err(error) => self.handle_send_error(error, Outgoing::Request).await,
            };
        }
        let params = outgoing::send_params(&self.job, &message, version, true, push.as_deref());
        let call = Call { extensions, ..Call::new(Method::SendMessage, params) };
        match self.client.call_slowly(&call).await.and_then(|text| read_event(&text, version)) {
            Ok(Some(event)) => {
                self.note_contact();
                self.state.push = push.is_some();
                self.take_event(event).await
            }
            Ok(None) => {
                self.fail(Cause::Execution, "the agent answered with an unknown state").await
            }
            Err(error) => self.handle_send_error(error, Outgoing::Request).await,
        }
    }

    /// Reads the first event of a stream, which has the ids of the worker's task.
    async fn read_first_event(&mut self) -> Step {
        while self.state.task.is_none() {
            let Some(open) = &mut self.stream else { return Ok(()) };
            match open.stream.next().await {
                Ok(Some(event)) => {
                    self.note_contact();
                    self.take_event(event).await?;
                }
                // The fate of the request is unknown.
                Ok(None) => self.stream = None,
                Err(error) => {
                    self.stream = None;
                    return self.handle_send_error(error, Outgoing::Request).await;
                }
            }
        }
        Ok(())
    }

    /// Records that a message is about to be sent.
    async fn begin(&mut self, what: Outgoing) -> Step {
        self.is_known_absent = false;
        self.state.begin(what);
        self.record(HandoverStage::Sending).await
    }

    /// The message with the extensions that its requester activates.
    fn message(
        &self,
        what: Outgoing,
        ids: WorkerIds,
    ) -> Option<(crate::a2a::wire::message::Message, Vec<String>)> {
        let number = self.state.sent;
        let message = self.context.engine.with_world(|world| {
            outgoing::message(world, &self.job, &self.remote, what, number, ids)
        })?;
        let asked = TaskMeta::of(&self.job).map(|meta| meta.extensions).unwrap_or_default();
        let is_known = |uri: &String| self.remote.extensions.iter().any(|one| one.uri == *uri);
        Some((message, asked.into_iter().filter(is_known).collect()))
    }

    /// The worker's context in which earlier tasks of the conversation were (R102).
    async fn ids_for_request(&self) -> Step<WorkerIds> {
        let interrupted = |_| FollowEnd::Interrupted;
        let engine = &self.context.engine;
        let mut ids = WorkerIds::default();
        if let Some(name) = conversation(&self.context, &self.job)
            && let Some(ClaimTarget::Job(first)) =
                engine.claim_target(name).await.map_err(interrupted)?
            && let Some(first) = engine.load_job(first).await.map_err(interrupted)?
        {
            ids.context = HandoverState::of(&first).and_then(|state| state.context);
        }
        ids.references = self.references(Outgoing::Request).await?;
        Ok(ids)
    }

    /// The worker's own ids of the tasks that a message refers to. Those of others are left out.
    async fn references(&self, what: Outgoing) -> Step<Vec<String>> {
        let named = outgoing::own_message(&self.job, what).map(|own| own.reference_task_ids);
        let mut ids = Vec::new();
        for id in named.unwrap_or_default().into_iter().take(REFERENCES_MAX) {
            let Ok(uuid) = id.parse() else { continue };
            let found = self.context.engine.find_job(&JobRef::Uuid(uuid)).await;
            let Some(job) = found.map_err(|_| FollowEnd::Interrupted)? else { continue };
            let is_same = job.request.requester == self.job.request.requester
                && job.request.origin == ID
                && job.worker() == Some(self.agent);
            ids.extend(HandoverState::of(&job).filter(|_| is_same).and_then(|state| state.task));
        }
        Ok(ids)
    }

    /// Sends what the requester sent after the request (R35).
    pub(super) async fn send_message(&mut self, what: Outgoing) -> Step {
        let references = self.references(what).await?;
        self.begin(what).await?;
        let ids = WorkerIds {
            task: self.state.task.clone(),
            context: self.state.context.clone(),
            references,
        };
        let Some((message, extensions)) = self.message(what, ids) else {
            return self.end_message(what).await;
        };
        let version = self.client.interface.version;
        let url = self.client.interface.url.clone();
        // A stream that is open has the events that follow.
        let slot = match self.remote.streaming && self.stream.is_none() {
            true => self.context.egress.try_reserve_slot(&url),
            false => None,
        };
        let sent = match slot {
            Some(slot) => {
                let params = outgoing::send_params(&self.job, &message, version, false, None);
                let call = Call { extensions, ..Call::new(Method::SendStreamingMessage, params) };
                match self.client.stream(&call, slot).await {
                    Ok(mut stream) => {
                        // The first event shows that the message is there.
                        let first = stream.next().await;
                        self.stream = Some(OpenStream::whole(stream));
                        first
                    }
                    Err(error) => Err(error),
                }
            }
            None => {
                let params = outgoing::send_params(&self.job, &message, version, true, None);
                let call = Call { extensions, ..Call::new(Method::SendMessage, params) };
                let sent = self.client.call_slowly(&call).await;
                sent.and_then(|text| read_event(&text, version))
            }
        };
        match sent {
            Ok(event) => {
                self.note_contact();
                self.end_message(what).await?;
                match event {
                    Some(event) => self.take_event(event).await,
                    None => Ok(()),
                }
            }
            Err(error) => {
                self.stream = None;
                self.handle_send_error(error, what).await
            }
        }
    }

    /// Records that a message is there, or is not sent after all.
    async fn end_message(&mut self, what: Outgoing) -> Step {
        self.state.end(what);
        self.answered = tokio::time::Instant::now();
        self.record(HandoverStage::Received).await
    }

    /// What an error means that a send ended with (R101).
    async fn handle_send_error(&mut self, error: CallError, what: Outgoing) -> Step {
        let text = error.to_string();
        let refused = match error {
            CallError::Unreachable(_) => {
                self.is_known_absent = true;
                return self.away(what, &text).await;
            }
            // It may be there; that is looked up next.
            CallError::NoAnswer(_) => return self.rest().await,
            CallError::Malformed(_) | CallError::TooLarge(_) => {
                return self.fail(Cause::Execution, &text).await;
            }
            CallError::Refused(refused) => refused,
        };
        self.is_known_absent = true;
        let meaning = refused.meaning();
        let is_request = what == Outgoing::Request;
        match meaning {
            Meaning::Busy { retry_after } => {
                if let Some(wait) = retry_after {
                    self.pause = wait.clamp(self.pause, PAUSE_MAX.max(wait));
                }
                self.rest().await
            }
            Meaning::Away | Meaning::OtherVersion if self.refresh_card().await => Ok(()),
            Meaning::Away => self.away(what, &text).await,
            Meaning::NoSuchOperation if self.remote.streaming => {
                // The card promises streams that the server does not have.
                self.remote.streaming = false;
                Ok(())
            }
            Meaning::Misfit if is_request => self.fail(Cause::InputMisfit, &text).await,
            Meaning::Declined if is_request => self.decline(&text).await,
            _ if is_request => self.fail_refused(&refused, &text).await,
            _ => self.handle_refused_message(what, meaning, &refused, &text).await,
        }
    }

    /// A message after the request was refused.
    async fn handle_refused_message(
        &mut self,
        what: Outgoing,
        meaning: Meaning,
        refused: &RemoteError,
        text: &str,
    ) -> Step {
        // The task may have ended, which explains it.
        self.poll().await?;
        if self.is_answer(what) {
            return match meaning {
                Meaning::Misfit => self.fail(Cause::InputMisfit, text).await,
                _ => self.fail_refused(refused, text).await,
            };
        }
        // The work goes on without it, and the requester learns that.
        self.end_message(what).await?;
        self.report_text(&format!("a message was not taken: {text}")).await
    }

    /// Whether a message answers a question of the worker.
    fn is_answer(&self, what: Outgoing) -> bool {
        match what {
            Outgoing::Answer(_) => true,
            Outgoing::Message(number) => {
                let at = usize::try_from(number).unwrap_or_default().wrapping_sub(1);
                self.job.messages.get(at).is_some_and(|message| message.answers.is_some())
            }
            Outgoing::Request => false,
        }
    }

    /// The server is not there. A job that was not sent yet goes back; a task that has begun is
    /// waited for within the lease.
    async fn away(&mut self, what: Outgoing, text: &str) -> Step {
        if what != Outgoing::Request {
            return self.rest().await;
        }
        tracing::info!(job = %self.job.uuid, agent = %self.agent, why = text, "an agent is away");
        let order = Command::MarkUnreachable { job: self.job.id, epoch: self.epoch };
        match self.context.engine.run(order).await {
            Ok(_) => Err(FollowEnd::Away),
            Err(_) => Err(FollowEnd::Interrupted),
        }
    }

    /// Waits before the next try, for longer each time, unless the job changes.
    pub(super) async fn rest(&mut self) -> Step {
        let pause = self.pause;
        self.pause = (2 * pause).min(PAUSE_MAX).max(pause);
        let until = tokio::time::Instant::now() + pause;
        while tokio::time::Instant::now() < until {
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = self.wake.notify.notified() => self.look_at_job()?,
            }
        }
        Ok(())
    }

    /// A request may have been sent or not: looks for its task (R100).
    pub(super) async fn find_request(&mut self) -> Step {
        if self.client.interface.version == Version::V03 {
            let text = "it is not known whether the agent got the request, and its version has no \
                        list of tasks to look in";
            return self.fail(Cause::UnknownFate, text).await;
        }
        let id = outgoing::sending_id(&self.job, &self.state, Outgoing::Request);
        for look in LOOKS {
            tokio::time::sleep(look).await;
            self.look_at_job()?;
            match self.find_task(&id).await {
                Ok(Some(task)) => {
                    self.note_contact();
                    return self.take_task(task).await;
                }
                Ok(None) => {}
                Err(error) => return self.handle_find_error(error).await,
            }
        }
        self.is_lost().await
    }

    /// A message was not found, so it is sent once more, but not forever.
    async fn is_lost(&mut self) -> Step {
        let Some(sending) = &mut self.state.sending else { return Ok(()) };
        sending.lost += 1;
        if sending.lost > LOST_MAX {
            let text = "it is not known whether the agent got a message: it gives no answer";
            return self.fail(Cause::UnknownFate, text).await;
        }
        self.is_known_absent = true;
        Ok(())
    }

    async fn handle_find_error(&mut self, error: CallError) -> Step {
        match &error {
            CallError::Unreachable(_) | CallError::NoAnswer(_) => self.rest().await,
            CallError::Refused(refused) => match refused.meaning() {
                Meaning::Busy { .. } => self.rest().await,
                Meaning::Away | Meaning::OtherVersion if self.refresh_card().await => Ok(()),
                Meaning::Away => self.rest().await,
                _ => {
                    let text = format!(
                        "it is not known whether the agent got the request, and its tasks cannot \
                         be listed: {error}"
                    );
                    self.fail(Cause::UnknownFate, &text).await
                }
            },
            CallError::Malformed(_) | CallError::TooLarge(_) => {
                let text = format!("it is not known whether the agent got the request: {error}");
                self.fail(Cause::UnknownFate, &text).await
            }
        }
    }

    /// The worker's task that a message with this id opened.
    async fn find_task(&self, message_id: &str) -> Result<Option<Task>, CallError> {
        let version = self.client.interface.version;
        let mut token: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let size = PAGE_SIZE.to_string();
            let params = ObjectWriter::new()
                .integer("pageSize", PAGE_SIZE.into())
                .maybe_text("pageToken", token.as_deref())
                .integer("historyLength", 100)
                .flag("includeArtifacts", true)
                .finish();
            let mut query = vec![
                ("pageSize", size),
                ("historyLength", "100".to_owned()),
                ("includeArtifacts", "true".to_owned()),
            ];
            query.extend(token.clone().map(|token| ("pageToken", token)));
            let call = Call { query, ..Call::new(Method::ListTasks, params) };
            let page = read_page(&self.client.call(&call).await?, version)?;
            let is_it = |task: &Task| {
                let mut sent = task.history.iter().filter(|message| message.role == Role::User);
                sent.any(|message| message.message_id == message_id)
            };
            if let Some(task) = page.tasks.into_iter().find(is_it) {
                return Ok(Some(task));
            }
            token = page.next;
            if token.is_none() {
                return Ok(None);
            }
        }
        let text = format!("more than {PAGES_MAX} pages of tasks");
        Err(CallError::TooLarge(text))
    }

    /// A message of the requester may have been sent or not: looks into the task's history.
    pub(super) async fn find_message(&mut self, what: Outgoing) -> Step {
        let id = outgoing::sending_id(&self.job, &self.state, what);
        for look in LOOKS {
            tokio::time::sleep(look).await;
            self.look_at_job()?;
            let task = match self.get_task().await? {
                Some(task) => task,
                None => return Ok(()),
            };
            let has = |id: &str| task.history.iter().any(|message| message.message_id == id);
            if has(&id) || task.status.state.is_terminal() {
                self.end_message(what).await?;
                return self.take_task(task).await;
            }
            let keeps_history = task.history.iter().any(|message| message.role == Role::User);
            if !keeps_history {
                return self.judge_by_state(what, &task).await;
            }
        }
        self.is_lost().await
    }

    /// A server without history: a task that does not wait any more got the answer.
    async fn judge_by_state(&mut self, what: Outgoing, task: &Task) -> Step {
        let waits = task.status.state.is_interrupted();
        if waits || !self.is_answer(what) {
            let text = format!("it is not known whether the agent got {what}");
            return self.fail(Cause::UnknownFate, &text).await;
        }
        self.end_message(what).await
    }
}

/// The name under which later jobs of a conversation find its first one (R102).
pub fn conversation(context: &A2aContext, job: &Job) -> Option<Digest> {
    let worker = job.worker()?;
    let requester = match &job.request.requester {
        Requester::Agent(AgentId(number)) => number.to_be_bytes(),
        // Guests cannot be told apart.
        Requester::Guest(_) => return None,
    };
    let name = match TaskMeta::of(job) {
        Some(meta) => meta.context_id,
        None => fidelity::conversation(context, job)?,
    };
    let origin = job.request.origin;
    let parts: [&[u8]; 5] = [
        b"a2a conversation",
        &worker.0.to_be_bytes(),
        &requester,
        origin.as_str().as_bytes(),
        name.as_bytes(),
    ];
    Some(Digest::of(&parts))
}

/// The client for a job that ended while the hub was down; `None` if its worker never got it.
pub fn client_of_ended(context: &A2aContext, job: &Job) -> Option<(RemoteClient, String)> {
    let state = HandoverState::of(job)?;
    let agent = context.engine.with_world(|world| world.agent(job.worker()?).cloned())?;
    let remote = RemoteAgent::of(&agent)?;
    let client = RemoteClient::new(context, &agent, &remote, state.interface.read()?);
    Some((client, state.task?))
}
