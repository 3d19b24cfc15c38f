//! A watchdog over a test run: a run without output for too long is killed and counted as failed,
//! and the tests that were still running are named.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// How long a run may print nothing. The longest test takes a fraction of it on two busy cores.
pub const TIME_LIMIT: Duration = Duration::from_secs(8 * 60);

/// Receives every line of output. Dropping it ends the watchdog.
pub struct Watch(Sender<String>);

impl Watch {
    /// Watches a process and all its descendants.
    pub fn over(process: u32, time_limit: Duration) -> Self {
        let (tell, told) = mpsc::channel::<String>();
        thread::spawn(move || {
            let mut slow = BTreeSet::new();
            loop {
                match told.recv_timeout(time_limit) {
                    Ok(line) => note(&mut slow, &line),
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        println!("no output for {} s: killing the run", time_limit.as_secs());
                        slow.iter().for_each(|test| println!("  was running {test}"));
                        return end(process);
                    }
                }
            }
        });
        Self(tell)
    }

    /// Reports one more line.
    pub fn heard(&self, line: &str) {
        // The receiver is gone once the run has been killed.
        let _ = self.0.send(line.to_owned());
    }
}

/// Tracks the tests that were reported as slow and have not ended.
fn note(slow: &mut BTreeSet<String>, line: &str) {
    let Some(about) = line.strip_prefix("test ") else { return };
    if let Some((name, _)) = about.split_once(" has been running for over ") {
        slow.insert(name.to_owned());
    } else if let Some((name, _)) = about.split_once(" ... ") {
        slow.remove(name);
    }
}

/// Kills a process and all its descendants, so that none keeps the pipe open. Parents go first,
/// because they could start new children.
fn end(process: u32) {
    let mut all = vec![process];
    let parents = parents();
    let mut at = 0;
    while let Some(above) = all.get(at).copied() {
        all.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(child, _)| *child));
        at += 1;
    }
    let all = all.iter().map(u32::to_string);
    let _ = Command::new("kill").arg("-KILL").args(all).status();
}

/// Every process with its parent, where `/proc` exists.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pair = |name: String| {
        let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
        // The name of the program is in parentheses and may contain anything.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((name.parse().ok()?, parent))
    };
    entries.flatten().filter_map(|entry| pair(entry.file_name().into_string().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    use super::*;

    #[test]
    fn what_takes_long_is_remembered_until_it_ends() {
        let mut slow = BTreeSet::new();
        for line in [
            "test a::b has been running for over 60 seconds",
            "test c has been running for over 60 seconds",
            "test c ... ok",
            "running 3 tests",
        ] {
            note(&mut slow, line);
        }
        assert_eq!(slow.into_iter().collect::<Vec<_>>(), ["a::b"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_run_that_falls_silent_is_ended_with_all_it_started() {
        let mut run = Command::new("sh")
            .args(["-c", "echo begun; sh -c 'sleep 600'; echo over"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let watch = Watch::over(run.id(), Duration::from_millis(300));
        let mut heard = Vec::new();
        // Ends only when no process holds the pipe any more.
        for line in BufReader::new(run.stdout.take().expect("a pipe")).lines() {
            let line = line.expect("text");
            watch.heard(&line);
            heard.push(line);
        }
        assert_eq!(heard, ["begun"]);
        assert!(!run.wait().expect("it has ended").success());
    }

    #[test]
    fn a_run_that_goes_on_speaking_is_left_alone() {
        let mut run = Command::new("sh").args(["-c", "sleep 1"]).spawn().expect("it starts");
        let watch = Watch::over(run.id(), Duration::from_secs(600));
        watch.heard("test a ... ok");
        drop(watch);
        assert!(run.wait().expect("it ends").success());
    }
}
