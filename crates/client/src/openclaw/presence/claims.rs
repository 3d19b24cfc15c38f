//! Sends reputation claims: after every collaboration, and periodically.

use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::PresenceOptions;
use super::backoff::Backoff;
use super::state::{Claim, SharedPresence};
use crate::call::CallError;
use crate::openclaw::agent::Agent;
use crate::openclaw::retry::min_retry_delay;
use crate::retry::random;

/// When the next claim is due.
#[derive(Debug)]
struct ClaimSchedule {
    rhythm: PresenceOptions,
    periodic_at: Instant,
    pause: Backoff,
}

impl ClaimSchedule {
    /// The first periodic claim is due at once, because the time of the last one is not known.
    fn new(rhythm: PresenceOptions, now: Instant) -> Self {
        Self { rhythm, periodic_at: now, pause: Backoff::none(now) }
    }

    /// When the next claim is due; `waiting` says whether one about a collaboration is queued.
    fn due(&self, waiting: bool, now: Instant) -> Instant {
        self.pause.after(if waiting { now } else { self.periodic_at })
    }

    /// A claim was made, or never will be.
    fn finish(&mut self, claim: &Claim, now: Instant) {
        self.pause = Backoff::none(now);
        if claim.collaboration_id.is_none() {
            self.periodic_at = now + self.rhythm.reputation;
        }
    }
}

/// Sends claims; never returns.
pub(super) async fn run(agent: Agent, book: Arc<SharedPresence>, rhythm: PresenceOptions) {
    let mut page = book.subscribe();
    let mut pace = ClaimSchedule::new(rhythm, Instant::now());
    loop {
        let waiting = page.borrow_and_update().next_claim().cloned();
        let due = pace.due(waiting.is_some(), Instant::now());
        if due > Instant::now() {
            tokio::select! {
                () = sleep_until(due) => {}
                // This task holds the state, so the channel cannot be closed.
                _ = page.changed() => {}
            }
            continue;
        }
        let claim = waiting.unwrap_or_else(|| page.borrow().periodic_claim());
        match tell(&agent, &claim).await {
            Ok(()) => {
                pace.finish(&claim, Instant::now());
                book.remove_claim(&claim, None);
            }
            Err(error) => match min_retry_delay(&error) {
                Some(wanted) => {
                    pace.pause.failed(Instant::now(), wanted, &rhythm.retry, random());
                    book.set_last_error(error.to_string());
                }
                // A claim that the hub refuses does not block the next ones.
                None => {
                    pace.finish(&claim, Instant::now());
                    book.remove_claim(&claim, Some(error.to_string()));
                }
            },
        }
    }
}

async fn tell(agent: &Agent, claim: &Claim) -> Result<(), CallError> {
    let Claim { update_type, collaboration_id, score, metrics, at } = claim.clone();
    agent.claim_reputation(update_type, collaboration_id, score, metrics, at).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::history::WorkHistory;
    use super::*;
    use rialto_protocols::openclaw::wire::words::UpdateType;
    use std::time::Duration;
    use uuid::Uuid;

    #[test]
    fn a_finished_collaboration_is_told_at_once_and_everything_once_a_day() {
        let (start, day) = (Instant::now(), Duration::from_secs(24 * 3_600));
        let mut pace = ClaimSchedule::new(PresenceOptions::default(), start);
        let record = WorkHistory::default();
        let periodic = Claim::of(&record, UpdateType::Periodic, None);
        let reasoned = Claim::of(&record, UpdateType::Completed, Some(Uuid::nil()));
        assert_eq!(pace.due(false, start), start);
        pace.finish(&periodic, start);
        assert_eq!(pace.due(false, start), start + day);
        assert_eq!(pace.due(true, start), start);
        pace.finish(&reasoned, start + Duration::from_secs(5));
        assert_eq!(pace.due(false, start), start + day, "one does not replace the other");
        let wanted = Duration::from_secs(90);
        pace.pause.failed(start, wanted, &PresenceOptions::default().retry, 0);
        assert_eq!(pace.due(true, start), start + wanted);
    }
}
