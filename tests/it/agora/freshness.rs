//! Timestamps of envelopes and how far they may be from now (R4, R5, D4, D18).
//!
//! The exact limit (60 s pass, one millisecond more does not) is tested where "now" is an argument:
//! `a_minute_either_way_is_fresh_and_a_millisecond_more_is_not` in the protocol's own tests.

use rialto_core::time::Millis;
use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};

use super::kit::{Hub, Key, assert_error, now};
use super::pen::{Pen, from_now, state};
use crate::kit::Reply;
use crate::relay::kit::with;

/// A note from Alice to Bob with this timestamp.
fn note(timestamp: &str) -> (Pen, Value) {
    let alice = Pen::of(1);
    let draft = with(&alice.note(Key::of(2).public()), "/timestamp", Some(json!(timestamp)));
    (alice, draft)
}

async fn post(hub: &Hub, timestamp: &str) -> Reply {
    let (alice, draft) = note(timestamp);
    hub.post_envelope(&alice.sign(&draft)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_a_minute_from_now_is_refused_either_way() {
    let hub = Hub::serve(&[]).await;
    let reads = hub.hello(&Key::of(2), json!({})).await;
    let before = state(&hub).await;
    for (seconds, why) in
        [(-61, "stale timestamp"), (-86_400, "stale timestamp"), (70, "ahead"), (86_400, "ahead")]
    {
        let reply = post(&hub, &from_now(seconds)).await;
        assert_error(&reply, 401);
        assert!(reply.str("/payload/message").contains(why), "{}", reply.text);
        // The hint shows the hub's clock and says to sign again.
        let hint = reply.str("/payload/hint");
        assert!(hint.contains("the hub's clock is 20") && hint.contains("sign again"), "{hint}");
        assert_eq!(reply.at("/payload/retryable"), false);
    }
    assert_eq!(state(&hub).await, before);
    for seconds in [-40, 0, 40] {
        post(&hub, &from_now(seconds)).await.expect(202);
    }
    assert_eq!(hub.letters(&reads).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_too_old_may_be_signed_again_under_its_id() {
    let hub = Hub::serve(&[]).await;
    let reads = hub.hello(&Key::of(2), json!({})).await;
    let (alice, draft) = note(&from_now(-90));
    assert_error(&hub.post_envelope(&alice.sign(&draft)).await, 401);
    let again = with(&draft, "/timestamp", Some(json!(from_now(0))));
    hub.post_envelope(&alice.sign(&again)).await.expect(202);
    assert_eq!(hub.ids(&reads).await, [draft["id"].as_str().expect("an id")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_is_utc_and_says_so() {
    let hub = Hub::serve(&[]).await;
    let reads = hub.hello(&Key::of(2), json!({})).await;
    let now = from_now(0);
    let (seconds, bare) = (&now[..19], &now[..23]);
    let before = state(&hub).await;
    for wrong in [
        bare.to_owned(),
        seconds.to_owned(),
        format!("{seconds}+01:00"),
        format!("{seconds}-00:00"),
        format!("{seconds}+24:00"),
        format!("{seconds}z"),
        format!("{seconds}.Z"),
        format!("{}Z", seconds.replace('T', " ")),
        format!("{} ", now),
        now[..10].to_owned(),
        "2026-02-30T00:00:00Z".to_owned(),
        "2026-03-20T24:00:00Z".to_owned(),
        "1969-12-31T23:59:59Z".to_owned(),
        "-001-01-01T00:00:00Z".to_owned(),
        "10000-01-01T00:00:00Z".to_owned(),
        "soon".to_owned(),
        String::new(),
    ] {
        let reply = post(&hub, &wrong).await;
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.text);
        assert_error(&reply, 400);
        assert_eq!(reply.str("/payload/field"), "/timestamp");
    }
    // A valid timestamp, but far from now.
    assert_error(&post(&hub, "9999-12-31T23:59:59Z").await, 401);
    assert_eq!(state(&hub).await, before);
    let fine = [
        format!("{seconds}Z"),
        format!("{seconds}+00:00"),
        format!("{seconds}.5Z"),
        format!("{seconds}.123456789Z"),
        format!("{bare}+00:00"),
    ];
    for fine in &fine {
        post(&hub, fine).await.expect(202);
    }
    assert_eq!(hub.letters(&reads).await.len(), fine.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_sets_the_window_and_clients_can_read_it() {
    let hub = Hub::serve(&[("agora.window", "1h")]).await;
    hub.hello(&Key::of(2), json!({})).await;
    assert_eq!(hub.get("/agora", None).await.expect(200).at("/window_ms"), 3_600_000);
    for seconds in [-3_000, 3_000] {
        post(&hub, &from_now(seconds)).await.expect(202);
    }
    for seconds in [-3_700, 3_700] {
        assert_error(&post(&hub, &from_now(seconds)).await, 401);
    }
    let hub = Hub::serve(&[]).await;
    assert_eq!(hub.get("/agora", None).await.expect(200).at("/window_ms"), 60_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_tells_when_the_hub_had_what_it_passes_on() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    let reads = hub.hello(&bob, json!({})).await;
    let before = now();
    post(&hub, &from_now(-40)).await.expect(202);
    let after = now();
    let hub = hub.restart(&[]).await;
    // A reader counts the age from the time of receipt, however late it reads
    // (`freshness_counts_from_when_…`).
    let item = &hub.letters(&reads).await[0];
    super::kit::assert_vouched(hub.hub_key().await, item);
    let said = &item["receipt"]["payload"];
    assert_eq!(said["status"], "received");
    assert_eq!(said["message_id"], item["envelope"]["id"]);
    assert_eq!(said["message_sender"], alice.did());
    let at = rfc3339::parse(said["received_at"].as_str().expect("a time")).expect("a time");
    assert!(before <= at && at <= after, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_clock_that_was_set_is_the_one_freshness_goes_by_and_no_deadline_does() {
    for seconds in [3_600, -3_600] {
        let pair = super::scene::Pair::meet().await;
        let super::scene::Pair { hub, alice_reads, bob_reads, .. } = &pair;
        let worker = hub.agent("acme", "sums", "0", None).await;
        let request = pair.agree(json!(2), json!({"budget": {"max": 6}, "timeout": 600_000})).await;
        let held = pair.account().await;
        // As after a suspended machine, or when the clock is corrected.
        hub.clock.set_wall(Millis::seconds(seconds));
        hub.engine.wake_lane();
        let reply = post(hub, &from_now(0)).await.expect(401);
        let why = if seconds > 0 { "stale timestamp" } else { "ahead" };
        assert!(reply.str("/payload/message").contains(why), "{}", reply.text);
        let taken = post(hub, &from_now(seconds)).await.expect(202);
        let answered = rfc3339::parse(&taken.str("/timestamp")).expect("a time");
        let off = now().plus(Millis::seconds(seconds)).since(answered).0.abs();
        assert!(off < 60_000, "what the hub signs is fresh by the same clock: {off} ms");
        hub.newest(bob_reads).await;
        // Nothing became due, and no agent went offline.
        assert_eq!(pair.state(&request).await, "PROCESSING");
        assert_eq!(pair.account().await, held);
        assert!(
            hub.letters(alice_reads).await.iter().all(|one| one["envelope"]["type"] != "ERROR")
        );
        let found = hub.get("/registry/discover?skill=sums", None).await.expect(200);
        assert!(found.text.contains(&worker.id), "{}", found.text);
    }
}
