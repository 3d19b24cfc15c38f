//! The worker loop at a hub: register, poll for work, report results, unregister.
//!
//! A [`HubWorker`] polls the hub for work and does it with a [`Handlers`]. Each job is written to disk
//! before it starts, and its outcome before it is reported. So the program can be killed at any
//! time and continues after a restart. The hub accepts one outcome per assignment.

mod availability;
mod dispatcher;
mod event;
mod lifecycle;
mod offers;
mod register;
mod report;
mod wire;

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant, sleep};

use super::handlers::Handlers;
use super::record::JobRecords;
use crate::call::{CallError, Hub};
use crate::retry::{RetryPolicy, random};
use dispatcher::Dispatcher;
pub use event::{AgentEvent, EventCallback};
pub use register::{AgentRegistration, RegistrationResponse, register_agent};
pub(super) use report::{is_retryable, retry_delay};
pub(super) use wire::check_instance;
use wire::{KnownAssignments, WorkResponse};

/// How long a poll for work waits, in seconds.
const WAIT: u32 = 25;
/// The delay before the next poll after an immediate response without changes. A hub that supports
/// the wait never sends one.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// The backoff when the hub cannot be reached. Retries never stop.
pub(super) const RETRY: RetryPolicy = RetryPolicy {
    max_attempts: u32::MAX,
    initial_delay: Duration::from_millis(200),
    max_delay: Duration::from_secs(5),
};

/// The worker of one agent at a hub.
pub struct HubWorker {
    hub: Hub,
    handlers: Handlers,
    records: JobRecords,
    on_event: EventCallback,
    /// The event emitted once the hub lists the agent.
    start_event: Option<AgentEvent>,
    instance: Option<String>,
    idle_pause: Duration,
}

impl HubWorker {
    /// A worker with its key, its handlers and its job records.
    pub fn new(hub: Hub, workshop: Handlers, records: JobRecords, tell: EventCallback) -> Self {
        let (greeting, instance) = (None, None);
        Self {
            hub,
            handlers: workshop,
            records,
            on_event: tell,
            start_event: greeting,
            instance,
            idle_pause: IDLE_PAUSE,
        }
    }

    /// Sets the event to emit once the hub lists the agent.
    pub fn start_event(mut self, told: AgentEvent) -> Self {
        self.start_event = Some(told);
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
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), CallError> {
        let (hub, tell) = (self.hub.clone(), self.on_event.clone());
        let known = KnownAssignments::default();
        let mut agent_state = Dispatcher::new(
            hub.clone(),
            self.handlers.clone(),
            self.records.clone(),
            known.clone(),
            tell.clone(),
        );
        // A shutdown does not wait for a slow response of the hub.
        let ended = tokio::select! {
            biased;
            () = stop => Ok(()),
            error = self.run_until_refused(&mut agent_state, &known) => Err(error),
        };
        match ended {
            Ok(()) => {
                lifecycle::go_offline(&hub, &self.handlers, self.instance.as_deref(), agent_state)
                    .await
            }
            // A hub that no longer knows the agent needs no report.
            Err(_) => drop(agent_state.abort_all().await),
        }
        ended
    }

    /// Works until the hub refuses permanently.
    async fn run_until_refused(
        &self,
        agent_state: &mut Dispatcher,
        known: &KnownAssignments,
    ) -> CallError {
        let Self { hub, handlers: workshop, on_event: tell, .. } = self;
        if let Err(error) = lifecycle::go_online(hub, tell).await {
            return error;
        }
        if let Some(told) = &self.start_event {
            tell(told.clone());
        }
        agent_state.recover();
        let mut prices = pin!(offers::answer_offer_requests(hub, workshop, tell).fuse());
        let mut availability = pin!(availability::report_availability(hub, workshop, tell).fuse());
        let instance = self.instance.as_deref();
        let mut asking = Box::pin(poll_work(hub, instance, known, tell, Duration::ZERO));
        let mut asked = Instant::now();
        loop {
            tokio::select! {
                Some(()) = agent_state.next_finished() => {}
                () = &mut prices => {}
                () = &mut availability => {}
                work = &mut asking => match work {
                    Ok(work) => {
                        // An immediate response without changes would repeat.
                        let is_idle = !agent_state.handle_work(work) && asked.elapsed() < IDLE_PAUSE;
                        let pause = if is_idle { self.idle_pause } else { Duration::ZERO };
                        asking.set(poll_work(hub, instance, known, tell, pause));
                        asked = Instant::now() + pause;
                    }
                    Err(error) => return error,
                },
            }
        }
    }
}

/// Polls for work until the hub responds, starting after a delay.
async fn poll_work(
    hub: &Hub,
    instance: Option<&str>,
    known: &KnownAssignments,
    tell: &EventCallback,
    pause_first: Duration,
) -> Result<WorkResponse, CallError> {
    sleep(pause_first).await;
    let mut failures = 0;
    loop {
        match wire::fetch_work(hub, instance, known, WAIT).await {
            Err(error) if is_retryable(&error) => {
                failures += 1;
                tell(AgentEvent::from_error("cannot poll for work", &error));
                sleep(retry_delay(&error, failures)).await;
            }
            answer => {
                if failures > 0 && answer.is_ok() {
                    tell(AgentEvent::Recovered);
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
