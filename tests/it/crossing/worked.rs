//! The worked values of the requirements that concern two protocols (section 9), and identities
//! that differ although they look alike (B5).

use rialto_protocols::agora::MessageType;
use serde_json::json;

use super::books::Balances;
use super::cells::FLAGS;
use crate::agora::kit::{Hub, Key};
use crate::kit::{TestHub, digits};

#[tokio::test(flavor = "multi_thread")]
async fn two_senders_that_use_one_id_are_two_jobs_for_the_worker() {
    const ID: &str = "11111111-1111-1111-1111-111111111111";
    let hub = Hub::serve(FLAGS).await;
    let worker = hub.agent("acme", "summarize", "0", None).await;
    let agents = hub.get("/agora/agents?resource=agora:summarize:v1", None).await.expect(200);
    let alias = agents.str("/agents/0/id");
    let mut uuids = Vec::new();
    let mut readers = Vec::new();
    for sender in [Key::of(1), Key::of(2)] {
        let reads = hub.hello(&sender, json!({})).await;
        let payload = json!({"resource": "agora:summarize:v1", "params": {}});
        let at = crate::agora::kit::now();
        let request = sender.sign_at(ID, at, MessageType::Request, &payload, None);
        let reply = hub.tell_to(&alias, &request).await.expect(202);
        uuids.push(reply.header("rialto-job").expect("an id").to_owned());
        readers.push(reads);
    }
    assert_ne!(uuids[0], uuids[1]);
    let path = format!("/registry/agents/{}/jobs", worker.id);
    let work = hub.get(&path, Some(&worker.key)).await.expect(200).at("/jobs");
    let work = work.as_array().expect("a list").iter();
    let seen: Vec<_> = work.map(|job| job["job_id"].as_str().expect("an id").to_owned()).collect();
    assert_eq!(seen, uuids);
    for (uuid, reads) in uuids.iter().zip(&readers) {
        hub.report(&worker, uuid, "SUCCESS", "0").await.expect(200);
        let result = hub.newest_is(reads, MessageType::Result).await;
        assert_eq!(result["payload"]["request_id"], ID);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_millionth_is_a_cent_in_the_registry_and_a_whole_credit_in_clara() {
    let hub = Hub::serve(FLAGS).await;
    let bob = Key::of(2);
    hub.provider(&bob, "agora:tweet:v1", Some(json!(0.000001))).await;
    let page = hub.get("/registry/discover?skill=tweet", None).await.expect(200);
    assert_eq!(digits(&page.text, "cost_per_call"), "0.01");
    let page = hub.get("/openclaw/agents?capability=tweet", None).await.expect(200);
    assert_eq!(digits(&page.text, "price"), "0.000001");
    let body = json!({"Id": "1234", "Target": rialto_protocols::clara::PROCESS, "Owner": "1234",
        "Anchor": "0", "Data": "", "Tags": [{"name": "Action", "value": "List-Agents"}]});
    let path = format!("/clara/cu/dry-run?process-id={}", rialto_protocols::clara::PROCESS);
    let board = hub.post(&path, None, &body).await.expect(200).str("/Messages/0/Data");
    let board: serde_json::Value = serde_json::from_str(&board).expect("JSON");
    assert_eq!((&board[0]["fee"], &board[0]["topic"]), (&json!("1"), &json!("tweet")), "{board}");
}

/// Only both credentials together could merge them, and no call takes both.
#[tokio::test(flavor = "multi_thread")]
async fn identities_of_two_protocols_are_two_agents_and_two_owners() {
    let hub = TestHub::serve(FLAGS).await;
    let ada = hub.agent("ada", "work", "0", None).await;
    let peer = hub.join("ada@chorus").await;
    hub.grant("ada", "5").await;
    assert_eq!(Balances::of(&hub, "ada"), Balances::with(5_000_000));
    assert_eq!(Balances::of(&hub, &format!("relay:{}", peer.id)), Balances::with(0));
    let page = hub.get("/relay/agents?limit=200", None).await.expect(200).at("/data");
    let names = page.as_array().expect("a list").iter();
    let names: Vec<_> = names.map(|one| one["native_id"].clone()).collect();
    assert_eq!(page.as_array().map(Vec::len), Some(2), "{page}");
    assert!(names.contains(&json!(ada.id)), "{page}");
    hub.stop().await;
}
