//! Streams: both parties get their events, once and in order, and resume where they stopped
//! (section 2.3, R69, R70).

use serde_json::json;

use super::kit::{Hub, Node, assert_error, fresh_id};
use crate::kit::in_time;
use crate::relay::kit::{Event, Inbox};

const STREAM: &str = "/openclaw/stream";

async fn cast(hub: &Hub) -> (Node, Node) {
    (hub.node("asker").await, hub.node("worker").await)
}

/// One collaboration from request to result.
async fn whole(hub: &Hub, asker: &Node, worker: &Node) -> String {
    let work = hub.accepted(asker, worker, json!({})).await;
    hub.result(&work, json!({})).await.expect(200);
    work.id
}

/// The next events that are about collaborations.
async fn next(stream: &mut Inbox, count: usize) -> Vec<Event> {
    let mut all = Vec::new();
    while all.len() < count {
        let event = stream.next().await;
        if event.event.starts_with("collaboration_") {
            all.push(event);
        }
    }
    all
}

fn ids(events: &[Event]) -> Vec<&str> {
    events.iter().map(|one| one.data["collaboration_id"].as_str().expect("an id")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_event_says_who_listens_and_every_event_has_an_id() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut works = hub.resume(&worker, "", None).await;
    let hello = works.next().await;
    assert_eq!((hello.event.as_str(), &hello.data["agent_id"]), ("connected", &json!(worker.id)));
    assert_eq!(hello.data["protocol_version"], "1.0.0");
    assert!(hello.id.is_some());
    whole(&hub, &asker, &worker).await;
    loop {
        let event = works.next().await;
        assert!(event.id.is_some(), "{event:?}");
        assert_eq!(event.data["protocol_version"], "1.0.0", "{event:?}");
        assert!(event.data["correlation_id"].is_string() && event.data["timestamp"].is_string());
        if event.event == "reputation_update" {
            break;
        }
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_parties_go_on_after_the_last_event_they_have() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut hears = hub.stream(&asker, "").await;
    let mut works = hub.stream(&worker, "").await;
    let first = hub.accepted(&asker, &worker, json!({})).await;
    let worked = next(&mut works, 1).await;
    assert_eq!(ids(&worked), [first.id.as_str()]);
    hub.result(&first, json!({})).await.expect(200);
    let heard = next(&mut hears, 1).await;
    assert_eq!(ids(&heard), [first.id.as_str()]);
    drop((hears, works));
    let mut missed = Vec::new();
    for _ in 0..3 {
        missed.push(whole(&hub, &asker, &worker).await);
    }
    let running = hub.accepted(&asker, &worker, json!({})).await;
    let mut hears = hub.resume(&asker, "", heard[0].id.as_deref()).await;
    let results = next(&mut hears, 3).await;
    assert_eq!(ids(&results), missed);
    let mut works = hub.resume(&worker, "", worked[0].id.as_deref()).await;
    assert_eq!(ids(&next(&mut works, 1).await), [running.id.as_str()], "ended work is not sent");
    // A resume can be repeated, with the same result.
    let mut again = hub.resume(&asker, "", results[0].id.as_deref()).await;
    let rest = next(&mut again, 2).await;
    assert_eq!(
        rest.iter().map(|one| &one.text).collect::<Vec<_>>(),
        results[1..].iter().map(|one| &one.text).collect::<Vec<_>>()
    );
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_changes_nothing_of_it() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut hears = hub.stream(&asker, "").await;
    whole(&hub, &asker, &worker).await;
    let heard = next(&mut hears, 1).await;
    drop(hears);
    let second = whole(&hub, &asker, &worker).await;
    let waits = hub.accepted(&asker, &worker, json!({})).await;
    let hub = hub.restart(&[]).await;
    let mut hears = hub.resume(&asker, "", heard[0].id.as_deref()).await;
    assert_eq!(ids(&next(&mut hears, 1).await), [second.as_str()]);
    let mut works = hub.stream(&worker, "").await;
    assert_eq!(ids(&next(&mut works, 1).await), [waits.id.as_str()]);
    hub.result(&waits, json!({})).await.expect(200);
    assert_eq!(ids(&next(&mut hears, 1).await), [waits.id.as_str()]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_a_stream_resumes_before_anything_is_written() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let watch = format!("?watch={}", worker.id);
    let mut hears = hub.stream(&asker, &watch).await;
    let (mut done, mut heard, mut judged) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        done.push(whole(&hub, &asker, &worker).await);
        while heard.len() < done.len() || judged.len() < done.len() {
            let event = hears.next().await;
            match event.event.as_str() {
                "collaboration_result" => heard.push(event),
                "reputation_update" => judged.push(event),
                _ => {}
            }
        }
    }
    drop(hears);
    let hub = hub.restart(&[]).await;
    let newest = crate::kit::newest_event(&hub);
    let mut hears = hub.resume(&asker, "", heard[0].id.as_deref()).await;
    let texts = |events: &[Event]| events.iter().map(|one| one.text.clone()).collect::<Vec<_>>();
    // Long before the first ping.
    let resumed = in_time(next(&mut hears, 2)).await;
    assert_eq!(texts(&resumed), texts(&heard[1..]));
    // Public events about other agents are repeated from the same position.
    let mut watches = hub.resume(&asker, &watch, judged[0].id.as_deref()).await;
    let about = |event: &Event| event.data["reputation_update"]["collaboration_id"].clone();
    let mut told = Vec::new();
    while told.last().is_none_or(|last| *last != json!(done[2])) {
        told.push(about(&in_time(watches.until("reputation_update")).await));
    }
    assert!(told.ends_with(&[json!(done[1]), json!(done[2])]), "{told:?}");
    assert_eq!(crate::kit::newest_event(&hub), newest, "nothing was written meanwhile");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_without_a_position_gets_what_was_not_handed_over() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let unread = whole(&hub, &asker, &worker).await;
    let mut hears = hub.stream(&asker, "").await;
    assert_eq!(ids(&next(&mut hears, 1).await), [unread.as_str()]);
    hub.heard_by(1).await;
    drop(hears);
    hub.heard_by(0).await;
    let later = whole(&hub, &asker, &worker).await;
    let mut hears = hub.stream(&asker, "").await;
    assert_eq!(ids(&next(&mut hears, 1).await), [later.as_str()]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_published_while_a_watcher_was_away_is_told_when_it_is_back() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let watch = format!("?watch={}", worker.id);
    let mut watches = hub.stream(&asker, &watch).await;
    let first = whole(&hub, &asker, &worker).await;
    let told = watches.until("reputation_update").await;
    assert_eq!(told.data["reputation_update"]["collaboration_id"], first.as_str());
    drop(watches);
    let (second, third) = (whole(&hub, &asker, &worker).await, whole(&hub, &asker, &worker).await);
    let mut watches = hub.resume(&asker, &watch, told.id.as_deref()).await;
    // Two events of one history line are both repeated to a reader that has only the first.
    let again = watches.until("reputation_update").await;
    assert_eq!(again.data["reputation_update"]["collaboration_id"], first.as_str());
    assert_eq!(
        watches.until("status_update").await.data["status_update"]["current_status"],
        "idle"
    );
    for id in [second, third] {
        let told = watches.until("reputation_update").await;
        assert_eq!(told.data["reputation_update"]["collaboration_id"], id.as_str());
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_read_or_refused_and_a_key_is_needed() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let bearer = format!("Bearer {}", asker.key);
    for wrong in ["x", "7", "-1-2", "1-2-3"] {
        let headers = [("authorization", bearer.as_str()), ("last-event-id", wrong)];
        assert_error(&hub.send("GET", STREAM, &headers, b"").await, 400, "VALIDATION_ERROR");
    }
    assert_error(&hub.get(STREAM, None).await, 401, "UNAUTHORIZED");
    assert_error(&hub.get(STREAM, Some(&hub.operator)).await, 403, "FORBIDDEN");
    let other = format!("{STREAM}?agent_id={}", worker.id);
    assert_error(&hub.get(&other, Some(&asker.key)).await, 403, "FORBIDDEN");
    let nobody = format!("{STREAM}?agent_id={}", fresh_id());
    assert_error(&hub.get(&nobody, Some(&asker.key)).await, 403, "FORBIDDEN");
    // An unknown position is ignored: unread events come.
    let unread = whole(&hub, &asker, &worker).await;
    let mut hears = hub.resume(&asker, "", Some("999999-999999")).await;
    assert_eq!(ids(&next(&mut hears, 1).await), [unread.as_str()]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_streams_of_one_agent_both_hear_everything() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut one = hub.stream(&asker, "").await;
    let mut two = hub.stream(&asker, "").await;
    let id = whole(&hub, &asker, &worker).await;
    for stream in [&mut one, &mut two] {
        assert_eq!(ids(&next(stream, 1).await), [id.as_str()]);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_its_keys_ends_a_nodes_streams_and_no_others() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let node = hub.node("node").await;
    let own = [hub.stream(&node, "").await, hub.stream(&node, "").await];
    let mut hears = hub.stream(&asker, "").await;
    hub.0.call("DELETE", "/v1/keys", Some(&node.key), None).await.expect(200);
    for stream in own {
        // Long before the next ping.
        let rest = tokio::time::timeout(std::time::Duration::from_secs(10), stream.rest()).await;
        assert!(rest.is_ok(), "the stream is open");
    }
    assert_error(&hub.0.get(STREAM, Some(&node.key)).await, 401, "UNAUTHORIZED");
    let id = whole(&hub, &asker, &worker).await;
    assert_eq!(ids(&next(&mut hears, 1).await), [id.as_str()]);
    hub.0.stop().await;
}
