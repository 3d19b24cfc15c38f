//! A wallet at a test market that sends what the test specifies.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_protocols::clara::PROCESS;

use crate::call::CallError;
use crate::clara::{MarketClient, Profile, RetryPolicy, Seed, Server, TaskEnd, TaskSpec, Wallet};
use crate::testing::{Heard, Stage, answer};

const REGISTERED: &str =
    r#"{"Messages":[{"Target":"a","Tags":[{"name":"Action","value":"Registered"}]}]}"#;

async fn market(said: impl Fn(&Heard, usize) -> Vec<u8> + Send + 'static) -> (Stage, MarketClient) {
    let stage = Stage::new(move |heard, number| match heard.target.as_str() {
        "/clara" => answer(200, "", &format!(r#"{{"process":"{PROCESS}"}}"#)),
        _ => said(heard, number),
    })
    .await;
    let server = Server::discover(&stage.url).await.expect("a market");
    assert_eq!(server.process().to_string(), PROCESS);
    let quick = Duration::from_millis(2);
    let server =
        server.with_retry(RetryPolicy { max_attempts: 3, initial_delay: quick, max_delay: quick });
    let account = MarketClient::new(Wallet::new(&Seed::from_bytes([1; 32])), server);
    (stage, account)
}

fn profile() -> Profile {
    let fee = Credits::from_micros(20_000_000);
    Profile { id: "A".to_owned(), topic: "tweet".to_owned(), fee, metadata: "{}".to_owned() }
}

#[tokio::test]
async fn a_message_whose_answer_was_lost_is_sent_again_as_it_is() {
    let (stage, account) = market(|heard, number| match (heard.method.as_str(), number) {
        ("POST", 0) => Vec::new(),
        ("POST", 1) => answer(503, "", r#"{"error":"not now"}"#),
        ("POST", _) => answer(202, "", r#"{"message":"Processing DataItem","id":"x"}"#),
        _ => answer(200, "", REGISTERED),
    })
    .await;
    account.register(&profile()).await.expect("registered");
    let heard = stage.heard();
    let posted: Vec<&Heard> = heard.iter().filter(|one| one.method == "POST").collect();
    assert_eq!(posted.len(), 3);
    assert!(posted.iter().all(|one| one.body == posted[0].body && one.target == "/clara/mu"));
    let kind = posted[0].header("content-type");
    assert_eq!(kind, Some("application/octet-stream"));
    let read = &heard.last().expect("a result").target;
    assert!(read.ends_with(&format!("?process-id={PROCESS}")), "{read}");
}

#[tokio::test]
async fn what_the_market_does_not_do_is_an_error_in_its_words() {
    let (_stage, account) = market(|heard, _| match heard.method.as_str() {
        "POST" => answer(202, "", "{}"),
        _ => answer(200, "", r#"{"Error":"No agents to choose from","Messages":[]}"#),
    })
    .await;
    let error = account.register(&profile()).await.expect_err("an error");
    assert_eq!(error.to_string(), "No agents to choose from");
    assert!(matches!(error, CallError::Refused { status: 202, retryable: true, .. }));
}

#[tokio::test]
async fn what_the_unit_does_not_take_is_not_sent_again() {
    let (stage, account) = market(|_, _| answer(401, "", r#"{"error":"the signature"}"#)).await;
    let error = account.register(&profile()).await.expect_err("an error");
    assert!(
        matches!(&error, CallError::Refused { status: 401, message, .. } if message == "the signature")
    );
    assert_eq!(stage.heard().iter().filter(|one| one.method == "POST").count(), 1);
    let fee = Credits::from_micros(1);
    let unfit = account.register(&Profile { fee, ..profile() }).await.expect_err("no price");
    assert!(matches!(unfit, CallError::Refused { status: 400, .. }));
}

/// A results page with messages to an address about a task, after a cursor.
fn page(cursor: &str, target: &str, task: &str, action: &str) -> String {
    let done = format!(
        r#"{{\"id\":\"{task}\",\"agentId\":\"A\",\"sender\":\"s\",\"recipient\":\"r\",\"result\":{{\"x\":1}},\"timestamp\":5,\"block\":1}}"#
    );
    let tags =
        format!(r#"[{{"name":"Action","value":"{action}"}},{{"name":"TaskId","value":"{task}"}}]"#);
    let message = format!(r#"{{"Target":"{target}","Data":"{done}","Tags":{tags}}}"#);
    format!(
        r#"{{"pageInfo":{{"hasNextPage":true}},"edges":[{{"cursor":"{cursor}","node":{{"Messages":[{message}]}}}}]}}"#
    )
}

#[tokio::test]
async fn a_requester_finds_its_own_result_among_all_others() {
    let me = Wallet::new(&Seed::from_bytes([1; 32])).address().to_owned();
    let registered = std::sync::Mutex::new(String::new());
    let (_stage, account) = market(move |heard, number| {
        let mut task = registered.lock().expect("sound");
        if let Some(result) = heard.target.strip_prefix("/clara/cu/result/") {
            *task = result.split('?').next().unwrap_or_default().to_owned();
            return answer(200, "", r#"{"Messages":[]}"#);
        }
        let nothing = r#"{"pageInfo":{"hasNextPage":false},"edges":[]}"#;
        let after = heard.target.split("from=").nth(1).and_then(|rest| rest.split('&').next());
        let body = match after {
            _ if heard.method == "POST" => "{}".to_owned(),
            None if heard.target.contains("DESC") => nothing.to_owned(),
            None if number == 0 => nothing.to_owned(),
            None => page("c1", "another-address", &task, "Task-Result"),
            Some("c1") => page("c2", &me, "another", "Task-Result"),
            Some("c2") => page("c3", &me, &task, "Task-Queued"),
            Some("c3") => page("c4", &me, &task, "Task-Result"),
            Some(_) => nothing.to_owned(),
        };
        answer(200, "", &body)
    })
    .await;
    let order = TaskSpec::new("tweet", Credits::from_micros(5_000_000), "{}");
    let mut wait = account.register_task(&order).await.expect("registered");
    let ending = wait.next(Duration::from_secs(5)).await.expect("an ending");
    let TaskEnd::Done(outcome) = ending else { panic!("{ending:?}") };
    assert_eq!((outcome.task_id.as_str(), outcome.result.as_str()), (wait.task_id(), r#"{"x":1}"#));
    let late = wait.next(Duration::from_millis(5)).await.expect_err("nothing more");
    assert!(matches!(late, CallError::TimedOut { .. }));
}
