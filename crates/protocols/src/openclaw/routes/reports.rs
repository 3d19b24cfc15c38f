//! Accepts what agents report about themselves: status and claimed reputation.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;

use super::{about, failed};
use crate::adapter::Floor;
use crate::openclaw::answers::{ClaimRecorded, StatusTaken};
use crate::openclaw::codes::Code;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::{self, Message, Reputation, StatusUpdate};
use crate::openclaw::proof::{Known, Sent, listed};
use crate::openclaw::say::{self, Answered, Refused};
use crate::openclaw::state::Status;
use crate::openclaw::{WORDS_MAX, record, translate};

/// `POST /status`.
pub async fn post_status(State(floor): State<Floor>, known: Known, Sent(body): Sent) -> Answered {
    let message = message::read(&body).map_err(|bad| Refused::new(&floor, bad))?;
    status(&floor, known, &message).await
}

/// `POST /reputation`.
pub async fn post_reputation(
    State(floor): State<Floor>,
    known: Known,
    Sent(body): Sent,
) -> Answered {
    let message = message::read(&body).map_err(|bad| Refused::new(&floor, bad))?;
    reputation(&floor, known, &message).await
}

/// A report is kept in memory and sent to all watchers, so its size is limited.
fn short(raw: &str) -> Result<(), Failure> {
    match raw.len() > WORDS_MAX {
        true => {
            let text = format!("a status or reputation has at most {WORDS_MAX} bytes");
            Err(Failure::new(Code::TooLarge, text))
        }
        false => Ok(()),
    }
}

/// The reporting agent: it must be registered (R37), and only it may report for itself.
fn reporter(floor: &Floor, known: Known, named: uuid::Uuid) -> Result<AgentId, Failure> {
    floor.engine.look(|world| {
        listed(world, named).ok_or_else(|| Failure::not_found("agent"))?;
        known.agent(world, named)
    })
}

/// Handles a status update.
pub async fn status(floor: &Floor, known: Known, message: &Message<StatusUpdate>) -> Answered {
    let (said, id) = (&message.said, message.correlation_id);
    short(&message.raw).map_err(|bad| about(floor, bad, id))?;
    let agent = reporter(floor, known, said.agent_id).map_err(|bad| about(floor, bad, id))?;
    let warnings = strange(floor, agent, said.previous);
    let words: Arc<str> = message.raw.as_ref().into();
    let told = translate::condition(&said.report, words.clone());
    let ran = floor.engine.run_once(Command::Stand { agent, told }, known.0.once).await;
    let answer = ran.map_err(|failure| failed(floor, &failure, id))?.answer;
    let applied = match answer {
        Answer::Agent { desk, .. } => desk.said.as_ref().is_some_and(|now| now.words == words),
        _ => false,
    };
    let common = say::common(floor, id);
    let (status, agent_id) = (StatusTaken::STATUS.to_owned(), said.agent_id.to_string());
    let taken = StatusTaken::new(common, status, agent_id, applied, said.is_late(), warnings);
    Ok(say::json(200, &taken))
}

/// Contradictions to the hub's own data (R36).
fn strange(floor: &Floor, agent: AgentId, previous: Option<Status>) -> Vec<String> {
    let Some(previous) = previous else { return Vec::new() };
    let held = floor.engine.look(|world| {
        let said = world.desk(agent).and_then(|desk| record::said(desk));
        let counts = world.agent(agent).map(|agent| record::effective(world, agent));
        (counts, said.map(|report| report.status))
    });
    match held {
        (Some(counts), said) if counts != previous && said != Some(previous) => {
            vec![format!("previous_status is {previous}, but the hub has {counts}")]
        }
        _ => Vec::new(),
    }
}

/// Handles a reputation update. It is kept as a claim of the agent (R48).
pub async fn reputation(floor: &Floor, known: Known, message: &Message<Reputation>) -> Answered {
    let (said, id) = (&message.said, message.correlation_id);
    short(&message.raw).map_err(|bad| about(floor, bad, id))?;
    let agent = reporter(floor, known, said.agent_id).map_err(|bad| about(floor, bad, id))?;
    let command = Command::Boast { agent, words: message.raw.as_ref().into() };
    let ran = floor.engine.run_once(command, known.0.once).await;
    ran.map_err(|failure| failed(floor, &failure, id))?;
    let scale = floor.openclaw.settings.response_scale;
    let hub = floor.engine.look(|world| record::score(world.desk(agent)?, scale));
    let (common, agent_id) = (say::common(floor, id), said.agent_id.to_string());
    Ok(say::json(200, &ClaimRecorded::of(common, agent_id, said.score, hub)))
}
