//! The two flows of a request: with an offer, and direct.

use serde_json::json;

use super::kit::{Hub, Key, assert_signed};

#[tokio::test]
async fn a_request_is_offered_accepted_and_delivered_and_the_offerer_is_paid() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    hub.fund(&alice, "10").await;
    let alice_reads = hub.hello(&alice, json!({})).await;
    let bob_reads = hub.provider(&bob, "agora:search:v1", None).await;

    let request = alice.request("agora:search:v1", json!({"budget": {"max": 6}}));
    let taken = hub.tell(&request).await.expect(202);
    assert_signed(&taken.text);
    assert_eq!(taken.at("/payload/status"), "accepted");
    assert_eq!(taken.at("/payload/state"), "PENDING");
    assert_eq!(taken.at("/payload/request_id"), request.id);
    assert!(taken.header("rialto-job").is_some());
    assert_eq!(hub.newest(&bob_reads).await, request.json());

    let offer = bob.offer(&request.id, json!(5.25));
    assert_eq!(hub.tell(&offer).await.expect(202).at("/payload/state"), "NEGOTIATING");
    assert_eq!(hub.newest(&alice_reads).await, offer.json());
    let accept = alice.accept(&offer);
    assert_eq!(hub.tell(&accept).await.expect(202).at("/payload/state"), "PROCESSING");
    assert_eq!(hub.balance(&alice.owner()).await, ("4.75".to_owned(), "5.25".to_owned()));
    assert_eq!(hub.newest(&bob_reads).await, accept.json());

    let result = bob.result(&request.id);
    assert_eq!(hub.tell(&result).await.expect(202).at("/payload/state"), "COMPLETED");
    assert_eq!(hub.newest(&alice_reads).await, result.json());
    assert_eq!(hub.state_of(&alice_reads, &request.id).await, "COMPLETED");
    assert_eq!(hub.balance(&bob.owner()).await.0, "5.25");
}

#[tokio::test]
async fn a_simple_request_is_just_answered() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    let alice_reads = hub.hello(&alice, json!({})).await;
    hub.provider(&bob, "agora:time:v1", None).await;
    let request = alice.request("agora:time:v1", json!({}));
    hub.tell(&request).await.expect(202);
    hub.tell(&bob.result(&request.id)).await.expect(202);
    assert_eq!(hub.state_of(&alice_reads, &request.id).await, "COMPLETED");
}
