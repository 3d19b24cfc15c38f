//! What a requester cannot do to a worker for free: lower its score, or fill its inbox.

use rialto_core::time::Millis;
use rialto_engine::clock::Clock;
use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::clara::kit as clara;
use crate::kit::{Agent, Behaviour, TestHub, Worker, eventually};
use crate::openclaw::kit as openclaw;

/// Posts a job for one worker with a deadline this many milliseconds ahead.
async fn rush(hub: &TestHub, by: &Agent, worker: &Agent, ahead: i64) -> String {
    let deadline = rfc3339::format_millis(hub.clock.now().plus(Millis(ahead)));
    let body =
        json!({"skill": "sum", "input": {}, "budget": 1, "to": worker.id, "deadline": deadline});
    hub.post("/v1/jobs", Some(&by.key), &body).await.expect(201).str("/id")
}

async fn state(hub: &TestHub, by: &Agent, job: &str) -> String {
    hub.get(&format!("/v1/jobs/{job}"), Some(&by.key)).await.expect(200).str("/state")
}

async fn expires(hub: &TestHub, by: &Agent, job: &str) {
    eventually(async || state(hub, by, job).await == "expired").await;
}

/// The members that an agent's failures would change.
fn figures(shown: &Value) -> [Value; 4] {
    ["score", "rank_score", "jobs_settled", "owner_failures"].map(|name| shown[name].clone())
}

/// The same members of an agent now.
async fn standing(hub: &TestHub, agent: &Agent) -> [Value; 4] {
    figures(&hub.get(&format!("/v1/agents/{}", agent.id), None).await.expect(200).json())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dozen_deadlines_that_pass_unseen_leave_a_workers_score_as_it_was() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    let worker = hub.agent("acme", "sum", "0.10", None).await;
    let path = format!("/v1/agents/{}", worker.id);
    let before = hub.get(&path, None).await.expect(200).json();
    for _ in 0..12 {
        let job = rush(&hub, &client, &worker, 5_000).await;
        hub.pass(Millis(5_000));
        expires(&hub, &client, &job).await;
    }
    assert_eq!(hub.score(&worker).await, "50.0");
    let after = hub.get(&path, None).await.expect(200).json();
    assert_eq!(figures(&after), figures(&before), "nor does it rank lower");
    assert_eq!(hub.balance("rich").await, ("10.00".to_owned(), "0.00".to_owned()));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_counts_once_a_worker_has_had_the_job_for_half_a_minute_also_over_a_restart() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    let worker = hub.agent("acme", "sum", "0.10", None).await;
    let job = rush(&hub, &client, &worker, 40_000).await;
    let work = hub.get("/v1/work", Some(&worker.key)).await.expect(200);
    assert!(work.text.contains(&job), "{}", work.text);
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    hub.pass(Millis(41_000));
    expires(&hub, &client, &job).await;
    assert_eq!(hub.score(&worker).await, "45.5");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_come_and_go_fill_an_inbox_only_to_its_limit() {
    const LIMIT: usize = 10;
    let hub = TestHub::serve(&[("limits.inbox_pending", "10")]).await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    let worker = hub.agent("acme", "sum", "0.10", None).await;
    let mut refused = 0;
    for _ in 0..3 * LIMIT {
        let deadline = rfc3339::format_millis(hub.clock.now().plus(Millis(5_000)));
        let body = json!({"skill": "sum", "input": {}, "budget": 1, "to": worker.id, "deadline": deadline});
        let reply = hub.post("/v1/jobs", Some(&client.key), &body).await;
        if reply.status == 201 {
            hub.pass(Millis(5_000));
            expires(&hub, &client, &reply.str("/id")).await;
            continue;
        }
        assert_eq!((reply.status, reply.str("/code").as_str()), (429, "inbox_full"));
        refused += 1;
    }
    let unread = hub.get("/v1/inbox?limit=100", Some(&worker.key)).await.expect(200).json();
    let unread = unread["items"].as_array().expect("a list").len();
    assert_eq!(
        (unread, refused),
        (LIMIT, 3 * LIMIT - LIMIT / 2),
        "each job is assigned and unassigned"
    );
    // The registry's own code, also when the hub has no other worker to choose.
    let reply = hub.hire(&client, &worker, "sum", "1").await.expect(429);
    assert_eq!(reply.str("/error_code"), "RATE_LIMITED");
    // Nothing was lost, and reading frees capacity.
    let body = json!({"up_to": unread});
    hub.post("/v1/inbox/ack", Some(&worker.key), &body).await.expect(200);
    rush(&hub, &client, &worker, 5_000).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_refuses_requests_keeps_its_score_and_the_requester_is_told_the_same() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    let worker = Worker::start(Behaviour::Pending).await;
    let working = hub.agent("acme", "sum", "0.10", Some(&worker.url)).await;
    let before = standing(&hub, &working).await;
    let missing = json!({"detail": [{"loc": ["body", "input_data", "text"], "msg": "missing"}]});
    let refusals = [400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 422, 425, 429, 502, 503, 504];
    let refusals = refusals.map(|status| Behaviour::Say(status, missing.to_string()));
    let elsewhere = Behaviour::Redirect(format!("{}/jobs", worker.url));
    for refusal in refusals.into_iter().chain([elsewhere, Behaviour::Say(422, "no".to_owned())]) {
        worker.behave(refusal.clone());
        let reply = hub.hire(&client, &working, "sum", "0.10").await;
        assert_eq!(reply.status, 502, "{refusal:?}: {}", reply.text);
        assert_eq!(reply.str("/status"), "FAILURE");
        assert_eq!(reply.str("/error_code"), "EXECUTION_ERROR");
        assert_eq!(standing(&hub, &working).await, before, "{refusal:?}");
    }
    assert_eq!(hub.balance("rich").await, ("10.00".to_owned(), "0.00".to_owned()));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_before_the_answer_costs_a_worker_no_score() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let breaks = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _some = stream.read(&mut [0; 1024]).await;
        }
    });
    let working = hub.agent("acme", "sum", "0.10", Some(&url)).await;
    let before = standing(&hub, &working).await;
    let reply = hub.hire(&client, &working, "sum", "0.10").await.expect(502);
    assert_eq!(reply.str("/error_code"), "EXECUTION_ERROR");
    assert_eq!(standing(&hub, &working).await, before);
    breaks.abort();
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_the_workers_own_words_counts_also_with_a_status_that_refuses() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    let said = json!({"status": "FAILURE", "error_message": "no disk left"}).to_string();
    let worker = Worker::start(Behaviour::Say(422, said)).await;
    let working = hub.agent("acme", "sum", "0.10", Some(&worker.url)).await;
    let reply = hub.hire(&client, &working, "sum", "0.10").await.expect(200);
    assert_eq!(reply.str("/error_message"), "no disk left");
    assert_eq!(hub.score(&working).await, "45.5");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_counts_as_published_and_in_our_ranking_only_if_its_requester_has_ever_paid() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    let worker = Worker::start(Behaviour::Say(500, "oops".to_owned())).await;
    let working = hub.agent("acme", "sum", "0.10", Some(&worker.url)).await;
    let [_, rank, ..] = standing(&hub, &working).await;
    hub.hire(&client, &working, "sum", "0.10").await.expect(502);
    assert_eq!(hub.score(&working).await, "45.5", "the published formula counts it");
    assert_eq!(
        standing(&hub, &working).await[1],
        rank,
        "a new owner's input does not lower the rank"
    );
    let pay = json!({"from_owner": "rich", "to_owner": "acme", "amount": 0.01});
    hub.post("/registry/transfer", Some(&client.key), &pay).await.expect(200);
    hub.hire(&client, &working, "sum", "0.10").await.expect(502);
    assert_eq!(hub.score(&working).await, "41.0");
    assert_ne!(standing(&hub, &working).await[1], rank);
    hub.stop().await;
}

/// Inboxes that hold at most ten notices.
const SMALL: &[(&str, &str)] = &[("limits.inbox_pending", "10")];

/// A new owner does everything that is free, until it is refused in one way or another.
async fn pester(hub: &TestHub, by: &Agent, worker: &str, skill: &str, input: &Value) {
    let body = json!({"skill": skill, "to": worker, "input": input, "budget": 0});
    for _ in 0..8 {
        let reply = hub.post("/v1/jobs", Some(&by.key), &body).await;
        if reply.status == 201 {
            let path = format!("/v1/jobs/{}/cancel", reply.str("/id"));
            hub.post(&path, Some(&by.key), &json!({})).await.expect(200);
        }
    }
    for _ in 0..8 {
        let mut body = body.clone();
        body["deadline"] = rfc3339::format_millis(hub.clock.now().plus(Millis(5_000))).into();
        let reply = hub.post("/v1/jobs", Some(&by.key), &body).await;
        if reply.status == 201 {
            hub.pass(Millis(5_000));
            expires(hub, by, &reply.str("/id")).await;
        }
    }
    let reply = hub.post("/v1/jobs", Some(&by.key), &body).await;
    assert_eq!((reply.status, reply.str("/code").as_str()), (429, "inbox_full"), "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_a_newcomer_opens_and_calls_off_leave_a_worker_to_those_who_pay() {
    let hub = TestHub::serve(SMALL).await;
    let [newcomer, client] = [hub.orchestrator("new").await, hub.orchestrator("rich").await];
    hub.grant("rich", "10.00").await;
    let worker = hub.agent("acme", "sum", "0", None).await;
    pester(&hub, &newcomer, &worker.id, "sum", &json!({})).await;
    // The worker has read nothing, and a paying customer is served at every route.
    rush(&hub, &client, &worker, 60_000).await;
    hub.hire(&client, &worker, "sum", "1").await.expect(202);
    let body =
        json!({"orchestrator_id": client.id, "skill_name": "sum", "input_data": {}, "budget": 1});
    hub.post("/registry/jobs", Some(&client.key), &body).await.expect(202);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lists_its_work_and_gets_none_can_be_hired_by_all_again() {
    let hub = TestHub::serve(SMALL).await;
    let [newcomer, other] = [hub.orchestrator("new").await, hub.orchestrator("other").await];
    let worker = hub.agent("acme", "sum", "0", None).await;
    let polls = [
        format!("/registry/agents/{}/jobs?status=PENDING", worker.id),
        "/v1/work".to_owned(),
        "/v1/jobs?side=worked".to_owned(),
    ];
    let free = json!({"skill": "sum", "input": {}, "budget": 0, "to": worker.id});
    for poll in polls {
        pester(&hub, &newcomer, &worker.id, "sum", &json!({})).await;
        hub.get(&poll, Some(&worker.key)).await.expect(200);
        let job = hub.post("/v1/jobs", Some(&other.key), &free).await.expect(201).str("/id");
        hub.post(&format!("/v1/jobs/{job}/cancel"), Some(&other.key), &json!({})).await.expect(200);
        hub.get(&poll, Some(&worker.key)).await.expect(200);
        // Nothing is unread any more, so another read writes nothing.
        let before = crate::kit::snapshot(&hub).await.kept;
        hub.get(&poll, Some(&worker.key)).await.expect(200);
        assert_eq!(crate::kit::snapshot(&hub).await.kept, before, "{poll}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_openclaw_node_that_lists_its_collaborations_can_be_hired_by_all_again() {
    let hub = openclaw::Hub::serve(SMALL).await;
    let newcomer = hub.orchestrator("new").await;
    let [worker, asker] = [hub.node("worker").await, hub.node("asker").await];
    let rich = hub.orchestrator("rich").await;
    hub.grant("rich", "10.00").await;
    pester(&hub, &newcomer, &worker.id, "sum", &json!({"a": 0.5})).await;
    let paid = json!({"skill": "sum", "to": worker.id, "input": {"a": 0.5}, "budget": 1});
    hub.post("/v1/jobs", Some(&rich.key), &paid).await.expect(201);
    // Listing the jobs it requested does not count as reading its work.
    for (query, full) in [("?role=requester", true), ("", false)] {
        hub.get(&format!("/openclaw/collaborations{query}"), Some(&worker.key)).await.expect(200);
        let reply = openclaw::Hub::hire(&hub, &asker, &worker, json!({})).await;
        assert_eq!(reply.str("/response_status") == "rejected", full, "{query}: {}", reply.text);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_clara_works_on_however_many_notices_it_was_sent() {
    let hub = clara::Hub::serve(SMALL).await;
    let [agent, requester] = [1, 9].map(clara::Wallet::of);
    hub.fund(&requester, "1000").await;
    hub.agent(&agent, "A", "tweet", "1").await;
    let own = [("RedStone-Agent-Id", "A")];
    for n in 0..30 {
        let task = hub.task(&requester, "tweet", "1", "cheapest").await;
        assert_eq!(task.result.error, None, "task {n}");
        let next = hub.act(&agent, "Load-Next-Assigned-Task", &own, "").await;
        assert_eq!(next.data()["id"], task.id.as_str());
        hub.deliver(&agent, "A", &task.id).await.first();
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_clara_that_loads_its_next_task_or_query_is_hired_and_asked_again() {
    let hub = clara::Hub::serve(SMALL).await;
    let [agent, requester] = [1, 9].map(clara::Wallet::of);
    hub.fund(&requester, "1000").await;
    let client = hub.orchestrator("rich").await;
    hub.grant("rich", "100.00").await;
    hub.agent(&agent, "A", "tweet", "1").await;
    let own = [("RedStone-Agent-Id", "A")];
    let found = hub.get("/v1/agents?protocol=clara", None).await.expect(200);
    let body = json!({"skill": "clara.tweet", "to": found.str("/items/0/names/registry"), "input": {}, "budget": 1});
    for load in ["Load-Next-Assigned-Task", "Load-Next-Query"] {
        let mut refused = false;
        while !refused {
            let reply = hub.post("/v1/jobs", Some(&client.key), &body).await;
            refused = reply.status == 429;
            if !refused {
                let path = format!("/v1/jobs/{}/cancel", reply.expect(201).str("/id"));
                hub.post(&path, Some(&client.key), &json!({})).await.expect(200);
            }
        }
        let task = hub.task(&requester, "tweet", "1", "cheapest").await;
        assert_eq!(task.result.error.as_deref(), Some("No agents to choose from"));
        let none = hub.act(&agent, load, &own, "").await;
        assert_eq!((none.result.error, none.result.messages.len()), (None, 0), "{load}");
        let task = hub.task(&requester, "tweet", "1", "cheapest").await;
        assert_eq!(task.result.error, None, "{load}");
        hub.deliver(&agent, "A", &task.id).await.first();
    }
    hub.0.stop().await;
}
