//! A run: how it goes on and how it ends, whoever started it, by the files in its directory.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::process::Child;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::group::{GRACE, Group};
use super::super::{LOG_MAX, OUTPUT_MAX, too_long};
use crate::agent::record::{self, LOG};

pub(super) const OUTPUT: &str = "stdout";
pub(super) const PID: &str = "pid";
pub(super) const STATUS: &str = "status";
/// When its time is over, in milliseconds since 1970: whoever finds it does not count anew.
pub(super) const UNTIL: &str = "until";
/// What stands in the place of an exit status when the time was over.
const OVER: &str = "over";
/// Exit status of what was asked to end, as a shell tells it.
const ASKED: i32 = 128 + 15;
/// How often a run is looked at.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With this exit status.
    Status(i32),
    /// Somebody ended it from outside.
    Broken,
    /// Its time was over.
    Over,
    /// It wrote more than anybody takes, in these words.
    TooLong(String),
}

/// Waits for a run of our own.
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
    // What it started may not have heard.
    group.end();
    child.wait().await?;
    group.release();
    over(directory)
}

/// Waits for a run that somebody else started.
pub(super) async fn adopted(directory: &Path, until: Instant) -> io::Result<End> {
    // Its shell writes this down before anything else.
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
        // Looked at in this order: it is written down before the end.
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

/// Writes down that its time was over. Its shell has said that it was asked to end, if anything, and
/// that would be taken for unfinished.
fn over(directory: &Path) -> io::Result<End> {
    record::write(directory, STATUS, OVER.as_bytes())?;
    Ok(End::Over)
}

/// Whether a run goes on: somebody has its output open.
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

/// How a run that is over has ended, as far as that can be seen. Too much is too much whoever ended it.
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

/// What has grown longer than anybody takes.
fn outgrown(directory: &Path) -> Option<String> {
    [(OUTPUT, "output", OUTPUT_MAX as u64), (LOG, "log", LOG_MAX)].into_iter().find_map(
        |(name, what, max)| {
            let length = fs::metadata(directory.join(name)).ok()?.len();
            (length > max).then(|| too_long(what, max))
        },
    )
}

/// Waits until something has: a program that writes without end would fill the disk.
async fn grown_too_long(directory: &Path) -> String {
    loop {
        sleep(LOOK).await;
        if let Some(what) = outgrown(directory) {
            return what;
        }
    }
}

/// Writes down how long a run that begins now may take.
pub(super) fn keep_until(directory: &Path, limit: Duration) -> io::Result<()> {
    let until = since_1970().saturating_add(limit).as_millis();
    record::write(directory, UNTIL, until.to_string().as_bytes())
}

/// How long a run may go on by what was written down when it began.
pub(super) fn left(directory: &Path) -> Option<Duration> {
    let until = fs::read_to_string(directory.join(UNTIL)).ok()?.trim().parse().ok()?;
    Some(Duration::from_millis(until).saturating_sub(since_1970()))
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
