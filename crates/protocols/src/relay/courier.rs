//! What is posted to agents' endpoints, and what their answers mean.

use rialto_core::job::Job;
use rialto_core::notice::{News, Push};
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{Answer, SendError};
use rialto_engine::delivery::{ANSWER_MAX, Arrived, Courier, Letter, Verdict};

use super::codes::Code;
use super::reply::Reply;
use super::{ID, receive, record, stored};
use crate::face::Floor;

/// Words for agents of this protocol.
pub struct RelayCourier {
    pub floor: Floor,
}

impl Courier for RelayCourier {
    fn letter(&self, engine: &Engine, push: &Push, _job: Option<&Job>) -> Option<Letter> {
        let News::Message { words, body, .. } = &push.news else { return None };
        let agent = push.to.filter(|_| *words == ID)?;
        // What has been read in the meantime needs no second way, and what has expired none at all.
        let expired = push.at.plus(self.floor.relay.settings.retention) <= engine.now();
        if expired || engine.read_to(agent) >= push.position {
            return None;
        }
        let format =
            engine.look(|world| world.agent(agent).and_then(|agent| record::format(agent)));
        let trace = self.floor.relay.traces.of(push.notice).to_string();
        let (envelope, _) = stored::read(body);
        Some(Letter {
            url: push.url.clone(),
            body: receive::write(envelope, format, &trace).into(),
            id: trace,
            headers: Vec::new(),
            answer_max: ANSWER_MAX,
        })
    }

    fn verdict(
        &self,
        _engine: &Engine,
        _push: &Push,
        _job: Option<&Job>,
        answer: &Result<Answer, SendError>,
    ) -> Verdict {
        let arrived = match said(answer) {
            Ok(reply) => Arrived::Yes { reply: Some(reply) },
            Err(_) if is_gone(answer) => Arrived::Gone,
            Err((_, why)) => Arrived::No(why),
        };
        Verdict { arrived, commands: Vec::new() }
    }
}

/// The receiver's own answer (R40), or why the message did not arrive.
pub fn said(answer: &Result<Answer, SendError>) -> Result<String, (Code, String)> {
    let unreachable = |why: String| Err((Code::AgentUnreachable, why));
    match answer {
        Ok(answer) if answer.status == 410 => {
            unreachable("the receiver's endpoint says it is gone and is switched off".to_owned())
        }
        Ok(answer) if answer.status >= 500 || (300..400).contains(&answer.status) => {
            unreachable(format!("the receiver answered HTTP {}", answer.status))
        }
        Ok(answer) => match Reply::read(&answer.body) {
            Some(reply) => Ok(reply.raw().to_owned()),
            None => unreachable("the receiver's answer is not a JSON object".to_owned()),
        },
        Err(SendError::TimedOut) => {
            Err((Code::Timeout, "the receiver did not answer in time".to_owned()))
        }
        Err(SendError::Broken(_)) => {
            unreachable("the receiver's answer could not be read".to_owned())
        }
        // One text for both, so that nobody can probe what the hub's resolver sees.
        Err(SendError::Blocked(_) | SendError::Unreachable(_)) => {
            unreachable("the receiver could not be connected to".to_owned())
        }
    }
}

/// Whether an endpoint switched itself off.
pub fn is_gone(answer: &Result<Answer, SendError>) -> bool {
    answer.as_ref().is_ok_and(|answer| answer.status == 410)
}
