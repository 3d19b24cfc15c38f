//! One command on its way to the hub, and the outcome its caller gets.

use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::idempotency::Receipt;
use rialto_core::refusal::Refusal;
use rialto_core::{market, signed_order};
use rialto_engine::{Failure, Idempotency, RunResult};
use uuid::Uuid;

use crate::dice::Dice;

/// One command, and the key by which a repeat of it is recognised.
#[derive(Clone, Debug)]
pub struct Ask {
    pub command: Command,
    pub once: Option<Idempotency>,
}

impl Ask {
    /// Whether a repeat must have no second effect.
    pub fn is_repeatable(&self) -> bool {
        let known_again = match &self.command {
            Command::OpenJob(_) | Command::ExecuteSigned(_) | Command::SubmitToMarket(_) => true,
            Command::Pay(order) => order.id_given,
            Command::SendMessage(order) => order.identity.is_some(),
            Command::ReportResult(_) | Command::Ack { .. } => true,
            _ => false,
        };
        known_again || self.once.is_some()
    }

    /// A repeat of the command: with the caller's ids, and fresh ones of the hub.
    pub fn again(mut self, dice: &mut Dice) -> Self {
        let fresh = Uuid::from_u128(u128::from(dice.any()) << 64 | u128::from(dice.any()));
        match &mut self.command {
            Command::OpenJob(order) => order.uuid = fresh,
            Command::ExecuteSigned(order) => {
                if let signed_order::SignedOrder::RequestJob(ask) = &mut order.order {
                    ask.uuid = fresh;
                }
            }
            Command::SubmitToMarket(order) => {
                if let market::MarketOrder::OpenJob(opening) = &mut order.order {
                    opening.order.uuid = fresh;
                }
            }
            _ => {}
        }
        self
    }
}

impl From<Command> for Ask {
    fn from(command: Command) -> Self {
        Self { command, once: None }
    }
}

/// The outcome that the model requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    Now(Answer),
    Before(Receipt),
    Refused(Refusal),
    StillRunning,
}

/// The outcome of a command.
#[derive(Clone, Debug)]
pub enum Outcome {
    Answered {
        answer: Answer,
        replayed: bool,
    },
    Refused(Refusal),
    /// The first request is answered, and its answer is saved for repeats.
    StillRunning,
    /// The disk was full: nothing has happened.
    Full,
    /// The outcome is unknown.
    Lost,
}

impl Outcome {
    pub fn of(ran: Result<RunResult, Failure>) -> Self {
        match ran {
            Ok(RunResult { answer, replayed }) => Self::Answered { answer, replayed },
            Err(Failure::Refused(refusal)) => Self::Refused(refusal),
            Err(Failure::StillRunning) => Self::StillRunning,
            Err(Failure::StoreFull) => Self::Full,
            Err(Failure::Unavailable) => Self::Lost,
            Err(Failure::Fault) => panic!("a rule panicked"),
        }
    }

    /// Whether it is the required outcome.
    pub fn is(&self, due: &Due) -> bool {
        match (self, due) {
            (Self::Answered { answer, replayed: false }, Due::Now(expected)) => answer == expected,
            (Self::Answered { answer, replayed: true }, Due::Before(receipt)) => {
                answer.receipt() == *receipt
            }
            (Self::Refused(refusal), Due::Before(Receipt::Refused(first))) => refusal == first,
            (Self::Refused(refusal), Due::Refused(expected)) => refusal == expected,
            (Self::StillRunning, Due::StillRunning) => true,
            _ => false,
        }
    }
}
