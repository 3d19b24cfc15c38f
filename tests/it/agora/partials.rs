//! Partial results (R42, R49, D9).

use rialto_protocols::agora::MessageType;
use serde_json::json;

use super::scene::{Pair, credits, kinds};

#[tokio::test]
async fn parts_are_passed_on_and_the_work_goes_on_until_the_last() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, alice_reads, .. } = &pair;
    let request = pair.agree(json!(2), json!({"budget": {"max": 6}})).await;
    for n in 0..3 {
        let data = json!({"n": n, "text": "…"});
        let payload = json!({"request_id": request.id, "status": "partial", "data": data});
        let part = bob.sign(MessageType::Result, &payload);
        assert_eq!(hub.told(&part).await, "PROCESSING");
        assert_eq!(hub.newest(alice_reads).await, part.json());
        assert_eq!(pair.state(&request).await, "PROCESSING");
        assert_eq!(pair.account().await, credits("8", "2"), "nothing is paid for a part");
    }
    let last = bob.result(&request.id);
    assert_eq!(hub.told(&last).await, "COMPLETED");
    assert_eq!(hub.newest(alice_reads).await, last.json());
    assert_eq!((pair.account().await, pair.earned().await), (credits("8", "0"), "2".to_owned()));
    let letters = hub.letters(alice_reads).await;
    assert_eq!(kinds(&letters), ["OFFER", "RESULT", "RESULT", "RESULT", "RESULT"]);
}

#[tokio::test]
async fn a_part_that_is_final_completes_and_is_paid() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, alice_reads, .. } = &pair;
    let request = pair.agree(json!(2), json!({"budget": {"max": 6}})).await;
    // A part is final only if it says so: `false` and no member mean the same.
    let open = json!({"request_id": request.id, "status": "partial", "data": {}, "final": false});
    assert_eq!(hub.told(&bob.sign(MessageType::Result, &open)).await, "PROCESSING");
    let last = bob.partial(&request.id, true);
    assert_eq!(hub.told(&last).await, "COMPLETED");
    assert_eq!(pair.state(&request).await, "COMPLETED");
    assert_eq!(hub.newest(alice_reads).await, last.json());
    assert_eq!(pair.earned().await, "2");
    for late in [bob.partial(&request.id, false), bob.partial(&request.id, true)] {
        hub.refuses(&late, 400).await;
    }
}

#[tokio::test]
async fn in_the_direct_flow_the_first_part_begins_the_work() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let request = pair.ask(json!({})).await;
    assert_eq!(hub.told(&bob.partial(&request.id, false)).await, "PROCESSING");
    // From here on neither party can withdraw.
    hub.refuses(&alice.error(&request.id, 500), 400).await;
    assert_eq!(hub.told(&bob.partial(&request.id, true)).await, "COMPLETED");
    let request = pair.ask(json!({})).await;
    assert_eq!(hub.told(&bob.partial(&request.id, true)).await, "COMPLETED");
}

#[tokio::test]
async fn who_has_begun_may_still_fail_and_gets_nothing() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, alice_reads, .. } = &pair;
    let request = pair.agree(json!(2), json!({"budget": {"max": 6}})).await;
    hub.told(&bob.partial(&request.id, false)).await;
    let error = bob.error(&request.id, 500);
    assert_eq!(hub.told(&error).await, "FAILED");
    assert_eq!(hub.newest(alice_reads).await, error.json());
    assert_eq!(pair.account().await, credits("10", "0"));
    hub.refuses(&bob.partial(&request.id, true), 400).await;
}

#[tokio::test]
async fn a_part_said_twice_is_one_part() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, alice_reads, .. } = &pair;
    let request = pair.ask(json!({})).await;
    let part = bob.partial(&request.id, false);
    for _ in 0..3 {
        assert_eq!(hub.told(&part).await, "PROCESSING");
    }
    assert_eq!(hub.letters(alice_reads).await.len(), 1);
    hub.told(&bob.result(&request.id)).await;
    // A repeat still gets its first answer.
    assert_eq!(hub.told(&part).await, "PROCESSING");
    assert_eq!(hub.letters(alice_reads).await.len(), 2);
}
