//! What is kept with the assignment of a job while its worker's server is called: enough to go on
//! after a crash without sending anything twice (R99).

use rialto_core::job::Job;
use serde::{Deserialize, Serialize};

use super::StoredInterface;

/// The state of handing a job over, as it is kept with the assignment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoverState {
    /// Where the task is, whatever the agent's card says later.
    pub interface: StoredInterface,
    /// How many messages were sent, or are about to be.
    pub sent: u32,
    /// The message that is about to be sent. It may be there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending: Option<Sending>,
    /// The worker's own ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The requester's messages up to this one, and its answers to questions up to this one, were
    /// sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answers: u32,
    /// The server was asked to push news of the task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub push: bool,
}

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    pub what: Outgoing,
    /// How often it was not found at the server after it may have been sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u32,
}

/// What the hub sends to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outgoing {
    /// The request itself.
    Request,
    /// A message of the requester, by its number.
    Message(u32),
    /// The answer to a question that came by itself, by the question's number.
    Answer(u32),
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl HandoverState {
    /// The state before anything was sent.
    pub fn new(interface: StoredInterface) -> Self {
        Self {
            interface,
            sent: 0,
            sending: None,
            task: None,
            context: None,
            messages: 0,
            answers: 0,
            push: false,
        }
    }

    /// The state that is kept with a job's current assignment.
    pub fn of(job: &Job) -> Option<Self> {
        serde_json::from_str(&job.handover.as_ref()?.state).ok()
    }

    /// As it is kept.
    pub fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// A message is about to be sent, once more if it was tried before.
    pub fn begin(&mut self, what: Outgoing) {
        match &mut self.sending {
            Some(sending) if sending.what == what => {}
            _ => {
                self.sent += 1;
                self.sending = Some(Sending { what, lost: 0 });
            }
        }
    }

    /// The message is there, or is not sent after all.
    pub fn end(&mut self, what: Outgoing) {
        self.sending = None;
        match what {
            Outgoing::Request => {}
            Outgoing::Message(number) => self.messages = number,
            Outgoing::Answer(number) => self.answers = number,
        }
    }

    /// What the worker gets next of what its requester sent after the request.
    pub fn next(&self, job: &Job) -> Option<Outgoing> {
        let of_now = |question: u32| {
            let at = usize::try_from(question).ok()?.checked_sub(1)?;
            job.questions.get(at).filter(|question| question.epoch == job.epoch)
        };
        // Answers to another worker are not for this one.
        let is_for_worker = |answers: Option<u32>| answers.is_none_or(|q| of_now(q).is_some());
        let message = (1..)
            .zip(&job.messages)
            .find(|(number, message)| *number > self.messages && is_for_worker(message.answers));
        let message = message.map(|(number, message)| (message.at, Outgoing::Message(number)));
        let answer = job.current_questions().find_map(|(number, question)| {
            let at = question.answered_at.filter(|_| number > self.answers)?;
            let alone = job.message_that_answers(number).is_none();
            alone.then_some((at, Outgoing::Answer(number)))
        });
        [message, answer].into_iter().flatten().min_by_key(|(at, _)| *at).map(|(_, what)| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> HandoverState {
        HandoverState::new(StoredInterface {
            url: "https://geo.example/a2a".to_owned(),
            binding: "JSONRPC".to_owned(),
            version: "1.0".to_owned(),
            tenant: None,
        })
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let mut state = state();
        state.begin(Outgoing::Message(3));
        state.task = Some("t".to_owned());
        let text = state.write();
        assert_eq!(serde_json::from_str::<HandoverState>(&text).expect("readable"), state);
    }

    #[test]
    fn a_second_attempt_is_the_same_message() {
        let mut state = state();
        state.begin(Outgoing::Request);
        state.begin(Outgoing::Request);
        assert_eq!(state.sent, 1);
        state.end(Outgoing::Request);
        state.begin(Outgoing::Message(1));
        assert_eq!(state.sent, 2);
        state.end(Outgoing::Message(1));
        assert_eq!((state.messages, state.sending), (1, None));
    }
}
