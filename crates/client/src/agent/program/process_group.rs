//! A process group that is ended together: SIGTERM first, then SIGKILL.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// How long a program has to exit after SIGTERM.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// How often a terminated group is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of groups that got SIGTERM and have not ended yet.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// A running program and all its child processes, until it is released.
#[derive(Debug)]
pub(super) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// The group led by this process.
    pub(super) fn new(pid: u32) -> Self {
        Self(i32::try_from(pid).ok().and_then(Pid::from_raw))
    }

    /// Sends SIGTERM.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGKILL.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Releases a group that has ended by itself.
    pub(super) fn release(mut self) {
        self.0 = None;
    }

    /// Called when the leader has exited. Terminates remaining child processes, then kills them.
    pub(super) fn release_or_terminate(self) {
        match self.0.map(test_kill_process_group) {
            Some(Ok(())) => drop(self),
            _ => self.release(),
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // An error means that the group is already gone.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for ProcessGroup {
    /// Terminates the group: no task waits for it any more.
    fn drop(&mut self) {
        if let Some(pid) = self.0.take() {
            let group = Self(Some(pid));
            group.terminate();
            ENDING.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                let until = Instant::now() + GRACE;
                while Instant::now() < until && test_kill_process_group(pid).is_ok() {
                    thread::sleep(POLL_INTERVAL);
                }
                group.kill();
                group.release();
                ENDING.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }
}

/// Waits until all dropped groups have ended. Exiting earlier would leave them running.
pub(in crate::agent) async fn wait_for_groups() {
    while ENDING.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
