use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_core::money::Credits;
use serde_json::Value;

use super::{Exec, Log, Persistent};
use crate::agent::record::Records;
use crate::agent::{Handler, Job, Outcome};

fn job(id: &str, input: &str) -> Job {
    Job {
        id: id.to_owned(),
        turn: 1,
        skill: "try".to_owned(),
        input: input.to_owned(),
        requester: "somebody".to_owned(),
        budget: Credits::ZERO,
        deadline: None,
        time_limit: Duration::from_secs(60),
    }
}

fn quiet() -> Log {
    Arc::new(|_, _| {})
}

fn exec(command: &str, at: &Path) -> Exec {
    Exec::new(command, Records::at(at).expect("a directory"), quiet())
}

fn failed(why: &str) -> Outcome {
    Outcome::Failed(why.to_owned())
}

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
        ("elsewhere", "exit 75", declined("not here, not now")),
        ("full", r#"echo '{"error":"full"}'; exit 75"#, declined("full")),
        ("failed", "echo oops >&2; exit 3", failed("the program ended with status 3")),
        ("why", r#"echo '{"error":"no paper"}'; exit 1"#, failed("no paper")),
        ("missing", "no-such-program-here", declined("the program cannot be run")),
    ] {
        assert_eq!(exec(command, at.path()).work(job(id, "{}")).await, wanted, "{id}");
    }
    let Outcome::Failed(why) = exec("echo oops", at.path()).work(job("text", "{}")).await else {
        panic!("not failed")
    };
    assert!(why.starts_with("the output is no JSON"), "{why}");
}

#[tokio::test]
async fn what_a_program_says_beside_its_work_is_its_log() {
    let at = tempfile::tempdir().expect("a directory");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&heard);
    let log: Log = Arc::new(move |job, line| {
        lines.lock().expect("a lock").push(format!("{job}: {line}"));
    });
    let exec = Exec::new(
        "echo one >&2; echo two >&2; printf three >&2; echo '{}'",
        Records::at(at.path()).expect("a directory"),
        log,
    );
    assert!(exec.work(job("a", "{}")).await.is_done());
    assert_eq!(*heard.lock().expect("a lock"), ["a: one", "a: two", "a: three"]);
}

#[tokio::test]
async fn a_program_whose_time_is_over_is_asked_to_end_and_then_ended() {
    let at = tempfile::tempdir().expect("a directory");
    for (id, command) in [("asked", "sleep 600"), ("deaf", "trap '' TERM; sleep 600; sleep 600")] {
        let short = Job { time_limit: Duration::from_millis(200), ..job(id, "{}") };
        let outcome = exec(command, at.path()).work(short).await;
        assert_eq!(outcome, failed("it took longer than 0.2 s"), "{id}");
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
    // Killed in the middle: nobody is left who knows of the run, and nobody ended it.
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
    // And what has ended is not begun again either.
    assert!(directory.join("status").exists());
    assert_eq!(begin().work(job("a", "{}")).await, wanted);
    assert_eq!(std::fs::read_to_string(&runs).expect("a file"), "run\n");
    // Another turn, or the same id from somebody else, is another job.
    assert_eq!(begin().work(Job { turn: 2, ..job("a", "{}") }).await, wanted);
    let stranger = Job { requester: "stranger".to_owned(), ..job("a", "{}") };
    assert_eq!(begin().work(stranger).await, wanted);
    assert_eq!(std::fs::read_to_string(&runs).expect("a file"), "run\n".repeat(3));
}

#[tokio::test]
async fn a_program_that_stays_answers_in_any_order() {
    let script = r#"
read a; read b
id() { printf %s "$1" | sed 's/.*"job_id":"\([^"]*\)".*/\1/'; }
echo "{\"job_id\":\"$(id "$b")\",\"output\":{\"n\":2}}"
echo "no line of ours"
echo "{\"job_id\":\"$(id "$a")\",\"error\":\"no paper\"}"
read c
echo "{\"job_id\":\"$(id "$c")\",\"decline\":\"full\"}"
read d; exit 1"#;
    let stays = Arc::new(Persistent::new(script, quiet()));
    let begin = |id: &'static str| {
        let stays = Arc::clone(&stays);
        tokio::spawn(async move { stays.work(job(id, "{}")).await })
    };
    let (a, b) = (begin("a"), begin("b"));
    let [a, b] = [a.await.expect("no panic"), b.await.expect("no panic")];
    // Either may have been read first.
    let (first, second) = if a.is_done() { (b, a) } else { (a, b) };
    assert_eq!(first, failed("no paper"));
    assert_eq!(second, Outcome::Done(r#"{"n":2}"#.to_owned()));
    assert_eq!(begin("c").await.expect("no panic"), Outcome::Declined("full".to_owned()));
    assert_eq!(begin("d").await.expect("no panic"), failed("the program ended at this"));
    // It is started again for the next.
    let (a, b) = (begin("e"), begin("f"));
    let outcomes = [a.await.expect("no panic"), b.await.expect("no panic")];
    assert!(outcomes.iter().any(Outcome::is_done), "{outcomes:?}");
}

#[tokio::test]
async fn a_line_without_an_end_does_not_fill_the_memory() {
    let stays = Persistent::new("read job; yes no-line-ever-ends | tr -d '\\n'", quiet());
    assert_eq!(stays.work(job("a", "{}")).await, failed("the program ended at this"));
}

#[tokio::test]
async fn a_log_that_is_no_text_does_not_stop_the_work() {
    let script = r#"
printf '\377\376 not text\n' >&2
read job
i=0; while [ $i -lt 40 ]; do printf '%04096d\n' 0 >&2; i=$((i + 1)); done
echo '{"job_id":"a","output":{"n":1}}'"#;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log: Log = {
        let heard = Arc::clone(&heard);
        Arc::new(move |_, line| heard.lock().expect("a list").push(line.to_owned()))
    };
    let stays = Persistent::new(script, log);
    assert_eq!(stays.work(job("a", "{}")).await, Outcome::Done(r#"{"n":1}"#.to_owned()));
    let first = heard.lock().expect("a list").first().cloned();
    assert_eq!(first.as_deref(), Some("\u{fffd}\u{fffd} not text"));
}
