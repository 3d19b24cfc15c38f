//! The state of a run, read from the files in its directory, whichever process started it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::process::Child;
use tokio::time::{Instant, sleep, sleep_until};

use super::process_group::{GRACE, ProcessGroup};
use super::{LOG_MAX, OUTPUT_MAX, too_long};
use crate::agent::record::{self, LOG_FILE};

pub(super) const OUTPUT: &str = "stdout";
pub(super) const PID: &str = "pid";
pub(super) const STATUS: &str = "status";
/// The run's deadline, in milliseconds since 1970, so that an agent that adopts it does not restart
/// the time limit.
pub(super) const DEADLINE: &str = "until";
/// Written instead of an exit status when the run timed out.
const TIMED_OUT: &str = "over";
/// Exit status of a program ended by SIGTERM, as the shell reports it.
const EXIT_TERMINATED: i32 = 128 + 15;
/// How often a run is checked.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// It exited with this status.
    Status(i32),
    /// It was killed from outside.
    Killed,
    /// It exceeded its time limit.
    TimedOut,
    /// It wrote more than the maximum; the text says what.
    OutputTooLong(String),
}

/// Waits for a run that this process started.
pub(super) async fn wait_for_child(
    mut child: Child,
    directory: &Path,
    until: Instant,
) -> io::Result<RunEnd> {
    let group = ProcessGroup::new(child.id().unwrap_or_default());
    tokio::select! {
        biased;
        exit = child.wait() => {
            exit?;
            group.release_or_terminate();
            return Ok(read_end(directory));
        }
        what = wait_for_oversized_file(directory) => {
            group.kill();
            child.wait().await?;
            group.release();
            return Ok(RunEnd::OutputTooLong(what));
        }
        () = sleep_until(until) => {}
    }
    group.terminate();
    tokio::select! {
        biased;
        exit = child.wait() => drop(exit?),
        _ = wait_for_oversized_file(directory) => {}
        () = sleep_until(until + GRACE) => {}
    }
    // Child processes may have ignored SIGTERM.
    group.kill();
    child.wait().await?;
    group.release();
    write_timed_out(directory)
}

/// Waits for a run that another process started.
pub(super) async fn wait_for_adopted(directory: &Path, until: Instant) -> io::Result<RunEnd> {
    // The shell writes its pid before anything else.
    let pid = loop {
        match fs::read_to_string(directory.join(PID)) {
            Ok(pid) => break pid.trim().parse().unwrap_or_default(),
            Err(_) if !is_running(directory)? => return Ok(RunEnd::Killed),
            Err(_) => sleep(POLL_INTERVAL).await,
        }
    };
    let group = ProcessGroup::new(pid);
    let mut is_terminated = false;
    loop {
        // The order matters: the status is written before the lock is released.
        let is_over = !is_running(directory)?;
        let end = read_end(directory);
        if matches!(end, RunEnd::OutputTooLong(_)) {
            group.kill();
            group.release();
            return Ok(end);
        }
        if is_over || !matches!(end, RunEnd::Killed) {
            group.release_or_terminate();
            let is_timeout = is_terminated && matches!(end, RunEnd::Killed);
            return if is_timeout { write_timed_out(directory) } else { Ok(end) };
        }
        if Instant::now() >= until + GRACE {
            group.kill();
            group.release();
            return write_timed_out(directory);
        }
        if !is_terminated && Instant::now() >= until {
            group.terminate();
            is_terminated = true;
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Records that the run timed out. Otherwise the shell's status says at most that it was
/// terminated, which counts as unfinished.
fn write_timed_out(directory: &Path) -> io::Result<RunEnd> {
    record::write_atomically(directory, STATUS, TIMED_OUT.as_bytes())?;
    Ok(RunEnd::TimedOut)
}

/// Whether a run is still going: a process holds the lock on its output.
pub(super) fn is_running(directory: &Path) -> io::Result<bool> {
    let output = match File::open(directory.join(OUTPUT)) {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match output.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// How a finished run ended, as far as its files show. Oversized output counts first, however the
/// run ended.
pub(super) fn read_end(directory: &Path) -> RunEnd {
    if let Some(why) = find_oversized_file(directory) {
        return RunEnd::OutputTooLong(why);
    }
    let status = fs::read_to_string(directory.join(STATUS)).unwrap_or_default();
    match (status.trim(), status.trim().parse()) {
        (TIMED_OUT, _) => RunEnd::TimedOut,
        (_, Err(_) | Ok(EXIT_TERMINATED)) => RunEnd::Killed,
        (_, Ok(status)) => RunEnd::Status(status),
    }
}

/// Finds a file that exceeds its maximum size.
fn find_oversized_file(directory: &Path) -> Option<String> {
    [(OUTPUT, "output", OUTPUT_MAX as u64), (LOG_FILE, "log", LOG_MAX)].into_iter().find_map(
        |(name, what, max)| {
            let length = fs::metadata(directory.join(name)).ok()?.len();
            (length > max).then(|| too_long(what, max))
        },
    )
}

/// Waits until a file is too long: a program that never stops writing would fill the disk.
async fn wait_for_oversized_file(directory: &Path) -> String {
    loop {
        sleep(POLL_INTERVAL).await;
        if let Some(what) = find_oversized_file(directory) {
            return what;
        }
    }
}

/// Writes the deadline of a run that starts now.
pub(super) fn write_deadline(directory: &Path, limit: Duration) -> io::Result<()> {
    let until = since_1970().saturating_add(limit).as_millis();
    record::write_atomically(directory, DEADLINE, until.to_string().as_bytes())
}

/// The time left until the deadline that was written at the start.
pub(super) fn time_left(directory: &Path) -> Option<Duration> {
    let until = fs::read_to_string(directory.join(DEADLINE)).ok()?.trim().parse().ok()?;
    Some(Duration::from_millis(until).saturating_sub(since_1970()))
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
