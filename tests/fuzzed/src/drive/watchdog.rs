//! Somebody who looks at the clock while an input is tried.
//!
//! A parser that never comes back cannot be stopped, only left: so the whole process ends, and the
//! last thing it says is which input that was.

use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// What one input may take. Even the slowest take thousandths of that on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// What the process then ends with, as after a panic.
const ENDED: i32 = 101;

/// Watches one run, for as long as this is kept.
pub struct Watchdog {
    shared: Arc<Mutex<Option<Tried>>>,
}

/// The input that is being tried, and since when.
struct Tried {
    since: Instant,
    input: Vec<u8>,
}

impl Watchdog {
    pub fn over(target: &'static str, patience: Duration) -> Self {
        let shared = Arc::default();
        let seen = Arc::downgrade(&shared);
        thread::spawn(move || watch(target, patience, &seen));
        Self { shared }
    }

    /// Does something with an input while the clock is looked at.
    pub fn watching<T>(&self, input: &[u8], work: impl FnOnce() -> T) -> T {
        *held(&self.shared) = Some(Tried { since: Instant::now(), input: input.to_vec() });
        let done = work();
        *held(&self.shared) = None;
        done
    }
}

fn watch(target: &str, patience: Duration, shared: &Weak<Mutex<Option<Tried>>>) {
    while let Some(shared) = shared.upgrade() {
        if let Some(tried) = held(&shared).as_ref()
            && tried.since.elapsed() > patience
        {
            // Written whole, since nobody can make it smaller.
            let (bytes, shown) = (tried.input.len(), tried.input.escape_ascii());
            eprintln!("{target}: took longer than {patience:?}\nwith {bytes} bytes: {shown}");
            process::exit(ENDED);
        }
        drop(shared);
        thread::sleep(patience / 20);
    }
}

/// Nobody leaves it half written, so it is good whoever panicked.
fn held<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
