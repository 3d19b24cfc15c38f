//! Everybody of the crossing matrix as openclaw lists it, before and after its first job. The test kit
//! checks each body against the published schemas.

use super::parties::{ALL, OTHER_WORKERS};
use super::party::{Order, Terms, Worker};
use crate::kit::TestHub;

/// Reads the list and everything there is about each of its agents.
async fn read_all(hub: &TestHub) -> Vec<String> {
    let page = hub.get("/openclaw/agents?limit=200", None).await.expect(200).at("/agents");
    let all = page.as_array().expect("a list");
    let ids: Vec<_> =
        all.iter().map(|one| one["agent_id"].as_str().expect("an id").to_owned()).collect();
    for id in &ids {
        for tail in ["", "/status", "/reputation"] {
            hub.get(&format!("/openclaw/agents/{id}{tail}"), None).await.expect(200);
        }
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn every_agent_of_the_matrix_is_listed_as_the_published_schemas_say() {
    let hub = TestHub::serve(super::cells::FLAGS).await;
    let mut workers: Vec<Box<dyn Worker>> = Vec::new();
    let mut requesters = Vec::new();
    for (seat, protocol) in (1..).zip(ALL.iter().chain(OTHER_WORKERS)) {
        workers.push(protocol.worker(&hub, seat, Terms::at(protocol.price())).await);
    }
    for (seat, protocol) in (101..).zip(ALL) {
        requesters.push((*protocol, protocol.requester(&hub, seat).await));
    }
    let before = read_all(&hub).await;
    assert!(before.len() >= workers.len(), "{before:?}");
    for (protocol, requester) in &requesters {
        hub.grant(&requester.owner(), "100").await;
        let others = workers.iter().filter(|one| one.home().id() != protocol.id());
        let Some(worker) = others.last() else { continue };
        let found = protocol.find(&hub, worker.as_ref()).await;
        let (input, budget) = (r#"{"n":1}"#.to_owned(), "10".to_owned());
        let order = Order { input, budget, aside: None };
        requester.hire(&hub, &found, &order).await.expect("it is hired");
    }
    assert_eq!(read_all(&hub).await, before);
    hub.stop().await;
}
