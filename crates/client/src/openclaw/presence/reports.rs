//! Reports to the hub: the agent's status, soon after every change and before the hub considers it
//! offline; and reputation claims, after every collaboration and periodically.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::wire::words::Status;
use tokio::time::{Instant, sleep_until};

use super::PresenceOptions;
use super::state::{AgentCondition, Claim, SharedPresence};
use crate::call::CallError;
use crate::clock;
use crate::openclaw::agent::Agent;
use crate::openclaw::request::min_retry_delay;
use crate::retry::{RetryPolicy, random};

/// The number of failures in a row, and when the next attempt is allowed.
#[derive(Clone, Copy, Debug)]
struct Backoff {
    failures: u32,
    not_before: Instant,
}

impl Backoff {
    /// No failure yet.
    fn none(now: Instant) -> Self {
        Self { failures: 0, not_before: now }
    }

    /// Records a failure. `at_least` is the delay the hub asked for.
    fn failed(&mut self, now: Instant, at_least: Duration, retry: &RetryPolicy, random: u32) {
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + retry.backoff(self.failures, random).max(at_least);
    }

    /// The later of `at` and the end of the backoff.
    fn after(&self, at: Instant) -> Instant {
        at.max(self.not_before)
    }
}

/// The last report, and when the next is due.
#[derive(Debug)]
struct HeartbeatSchedule {
    options: PresenceOptions,
    reported: Option<(AgentCondition, Instant)>,
    pause: Backoff,
}

impl HeartbeatSchedule {
    fn new(options: PresenceOptions, now: Instant) -> Self {
        Self { options, reported: None, pause: Backoff::none(now) }
    }

    /// When to report this condition; `None` if the hub has it and expects no heartbeat.
    fn due(&self, condition: &AgentCondition, now: Instant) -> Option<Instant> {
        let at = match &self.reported {
            None => now,
            Some((reported, at)) if reported != condition => *at + self.options.debounce,
            // Heartbeats are expected only from idle and busy agents (D16).
            Some((_, at)) if matches!(condition.status(), Status::Idle | Status::Busy) => {
                *at + self.options.heartbeat
            }
            Some(_) => return None,
        };
        Some(self.pause.after(at))
    }

    /// The timestamp of a report: when the condition changed or, for a repeated one, now.
    fn stamp(&self, condition: &AgentCondition, since: Timestamp, now: Timestamp) -> Timestamp {
        match &self.reported {
            Some((reported, _)) if reported == condition => now,
            _ => since,
        }
    }

    fn previous(&self) -> Option<Status> {
        self.reported.as_ref().map(|(reported, _)| reported.status())
    }

    fn succeeded(&mut self, condition: AgentCondition, now: Instant) {
        self.reported = Some((condition, now));
        self.pause = Backoff::none(now);
    }

    /// A refused report is retried too: the hub may have forgotten an agent that comes back.
    fn failed(&mut self, error: &CallError, now: Instant, random: u32) {
        let at_least = min_retry_delay(error).unwrap_or(self.options.retry.max_delay);
        self.pause.failed(now, at_least, &self.options.retry, random);
    }
}

/// Sends reports; never returns.
pub(super) async fn send_heartbeats(
    agent: Agent,
    presence: Arc<SharedPresence>,
    options: PresenceOptions,
) {
    let mut state = presence.subscribe();
    let mut schedule = HeartbeatSchedule::new(options, Instant::now());
    loop {
        let (condition, since) = {
            let state = state.borrow_and_update();
            (state.condition.clone(), state.since)
        };
        let due = schedule.due(&condition, Instant::now());
        if due.is_some_and(|due| due <= Instant::now()) {
            let report = condition.report(schedule.stamp(&condition, since, clock::now()));
            match agent.send_status(report, schedule.previous()).await {
                Ok(_) => {
                    schedule.succeeded(condition.clone(), Instant::now());
                    presence.set_reported(condition);
                }
                Err(error) => {
                    schedule.failed(&error, Instant::now(), random());
                    presence.set_last_error(error.to_string());
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
            _ = state.changed() => {}
        }
    }
}

/// When the next claim is due.
#[derive(Debug)]
struct ClaimSchedule {
    options: PresenceOptions,
    periodic_at: Instant,
    pause: Backoff,
}

impl ClaimSchedule {
    /// The first periodic claim is due at once, because the time of the last one is not known.
    fn new(options: PresenceOptions, now: Instant) -> Self {
        Self { options, periodic_at: now, pause: Backoff::none(now) }
    }

    /// When the next claim is due; `waiting` says whether one about a collaboration is queued.
    fn due(&self, waiting: bool, now: Instant) -> Instant {
        self.pause.after(if waiting { now } else { self.periodic_at })
    }

    /// A claim was made, or never will be.
    fn finish(&mut self, claim: &Claim, now: Instant) {
        self.pause = Backoff::none(now);
        if claim.collaboration_id.is_none() {
            self.periodic_at = now + self.options.reputation;
        }
    }
}

/// Sends claims; never returns.
pub(super) async fn send_claims(
    agent: Agent,
    presence: Arc<SharedPresence>,
    options: PresenceOptions,
) {
    let mut state = presence.subscribe();
    let mut schedule = ClaimSchedule::new(options, Instant::now());
    loop {
        let waiting = state.borrow_and_update().next_claim().cloned();
        let due = schedule.due(waiting.is_some(), Instant::now());
        if due > Instant::now() {
            tokio::select! {
                () = sleep_until(due) => {}
                // This task holds the state, so the channel cannot be closed.
                _ = state.changed() => {}
            }
            continue;
        }
        let claim = waiting.unwrap_or_else(|| state.borrow().periodic_claim());
        match send_claim(&agent, &claim).await {
            Ok(()) => {
                schedule.finish(&claim, Instant::now());
                presence.remove_claim(&claim, None);
            }
            Err(error) => match min_retry_delay(&error) {
                Some(at_least) => {
                    schedule.pause.failed(Instant::now(), at_least, &options.retry, random());
                    presence.set_last_error(error.to_string());
                }
                // A claim that the hub refuses does not block the next ones.
                None => {
                    schedule.finish(&claim, Instant::now());
                    presence.remove_claim(&claim, Some(error.to_string()));
                }
            },
        }
    }
}

async fn send_claim(agent: &Agent, claim: &Claim) -> Result<(), CallError> {
    let Claim { update_type, collaboration_id, score, metrics, at } = claim.clone();
    agent.claim_reputation(update_type, collaboration_id, score, metrics, at).await.map(drop)
}

#[cfg(test)]
mod tests {
    use rialto_protocols::openclaw::wire::words::UpdateType;
    use uuid::Uuid;

    use super::super::history::WorkHistory;
    use super::super::state::SelfReport;
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn healthy(active: usize) -> AgentCondition {
        AgentCondition { self_report: SelfReport::Healthy, active }
    }

    fn maintenance() -> AgentCondition {
        AgentCondition {
            self_report: SelfReport::Maintenance { until: Timestamp(9), reason: None },
            active: 0,
        }
    }

    #[test]
    fn a_change_is_reported_soon_and_a_heartbeat_before_the_hub_misses_it() {
        let start = Instant::now();
        let options = PresenceOptions::default();
        let mut schedule = HeartbeatSchedule::new(options, start);
        assert_eq!(schedule.due(&healthy(0), start), Some(start), "the first at once");
        schedule.succeeded(healthy(0), start);
        assert_eq!(schedule.due(&healthy(0), start), Some(start + 45 * S));
        assert_eq!(schedule.due(&healthy(1), start), Some(start + options.debounce));
        assert_eq!(schedule.due(&maintenance(), start), Some(start + options.debounce));
        assert!(options.debounce < 5 * S && options.heartbeat < 60 * S);
        schedule.succeeded(maintenance(), start);
        assert_eq!(
            schedule.due(&maintenance(), start),
            None,
            "no heartbeat is expected during maintenance"
        );
    }

    #[test]
    fn a_failing_hub_gets_reports_ever_less_often() {
        let start = Instant::now();
        let mut schedule = HeartbeatSchedule::new(PresenceOptions::default(), start);
        let timed_out = CallError::TimedOut { url: String::new() };
        schedule.failed(&timed_out, start, u32::MAX);
        assert_eq!(schedule.due(&healthy(0), start), Some(start + S));
        schedule.failed(&timed_out, start, u32::MAX);
        assert_eq!(schedule.due(&healthy(0), start), Some(start + 2 * S));
        schedule.failed(&CallError::invalid("no", None), start, 0);
        assert_eq!(schedule.due(&healthy(0), start), Some(start + 30 * S), "a refusal");
        schedule.succeeded(healthy(0), start);
        assert_eq!(
            schedule.due(&healthy(1), start),
            Some(start + PresenceOptions::default().debounce)
        );
    }

    #[test]
    fn a_change_has_the_time_it_happened_and_a_heartbeat_has_its_own() {
        let mut schedule = HeartbeatSchedule::new(PresenceOptions::default(), Instant::now());
        let (since, now) = (Timestamp(1), Timestamp(50_000));
        assert_eq!(schedule.stamp(&healthy(1), since, now), since);
        assert_eq!(schedule.previous(), None);
        schedule.succeeded(healthy(1), Instant::now());
        assert_eq!(schedule.stamp(&healthy(1), since, now), now, "or it would be late (R32)");
        assert_eq!(schedule.stamp(&healthy(0), since, now), since);
        assert_eq!(schedule.previous(), Some(Status::Busy));
    }

    #[test]
    fn a_report_has_what_its_status_needs() {
        let busy = healthy(2).report(Timestamp(7));
        assert_eq!((busy.status, busy.at), (Status::Busy, Timestamp(7)));
        assert_eq!(busy.details.active_tasks, Some(2));
        assert_eq!(healthy(0).report(Timestamp(7)).status, Status::Idle);
        let report = maintenance().report(Timestamp(7));
        assert_eq!(report.details.maintenance_until, Some(Timestamp(9)));
    }

    #[test]
    fn a_claim_is_sent_after_each_collaboration_and_once_a_day() {
        let (start, day) = (Instant::now(), Duration::from_secs(24 * 3_600));
        let mut schedule = ClaimSchedule::new(PresenceOptions::default(), start);
        let history = WorkHistory::default();
        let periodic = Claim::of(&history, UpdateType::Periodic, None);
        let about_job = Claim::of(&history, UpdateType::Completed, Some(Uuid::nil()));
        assert_eq!(schedule.due(false, start), start);
        schedule.finish(&periodic, start);
        assert_eq!(schedule.due(false, start), start + day);
        assert_eq!(schedule.due(true, start), start);
        schedule.finish(&about_job, start + Duration::from_secs(5));
        assert_eq!(schedule.due(false, start), start + day, "one does not replace the other");
        let at_least = Duration::from_secs(90);
        schedule.pause.failed(start, at_least, &PresenceOptions::default().retry, 0);
        assert_eq!(schedule.due(true, start), start + at_least);
    }
}
