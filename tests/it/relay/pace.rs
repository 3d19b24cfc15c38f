//! The call rate per host, whichever agent causes the calls (T27).

use rialto_core::time::Millis;
use serde_json::json;

use super::kit::{Peer, envelope, registration, with};
use super::looks::trace;
use crate::kit::{Behaviour, TestHub, Worker, eventually};

/// A recipient with an endpoint at this URL.
async fn at(hub: &TestHub, name: &str, endpoint: &str) -> Peer {
    let body = with(&registration(name), "/endpoint", Some(endpoint.into()));
    let reply = hub.post("/relay/register", None, &body).await.expect(201);
    Peer { id: reply.str("/data/agent_id"), key: reply.str("/data/api_key") }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_over_its_calls_per_minute_gets_the_rest_later_and_other_hosts_do_not_wait() {
    let hub = TestHub::serve(&[("egress.per_host_per_minute", "2")]).await;
    let worker = Worker::start(Behaviour::Say(200, r#"{"status":"ok"}"#.to_owned())).await;
    let port = worker.url.rsplit(':').next().expect("a port").to_owned();
    let alice = hub.join("alice@chorus").await;
    // Two agents at one host, which is the unit of the limit, and one at another.
    let bob = at(&hub, "bob@chorus", &worker.url).await;
    let bea = at(&hub, "bea@chorus", &format!("{}/bea", worker.url)).await;
    let cid = at(&hub, "cid@chorus", &format!("http://localhost:{port}/cid")).await;
    let said = envelope(&alice.id, "hello");
    for to in [&bob, &bea] {
        let reply = hub.mail(&alice, to, &said).await.expect(200);
        assert_eq!(reply.str("/data/delivery"), "delivered");
    }
    let late = hub.mail(&alice, &bob, &said).await.expect(202);
    assert_eq!(late.str("/data/delivery"), "queued");
    let tried = hub.post("/v1/webhooks/test", Some(&bea.key), &json!({})).await.expect(429);
    assert!(tried.header("retry-after").is_some(), "{}", tried.text);
    let elsewhere = hub.mail(&alice, &cid, &said).await.expect(200);
    assert_eq!(elsewhere.str("/data/delivery"), "delivered");
    assert_eq!(worker.got().len(), 3);
    // It does not count as a failure of the endpoint.
    let waiting = hub.pushes();
    assert_eq!(waiting.len(), 1);
    assert_eq!((waiting[0].attempts, waiting[0].last_error.as_deref()), (0, None));
    hub.pass(Millis::minutes(5));
    eventually(async || hub.pushes().is_empty()).await;
    let got = worker.got();
    assert_eq!(got.len(), 4);
    assert_eq!(super::looks::header(&got[3], "webhook-id"), trace(&late));
    hub.stop().await;
}
