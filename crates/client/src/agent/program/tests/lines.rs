//! Programs that talk with their agent in JSON lines.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::super::{
    LinesProgram, OUTPUT_MAX, PersistentProgram, ProgramLine, ProgramReport, parse_line,
    wait_for_groups,
};
use super::{eventually, failed, is_alive, job, quiet};
use crate::agent::dialogue::{Dialogue, NewQuestion, RequesterInput};
use crate::agent::hub::{HubDialogue, test_dialogue};
use crate::agent::{Handler, Job, Outcome};
use crate::testing::{TestServer, answer};

/// A hub that takes everything but what has `bad` in it.
async fn hub() -> TestServer {
    TestServer::new(|request, _| {
        if request.body.contains("bad") {
            return answer(400, "", r#"{"code":"malformed","detail":"bad is bad"}"#);
        }
        answer(200, "", r#"{"state":"asking","question":{"number":1}}"#)
    })
    .await
}

/// A job with a dialogue at a hub.
fn job_at(server: &TestServer) -> (Arc<HubDialogue>, Job) {
    let hub = test_dialogue(&server.url);
    let dialogue = Dialogue::at_hub(Arc::clone(&hub));
    (hub, Job { dialogue, meta: Some(r#"{"messageId":"m-1"}"#.to_owned()), ..job("j", "{}") })
}

fn begin(script: &str, at: &Path, job: Job) -> JoinHandle<Outcome> {
    let program = LinesProgram::new(script, quiet()).working_dir(at);
    tokio::spawn(async move { program.work(job).await })
}

/// What the hub got: the operation and the body.
fn posted(server: &TestServer) -> Vec<(String, Value)> {
    let heard = server.heard().into_iter();
    let verb = |target: &str| target.rsplit('/').next().unwrap_or_default().to_owned();
    heard.map(|one| (verb(&one.target), serde_json::from_str(&one.body).expect("JSON"))).collect()
}

fn text(text: &str) -> RequesterInput {
    let meta = Some(r#"{"messageId":"m-2"}"#.to_owned());
    RequesterInput { input: json!({ "text": text }).to_string(), meta }
}

fn done(output: &str) -> Outcome {
    Outcome::Done(output.to_owned())
}

#[tokio::test]
async fn a_program_reports_hands_over_asks_and_gets_the_answer() {
    let (at, server) = (tempfile::tempdir().expect("a directory"), hub().await);
    let (hub, job) = job_at(&server);
    let script = r#"read job; printf %s "$job" >job
echo '{"progress":{"fraction":0.5,"text":"half"}}'
echo '{"progress":"more"}'
echo 'no line of ours'
echo '{"note":"no line about the job"}'
echo '{"part":{"n":1.0}}'
echo '{"job_id":"j","part":{"n":2},"append":true}'
echo '{"ask":"which city?","schema":{"type":"object"}}'
read answer; printf %s "$answer" >answer
echo '{"output":{"done":true}}'
cat >rest"#;
    let work = begin(script, at.path(), job);
    eventually(|| server.heard().len() == 5).await;
    hub.take_answer(1, text("Lugano"));
    assert_eq!(work.await.expect("no panic"), done(r#"{"done":true}"#));
    let expected = [
        ("progress", json!({"epoch": 1, "fraction": 0.5, "text": "half"})),
        ("progress", json!({"epoch": 1, "text": "more"})),
        ("parts", json!({"epoch": 1, "artifact": {"n": 1.0}})),
        ("parts", json!({"epoch": 1, "artifact": {"n": 2}, "append": true})),
        ("ask", json!({"epoch": 1, "text": "which city?", "schema": {"type": "object"}})),
    ];
    let expected = expected.map(|(verb, body)| (verb.to_owned(), body));
    assert_eq!(posted(&server), expected);
    let read = |name: &str| std::fs::read_to_string(at.path().join(name)).expect("a file");
    let got: Value = serde_json::from_str(&read("job")).expect("JSON");
    assert_eq!((&got["job_id"], &got["meta"]["messageId"]), (&json!("j"), &json!("m-1")));
    let got: Value = serde_json::from_str(&read("answer")).expect("JSON");
    let meta = json!({"messageId": "m-2"});
    assert_eq!(got, json!({"job_id": "j", "answer": {"text": "Lugano"}, "meta": meta}));
    // Its input ends after its result.
    eventually(|| at.path().join("rest").exists()).await;
}

#[tokio::test]
async fn a_program_hears_messages_and_that_its_job_is_cancelled() {
    let (at, server) = (tempfile::tempdir().expect("a directory"), hub().await);
    let (hub, job) = job_at(&server);
    let script = "while read line; do echo \"$line\" >>heard; done";
    let program = PersistentProgram::new(script, quiet()).working_dir(at.path());
    let program = Arc::new(program.reads_messages());
    let working = Arc::clone(&program);
    let work = tokio::spawn(async move { working.work(job).await });
    let heard = || {
        let text = std::fs::read_to_string(at.path().join("heard")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        lines.collect::<Vec<Value>>()
    };
    eventually(|| heard().len() == 1).await;
    hub.take_message(1, text("and cheap"));
    eventually(|| heard().len() == 2).await;
    work.abort();
    eventually(|| heard().len() == 3).await;
    let meta = json!({"messageId": "m-2"});
    let message = json!({"job_id": "j", "message": {"text": "and cheap"}, "meta": meta});
    assert_eq!(heard()[1..], [message, json!({"job_id": "j", "cancelled": true})]);
    // A program that reads only jobs and answers is told nothing else.
    std::fs::remove_file(at.path().join("heard")).expect("removed");
    let (hub, job) = job_at(&server);
    let program = Arc::new(PersistentProgram::new(script, quiet()).working_dir(at.path()));
    let working = Arc::clone(&program);
    let work = tokio::spawn(async move { working.work(job).await });
    eventually(|| heard().len() == 1).await;
    hub.take_message(1, text("and cheap"));
    work.abort();
    let next = Job { time_limit: Duration::from_millis(300), ..super::job("k", "{}") };
    assert_eq!(program.work(next).await, failed("the job exceeded its time limit of 0.3 s"));
    assert_eq!(heard().iter().map(|line| line["job_id"].clone()).collect::<Vec<_>>(), ["j", "k"]);
    program.close().await;
}

#[tokio::test]
async fn a_cancelled_job_terminates_its_program() {
    let (at, server) = (tempfile::tempdir().expect("a directory"), hub().await);
    let (_, job) = job_at(&server);
    let script = r#"echo $$ >pid; trap 'echo ended >ended; exit' TERM
echo '{"ask":"which city?"}'; while :; do sleep 0.05; done"#;
    let work = begin(script, at.path(), job);
    eventually(|| server.heard().len() == 1).await;
    work.abort();
    eventually(|| at.path().join("ended").exists()).await;
    wait_for_groups().await;
    eventually(|| !is_alive(&at.path().join("pid"))).await;
}

#[tokio::test]
async fn a_program_refuses_declines_or_exits_and_its_job_ends_accordingly() {
    let at = tempfile::tempdir().expect("a directory");
    let outcome =
        async |script: &str| begin(script, at.path(), job("j", "{}")).await.expect("no panic");
    let refused = |why: &str| Outcome::Refused(why.to_owned());
    let declined = |why: &str| Outcome::Declined(why.to_owned());
    for (script, expected) in [
        (r#"read job; echo '{"refuse":"against my rules"}'"#, refused("against my rules")),
        (r#"read job; echo '{"decline":"full"}'"#, declined("full")),
        (r#"read job; echo '{"error":{"message":"no"}}'; exit 1"#, failed("no")),
        ("read job; exit 3", failed("the program exited with status 3")),
        ("read job", failed("the program gave no output")),
        ("exit 75", declined("the program asked for another worker (exit status 75)")),
        ("exit 77", refused("the program refused the job (exit status 77)")),
        ("/no/such/program", declined("the program cannot be run")),
    ] {
        assert_eq!(outcome(script).await, expected, "{script}");
    }
}

#[tokio::test]
async fn a_result_counts_although_a_question_is_open_and_a_part_the_hub_refuses_fails_the_job() {
    let (at, server) = (tempfile::tempdir().expect("a directory"), hub().await);
    let script = r#"read job; echo '{"ask":"which city?"}'; echo '{"output":1}'"#;
    let work = begin(script, at.path(), job_at(&server).1);
    assert_eq!(work.await.expect("no panic"), done(r#"{"result":1}"#));
    let script = r#"read job; echo '{"part":{"bad":1}}'; echo '{"output":1}'"#;
    let work = begin(script, at.path(), job_at(&server).1).await.expect("no panic");
    let Outcome::Failed(why) = work else { panic!("{work:?}") };
    assert!(why.starts_with("the hub did not accept a part: bad is bad"), "{why}");
    // A question that cannot be asked has an answer that says so.
    let script = r#"read job; echo '{"ask":"bad"}'; read line; printf %s "$line" >line
echo '{"output":1}'"#;
    let work = begin(script, at.path(), job_at(&server).1);
    assert_eq!(work.await.expect("no panic"), done(r#"{"result":1}"#));
    let line = std::fs::read_to_string(at.path().join("line")).expect("a line");
    let line: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["answer"], Value::Null);
    assert!(line["error"].as_str().expect("a text").contains("bad is bad"), "{line}");
}

#[tokio::test]
async fn the_time_until_the_answer_is_no_working_time() {
    let (at, server) = (tempfile::tempdir().expect("a directory"), hub().await);
    let (hub, job) = job_at(&server);
    let limit = Duration::from_millis(700);
    let script = r#"read job; echo '{"ask":"which city?"}'; read answer; echo '{"output":1}'"#;
    let work = begin(script, at.path(), Job { time_limit: limit, ..job });
    eventually(|| server.heard().len() == 1).await;
    tokio::time::sleep(limit * 2).await;
    hub.take_answer(1, text("Lugano"));
    assert_eq!(work.await.expect("no panic"), done(r#"{"result":1}"#));
    let script = "read job; sleep 600";
    let work = begin(script, at.path(), Job { time_limit: limit, ..super::job("k", "{}") });
    assert_eq!(work.await.expect("no panic"), failed("the job exceeded its time limit of 0.7 s"));
}

#[tokio::test]
async fn a_program_that_reports_faster_than_the_hub_takes_it_fails_and_fills_no_memory() {
    let (at, server) = (tempfile::tempdir().expect("a directory"), hub().await);
    let script = r#"read job; echo '{"ask":"which city?"}'
i=0; while [ $i -lt 3000 ]; do echo '{"progress":"x"}'; i=$((i + 1)); done; sleep 600"#;
    let work = begin(script, at.path(), job_at(&server).1).await.expect("no panic");
    assert_eq!(work, failed("the program reports faster than the hub takes it"));
}

#[test]
fn a_line_says_what_a_program_run_once_would() {
    let told = |rest: &str| {
        let line = format!(r#"{{"job_id":"a",{rest}}}"#);
        parse_line(line.as_bytes(), None).map(|(_, said)| said)
    };
    let ends = |outcome: Outcome| Some(ProgramLine::Outcome(outcome));
    assert_eq!(told(r#""output":null"#), ends(done(r#"{"result":null}"#)));
    assert_eq!(told(r#""output":{"a":1.50}"#), ends(done(r#"{"a":1.50}"#)));
    assert_eq!(told(r#""error":"no""#), ends(failed("no")));
    assert_eq!(told(r#""error":{"message":"no"}"#), ends(failed("no")));
    assert_eq!(told(r#""refuse":"no""#), ends(Outcome::Refused("no".to_owned())));
    assert_eq!(told(r#""other":1"#), ends(failed("the program gave no output")));
    let long = format!(r#""output":"{}""#, "x".repeat(OUTPUT_MAX));
    let too_long = format!("the output is longer than {OUTPUT_MAX} bytes");
    assert_eq!(told(&long), ends(failed(&too_long)));
}

#[test]
fn a_line_without_a_job_is_about_the_only_one_or_about_none() {
    let line = br#"{"ask":"which city?"}"#;
    let ask = ProgramLine::Report(ProgramReport::Ask(NewQuestion::new("which city?")));
    assert_eq!(parse_line(line, Some("j")), Some(("j".to_owned(), ask)));
    assert_eq!(parse_line(line, None), None);
    assert_eq!(parse_line(br#"{"hello":1}"#, Some("j")), None);
    let sign_in = ProgramLine::Report(ProgramReport::SignIn("at x.example".to_owned()));
    let line = br#"{"job_id":"k","ask":"at x.example","auth":true}"#;
    assert_eq!(parse_line(line, Some("j")), Some(("k".to_owned(), sign_in)));
}
