//! Deliveries to agents' endpoints, and how their answers are read.

use rialto_core::command::{Command, JobRef};
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::notice::{News, Push};
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{Answer, SendError};
use rialto_engine::delivery::{ANSWER_MAX, Arrived, Courier, Letter, Verdict};

use super::codes::Code;
use super::reply::Reply;
use super::wording::is_over;
use super::{letter, receive, record, work};
use crate::adapter::Floor;

/// Encodes deliveries for agents of this protocol.
pub struct RelayCourier {
    pub floor: Floor,
}

impl Courier for RelayCourier {
    fn letter(&self, engine: &Engine, push: &Push, job: Option<&Job>) -> Option<Letter> {
        let agent = push.to?;
        // A message that was read in the meantime needs no delivery, and neither does an expired
        // one.
        let expired = push.at.plus(self.floor.relay.settings.retention) <= engine.now();
        if expired || engine.read_to(agent) >= push.position || is_over(&push.news, job) {
            return None;
        }
        self.worded(engine, push, job)
    }

    fn worded(&self, engine: &Engine, push: &Push, job: Option<&Job>) -> Option<Letter> {
        let (agent, notice) = (push.to?, push.told());
        let trace = self.floor.relay.traces.of(push.notice).to_string();
        let body = engine.look(|world| {
            let format = world.agent(agent).and_then(|agent| record::format(agent));
            let said = letter::Letter::of(world, &notice, job)?;
            Some(receive::write_annotated(&said.envelope, format, &trace, &said.annotations))
        })?;
        Some(Letter {
            url: push.url.clone(),
            body: body.into(),
            id: trace,
            headers: Vec::new(),
            answer_max: ANSWER_MAX,
        })
    }

    /// An open inbox stream takes precedence over an endpoint (R9).
    fn prefers_streams(&self) -> bool {
        true
    }

    fn verdict(
        &self,
        engine: &Engine,
        push: &Push,
        job: Option<&Job>,
        answer: &Result<Answer, SendError>,
    ) -> Verdict {
        let given = job.filter(|_| matches!(push.news, News::Assigned { .. })).zip(push.to);
        if let Some(((job, worker), said)) = given.zip(could_not(answer)) {
            let order = work::failed(job, worker, &said, engine.now());
            return Verdict { arrived: Arrived::Yes { reply: None }, commands: vec![order] };
        }
        let arrived = match said(answer) {
            Ok(reply) => Arrived::Yes { reply: Some(reply) },
            Err(_) if is_gone(answer) => Arrived::Gone,
            Err((_, why)) => Arrived::No(why),
        };
        let commands = match (&arrived, given) {
            // The worker has the job, and answers it with its own message.
            (Arrived::Yes { .. }, Some((job, worker))) => {
                note_read(engine, worker, push.position);
                vec![Command::Start { job: JobRef::Id(job.id), by: worker }]
            }
            _ => Vec::new(),
        };
        Verdict { arrived, commands }
    }
}

/// Work that was delivered to the endpoint is not repeated in an inbox stream opened later.
fn note_read(engine: &Engine, agent: AgentId, position: u64) {
    if engine.read_to(agent) + 1 == position {
        engine.presented(agent, position);
    }
}

/// A worker's answer that it could not do the work, with any status: a receive endpoint of this
/// protocol reports that with 400 and 500.
fn could_not(answer: &Result<Answer, SendError>) -> Option<work::Failed> {
    let said = |answer: &&Answer| !(300..400).contains(&answer.status) && answer.status != 410;
    let answer = answer.as_ref().ok().filter(said)?;
    let reply = Reply::read(&answer.body)?;
    work::Failed::answered(&reply, answer.status)
}

/// The receiver's own answer (R40), or why the message was not delivered.
pub fn said(answer: &Result<Answer, SendError>) -> Result<String, (Code, String)> {
    let unreachable = |why: String| Err((Code::AgentUnreachable, why));
    match answer {
        Ok(answer) if answer.status == 410 => {
            unreachable("the receiver's endpoint answered 410 Gone and was disabled".to_owned())
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
        // One text for both errors, so that callers cannot probe what the hub's resolver sees.
        Err(SendError::Blocked(_) | SendError::Unreachable(_)) => {
            unreachable("could not connect to the receiver".to_owned())
        }
    }
}

/// Whether an endpoint answered that it is gone (410).
pub fn is_gone(answer: &Result<Answer, SendError>) -> bool {
    answer.as_ref().is_ok_and(|answer| answer.status == 410)
}
