use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::hub::{Hub, hub, identity};
use crate::agora::{
    Code, Credits, Handler, Job, Progress, ServeError, ServeOptions, Terms, WorkError,
};

#[derive(Default)]
struct TestHandler {
    worked: Mutex<Vec<String>>,
    mishaps: Mutex<Vec<String>>,
}

impl Handler for TestHandler {
    async fn terms(&self, job: &Job) -> Terms {
        match job.resource.as_str() {
            "search" => Terms::Offer {
                cost: Credits::from_micros(1_000_000),
                ttl: Duration::from_secs(60),
                eta: Duration::ZERO,
            },
            "unknown" => Terms::unsupported("unknown"),
            _ => Terms::Work,
        }
    }

    async fn work(&self, job: Job, progress: Progress) -> Result<String, WorkError> {
        self.worked.lock().expect("sound").push(job.resource.clone());
        match job.resource.as_str() {
            "panic" => panic!("on purpose"),
            "break" => Err(WorkError::new(Code::Unavailable, "not now")),
            _ => {
                progress.send_part(r#"{"half":true}"#).await.expect("taken");
                Ok(r#"{"all":true}"#.to_owned())
            }
        }
    }

    fn on_error(&self, error: &ServeError) {
        self.mishaps.lock().expect("sound").push(error.action.to_owned());
    }
}

fn ask(hub: &Hub, resource: &str) -> String {
    let mut payload = json!({"resource": resource, "params": {}});
    if resource == "search" {
        payload["budget"] = json!({"max": 5});
    }
    hub.put(&identity(2), MessageType::Request, &payload)
}

/// Runs a provider until `done` fires.
async fn run(
    react: impl Fn(&Hub, &Value) -> bool + Send + Sync + 'static,
    first: &[&str],
) -> (Arc<Hub>, Arc<TestHandler>) {
    let (done, runner) = (Arc::new(Notify::new()), Arc::new(TestHandler::default()));
    let tell = Arc::clone(&done);
    let (hub, _stage, agent) = hub(move |hub, said| {
        if react(hub, said) {
            tell.notify_one();
        }
    })
    .await;
    let inbox = Arc::clone(&hub);
    let first: Vec<_> = first.iter().map(|resource| (*resource).to_owned()).collect();
    let worker = Arc::clone(&runner);
    let serve = agent.serve(ServeOptions::default(), worker, async move {
        // After the inbox is open, so that nothing in it counts as from before.
        tokio::time::sleep(Duration::from_millis(100)).await;
        for resource in &first {
            ask(&inbox, resource);
        }
        done.notified().await;
    });
    tokio::time::timeout(Duration::from_secs(20), serve).await.expect("in time").expect("served");
    (hub, runner)
}

#[tokio::test]
async fn a_provider_offers_works_and_delivers() {
    let react = |hub: &Hub, said: &Value| {
        if said["type"] == "OFFER" {
            hub.put(&identity(3), MessageType::Accept, &json!({"offer_id": said["id"]}));
            hub.put(&identity(2), MessageType::Accept, &json!({"offer_id": said["id"]}));
        }
        said["type"] == "RESULT" && said["payload"]["status"] == "success"
    };
    let (hub, runner) = run(react, &["search"]).await;
    assert_eq!(*runner.worked.lock().expect("sound"), ["search"], "only the requester can accept");
    let (offer, results) = (&hub.said("OFFER")[0], hub.said("RESULT"));
    assert_eq!(offer["recipient"]["id"], identity(2).did());
    assert_eq!(results[0]["payload"]["status"], "partial");
    assert_eq!(results[1]["payload"]["data"], json!({"all": true}));
    assert_eq!(results[1]["payload"]["request_id"], offer["payload"]["request_id"]);
}

#[tokio::test]
async fn what_is_declined_or_breaks_ends_with_its_error() {
    let react = |hub: &Hub, _: &Value| hub.said("ERROR").len() == 3;
    let (hub, runner) = run(react, &["unknown", "break", "panic"]).await;
    let mut codes: Vec<_> =
        hub.said("ERROR").iter().map(|said| said["payload"]["code"].as_u64()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [Some(404), Some(500), Some(503)]);
    assert_eq!(*runner.mishaps.lock().expect("sound"), ["the handler panicked"]);
}

#[tokio::test]
async fn a_request_is_done_once_however_often_it_comes() {
    let react =
        |_: &Hub, said: &Value| said["type"] == "RESULT" && said["payload"]["status"] == "success";
    let (hub, runner) = run(react, &["time"]).await;
    assert_eq!(*runner.worked.lock().expect("sound"), ["time"]);
    assert_eq!(hub.said("RESULT").len(), 2, "one part and the whole");
    assert!(hub.said("OFFER").is_empty());
}

#[tokio::test]
async fn a_provider_reconnects_after_any_requested_wait() {
    let (done, runner) = (Arc::new(Notify::new()), Arc::new(TestHandler::default()));
    let tell = Arc::clone(&done);
    let (hub, _stage, agent) = hub(move |_, said| {
        if said["type"] == "RESULT" && said["payload"]["status"] == "success" {
            tell.notify_one();
        }
    })
    .await;
    // Longer than the interval of the provider's other tasks.
    hub.comes_back_after.store(1_500, Ordering::Relaxed);
    let inbox = Arc::clone(&hub);
    let serve = agent.serve(ServeOptions::default(), Arc::clone(&runner), async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        ask(&inbox, "time");
        done.notified().await;
    });
    tokio::time::timeout(Duration::from_secs(20), serve).await.expect("in time").expect("served");
    assert_eq!(*runner.worked.lock().expect("sound"), ["time"]);
}
