//! Timers: what the lane does without a command, and when it must be woken for it.
//!
//! Due times are fields of stored rows in the world. A timer fires as an ordinary command.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rialto_core::command::Timer;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use tokio::sync::{mpsc, watch};

use super::{Inner, LaneMessage};

/// Timers fired in one batch, so that a long pause does not starve the callers.
const TIMERS_PER_BATCH_MAX: usize = 256;
/// A refused timer is retried after this long; a refusal here is a bug in the hub.
const POSTPONE_FOR: Millis = Millis::minutes(1);
/// While the disk is full, timers fire at most once in this time.
const PAUSE: Millis = Millis::seconds(1);
/// Last-seen times wait for the lane, so the lane is woken this long before an agent goes offline.
const PRESENCE_CHECK_LEAD: Millis = Millis(20);
/// How often to check a clock that jumps or does not move.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// What the lane knows about timers beyond the world.
#[derive(Debug, Default)]
pub struct Timers {
    postponed: BTreeMap<Timer, Timestamp>,
    paused_until: Option<Timestamp>,
    /// The next end of an agent's presence for which last-seen times were already applied.
    checked_before: Option<Timestamp>,
}

impl Timers {
    /// The timers to fire now, the longest due first.
    pub fn due(&mut self, world: &World, now: Timestamp) -> Vec<Timer> {
        if self.paused_until.is_some_and(|until| now < until) {
            return Vec::new();
        }
        self.paused_until = None;
        self.postponed.retain(|_, until| now < *until);
        let due = world.due_timers(now).filter(|timer| !self.postponed.contains_key(timer));
        due.take(TIMERS_PER_BATCH_MAX).collect()
    }

    /// Postpones a timer, so that it does not hold up the others.
    pub fn postpone(&mut self, timer: Timer, now: Timestamp) {
        self.postponed.insert(timer, now.plus(POSTPONE_FOR));
    }

    /// Fires nothing for a while, because the last changes could not be written.
    pub fn pause(&mut self, now: Timestamp) {
        self.paused_until = Some(now.plus(PAUSE));
    }

    /// When the lane must be woken: at the next timer, or when an agent goes offline.
    pub fn next_wakeup(&self, world: &World) -> Option<Timestamp> {
        let timer = if self.postponed.is_empty() {
            world.next_timer_at()
        } else {
            let free = world
                .due_timers(Timestamp::NEVER)
                .find(|timer| !self.postponed.contains_key(timer));
            let moment = free.and_then(|timer| world.timer_due_at(timer));
            moment.into_iter().chain(self.postponed.values().copied()).min()
        };
        let timer = timer.map(|at| at.max(self.paused_until.unwrap_or(at)));
        // An agent is still online at the last moment of its presence.
        let silent = world.next_offline_at().map(|at| match self.checked_before == Some(at) {
            true => at.plus(Millis(1)),
            false => Timestamp(at.0.saturating_sub(PRESENCE_CHECK_LEAD.0)),
        });
        timer.into_iter().chain(silent).min()
    }

    /// Records that last-seen times are applied up to now, so the next agent may go offline.
    pub fn mark_presence_checked(&mut self, world: &World, now: Timestamp) {
        self.checked_before =
            world.next_offline_at().filter(|at| now.plus(PRESENCE_CHECK_LEAD) >= *at);
    }
}

/// Sends the lane a wake-up whenever something is due, for as long as the lane exists.
pub async fn run_timer(
    lane: mpsc::WeakSender<LaneMessage>,
    inner: Weak<Inner>,
    mut due: watch::Receiver<Option<Timestamp>>,
) {
    loop {
        let at = *due.borrow_and_update();
        let wait = {
            let Some(inner) = inner.upgrade() else { return };
            at.map(|at| inner.clock.duration_until(at).min(POLL_INTERVAL))
        };
        tokio::select! {
            changed = due.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(wait.unwrap_or(POLL_INTERVAL)) => {
                let Some(inner) = inner.upgrade() else { return };
                let untidy = inner.maintenance_due.load(Ordering::Relaxed);
                if untidy || at.is_some_and(|at| at <= inner.clock.now()) {
                    drop(inner);
                    let Some(lane) = lane.upgrade() else { return };
                    let _ = lane.send(LaneMessage::Wake).await;
                    // Gives the lane time to publish the next due time; otherwise an overdue one
                    // would spin here.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rialto_core::command::Command;
    use rialto_core::id::JobId;

    use super::*;
    use crate::fixtures::{LEASE, ModelHub, agent_in, enrol, open};

    /// Two jobs, each due when its lease expires.
    fn two_jobs() -> ModelHub {
        let mut script = ModelHub::default();
        let asker = script.run(Command::Register(Box::new(enrol("ada", "ada", &[])))).0;
        script.run(Command::Register(Box::new(enrol("bob", "bob", &[("sum", "1")]))));
        for n in 1..=2 {
            let order = open(n, agent_in(&asker), "sum", "1", script.now);
            script.run(Command::OpenJob(Box::new(order)));
        }
        script
    }

    fn timer(job: u64) -> Timer {
        Timer::Job(JobId(job))
    }

    #[test]
    fn a_timer_that_is_refused_steps_aside_and_comes_again() {
        let script = two_jobs();
        let mut timers = Timers::default();
        let now = script.now.plus(LEASE);
        assert_eq!(timers.due(&script.world, now), [timer(1), timer(2)]);
        timers.postpone(timer(1), now);
        assert_eq!(timers.due(&script.world, now), [timer(2)]);
        assert_eq!(timers.next_wakeup(&script.world), Some(now), "the other timer is due");
        timers.postpone(timer(2), now.plus(Millis(5)));
        assert_eq!(timers.next_wakeup(&script.world), Some(now.plus(POSTPONE_FOR)));
        assert!(timers.due(&script.world, now.plus(Millis(5))).is_empty());
        assert_eq!(timers.due(&script.world, now.plus(POSTPONE_FOR)), [timer(1)]);
    }

    #[test]
    fn during_a_pause_no_timer_fires_and_no_waiter_is_woken() {
        let script = two_jobs();
        let mut timers = Timers::default();
        let now = script.now.plus(LEASE);
        timers.pause(now);
        assert!(timers.due(&script.world, now).is_empty());
        assert_eq!(timers.next_wakeup(&script.world), Some(now.plus(PAUSE)));
        assert_eq!(timers.due(&script.world, now.plus(PAUSE)).len(), 2);
        assert_eq!(timers.next_wakeup(&script.world), script.world.next_timer_at(), "overdue");
    }
}
