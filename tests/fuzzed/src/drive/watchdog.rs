//! A watchdog that limits the time for each input.
//!
//! A parser that never returns cannot be stopped, so the whole process exits, and its last output
//! is that input.

use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for one input. Even the slowest take thousandths of that on a busy machine.
pub const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The exit code of the process, as after a panic.
const ENDED: i32 = 101;

/// Watches one run until it is dropped.
pub struct Watchdog {
    shared: Arc<Mutex<Option<Tried>>>,
}

/// The input that is being tested, and since when.
struct Tried {
    since: Instant,
    input: Vec<u8>,
}

impl Watchdog {
    pub fn over(target: &'static str, time_limit: Duration) -> Self {
        let shared = Arc::default();
        let seen = Arc::downgrade(&shared);
        thread::spawn(move || watch(target, time_limit, &seen));
        Self { shared }
    }

    /// Runs `work` on an input under the timeout.
    pub fn watching<T>(&self, input: &[u8], work: impl FnOnce() -> T) -> T {
        *held(&self.shared) = Some(Tried { since: Instant::now(), input: input.to_vec() });
        let done = work();
        *held(&self.shared) = None;
        done
    }
}

fn watch(target: &str, time_limit: Duration, shared: &Weak<Mutex<Option<Tried>>>) {
    while let Some(shared) = shared.upgrade() {
        if let Some(tried) = held(&shared).as_ref()
            && tried.since.elapsed() > time_limit
        {
            // Written in full, because it cannot be minimized.
            let (bytes, shown) = (tried.input.len(), tried.input.escape_ascii());
            eprintln!("{target}: took longer than {time_limit:?}\nwith {bytes} bytes: {shown}");
            process::exit(ENDED);
        }
        drop(shared);
        thread::sleep(time_limit / 20);
    }
}

/// The value is never left half written, so it is valid even after a panic.
fn held<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
