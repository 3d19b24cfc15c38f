//! The same hire, sent again, is one job.

use rialto_core::time::Millis;
use serde_json::{Value, json};

use crate::client::Era;
use crate::kit::TestHub;
use crate::market::Market;
use rialto_hub::config::Profile;

fn hire(text: &str, key: Option<&str>) -> Value {
    let mut arguments = json!({"skill": "count_words", "input": {"text": text}, "budget": "0.10"});
    if let Some(key) = key {
        arguments["idempotency_key"] = key.into();
    }
    arguments
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_one_job_for_ever_whatever_the_wait() {
    let market = Market::open().await;
    let (_, worker) = market.worker("w", "count_words", "0.05", json!({"words": 1})).await;
    let client = market.buyer(Era::New);
    let first = client.ok("hire", hire("a", Some("order-7"))).await;
    assert!(first.get("repeated").is_none(), "{first}");
    // The same by meaning, later, with another wait.
    market.pass(Millis::hours(30));
    let mut same = hire("a", Some("order-7"));
    same["budget"] = json!(0.1);
    same["wait_seconds"] = json!(3);
    let again = client.ok("hire", same).await;
    assert_eq!((&again["job_id"], &again["repeated"]), (&first["job_id"], &json!(true)));
    assert_eq!(again["output"], first["output"]);
    let text = client.fail("hire", hire("b", Some("order-7")), "other_content").await;
    assert!(text.contains("idempotency_key"), "{text}");
    let mut dearer = hire("a", Some("order-7"));
    dearer["budget"] = json!("0.20");
    client.fail("hire", dearer, "other_content").await;
    let mut sooner = hire("a", Some("order-7"));
    sooner["deadline_seconds"] = json!(60);
    client.fail("hire", sooner.clone(), "other_content").await;
    // A deadline counts from each call, and is still the same argument.
    sooner["idempotency_key"] = json!("order-8");
    let first = client.ok("hire", sooner.clone()).await;
    market.pass(Millis::seconds(30));
    assert_eq!(client.ok("hire", sooner).await["job_id"], first["job_id"]);
    assert_eq!(worker.got().len(), 2);
    assert_eq!(market.left().await, "9.90");
    // The id is the one that the book works out, so that /v1 knows the job by it, too.
    let agent = market.hub.get("/v1/me", Some(&market.buyer.key)).await.expect(200);
    let native = agent.str("/agent/names/registry");
    let namespace = uuid::Uuid::from_u128(0xb26b_c05a_86f5_5456_bb53_ffeb_a844_57cc);
    let id = uuid::Uuid::new_v5(&namespace, format!("mcp:registry:{native}:order-8").as_bytes());
    let job = market.hub.get(&format!("/v1/jobs/{id}"), Some(&market.buyer.key)).await.expect(200);
    assert_eq!(job.at("/id"), first["job_id"]);
    // Two agents may use one key.
    let other = market.hub.orchestrator("bob").await;
    market.hub.grant("bob", "1").await;
    let theirs = market.client_of(&other).ok("hire", hire("other", Some("order-8"))).await;
    assert_ne!(theirs["job_id"], first["job_id"]);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_the_same_hire_within_two_minutes_is_a_repetition() {
    let market = Market::open().await;
    let (_, worker) = market.worker("w", "count_words", "0.05", json!({"words": 1})).await;
    let client = market.buyer(Era::New);
    let first = client.ok("hire", hire("a", None)).await;
    assert!(first.get("repeated").is_none() && first.get("next").is_none(), "{first}");
    market.pass(Millis::seconds(100));
    let again = client.ok("hire", hire("a", None)).await;
    assert_eq!((&again["job_id"], &again["repeated"]), (&first["job_id"], &json!(true)));
    assert!(again["next"].as_str().unwrap().contains("another idempotency_key"), "{again}");
    // Another input and a key of its own are other actions.
    let other = client.ok("hire", hire("b", None)).await;
    let keyed = client.ok("hire", hire("a", Some("k"))).await;
    market.pass(Millis::seconds(21));
    let later = client.ok("hire", hire("a", None)).await;
    let mut ids = vec![&first["job_id"], &other["job_id"], &keyed["job_id"], &later["job_id"]];
    ids.dedup();
    assert_eq!(ids.len(), 4, "{ids:?}");
    assert_eq!(worker.got().len(), 4);
    assert_eq!(market.left().await, "9.80");
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_at_once_are_one_job_and_a_refused_one_leaves_nothing_behind() {
    let market = Market::open().await;
    let client = market.buyer(Era::New);
    client.fail("hire", hire("a", Some("k")), "no_such_skill").await;
    let (_, worker) = market.worker("w", "count_words", "0.05", json!({"words": 1})).await;
    client.ok("hire", hire("b", Some("k"))).await;
    let calls = (0..8).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.ok("hire", hire("a", None)).await })
    });
    let calls: Vec<_> = calls.collect();
    let mut first = 0;
    for call in calls {
        first += usize::from(call.await.unwrap().get("repeated").is_none());
    }
    assert_eq!(first, 1);
    assert_eq!(worker.got().len(), 2);
    assert_eq!(market.left().await, "9.90");
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repetitions_are_known_after_a_restart() {
    let market = Market::open().await;
    let (_, _worker) = market.worker("w", "count_words", "0.05", json!({"words": 1})).await;
    let client = market.buyer(Era::New);
    let unkeyed = client.ok("hire", hire("a", None)).await;
    let keyed = client.ok("hire", hire("a", Some("k"))).await;
    let Market { hub, buyer } = market;
    let hub: TestHub = hub.restart(Profile::Serve, &[]).await;
    let market = Market { hub, buyer };
    let client = market.buyer(Era::New);
    for (arguments, first) in [(hire("a", None), &unkeyed), (hire("a", Some("k")), &keyed)] {
        let again = client.ok("hire", arguments).await;
        assert_eq!((&again["job_id"], &again["repeated"]), (&first["job_id"], &json!(true)));
    }
    assert_eq!(market.left().await, "9.90");
    market.hub.stop().await;
}
