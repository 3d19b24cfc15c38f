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

    let job = registry::Order::new("shout", INPUT).budget(price).draw_up().expect("a job");
    let peer = registry::direct::Peer::new(&stand.url).expect("a peer");
    let hired = peer.hire(&job).await.expect("done");
    assert_eq!(hired.outcome, registry::Outcome::Done(OUTPUT.to_owned()));

    let letter = relay::Draft::new("alice@chorus", "en", "hi").seal().expect("a letter");
    let paying = letter.as_str().replacen('{', r#"{"budget":0.05,"#, 1);
    let letter = relay::Letter::read(&paying).expect("a letter");
    let reply = relay::direct::send(&format!("{}/receive", stand.url), &letter).await;
    assert!(reply.expect("a reply").raw.contains(r#""reply":"HI""#));

    let node = openclaw::direct::Peer::find(&stand.url, Uuid::from_u128(1)).await.expect("a node");
    let order = openclaw::Order::new("shout", INPUT).budget(price);
    let asked = node.request(&order).await.expect("asked");
    let end = node.result(&asked, Duration::from_secs(20)).await.expect("an end");
    let openclaw::End::Result(result) = end else { panic!("{end:?}") };
    assert_eq!(result.said.outcome, openclaw::Outcome::Completed { output_data: OUTPUT.into() });

    let me = agora::Identity::new(&agora::Seed::from_bytes([1; 32]));
    let order = agora::Order::new("agora:shout:v1", INPUT).budget(price);
    let outcome = agora::direct::request(&stand.url, me, &order, |offer| offer.cost == price).await;
    assert!(matches!(outcome, Ok(agora::Outcome::Done(work)) if work.data == OUTPUT));

    assert_eq!(stand.works.begun(), 4);
}
