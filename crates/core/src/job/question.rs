//! Questions: a worker asks its requester for more input, and the requester answers.
//!
//! While a question is open the job waits in [`State::InputRequired`]: the hold stays, the lease
//! rests, and the worker is not to blame for the time. Questions and answers are in the job's row,
//! because a worker that restarts needs them all.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::progress::ProgressLimits;
use super::{Cause, Job, JobWebhook, Original, Requester, State, end, progress, work};
use crate::answer::Answer;
use crate::command::{AnswerQuestion, AskQuestion, JobRef, SendToWorker};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::message;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// A question of a worker, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The assignment in which it was asked.
    pub epoch: u32,
    pub text: String,
    /// JSON Schema of the answer, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    pub asked_at: Timestamp,
    /// JSON text, exactly as received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
    /// The requester has to sign in elsewhere. The hub carries no credential, and the worker goes on
    /// by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signs_in: bool,
    /// The question in the worker's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,
}

/// A message of the requester to its worker, after the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequesterMessage {
    pub at: Timestamp,
    /// The number of the question that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<u32>,
    /// How many entries the log of the job had before it.
    pub after: u32,
    /// JSON text, in the format of the requester's protocol.
    pub body: String,
    /// For the worker: JSON text in no protocol's format.
    pub input: String,
}

/// The most messages of a requester about one job after its request.
pub const MESSAGES_MAX: usize = 100;

impl Question {
    /// The size of its content.
    pub fn content_bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let original = self.original.as_ref().map_or(0, Original::content_bytes);
        self.text.len() + length(&self.schema) + length(&self.answer) + original
    }
}

impl Job {
    /// The question that waits for an answer, and its number, counted from 1.
    pub fn open_question(&self) -> Option<(u32, &Question)> {
        let waits = matches!(self.state, State::InputRequired { .. });
        (1..).zip(&self.questions).last().filter(|_| waits)
    }

    /// The questions of the current worker with their numbers. Another worker must not see them.
    pub fn current_questions(&self) -> impl Iterator<Item = (u32, &Question)> {
        (1..).zip(&self.questions).filter(|(_, question)| question.epoch == self.epoch)
    }

    /// The requester's messages that answer no question, with their numbers, counted from 1.
    pub fn plain_messages(&self) -> impl Iterator<Item = (u32, &RequesterMessage)> {
        (1..).zip(&self.messages).filter(|(_, message)| message.answers.is_none())
    }

    /// The message that answered a question, if the answer came as a message.
    pub fn message_that_answers(&self, question: u32) -> Option<&RequesterMessage> {
        self.messages.iter().find(|message| message.answers == Some(question))
    }

    /// The number of questions asked so far, which is the number of the newest.
    pub fn question_count(&self) -> u32 {
        u32::try_from(self.questions.len()).unwrap_or(u32::MAX)
    }

    /// The size of all questions, answers and messages, and of the webhooks.
    pub fn dialogue_bytes(&self) -> usize {
        let sent = self.messages.iter().map(|message| message.body.len() + message.input.len());
        let urls = self.webhooks.iter().map(JobWebhook::content_bytes);
        self.questions.iter().map(Question::content_bytes).chain(sent).chain(urls).sum()
    }
}

/// The worker asks the requester for more input, or waits until it has signed in elsewhere.
pub fn ask(draft: &mut Draft<'_>, order: AskQuestion, signs_in: bool) -> Result<Answer, Refusal> {
    let mut job = work::find_assigned_job(draft, &order.job, order.by)?;
    work::ensure_epoch(&job, order.epoch)?;
    work::ensure_at_work(&job)?;
    let AskQuestion { text, schema, .. } = order;
    let Some(requester) = answering_agent(draft, &job) else {
        return end_without_answer(draft, job, &text);
    };
    let (epoch, asked_at) = (job.epoch, draft.now);
    let (answer, answered_at) = (None, None);
    let original = draft.worker_original.take();
    job.questions.push(Question {
        epoch,
        text,
        schema,
        asked_at,
        answer,
        answered_at,
        signs_in,
        original,
    });
    ensure_within_limits(draft, &job)?;
    message::knows_work(draft, order.by);
    progress::begin(draft, &mut job);
    // A sign-in awaits no answer: only the deadline ends the wait.
    let answered_by = draft.now.plus(draft.world.rules.answer_timeout);
    let deadline = job.request.deadline;
    let until = if signs_in { deadline } else { answered_by.min(deadline) };
    job.state = State::InputRequired { until };
    // A requester that waits for the end is answered that it has to act first.
    job.pending = true;
    draft.add_event(Event::JobInputRequested { job: job.id });
    let question = job.question_count();
    if !job.policy.requester.follows_log {
        let url = end::notify_url(draft, &job);
        let news = NoticeKind::InputRequested { job: job.id, question, until };
        draft.notify(Some(requester), news, url);
    }
    Ok(work::put(draft, job))
}

/// The requester, if it can answer: a registered agent with a key. Agents that only sign have no
/// message for an answer, and a guest cannot prove that it is the requester.
fn answering_agent(draft: &Draft<'_>, job: &Job) -> Option<AgentId> {
    let Requester::Agent(agent) = job.request.requester else { return None };
    let has_key = draft.world.keys_of(agent).any(|key| key.is_valid(draft.now));
    let is_active = draft.agent(agent).is_some_and(|agent| agent.active);
    Some(agent).filter(|_| has_key && is_active)
}

/// The requester has no way to answer, so the job ends at once, or goes to another worker. That is
/// not the worker's failure.
fn end_without_answer(draft: &mut Draft<'_>, job: Job, question: &str) -> Result<Answer, Refusal> {
    if let Some(worker) = job.worker() {
        message::knows_work(draft, worker);
    }
    if job.policy.reassignment.when_failed {
        return work::reassign_after_question(draft, job, question);
    }
    let text = Some(question.to_owned());
    end::fail(draft, job, State::Failed, Cause::NoAnswer, text)
}

fn ensure_within_limits(draft: &Draft<'_>, job: &Job) -> Result<(), Refusal> {
    let ProgressLimits { questions: max, question_bytes, .. } = draft.world.rules.progress;
    let is_within = job.question_count() <= max && job.dialogue_bytes() <= question_bytes;
    if is_within { Ok(()) } else { Err(Refusal::TooManyReports { max }) }
}

/// The requester answers the open question, and the worker goes on with a new lease. The same
/// answer to an answered question is a repeat.
pub fn answer(draft: &mut Draft<'_>, order: AnswerQuestion) -> Result<Answer, Refusal> {
    let job = work::find_job(draft, &order.job).filter(|job| job.is_requested_by(order.by));
    let mut job = job.ok_or(Refusal::NotFound)?;
    let number = order.question.unwrap_or_else(|| job.question_count());
    let asked = (1..).zip(&job.questions).find(|(asked, _)| *asked == number);
    if asked.is_some_and(|(_, question)| question.answer.as_ref() == Some(&order.input)) {
        return Ok(Answer::Job { job: Arc::new(job), repeated: true });
    }
    let is_open = job.open_question().is_some_and(|(open, _)| open == number);
    if is_open && asked.is_some_and(|(_, question)| question.signs_in) {
        return Err(Refusal::AnsweredElsewhere);
    }
    let (Some(question), true) = (job.questions.last_mut(), is_open) else {
        return Err(Refusal::WrongState { state: job.state });
    };
    question.answer = Some(order.input);
    question.answered_at = Some(draft.now);
    ensure_within_limits(draft, &job)?;
    job.state = State::Running;
    progress::renew_lease(draft, &mut job);
    draft.add_event(Event::JobInputProvided { job: job.id });
    if let Some(worker) = job.worker() {
        let url = draft.agent(worker).and_then(|agent| agent.delivery_url());
        let news = NoticeKind::InputProvided { job: job.id, epoch: job.epoch, question: number };
        draft.notify(Some(worker), news, url);
    }
    Ok(work::put(draft, job))
}

/// The requester sends its worker a message. It answers the open question, if there is one.
pub fn send_to_worker(draft: &mut Draft<'_>, order: SendToWorker) -> Result<Answer, Refusal> {
    let job = work::find_job(draft, &order.job).filter(|job| job.is_requested_by(order.by));
    let mut job = job.ok_or(Refusal::NotFound)?;
    if job.state.is_final() {
        return Err(Refusal::WrongState { state: job.state });
    }
    let SendToWorker { body, input, by, .. } = order;
    let (at, after) = (draft.now, job.progress.reports);
    let open = job.open_question().filter(|(_, question)| !question.signs_in);
    let answers = open.map(|(number, _)| number);
    job.messages.push(RequesterMessage { at, answers, after, body, input: input.clone() });
    if job.messages.len() > MESSAGES_MAX {
        return Err(Refusal::TooManyReports { max: MESSAGES_MAX as u32 });
    }
    ensure_within_limits(draft, &job)?;
    if answers.is_some() {
        let wanted = JobRef::Id(job.id);
        draft.put_job(job);
        return answer(draft, AnswerQuestion { job: wanted, by, question: answers, input });
    }
    if let Some(worker) = job.active_worker() {
        if message::is_inbox_full(draft, worker) {
            return Err(Refusal::InboxFull);
        }
        let number = u32::try_from(job.messages.len()).unwrap_or(u32::MAX);
        notify_message(draft, &job, worker, number);
    }
    Ok(work::put(draft, job))
}

/// Tells a worker of a message of the requester, by its number.
pub fn notify_message(draft: &mut Draft<'_>, job: &Job, worker: AgentId, number: u32) {
    let url = draft.agent(worker).and_then(|agent| agent.delivery_url());
    let news = NoticeKind::RequesterMessage { job: job.id, epoch: job.epoch, number };
    draft.notify(Some(worker), news, url);
}

/// The requester did not answer in time. The job expires; that is not the worker's failure.
pub fn expire(draft: &mut Draft<'_>, job: Job) -> Result<Answer, Refusal> {
    let text = match job.open_question() {
        Some((_, question)) if question.signs_in => {
            format!("the requester did not sign in in time: {}", question.text)
        }
        Some((_, question)) => format!("the requester did not answer in time: {}", question.text),
        None => "the requester did not answer in time".to_owned(),
    };
    end::fail(draft, job, State::Expired, Cause::NoAnswer, Some(text))
}
