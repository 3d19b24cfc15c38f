mod exec;
mod lines;
mod persistent;
mod web;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_core::money::Credits;

use super::{Exec, LogSink};
use crate::agent::record::JobRecords;
use crate::agent::{Dialogue, Job, Outcome};

fn job(id: &str, input: &str) -> Job {
    Job {
        id: id.to_owned(),
        epoch: 1,
        skill: "try".to_owned(),
        input: input.to_owned(),
        requester: "alice".to_owned(),
        budget: Credits::ZERO,
        deadline: None,
        time_limit: Duration::from_secs(60),
        meta: None,
        dialogue: Dialogue::default(),
    }
}

fn quiet() -> LogSink {
    Arc::new(|_, _| {})
}

fn exec(command: &str, at: &Path) -> Exec {
    Exec::new(command, JobRecords::open(at).expect("a directory"), quiet())
}

fn failed(why: &str) -> Outcome {
    Outcome::Failed(why.to_owned())
}

/// A log sink, and the lines it received.
fn listening() -> (LogSink, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&heard);
    let log: LogSink = Arc::new(move |job, line| {
        lines.lock().expect("a lock").push(format!("{job}: {line}"));
    });
    (log, heard)
}

/// Waits until a condition holds.
async fn eventually(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("it comes true");
}

/// Whether the process runs whose pid a program wrote to this file.
fn is_alive(pid: &Path) -> bool {
    let pid = std::fs::read_to_string(pid).unwrap_or_default();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // A zombie has ended but is still listed.
    !stat.is_empty() && !stat.contains(") Z ")
}
