use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::hub::{Ask, Hub, accepted, eventually, hub, on_duty, refuse, request};
use crate::openclaw::{
    Decision, Handler, IncomingRequest, Job, Rejected, Rejection, Request, ServeError,
    ServeOptions, Timestamp, Uuid, WorkError,
};

#[derive(Default)]
struct TestHandler {
    began: Mutex<Vec<String>>,
    ended: Mutex<Vec<String>>,
    mishaps: Mutex<Vec<&'static str>>,
}

impl Handler for TestHandler {
    async fn work(&self, job: Job) -> Result<String, WorkError> {
        let what = job.request.capability_id.clone();
        self.began.lock().expect("sound").push(what.clone());
        match what.as_str() {
            "panic" => panic!("on purpose"),
            "break" => return Err(WorkError::transient("NO_SOURCE", "not now")),
            "nonsense" => return Ok("[]".to_owned()),
            "long" => tokio::time::sleep(Duration::from_secs(60)).await,
            _ => tokio::time::sleep(Duration::from_millis(30)).await,
        }
        self.ended.lock().expect("sound").push(what);
        Ok(job.request.input_data.into())
    }

    async fn decide(&self, request: &Request) -> Decision {
        match request.capability_id.as_str() {
            "no" => Decision::Reject(Rejection::new(Rejected::PolicyViolation, "not that")),
            "later" => Decision::Defer { until: Timestamp(9) },
            _ => Decision::Accept { estimated_completion: None },
        }
    }

    async fn approve(&self, waiting: &IncomingRequest) -> Option<bool> {
        (waiting.request.capability_id == "agreed").then_some(true)
    }

    fn on_error(&self, error: &ServeError) {
        self.mishaps.lock().expect("sound").push(error.action);
    }
}

/// Serves until the hub has what `done` checks for.
async fn run(
    react: impl Fn(&Hub, &Ask) -> Option<Vec<u8>> + Send + Sync + 'static,
    concurrency: usize,
    events: &[(&str, Value)],
    done: impl Fn(&Hub, &TestHandler) -> bool,
) -> (Arc<Hub>, Arc<TestHandler>) {
    let (hub, _stage, agent) = hub(react).await;
    let (runner, stop) = (Arc::new(TestHandler::default()), Notify::new());
    events.iter().for_each(|(name, body)| hub.put(name, body));
    let duty = on_duty(&agent);
    let serve = duty.serve(ServeOptions { concurrency }, Arc::clone(&runner), stop.notified());
    let watch = async {
        eventually("done", || done(&hub, &runner)).await;
        stop.notify_one();
    };
    let (served, ()) = tokio::join!(serve, watch);
    served.expect("served");
    (hub, runner)
}

fn usual(_: &Hub, _: &Ask) -> Option<Vec<u8>> {
    None
}

fn ask(n: u128, capability: &str) -> (&'static str, Value) {
    ("collaboration_request", accepted(n, capability))
}

fn results(hub: &Hub) -> Vec<Value> {
    let mut results = hub.posted("/result");
    results.sort_by_key(|result| result["request_id"].as_str().map(str::to_owned));
    results
}

#[tokio::test]
async fn accepted_work_is_done_delivered_and_reported() {
    let (hub, runner) =
        run(usual, 4, &[ask(5, "echo")], |hub, _| hub.posted("/result").len() == 1).await;
    let result = &results(&hub)[0];
    assert_eq!(result["result_status"], "completed");
    assert_eq!(result["output_data"], json!({"n": 1.5}));
    assert_eq!(result["collaboration_id"], json!(Uuid::from_u128(2_005)));
    assert_eq!(result["correlation_id"], json!(Uuid::from_u128(1_005)));
    assert!(result["execution_duration_ms"].as_i64().is_some_and(|ms| ms >= 20));
    let claims = hub.posted("/reputation");
    let claim = &claims.last().expect("a claim")["reputation_update"];
    assert_eq!(claim["update_type"], "collaboration_completed");
    assert_eq!(claim["collaboration_id"], json!(Uuid::from_u128(2_005)));
    let told: Vec<_> = hub.posted("/status");
    assert!(told.iter().any(|told| told["status_update"]["current_status"] == "busy"));
    assert_eq!(told.last().expect("reported")["status_update"]["current_status"], "idle");
    assert!(runner.mishaps.lock().expect("sound").is_empty());
}

#[tokio::test]
async fn what_breaks_ends_with_its_error() {
    let events = [ask(1, "break"), ask(2, "panic"), ask(3, "nonsense")];
    let (hub, runner) = run(usual, 4, &events, |hub, _| hub.posted("/result").len() == 3).await;
    let told: Vec<_> = results(&hub)
        .iter()
        .map(|result| {
            assert_eq!(result["result_status"], "failed");
            let text = |name: &str| result["error"][name].as_str().unwrap_or("").to_owned();
            (text("code"), text("error_type"))
        })
        .collect();
    let wanted = [
        ("NO_SOURCE", "transient"),
        ("INTERNAL_ERROR", "permanent"),
        ("INVALID_OUTPUT", "permanent"),
    ];
    assert_eq!(told, wanted.map(|(code, kind)| (code.to_owned(), kind.to_owned())));
    assert_eq!(*runner.mishaps.lock().expect("sound"), ["the handler failed"]);
}

#[tokio::test]
async fn work_is_done_once_however_often_it_arrives() {
    let events = [ask(5, "echo"), ask(5, "echo"), ask(6, "last")];
    let listed = json!({"collaboration_id": Uuid::from_u128(2_005), "state": "running",
        "request": request(5, "echo"), "response": null, "result": null});
    let list = move |hub: &Hub, ask: &Ask| {
        // The listing always shows it as running, as an outdated one would.
        if ask.path.starts_with("/stream") {
            *hub.running.lock().expect("sound") = vec![listed.clone()];
        }
        None
    };
    let looks = |hub: &Hub, _: &TestHandler| {
        let looks = hub.asks().iter().filter(|ask| ask.path.contains("state=running")).count();
        hub.posted("/result").len() >= 2 && looks >= 10
    };
    let (hub, runner) = run(list, 4, &events, looks).await;
    assert_eq!(hub.posted("/result").len(), 2);
    assert_eq!(runner.began.lock().expect("sound").len(), 2);
}

#[tokio::test]
async fn what_was_running_before_is_taken_up() {
    let listed = json!({"collaboration_id": Uuid::from_u128(2_005), "state": "running",
        "request": request(5, "echo"), "response": null, "result": null});
    let list = move |hub: &Hub, ask: &Ask| {
        let over = !hub.posted("/result").is_empty();
        if ask.path.contains("state=running") {
            if ask.number == 0 {
                return Some(refuse(503, "UNAVAILABLE", true));
            }
            let left = if over { vec![] } else { vec![listed.clone()] };
            *hub.running.lock().expect("sound") = left;
        }
        None
    };
    let (hub, _) = run(list, 4, &[], |hub, _| hub.posted("/result").len() == 1).await;
    assert_eq!(hub.posted("/result")[0]["collaboration_id"], json!(Uuid::from_u128(2_005)));
}

#[tokio::test]
async fn a_result_is_posted_until_the_hub_answers() {
    let react = |_: &Hub, ask: &Ask| {
        let result = ask.path.ends_with("/result");
        match ask.number {
            0 if result => Some(Vec::new()),
            1 if result => Some(refuse(503, "UNAVAILABLE", true)),
            2 if result => Some(refuse(409, "CONFLICT", false)),
            _ => None,
        }
    };
    let told = |_: &Hub, runner: &TestHandler| !runner.mishaps.lock().expect("sound").is_empty();
    let (hub, runner) = run(react, 4, &[ask(5, "echo")], told).await;
    let results = hub.posted("/result");
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|result| *result == results[0]), "all the same");
    assert_eq!(*runner.mishaps.lock().expect("sound"), ["a result was refused"]);
    let claimed = hub.posted("/reputation").len();
    assert_eq!(claimed, 1, "the periodic one; nothing was finished");
}

#[tokio::test]
async fn work_that_is_called_off_stops() {
    let react = |hub: &Hub, ask: &Ask| {
        if ask.path.ends_with("/result") {
            let off = json!({"collaboration_id": Uuid::from_u128(2_005),
                "request_id": Uuid::from_u128(5)});
            hub.put("collaboration_cancelled", &off);
        }
        None
    };
    let done = |hub: &Hub, _: &TestHandler| {
        let told = hub.posted("/status");
        let idle = |told: &Value| told["status_update"]["current_status"] == "idle";
        hub.posted("/result").len() == 1 && told.last().is_some_and(idle)
    };
    let (hub, runner) = run(react, 4, &[ask(5, "long"), ask(6, "echo")], done).await;
    assert_eq!(hub.posted("/result")[0]["request_id"], json!(Uuid::from_u128(6)));
    assert_eq!(*runner.ended.lock().expect("sound"), ["echo"]);
    assert!(runner.mishaps.lock().expect("sound").is_empty());
}

#[tokio::test]
async fn an_agent_that_answers_for_itself_says_yes_no_or_later() {
    let mut events = Vec::new();
    for (n, capability) in [(1, "no"), (2, "later"), (3, "yes")] {
        let mut event = request(n, capability);
        event["accepted"] = json!(false);
        events.push(("collaboration_request", event));
    }
    let (hub, runner) = run(usual, 4, &events, |hub, _| hub.posted("/result").len() == 1).await;
    let responses = hub.posted("/response");
    let status = |n: u128| {
        let id = json!(Uuid::from_u128(n));
        let one = responses.iter().find(|response| response["request_id"] == id);
        one.expect("a response")["response_status"].clone()
    };
    assert_eq!([status(1), status(2), status(3)], ["rejected", "deferred", "accepted"]);
    assert_eq!(*runner.began.lock().expect("sound"), ["yes"]);
    let yes = responses.iter().find(|response| response["response_status"] == "accepted");
    let named = &yes.expect("a yes")["collaboration_id"];
    assert_eq!(hub.posted("/result")[0]["collaboration_id"], *named);
    let path = format!("/collaborations/{}/response", Uuid::from_u128(3));
    assert!(hub.asks().iter().any(|ask| ask.path == path), "known by its request until then");
}

#[tokio::test]
async fn a_full_agent_rejects_requests_and_keeps_assigned_work() {
    let mut unasked = request(9, "yes");
    unasked["accepted"] = json!(false);
    let events = [ask(1, "echo"), ask(2, "echo"), ("collaboration_request", unasked)];
    let (hub, runner) = run(usual, 1, &events, |hub, _| {
        hub.posted("/result").len() == 2 && hub.posted("/response").len() == 1
    })
    .await;
    let response = &hub.posted("/response")[0];
    assert_eq!(response["rejection_reason"]["code"], "resource_exhausted");
    assert_eq!(response["rejection_reason"]["details"]["max_tasks"], 1);
    assert_eq!(runner.ended.lock().expect("sound").len(), 2);
}

#[tokio::test]
async fn work_that_needs_approval_waits_for_it() {
    let waiting = |n, capability| {
        let mut event = request(n, capability);
        event["accepted"] = json!(false);
        event["awaiting_approval"] = json!(true);
        ("collaboration_request", event)
    };
    let react = |hub: &Hub, ask: &Ask| {
        if ask.path.ends_with("/approve") {
            hub.put("collaboration_request", &accepted(2, "agreed"));
        }
        None
    };
    let events = [waiting(1, "secret"), waiting(2, "agreed")];
    let (hub, runner) = run(react, 4, &events, |hub, _| hub.posted("/result").len() == 1).await;
    assert_eq!(hub.posted("/approve").len(), 1);
    assert_eq!(hub.posted("/approve")[0]["approved"], true);
    assert!(hub.posted("/response").is_empty());
    assert_eq!(*runner.began.lock().expect("sound"), ["agreed"]);
}
