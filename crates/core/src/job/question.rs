//! Questions: a worker asks its requester for more input, and the requester answers.
//!
//! While a question is open the job waits in [`State::InputRequired`]: the hold stays, the lease
//! rests, and the worker is not to blame for the time. Questions and answers are in the job's row,
//! because a worker that restarts needs them all.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::progress::ProgressLimits;
use super::{Cause, Job, Requester, State, end, progress, work};
use crate::answer::Answer;
use crate::command::{AnswerQuestion, AskQuestion};
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
}

impl Question {
    /// The size of its content.
    pub fn content_bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.text.len() + length(&self.schema) + length(&self.answer)
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

    /// The size of all questions and answers.
    pub fn question_bytes(&self) -> usize {
        self.questions.iter().map(Question::content_bytes).sum()
    }
}

/// The worker asks the requester for more input.
pub fn ask(draft: &mut Draft<'_>, order: AskQuestion) -> Result<Answer, Refusal> {
    let mut job = work::find_assigned_job(draft, &order.job, order.by)?;
    work::ensure_epoch(&job, order.epoch)?;
    work::ensure_at_work(&job)?;
    let Some(requester) = answering_agent(draft, &job) else {
        return Err(Refusal::RequesterCannotAnswer);
    };
    let AskQuestion { text, schema, .. } = order;
    let (epoch, asked_at) = (job.epoch, draft.now);
    job.questions.push(Question { epoch, text, schema, asked_at, answer: None, answered_at: None });
    ensure_within_limits(draft, &job)?;
    message::knows_work(draft, order.by);
    progress::begin(draft, &mut job);
    let until = draft.now.plus(draft.world.rules.answer_timeout).min(job.request.deadline);
    job.state = State::InputRequired { until };
    // A requester that waits for the end is answered that it has to act first.
    job.pending = true;
    draft.add_event(Event::JobInputRequested { job: job.id });
    let url = end::notify_url(draft, &job);
    let question = last_number(&job);
    let news = NoticeKind::InputRequested { job: job.id, question, until };
    draft.notify(Some(requester), news, url);
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

/// The number of the newest question; 0 if there is none.
fn last_number(job: &Job) -> u32 {
    u32::try_from(job.questions.len()).unwrap_or(u32::MAX)
}

fn ensure_within_limits(draft: &Draft<'_>, job: &Job) -> Result<(), Refusal> {
    let ProgressLimits { questions: max, question_bytes, .. } = draft.world.rules.progress;
    let is_within = last_number(job) <= max && job.question_bytes() <= question_bytes;
    if is_within { Ok(()) } else { Err(Refusal::TooManyReports { max }) }
}

/// The requester answers the open question, and the worker goes on with a new lease. The same
/// answer to an answered question is a repeat.
pub fn answer(draft: &mut Draft<'_>, order: AnswerQuestion) -> Result<Answer, Refusal> {
    let job = work::find_job(draft, &order.job).filter(|job| job.is_requested_by(order.by));
    let mut job = job.ok_or(Refusal::NotFound)?;
    let number = order.question.unwrap_or_else(|| last_number(&job));
    let asked = (1..).zip(&job.questions).find(|(asked, _)| *asked == number);
    if asked.is_some_and(|(_, question)| question.answer.as_ref() == Some(&order.input)) {
        return Ok(Answer::Job { job: Arc::new(job), repeated: true });
    }
    let is_open = job.open_question().is_some_and(|(open, _)| open == number);
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

/// The requester did not answer in time. The job expires; that is not the worker's failure.
pub fn expire(draft: &mut Draft<'_>, job: Job) -> Result<Answer, Refusal> {
    let asked = job.open_question().map(|(_, question)| question.text.as_str());
    let text = format!("the requester did not answer in time: {}", asked.unwrap_or_default());
    end::fail(draft, job, State::Expired, Cause::NoAnswer, Some(text))
}
