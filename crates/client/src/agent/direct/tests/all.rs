use std::time::Duration;

use rialto_core::money::Credits;
use uuid::Uuid;

use super::Stand;
use crate::{agora, openclaw, registry, relay};

const INPUT: &str = r#"{"text":"hi"}"#;
const OUTPUT: &str = r#"{"text":"HI"}"#;

#[tokio::test]
async fn one_workshop_works_for_peers_of_every_protocol() {
    let stand = Stand::shouter().await;
    let price = Credits::parse("0.05", 2).expect("an amount");

    let job = registry::JobSpec::new("shout", INPUT).budget(price).build().expect("a job");
    let peer = registry::direct::Peer::new(&stand.url).expect("a peer");
    let hired = peer.hire(&job).await.expect("done");
    assert_eq!(hired.outcome, registry::JobOutcome::Done(OUTPUT.to_owned()));

    let envelope = relay::EnvelopeSpec::new("alice@chorus", "en", "hi").build().expect("a letter");
    let paying = envelope.as_str().replacen('{', r#"{"budget":0.05,"#, 1);
    let envelope = relay::ValidEnvelope::read(&paying).expect("a letter");
    let reply = relay::direct::send(&format!("{}/receive", stand.url), &envelope).await;
    assert!(reply.expect("a reply").raw.contains(r#""reply":"HI""#));

    let node =
        openclaw::direct::Peer::connect(&stand.url, Uuid::from_u128(1)).await.expect("a node");
    let order = openclaw::RequestSpec::new("shout", INPUT).budget(price);
    let asked = node.request(&order).await.expect("asked");
    let end = node.result(&asked, Duration::from_secs(20)).await.expect("an end");
    let openclaw::RequestEnd::Result(result) = end else { panic!("{end:?}") };
    assert_eq!(
        result.body.outcome,
        openclaw::ResultOutcome::Completed { output_data: OUTPUT.into() }
    );

    let me = agora::Identity::new(&agora::Seed::from_bytes([1; 32]));
    let order = agora::RequestSpec::new("agora:shout:v1", INPUT).budget(price);
    let outcome = agora::direct::request(&stand.url, me, &order, |offer| offer.cost == price).await;
    assert!(matches!(outcome, Ok(agora::RequestOutcome::Done(work)) if work.data == OUTPUT));

    assert_eq!(stand.works.begun(), 4);
}
