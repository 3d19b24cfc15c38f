//! Messages that are about jobs: a message to an agent of another protocol becomes a job for it, and a
//! message in the conversation of a job is its worker's result.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::response::Response;
use rialto_core::agent::Agent;
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{
    AnswerQuestion, AskQuestion, Command, JobRef, OpenJob, ReportResult, SendToWorker, UnfitAgent,
    WorkerReport,
};
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, DEFAULT_PRIORITY, Job, Policy, Requester, Selection, State};
use rialto_core::job::{NamedWorker, Queueing, RequesterOptions};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::refusal::Refusal;
use rialto_core::time::Millis;
use rialto_core::world::World;
use rialto_engine::Failure as EngineFailure;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::RelayContext;
use super::auth::AgentOrOperator;
use super::errors::{
    self, ErrorResponse, HandlerResult, engine_error, error_response, json_response, with_turn_hint,
};
use super::settings::FailedStatus;
use super::translate::{self, error_text};
use super::wire::reply::{self, Reply, ReplyStatus};
use super::wire::response::{success_response, success_response_with};
use super::wire::send::SendRequest;
use super::wire::work::WorkTerms;
use super::{Code, DeliveryOutcome, DeliveryReport, Envelope, Failure, ID, InvalidBody};
use crate::adapter::delivery_result::is_refusal_status;
use crate::adapter::input_check::{self, InputCheck};
use crate::adapter::open_job::set_job_header;
use crate::adapter::question_view::check_answer;
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;

/// How long an agent of another protocol may stay silent about a job, and how long a job lives,
/// unless the operator sets it.
const LEASE: Millis = Millis::minutes(10);
/// The minimum number of decimals of an amount in a sentence.
const DECIMALS: usize = 2;

/// Opens a job for a message to an agent of another protocol; `None` if it is only a message.
pub async fn open_job(
    context: &RelayContext,
    by: AgentOrOperator,
    from: AgentId,
    worker: &Arc<Agent>,
    send: &SendRequest<'_>,
    delay: Option<Millis>,
) -> Result<Option<Response>, ErrorResponse> {
    let rejected = |failure: Failure| error_response(context, failure).into_rejected_message();
    let json = ijson::read(send.envelope.raw().as_bytes());
    let json = json.map_err(|unreadable| rejected(InvalidBody::from(unreadable).into()))?;
    let wish = WorkTerms::read(&json).map_err(|bad| rejected(bad.into()))?;
    if by.agent.is_none() {
        // Only the agent itself may spend its credits; the operator may write for it.
        return match wish.skill {
            None => Ok(None),
            Some(_) => Err(rejected(operator_hires_nobody())),
        };
    }
    let Some(skill) = wish.skill_for(worker) else { return Ok(None) };
    let order = JobOrder { context, from, worker, skill, terms: &wish, send, delay };
    order.run(by).await.map(Some)
}

fn operator_hires_nobody() -> Failure {
    let text = "the operator may send messages as an agent but not open jobs for it; remove skill";
    Failure { field: Some("/envelope/skill".into()), ..Failure::new(Code::Forbidden, text) }
}

/// A job to be opened for a worker.
struct JobOrder<'o> {
    context: &'o RelayContext,
    from: AgentId,
    worker: &'o Arc<Agent>,
    skill: &'o str,
    terms: &'o WorkTerms<'o>,
    send: &'o SendRequest<'o>,
    /// How long the loop guard holds it back.
    delay: Option<Millis>,
}

impl JobOrder<'_> {
    async fn run(&self, by: AgentOrOperator) -> HandlerResult {
        let context = self.context;
        let input = self.terms.input(&self.send.envelope, self.worker.skill(self.skill));
        let wanted = InputCheck {
            origin: ID,
            skill_names: &[self.skill],
            agent: Some(self.worker.id),
            input: &input,
        };
        let unfit = input_check::find_unfit_agents(context, &wanted).await;
        let flaw = self.flaw();
        // An input that is unfit now is unfit later too.
        let may_wait = flaw.is_none() && unfit.is_empty();
        let order = self.open(input, unfit, may_wait);
        match context.engine.run_once(order, by.once).await {
            Ok(ran) => {
                let Answer::Job { job, repeated } = ran.answer else {
                    return Err(engine_error(context, EngineFailure::Fault).into_rejected_message());
                };
                let held = self.delay.is_some() && !repeated;
                Ok(job_response(context, job.uuid, outcome(&job), repeated || ran.replayed, held))
            }
            Err(EngineFailure::Refused(refusal)) if is_the_agents(&refusal) => {
                let detail = flaw.unwrap_or_else(|| words(&refusal, self.terms.budget));
                Ok(answered_no(context, &detail))
            }
            Err(failure) => {
                Err(error_response(context, with_turn_hint(errors::from_engine(failure)))
                    .into_rejected_message())
            }
        }
    }

    /// A problem that waiting for the worker would not solve.
    fn flaw(&self) -> Option<String> {
        let Some(skill) = self.worker.skill(self.skill) else {
            return Some(no_such_skill(self.worker, self.skill));
        };
        let budget = self.terms.budget.unwrap_or(Credits::ZERO);
        (skill.price > budget).then(|| costs(skill.price))
    }

    fn open(&self, input: String, unfit: Vec<UnfitAgent>, may_wait: bool) -> Command {
        let (context, envelope) = (self.context, &self.send.envelope);
        let (now, lease) = (context.engine.now(), context.settings.lease_or(LEASE));
        let uuid = context.engine.random().new_uuid();
        let away = context.engine.with_world(|world| !world.is_online(self.worker.id, now));
        Command::OpenJob(Box::new(OpenJob {
            uuid,
            origin: ID,
            foreign_id: name(self.send).unwrap_or_else(|| uuid.to_string()),
            content: Digest::of(&[envelope.raw().as_bytes()]),
            requester: Requester::Agent(self.from),
            skill: self.skill.to_owned(),
            alternative_skills: Vec::new(),
            input,
            budget: self.terms.budget.unwrap_or(Credits::ZERO),
            price_step: PriceStep::FINEST,
            selection: Selection::Direct(self.worker.id),
            unfit_agents: unfit,
            // The sender is notified of the end in any case, so it can be answered at once.
            policy: Policy {
                // A refusal is sent at once, without the delay.
                requester: RequesterOptions {
                    answered_at_once: true,
                    ..RequesterOptions::default()
                },
                queueing: Queueing { when_unmatched: away && may_wait, ..Queueing::default() },
                named_worker: NamedWorker {
                    not_before: self.delay.filter(|_| may_wait).map(|delay| now.plus(delay)),
                    ..NamedWorker::default()
                },
                ..Policy::default()
            },
            deadline: now.plus(lease),
            lease,
            wanted_by: None,
            priority: DEFAULT_PRIORITY,
            callback: None,
            input_error: None,
            meta: envelope.raw().to_owned(),
            hops: 0,
            request_id: None,
        }))
    }
}

/// What identifies a repeat: the same turn of the same conversation between the same two agents
/// (R47).
fn name(send: &SendRequest<'_>) -> Option<String> {
    let Envelope { sender, conversation_id, turn_number, .. } = &send.envelope;
    let (conversation, turn) = conversation_id.zip(*turn_number)?;
    let (sender, receiver) = (sender.canonical(), send.receiver.canonical());
    Some(format!("{sender}/{receiver}/{conversation}/{turn}"))
}

/// How far the work got, as the outcome of a message.
fn outcome(job: &Job) -> DeliveryOutcome<'static> {
    match job.state {
        State::Open | State::Queued | State::Negotiating | State::Deferred { .. } => {
            DeliveryOutcome::Queued
        }
        _ => DeliveryOutcome::Delivered { reply: reply::OK },
    }
}

/// Whether the refusal is the agent's, and not the hub's.
fn is_the_agents(refusal: &Refusal) -> bool {
    use Refusal::*;
    matches!(
        refusal,
        NoSuchSkill
            | SkillNotOffered
            | BudgetTooLow { .. }
            | TooFewCredits
            | OverLimit { .. }
            | Offline
            | AtCapacity
            | AtRateLimit
            | AgentBroken
            | GuestCannotPay
            | InputRejected { .. }
            | DeadlineTooSoon
            | BridgeLoop { .. }
    )
}

fn words(refusal: &Refusal, budget: Option<Credits>) -> String {
    match refusal {
        Refusal::BudgetTooLow { price } => costs(*price),
        Refusal::TooFewCredits => {
            let budget = budget.unwrap_or(Credits::ZERO).to_text(DECIMALS);
            format!("not enough credits: {budget} must be held for this job")
        }
        other => other.to_string(),
    }
}

/// How a priced skill is paid for.
fn costs(price: Credits) -> String {
    let price = price.to_text(DECIMALS);
    format!("costs {price} credits: add \"budget\": {price} to the envelope")
}

fn no_such_skill(worker: &Agent, skill: &str) -> String {
    let known: Vec<&str> =
        worker.skills_for_other_protocols().map(|one| one.name.as_str()).collect();
    if known.is_empty() {
        return format!("the agent has no skill {skill:?} and offers no other");
    }
    format!("the agent has no skill {skill:?}; it offers {}", known.join(", "))
}

/// The response to the sender of a message that is work; its trace id is the job's id.
pub fn job_response(
    context: &RelayContext,
    job: Uuid,
    outcome: DeliveryOutcome<'_>,
    repeated: bool,
    loop_guard: bool,
) -> Response {
    context.state.delivery_counts.count(&outcome);
    let trace_id = job.to_string();
    let delivery = DeliveryReport { outcome, trace_id: &trace_id, loop_guard };
    let body = success_response_with(context.engine.now(), delivery.size_hint(), |out| {
        delivery.write(out)
    });
    let mut answer = json_response(delivery.status(), body);
    set_job_header(&mut answer, job);
    if repeated {
        answer.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    answer
}

/// The agent's refusal, written for it: nothing was stored (docs/requirements.md, section 6).
fn answered_no(context: &RelayContext, detail: &str) -> Response {
    let reply = error_text(detail);
    // Clients read a trace id from every 200; this one cannot be looked up.
    let trace = context.engine.random().new_uuid();
    let data =
        format!(r#"{{"delivery":"rejected","receiver_response":{reply},"trace_id":"{trace}"}}"#);
    let now = context.engine.now();
    if context.state.settings.failed_status == FailedStatus::Ok {
        return json_response(200, success_response(&data, now));
    }
    let failure = Failure::new(Code::AdaptationFailed, detail.to_owned());
    // As in every answer whose cause is on the receiver's side.
    let failure = Failure { status: 502, data: Some(data.into()), ..failure };
    json_response(failure.status, failure.write(now))
}

/// The job whose conversation an envelope belongs to, if it can be one.
pub fn job_of_conversation(envelope: &Envelope<'_>) -> Option<Uuid> {
    let id = envelope.conversation_id?;
    id.parse::<Hyphenated>().ok().map(Hyphenated::into_uuid)
}

/// Whether a job is an agent's work, or was until it was reassigned.
pub fn is_work_of(job: &Job, agent: AgentId) -> bool {
    job.worker() == Some(agent) || job.candidates.declined.contains(&agent)
}

/// Whether a message is for the job's requester. A message to a third party under the job's id is
/// not a result; a guest has no address.
pub fn is_for_requester(job: &Job, to: Option<AgentId>) -> bool {
    match job.request.requester {
        Requester::Agent(agent) => to.is_none_or(|to| to == agent),
        Requester::Guest(_) => to.is_none(),
    }
}

/// Takes an envelope as a worker's report: its next message to the requester in that conversation is
/// the result (X10), unless it is marked as a question.
pub async fn take_report(
    context: &RelayContext,
    by: AgentOrOperator,
    worker: AgentId,
    job: &Job,
    send: &SendRequest<'_>,
) -> HandlerResult {
    if job.worker() != Some(worker) {
        return Err(error_response(context, over(&job.state)).into_rejected_message());
    }
    let envelope = &send.envelope;
    if send.question {
        let question = AskQuestion {
            job: JobRef::Id(job.id),
            by: worker,
            epoch: None,
            text: envelope.original_text.to_owned(),
            schema: None,
        };
        return run(context, by, job, Command::AskQuestion(Box::new(question))).await;
    }
    let reply = Reply::read(envelope.original_text.as_bytes());
    let order = match reply.and_then(|reply| WorkerError::read(&reply, envelope.raw())) {
        Some(error) => report_failure(job, worker, &error),
        None => succeeded(job, worker, envelope),
    };
    run(context, by, job, order.into()).await
}

/// Runs a command about a job of this conversation, and answers the sender of its message.
async fn run(
    context: &RelayContext,
    by: AgentOrOperator,
    job: &Job,
    command: Command,
) -> HandlerResult {
    match context.engine.run_once(command, by.once).await {
        Ok(ran) => {
            let repeated = ran.replayed || matches!(ran.answer, Answer::Job { repeated: true, .. });
            let outcome = DeliveryOutcome::Delivered { reply: reply::OK };
            Ok(job_response(context, job.uuid, outcome, repeated, false))
        }
        Err(EngineFailure::Refused(Refusal::WrongState { state })) => {
            Err(error_response(context, over(&state)).into_rejected_message())
        }
        Err(failure) => Err(engine_error(context, failure).into_rejected_message()),
    }
}

/// Takes a requester's message as the answer to its worker's question: its next message to the
/// worker in the conversation of the job. The same message again is a repeat. While the worker waits
/// until the requester has signed in elsewhere, the message only reaches the worker. `None` if there
/// is no such question.
pub async fn answer_question(
    context: &RelayContext,
    by: AgentOrOperator,
    from: AgentId,
    to: AgentId,
    send: &SendRequest<'_>,
) -> Result<Option<Response>, ErrorResponse> {
    // Only the requester itself answers, and not the operator in its name.
    let Some(conversation) = by.agent.and(send.envelope.conversation_id) else { return Ok(None) };
    let json = ijson::read(send.envelope.raw().as_bytes()).ok();
    let terms = json.as_ref().and_then(|json| WorkTerms::read(json).ok());
    let Some(terms) = terms.filter(|terms| terms.skill.is_none()) else { return Ok(None) };
    let input = terms.input(&send.envelope, None);
    let is_asked = |job: &&Arc<Job>| {
        let last = job.questions.last().filter(|question| question.epoch == job.epoch);
        let is_known = || job.messages.iter().any(|sent| sent.body == send.envelope.raw());
        let fits = last.is_some_and(|last| match &last.answer {
            _ if last.signs_in => job.open_question().is_some() || is_known(),
            None => true,
            Some(answer) => *answer == input,
        });
        fits && job.worker() == Some(to) && translate::conversation(job).id == conversation
    };
    let asked = |world: &World| world.jobs_requested_by(from).filter(is_asked).last().cloned();
    let Some(job) = context.engine.with_world(asked) else { return Ok(None) };
    if job.questions.last().is_some_and(|last| last.signs_in) {
        return send_to_worker(context, by, from, &job, send, input).await.map(Some);
    }
    let question = translate::answered_question(&job, send.envelope.turn_number);
    if let Err(refusal) = check_answer(&job, question, &input).await {
        return Err(engine_error(context, refusal.into()).into_rejected_message());
    }
    let answer = AnswerQuestion { job: JobRef::Id(job.id), by: from, question, input };
    run(context, by, &job, Command::AnswerQuestion(Box::new(answer))).await.map(Some)
}

/// Takes a requester's message for its worker, once.
async fn send_to_worker(
    context: &RelayContext,
    by: AgentOrOperator,
    from: AgentId,
    job: &Job,
    send: &SendRequest<'_>,
    input: String,
) -> HandlerResult {
    let body = send.envelope.raw();
    if job.messages.iter().any(|message| message.body == body) {
        let outcome = DeliveryOutcome::Delivered { reply: reply::OK };
        return Ok(job_response(context, job.uuid, outcome, true, false));
    }
    let body = body.to_owned();
    let order = SendToWorker { job: JobRef::Id(job.id), by: from, body, input };
    run(context, by, job, Command::SendToWorker(Box::new(order))).await
}

/// The job has its result, or no longer belongs to the sender.
fn over(is: &State) -> Failure {
    let refusal = Refusal::WrongState { state: *is };
    let hint = "the job of this conversation_id has ended or was taken back; to write about \
                something else, use another conversation_id";
    Failure {
        field: Some("/envelope/conversation_id".into()),
        hint: Some(hint.into()),
        ..errors::from_engine(refusal.into())
    }
}

fn succeeded(job: &Job, by: AgentId, envelope: &Envelope<'_>) -> WorkerReport {
    let output = ObjectWriter::new().text("text", envelope.original_text).finish();
    WorkerReport::Result(Box::new(ReportResult {
        ok: true,
        output: Some(output),
        ..report(job, by, Digest::of(&[envelope.raw().as_bytes()]))
    }))
}

/// A worker's report that it could not do the work.
#[derive(Clone, Debug)]
pub struct WorkerError {
    code: String,
    detail: String,
    /// It did not accept the work.
    refused: bool,
    /// The digest of its whole report.
    content: Digest,
}

impl WorkerError {
    /// The error in a reply, if it has one; `whole` is the text that identifies a repeat.
    pub fn read(reply: &Reply<'_>, whole: &str) -> Option<Self> {
        let ReplyStatus::Error { code, detail } = reply.status() else { return None };
        let refused =
            matches!(Code::read(code), Some(Code::InvalidEnvelope | Code::UnsupportedVersion));
        let content = Digest::of(&[whole.as_bytes()]);
        Some(Self { code: code.clone(), detail: detail.clone(), refused, content })
    }

    /// An endpoint's answer to work that was posted to it. A status that refuses the request is a
    /// refusal, unless the endpoint says explicitly that the work failed.
    pub fn from_http_answer(reply: &Reply<'_>, status: u16) -> Option<Self> {
        if let Some(said) = Self::read(reply, reply.raw()) {
            let failed = Code::read(&said.code) == Some(Code::AdaptationFailed);
            let refused = said.refused || is_refusal_status(status) && !failed;
            return Some(Self { refused, ..said });
        }
        // A 5xx without an error of this protocol means that the worker was not reached, and is
        // retried.
        let refused = (400..500).contains(&status) && *reply.status() == ReplyStatus::Other;
        refused.then(|| Self {
            code: String::new(),
            detail: format!("the agent's endpoint answered HTTP {status}"),
            refused: true,
            content: Digest::of(&[reply.raw().as_bytes()]),
        })
    }
}

/// A worker that could not read the work, or did not accept it, has not failed; everything else is
/// a failure (B16). Its own text is kept (B7).
pub fn report_failure(job: &Job, by: AgentId, said: &WorkerError) -> WorkerReport {
    let refused = said.refused;
    // The next worker gets it at once, and this one's text is not passed on.
    if refused && job.policy.reassignment.when_declined {
        return WorkerReport::Declined { job: JobRef::Id(job.id), by };
    }
    let text = [said.detail.as_str(), &said.code].into_iter().find(|text| !text.is_empty());
    let text = text.unwrap_or("the agent could not complete the job").to_owned();
    let cause = if refused { Cause::Policy } else { Cause::Execution };
    WorkerReport::Result(Box::new(ReportResult {
        ok: false,
        cause: Some(cause),
        text: Some(text),
        ..report(job, by, said.content)
    }))
}

fn report(job: &Job, by: AgentId, content: Digest) -> ReportResult {
    ReportResult {
        job: JobRef::Id(job.id),
        by,
        epoch: None,
        ok: false,
        is_final: true,
        knows_work: true,
        no_response: false,
        output: None,
        // The agreed price is paid.
        cost: Credits::MAX,
        took: None,
        cause: None,
        text: None,
        meta: None,
        content,
    }
}
