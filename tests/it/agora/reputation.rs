//! What raises and lowers a provider's reputation (R66).

use rialto_core::reputation::Standing;
use serde_json::json;

use super::kit::Key;
use super::scene::{Pair, SEARCH};

/// Bob's outcomes, successes and failures.
fn tally(pair: &Pair) -> (u64, u64, u64) {
    let Standing { outcomes, successes, failures, .. } = pair.hub.standing_of(pair.bob.did());
    (outcomes, successes, failures)
}

#[tokio::test]
async fn delivered_work_counts_for_who_did_it_paid_or_not() {
    let pair = Pair::meet().await;
    let request = pair.ask(json!({})).await;
    pair.hub.told(&pair.bob.result(&request.id)).await;
    assert_eq!(tally(&pair), (1, 1, 0));
    let request = pair.agree(json!(2), json!({})).await;
    assert_eq!(tally(&pair), (1, 1, 0), "only the final result counts");
    pair.hub.told(&pair.bob.partial(&request.id, false)).await;
    assert_eq!(tally(&pair), (1, 1, 0));
    pair.hub.told(&pair.bob.partial(&request.id, true)).await;
    assert_eq!(tally(&pair), (2, 2, 0));
    let standing = pair.hub.standing_of(pair.bob.did());
    assert!(standing.score > Standing::default().score);
    // A request changes no score.
    assert_eq!(pair.hub.standing_of(pair.alice.did()), Standing::default());
}

#[tokio::test]
async fn in_the_direct_flow_refusals_do_not_count_and_failures_do() {
    for (code, blamed) in [
        (400, false),
        (401, false),
        (402, false),
        (404, false),
        (429, false),
        (503, false),
        (408, true),
        (500, true),
        (418, true),
    ] {
        let pair = Pair::priced(json!(1)).await;
        let request = pair.ask(json!({"budget": {"max": 1}})).await;
        assert_eq!(pair.hub.told(&pair.bob.error(&request.id, code)).await, "FAILED");
        assert_eq!(tally(&pair).2, u64::from(blamed), "{code}");
        let lower = pair.hub.standing_of(pair.bob.did()).score < Standing::default().score;
        assert_eq!(lower, blamed, "{code}");
    }
}

#[tokio::test]
async fn silence_in_the_direct_flow_counts_against_who_was_asked_alone() {
    let pair = Pair::on(&[("reputation.fair_time", "1s")], None).await;
    let request = pair.ask(json!({"timeout": 2_500})).await;
    assert_eq!(pair.hub.letters(&pair.bob_reads).await.len(), 1, "Bob has read it");
    pair.fails(&request).await;
    assert_eq!(tally(&pair), (1, 0, 1));
    // A worker that has made an offer was waiting for the answer.
    let request = pair.ask(json!({"timeout": 2_500, "budget": {"max": 2}})).await;
    pair.offer(&request, json!(1)).await;
    pair.fails(&request).await;
    assert_eq!(tally(&pair).2, 1);
}

#[tokio::test]
async fn a_job_that_was_never_read_or_came_too_late_has_no_penalty() {
    let pair = Pair::on(&[("reputation.fair_time", "1s")], None).await;
    let unread = pair.ask(json!({"timeout": 1_500})).await;
    pair.fails(&unread).await;
    assert_eq!(tally(&pair), (0, 0, 0));
    let hurried = pair.ask(json!({"timeout": 900})).await;
    pair.hub.letters(&pair.bob_reads).await;
    pair.fails(&hurried).await;
    assert_eq!(tally(&pair), (0, 0, 0));
}

#[tokio::test]
async fn in_a_fan_out_a_missing_answer_penalizes_no_agent() {
    let pair = Pair::meet().await;
    let carol = Key::of(3);
    pair.hub.provider(&carol, SEARCH, None).await;
    let request = pair.ask(json!({"budget": {"max": 1}, "timeout": 500})).await;
    pair.fails(&request).await;
    assert_eq!(pair.hub.standing_of(carol.did()), Standing::default());
    assert_eq!(tally(&pair), (0, 0, 0));
}

#[tokio::test]
async fn after_an_agreement_there_is_no_excuse() {
    for code in [400, 402, 404, 429, 503, 500, 408, 999] {
        let pair = Pair::meet().await;
        let request = pair.agree(json!(1), json!({})).await;
        assert_eq!(pair.hub.told(&pair.bob.error(&request.id, code)).await, "FAILED");
        assert_eq!(tally(&pair), (1, 0, 1), "{code}");
    }
    let pair = Pair::on(&[("reputation.fair_time", "1s")], None).await;
    let request = pair.agree(json!(1), json!({"timeout": 4_000})).await;
    pair.hub.letters(&pair.bob_reads).await;
    pair.fails(&request).await;
    assert_eq!(tally(&pair), (1, 0, 1), "no answer");
}

#[tokio::test]
async fn a_withdrawal_penalizes_no_agent() {
    let pair = Pair::meet().await;
    let request = pair.ask(json!({})).await;
    pair.hub.told(&pair.alice.error(&request.id, 500)).await;
    let request = pair.ask(json!({"budget": {"max": 1}})).await;
    pair.offer(&request, json!(1)).await;
    pair.hub.told(&pair.alice.error(&request.id, 500)).await;
    assert_eq!(tally(&pair), (0, 0, 0));
}

#[tokio::test]
async fn the_score_decides_who_is_asked_first() {
    let pair = Pair::meet().await;
    let carol = Key::of(3);
    let carol_reads = pair.hub.provider(&carol, SEARCH, None).await;
    // Bob registered first, and fails a job.
    let request = pair.ask(json!({})).await;
    assert_eq!(pair.hub.newest(&pair.bob_reads).await, request.json());
    pair.hub.told(&pair.bob.error(&request.id, 500)).await;
    let request = pair.ask(json!({})).await;
    assert_eq!(pair.hub.newest(&carol_reads).await, request.json());
    assert_eq!(pair.hub.letters(&pair.bob_reads).await.len(), 1);
}

#[tokio::test]
async fn the_outcome_is_seen_from_the_registry_too() {
    let pair = Pair::meet().await;
    let request = pair.ask(json!({})).await;
    pair.hub.told(&pair.bob.result(&request.id)).await;
    let alias = pair.hub.engine.with_world(|world| {
        let id =
            world.agent_by_alias(rialto_protocols::agora::ID, pair.bob.did()).expect("an agent");
        world.alias_of(id, rialto_protocols::registry::ID).expect("an alias").to_owned()
    });
    let path = format!("/registry/reputation/{alias}");
    let shown = pair.hub.get(&path, None).await.expect(200);
    assert_eq!(crate::kit::digits(&shown.text, "score").parse::<f64>().expect("a number"), 51.0);
}

#[tokio::test]
async fn throw_away_keys_cannot_spoil_a_name_with_requests_that_leave_no_time() {
    let pair = Pair::meet().await;
    for number in 10..22 {
        let stranger = Key::of(number);
        let reads = pair.hub.hello(&stranger, json!({})).await;
        let request = stranger.request(SEARCH, json!({"timeout": 1_000}));
        assert_eq!(pair.hub.told(&request).await, "PENDING");
        pair.hub.letters(&pair.bob_reads).await;
        pair.hub.pass(rialto_core::time::Millis(1_000));
        let state = async || pair.hub.state_of(&reads, &request.id).await;
        crate::kit::eventually(async || state().await == "FAILED").await;
    }
    assert_eq!(pair.hub.standing_of(pair.bob.did()), Standing::default());
}
