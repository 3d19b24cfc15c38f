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

use super::{Errand, Inner};

/// Timers fired in one batch, so that a long pause does not starve the callers.
const A_BATCH: usize = 256;
/// A refused timer is retried after this long; a refusal here is a bug in the hub.
const PUT_OFF_FOR: Millis = Millis::minutes(1);
/// While the disk is full, timers fire at most once in this time.
const PAUSE: Millis = Millis::seconds(1);
/// Last-seen times wait for the lane, so the lane is woken this long before an agent goes offline.
const LOOK_BEFORE: Millis = Millis(20);
/// How often to check a clock that jumps or does not move.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What the lane knows about timers beyond the world.
#[derive(Debug, Default)]
pub struct Timers {
    put_off: BTreeMap<Timer, Timestamp>,
    paused_until: Option<Timestamp>,
    /// The next end of an agent's presence for which last-seen times were already applied.
    looked_before: Option<Timestamp>,
}

impl Timers {
    /// The timers to fire now, the longest due first.
    pub fn due(&mut self, world: &World, now: Timestamp) -> Vec<Timer> {
        if self.paused_until.is_some_and(|until| now < until) {
            return Vec::new();
        }
        self.paused_until = None;
        self.put_off.retain(|_, until| now < *until);
        let due = world.due(now).filter(|timer| !self.put_off.contains_key(timer));
        due.take(A_BATCH).collect()
    }

    /// Postpones a timer, so that it does not hold up the others.
    pub fn put_off(&mut self, timer: Timer, now: Timestamp) {
        self.put_off.insert(timer, now.plus(PUT_OFF_FOR));
    }

    /// Fires nothing for a while, because the last changes could not be written.
    pub fn pause(&mut self, now: Timestamp) {
        self.paused_until = Some(now.plus(PAUSE));
    }

    /// When the lane must be woken: at the next timer, or when an agent goes offline.
    pub fn next(&self, world: &World) -> Option<Timestamp> {
        let timer = if self.put_off.is_empty() {
            world.next_timer()
        } else {
            let free = world.due(Timestamp::NEVER).find(|timer| !self.put_off.contains_key(timer));
            let moment = free.and_then(|timer| world.moment(timer));
            moment.into_iter().chain(self.put_off.values().copied()).min()
        };
        let timer = timer.map(|at| at.max(self.paused_until.unwrap_or(at)));
        // An agent is still online at the last moment of its presence.
        let silent = world.next_offline().map(|at| match self.looked_before == Some(at) {
            true => at.plus(Millis(1)),
            false => Timestamp(at.0.saturating_sub(LOOK_BEFORE.0)),
        });
        timer.into_iter().chain(silent).min()
    }

    /// Records that last-seen times are applied up to now, so the next agent may go offline.
    pub fn looked(&mut self, world: &World, now: Timestamp) {
        self.looked_before = world.next_offline().filter(|at| now.plus(LOOK_BEFORE) >= *at);
    }
}

/// Sends the lane a wake-up whenever something is due, for as long as the lane exists.
pub async fn keep_time(
    lane: mpsc::WeakSender<Errand>,
    inner: Weak<Inner>,
    mut due: watch::Receiver<Option<Timestamp>>,
) {
    loop {
        let at = *due.borrow_and_update();
        let wait = {
            let Some(inner) = inner.upgrade() else { return };
            at.map(|at| inner.clock.until(at).min(LOOK_AGAIN))
        };
        tokio::select! {
            changed = due.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(wait.unwrap_or(LOOK_AGAIN)) => {
                let Some(inner) = inner.upgrade() else { return };
                let untidy = inner.untidy.load(Ordering::Relaxed);
                if untidy || at.is_some_and(|at| at <= inner.clock.now()) {
                    drop(inner);
                    let Some(lane) = lane.upgrade() else { return };
                    let _ = lane.send(Errand::Wake).await;
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
    use crate::fixtures::{LEASE, Script, agent_in, enrol, open};

    /// Two jobs, each due when its lease expires.
    fn two_jobs() -> Script {
        let mut script = Script::default();
        let asker = script.run(Command::Enrol(Box::new(enrol("ada", "ada", &[])))).0;
        script.run(Command::Enrol(Box::new(enrol("bob", "bob", &[("sum", "1")]))));
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
        timers.put_off(timer(1), now);
        assert_eq!(timers.due(&script.world, now), [timer(2)]);
        assert_eq!(timers.next(&script.world), Some(now), "the other timer is due");
        timers.put_off(timer(2), now.plus(Millis(5)));
        assert_eq!(timers.next(&script.world), Some(now.plus(PUT_OFF_FOR)));
        assert!(timers.due(&script.world, now.plus(Millis(5))).is_empty());
        assert_eq!(timers.due(&script.world, now.plus(PUT_OFF_FOR)), [timer(1)]);
    }

    #[test]
    fn during_a_pause_nothing_fires_and_nobody_is_woken_for_it() {
        let script = two_jobs();
        let mut timers = Timers::default();
        let now = script.now.plus(LEASE);
        timers.pause(now);
        assert!(timers.due(&script.world, now).is_empty());
        assert_eq!(timers.next(&script.world), Some(now.plus(PAUSE)));
        assert_eq!(timers.due(&script.world, now.plus(PAUSE)).len(), 2);
        assert_eq!(timers.next(&script.world), script.world.next_timer(), "overdue");
    }
}
