//! Work that needs approval: by the responder, by the operator, or not given in time (R73).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, with};
use super::scene::{COLLABORATIONS, credits};
use crate::relay::kit::Inbox;

struct Waiting {
    hub: Hub,
    asker: Node,
    worker: Node,
    hears: Inbox,
    works: Inbox,
    request: Value,
    /// The collaboration's id, as the responder received it.
    id: String,
    until: String,
}

impl Waiting {
    async fn begin(flags: &[(&str, &str)], more: Value) -> Self {
        let hub = Hub::serve(flags).await;
        let asker = hub.node("asker").await;
        let worker = hub.able_node("worker", json!({"requires_approval": true, "price": 2})).await;
        hub.fund(&asker, "10").await;
        let hears = hub.stream(&asker, "").await;
        let mut works = hub.stream(&worker, "").await;
        let named = json!({"responder_agent_id": worker.id, "budget": 3});
        let request = hub.request(&asker, with(&named, more));
        let reply = hub.ask(&asker, &request).await.expect(200);
        assert_eq!(reply.str("/response_status"), "deferred");
        let until = reply.str("/deferred_until");
        let told = works.until("collaboration_request").await.data;
        assert_eq!(told["accepted"], false);
        assert_eq!(told["awaiting_approval"], true);
        assert_eq!(told["deferred_until"], until.as_str());
        let id = told["collaboration_id"].as_str().expect("an id").to_owned();
        Self { hub, asker, worker, hears, works, request, id, until }
    }

    async fn second(&mut self) -> Value {
        let told = self.hears.until("collaboration_response").await.data;
        assert_eq!(told["request_id"], self.request["request_id"]);
        assert_eq!(told["correlation_id"], self.request["correlation_id"]);
        told
    }

    async fn is_rejected(&mut self) {
        let told = self.second().await;
        assert_eq!(told["response_status"], "rejected");
        assert_eq!(told["rejection_reason"]["code"], "policy_violation");
        assert_eq!(told["rejection_reason"]["retryable"], false);
        assert_eq!(self.hub.state(&self.asker, &self.id).await, "rejected");
        assert_eq!(self.hub.account(&self.asker).await, credits("10.00", "0.00"));
        assert_eq!(
            self.hub.entry(&self.worker.id).await["trust_signals"]["total_collaborations"],
            0
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_responders_yes_is_an_acceptance_on_the_stream() {
    let mut waiting = Waiting::begin(&[], json!({})).await;
    let reply = waiting.hub.approve(&waiting.worker.key, &waiting.id, true).await.expect(200);
    assert_eq!(reply.str("/status"), "approved");
    let told = waiting.second().await;
    assert_eq!(told["response_status"], "accepted");
    assert_eq!(told["collaboration_id"], waiting.id);
    let work = waiting.works.until("collaboration_request").await.data;
    assert_eq!((&work["accepted"], &work["collaboration_id"]), (&json!(true), &json!(waiting.id)));
    let Waiting { hub, asker, worker, request, id, .. } = waiting;
    assert_eq!(hub.account(&asker).await, credits("7.00", "3.00"));
    assert_error(&hub.approve(&worker.key, &id, true).await, 409, "CONFLICT");
    assert_error(&hub.approve(&worker.key, &id, false).await, 409, "CONFLICT");
    hub.result(&super::scene::work(&id, &request, &worker), json!({})).await.expect(200);
    assert_eq!(hub.account(&asker).await, credits("8.00", "0.00"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_yes_and_no_are_as_good() {
    for yes in [true, false] {
        let mut waiting = Waiting::begin(&[], json!({})).await;
        let operator = waiting.hub.operator.clone();
        let reply = waiting.hub.approve(&operator, &waiting.id, yes).await.expect(200);
        assert_eq!(reply.str("/status"), if yes { "approved" } else { "refused" });
        match yes {
            true => assert_eq!(waiting.second().await["response_status"], "accepted"),
            false => waiting.is_rejected().await,
        }
        waiting.hub.0.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_is_a_rejection_and_the_last_word() {
    let mut waiting = Waiting::begin(&[], json!({"idempotency_key": "k"})).await;
    let id = waiting.request["request_id"].as_str().expect("an id").to_owned();
    let reply = waiting.hub.approve(&waiting.worker.key, &id, false).await.expect(200);
    assert_eq!(reply.str("/status"), "refused");
    waiting.is_rejected().await;
    let late = waiting.hub.approve(&waiting.worker.key, &waiting.id, true).await;
    assert_error(&late, 409, "CONFLICT");
    // A repeat gets the same rejection.
    let again = waiting.hub.ask(&waiting.asker, &waiting.request).await.expect(200);
    assert_eq!(again.str("/rejection_reason/code"), "policy_violation");
    waiting.hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_of_silence_is_a_no() {
    let mut waiting = Waiting::begin(&[], json!({})).await;
    assert!(
        waiting.until > waiting.hub.time(3_500_000) && waiting.until <= waiting.hub.time(3_600_000)
    );
    waiting.hub.pass(Millis(3_600_000 - 60_000));
    assert_eq!(waiting.hub.state(&waiting.asker, &waiting.id).await, "deferred");
    waiting.hub.pass(Millis::minutes(1));
    waiting.is_rejected().await;
    let late = waiting.hub.approve(&waiting.worker.key, &waiting.id, true).await;
    assert_error(&late, 409, "CONFLICT");
    waiting.hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_sets_how_long_it_waits_and_a_restart_forgets_nothing() {
    let flags = [("openclaw.approval_window", "10m")];
    let waiting = Waiting::begin(&flags, json!({})).await;
    assert!(waiting.until <= waiting.hub.time(600_000));
    let Waiting { hub, asker, worker, id, hears, works, .. } = waiting;
    drop((hears, works));
    let hub = hub.restart(&flags).await;
    assert_eq!(hub.state(&asker, &id).await, "deferred");
    hub.report(&worker, "idle", json!({})).await.expect(200);
    assert_eq!(hub.state(&asker, &id).await, "deferred", "activity is not an approval");
    hub.approve(&worker.key, &id, true).await.expect(200);
    assert_eq!(hub.state(&asker, &id).await, "running");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_approver_may_approve_and_the_body_must_say_approved_or_not() {
    let waiting = Waiting::begin(&[], json!({})).await;
    let Waiting { hub, asker, worker, id, .. } = &waiting;
    let stranger = hub.node("stranger").await;
    let plain = hub.accepted(asker, &stranger, json!({})).await;
    let before = hub.held().await;
    assert_error(&hub.approve(&asker.key, id, true).await, 404, "NOT_FOUND");
    assert_error(&hub.approve(&stranger.key, id, true).await, 404, "NOT_FOUND");
    assert_error(&hub.approve(&worker.key, &super::kit::fresh_id(), true).await, 404, "NOT_FOUND");
    assert_error(&hub.approve(&worker.key, "nonsense", true).await, 404, "NOT_FOUND");
    let path = format!("{COLLABORATIONS}/{id}/approve");
    assert_error(&hub.post(&path, None, &json!({"approved": true})).await, 401, "UNAUTHORIZED");
    for wrong in [json!({}), json!({"approved": "yes"}), json!([]), json!({"approved": null})] {
        assert_error(&hub.post(&path, Some(&worker.key), &wrong).await, 400, "VALIDATION_ERROR");
    }
    assert_error(&hub.approve(&stranger.key, &plain.id, true).await, 409, "CONFLICT");
    assert_eq!(hub.held().await, before);
    waiting.hub.0.stop().await;
}
