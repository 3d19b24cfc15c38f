//! Messages: each opens a task, goes on with one, or is answered by the hub itself.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::agent::{Agent, Skill};
use rialto_core::alias::Digest;
use rialto_core::answer::Answer as CoreAnswer;
use rialto_core::command::{Command, JobRef, OpenJobWithWebhook, SendToWorker, SetJobWebhook};
use rialto_core::id::AgentId;
use rialto_core::idempotency::{Idempotency, Receipt};
use rialto_core::job::question::MESSAGES_MAX;
use rialto_core::job::{Job, Selection};
use rialto_core::money::Credits;
use rialto_core::refusal::Refusal;
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::Failure;

use super::tasks::StreamView;
use super::{Answer, Call, SendResult, Sent, push, search, tasks};
use crate::a2a::errors::{self, Asked, Declined};
use crate::a2a::extensions;
use crate::a2a::task_stream::StreamStart;
use crate::a2a::translate::{
    self, Hire, KEY_MAX, LEASE, MESSAGE_SKILL, Moment, NewTask, TaskMeta, TaskView, price_text,
};
use crate::a2a::wire::Version;
use crate::a2a::wire::content;
use crate::a2a::wire::error::{A2aError, Reason};
use crate::a2a::wire::message::{Message, Part, PartContent};
use crate::a2a::wire::params::{SendConfiguration, SendParams};
use crate::a2a::wire::task::StreamEvent;
use crate::a2a::{ID, directory};
use crate::adapter::idempotency::HEADER;
use crate::adapter::input_check::{self, InputCheck};
use crate::adapter::question_view::check_answer;
use crate::kit::object::{ObjectWriter, string_array};

/// How long agents make offers before the lowest one wins.
const AUCTION_TIME: Millis = Millis::seconds(5);

/// SendMessage and SendStreamingMessage.
pub async fn send(
    call: &Call,
    (params, hire): (SendParams, Hire),
    is_streaming: bool,
    digest: Digest,
) -> Result<Answer, A2aError> {
    check_extensions(call)?;
    if let Some(config) = &params.configuration.push {
        push::check(call, config, true)?;
    }
    let repeat = Repeat::new(call, &hire, is_streaming, digest)?;
    let send = Send { call, params, hire, is_streaming, repeat };
    if let Some(repeated) = send.find_repeated().await? {
        return Ok(repeated);
    }
    if let Some(task) = send.params.message.task_id.clone().filter(|id| !id.is_empty()) {
        return send.go_on(&task).await;
    }
    if call.agent.is_none()
        && (search::is_search(&send.params.message) || send.hire.skill.is_none())
    {
        send.check_content(None)?;
        let found = search::answer(call, &send.params.message)?;
        return Ok(send.answer_with(found));
    }
    send.open().await
}

/// Refuses callers that lack an extension without which the agent cannot be called (R49).
fn check_extensions(call: &Call) -> Result<(), A2aError> {
    let agent =
        call.agent.and_then(|id| call.context.engine.with_world(|world| world.agent(id).cloned()));
    let required = agent.map(|agent| directory::required_extensions(&agent)).unwrap_or_default();
    let wanted = call.wanted_extensions();
    match required.into_iter().find(|uri| !wanted.contains(&uri.as_str())) {
        Some(uri) => {
            let text =
                format!("this agent requires the extension {uri}; name it in A2A-Extensions");
            Err(A2aError::new(Reason::ExtensionSupportRequired, text))
        }
        None => Ok(()),
    }
}

/// A message that is being handled.
struct Send<'a> {
    call: &'a Call,
    params: SendParams,
    hire: Hire,
    is_streaming: bool,
    repeat: Option<Repeat>,
}

/// A request that may be repeated with the same key.
#[derive(Clone, Copy)]
struct Repeat(Idempotency);

impl Repeat {
    fn new(
        call: &Call,
        hire: &Hire,
        is_streaming: bool,
        digest: Digest,
    ) -> Result<Option<Self>, A2aError> {
        let header = call.headers.get(HEADER).map(|value| value.as_bytes());
        if header.is_some_and(|key| key.is_empty() || key.len() > KEY_MAX) {
            let text = "must have 1 to 256 characters";
            return Err(A2aError::invalid_field("Idempotency-Key", text));
        }
        let Some(key) = header.or(hire.key.as_deref().map(str::as_bytes)) else { return Ok(None) };
        let number = |agent: AgentId| agent.0.to_be_bytes();
        let called = call.agent.map(number).unwrap_or_default();
        let scope = Digest::of(&[b"a2a send", &number(call.client.agent), &called, key]);
        let method: &[u8] = if is_streaming { b"stream" } else { b"send" };
        let request = Digest::of(&[method, &digest.0]);
        Ok(Some(Self(Idempotency { scope, request, principal: call.principal })))
    }
}

impl Send<'_> {
    fn configuration(&self) -> &SendConfiguration {
        &self.params.configuration
    }

    /// The answer to a request that was made before with the same key.
    async fn find_repeated(&self) -> Result<Option<Answer>, A2aError> {
        let Some(Repeat(once)) = self.repeat else { return Ok(None) };
        let engine = &self.call.context.engine;
        let now = engine.now();
        let known = engine.with_world(|world| world.idempotency_entry(once.scope, now).cloned());
        let Some(known) = known else { return Ok(None) };
        if known.request != once.request {
            return Err(key_conflict());
        }
        let Some(Receipt::Job(id)) = known.receipt else { return Ok(None) };
        let job = engine.load_job(id).await.map_err(|failure| errors::from_engine(&failure))?;
        match job.and_then(|job| Some((TaskMeta::of(&job)?, job))) {
            Some((meta, job)) => self.answer_task(job, meta, true).await.map(Some),
            None => Ok(None),
        }
    }

    /// Opens a task.
    async fn open(&self) -> Result<Answer, A2aError> {
        let context = &self.call.context;
        let engine = &context.engine;
        let agent = self.call.agent;
        let found = agent.and_then(|id| engine.with_world(|world| world.agent(id).cloned()));
        let skill = match &found {
            Some(agent) => match self.choose_skill(agent) {
                Ok(skill) => skill,
                Err(declined) => {
                    return Ok(self.decline(&declined, self.hire.skill.as_deref(), None));
                }
            },
            None => self.hire.skill.clone().unwrap_or_default(),
        };
        self.check_content(found.as_deref())?;
        let price = found.as_ref().and_then(|agent| agent.listed_price(&skill));
        let selection = match agent {
            Some(agent) => Selection::Direct(agent),
            None => selection(self.hire.select.as_deref(), engine.now())?,
        };
        let input = content::input_of(&self.params.message.parts);
        let names = [skill.as_str()];
        let check = InputCheck { origin: ID, skill_names: &names, agent, input: &input };
        let unfit_agents = input_check::find_unfit_agents(context, &check).await;
        if let (Some(_), Some(unfit)) = (agent, unfit_agents.first()) {
            let reason = unfit.reason.clone();
            return Ok(self.refuse(&Refusal::InputRejected { reason }, &skill, price));
        }
        let id = engine.random().new_uuid();
        let context_id = self.params.message.context_id.clone().filter(|id| !id.is_empty());
        let context_id = context_id.unwrap_or_else(|| engine.random().new_uuid().to_string());
        let ttl = context.state.settings.task_ttl;
        let task = translate::open_task(NewTask {
            id,
            requester: self.call.client.agent,
            params: &self.params,
            version: self.call.binding.version(),
            context_id: &context_id,
            extensions: self.call.wanted_extensions().into_iter().map(str::to_owned).collect(),
            agent,
            skill: skill.clone(),
            hire: &self.hire,
            // Nobody pays for a guest, whatever credits its account may get.
            budget: self.hire.budget.filter(|_| !self.call.client.is_guest).unwrap_or_default(),
            selection,
            deadline: self.hire.deadline.unwrap_or(engine.now().plus(ttl)),
            lease: context.settings.lease_or(LEASE),
            unfit_agents,
        });
        let order = match self.configuration().push.clone() {
            None => Command::OpenJob(Box::new(task)),
            Some(config) => {
                let webhook = push::webhook(self.call, &id.to_string(), config);
                Command::OpenJobWithWebhook(Box::new(OpenJobWithWebhook { job: task, webhook }))
            }
        };
        match engine.run_once(order, self.repeat.map(|repeat| repeat.0)).await {
            Ok(ran) => self.answer_core(ran.answer, ran.replayed).await,
            Err(Failure::Refused(Refusal::BudgetTooLow { .. } | Refusal::TooFewCredits))
                if self.call.client.is_guest =>
            {
                Ok(self.refuse(&Refusal::GuestCannotPay, &skill, price))
            }
            Err(Failure::Refused(refusal)) if errors::is_of_agent(&refusal) => {
                Ok(self.refuse(&refusal, &skill, price))
            }
            Err(failure) => Err(self.failure(&failure)),
        }
    }

    fn failure(&self, failure: &Failure) -> A2aError {
        match failure {
            Failure::Refused(Refusal::SameIdOtherContent) if self.repeat.is_some() => {
                key_conflict()
            }
            other => errors::from_engine(other),
        }
    }

    /// The skill that is meant, or the agent's answer that none is (R40).
    fn choose_skill(&self, agent: &Agent) -> Result<String, Declined> {
        let skills: Vec<&Skill> = agent.skills_for_other_protocols().collect();
        if let Some(wanted) = &self.hire.skill {
            let is_known = agent.skill(wanted).is_some();
            let none = || self.declined(&Refusal::SkillNotOffered, wanted, None);
            return if is_known { Ok(wanted.clone()) } else { Err(none()) };
        }
        if let [only] = &skills[..] {
            return Ok(only.name.clone());
        }
        if let Some(talks) = skills.iter().find(|skill| skill.name == MESSAGE_SKILL) {
            return Ok(talks.name.clone());
        }
        let Some(first) = skills.first() else {
            return Err(Declined {
                code: "NO_SUCH_SKILL",
                text: "this agent takes no tasks: it has no skills".to_owned(),
                ..Declined::default()
            });
        };
        if agent.home == ID && skills.iter().all(|skill| skill.price == first.price) {
            return Ok(first.name.clone());
        }
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        let text = format!(
            "this agent has several skills: {}; send it again with metadata \
             {{\"{}\":{{\"skill\":\"{}\"}}}}",
            names.join(", "),
            extensions::HIRE,
            first.name
        );
        let skills = Some(string_array(names));
        Err(Declined { code: "CHOOSE_SKILL", text, skills, ..Declined::default() })
    }

    /// Refuses media types that the agent, or else the hub, does not take (R46).
    fn check_content(&self, agent: Option<&Agent>) -> Result<(), A2aError> {
        let modes = agent.map_or_else(directory::hub_modes, directory::input_modes);
        let is_old = self.call.binding.version() == Version::V03;
        // The type of a data part of 0.3 is not stated but implied.
        let is_implied = |part: &Part| is_old && matches!(part.content, PartContent::Data(_));
        let stated = self.params.message.parts.iter().filter(|part| !is_implied(part));
        for media_type in stated.filter_map(|part| part.media_type.as_deref()) {
            if !content::is_type_allowed(&modes, media_type) {
                let text = format!("{media_type} is not accepted; send {}", modes.join(" or "));
                return Err(A2aError::new(Reason::ContentTypeNotSupported, text));
            }
        }
        Ok(())
    }

    /// Goes on with a task: the message is the answer to its question, or one more message.
    async fn go_on(&self, task: &str) -> Result<Answer, A2aError> {
        let (job, meta) = tasks::find(self.call, task).await?;
        let given = self.params.message.context_id.as_deref().filter(|id| !id.is_empty());
        if given.is_some_and(|id| id != meta.context_id) {
            let text = "must be the context of the task, or be left out";
            return Err(A2aError::invalid_field("message.contextId", text));
        }
        let engine = &self.call.context.engine;
        let agent = meta.agent.map(AgentId);
        let agent = agent.and_then(|id| engine.with_world(|world| world.agent(id).cloned()));
        self.check_content(agent.as_deref())?;
        let by = self.call.client.agent;
        let message = self.message_to(&job, &meta);
        let input = content::input_of(&message.parts);
        if let Err(Refusal::InputRejected { reason }) = check_answer(&job, None, &input).await {
            let text = format!("does not fit what the agent asked for: {reason}");
            return Err(A2aError::invalid_field("message.parts", text));
        }
        if let (Some(config), false) = (self.configuration().push.clone(), job.state.is_final()) {
            let webhook = push::webhook(self.call, task, config);
            let order = SetJobWebhook { job: JobRef::Id(job.id), by, webhook };
            let set = engine.run(Command::SetJobWebhook(Box::new(order))).await;
            set.map_err(|failure| push::failure(&failure, "message.taskId"))?;
        }
        let order = Command::SendToWorker(Box::new(SendToWorker {
            job: JobRef::Id(job.id),
            by,
            body: message.write(Version::V1),
            input,
        }));
        match engine.run_once(order, self.repeat.map(|repeat| repeat.0)).await {
            Ok(ran) => self.answer_core(ran.answer, ran.replayed).await,
            Err(Failure::Refused(Refusal::TooManyReports { .. })) => Err(self.too_much()),
            Err(failure) => Err(self.failure(&failure)),
        }
    }

    /// The message with the task that it goes on with.
    fn message_to(&self, job: &Job, meta: &TaskMeta) -> Message {
        Message {
            context_id: Some(meta.context_id.clone()),
            task_id: Some(job.uuid.to_string()),
            ..self.params.message.clone()
        }
    }

    /// The error for a message that its task has no more room for.
    fn too_much(&self) -> A2aError {
        let engine = &self.call.context.engine;
        let bytes = engine.with_world(|world| world.rules.progress.question_bytes);
        // Each message is kept as it came and as the input of its worker.
        let text = format!(
            "must be shorter: after its first message a task takes at most {MESSAGES_MAX} more, of \
             about {} KiB together; begin a new task for what does not fit",
            bytes >> 11
        );
        A2aError::invalid_field("message.parts", text)
    }

    async fn answer_core(&self, answer: CoreAnswer, replayed: bool) -> Result<Answer, A2aError> {
        let CoreAnswer::Job { job, .. } = answer else { return Err(lost()) };
        let meta = TaskMeta::of(&job).ok_or_else(lost)?;
        self.answer_task(job, meta, replayed).await
    }

    /// The task, when its client wants to have it: at once, at the end, or as events.
    async fn answer_task(
        &self,
        mut job: Arc<Job>,
        meta: TaskMeta,
        is_replayed: bool,
    ) -> Result<Answer, A2aError> {
        let uuid = job.uuid;
        if self.is_streaming {
            return Ok(self.stream(job, meta, is_replayed));
        }
        let wait = self.call.context.state.settings.sync_wait;
        let waits = !self.configuration().return_immediately && wait.0 > 0;
        if waits && !job.state.is_final() && job.open_question().is_none() {
            let wait = Duration::from_millis(wait.0.unsigned_abs());
            let ended = self.call.context.engine.wait_until_ended(job.id, wait).await;
            let ended = ended.map_err(|failure| errors::from_engine(&failure))?;
            job = ended.ok_or_else(|| A2aError::task_not_found(&uuid.to_string()))?;
        }
        if let Some(message) = translate::bare_message(&job, &meta).filter(|_| waits) {
            let event = StreamEvent::Message(Box::new(message));
            return Ok(self.sent(SendResult::Event(event), Some(uuid), is_replayed));
        }
        let history_length = self.configuration().history_length;
        let view = TaskView { history_length, ..TaskView::FULL };
        let task = tasks::load_task(self.call, &job, &meta, view).await?;
        let event = StreamEvent::Task(Box::new(task));
        Ok(self.sent(SendResult::Event(event), Some(uuid), is_replayed))
    }

    /// The events of the task since the message, until it ends or asks.
    fn stream(&self, job: Arc<Job>, meta: TaskMeta, is_replayed: bool) -> Answer {
        let start = self.stream_start(&job, &meta);
        let (uuid, history_length) = (job.uuid, self.configuration().history_length);
        let view = StreamView { start, ends_at_question: true, history_length };
        let stream = tasks::stream(self.call, job, meta, view);
        self.sent(SendResult::Stream(Box::new(stream)), Some(uuid), is_replayed)
    }

    fn stream_start(&self, job: &Job, meta: &TaskMeta) -> StreamStart {
        if self.params.message.task_id.as_ref().is_none_or(String::is_empty) {
            return StreamStart::Opening;
        }
        let body = self.message_to(job, meta).write(Version::V1);
        let sent = job.messages.iter().rposition(|known| known.body == body);
        let moment = sent.and_then(|at| Moment::after_message(job, at));
        StreamStart::Snapshot(moment.unwrap_or(Moment::Now))
    }

    fn sent(&self, result: SendResult, job: Option<uuid::Uuid>, is_replayed: bool) -> Answer {
        Answer::Sent(Box::new(Sent { result, job, used_hire: self.hire.is_given, is_replayed }))
    }

    /// A message instead of a task.
    fn answer_with(&self, message: Message) -> Answer {
        let message = Box::new(message);
        let result = if self.is_streaming {
            SendResult::StreamedMessage(message)
        } else {
            SendResult::Event(StreamEvent::Message(message))
        };
        self.sent(result, None, false)
    }

    fn refuse(&self, refusal: &Refusal, skill: &str, price: Option<Credits>) -> Answer {
        let declined = self.declined(refusal, skill, price);
        let price = match refusal {
            Refusal::BudgetTooLow { price } => Some(*price),
            _ => price,
        };
        self.decline(&declined, Some(skill), price)
    }

    /// A refusal as the agent gives it.
    fn declined(&self, refusal: &Refusal, skill: &str, price: Option<Credits>) -> Declined {
        let context = &self.call.context;
        let spendable = context.engine.with_world(|world| {
            let agent = world.agent(self.call.client.agent)?;
            Some(world.owner(agent.owner)?.available)
        });
        let asked = Asked {
            skill,
            price,
            spendable: spendable.unwrap_or_default(),
            at_hub: self.call.agent.is_none(),
            hub_url: &context.hub_url,
        };
        errors::declined(refusal, &asked).unwrap_or_default()
    }

    /// What the agent says instead of taking the task (R44).
    fn decline(&self, declined: &Declined, skill: Option<&str>, price: Option<Credits>) -> Answer {
        let mut parts = vec![Part::text(declined.text.clone())];
        if !declined.violations.is_empty() {
            let violations = string_array(declined.violations.iter().map(String::as_str));
            parts.push(Part::data(ObjectWriter::new().raw("violations", &violations).finish()));
        }
        let after =
            declined.retry_after_seconds.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
        let hire = ObjectWriter::new()
            .text("refused", declined.code)
            .maybe_text("skill", skill)
            .maybe_raw("skills", declined.skills.as_deref())
            .maybe_text("price", price.map(price_text).as_deref())
            .flag("retryable", declined.is_retryable)
            .maybe_integer("retryAfterSeconds", after)
            .finish();
        let message = hub_message(self.call, &self.params.message, parts);
        let metadata = Some(ObjectWriter::new().raw(extensions::HIRE, &hire).finish());
        self.answer_with(Message { metadata, ..message })
    }
}

/// A message that the hub itself writes in answer to another.
pub fn hub_message(call: &Call, to: &Message, parts: Vec<Part>) -> Message {
    let random = call.context.engine.random();
    let context_id = to.context_id.clone().filter(|id| !id.is_empty());
    Message {
        context_id: Some(context_id.unwrap_or_else(|| random.new_uuid().to_string())),
        ..Message::of_agent(random.new_uuid().to_string(), parts)
    }
}

/// How the hub chooses an agent.
fn selection(name: Option<&str>, now: Timestamp) -> Result<Selection, A2aError> {
    Ok(match name.unwrap_or("best") {
        "best" => Selection::BestReputation,
        "cheapest" => Selection::Cheapest,
        "roundRobin" => Selection::RoundRobin,
        "leastBusy" => Selection::LeastOccupied,
        "auction" => Selection::Auction { closes: now.plus(AUCTION_TIME) },
        _ => {
            let field = format!("message.metadata.{}.select", extensions::HIRE);
            let text = "must be best, cheapest, roundRobin, leastBusy or auction";
            return Err(A2aError::invalid_field(&field, text));
        }
    })
}

fn lost() -> A2aError {
    A2aError::new(Reason::InternalError, "internal error; see the hub's log")
}

fn key_conflict() -> A2aError {
    let text = "this Idempotency-Key was used with another message; use a new one";
    A2aError::new(Reason::IdempotencyConflict, text)
}
