//! Reports the agent's status: soon after every change, and before the hub considers it offline.

use std::future::pending;
use std::sync::Arc;

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::wire::words::Status;
use tokio::time::{Instant, sleep_until};

use super::PresenceOptions;
use super::backoff::Backoff;
use super::state::{AgentCondition, SharedPresence};
use crate::call::CallError;
use crate::clock;
use crate::openclaw::agent::Agent;
use crate::openclaw::retry::min_retry_delay;
use crate::retry::random;

/// The last report, and when the next is due.
#[derive(Debug)]
struct HeartbeatSchedule {
    rhythm: PresenceOptions,
    told: Option<(AgentCondition, Instant)>,
    pause: Backoff,
}

impl HeartbeatSchedule {
    fn new(rhythm: PresenceOptions, now: Instant) -> Self {
        Self { rhythm, told: None, pause: Backoff::none(now) }
    }

    /// When to report this condition; `None` if the hub has it and expects no heartbeat.
    fn due(&self, condition: &AgentCondition, now: Instant) -> Option<Instant> {
        let at = match &self.told {
            None => now,
            Some((told, at)) if told != condition => *at + self.rhythm.debounce,
            // Heartbeats are expected only from idle and busy agents (D16).
            Some((_, at)) if matches!(condition.status(), Status::Idle | Status::Busy) => {
                *at + self.rhythm.heartbeat
            }
            Some(_) => return None,
        };
        Some(self.pause.after(at))
    }

    /// The timestamp of a report: when the condition changed or, for a repeated one, now.
    fn stamp(&self, condition: &AgentCondition, since: Timestamp, now: Timestamp) -> Timestamp {
        match &self.told {
            Some((told, _)) if told == condition => now,
            _ => since,
        }
    }

    fn previous(&self) -> Option<Status> {
        self.told.as_ref().map(|(told, _)| told.status())
    }

    fn succeeded(&mut self, condition: AgentCondition, now: Instant) {
        self.told = Some((condition, now));
        self.pause = Backoff::none(now);
    }

    /// A refused report is retried too: the hub may have forgotten an agent that comes back.
    fn failed(&mut self, error: &CallError, now: Instant, random: u32) {
        let wanted = min_retry_delay(error).unwrap_or(self.rhythm.retry.max_delay);
        self.pause.failed(now, wanted, &self.rhythm.retry, random);
    }
}

/// Sends reports; never returns.
pub(super) async fn run(agent: Agent, book: Arc<SharedPresence>, rhythm: PresenceOptions) {
    let mut page = book.subscribe();
    let mut beat = HeartbeatSchedule::new(rhythm, Instant::now());
    loop {
        let (condition, since) = {
            let page = page.borrow_and_update();
            (page.condition.clone(), page.since)
        };
        let due = beat.due(&condition, Instant::now());
        if due.is_some_and(|due| due <= Instant::now()) {
            let report = condition.report(beat.stamp(&condition, since, clock::now()));
            match agent.send_status(report, beat.previous()).await {
                Ok(_) => {
                    beat.succeeded(condition.clone(), Instant::now());
                    book.set_reported(condition);
                }
                Err(error) => {
                    beat.failed(&error, Instant::now(), random());
                    book.set_last_error(error.to_string());
                }
            }
            continue;
        }
        let until = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = until => {}
            // This task holds the state, so the channel cannot be closed.
            _ = page.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::SelfReport;
    use super::*;
    use std::time::Duration;

    const S: Duration = Duration::from_secs(1);

    fn well(active: usize) -> AgentCondition {
        AgentCondition { self_report: SelfReport::Healthy, active }
    }

    fn away() -> AgentCondition {
        AgentCondition {
            self_report: SelfReport::Maintenance { until: Timestamp(9), reason: None },
            active: 0,
        }
    }

    #[test]
    fn a_change_is_told_soon_and_the_same_again_before_the_hub_misses_it() {
        let start = Instant::now();
        let rhythm = PresenceOptions::default();
        let mut beat = HeartbeatSchedule::new(rhythm, start);
        assert_eq!(beat.due(&well(0), start), Some(start), "the first at once");
        beat.succeeded(well(0), start);
        assert_eq!(beat.due(&well(0), start), Some(start + 45 * S));
        assert_eq!(beat.due(&well(1), start), Some(start + rhythm.debounce));
        assert_eq!(beat.due(&away(), start), Some(start + rhythm.debounce));
        assert!(rhythm.debounce < 5 * S && rhythm.heartbeat < 60 * S);
        beat.succeeded(away(), start);
        assert_eq!(beat.due(&away(), start), None, "no heartbeat is expected during maintenance");
    }

    #[test]
    fn a_hub_in_trouble_is_told_again_ever_less_often() {
        let start = Instant::now();
        let mut beat = HeartbeatSchedule::new(PresenceOptions::default(), start);
        let gone = CallError::TimedOut { url: String::new() };
        beat.failed(&gone, start, u32::MAX);
        assert_eq!(beat.due(&well(0), start), Some(start + S));
        beat.failed(&gone, start, u32::MAX);
        assert_eq!(beat.due(&well(0), start), Some(start + 2 * S));
        beat.failed(&CallError::invalid("no", None), start, 0);
        assert_eq!(beat.due(&well(0), start), Some(start + 30 * S), "and one that says no");
        beat.succeeded(well(0), start);
        assert_eq!(beat.due(&well(1), start), Some(start + PresenceOptions::default().debounce));
    }

    #[test]
    fn a_change_has_the_time_it_happened_and_a_heartbeat_has_its_own() {
        let mut beat = HeartbeatSchedule::new(PresenceOptions::default(), Instant::now());
        let (since, now) = (Timestamp(1), Timestamp(50_000));
        assert_eq!(beat.stamp(&well(1), since, now), since);
        assert_eq!(beat.previous(), None);
        beat.succeeded(well(1), Instant::now());
        assert_eq!(beat.stamp(&well(1), since, now), now, "or it would be late (R32)");
        assert_eq!(beat.stamp(&well(0), since, now), since);
        assert_eq!(beat.previous(), Some(Status::Busy));
    }

    #[test]
    fn a_condition_is_told_with_what_its_status_needs() {
        let busy = well(2).report(Timestamp(7));
        assert_eq!((busy.status, busy.at), (Status::Busy, Timestamp(7)));
        assert_eq!(busy.details.active_tasks, Some(2));
        assert_eq!(well(0).report(Timestamp(7)).status, Status::Idle);
        let away = away().report(Timestamp(7));
        assert_eq!(away.details.maintenance_until, Some(Timestamp(9)));
    }
}
