//! The worker loop at a hub: register, poll for work, report results, unregister.
//!
//! A [`Post`] asks the hub for work and does it with a [`Workshop`]. Every job is written down
//! before it is begun, and its outcome before the hub is told, so that the program may be killed
//! at any moment: started again, it goes on where it was. The hub takes one outcome for each turn.

mod desk;
mod enrol;
mod leave;
mod offers;
mod report;
mod stance;
mod told;
mod wire;

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant, sleep};

use super::record::Records;
use super::workshop::Workshop;
use crate::call::{CallError, Hub};
use crate::retry::{Retry, random};
use desk::Desk;
pub use enrol::{Enrolled, Entry, enrol};
pub(super) use report::{may_pass, pause};
pub use told::{Tell, Told};
pub(super) use wire::is_ours;
use wire::{InHand, Work};

/// How long a question for work waits for an answer, in seconds.
const WAIT: u32 = 25;
/// How long to wait before the next question after an answer that came at once and said nothing
/// new: a hub that honours the wait gives none.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// How to wait when the hub cannot be asked. It is tried for ever.
pub(super) const RETRY: Retry = Retry {
    tries_max: u32::MAX,
    first: Duration::from_millis(200),
    longest: Duration::from_secs(5),
};

/// An agent at its post.
pub struct Post {
    hub: Hub,
    workshop: Workshop,
    records: Records,
    tell: Tell,
    /// What is told once the hub lists the agent.
    greeting: Option<Told>,
    instance: Option<String>,
    idle_pause: Duration,
}

impl Post {
    /// An agent with its key, its skills and the records of its work.
    pub fn new(hub: Hub, workshop: Workshop, records: Records, tell: Tell) -> Self {
        let (greeting, instance) = (None, None);
        Self { hub, workshop, records, tell, greeting, instance, idle_pause: IDLE_PAUSE }
    }

    /// The same, and this is told once the hub lists the agent.
    pub fn greeting(mut self, told: Told) -> Self {
        self.greeting = Some(told);
        self
    }

    /// The same as a program of this name: while it asks for work, the hub gives none to another
    /// program of the same agent.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// The same with another pause before the next question for work where a hub answers at once
    /// and has nothing to say: one second without. After every other answer it is asked at once.
    pub fn idle_pause(mut self, pause: Duration) -> Self {
        self.idle_pause = pause;
        self
    }

    /// Works until `stop`, or until the hub does not know the agent any more. Then what can be
    /// finished soon is finished, the rest is handed back, and the agent is off the lists, all
    /// within five seconds.
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
        // A stop request does not wait for a slow answer of the hub.
        let ended = tokio::select! {
            biased;
            () = stop => Ok(()),
            error = self.until_refused(&mut desk, &known) => Err(error),
        };
        match ended {
            Ok(()) => leave::leave(&hub, &self.workshop, self.instance.as_deref(), desk).await,
            // A hub that does not know the agent any more has nothing to be told.
            Err(_) => drop(desk.drop_all().await),
        }
        ended
    }

    /// Works until the hub says no for good.
    async fn until_refused(&self, desk: &mut Desk, known: &InHand) -> CallError {
        let Self { hub, workshop, tell, .. } = self;
        if let Err(error) = leave::come(hub, tell).await {
            return error;
        }
        if let Some(told) = &self.greeting {
            tell(told.clone());
        }
        desk.recover();
        let mut prices = pin!(offers::name_prices(hub, workshop, tell).fuse());
        let mut stance = pin!(stance::report(hub, workshop, tell).fuse());
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
                        // An answer that says nothing new and comes at once would come again.
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

/// Asks for work until the hub answers, beginning after a pause.
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

/// How long to wait after so many failures.
fn backoff(failures: u32) -> Duration {
    RETRY.backoff(failures, random())
}
