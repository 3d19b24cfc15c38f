//! The list: the caller's own collaborations by role and state, page by page (section 2.1, R91,
//! R93).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error};
use super::scene::COLLABORATIONS;

fn rows(page: &Value) -> Vec<Value> {
    page["collaborations"].as_array().expect("a list").clone()
}

/// The ids of every page, in order.
async fn all(hub: &Hub, of: &Node, query: &str, limit: usize) -> Vec<String> {
    let (mut cursor, mut ids) = (String::new(), Vec::new());
    loop {
        let page = hub.list(of, &format!("?limit={limit}&after={cursor}{query}")).await.expect(200);
        let page = page.json();
        let found = rows(&page);
        assert!(found.len() <= limit);
        let id = |row: &Value| row["request"]["request_id"].as_str().expect("an id").to_owned();
        ids.extend(found.iter().map(id));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return ids,
        }
        assert!(ids.len() < 100, "the pages never end");
    }
}

/// One collaboration of each state, and its parties.
async fn scene(hub: &Hub) -> (Node, Node) {
    let asker = hub.node("asker").await;
    let worker = hub.able_node("worker", json!({"requires_approval": true})).await;
    let mut works = hub.stream(&worker, "").await;
    for state in ["completed", "failed", "cancelled", "rejected", "running", "deferred"] {
        let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
        hub.ask(&asker, &request).await.expect(200);
        let told = works.until("collaboration_request").await.data;
        let id = told["collaboration_id"].as_str().expect("an id");
        if state != "deferred" {
            hub.approve(&worker.key, id, state != "rejected").await.expect(200);
        }
        if !["rejected", "deferred"].contains(&state) {
            works.until("collaboration_request").await;
        }
        let work = super::scene::work(id, &request, &worker);
        let failed = json!({"result_status": "failed", "output_data": null,
            "error": {"code": "E", "message": "it broke"}});
        match state {
            "completed" => drop(hub.result(&work, json!({})).await.expect(200)),
            "failed" => drop(hub.result(&work, failed).await.expect(200)),
            "cancelled" => drop(hub.cancel(&asker, id, &json!({})).await.expect(200)),
            _ => {}
        }
    }
    (asker, worker)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_state_is_found_by_its_name_by_both_parties() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = scene(&hub).await;
    for state in ["completed", "failed", "cancelled", "running", "deferred", "rejected"] {
        for (node, role) in [(&asker, "requester"), (&worker, "responder")] {
            let page = hub.list(node, &format!("?role={role}&state={state}")).await.expect(200);
            let found = rows(&page.json());
            // A request that was never accepted is not the responder's work.
            let count = usize::from(state != "rejected" || role == "requester");
            assert_eq!(found.len(), count, "{role} {state}: {}", page.text);
            assert!(found.iter().all(|row| row["state"] == state));
            let other = if role == "requester" { "responder" } else { "requester" };
            let none = hub.list(node, &format!("?role={other}&state={state}")).await.expect(200);
            assert_eq!(none.at("/collaborations"), json!([]));
            assert_eq!(none.at("/next_cursor"), Value::Null);
        }
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_listed_is_what_is_shown() {
    let hub = Hub::serve(&[]).await;
    let (asker, _) = scene(&hub).await;
    let page = hub.list(&asker, "").await.expect(200);
    assert_eq!(page.str("/protocol_version"), "1.0.0");
    let found = rows(&page.json());
    assert_eq!(found.len(), 6);
    for row in found {
        let id = row["request"]["request_id"].as_str().expect("an id");
        let shown = hub.view(&asker, id).await;
        for member in ["collaboration_id", "state", "request", "response", "result"] {
            assert_eq!(row[member], shown[member], "{member}");
        }
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_any_size_hold_everything_once() {
    let hub = Hub::serve(&[]).await;
    let (one, two) = (hub.node("one").await, hub.node("two").await);
    let mut asked = Vec::new();
    for n in 0..12 {
        let (by, of) = if n % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let work = hub.accepted(by, of, json!({"priority": 1 + n % 3})).await;
        if n % 4 < 2 {
            hub.result(&work, json!({})).await.expect(200);
        }
        asked.push(work.request["request_id"].as_str().expect("an id").to_owned());
    }
    let wanted: BTreeSet<_> = asked.iter().cloned().collect();
    let own = |n: usize| asked.iter().skip(n).step_by(2).cloned().collect::<BTreeSet<_>>();
    for limit in [1, 2, 5, 200] {
        for (query, wanted) in
            [("", &wanted), ("&role=requester", &own(0)), ("&role=responder", &own(1))]
        {
            let found = all(&hub, &one, query, limit).await;
            assert_eq!(found.len(), wanted.len(), "{query} {limit}");
            assert_eq!(&found.iter().cloned().collect::<BTreeSet<_>>(), wanted, "{query} {limit}");
        }
        let running = all(&hub, &one, "&role=responder&state=running", limit).await;
        assert_eq!(running.len(), 3);
    }
    // A requester's list is newest first.
    let mut newest: Vec<_> = asked.iter().step_by(2).cloned().collect();
    newest.reverse();
    assert_eq!(all(&hub, &one, "&role=requester", 2).await, newest);
    let hub = hub.restart(&[]).await;
    assert_eq!(all(&hub, &one, "&role=requester", 5).await, newest);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_question_and_anothers_cursor_show_nothing() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    for _ in 0..3 {
        hub.accepted(&asker, &worker, json!({})).await;
    }
    for wrong in ["?role=boss", "?state=odd", "?limit=0", "?limit=201", "?limit=x", "?after=zz"] {
        assert_error(&hub.list(&asker, wrong).await, 400, "VALIDATION_ERROR");
    }
    assert_error(&hub.get(COLLABORATIONS, None).await, 401, "UNAUTHORIZED");
    assert_error(&hub.get(COLLABORATIONS, Some(&hub.operator)).await, 403, "FORBIDDEN");
    let first = hub.list(&asker, "?role=requester&limit=1").await.expect(200);
    let cursor = first.str("/next_cursor");
    let stranger = hub.node("stranger").await;
    for role in ["requester", "responder"] {
        let page = hub.list(&stranger, &format!("?role={role}&after={cursor}")).await.expect(200);
        assert_eq!(page.at("/collaborations"), json!([]));
    }
    hub.0.stop().await;
}
