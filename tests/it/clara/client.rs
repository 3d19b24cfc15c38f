//! The 23 requests of the real client, in its order (section 6).

use rialto_protocols::clara::PROCESS;
use serde_json::{Value, json};

use super::items::bytes;
use super::kit::{Hub, Wallet};
use crate::kit::Reply;

const FIXTURE: &str =
    include_str!("../../../crates/protocols/src/clara/fixtures/aoconnect_http.json");

/// Replacements for the three bodies that were not recorded.
fn stand_in(number: u64) -> Vec<u8> {
    let tags = [
        ("Action", "Register-Task"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "cheapest"),
    ];
    match number {
        20 => Wallet::of(9).item(&[("Type", "Process")], b""),
        _ => Wallet::of(9).item(&tags, "{\"say\":\"hé 🦀\"}".as_bytes()),
    }
}

async fn replay(hub: &Hub, mu: &str, cu: &str) -> Vec<Reply> {
    let all: Value = serde_json::from_str(FIXTURE).expect("JSON");
    let mut replies = Vec::new();
    for request in all["requests"].as_array().expect("a list") {
        let (number, path) = (request["n"].as_u64(), request["path"].as_str().expect("a path"));
        let reads = ["/result", "/dry-run", "/graphql"].iter().any(|one| path.starts_with(one));
        let base = if reads { cu } else { mu };
        let headers: Vec<(&str, &str)> = request["headers"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|pair| (pair[0].as_str().expect("a name"), pair[1].as_str().expect("a value")))
            .filter(|(name, _)| *name != "content-length")
            .collect();
        let body = match request["body_hex"].as_str() {
            Some(hex) => bytes(hex),
            None => stand_in(number.expect("a number")),
        };
        let method = request["method"].as_str().expect("a method");
        let reply = hub.0.send(method, &format!("{base}{path}"), &headers, &body).await;
        assert!(reply.json().is_object(), "{number:?}: {}", reply.text);
        assert!(!(300..400).contains(&reply.status), "{number:?}");
        replies.push(reply);
    }
    replies
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_of_the_real_client_are_answered_as_it_expects() {
    for (mu, cu) in [("/clara/mu", "/clara/cu"), ("/clara", "/clara"), ("/clara/mu/", "/clara/cu/")]
    {
        let hub = Hub::serve(&[]).await;
        hub.fund(&Wallet::of(9), "1000").await;
        let said = replay(&hub, mu, cu).await;
        let statuses: Vec<u16> = said.iter().map(|reply| reply.status).collect();
        let wanted = [
            202, 200, 200, 202, 202, 200, 202, 202, 200, 200, 200, 200, 202, 200, 404, 200, 200,
            404, 404, 400, 404, 202, 404,
        ];
        assert_eq!(statuses, wanted, "{mu} {cu}");
        let at = |number: usize| said[number - 1].json();
        let id = "6nNtWEkuN97j10aSpM36wMBe0puNHFeR2X3Kni72f1k";
        assert_eq!(at(1), json!({"message": "Processing DataItem", "id": id}));
        assert_eq!(at(2)["Messages"][0]["Data"], "Agent AO_Agent_1 registered in Market");
        let board = at(3)["Messages"][0]["Data"].as_str().expect("text").to_owned();
        let board: Value = serde_json::from_str(&board).expect("JSON");
        assert_eq!(board[0]["id"], "AO_Agent_1");
        // These are about the tasks whose bodies were not recorded.
        assert_eq!(at(6)["Error"], "Agent was not assigned to task");
        assert_eq!(at(9)["Error"], "Agent was not assigned to task");
        assert_eq!(at(10)["edges"].as_array().map(Vec::len), Some(2));
        assert!(at(12)["edges"].as_array().is_some_and(|all| all.len() == 3));
        assert_eq!(at(14)["Error"], "Unknown protocol nil, supported: C.L.A.R.A.");
        assert_eq!(at(16), json!({"message": "ok"}));
        assert_eq!(at(17), json!({"message": "ok"}));
        assert_eq!(at(20), json!({"error": "spawn is not supported"}));
        assert_eq!(at(22)["message"], "Processing DataItem");
        // The client can continue from a cursor of ours.
        let cursor = at(10)["edges"][1]["cursor"].as_str().expect("a cursor").to_owned();
        let path = format!("{cu}/results/{PROCESS}?from={cursor}&sort=ASC&limit=25");
        let rest = hub.get(&path, None).await.expect(200);
        assert_eq!(rest.at("/edges/0/cursor"), at(12)["edges"][2]["cursor"]);
        let task = at(4)["id"].as_str().expect("an id").to_owned();
        let path = format!("{mu}?process-id={PROCESS}&assign={task}&base-layer&exclude=Data,Tags");
        let known = hub.call("POST", &path, None, None).await.expect(202);
        assert_eq!(known.json(), json!({"message": "Processing Assignment", "id": task}));
        hub.0.stop().await;
    }
}
