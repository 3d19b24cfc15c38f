//! `GET /v1/agents/{id}/reputation`: both scores of an agent, with every number needed to recompute
//! them. It does not reveal requesters, jobs or prices.

use axum::extract::State;
use rialto_core::agent::Desk;
use rialto_core::id::OutcomeId;
use rialto_core::reputation::{Outcome, Score};
use rialto_core::time::Millis;
use rialto_engine::{Engine, Failure};
use rialto_protocols::adapter::Floor;
use rialto_protocols::kit::raw_json;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::v1::response::{Answered, ok};
use crate::v1::agent_names;
use crate::v1::problem::Problem;
use crate::v1::auth::{Part, is_registered};

/// Outcomes per read, and reads per response: many outcomes may not count.
const SLICE: usize = 16;
const SLICES_MAX: usize = 64;

const AFTER_SUCCESS: &str = "old + 2.0 × contractor/100";
const AFTER_FAILURE: &str = "old - 3.0 × 1.5";
const OF_WINDOW: &str = "0.6 × success_rate + 0.3 × on_time_completion_rate + \
    0.1 × response_time_score, where response_time_score = \
    1 - average_response_time_ms / response_scale_ms and nothing is below 0; \
    all truncated to six decimals, over the last 100 counted jobs";

#[derive(Serialize)]
struct Reputation {
    agent: u64,
    registry: Stepwise,
    openclaw: Windowed,
}

/// From 0 to 100, one step per job.
#[derive(Serialize)]
struct Stepwise {
    score: Box<RawValue>,
    successes: u64,
    failures: u64,
    /// The newest step; `null` before the first.
    last: Option<Step>,
}

#[derive(Serialize)]
struct Step {
    before: Box<RawValue>,
    /// The requester's score at that time.
    hirer: Box<RawValue>,
    ok: bool,
    /// Clamped to 0 through 100, whatever the formula gives.
    after: Box<RawValue>,
    formula: &'static str,
}

/// From 0 to 1, over the newest jobs.
#[derive(Serialize)]
struct Windowed {
    score: Option<Box<RawValue>>,
    success_rate: Option<Box<RawValue>>,
    on_time_completion_rate: Option<Box<RawValue>>,
    average_response_time_ms: Option<i64>,
    response_scale_ms: i64,
    response_time_score: Option<Box<RawValue>>,
    counted: i64,
    formula: &'static str,
}

impl Step {
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

impl Windowed {
    fn of(desk: &Desk, scale: Millis) -> Self {
        let rates = desk.window.rates();
        Self {
            score: desk.window.score(scale).map(raw_json::millionths),
            success_rate: rates.map(|rates| raw_json::millionths(rates.success)),
            on_time_completion_rate: rates.map(|rates| raw_json::millionths(rates.on_time)),
            average_response_time_ms: rates.map(|rates| rates.average.0),
            response_scale_ms: scale.0,
            response_time_score: rates.map(|rates| raw_json::millionths(rates.swift(scale))),
            counted: rates.map_or(0, |rates| rates.count),
            formula: OF_WINDOW,
        }
    }
}

/// Public, so that every caller can check the score.
pub async fn show(State(floor): State<Floor>, Part(name): Part) -> Answered {
    let desk = floor.engine.look(|world| {
        let id = agent_names::find(world, &name, "agent")?;
        let desk = is_registered(world, id).then(|| world.desk(id).cloned()).flatten();
        desk.ok_or_else(Problem::not_found)
    })?;
    let standing = desk.standing;
    let last = match standing.settled() {
        0 => None,
        _ => last_step(&floor.engine, desk.last_outcome).await?,
    };
    let registry = Stepwise {
        score: raw_json::millionths(standing.score.millionths()),
        successes: standing.successes,
        failures: standing.failures,
        last,
    };
    let openclaw = Windowed::of(&desk, floor.openclaw.settings.response_scale);
    Ok(ok(&Reputation { agent: desk.agent.0, registry, openclaw }))
}

/// The newest outcome that counted, and the score before it.
async fn last_step(engine: &Engine, newest: Option<OutcomeId>) -> Result<Option<Step>, Failure> {
    let (mut at, mut counted) = (newest, None);
    for _ in 0..SLICES_MAX {
        if at.is_none() {
            break;
        }
        let slice = engine.outcomes_of(at, SLICE).await?;
        for outcome in slice.rows {
            match counted {
                Some(last) => return Ok(Some(Step::of(&last, outcome.score_after))),
                None if outcome.counted => counted = Some(outcome),
                None => {}
            }
        }
        at = slice.next.map(OutcomeId);
    }
    Ok(counted.map(|last| Step::of(&last, Score::START)))
}
