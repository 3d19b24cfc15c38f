//! What strangers see, and what nobody can set (R63, R64, R67).

use serde_json::{Value, json};

use super::market::{Market, SKILL, fresh_id, success};
use crate::kit::{Behaviour, ClosedPort, Reply, TestHub, Worker, assert_later, assert_refused, digits};

/// Everything of an answer a caller could tell two of them apart by, but for the id of the request.
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
        (format!("/registry/agents/{worker}/jobs"), format!("/registry/agents/{}/jobs", fresh_id())),
    ];
    for (theirs, none) in pairs {
        let [theirs, none] = [
            market.hub.get(&theirs, Some(&stranger.key)).await,
            market.hub.get(&none, Some(&stranger.key)).await,
        ];
        assert_eq!(seen(&theirs), seen(&none));
        assert!(theirs.status == 404 || theirs.at("/total") == 0, "{}", theirs.text);
    }
    // Without a key nothing is said about either.
    for path in ["/accounts/o1", "/accounts/none", "/audit", "/economy"] {
        assert_refused(&market.hub.get(path, None).await, 401, "UNAUTHORIZED");
    }
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_sees_its_own_payments_and_the_operator_all_of_them() {
    let market = Market::keyed(&[]).await;
    let stranger = market.hub.orchestrator("globex").await;
    market.hub.grant("globex", "5.00").await;
    let job = market.pending().await;
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    let pay = json!({"from_owner": "globex", "to_owner": "acme", "amount": 2});
    let paid = market.hub.post("/transfer", Some(&stranger.key), &pay).await.expect(200);

    for (key, total) in [(&market.asking.key, 1), (&stranger.key, 1), (&market.working.key, 2), (&market.hub.operator, 2)] {
        for path in ["/registry/audit", "/audit"] {
            let reply = market.hub.get(path, Some(key)).await.expect(200);
            assert_eq!(reply.at("/total"), total);
            assert_eq!(reply.at("/transactions").as_array().expect("a list").len(), total);
        }
    }
    let newest = market.hub.get("/audit?limit=1", Some(&market.working.key)).await.expect(200);
    assert_eq!(newest.at("/total"), 2, "all are counted, however many are shown");
    assert_eq!(newest.at("/transactions"), json!([paid.at("/transfer")]), "newest first");
    let one = market.hub.get(&format!("/audit?job_id={job}"), Some(&market.asking.key)).await.expect(200);
    assert_eq!(one.at("/total"), 1);
    assert_eq!(one.str("/transactions/0/job_id"), job);
    assert_eq!(one.str("/transactions/0/from_owner"), "o1");
    assert_eq!(one.str("/transactions/0/to_owner"), "acme");
    assert_eq!(digits(&one.text, "amount"), "0.10");
    let named = market.hub.get("/audit?owner_id=globex", Some(&market.hub.operator)).await.expect(200);
    assert_eq!(named.at("/total"), 1);

    let all = market.hub.get("/economy", Some(&market.hub.operator)).await.expect(200);
    assert_eq!(
        all.text,
        r#"{"total_accounts":3,"total_volume":2.10,"total_transactions":2,"all_balances":{"acme":2.10,"globex":3.00,"o1":99.90}}"#
    );
    let own = market.hub.get("/registry/economy", Some(&stranger.key)).await.expect(200);
    assert_eq!(own.at("/all_balances"), json!({"globex": 3.0}));
    assert_eq!(digits(&own.text, "total_volume"), "2.10");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_output_and_callback_are_shown_to_nobody_but_the_two_parties() {
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

    // Every path there is that gives something, filled with what these jobs and agents are called.
    let uuid = market.shown(&jobs[0]).await.header("rialto-job").expect("the hub's id").to_owned();
    let mut asked = 0;
    for route in rialto_hub::app::listed().iter().filter(|route| route.method == "GET") {
        for id in [&jobs[0], &jobs[1], &uuid, &market.working.id, &market.asking.id, "o1", "acme", "1", "2"] {
            let path = filled(&route.path, id);
            for key in [None, Some(stranger.key.as_str()), Some(market.hub.operator.as_str())] {
                let text = market.hub.start_of(&path, key).await;
                assert!(!text.contains("whispered"), "{path} tells {text}");
                asked += 1;
            }
            if !route.path.contains('{') {
                break;
            }
        }
    }
    assert!(asked > 100, "{asked}");
    let parties = [market.shown(&jobs[0]).await.text, market.hub.get(&format!("/jobs/{}", jobs[0]), Some(&market.working.key)).await.text];
    parties.iter().for_each(|text| assert!(text.contains("whispered-output")));
    market.stop().await;
}

/// A path with every open part filled by the same word.
fn filled(path: &str, word: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { word.to_owned() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_five_codes_are_spelled_as_the_spec_spells_them() {
    let market = Market::keyed(&[]).await;
    let closed = ClosedPort::take();
    let gone = market.endpoint(&closed.url).await;
    let worker = Worker::start(Behaviour::Say(200, "no JSON".to_owned())).await;
    let broken = market.hub.agent("initech", SKILL, "0.10", Some(&worker.url)).await;
    let mismatch = market.ask(&market.working, json!({"skill_name": "juggle"})).await;
    assert_refused(&mismatch, 422, "SKILL_MISMATCH");
    assert_refused(&market.ask(&market.working, json!({"budget": 0.09})).await, 402, "BUDGET_INSUFFICIENT");
    assert_later(&market.ask(&gone, json!({})).await, 503, "AGENT_OFFLINE", 30);
    let failed = market.ask(&broken, json!({})).await.expect(502);
    assert_eq!((failed.str("/status"), failed.str("/error_code")), ("FAILURE".to_owned(), "EXECUTION_ERROR".to_owned()));
    let pay = json!({"from_owner": "o1", "to_owner": "acme", "amount": 1000});
    assert_refused(&market.hub.post("/transfer", Some(&market.asking.key), &pay).await, 402, "TRANSFER_FAILED");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_hub_may_say_is_ignored_in_every_body() {
    let market = Market::keyed(&[]).await;
    let hub = &market.hub;
    let mut body = json!({
        "agent_name": "sly", "owner_id": "sly", "skills": [{"skill_name": "sly", "cost_per_call": 0.10, "agent": 1}],
        "reputation_score": 100.0, "score": 100, "status": "offline", "registered_at": "1999-01-01T00:00:00Z",
        "balance": 1000, "held": 5, "initial_balance": 1000, "jobs_settled": 99, "protocol": "relay",
        "last_heartbeat": "2099-01-01T00:00:00Z", "hub_endpoint": "https://evil.example", "welcomed": false,
        "api_key": "rk_000000000000000000000000000000000000000000000000", "webhook_secret": "whsec_AAAA", "active": false,
    });
    let reply = hub.post("/register", None, &body).await.expect(201);
    assert_eq!(reply.str("/status"), "registered");
    assert_eq!(digits(&reply.text, "reputation_score"), "50.0");
    assert_ne!(reply.str("/api_key"), body["api_key"]);
    let sly = crate::kit::Agent { id: reply.str("/agent_id"), key: reply.str("/api_key"), owner: "sly".to_owned() };
    body["agent_id"] = sly.id.as_str().into();
    let again = hub.post("/register", Some(&sly.key), &body).await.expect(200);
    assert_eq!(again.str("/api_key"), sly.key);
    let shown = hub.get(&format!("/registry/agents/{}", sly.id), None).await.expect(200);
    assert_eq!((shown.str("/status"), shown.str("/protocol")), ("online".to_owned(), "registry".to_owned()));
    assert_eq!(digits(&shown.text, "reputation_score"), "50.0");
    assert_eq!((shown.at("/jobs_settled"), shown.at("/last_heartbeat")), (json!(0), Value::Null));
    assert!(!shown.str("/registered_at").starts_with("1999"));
    assert!(!shown.text.contains("evil"));
    assert_eq!(hub.balance("sly").await, ("0.00".to_owned(), "0.00".to_owned()));

    let job = json!({"status": "SUCCESS", "output_data": {"x": 1}, "execution_cost": 0, "held": 0, "price": 0.01,
        "error_code": "AGENT_OFFLINE", "state": "Completed", "agreed": 0.01});
    let job = market.ask(&market.working, job).await.expect(202).str("/job_id");
    assert_eq!(market.purses().await, ["99.85", "0.15", "0.00"]);
    let mut result = success(&job, &market.working, "0.10");
    super::market::merge(&mut result, json!({"paid": 99, "reputation_score": 100, "owner_id": "sly", "price": 0.15}));
    let accepted = market.report(&result).await.expect(200);
    assert_eq!(digits(&accepted.text, "paid"), "0.10");
    assert_eq!(hub.score(&market.working).await, "51.0");
    assert_eq!(market.purses().await, ["99.90", "0.00", "0.10"]);

    let pay = json!({"from_owner": "o1", "to_owner": "acme", "amount": 1, "settlement": "escrow", "status": "failed",
        "sender_balance": 500, "receiver_balance": 500});
    let paid = hub.post("/transfer", Some(&market.asking.key), &pay).await.expect(200);
    assert_eq!((paid.str("/settlement"), digits(&paid.text, "sender_balance")), ("transfer".to_owned(), "98.90".to_owned()));
    let account = json!({"owner_id": "acme", "balance": 500, "held": 500, "granted": 500});
    let account = hub.post("/accounts", Some(&market.working.key), &account).await.expect(201);
    assert_eq!(account.text, r#"{"owner_id":"acme","balance":1.10,"held":0.00,"granted":0.00}"#);
    let beat = json!({"agent_id": sly.id, "timestamp": "2099-01-01T00:00:00Z", "status": "offline"});
    let beat = hub.post("/heartbeat", Some(&sly.key), &beat).await.expect(200);
    assert!(!beat.str("/timestamp").starts_with("2099"));
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_hub_shows_jobs_and_accounts_to_whoever_asks_but_not_to_a_wrong_key() {
    let market = Market::open(&[]).await;
    let stranger = market.hub.orchestrator("globex").await;
    let job = market.pending().await;
    market.hub.get(&format!("/jobs/{job}"), None).await.expect(202);
    market.hub.get("/accounts/o1", None).await.expect(200);
    // A key that is shown is believed before the open door is.
    assert_refused(&market.hub.get(&format!("/jobs/{job}"), Some(&stranger.key)).await, 404, "NOT_FOUND");
    assert_refused(&market.hub.get("/accounts/o1", Some(&stranger.key)).await, 404, "NOT_FOUND");
    let unknown = market.hub.get("/accounts/o1", Some("rk_nobody")).await;
    assert_refused(&unknown, 401, "UNAUTHORIZED");
    market.stop().await;
}

impl TestHub {
    /// What an answer begins with; a stream that goes on for ever is left after a moment.
    async fn start_of(&self, path: &str, key: Option<&str>) -> String {
        let mut request = self.http.get(format!("{}{path}", self.url));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        let mut answer = request.send().await.expect("an answer");
        let stream = answer.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
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
