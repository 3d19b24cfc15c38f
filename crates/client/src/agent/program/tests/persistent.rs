//! Persistent programs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rialto_core::time::Timestamp;
use tokio::task::JoinHandle;

use super::super::{Environment, PersistentProgram, wait_for_groups};
use super::{eventually, failed, is_alive, job, listening, quiet};
use crate::agent::record::JobRecords;
use crate::agent::{Handler, Job, Outcome};
use crate::clock;

/// A program that replies to each job with a counter, its pid, and the job's input. A job with
/// `slow` in it is answered once a file `gate` exists.
const COUNTS: &str = r#"
echo $$ >pid; echo start >>starts; n=0
while read job; do
  n=$((n + 1))
  id=$(printf %s "$job" | sed 's/.*"job_id":"\([^"]*\)".*/\1/')
  echo "job $id" >&2
  case $job in *slow*) until [ -e gate ]; do sleep 0.02; done;; esac
  echo "{\"job_id\":\"$id\",\"output\":{\"n\":$n}}"
done"#;

fn counting(at: &Path) -> Arc<PersistentProgram> {
    Arc::new(PersistentProgram::new(COUNTS, quiet()).working_dir(at))
}

fn begin(stays: &Arc<PersistentProgram>, job: Job) -> JoinHandle<Outcome> {
    let stays = Arc::clone(stays);
    tokio::spawn(async move { stays.work(job).await })
}

fn counted(n: u32) -> Outcome {
    Outcome::Done(format!(r#"{{"n":{n}}}"#))
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[tokio::test]
async fn a_program_that_stays_gets_no_variable_it_was_not_given() {
    let script = r#"while read job; do
  id=$(printf %s "$job" | sed 's/.*"job_id":"\([^"]*\)".*/\1/')
  echo "{\"job_id\":\"$id\",\"output\":{\"n\":\"${CARGO_MANIFEST_DIR-}${CARGO_PKG_NAME-}\"}}"
done"#;
    let told = async |stays: PersistentProgram| stays.work(job("a", "{}")).await;
    let nothing = told(PersistentProgram::new(script, quiet())).await;
    assert_eq!(nothing, Outcome::Done(r#"{"n":""}"#.to_owned()));
    let environment = Environment::default().pass("CARGO_PKG_NAME").expect("a name");
    let passed = told(PersistentProgram::new(script, quiet()).environment(environment)).await;
    assert_eq!(passed, Outcome::Done(r#"{"n":"rialto-client"}"#.to_owned()));
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
    let stays = Arc::new(PersistentProgram::new(script, quiet()));
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
    assert_eq!(begin("d").await.expect("no panic"), failed("the program exited during the job"));
    // It is restarted for the next job.
    let (a, b) = (begin("e"), begin("f"));
    let outcomes = [a.await.expect("no panic"), b.await.expect("no panic")];
    assert!(outcomes.iter().any(Outcome::is_done), "{outcomes:?}");
}

#[tokio::test]
async fn a_line_without_an_end_does_not_fill_the_memory() {
    let stays = PersistentProgram::new("read job; yes no-line-ever-ends | tr -d '\\n'", quiet());
    assert_eq!(stays.work(job("a", "{}")).await, failed("the program exited during the job"));
}

#[tokio::test]
async fn a_log_that_is_no_text_does_not_stop_the_work() {
    let script = r#"
printf '\377\376 not text\n' >&2
read job
i=0; while [ $i -lt 40 ]; do printf '%04096d\n' 0 >&2; i=$((i + 1)); done
echo '{"job_id":"a","output":{"n":1}}'"#;
    let (log, heard) = listening();
    let stays = PersistentProgram::new(script, log);
    assert_eq!(stays.work(job("a", "{}")).await, Outcome::Done(r#"{"n":1}"#.to_owned()));
    let first = heard.lock().expect("a list").first().cloned();
    let first = first.map(|line| line.trim_start_matches('a').to_owned());
    assert_eq!(first.as_deref(), Some(": \u{fffd}\u{fffd} not text"));
}

#[tokio::test]
async fn two_jobs_of_one_name_never_get_each_others_results() {
    let at = tempfile::tempdir().expect("a directory");
    let stays = counting(at.path());
    let first = begin(&stays, job("same", r#""slow""#));
    eventually(|| at.path().join("starts").exists()).await;
    let second = begin(&stays, job("same", "{}"));
    let hasty = Job { time_limit: Duration::from_millis(100), ..job("same", "{}") };
    let declined =
        Outcome::Declined("the program still works on a job with the same id".to_owned());
    assert_eq!(stays.work(hasty).await, declined);
    std::fs::write(at.path().join("gate"), "").expect("a file");
    assert_eq!(first.await.expect("no panic"), counted(1));
    assert_eq!(second.await.expect("no panic"), counted(2));
}

#[tokio::test]
async fn the_deadline_of_one_requester_costs_the_others_nothing() {
    let at = tempfile::tempdir().expect("a directory");
    let stays = counting(at.path());
    let soon = Duration::from_millis(300);
    let hasty = Job {
        deadline: Some(Timestamp(clock::now().0 + 300)),
        time_limit: soon,
        ..job("hasty", r#""slow""#)
    };
    let hasty = begin(&stays, hasty);
    eventually(|| at.path().join("starts").exists()).await;
    let other = begin(&stays, job("other", "{}"));
    assert_eq!(hasty.await.expect("no panic"), failed("the job exceeded its time limit of 0.3 s"));
    std::fs::write(at.path().join("gate"), "").expect("a file");
    // The late reply is ignored, and the program is still the same.
    assert_eq!(other.await.expect("no panic"), counted(2));
    assert_eq!(text(&at.path().join("starts")), "start\n");
}

#[tokio::test]
async fn a_program_that_takes_longer_than_its_skill_allows_is_restarted() {
    let at = tempfile::tempdir().expect("a directory");
    let stays = counting(at.path());
    let slow = Job { time_limit: Duration::from_secs(3), ..job("slow", r#""slow""#) };
    let slow = begin(&stays, slow);
    eventually(|| at.path().join("starts").exists()).await;
    let other = begin(&stays, job("other", "{}"));
    assert_eq!(slow.await.expect("no panic"), failed("the job exceeded its time limit of 3 s"));
    let declined = Outcome::Declined("the program was restarted".to_owned());
    assert_eq!(other.await.expect("no panic"), declined);
    assert_eq!(stays.work(job("next", "{}")).await, counted(1));
}

#[tokio::test]
async fn a_program_that_fell_silent_is_restarted_although_only_deadlines_passed() {
    let at = tempfile::tempdir().expect("a directory");
    let limit = Duration::from_millis(400);
    let stays =
        Arc::new(PersistentProgram::new(COUNTS, quiet()).working_dir(at.path()).time_limit(limit));
    let hasty = Job {
        deadline: Some(Timestamp(clock::now().0 + 100)),
        time_limit: Duration::from_millis(100),
        ..job("hasty", r#""slow""#)
    };
    assert_eq!(stays.work(hasty).await, failed("the job exceeded its time limit of 0.1 s"));
    tokio::time::sleep(limit).await;
    assert_eq!(stays.work(job("next", "{}")).await, counted(1));
}

#[tokio::test]
async fn a_program_that_does_not_listen_ends_when_its_agent_closes() {
    let at = tempfile::tempdir().expect("a directory");
    let pid = at.path().join("pid");
    let stays =
        PersistentProgram::new(format!("trap '' TERM; {COUNTS}"), quiet()).working_dir(at.path());
    assert_eq!(stays.work(job("a", "{}")).await, counted(1));
    stays.close().await;
    wait_for_groups().await;
    eventually(|| !is_alive(&pid)).await;
}

#[tokio::test]
async fn what_a_program_says_beside_its_work_is_in_the_logs_of_the_jobs_in_hand() {
    let at = tempfile::tempdir().expect("a directory");
    let records = JobRecords::open(at.path().join("jobs")).expect("a directory");
    let (log, heard) = listening();
    let stays = PersistentProgram::new(COUNTS, log).working_dir(at.path()).log_to(records.clone());
    let stays = Arc::new(stays);
    let recorded = records.open_record(&job("a", "{}")).expect("a record");
    for _ in 0..20 {
        assert!(stays.work(job("a", "{}")).await.is_done());
    }
    assert_eq!(text(&recorded.path().join("stderr")), "job a\n".repeat(20));
    assert_eq!(*heard.lock().expect("a lock"), vec!["a: job a"; 20]);
    // Without a record, a job's log is in the directory of finished logs.
    let slow = begin(&stays, job("b", r#""slow""#));
    eventually(|| heard.lock().expect("a lock").len() == 21).await;
    let other = begin(&stays, job("c", "{}"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    std::fs::write(at.path().join("gate"), "").expect("a file");
    assert!(slow.await.expect("no panic").is_done() && other.await.expect("no panic").is_done());
    let logs = std::fs::read_dir(at.path().join("logs")).expect("logs").flatten();
    let mut logs: Vec<_> = logs.map(|log| text(&log.path().join("stderr"))).collect();
    logs.sort();
    assert_eq!(logs, ["job b\n", "job c\n"]);
}

#[tokio::test]
async fn a_program_that_reads_no_more_is_started_again_and_may_finish_what_it_has() {
    let at = tempfile::tempdir().expect("a directory");
    let script = r#"echo start >>starts; read job; exec <&-; touch closed
until [ -e gate ]; do sleep 0.02; done
id=$(printf %s "$job" | sed 's/.*"job_id":"\([^"]*\)".*/\1/')
echo "{\"job_id\":\"$id\",\"output\":\"$id\"}"; sleep 600"#;
    let stays = Arc::new(PersistentProgram::new(script, quiet()).working_dir(at.path()));
    let first = begin(&stays, job("a", "{}"));
    eventually(|| at.path().join("closed").exists()).await;
    let second = begin(&stays, job("b", "{}"));
    eventually(|| text(&at.path().join("starts")).lines().count() == 2).await;
    std::fs::write(at.path().join("gate"), "").expect("a file");
    let done = |id: &str| Outcome::Done(format!(r#"{{"result":"{id}"}}"#));
    assert_eq!(first.await.expect("no panic"), done("a"));
    assert_eq!(second.await.expect("no panic"), done("b"));
}
