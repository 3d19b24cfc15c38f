//! Urgency: of several requests that wait for one agent, the most urgent is handed over first and
//! gets the next position in the inbox; running work is never interrupted (R93).

use serde_json::{Value, json};

use super::kit::{Hub, Node, Work};

async fn ask(hub: &Hub, asker: &Node, worker: &Node, priority: Value) -> Work {
    hub.accepted(asker, worker, json!({"priority": priority})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waited_for_a_stream_is_handed_over_by_urgency_and_then_by_age() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let mut asked = Vec::new();
    for priority in [json!(9), json!(3), Value::Null, json!(1), json!(5), json!(10), json!(3)] {
        let place = priority.as_u64().unwrap_or(5);
        asked.push((place, ask(&hub, &asker, &worker, priority).await.id));
    }
    let mut wanted = asked.clone();
    wanted.sort_by_key(|(priority, _)| *priority);
    let listed = hub.list(&worker, "?role=responder").await.expect(200).at("/collaborations");
    let listed: Vec<_> = listed.as_array().expect("a list").iter().collect();
    for (one, (_, id)) in listed.iter().zip(&wanted) {
        assert_eq!(one["collaboration_id"], id.as_str(), "polling shows the same order");
    }
    let mut works = hub.stream(&worker, "").await;
    let mut positions = Vec::new();
    for (priority, id) in &wanted {
        let told = works.until("collaboration_request").await;
        assert_eq!(told.data["collaboration_id"], id.as_str(), "{priority}");
        let place = told.id.expect("an id");
        positions
            .push(place.split('-').next().expect("a position").parse::<u64>().expect("digits"));
    }
    // Positions are assigned at hand-over, so a reader that continues misses nothing.
    assert!(positions.is_sorted_by(|one, next| one < next), "{positions:?}");
    drop(works);
    let mut again = hub.resume(&worker, "", Some("0-0")).await;
    for (_, id) in &wanted {
        assert_eq!(
            again.until("collaboration_request").await.data["collaboration_id"],
            id.as_str()
        );
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_stream_has_everything_as_it_comes_and_nothing_running_is_taken_away() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let mut works = hub.stream(&worker, "").await;
    let mut running = Vec::new();
    for priority in [9, 5, 1] {
        let work = ask(&hub, &asker, &worker, json!(priority)).await;
        let told = works.until("collaboration_request").await;
        assert_eq!(told.data["collaboration_id"], work.id);
        running.push(work);
    }
    for work in &running {
        assert_eq!(hub.state(&worker, &work.id).await, "running");
        hub.result(work, json!({})).await.expect(200);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_called_off_or_ran_out_before_it_was_read_is_not_handed_over() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let off = ask(&hub, &asker, &worker, json!(1)).await;
    let stays = ask(&hub, &asker, &worker, json!(8)).await;
    hub.cancel(&asker, &off.id, &json!({})).await.expect(200);
    let mut works = hub.stream(&worker, "").await;
    let told = works.until("collaboration_request").await;
    assert_eq!(told.data["collaboration_id"], stays.id);
    hub.0.stop().await;
}
