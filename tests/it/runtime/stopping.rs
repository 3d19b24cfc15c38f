//! Stopping: whatever the hub does, an agent exits soon after it is told to stop, with its
//! programs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde_json::json;

use super::kit::{Place, Runtime};
use crate::kit::eventually;

/// Longer than any stop takes, and shorter than a wait for the hub.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// A hub that registers every agent, and otherwise uses this router.
async fn hub(router: Router) -> String {
    let known =
        || async { (StatusCode::CREATED, json!({"agent_id": "a", "api_key": "rk_a"}).to_string()) };
    let router = router.route("/registry/register", post(known));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn stops(runtime: &mut Runtime) {
    let left = tokio::time::timeout(TIME_LIMIT, runtime.terminate()).await.expect("it stops");
    assert!(left.success(), "{left:?}: {:?}", runtime.events());
}

#[tokio::test]
async fn an_agent_that_its_hub_does_not_let_in_stops_when_told() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let refuse = move || {
        count.fetch_add(1, Ordering::SeqCst);
        async { (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3600")], "{}") }
    };
    let url = hub(Router::new().route("/v1/me/status", post(refuse))).await;
    let place = Place::new();
    let flags = ["--skill", "a", "--price", "0", "--exec", "cat", "--hub", &url];
    let mut runtime = place.run("said", &flags);
    eventually(async || asked.load(Ordering::SeqCst) > 0).await;
    stops(&mut runtime).await;
    assert!(runtime.said("at_work").is_none(), "it never registered: {:?}", runtime.events());
}

#[tokio::test]
async fn programs_that_do_not_listen_end_with_an_agent_whose_hub_hangs() {
    let place = Place::new();
    place.file("stays.sh", "trap '' TERM; echo $$ >stays; while :; do sleep 0.1; done");
    place.file("once.sh", "trap '' TERM; echo $$ >once; while :; do sleep 0.1; done");
    let skill = |name: &str| {
        format!("[[skill]]\nname = \"{name}\"\nprice = \"0\"\nexec = \"sh {name}.sh\"\n")
    };
    place.file("agent.toml", &format!("{}{}persistent = true\n", skill("once"), skill("stays")));
    let job = |id: u32, skill: &str| json!({"id": format!("6ba7b810-9dad-41d1-80b4-00c04fd430c{id}"), "epoch": 1, "skill": skill, "input": {}});
    let work = json!({"jobs": [job(1, "once"), job(2, "stays")]}).to_string();
    // The first request is answered, and none after it.
    let answered_once = |answer: String| {
        let asked = Arc::new(AtomicUsize::new(0));
        move || {
            let (answer, asked) = (answer.clone(), asked.fetch_add(1, Ordering::SeqCst));
            async move {
                if asked > 0 {
                    std::future::pending::<()>().await;
                }
                answer
            }
        }
    };
    let router = Router::new()
        .route("/v1/me/status", post(answered_once("{}".to_owned())))
        .route("/v1/work", get(answered_once(work)));
    let url = hub(router).await;
    let mut runtime = place.run("said", &["--hub", &url]);
    eventually(async || !place.text("once").is_empty() && !place.text("stays").is_empty()).await;
    stops(&mut runtime).await;
    for name in ["once", "stays"] {
        let process = format!("/proc/{}", place.text(name).trim());
        eventually(async || !Path::new(&process).exists()).await;
    }
}
