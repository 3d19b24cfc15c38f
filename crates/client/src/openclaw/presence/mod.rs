//! The presence of an online agent. It reports the status at every change and periodically, and the
//! reputation after every collaboration and every day.
//!
//! A [`Presence`] does so by itself for as long as it lives. Errors of the hub are retried.

mod history;
mod reports;
mod state;

use std::sync::Arc;
use std::time::Duration;

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::wire::words::ErrorType;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::agent::Agent;
use crate::clock;
use crate::retry::RetryPolicy;
pub use history::{FinishedCollaboration, WorkHistory};
use state::{SelfReport, SharedPresence};

/// How often reports are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceOptions {
    /// How long after the last report an idle or busy agent sends a heartbeat. The hub considers an
    /// agent offline after 90 seconds, and the spec asks for a report every 60.
    pub heartbeat: Duration,
    /// How long changes are collected before the next report; the spec allows 5 seconds.
    pub debounce: Duration,
    /// How long after the last reputation claim the next periodic one is sent.
    pub reputation: Duration,
    /// The backoff when the hub cannot be reached. Retries never stop.
    pub retry: RetryPolicy,
}

impl Default for PresenceOptions {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(45),
            debounce: Duration::from_millis(250),
            reputation: Duration::from_secs(24 * 3_600),
            retry: RetryPolicy { initial_delay: Duration::from_secs(1), ..RetryPolicy::ENDLESS },
        }
    }
}

/// Keeps an agent online until it is dropped.
#[derive(Debug)]
pub struct Presence {
    agent: Agent,
    state: Arc<SharedPresence>,
    tasks: [JoinHandle<()>; 2],
}

/// One running collaboration, counted until this is dropped.
#[derive(Debug)]
pub struct BusyGuard(Arc<SharedPresence>);

/// Counts running collaborations.
#[derive(Clone, Debug)]
pub(super) struct BusyCounter(Arc<SharedPresence>);

impl Agent {
    /// Goes online with the work history so far.
    pub fn go_online(&self, options: PresenceOptions, history: WorkHistory) -> Presence {
        let state = Arc::new(SharedPresence::new(history, clock::now()));
        let heartbeats = reports::send_heartbeats(self.clone(), Arc::clone(&state), options);
        let claims = reports::send_claims(self.clone(), Arc::clone(&state), options);
        let tasks = [tokio::spawn(heartbeats), tokio::spawn(claims)];
        Presence { agent: self.clone(), state, tasks }
    }
}

impl Presence {
    /// The agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Counts one more running collaboration until the guard is dropped. [`Presence::serve`] does so by
    /// itself.
    pub fn begin_work(&self) -> BusyGuard {
        self.counter().begin()
    }

    /// The counter of this agent.
    pub(super) fn counter(&self) -> BusyCounter {
        BusyCounter(Arc::clone(&self.state))
    }

    /// Records a finished collaboration and sends a claim. [`Presence::serve`] does so by itself.
    pub fn record_finished(&self, done: FinishedCollaboration) {
        self.state.record_finished(done);
    }

    /// Reports an error, until [`Presence::set_healthy`] is called.
    pub fn set_error(&self, code: &str, message: &str, error_type: ErrorType) {
        let (code, message) = (code.to_owned(), message.to_owned());
        self.state.set_self_report(SelfReport::Error { code, message, error_type });
    }

    /// Reports maintenance until this time, unless [`Presence::set_healthy`] is called before.
    pub fn set_maintenance(&self, until: Timestamp, reason: Option<&str>) {
        self.state
            .set_self_report(SelfReport::Maintenance { until, reason: reason.map(str::to_owned) });
    }

    /// Reports the agent as healthy: idle, or busy with running collaborations.
    pub fn set_healthy(&self) {
        self.state.set_self_report(SelfReport::Healthy);
    }

    /// The work history so far, to be saved for the next start.
    pub fn history(&self) -> WorkHistory {
        self.state.history()
    }

    /// The error of the last report to the hub, if it failed.
    pub fn last_error(&self) -> Option<String> {
        self.state.last_error()
    }

    /// Waits until the hub has all reports, but at most this long; returns whether it has.
    pub async fn flush(&self, within: Duration) -> bool {
        timeout(within, self.state.wait_until_reported()).await.is_ok()
    }
}

impl BusyCounter {
    pub(super) fn begin(&self) -> BusyGuard {
        self.0.begin();
        BusyGuard(Arc::clone(&self.0))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}
