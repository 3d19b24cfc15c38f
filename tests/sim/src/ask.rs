//! One command on its way to the hub, and the outcome its caller gets.

use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::envelope::{Envelope, Proof};
use rialto_core::idempotency::Receipt;
use rialto_core::refusal::Refusal;
use rialto_engine::{Failure, RunResult};
use uuid::Uuid;

use crate::dice::Dice;

/// One command on its way.
#[derive(Clone, Debug)]
pub struct Ask(pub Envelope);

impl Ask {
    pub fn command(&self) -> &Command {
        &self.0.command
    }

    /// Whether a repeat must have no second effect.
    pub fn is_repeatable(&self) -> bool {
        let by_credential = matches!(self.0.proof, Proof::Credential | Proof::Key(_));
        let known_again = !by_credential
            || match self.command() {
                Command::OpenJob(_)
                | Command::OpenJobWithWebhook(_)
                | Command::ReportResult(_)
                | Command::Ack { .. } => true,
                Command::Pay(order) => order.id_given,
                Command::SendMessage(order) => order.identity.is_some(),
                _ => false,
            };
        known_again || self.0.idempotency.is_some()
    }

    /// A repeat of the command: with the caller's ids, and fresh ones of the hub.
    pub fn again(mut self, dice: &mut Dice) -> Self {
        let fresh = Uuid::from_u128(u128::from(dice.any()) << 64 | u128::from(dice.any()));
        match &mut self.0.command {
            Command::OpenJob(order) => order.uuid = fresh,
            Command::OpenJobWithWebhook(order) => order.job.uuid = fresh,
            Command::RequestJob(order) => order.uuid = fresh,
            _ => {}
        }
        self
    }
}

impl<C: Into<Envelope>> From<C> for Ask {
    fn from(command: C) -> Self {
        Self(command.into())
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
