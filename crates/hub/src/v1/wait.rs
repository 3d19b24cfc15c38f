//! Waiting: whoever asks may be answered once there is something to tell.

use std::time::Duration;

use rialto_core::id::AgentId;
use rialto_engine::Engine;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::query::Query;

/// The longest an answer may be waited for, in seconds.
const WAIT_MAX: i64 = 30;

/// `?wait=`: how long the caller wants to wait, in seconds; not at all when nothing is said.
pub fn wanted(query: &Query) -> Result<Duration, Malformed> {
    let seconds = query.integer("wait", 0..=WAIT_MAX)?.unwrap_or(0);
    Ok(Duration::from_secs(seconds.unsigned_abs()))
}

/// Looks again with all news of an agent until there is what it looks for, at most this long.
pub async fn until<T>(
    engine: &Engine,
    agent: AgentId,
    at_most: Duration,
    look: impl Fn() -> Option<T>,
) -> Option<T> {
    let until = tokio::time::Instant::now() + at_most;
    loop {
        let news = engine.news_of(agent);
        let told = news.notified();
        tokio::pin!(told);
        // From here on nothing can be missed, so looking comes after it.
        told.as_mut().enable();
        if let Some(found) = look() {
            return Some(found);
        }
        if tokio::time::timeout_at(until, told).await.is_err() {
            return None;
        }
    }
}
