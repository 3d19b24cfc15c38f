//! Programs that run once per job.

use std::time::Duration;

use serde_json::Value;

use super::super::{Environment, Exec, OUTPUT_MAX};
use super::{eventually, exec, failed, is_alive, job, listening};
use crate::agent::record::JobRecords;
use crate::agent::{Handler, Job, Outcome};

#[tokio::test]
async fn a_program_reads_the_job_and_writes_the_result() {
    let at = tempfile::tempdir().expect("a directory");
    let Outcome::Done(text) = exec("cat", at.path()).work(job("a", r#"{"n":1.50}"#)).await else {
        panic!("not done")
    };
    assert!(text.contains(r#""input":{"n":1.50}"#), "{text}");
    let read: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(read["job_id"], "a");
    assert_eq!(read["skill"], "try");
}

#[tokio::test]
async fn how_a_program_ends_says_what_became_of_the_job() {
    let at = tempfile::tempdir().expect("a directory");
    let declined = |why: &str| Outcome::Declined(why.to_owned());
    for (id, command, wanted) in [
        ("done", "echo '\"HI\"'", Outcome::Done(r#"{"result":"HI"}"#.to_owned())),
        ("elsewhere", "exit 75", declined("the program asked for another worker (exit status 75)")),
        ("full", r#"echo '{"error":"full"}'; exit 75"#, declined("full")),
        ("failed", "echo oops >&2; exit 3", failed("the program exited with status 3")),
        ("why", r#"echo '{"error":"no paper"}'; exit 1"#, failed("no paper")),
        ("missing", "no-such-program-here", declined("the program cannot be run")),
    ] {
        assert_eq!(exec(command, at.path()).work(job(id, "{}")).await, wanted, "{id}");
    }
    let Outcome::Failed(why) = exec("echo oops", at.path()).work(job("text", "{}")).await else {
        panic!("not failed")
    };
    assert!(why.starts_with("the output is not valid JSON"), "{why}");
}

#[tokio::test]
async fn a_program_gets_no_variable_it_was_not_given() {
    let at = tempfile::tempdir().expect("a directory");
    let names = r#"env | sed -n 's/^\(CARGO[A-Z_]*\|PATH\)=.*/"\1"/p' | sort | paste -s -d, | sed 's/.*/[&]/'"#;
    let outcome = exec(names, at.path()).work(job("a", "{}")).await;
    assert_eq!(outcome, Outcome::Done(r#"{"result":["PATH"]}"#.to_owned()));
    let environment = Environment::default().pass("CARGO_PKG_NAME").expect("a name");
    let outcome = exec(names, at.path()).environment(environment).work(job("b", "{}")).await;
    assert_eq!(outcome, Outcome::Done(r#"{"result":["CARGO_PKG_NAME","PATH"]}"#.to_owned()));
}

#[tokio::test]
async fn what_a_program_says_beside_its_work_is_its_log() {
    let at = tempfile::tempdir().expect("a directory");
    let (log, heard) = listening();
    let exec = Exec::new(
        "echo one >&2; echo two >&2; printf three >&2; echo '{}'",
        JobRecords::open(at.path()).expect("a directory"),
        log,
    );
    assert!(exec.work(job("a", "{}")).await.is_done());
    assert_eq!(*heard.lock().expect("a lock"), ["a: one", "a: two", "a: three"]);
}

#[tokio::test]
async fn a_program_past_its_time_limit_is_terminated_and_then_killed() {
    let at = tempfile::tempdir().expect("a directory");
    for (id, command) in [("asked", "sleep 600"), ("deaf", "trap '' TERM; sleep 600; sleep 600")] {
        let short = Job { time_limit: Duration::from_millis(200), ..job(id, "{}") };
        let outcome = exec(command, at.path()).work(short).await;
        assert_eq!(outcome, failed("the job exceeded its time limit of 0.2 s"), "{id}");
    }
}

#[tokio::test]
async fn a_run_that_was_begun_is_waited_for_and_not_begun_again() {
    let at = tempfile::tempdir().expect("a directory");
    let (gate, runs) = (at.path().join("gate"), at.path().join("runs"));
    let command = format!(
        "echo run >>{}; until [ -e {} ]; do sleep 0.05; done; echo '{{\"n\":1}}'",
        runs.display(),
        gate.display()
    );
    let begin = || exec(&command, &at.path().join("jobs"));
    // The agent is aborted while the job runs; the run itself continues.
    let first = begin();
    let begun = tokio::spawn(async move { first.work(job("a", "{}")).await });
    while !runs.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let directory = std::fs::read_dir(at.path().join("jobs")).expect("jobs").next();
    let directory = directory.expect("one").expect("one").path();
    let second = begin();
    let again = tokio::spawn(async move { second.work(job("a", "{}")).await });
    std::fs::write(&gate, "").expect("a file");
    let wanted = Outcome::Done(r#"{"n":1}"#.to_owned());
    assert_eq!(again.await.expect("no panic"), wanted);
    assert_eq!(begun.await.expect("no panic"), wanted);
    // A finished run is not started again either.
    assert!(directory.join("status").exists());
    assert_eq!(begin().work(job("a", "{}")).await, wanted);
    assert_eq!(std::fs::read_to_string(&runs).expect("a file"), "run\n");
    // Another assignment, or the same id from another requester, is another job.
    assert_eq!(begin().work(Job { epoch: 2, ..job("a", "{}") }).await, wanted);
    let stranger = Job { requester: "stranger".to_owned(), ..job("a", "{}") };
    assert_eq!(begin().work(stranger).await, wanted);
    assert_eq!(std::fs::read_to_string(&runs).expect("a file"), "run\n".repeat(3));
}

#[tokio::test]
async fn a_program_that_writes_without_end_is_ended() {
    let at = tempfile::tempdir().expect("a directory");
    for (id, command, what) in [
        ("out", "trap '' TERM; yes", format!("output is longer than {OUTPUT_MAX} bytes")),
        ("err", "yes >&2", "log is longer than 16777216 bytes".to_owned()),
    ] {
        let outcome = exec(command, at.path()).work(job(id, "{}")).await;
        assert_eq!(outcome, failed(&format!("the {what}")), "{id}");
    }
    // It is not started again.
    let again = exec("echo '{}'", at.path()).work(job("out", "{}")).await;
    assert_eq!(again, failed(&format!("the output is longer than {OUTPUT_MAX} bytes")));
}

#[tokio::test]
async fn a_run_of_another_process_that_writes_without_end_is_ended() {
    let at = tempfile::tempdir().expect("a directory");
    let (gate, pid) = (at.path().join("gate"), at.path().join("pid"));
    let command = format!(
        "echo $$ >{}; until [ -e {} ]; do sleep 0.05; done; yes",
        pid.display(),
        gate.display()
    );
    let begin = || {
        let exec = exec(&command, &at.path().join("jobs"));
        tokio::spawn(async move { exec.work(job("a", "{}")).await })
    };
    let first = begin();
    eventually(|| pid.exists()).await;
    let second = begin();
    std::fs::write(&gate, "").expect("a file");
    let wanted = failed(&format!("the output is longer than {OUTPUT_MAX} bytes"));
    assert_eq!(second.await.expect("no panic"), wanted);
    assert_eq!(first.await.expect("no panic"), wanted);
    eventually(|| !is_alive(&pid)).await;
}

#[tokio::test]
async fn a_job_that_is_requested_twice_at_once_runs_once() {
    let at = tempfile::tempdir().expect("a directory");
    let runs = at.path().join("runs");
    let command = format!("echo run >>{}; sleep 0.2; echo '{{}}'", runs.display());
    for number in 0..10 {
        let all = (0..8).map(|_| {
            let exec = exec(&command, &at.path().join("jobs"));
            tokio::spawn(async move { exec.work(job(&number.to_string(), "{}")).await })
        });
        for outcome in futures_util::future::join_all(all).await {
            assert_eq!(outcome.expect("no panic"), Outcome::Done("{}".to_owned()));
        }
    }
    assert_eq!(std::fs::read_to_string(&runs).expect("a file"), "run\n".repeat(10));
}

#[tokio::test]
async fn the_order_of_a_peer_that_was_sent_back_is_tried_again() {
    let at = tempfile::tempdir().expect("a directory");
    let gate = at.path().join("gate");
    let command = format!("[ -e {} ] || exit 75; echo '{{}}'", gate.display());
    let work = async |turn: u32| {
        exec(&command, at.path()).work(Job { epoch: turn, ..job("a", "{}") }).await
    };
    let declined =
        Outcome::Declined("the program asked for another worker (exit status 75)".to_owned());
    assert_eq!((work(0).await, work(1).await), (declined.clone(), declined.clone()));
    std::fs::write(&gate, "").expect("a file");
    assert!(work(0).await.is_done());
    // The hub would assign it again with a new epoch.
    assert_eq!(work(1).await, declined);
}

#[tokio::test]
async fn a_run_that_is_found_again_has_no_more_time_than_it_was_given() {
    let at = tempfile::tempdir().expect("a directory");
    let (jobs, runs) = (at.path().join("jobs"), at.path().join("runs"));
    let command = format!("echo run >>{}; sleep 600", runs.display());
    let begin = |limit: Duration| {
        let (exec, job) = (exec(&command, &jobs), Job { time_limit: limit, ..job("a", "{}") });
        tokio::spawn(async move { exec.work(job).await })
    };
    let first = begin(Duration::from_secs(600));
    eventually(|| runs.exists()).await;
    // As if it had started long ago.
    let directory = std::fs::read_dir(&jobs).expect("jobs").next().expect("one").expect("one");
    std::fs::write(directory.path().join("until"), "1000").expect("written");
    let again = begin(Duration::from_secs(500));
    assert_eq!(again.await.expect("no panic"), failed("the job exceeded its time limit of 500 s"));
    // It does not count as interrupted, so it is not started again.
    assert_eq!(
        begin(Duration::from_secs(5)).await.expect("no panic"),
        failed("the job exceeded its time limit of 5 s")
    );
    assert_eq!(std::fs::read_to_string(&runs).expect("a file"), "run\n");
    first.abort();
}

#[tokio::test]
async fn what_a_program_leaves_behind_is_ended_with_it() {
    let at = tempfile::tempdir().expect("a directory");
    let pid = at.path().join("pid");
    let command = format!("sleep 600 & echo $! >{}; echo '{{}}'", pid.display());
    assert!(exec(&command, &at.path().join("jobs")).work(job("a", "{}")).await.is_done());
    eventually(|| !is_alive(&pid)).await;
}

#[tokio::test]
async fn output_that_is_no_text_is_a_failure() {
    let at = tempfile::tempdir().expect("a directory");
    let outcome = exec("printf '{\"a\":\"\\377\"}'", at.path()).work(job("a", "{}")).await;
    assert_eq!(outcome, failed("the output is not valid UTF-8"));
}
