//! The state of a run, read from the files in its directory, whichever process started it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::process::Child;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::process_group::{GRACE, Group};
use super::super::{LOG_MAX, OUTPUT_MAX, too_long};
use crate::agent::record::{self, LOG};

pub(super) const OUTPUT: &str = "stdout";
pub(super) const PID: &str = "pid";
pub(super) const STATUS: &str = "status";
/// The run's deadline, in milliseconds since 1970, so that an agent that adopts it does not restart
/// the time limit.
pub(super) const UNTIL: &str = "until";
/// Written instead of an exit status when the run timed out.
const OVER: &str = "over";
/// Exit status of a program ended by SIGTERM, as the shell reports it.
const ASKED: i32 = 128 + 15;
/// How often a run is checked.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It exited with this status.
    Status(i32),
    /// It was killed from outside.
    Broken,
    /// It exceeded its time limit.
    Over,
    /// It wrote more than the maximum; the text says what.
    TooLong(String),
}

/// Waits for a run that this process started.
pub(super) async fn ended(mut child: Child, directory: &Path, until: Instant) -> io::Result<End> {
    let group = Group::of(child.id().unwrap_or_default());
    tokio::select! {
        biased;
        exit = child.wait() => {
            exit?;
            group.disband();
            return Ok(how(directory));
        }
        what = grown_too_long(directory) => {
            group.end();
            child.wait().await?;
            group.release();
            return Ok(End::TooLong(what));
        }
        () = sleep_until(until) => {}
    }
    group.ask();
    tokio::select! {
        biased;
        exit = child.wait() => drop(exit?),
        _ = grown_too_long(directory) => {}
        () = sleep_until(until + GRACE) => {}
    }
    // Child processes may have ignored SIGTERM.
    group.end();
    child.wait().await?;
    group.release();
    over(directory)
}

/// Waits for a run that another process started.
pub(super) async fn adopted(directory: &Path, until: Instant) -> io::Result<End> {
    // The shell writes its pid before anything else.
    let pid = loop {
        match fs::read_to_string(directory.join(PID)) {
            Ok(pid) => break pid.trim().parse().unwrap_or_default(),
            Err(_) if !is_running(directory)? => return Ok(End::Broken),
            Err(_) => sleep(LOOK).await,
        }
    };
    let group = Group::of(pid);
    let mut asked = false;
    loop {
        // The order matters: the status is written before the lock is released.
        let is_over = !is_running(directory)?;
        let end = how(directory);
        if matches!(end, End::TooLong(_)) {
            group.end();
            group.release();
            return Ok(end);
        }
        if is_over || !matches!(end, End::Broken) {
            group.disband();
            let ended_by_us = asked && matches!(end, End::Broken);
            return if ended_by_us { over(directory) } else { Ok(end) };
        }
        if Instant::now() >= until + GRACE {
            group.end();
            group.release();
            return over(directory);
        }
        if !asked && Instant::now() >= until {
            group.ask();
            asked = true;
        }
        sleep(LOOK).await;
    }
}

/// Records that the run timed out. Otherwise the shell's status says at most that it was
/// terminated, which counts as unfinished.
fn over(directory: &Path) -> io::Result<End> {
    record::write(directory, STATUS, OVER.as_bytes())?;
    Ok(End::Over)
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
pub(super) fn how(directory: &Path) -> End {
    if let Some(why) = outgrown(directory) {
        return End::TooLong(why);
    }
    let status = fs::read_to_string(directory.join(STATUS)).unwrap_or_default();
    match (status.trim(), status.trim().parse()) {
        (OVER, _) => End::Over,
        (_, Err(_) | Ok(ASKED)) => End::Broken,
        (_, Ok(status)) => End::Status(status),
    }
}

/// Finds a file that exceeds its maximum size.
fn outgrown(directory: &Path) -> Option<String> {
    [(OUTPUT, "output", OUTPUT_MAX as u64), (LOG, "log", LOG_MAX)].into_iter().find_map(
        |(name, what, max)| {
            let length = fs::metadata(directory.join(name)).ok()?.len();
            (length > max).then(|| too_long(what, max))
        },
    )
}

/// Waits until a file is too long: a program that never stops writing would fill the disk.
async fn grown_too_long(directory: &Path) -> String {
    loop {
        sleep(LOOK).await;
        if let Some(what) = outgrown(directory) {
            return what;
        }
    }
}

/// Writes the deadline of a run that starts now.
pub(super) fn keep_until(directory: &Path, limit: Duration) -> io::Result<()> {
    let until = since_1970().saturating_add(limit).as_millis();
    record::write(directory, UNTIL, until.to_string().as_bytes())
}

/// The time left until the deadline that was written at the start.
pub(super) fn left(directory: &Path) -> Option<Duration> {
    let until = fs::read_to_string(directory.join(UNTIL)).ok()?.trim().parse().ok()?;
    Some(Duration::from_millis(until).saturating_sub(since_1970()))
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
