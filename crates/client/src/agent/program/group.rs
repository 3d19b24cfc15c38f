//! A process group that is ended together: SIGTERM first, then SIGKILL.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// How long a program that was asked to end has for it.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// How often one that was asked is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Groups that were asked to end and are being waited for.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// A running program and everything it started, until it is released.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The group of a process that leads one.
    pub(super) fn of(pid: u32) -> Self {
        Self(i32::try_from(pid).ok().and_then(Pid::from_raw))
    }

    /// Asks it to end.
    pub(super) fn ask(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it.
    pub(super) fn end(&self) {
        self.signal(Signal::KILL);
    }

    /// It has ended by itself.
    pub(super) fn release(mut self) {
        self.0 = None;
    }

    /// Its first process has ended. What that left behind is asked to end, and then ended.
    pub(super) fn disband(self) {
        match self.0.map(test_kill_process_group) {
            Some(Ok(())) => drop(self),
            _ => self.release(),
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // Whoever is gone already needs no signal.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Group {
    /// Nobody waits for it any more.
    fn drop(&mut self) {
        if let Some(pid) = self.0.take() {
            let group = Self(Some(pid));
            group.ask();
            ENDING.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                let until = Instant::now() + GRACE;
                while Instant::now() < until && test_kill_process_group(pid).is_ok() {
                    thread::sleep(LOOK);
                }
                group.end();
                group.release();
                ENDING.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }
}

/// Waits until everything that was given up has ended: whoever ends before would leave it running.
pub(in crate::agent) async fn all_ended() {
    while ENDING.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(LOOK).await;
    }
}
