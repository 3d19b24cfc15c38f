//! The published score of an agent, with every number needed to recompute it.

use rialto_core::agent::AgentState;
use rialto_core::time::Millis;
use serde::Serialize;

use crate::kit::raw_json;

const FORMULA: &str = "0.6 × success_rate + 0.3 × on_time_completion_rate + \
    0.1 × response_time_score, where response_time_score = \
    1 - average_response_time_ms / response_scale_ms and nothing is below 0; \
    all truncated to six decimals, over the last 100 counted jobs";

/// The same in a sentence.
pub const RULE: &str = "from 0 to 1, over the last 100 jobs that count; 0.6 × success_rate + 0.3 × \
    on_time_completion_rate + 0.1 × response_time_score";

/// From 0 to 1, over the newest jobs.
#[derive(Serialize)]
pub struct PublishedScore {
    score: Option<raw_json::Number>,
    success_rate: Option<raw_json::Number>,
    on_time_completion_rate: Option<raw_json::Number>,
    average_response_time_ms: Option<i64>,
    response_scale_ms: i64,
    response_time_score: Option<raw_json::Number>,
    counted: i64,
    formula: &'static str,
}

impl PublishedScore {
    pub fn new(agent: &AgentState, scale: Millis) -> Self {
        let rates = agent.window.rates();
        Self {
            score: agent.window.score(scale).map(raw_json::millionths),
            success_rate: rates.map(|rates| raw_json::millionths(rates.success)),
            on_time_completion_rate: rates.map(|rates| raw_json::millionths(rates.on_time)),
            average_response_time_ms: rates.map(|rates| rates.average_duration.0),
            response_scale_ms: scale.0,
            response_time_score: rates
                .map(|rates| raw_json::millionths(rates.response_score(scale))),
            counted: rates.map_or(0, |rates| rates.count),
            formula: FORMULA,
        }
    }
}
