//! Writes the public market records: the result of every order, and the market's own messages.

use rialto_core::job::{Job, State};
use rialto_core::market::{MarketRecorder, MarketStep, RecordContent};
use rialto_core::money::Credits;
use rialto_core::refusal::Refusal;
use serde::{Deserialize, Serialize};

use super::results::{ReadQuery, STORED_ANSWER_MAX, StoredQuery};
use super::wire::outgoing::{OutgoingMessage, TaskNotice};
use super::wire::result;
use super::{ID, OrderError, delivery, directory, errors, task};
use crate::kit::budget::ByteBudget;

/// Writes the market's records.
#[derive(Clone, Copy, Debug)]
pub struct RecordWriter;

/// How the record of one order is written. It travels with the order as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OrderRecord {
    /// The sender's address.
    pub from: String,
    pub reply: OrderReply,
    /// Whether the record is stored. A dry-run's is not, so its answer is written in full.
    pub is_stored: bool,
}

/// How an order is answered if it succeeds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum OrderReply {
    /// An agent was registered.
    Registered { agent_id: String },
    /// A task was assigned, or its auction opened.
    Task,
    /// A result was delivered.
    Result { task_id: String },
    /// A task was declined.
    Declined { task_id: String, agent_id: String },
    /// An offer was accepted into the auction.
    Offer { task_id: String, agent_id: String, fee: Credits, reward: Credits },
    /// The queued tasks were dispatched again.
    Dispatched,
    /// An answer known before the order ran, and whether it is public. `ask` is set if the answer can
    /// be computed again.
    Answer { messages: Vec<OutgoingMessage>, shown: bool, ask: Option<ReadQuery> },
    /// The order cannot succeed, and why.
    Error(String),
}

impl MarketRecorder for RecordWriter {
    fn write(&self, step: &MarketStep<'_, '_>) -> RecordContent {
        let Some(order) = step.order else {
            let messages = delivery::notice_messages(step.draft, &step.notices);
            return written(step, &messages, true);
        };
        match (serde_json::from_str::<OrderRecord>(order.reply), order.result) {
            (Ok(record), Ok(_)) => record.done(step),
            (Ok(record), Err(refusal)) => record.refused(step, refusal),
            (Err(error), _) => failed(&format!("the reply cannot be written: {error}")),
        }
    }
}

impl From<OrderError> for OrderReply {
    fn from(error: OrderError) -> Self {
        Self::Error(error.to_string())
    }
}

/// The result of an order whose answer is known in advance, without a market step.
pub fn answer_result(messages: &[OutgoingMessage], first_message: u64) -> String {
    result::write_numbered_result(messages, first_message)
}

fn written(step: &MarketStep<'_, '_>, messages: &[OutgoingMessage], shown: bool) -> RecordContent {
    RecordContent {
        text: result::write_numbered_result(messages, step.first_message),
        messages: messages.len() as u64,
        shown: shown && !messages.is_empty(),
        question: None,
    }
}

/// Whether a task's auction is still open after the step.
fn is_open(step: &MarketStep<'_, '_>, task_id: &str) -> bool {
    let is_it = |job: &&Job| task::task_id(job) == task_id;
    let touched = step.draft.changed_jobs().find(is_it);
    touched.is_some_and(|job| job.state == State::Negotiating)
}

fn failed(text: &str) -> RecordContent {
    RecordContent {
        text: result::write_error_result(text),
        messages: 0,
        shown: false,
        question: None,
    }
}

impl OrderRecord {
    /// The text that travels with the order.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("its fields are text, numbers and lists")
    }

    /// Writes the reply first, then the messages to others (D24).
    fn done(&self, step: &MarketStep<'_, '_>) -> RecordContent {
        let to = &self.from;
        let mut ask = None;
        let (mut messages, shown) = match &self.reply {
            OrderReply::Registered { agent_id } => {
                (vec![OutgoingMessage::registered(to, agent_id)], true)
            }
            OrderReply::Task | OrderReply::Result { .. } => (Vec::new(), true),
            OrderReply::Declined { task_id, agent_id } => {
                // Until the auction closes, a decline is secret (R77).
                let shown = !is_open(step, task_id);
                (vec![OutgoingMessage::task_declined(to, task_id, agent_id)], shown)
            }
            OrderReply::Offer { task_id, agent_id, .. } => {
                let word = TaskNotice::OfferReceived { agent_id };
                // Offers are secret (R77).
                (vec![OutgoingMessage::notice(to, task_id, word)], false)
            }
            OrderReply::Dispatched => {
                ask = Some(&ReadQuery::Dispatched);
                (vec![self.dispatched(step)], true)
            }
            OrderReply::Answer { messages, shown, ask: asked } => {
                ask = asked.as_ref();
                (messages.clone(), *shown)
            }
            OrderReply::Error(text) => return failed(text),
        };
        let others = delivery::notice_messages(step.draft, &step.notices);
        if let ([reply], Some(ask)) = (messages.as_slice(), ask.filter(|_| self.is_stored))
            && reply.data.as_ref().is_some_and(|data| data.len() > STORED_ANSWER_MAX)
        {
            return self.without_reply(step, ask, others, shown);
        }
        messages.extend(others);
        written(step, &messages, shown)
    }

    /// Writes the messages to others, and stores the query in place of a long reply.
    fn without_reply(
        &self,
        step: &MarketStep<'_, '_>,
        query: &ReadQuery,
        others: Vec<OutgoingMessage>,
        shown: bool,
    ) -> RecordContent {
        let number = step.first_message + 1;
        let question = StoredQuery { from: self.from.clone(), number, query: query.clone() };
        let question = serde_json::to_string(&question).ok();
        let after = MarketStep { first_message: number, notices: Vec::new(), ..*step };
        let RecordContent { text, messages, shown, .. } = written(&after, &others, shown);
        RecordContent { text, messages: messages + 1, shown, question }
    }

    /// The list of tasks that still wait after the dispatch.
    fn dispatched(&self, step: &MarketStep<'_, '_>) -> OutgoingMessage {
        let draft = step.draft;
        let ours = |job: &&Job| job.state == State::Queued && job.request.origin == ID;
        let mut budget = ByteBudget::new(directory::PAGE_BYTES);
        let (mut shown, mut last, mut next) = (Vec::new(), 0, None);
        for job in draft.world.queued_jobs().filter_map(|job| draft.job(job.id)).filter(ours) {
            if !budget.take(job.request.input.len() + job.request.meta.len()) {
                next = Some(last);
                break;
            }
            shown.push(task::task_record(draft, job, false).write());
            last = job.id.0;
        }
        OutgoingMessage::dispatched(&self.from, shown).with_next_cursor(next)
    }

    fn refused(&self, step: &MarketStep<'_, '_>, refusal: &Refusal) -> RecordContent {
        if let OrderReply::Answer { .. } = &self.reply {
            // Another request has read it meanwhile, so there is nothing left to return.
            return written(step, &[], false);
        }
        match errors::from_refusal(self, step, refusal) {
            Some(fault) => failed(&fault.to_string()),
            None => failed(&refusal.to_string()),
        }
    }
}
