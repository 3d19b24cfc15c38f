//! Closes connections that are idle for too long.
//!
//! One timer serves all limits of a connection and is rarely changed while requests follow each
//! other: if it fires too early, it is set again; it is moved only if it would fire too late.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::connection_state::{ConnectionPhase, StateSnapshot};
use super::settings::Settings;

/// Ready at the deadline, whenever the timer itself fires.
pub(super) fn poll_deadline(
    mut timer: Pin<&mut Sleep>,
    due: Instant,
    context: &mut Context<'_>,
) -> Poll<()> {
    if timer.deadline() > due {
        timer.as_mut().reset(due);
    }
    while timer.as_mut().poll(context).is_ready() {
        if Instant::now() >= due {
            return Poll::Ready(());
        }
        timer.as_mut().reset(due);
    }
    Poll::Pending
}

/// Watches the state of one connection.
pub struct IdleTimer<'a> {
    settings: &'a Settings,
    seen: Option<StateSnapshot>,
    due: Option<Instant>,
    end: Option<Instant>,
}

impl<'a> IdleTimer<'a> {
    pub fn new(settings: &'a Settings) -> Self {
        Self { settings, seen: None, due: None, end: None }
    }

    /// The hub is stopping: from now on nothing may take longer than the grace period.
    pub fn begin_shutdown(&mut self) {
        self.end = Some(Instant::now() + self.settings.grace);
    }

    /// Ready when the connection must be closed. Call it after all other polls, so that `beat` is
    /// the state in which the connection waits.
    pub fn poll(
        &mut self,
        beat: StateSnapshot,
        timer: Pin<&mut Sleep>,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        if self.seen != Some(beat) {
            self.seen = Some(beat);
            self.due = self.limit(beat).map(|limit| Instant::now() + limit);
        }
        let Some(due) = self.due.into_iter().chain(self.end).min() else {
            return Poll::Pending;
        };
        poll_deadline(timer, due, context)
    }

    fn limit(&self, beat: StateSnapshot) -> Option<Duration> {
        if beat.is_stalled() {
            return Some(self.settings.stall_timeout);
        }
        match beat.phase() {
            ConnectionPhase::Head => Some(self.settings.header_timeout),
            ConnectionPhase::Idle => Some(self.settings.idle_timeout),
            ConnectionPhase::Closing => Some(self.settings.linger_timeout),
            // The handler decides how long a response may take.
            ConnectionPhase::Responding => None,
        }
    }
}
