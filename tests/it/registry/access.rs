//! What unrelated callers see: exactly what they would see if nothing existed (R64).

use serde_json::json;

use super::market::{Market, fresh_id, success};
use crate::kit::{Behaviour, Reply, TestHub, Worker, assert_refused};

/// Every part of a response by which two could be told apart, except the request id.
fn seen(reply: &Reply) -> (u16, Vec<(String, String)>, String) {
    let mut headers: Vec<_> = reply
        .headers
        .iter()
        .filter(|(name, _)| !["x-request-id", "date"].contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()))
        .collect();
    headers.sort();
    (reply.status, headers, reply.text.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_cannot_tell_anothers_job_from_none() {
    let market = Market::keyed(&[]).await;
    let stranger = market.hub.agent("globex", "other", "0.10", None).await;
    let mate = json!({"agent_name": "mate", "owner_id": "o1", "skills": []});
    let mate = market.hub.enrol(&mate, Some(&market.asking.key)).await;
    let (pending, done) = (market.pending().await, market.pending().await);
    market.report(&success(&done, &market.working, "0.10")).await.expect(200);
    for key in [&stranger.key, &mate.key, &market.hub.operator] {
        for base in ["/registry", ""] {
            let unknown = market.hub.get(&format!("{base}/jobs/{}", fresh_id()), Some(key)).await;
            assert_refused(&unknown, 404, "NOT_FOUND");
            for job in [&pending, &done] {
                let reply = market.hub.get(&format!("{base}/jobs/{job}"), Some(key)).await;
                assert_eq!(seen(&reply), seen(&unknown));
            }
        }
    }
    for key in [&market.asking.key, &market.working.key] {
        market.hub.get(&format!("/jobs/{done}"), Some(key)).await.expect(200);
        market.hub.get(&format!("/jobs/{pending}"), Some(key)).await.expect(202);
    }
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_cannot_tell_anothers_account_history_or_work_from_none() {
    let market = Market::keyed(&[]).await;
    let stranger = market.hub.agent("globex", "other", "0.10", None).await;
    let job = market.pending().await;
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    let worker = &market.working.id;
    let pairs = [
        ("/registry/accounts/o1".to_owned(), "/registry/accounts/none".to_owned()),
        ("/accounts/acme".to_owned(), "/accounts/none".to_owned()),
        ("/audit?owner_id=o1".to_owned(), "/audit?owner_id=none".to_owned()),
        ("/registry/audit?owner_id=acme".to_owned(), "/registry/audit?owner_id=none".to_owned()),
        (format!("/audit?job_id={job}"), format!("/audit?job_id={}", fresh_id())),
        (
            format!("/registry/agents/{worker}/jobs"),
            format!("/registry/agents/{}/jobs", fresh_id()),
        ),
    ];
    for (theirs, none) in pairs {
        let [theirs, none] = [
            market.hub.get(&theirs, Some(&stranger.key)).await,
            market.hub.get(&none, Some(&stranger.key)).await,
        ];
        assert_eq!(seen(&theirs), seen(&none));
        assert!(theirs.status == 404 || theirs.at("/total") == 0, "{}", theirs.text);
    }
    // Without a key both get the same answer.
    for path in ["/accounts/o1", "/accounts/none", "/audit", "/economy"] {
        assert_refused(&market.hub.get(path, None).await, 401, "UNAUTHORIZED");
    }
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_output_and_callback_are_shown_only_to_the_two_parties() {
    let market = Market::keyed(&[]).await;
    let stranger = market.hub.orchestrator("globex").await;
    let receiver = Worker::start(Behaviour::Say(200, String::new())).await;
    let mut jobs = Vec::new();
    for _ in 0..2 {
        let more = json!({"input_data": {"text": "whispered-input"}, "callback_url": format!("{}/whispered-callback", receiver.url)});
        jobs.push(market.ask(&market.working, more).await.expect(202).str("/job_id"));
    }
    let mut body = success(&jobs[0], &market.working, "0.10");
    body["output_data"] = json!({"answer": "whispered-output"});
    market.report(&body).await.expect(200);
    receiver.heard(1).await;

    // Every GET path, filled with the ids of these jobs and agents.
    let uuid = market.shown(&jobs[0]).await.header("rialto-job").expect("the hub's id").to_owned();
    let mut asked = 0;
    for route in rialto_hub::app::operations().iter().filter(|route| route.method == "GET") {
        for id in [
            &jobs[0],
            &jobs[1],
            &uuid,
            &market.working.id,
            &market.asking.id,
            "o1",
            "acme",
            "1",
            "2",
        ] {
            let path = filled(&route.path, id);
            for key in [None, Some(stranger.key.as_str()), Some(market.hub.operator.as_str())] {
                let text = market.hub.start_of(&path, key).await;
                assert!(!text.contains("whispered"), "{path} reveals {text}");
                asked += 1;
            }
            if !route.path.contains('{') {
                break;
            }
        }
    }
    assert!(asked > 100, "{asked}");
    let parties = [
        market.shown(&jobs[0]).await.text,
        market.hub.get(&format!("/jobs/{}", jobs[0]), Some(&market.working.key)).await.text,
    ];
    parties.iter().for_each(|text| assert!(text.contains("whispered-output")));
    market.stop().await;
}

/// A path with every parameter set to the same value.
fn filled(path: &str, word: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { word.to_owned() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_hub_shows_jobs_and_accounts_to_callers_without_a_key_but_not_with_a_wrong_key() {
    let market = Market::open(&[]).await;
    let stranger = market.hub.orchestrator("globex").await;
    let job = market.pending().await;
    market.hub.get(&format!("/jobs/{job}"), None).await.expect(202);
    market.hub.get("/accounts/o1", None).await.expect(200);
    // A given key decides, even on an open hub.
    assert_refused(
        &market.hub.get(&format!("/jobs/{job}"), Some(&stranger.key)).await,
        404,
        "NOT_FOUND",
    );
    assert_refused(&market.hub.get("/accounts/o1", Some(&stranger.key)).await, 404, "NOT_FOUND");
    let unknown = market.hub.get("/accounts/o1", Some("rk_nobody")).await;
    assert_refused(&unknown, 401, "UNAUTHORIZED");
    market.stop().await;
}

impl TestHub {
    /// The beginning of a response; a stream is dropped after a moment.
    async fn start_of(&self, path: &str, key: Option<&str>) -> String {
        let mut request = self.http.get(format!("{}{path}", self.url));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        let mut answer = request.send().await.expect("an answer");
        let stream =
            answer.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
        if !stream {
            return answer.text().await.unwrap_or_default();
        }
        let mut text = Vec::new();
        let a_moment = std::time::Duration::from_millis(200);
        while let Ok(Ok(Some(more))) = tokio::time::timeout(a_moment, answer.chunk()).await {
            text.extend_from_slice(&more);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}
