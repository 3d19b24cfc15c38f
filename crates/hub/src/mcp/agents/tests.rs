//! Tests of the catalogue with an engine in memory and no network.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use rialto_core::agent::Skill;
use rialto_core::job::State;
use rialto_protocols::adapter::caller::Credential;
use rialto_protocols::kit::query::Query;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::AgentsCatalogue;
use super::definition::Definition;
use super::offered_skill::OfferedSkill;
use super::pin::pin_of;
use crate::mcp::caller::McpCaller;
use crate::mcp::catalogue::Catalogue;
use crate::mcp::wire::message::{ClientRequest, Message};
use crate::mcp::wire::progress::Outgoing;
use crate::mcp::wire::version::Era;
use crate::v1::tests::kit::{Agent, Hub};

fn request(method: &str, params: Value) -> ClientRequest {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let (outgoing, _) = Outgoing::new();
    match Message::read(body.as_bytes(), &HeaderMap::new(), outgoing) {
        Ok(Message::Request(request)) => *request,
        other => panic!("{other:?}"),
    }
}

async fn caller(hub: &Hub, agent: &Agent) -> McpCaller {
    let request = Hub::request(http::Method::POST, "/mcp", &agent.key, "");
    let (mut parts, _) = request.into_parts();
    let credential = Credential::of(&hub.engine, &mut parts);
    McpCaller::authenticate(&hub.context, credential).await.expect("a caller")
}

/// The result of a request of the old era.
async fn result(hub: &Hub, by: &Agent, names: &str, method: &str, params: Value) -> Value {
    let caller = caller(hub, by).await;
    let catalogue = AgentsCatalogue::open(hub.context.clone(), caller, names, &Query::default());
    let catalogue = Arc::new(catalogue.expect("known agents"));
    let result = catalogue.call(request(method, params)).await.expect("a result");
    let message = result.write("1", Era::Old, "{}");
    serde_json::from_str::<Value>(&message).expect("JSON")["result"].take()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_longer_than_fifty_seconds_says_how_to_go_on() {
    let hub = Hub::start().await;
    let buyer = hub.enrol("buyer", "buyer", None).await;
    hub.grant("buyer", "1").await;
    hub.enrol("slow", "slow", Some(("think", "0.25"))).await;
    let begun = Instant::now();
    let call = json!({"name": "think", "arguments": {"text": "a"}});
    let answered = result(&hub, &buyer, "slow", "tools/call", call).await;
    let waited = begun.elapsed();
    // The paused clock also jumps while the engine works, so there is no upper bound.
    assert!(waited >= Duration::from_secs(50), "{waited:?}");
    assert_eq!(answered["isError"], true, "{answered}");
    assert_eq!(answered["_meta"]["rialto/error"]["code"], "not_finished");
    let job = &answered["_meta"]["rialto/job"];
    assert_eq!((&job["state"], &job["paid"]), (&json!("assigned"), &json!("0.00")), "{answered}");
    let text = answered["content"][0]["text"].as_str().expect("text");
    let id = job["job_id"].as_str().expect("an id");
    assert!(text.starts_with("not_finished: job ") && text.contains("get_job"), "{text}");
    assert!(text.contains(id), "{text}");
    // It goes on.
    let job =
        hub.engine.with_world(|world| world.job_by_uuid(id.parse().expect("a UUID")).cloned());
    assert_eq!(job.expect("it lives").state, State::Assigned);
}

#[tokio::test]
async fn a_price_by_offer_is_bounded_by_the_cap() {
    let hub = Hub::start().await;
    let buyer = hub.enrol("buyer", "buyer", None).await;
    hub.grant("buyer", "5").await;
    let offering = Skill { by_offer: true, ..Hub::skill("paint", "0") };
    let fine = Hub::skill("fine", "0.000001");
    hub.enrol_with("artist", "artist", vec![offering, fine], None).await;
    let listed = result(&hub, &buyer, "artist", "tools/list", json!({})).await;
    let text = |at: usize| listed["tools"][at]["description"].as_str().expect("text").to_owned();
    assert!(text(0).contains("a price that it names for each call, at most 1.00"), "{listed}");
    assert_eq!(listed["tools"][0]["annotations"]["destructiveHint"], true);
    assert!(text(1).contains("for 0.01 credits"), "what is paid: {listed}");
    let pin = |skill: Skill| {
        let hub = &hub;
        async move {
            let name = skill.by_offer.to_string();
            let agent = hub.enrol_with(&name, &name, vec![skill], None).await;
            let offered = hub.engine.with_world(|world| OfferedSkill::load_all(world, &[agent.id]));
            pin_of(&offered.into_iter().map(Definition::of).collect::<Vec<_>>())
        }
    };
    let free = pin(Hub::skill("paint", "0")).await;
    let by_offer = pin(Skill { by_offer: true, ..Hub::skill("paint", "0") }).await;
    assert_ne!(free, by_offer, "a free skill that becomes one by offer is another one");

    let call = json!({"name": "paint", "arguments": {"text": "a"}});
    let calling = result(&hub, &buyer, "artist", "tools/call", call);
    let budget = async {
        loop {
            let jobs = hub.engine.with_world(|world| {
                let mut jobs = world.jobs_requested_by(buyer.id);
                jobs.next().map(|job| job.payment.budget.to_text(2))
            });
            match jobs {
                Some(budget) => return budget,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::select! {
        budget = budget => assert_eq!(budget, "1.00"),
        answered = calling => panic!("{answered}"),
    }
}
