//! Capacity, repeats and ends.

use rialto_core::time::Timestamp;
use rialto_protocols::kit::rfc3339;
use rialto_protocols::openclaw::wire::{self, ReputationUpdate};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Stand, accepted, ask, rejected, said, with};
use crate::clock;

#[tokio::test]
async fn so_many_are_worked_on_and_no_more() {
    let stand = Stand::new().await;
    let numbered = |n: u128| {
        with(ask("held", json!({"n": n as u64})), "request_id", Uuid::from_u128(n).to_string())
    };
    let all: Vec<_> = (1..=6).map(numbered).collect();
    let replies =
        futures_util::future::join_all(all.iter().map(|one| stand.post("/openclaw", one)));
    let mut full = 0;
    for (reply, request) in replies.await.iter().zip(&all) {
        if said(reply, request)["response_status"] == "rejected" {
            let (code, reason) = rejected(reply, request);
            assert_eq!((code.as_str(), &reason["retryable"]), ("resource_exhausted", &json!(true)));
            assert_eq!(reason["details"], json!({"current_tasks": 2, "max_tasks": 2}));
            assert!(reason["retry_after_seconds"].is_u64());
            full += 1;
        }
    }
    assert_eq!(full, 4);
    stand.works.gate.add_permits(6);
    // A request refused for lack of capacity is not stored and may be sent again (D12).
    for request in &all {
        while said(&stand.post("/openclaw", request).await, request)["response_status"]
            != "accepted"
        {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_request_is_served_once_under_its_key_or_its_id() {
    let stand = Stand::new().await;
    for key in [None, Some("k")] {
        let before = stand.works.begun();
        let mut request = ask("echo", json!({"a": 1.0}));
        if let Some(key) = key {
            request = with(request, "idempotency_key", key);
        }
        let parallel = (0..8).map(|_| stand.post("/openclaw", &request));
        let replies = futures_util::future::join_all(parallel).await;
        let ids: Vec<_> = replies.iter().map(|reply| accepted(reply, &request)).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let result = stand.result(&ids[0]).await;
        let again = stand.post("/openclaw", &request).await;
        assert_eq!(said(&again, &request)["result"], result);
        let other = with(request.clone(), "input_data", json!({"a": 2}));
        let reply = stand.post("/openclaw", &other).await;
        match key {
            None => {
                assert_eq!(
                    (reply.status, &reply.json()["error"]["code"]),
                    (422, &json!("IDEMPOTENCY_CONFLICT"))
                );
                assert_eq!(reply.json()["correlation_id"], other["correlation_id"]);
            }
            Some(_) => {
                let own = with(other, "request_id", Uuid::from_u128(7).to_string());
                let reply = stand.post("/openclaw", &own).await;
                assert_eq!(accepted(&reply, &own), ids[0]);
                assert_eq!(reply.headers["idempotency-mismatch"], "true");
            }
        }
        assert_eq!(stand.works.begun(), before + 1);
    }
}

#[tokio::test]
async fn work_ends_by_failing_by_being_called_off_and_by_its_deadline() {
    let stand = Stand::new().await;
    let post = async |request: Value, n: u128| {
        let request = with(request, "request_id", Uuid::from_u128(n).to_string());
        accepted(&stand.post("/openclaw", &request).await, &request)
    };
    let failed = stand.result(&post(ask("fail", json!({})), 1).await).await;
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["message"]),
        (&json!("EXECUTION_ERROR"), &json!("it broke"))
    );
    let declined = stand.result(&post(ask("decline", json!({})), 2).await).await;
    assert_eq!(declined["error"]["retryable"], true);
    let soon = rfc3339::format_millis(Timestamp(clock::now().0 + 2_000));
    let late = stand.result(&post(with(ask("held", json!({})), "deadline", soon), 3).await).await;
    assert_eq!(
        (&late["error"]["code"], &late["error"]["retryable"]),
        (&json!("DEADLINE_EXCEEDED"), &json!(true))
    );
    let id = post(ask("held", json!({})), 4).await;
    let cancel = format!("/openclaw/collaborations/{id}/cancel");
    let off = stand.post(&cancel, json!({"reason": "changed my mind"})).await;
    assert_eq!((off.status, &off.json()["result_status"]), (200, &json!("cancelled")));
    assert_eq!(stand.result(&id).await, off.json());
    assert_eq!(stand.post(&cancel, "{}").await.status, 409);
    let text = stand.get("/openclaw/reputation").await.text;
    let reputation = wire::read::<ReputationUpdate>(text.as_bytes()).expect("a reputation").body;
    let metrics = reputation.metrics.expect("metrics");
    assert_eq!((metrics.total_collaborations, metrics.failed_collaborations), (Some(3), Some(3)));
}
