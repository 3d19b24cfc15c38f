//! The published score of an agent, with every number needed to recompute it.

use rialto_core::agent::AgentState;
use rialto_core::id::OutcomeId;
use rialto_core::reputation::{Outcome, Score};
use rialto_engine::{Engine, Failure};
use serde::Serialize;

use crate::kit::raw_json;

/// Outcomes per read, and reads per response: many outcomes may not count.
const SLICE: usize = 16;
const SLICES_MAX: usize = 64;

const AFTER_SUCCESS: &str = "old + 2.0 × contractor/100";
const AFTER_FAILURE: &str = "old - 3.0 × 1.5";
/// The same in a sentence.
pub const RULE: &str = "from 0 to 100, beginning at 50; a success adds 2.0 × the requester's score / 100, a failure \
    takes 4.5; last is the newest step";

/// From 0 to 100, one step per job.
#[derive(Serialize)]
pub struct PublishedScore {
    score: raw_json::Number,
    successes: u64,
    failures: u64,
    /// The newest step; `null` before the first.
    last: Option<ScoreStep>,
}

#[derive(Serialize)]
struct ScoreStep {
    before: raw_json::Number,
    /// The requester's score at that time.
    hirer: raw_json::Number,
    ok: bool,
    /// Clamped to 0 through 100, whatever the formula gives.
    after: raw_json::Number,
    formula: &'static str,
}

impl PublishedScore {
    pub async fn load(engine: &Engine, agent: &AgentState) -> Result<Self, Failure> {
        let standing = agent.standing;
        let last = if standing.settled_jobs() == 0 {
            None
        } else {
            load_last_step(engine, agent.last_outcome).await?
        };
        Ok(Self {
            score: raw_json::millionths(standing.score.millionths()),
            successes: standing.successes,
            failures: standing.failures,
            last,
        })
    }
}

impl ScoreStep {
    fn of(outcome: &Outcome, before: Score) -> Self {
        Self {
            before: raw_json::millionths(before.millionths()),
            hirer: raw_json::millionths(outcome.hirer_score.millionths()),
            ok: outcome.ok,
            after: raw_json::millionths(outcome.score_after.millionths()),
            formula: if outcome.ok { AFTER_SUCCESS } else { AFTER_FAILURE },
        }
    }
}

/// The newest outcome that counted, and the score before it.
async fn load_last_step(
    engine: &Engine,
    newest: Option<OutcomeId>,
) -> Result<Option<ScoreStep>, Failure> {
    let (mut at, mut counted) = (newest, None);
    for _ in 0..SLICES_MAX {
        if at.is_none() {
            break;
        }
        let slice = engine.outcomes_of(at, SLICE).await?;
        for outcome in slice.rows {
            match counted {
                Some(last) => return Ok(Some(ScoreStep::of(&last, outcome.score_after))),
                None if outcome.counted => counted = Some(outcome),
                None => {}
            }
        }
        at = slice.next.map(OutcomeId);
    }
    Ok(counted.map(|last| ScoreStep::of(&last, Score::START)))
}
