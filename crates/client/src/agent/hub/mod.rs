//! The worker loop at a hub: register, poll for work, report results, unregister.
//!
//! A [`Post`] polls the hub for work and does it with a [`Workshop`]. Each job is written to disk
//! before it starts, and its outcome before it is reported. So the program can be killed at any
//! time and continues after a restart. The hub accepts one outcome per assignment.

mod dispatcher;
mod register;
mod lifecycle;
mod offers;
mod report;
mod availability;
mod event;
mod wire;

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant, sleep};

use super::record::Records;
use super::handlers::Workshop;
use crate::call::{CallError, Hub};
use crate::retry::{Retry, random};
use dispatcher::Desk;
pub use register::{Enrolled, Entry, enrol};
pub(super) use report::{may_pass, pause};
pub use event::{Tell, Told};
pub(super) use wire::is_ours;
use wire::{InHand, Work};

/// How long a poll for work waits, in seconds.
const WAIT: u32 = 25;
/// The delay before the next poll after an immediate response without changes. A hub that supports
/// the wait never sends one.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// The backoff when the hub cannot be reached. Retries never stop.
pub(super) const RETRY: Retry = Retry {
    tries_max: u32::MAX,
    first: Duration::from_millis(200),
    longest: Duration::from_secs(5),
};

/// The worker of one agent at a hub.
pub struct Post {
    hub: Hub,
    workshop: Workshop,
    records: Records,
    tell: Tell,
    /// The event emitted once the hub lists the agent.
    greeting: Option<Told>,
    instance: Option<String>,
    idle_pause: Duration,
}

impl Post {
    /// A worker with its key, its handlers and its job records.
    pub fn new(hub: Hub, workshop: Workshop, records: Records, tell: Tell) -> Self {
        let (greeting, instance) = (None, None);
        Self { hub, workshop, records, tell, greeting, instance, idle_pause: IDLE_PAUSE }
    }

    /// Sets the event to emit once the hub lists the agent.
    pub fn greeting(mut self, told: Told) -> Self {
        self.greeting = Some(told);
        self
    }

    /// Sets the instance id of this program. While it polls, the hub gives no work to another
    /// program of the same agent.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// Sets the delay before the next poll after an immediate response without changes; one second
    /// by default. After any other response the next poll follows at once.
    pub fn idle_pause(mut self, pause: Duration) -> Self {
        self.idle_pause = pause;
        self
    }

    /// Works until `stop`, or until the hub no longer knows the agent. Then finishes what can be
    /// finished soon, returns the rest, and unregisters, all within five seconds.
    pub async fn work(self, stop: impl Future<Output = ()>) -> Result<(), CallError> {
        let (hub, tell) = (self.hub.clone(), self.tell.clone());
        let known = InHand::default();
        let mut desk = Desk::new(
            hub.clone(),
            self.workshop.clone(),
            self.records.clone(),
            known.clone(),
            tell.clone(),
        );
        // A shutdown does not wait for a slow response of the hub.
        let ended = tokio::select! {
            biased;
            () = stop => Ok(()),
            error = self.until_refused(&mut desk, &known) => Err(error),
        };
        match ended {
            Ok(()) => lifecycle::leave(&hub, &self.workshop, self.instance.as_deref(), desk).await,
            // A hub that no longer knows the agent needs no report.
            Err(_) => drop(desk.drop_all().await),
        }
        ended
    }

    /// Works until the hub refuses permanently.
    async fn until_refused(&self, desk: &mut Desk, known: &InHand) -> CallError {
        let Self { hub, workshop, tell, .. } = self;
        if let Err(error) = lifecycle::come(hub, tell).await {
            return error;
        }
        if let Some(told) = &self.greeting {
            tell(told.clone());
        }
        desk.recover();
        let mut prices = pin!(offers::name_prices(hub, workshop, tell).fuse());
        let mut stance = pin!(availability::report(hub, workshop, tell).fuse());
        let instance = self.instance.as_deref();
        let mut asking = Box::pin(ask(hub, instance, known, tell, Duration::ZERO));
        let mut asked = Instant::now();
        loop {
            tokio::select! {
                Some(()) = desk.turn_ended() => {}
                () = &mut prices => {}
                () = &mut stance => {}
                work = &mut asking => match work {
                    Ok(work) => {
                        // An immediate response without changes would repeat.
                        let is_idle = !desk.hear(work) && asked.elapsed() < IDLE_PAUSE;
                        let pause = if is_idle { self.idle_pause } else { Duration::ZERO };
                        asking.set(ask(hub, instance, known, tell, pause));
                        asked = Instant::now() + pause;
                    }
                    Err(error) => return error,
                },
            }
        }
    }
}

/// Polls for work until the hub responds, starting after a delay.
async fn ask(
    hub: &Hub,
    instance: Option<&str>,
    known: &InHand,
    tell: &Tell,
    pause_first: Duration,
) -> Result<Work, CallError> {
    sleep(pause_first).await;
    let mut failures = 0;
    loop {
        match wire::work(hub, instance, known, WAIT).await {
            Err(error) if may_pass(&error) => {
                failures += 1;
                tell(Told::trouble("cannot poll for work", &error));
                sleep(pause(&error, failures)).await;
            }
            answer => {
                if failures > 0 && answer.is_ok() {
                    tell(Told::Back);
                }
                return answer;
            }
        }
    }
}

/// The delay after this many failures.
fn backoff(failures: u32) -> Duration {
    RETRY.backoff(failures, random())
}
