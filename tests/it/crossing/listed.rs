//! All agents of the crossing matrix as openclaw lists them, before and after their first job. The
//! test kit checks each body against the published schemas.

use super::cells::{Cell, FLAGS, walk};
use super::matrix::works;
use super::party::Terms;
use crate::kit::TestHub;

/// Reads the list and every resource of each of its agents.
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
    let hub = TestHub::serve(FLAGS).await;
    let mut new = Vec::new();
    // With separate numbers, since these agents never work.
    for (cell, number) in Cell::all().into_iter().zip(60..) {
        let cell = cell.seated(number);
        new.push(cell.meet(&hub, Terms::at(cell.to.price())).await);
    }
    let unscored = read_all(&hub).await.len();
    assert!(unscored >= new.len(), "{unscored}");
    walk(&hub, Cell::all(), works).await;
    assert!(read_all(&hub).await.len() > unscored);
    hub.stop().await;
}
