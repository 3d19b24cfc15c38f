//! Writes the public market records: the result of every order, and the market's own messages.

use rialto_core::job::{Job, State};
use rialto_core::market::{Scribe, Step, Written};
use rialto_core::money::Credits;
use rialto_core::refusal::Refusal;

use super::fault::Fault;
use super::outgoing::{Notice, Outgoing};
use super::people;
use super::question::{Ask, KEPT_MAX, Question};
use super::{board, result, task, word};
use crate::kit::budget::ByteBudget;

/// Writes the records of events that no order caused.
#[derive(Clone, Copy, Debug)]
pub struct Board;

/// Writes the record of one order.
#[derive(Clone, Debug)]
pub struct Clerk {
    /// The sender's address.
    pub from: String,
    pub reply: Reply,
    /// Whether the record is stored. A dry-run's is not, so its answer is written in full.
    pub kept: bool,
}

/// How an order is answered if it succeeds.
#[derive(Clone, Debug)]
pub enum Reply {
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
    /// An answer known before the order ran, and whether it is public. `query` is set if the answer
    /// can be computed again.
    Known { messages: Vec<Outgoing>, shown: bool, ask: Option<Ask> },
    /// The order cannot succeed.
    Fault(Fault),
}

impl Scribe for Board {
    fn write(&self, step: &Step<'_, '_>) -> Written {
        written(step, word::of_all(step.draft, &step.notices), true)
    }
}

impl Scribe for Clerk {
    fn write(&self, step: &Step<'_, '_>) -> Written {
        match step.outcome {
            Some(Err(refusal)) => self.refused(step, refusal),
            _ => self.done(step),
        }
    }
}

/// The result of an order whose answer is known in advance, without a market step.
pub fn known(messages: &[Outgoing], first_message: u64) -> String {
    result::sent(&numbered(messages, first_message))
}

fn numbered(messages: &[Outgoing], first: u64) -> Vec<String> {
    (first + 1..).zip(messages).map(|(number, message)| message.write(number)).collect()
}

fn written(step: &Step<'_, '_>, messages: Vec<Outgoing>, shown: bool) -> Written {
    let texts = numbered(&messages, step.first_message);
    let shown = shown && !texts.is_empty();
    Written { text: result::sent(&texts), messages: texts.len() as u64, shown, question: None }
}

/// Whether a task's auction is still open after the step.
fn is_open(step: &Step<'_, '_>, task_id: &str) -> bool {
    let is_it = |job: &&Job| task::id(job) == task_id;
    let touched = step.draft.touched_jobs().find(is_it);
    touched.is_some_and(|job| job.state == State::Negotiating)
}

fn failed(text: &str) -> Written {
    Written { text: result::error(text), messages: 0, shown: false, question: None }
}

impl Clerk {
    /// Writes the reply first, then the messages to others (D24).
    fn done(&self, step: &Step<'_, '_>) -> Written {
        let to = &self.from;
        let mut ask = None;
        let (mut messages, shown) = match &self.reply {
            Reply::Registered { agent_id } => (vec![Outgoing::registered(to, agent_id)], true),
            Reply::Task | Reply::Result { .. } => (Vec::new(), true),
            Reply::Declined { task_id, agent_id } => {
                // Until the auction closes, a decline is secret (R77).
                let shown = !is_open(step, task_id);
                (vec![Outgoing::task_declined(to, task_id, agent_id)], shown)
            }
            Reply::Offer { task_id, agent_id, .. } => {
                let word = Notice::OfferReceived { agent_id };
                // Offers are secret (R77).
                (vec![Outgoing::notice(to, task_id, word)], false)
            }
            Reply::Dispatched => {
                ask = Some(&Ask::Dispatched);
                (vec![self.dispatched(step)], true)
            }
            Reply::Known { messages, shown, ask: asked } => {
                ask = asked.as_ref();
                (messages.clone(), *shown)
            }
            Reply::Fault(fault) => return failed(&fault.to_string()),
        };
        let others = word::of_all(step.draft, &step.notices);
        if let ([reply], Some(ask)) = (messages.as_slice(), ask.filter(|_| self.kept))
            && reply.data.as_ref().is_some_and(|data| data.len() > KEPT_MAX)
        {
            return self.without_reply(step, ask, others, shown);
        }
        messages.extend(others);
        written(step, messages, shown)
    }

    /// Writes the messages to others, and stores the query in place of a long reply.
    fn without_reply(
        &self,
        step: &Step<'_, '_>,
        ask: &Ask,
        others: Vec<Outgoing>,
        shown: bool,
    ) -> Written {
        let number = step.first_message + 1;
        let question = Question { from: self.from.clone(), number, ask: ask.clone() };
        let question = serde_json::to_string(&question).ok();
        let after = Step { first_message: number, notices: Vec::new(), ..*step };
        let Written { text, messages, shown, .. } = written(&after, others, shown);
        Written { text, messages: messages + 1, shown, question }
    }

    /// The list of tasks that still wait after the dispatch.
    fn dispatched(&self, step: &Step<'_, '_>) -> Outgoing {
        let draft = step.draft;
        let ours = |job: &&Job| job.state == State::Queued && job.origin == super::ID;
        let mut budget = ByteBudget::new(board::PAGE_BYTES);
        let (mut shown, mut last, mut next) = (Vec::new(), 0, None);
        for job in draft.world.queue().filter_map(|job| draft.job(job.id)).filter(ours) {
            if !budget.take(job.input.len() + job.meta.len()) {
                next = Some(last);
                break;
            }
            shown.push(task::task(draft, job, false).write());
            last = job.id.0;
        }
        Outgoing::dispatched(&self.from, shown).with_next(next)
    }

    fn refused(&self, step: &Step<'_, '_>, refusal: &Refusal) -> Written {
        if let Reply::Known { .. } = &self.reply {
            // Another request has read it meanwhile, so there is nothing left to return.
            return written(step, Vec::new(), false);
        }
        match self.fault(step, refusal) {
            Some(fault) => failed(&fault.to_string()),
            None => failed(&refusal.to_string()),
        }
    }

    /// The error text of the market for a refusal, depending on the order.
    fn fault(&self, step: &Step<'_, '_>, refusal: &Refusal) -> Option<Fault> {
        let address = self.from.clone();
        match (&self.reply, refusal) {
            (
                Reply::Registered { agent_id },
                Refusal::IdTaken
                | Refusal::OwnerTaken
                | Refusal::LooksTaken
                | Refusal::IdentityDiffers,
            ) => Some(Fault::NotOwner { address, agent: agent_id.clone() }),
            (Reply::Task, Refusal::TooFewCredits) => {
                Some(Fault::Insufficient { funds: self.funds(step), address })
            }
            (
                Reply::Task,
                Refusal::NoSuchSkill
                | Refusal::SkillNotOffered
                | Refusal::NoSuchAgent
                | Refusal::Offline
                | Refusal::AtCapacity
                | Refusal::TooFast
                | Refusal::OutOfOrder
                | Refusal::GuestCannotPay
                | Refusal::BudgetTooLow { .. }
                | Refusal::BridgeLoop { .. },
            ) => Some(Fault::NoAgents),
            (Reply::Result { task_id }, Refusal::WrongState { is }) if is.is_final() => {
                Some(Fault::AlreadySent(task_id.clone()))
            }
            (Reply::Offer { task_id, .. }, Refusal::WrongState { .. }) => {
                Some(Fault::AuctionClosed(task_id.clone()))
            }
            (Reply::Offer { fee, reward, .. }, Refusal::BudgetTooLow { .. }) => {
                Some(Fault::OfferTooHigh { offer: *fee, reward: *reward })
            }
            (
                Reply::Offer { task_id, .. } | Reply::Declined { task_id, .. },
                Refusal::TooManyOffers { .. },
            ) => Some(Fault::AlreadyOffered(task_id.clone())),
            (
                Reply::Result { .. } | Reply::Declined { .. } | Reply::Offer { .. },
                Refusal::NotYours | Refusal::WrongState { .. },
            ) => Some(Fault::NotAssigned),
            _ => None,
        }
    }

    fn funds(&self, step: &Step<'_, '_>) -> Credits {
        let name = people::owner_name(&self.from);
        let owner = step.draft.owner_named(&name).and_then(|id| step.draft.owner(id));
        // An owner who registers with this very order will have the welcome grant.
        owner.map_or(step.draft.world.rules.welcome_grant, |owner| owner.available)
    }
}
