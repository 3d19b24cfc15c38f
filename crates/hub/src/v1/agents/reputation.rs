//! `GET /v1/agents/{id}/reputation`: both scores of an agent, with every number needed to recompute
//! them. It does not reveal requesters, jobs or prices.

use axum::extract::State;
use rialto_core::agent::AgentState;
use rialto_core::id::OutcomeId;
use rialto_core::reputation::{Outcome, Score};
use rialto_core::time::Millis;
use rialto_engine::{Engine, Failure};
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::PathParam;
use rialto_protocols::kit::raw_json;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::v1::agent_names;
use crate::v1::auth::is_registered;
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, ok_response};

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
struct ReputationView {
    agent: u64,
    registry: RegistryScore,
    openclaw: OpenclawScore,
}

/// From 0 to 100, one step per job.
#[derive(Serialize)]
struct RegistryScore {
    score: Box<RawValue>,
    successes: u64,
    failures: u64,
    /// The newest step; `null` before the first.
    last: Option<ScoreStep>,
}

#[derive(Serialize)]
struct ScoreStep {
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
struct OpenclawScore {
    score: Option<Box<RawValue>>,
    success_rate: Option<Box<RawValue>>,
    on_time_completion_rate: Option<Box<RawValue>>,
    average_response_time_ms: Option<i64>,
    response_scale_ms: i64,
    response_time_score: Option<Box<RawValue>>,
    counted: i64,
    formula: &'static str,
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

impl OpenclawScore {
    fn of(agent_state: &AgentState, scale: Millis) -> Self {
        let rates = agent_state.window.rates();
        Self {
            score: agent_state.window.score(scale).map(raw_json::millionths),
            success_rate: rates.map(|rates| raw_json::millionths(rates.success)),
            on_time_completion_rate: rates.map(|rates| raw_json::millionths(rates.on_time)),
            average_response_time_ms: rates.map(|rates| rates.average_duration.0),
            response_scale_ms: scale.0,
            response_time_score: rates
                .map(|rates| raw_json::millionths(rates.response_score(scale))),
            counted: rates.map_or(0, |rates| rates.count),
            formula: OF_WINDOW,
        }
    }
}

/// Public, so that every caller can check the score.
pub async fn show_reputation(
    State(context): State<HubContext>,
    PathParam(name): PathParam,
) -> HandlerResult {
    let agent_state = context.engine.with_world(|world| {
        let id = agent_names::find_agent(world, &name, "agent")?;
        let agent_state =
            is_registered(world, id).then(|| world.agent_state(id).cloned()).flatten();
        agent_state.ok_or_else(Problem::not_found)
    })?;
    let standing = agent_state.standing;
    let last = match standing.settled_jobs() {
        0 => None,
        _ => load_last_step(&context.engine, agent_state.last_outcome).await?,
    };
    let registry = RegistryScore {
        score: raw_json::millionths(standing.score.millionths()),
        successes: standing.successes,
        failures: standing.failures,
        last,
    };
    let openclaw = OpenclawScore::of(&agent_state, context.openclaw.settings.response_scale);
    Ok(ok_response(&ReputationView { agent: agent_state.agent.0, registry, openclaw }))
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
