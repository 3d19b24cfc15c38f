//! Requesters that choose the same ids.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Stand;
use crate::agora::{Identity, MessageType, Seed};
use crate::clock;

const ID: &str = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

async fn by_agora(stand: &Stand, byte: u8) -> Value {
    let me = Identity::new(&Seed::from_bytes([byte; 32]));
    let payload = format!(r#"{{"resource":"echo","params":{{"by":{byte}}}}}"#);
    let sealed =
        me.sign_with_id(ID, clock::now(), MessageType::Request, &payload, None).expect("sealed");
    stand.post("/agora", sealed.as_str()).await.json()
}

async fn by_relay(stand: &Stand, sender: &str) -> Value {
    let envelope = json!({"chorus_version": "0.4", "sender_id": sender, "original_text": sender,
        "sender_culture": "en", "skill": "echo", "input": {"by": sender}});
    let body = json!({"envelope": envelope}).to_string();
    stand.send(reqwest::Method::POST, "/receive", body, &[("webhook-id", ID)]).await.json()
}

#[tokio::test]
async fn each_gets_its_own_work_under_the_id_it_chose() {
    let stand = Stand::new().await;
    for byte in [1, 2] {
        let answer = by_agora(&stand, byte).await;
        assert_eq!(answer["payload"]["request_id"], ID);
        assert_eq!(answer["payload"]["data"], json!({"by": byte}));
    }
    for sender in ["a@home.example", "b@home.example"] {
        assert_eq!(by_relay(&stand, sender).await["output"], json!({"by": sender}));
    }
    let job = |by: &str| {
        json!({"job_id": ID, "orchestrator_id": by, "skill_name": "echo",
        "input_data": {"by": by}, "budget": 0})
    };
    let reply = stand.post("/jobs", job("a")).await.json();
    assert_eq!((&reply["job_id"], &reply["output_data"]), (&json!(ID), &json!({"by": "a"})));
    assert_eq!(stand.post("/jobs", job("b")).await.status, 409);
    // The handlers see them all as different jobs, and none has an id that a hub could use.
    let ids = stand.works.ids();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 5);
    assert!(!ids.iter().any(|id| id == ID), "{ids:?}");
}
