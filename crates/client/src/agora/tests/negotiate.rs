use std::time::Duration;

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::hub::{Hub, hub, identity};
use crate::agora::{Credits, InboxOptions, NegotiationOptions, RequestOutcome, RequestSpec};

fn order() -> RequestSpec {
    RequestSpec::new("agora:search:v1", "{}").budget(Credits::from_micros(5_000_000))
}

fn offer(hub: &Hub, by: u8, request: &Value, cost: f64) {
    let payload = json!({"request_id": request["id"], "cost": cost, "ttl": 60_000, "eta": 5});
    hub.put(&identity(by), MessageType::Offer, &payload);
}

/// Two agents make offers, and the cheaper one does the work when it is accepted.
fn market(hub: &Hub, posted: &Value) {
    match posted["type"].as_str() {
        Some("REQUEST") => {
            hub.put(&identity(9), MessageType::Hello, &json!({"name": "unrelated"}));
            offer(hub, 2, posted, 3.0);
            offer(hub, 3, posted, 1.5);
            offer(hub, 4, posted, 7.0);
        }
        Some("ACCEPT") => {
            let request = &hub.said("REQUEST")[0]["id"];
            let part = json!({"request_id": request, "status": "partial", "data": {"n": 1}});
            let whole = json!({"request_id": request, "status": "success", "data": {"n": 2}});
            hub.put(&identity(2), MessageType::Result, &whole);
            hub.put(&identity(3), MessageType::Result, &part);
            hub.put(&identity(3), MessageType::Result, &whole);
        }
        _ => {}
    }
}

#[tokio::test]
async fn the_cheapest_offer_is_taken_and_its_work_comes_with_its_parts() {
    let (hub, _stage, agent) = hub(market).await;
    let mut inbox = agent.inbox(InboxOptions::default()).await.expect("an inbox");
    let mut parts = Vec::new();
    let how = NegotiationOptions::default()
        .collect_for(Duration::from_millis(300))
        .on_part(|part| parts.push(part.to_owned()));
    let outcome = agent.negotiate(&mut inbox, &order(), how).await.expect("an outcome");
    let RequestOutcome::Done(work) = outcome else { panic!("{outcome:?}") };
    assert_eq!((work.provider, work.data.as_str()), (identity(3).key(), r#"{"n":2}"#));
    assert_eq!(work.cost, Some(Credits::from_micros(1_500_000)));
    assert_eq!(parts, [r#"{"n":1}"#]);
    let accept = &hub.said("ACCEPT")[0];
    assert_eq!(accept["recipient"]["id"], identity(3).did());
    let kept = inbox.next().await.expect("open").expect("an envelope");
    assert_eq!((kept.kind, kept.sender), (MessageType::Hello, identity(9).key()));
}

#[tokio::test]
async fn a_rule_of_ones_own_may_take_another_or_none() {
    let (hub, _stage, agent) = hub(market).await;
    let mut inbox = agent.inbox(InboxOptions::default()).await.expect("an inbox");
    let seen = std::sync::Mutex::new(0);
    let how = NegotiationOptions::default().max_offers(2).choose(|offers| {
        *seen.lock().expect("sound") = offers.len();
        None
    });
    let outcome = agent.negotiate(&mut inbox, &order(), how).await.expect("an outcome");
    assert!(
        matches!(outcome, RequestOutcome::NoOfferAccepted { ref offers, .. } if offers.len() == 2)
    );
    assert_eq!(*seen.lock().expect("sound"), 2, "one was above the budget");
    assert_eq!(hub.said("ERROR").len(), 1, "the order is withdrawn");
}

#[tokio::test]
async fn the_direct_flow_needs_no_offer_and_ends_with_an_error_too() {
    let (_hub, _stage, agent) = hub(|hub, posted| {
        if posted["type"] != "REQUEST" {
            return;
        }
        let id = &posted["id"];
        match posted["payload"]["resource"].as_str() {
            Some("time") => {
                let result = json!({"request_id": id, "status": "success", "data": {}});
                hub.put(&identity(5), MessageType::Result, &result);
                hub.put(&identity(2), MessageType::Result, &result);
            }
            _ => {
                let error = json!({"request_id": id, "code": 418, "message": "teapot"});
                hub.put(&identity(5), MessageType::Error, &error);
                hub.put(&identity(2), MessageType::Error, &error);
            }
        }
    })
    .await;
    let mut inbox = agent.inbox(InboxOptions::default()).await.expect("an inbox");
    let provider = identity(2).key();
    let order = RequestSpec::new("time", "{}").to(provider);
    let done = agent.negotiate(&mut inbox, &order, NegotiationOptions::default()).await;
    assert!(matches!(done, Ok(RequestOutcome::Done(work)) if work.provider == provider));
    let order = RequestSpec::new("tea", "{}").to(provider);
    let failed = agent.negotiate(&mut inbox, &order, NegotiationOptions::default()).await;
    let Ok(RequestOutcome::Failed(failed)) = failed else { panic!("{failed:?}") };
    assert_eq!((failed.by, failed.number, failed.code.number()), (provider, 418, 500));
}
