//! Messages as jobs, and jobs as tasks.

use rialto_core::alias::Digest;
use rialto_core::command::OpenJob;
use rialto_core::id::AgentId;
use rialto_core::job::end::CANCELLED_BY_REQUESTER;
use rialto_core::job::log::Phase;
use rialto_core::job::{
    Cause, DEFAULT_PRIORITY, Job, NamedWorker, Policy, Progress, Reassignment, Requester,
    RequesterOptions, Selection, State,
};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::original::{self, OriginalStatus};
use super::task_log::{self, TaskLog};
use super::wire::Version;
use super::wire::content::{self, OutputForm};
use super::wire::error::A2aError;
use super::wire::message::{Message, Part};
use super::wire::params::SendParams;
use super::wire::reader::{self, Violations};
use super::wire::task::{Artifact, Task, TaskState, TaskStatus};
use super::{ID, extensions};
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::kit::{raw_json, rfc3339};

/// Budgets and prices have six decimals.
const PRICE_STEP: PriceStep = PriceStep { decimals: 6, minimum: Credits::ZERO };
/// How long a worker may give no sign of life, unless the operator sets it.
pub const LEASE: Millis = Millis::hours(1);
/// The skill of agents that talk, which a message without a skill means.
pub const MESSAGE_SKILL: &str = "message";
/// The longest key for repeats.
pub const KEY_MAX: usize = 256;
/// The most messages of a history that are returned if the client names no number (R38).
const HISTORY_MAX: usize = 100;

/// What a client says about hiring, in the metadata under the extension's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hire {
    pub skill: Option<String>,
    pub budget: Option<Credits>,
    pub deadline: Option<Timestamp>,
    /// Whether the task may wait for an agent that is away.
    pub queue: Option<bool>,
    pub key: Option<String>,
    pub select: Option<String>,
    pub hop: u8,
    /// Whether the client used the extension.
    pub is_given: bool,
}

/// The parameters of a send, with what they say about hiring. Everything that is wrong with either is
/// reported (R21).
pub fn read_send(json: &Json<'_>, version: Version) -> Result<(SendParams, Hire), A2aError> {
    let mut wrong = Violations::new();
    let params = SendParams::read_members(json, version, &mut wrong);
    let hire = Hire::read_members(&params.message, params.metadata.as_deref(), &mut wrong);
    if wrong.is_empty() { Ok((params, hire)) } else { Err(A2aError::invalid(wrong)) }
}

impl Hire {
    /// Reads the metadata of a message, or else of its request.
    pub fn read(message: &Message, request: Option<&str>) -> Result<Self, A2aError> {
        let mut wrong = Violations::new();
        let hire = Self::read_members(message, request, &mut wrong);
        if wrong.is_empty() { Ok(hire) } else { Err(A2aError::invalid(wrong)) }
    }

    fn read_members(message: &Message, request: Option<&str>, wrong: &mut Violations) -> Self {
        let of_message = member(message.metadata.as_deref(), extensions::HIRE);
        let (place, found) = match of_message {
            Some(found) => ("message.metadata", Some(found)),
            None => ("metadata", member(request, extensions::HIRE)),
        };
        // Other clients name the skill there.
        let skill_id = || {
            let found = member(message.metadata.as_deref(), "skillId");
            text_of(&found.or_else(|| member(request, "skillId"))?)
        };
        let Some(text) = found else { return Self { skill: skill_id(), ..Self::default() } };
        let Ok(json) = ijson::read(text.as_bytes()) else { return Self::default() };
        let place = format!("{place}.{}", extensions::HIRE);
        let Some(r) = reader::Reader::new(&json, place, wrong) else { return Self::default() };
        let budget = r.get("budget").and_then(|budget| {
            let text = match budget.value() {
                JsonValue::String(text) => text.as_ref(),
                JsonValue::Number(digits) => digits,
                _ => "",
            };
            let parsed = Credits::parse(text, 6).ok().filter(|budget| *budget >= Credits::ZERO);
            if parsed.is_none() {
                let text = "must be an amount with at most 6 decimals, such as \"0.25\"";
                r.reject("budget", text, wrong);
            }
            parsed
        });
        let hop = r.integer("hop", wrong).unwrap_or(0);
        if hop < 0 {
            r.reject("hop", "must not be negative", wrong);
        }
        let key = r.short_text("key", KEY_MAX, wrong);
        if key.as_ref().is_some_and(String::is_empty) {
            r.reject("key", format!("must have 1 to {KEY_MAX} characters"), wrong);
        }
        Self {
            skill: r.text("skill", wrong).or_else(skill_id),
            budget,
            deadline: r.get("deadline").and_then(|_| r.time("deadline", wrong)),
            queue: r.flag("queue", wrong),
            key,
            select: r.text("select", wrong),
            hop: u8::try_from(hop.clamp(0, 255)).unwrap_or(u8::MAX),
            is_given: true,
        }
    }
}

/// A member of a JSON object, as JSON text.
fn member(object: Option<&str>, name: &str) -> Option<String> {
    let json = ijson::read(object?.as_bytes()).ok()?;
    json.get(name).filter(|json| *json.value() != JsonValue::Null).map(|json| json.raw().to_owned())
}

fn text_of(json: &str) -> Option<String> {
    match ijson::read(json.as_bytes()).ok()?.value() {
        JsonValue::String(text) if !text.is_empty() => Some(text.clone().into_owned()),
        _ => None,
    }
}

/// What this protocol keeps with a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskMeta {
    #[serde(rename = "contextId")]
    pub context_id: String,
    /// The parameters of the send that opened the task, as they came, without secrets.
    pub sent: Box<serde_json::value::RawValue>,
    /// Whether they came in 0.3.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub old: bool,
    /// The agent it was sent to; none for the hub itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<u64>,
    /// The modes that the client accepts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<String>,
    /// The extensions that the client activates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}

impl TaskMeta {
    /// What is kept with a job of this protocol.
    pub fn of(job: &Job) -> Option<Self> {
        if job.request.origin != ID {
            return None;
        }
        serde_json::from_str(&job.request.meta).ok()
    }

    /// The version in which the task was opened.
    pub fn version(&self) -> Version {
        if self.old { Version::V03 } else { Version::V1 }
    }

    /// The message that opened the task.
    pub fn message(&self, job: &Job) -> Option<Message> {
        let mut wrong = Vec::new();
        let json = ijson::read(self.sent.get().as_bytes()).ok()?;
        let message = Message::read(json.get("message")?, "message", self.version(), &mut wrong);
        let (context_id, task_id) = (Some(self.context_id.clone()), Some(job.uuid.to_string()));
        wrong.is_empty().then_some(Message { context_id, task_id, ..message })
    }
}

/// A stored message.
pub fn read_message(text: &str) -> Option<Message> {
    let mut wrong = Vec::new();
    let json = ijson::read(text.as_bytes()).ok()?;
    let message = Message::read(&json, "message", Version::V1, &mut wrong);
    wrong.is_empty().then_some(message)
}

/// A task to be opened.
pub struct NewTask<'a> {
    pub id: Uuid,
    pub requester: AgentId,
    pub params: &'a SendParams,
    pub version: Version,
    pub context_id: &'a str,
    pub extensions: Vec<String>,
    /// The agent it is for; `None` lets the hub choose.
    pub agent: Option<AgentId>,
    pub skill: String,
    pub hire: &'a Hire,
    pub budget: Credits,
    pub selection: Selection,
    pub deadline: Timestamp,
    pub lease: Millis,
    pub unfit_agents: Vec<rialto_core::command::UnfitAgent>,
}

/// The order that opens a task.
pub fn open_task(task: NewTask<'_>) -> OpenJob {
    let id = task.id.to_string();
    let sent = task.params.without_secrets();
    let meta = TaskMeta {
        context_id: task.context_id.to_owned(),
        sent: raw_json::verbatim(&sent),
        old: task.version == Version::V03,
        agent: task.agent.map(|agent| agent.0),
        modes: task.params.configuration.accepted_output_modes.clone(),
        extensions: task.extensions,
    };
    let by_hub = task.agent.is_none();
    let queues = task.hire.queue.unwrap_or(true);
    OpenJob {
        uuid: task.id,
        origin: ID,
        content: Digest::of(&[sent.as_bytes()]),
        foreign_id: id,
        requester: Requester::Agent(task.requester),
        skill: task.skill,
        alternative_skills: Vec::new(),
        input: content::input_of(&task.params.message.parts),
        budget: task.budget,
        price_step: PRICE_STEP,
        selection: task.selection,
        unfit_agents: task.unfit_agents,
        policy: Policy {
            reassignment: Reassignment {
                when_unreachable: by_hub,
                when_declined: by_hub,
                when_failed: false,
            },
            named_worker: NamedWorker { may_be_offline: queues, not_before: None },
            requester: RequesterOptions {
                waits: true,
                cancels_any_time: true,
                follows_log: true,
                ..RequesterOptions::default()
            },
            ..Policy::default()
        },
        deadline: task.deadline,
        lease: task.lease,
        wanted_by: None,
        priority: DEFAULT_PRIORITY,
        callback: None,
        input_error: None,
        meta: serde_json::to_string(&meta).unwrap_or_default(),
        hops: task.hire.hop,
        request_id: None,
    }
}

/// The state of a job as this protocol names it.
pub fn state_of(job: &Job) -> TaskState {
    match job.state {
        State::Completed => TaskState::Completed,
        State::Cancelled => TaskState::Canceled,
        State::Failed if is_refused(job) => TaskState::Rejected,
        State::Failed | State::Expired | State::Withdrawn => TaskState::Failed,
        State::InputRequired { .. } => state_of_question(job, job.question_count()),
        State::Running => TaskState::Working,
        _ => TaskState::Submitted,
    }
}

/// Whether a question is one that the requester answers, or a sign-in.
pub fn state_of_question(job: &Job, number: u32) -> TaskState {
    let question = usize::try_from(number).ok().and_then(|n| job.questions.get(n.checked_sub(1)?));
    match question {
        Some(question) if question.signs_in => TaskState::AuthRequired,
        _ => TaskState::InputRequired,
    }
}

/// Whether the worker refused the job, instead of failing at it.
fn is_refused(job: &Job) -> bool {
    let cause = job.result.as_ref().and_then(|result| result.cause);
    matches!(cause, Some(Cause::Policy | Cause::NoSuchSkill | Cause::BudgetTooLow))
}

/// When the newest status of a task began.
pub fn status_time(job: &Job) -> Timestamp {
    let Progress { phase, status_at, .. } = job.progress;
    let phase = phase.filter(|(phase, _)| *phase == Phase::of(job.state)).map(|(_, at)| at);
    job.ended_at.or(phase.max(status_at)).unwrap_or(job.request.opened_at)
}

/// The id of a message that the hub writes for the worker of a job.
pub fn message_id(job: &Job, position: u32) -> String {
    format!("{}-{position}", job.uuid)
}

/// A message of the worker about its task.
pub fn worker_message(job: &Job, context_id: &str, position: u32, parts: Vec<Part>) -> Message {
    Message {
        context_id: Some(context_id.to_owned()),
        task_id: Some(job.uuid.to_string()),
        ..Message::of_agent(message_id(job, position), parts)
    }
}

/// The status message at the end of a job.
pub fn end_message(job: &Job, meta: &TaskMeta, position: u32) -> Option<Message> {
    if let Some(original) = OriginalStatus::of_end(job, meta) {
        let task_id = Some(job.uuid.to_string());
        return original.message().map(|message| Message { task_id, ..message });
    }
    let result = job.result.as_ref()?;
    let parts = if !result.ok {
        // A requester that canceled is not told that it did.
        let text = result.text.clone().filter(|text| text != CANCELLED_BY_REQUESTER);
        vec![Part::text(text?)]
    } else {
        match content::form_of_output(result.output.as_deref()?) {
            OutputForm::Message(parts) | OutputForm::Task { message: Some(parts), .. } => {
                content::adapt_parts(parts, &meta.modes)
            }
            OutputForm::Task { message: None, .. } => return None,
        }
    };
    Some(worker_message(job, &meta.context_id, position, parts))
}

/// The message that a worker answered with instead of a task (R51).
pub fn bare_message(job: &Job, meta: &TaskMeta) -> Option<Message> {
    let result = job.result.as_ref().filter(|result| result.ok)?;
    let message = match OriginalStatus::of_end(job, meta) {
        Some(OriginalStatus::BareMessage(message)) => message,
        Some(OriginalStatus::Status { .. }) => return None,
        None => {
            let form = content::form_of_output(result.output.as_deref()?);
            let OutputForm::Message(_) = form else { return None };
            // What it reported before must not be lost.
            if job.progress.parts > 0 {
                return None;
            }
            end_message(job, meta, task_log::end_position(job, meta))?
        }
    };
    Some(Message { task_id: None, ..message })
}

/// The artifacts of the result itself. Those of a worker of this protocol are in the log.
pub fn result_artifacts(job: &Job, meta: &TaskMeta) -> Vec<Artifact> {
    if OriginalStatus::of_end(job, meta).is_some() {
        return Vec::new();
    }
    let output = job.result.as_ref().filter(|result| result.ok).and_then(|it| it.output.as_deref());
    let form = output.map(content::form_of_output);
    let Some(OutputForm::Task { artifacts, .. }) = form else { return Vec::new() };
    let adapt = |artifact: Artifact| Artifact {
        parts: content::adapt_parts(artifact.parts, &meta.modes),
        ..artifact
    };
    artifacts.into_iter().map(adapt).collect()
}

/// The metadata of a task: what was hired, and at the end what was paid.
fn task_metadata(world: &World, job: &Job, meta: &TaskMeta, has_ended: bool) -> String {
    let worker = job.intended_worker().or(match job.selection {
        Selection::Direct(agent) => Some(agent),
        _ => None,
    });
    let agent = worker.and_then(|worker| world.agent(worker));
    let name = worker.and_then(|worker| world.alias_of(worker, ID));
    let price = job.assignment.map(|turn| price_text(turn.price));
    let paid = job.result.as_ref().filter(|_| has_ended).map(|result| price_text(result.paid));
    let refused = refused(job).filter(|_| has_ended);
    let hire = ObjectWriter::new()
        .text("skill", &crate::adapter::open_job::skill_name(world, job))
        .maybe_text("worker", name)
        .maybe_text("protocol", agent.map(|agent| agent.home.as_str()))
        .maybe_text("price", price.as_deref())
        .text("deadline", &rfc3339::format_millis(job.request.deadline))
        .maybe_text("paid", paid.as_deref())
        .maybe_text("refused", refused)
        .finish();
    let own = ObjectWriter::new().raw(extensions::HIRE, &hire).finish();
    let end = OriginalStatus::of_end(job, meta).filter(|_| has_ended);
    original::merge_metadata(end.as_ref().and_then(OriginalStatus::metadata), own)
}

/// Why the worker could not take a job that existed already.
fn refused(job: &Job) -> Option<&'static str> {
    let cause = job.result.as_ref()?.cause?;
    (cause == Cause::InputMisfit).then_some("INPUT_MISFIT")
}

/// The metadata of the last status update: what the worker said, what was paid if it had a price, and
/// why the worker could not take the job.
pub fn end_metadata(job: &Job, meta: &TaskMeta) -> Option<String> {
    let end = OriginalStatus::of_end(job, meta);
    let original = end.as_ref().and_then(OriginalStatus::metadata);
    let price = job.assignment.map(|turn| turn.price).filter(|price| !price.is_zero());
    let paid = price.and(job.result.as_ref()).map(|result| result.paid);
    let refused = refused(job);
    if price.is_none() && refused.is_none() {
        return original.map(str::to_owned);
    }
    let hire = ObjectWriter::new()
        .maybe_text("price", price.map(price_text).as_deref())
        .maybe_text("paid", paid.map(price_text).as_deref())
        .maybe_text("refused", refused)
        .finish();
    let own = ObjectWriter::new().raw(extensions::HIRE, &hire);
    Some(original::merge_metadata(original, own.finish()))
}

/// An amount as this protocol writes it.
pub fn price_text(amount: Credits) -> String {
    amount.to_text(if amount.is_zero() { 0 } else { 2 })
}

/// When a task is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Now,
    /// After this entry of its log, when its requester had sent so many messages after the first.
    After {
        entry: u32,
        messages: usize,
    },
}

impl Moment {
    /// When a message of the requester had come, by its place among those after the first.
    pub fn after_message(job: &Job, at: usize) -> Option<Self> {
        let message = job.messages.get(at)?;
        // With an answer the work goes on, which is the next entry.
        let entry = message.after + u32::from(message.answers.is_some());
        Some(Self::After { entry, messages: at + 1 })
    }
}

/// Which parts of a task are wanted.
#[derive(Clone, Copy, Debug)]
pub struct TaskView {
    pub history_length: Option<u32>,
    pub with_artifacts: bool,
    pub moment: Moment,
}

impl TaskView {
    /// Everything as it is now, with the usual history.
    pub const FULL: Self = Self { history_length: None, with_artifacts: true, moment: Moment::Now };
}

/// The task that a job is. The log must be complete.
pub fn task(world: &World, job: &Job, meta: &TaskMeta, log: &TaskLog, view: TaskView) -> Task {
    let told = log.replay(job, meta, view.moment);
    let (state, since) = match view.moment {
        Moment::Now => (state_of(job), status_time(job)),
        Moment::After { .. } => told.state.unwrap_or((TaskState::Submitted, job.request.opened_at)),
    };
    let waits = state == TaskState::Submitted;
    let waiting = || waiting_message(world, job, meta).filter(|_| waits);
    let message = told.status_message.or_else(waiting);
    let status = TaskStatus { state, message, timestamp: Some(since) };
    let mut history = told.history;
    if let Some(first) = meta.message(job) {
        history.insert(0, first);
    }
    let kept =
        view.history_length.map_or(HISTORY_MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    history.drain(..history.len().saturating_sub(kept));
    Task {
        id: job.uuid.to_string(),
        context_id: meta.context_id.clone(),
        status,
        artifacts: if view.with_artifacts { told.artifacts } else { Vec::new() },
        history,
        metadata: (!waits).then(|| task_metadata(world, job, meta, state.is_final())),
    }
}

/// Why a task has not begun, if its agent is away (R43).
fn waiting_message(world: &World, job: &Job, meta: &TaskMeta) -> Option<Message> {
    let Selection::Direct(agent) = job.selection else { return None };
    let presence = &world.agent_state(agent)?.presence;
    let seen = presence.last_seen;
    // An agent that was seen since then gets the task soon.
    let was_online = world.is_online(agent, status_time(job).max(seen));
    let is_away = !was_online || presence.unreachable;
    if Phase::of(job.state) != Phase::Waiting || !is_away {
        return None;
    }
    let since = rfc3339::format_millis(seen);
    let text = format!("the agent is away since {since} and gets the task when it is back");
    Some(worker_message(job, &meta.context_id, 0, vec![Part::text(text)]))
}
