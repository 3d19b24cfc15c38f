//! Shared by the tests of jobs between protocols: addresses, requests, and balances.

use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::kit::{Event, Inbox, Peer, envelope, escaped, turn};
use crate::kit::{Agent, Reply, TestHub};

/// The registry does not wait for results here.
pub const QUICK: &[(&str, &str)] = &[("registry.sync_wait", "1ms")];

/// The relay address of an agent of another protocol, from the relay's own list.
pub async fn address(hub: &TestHub, native: &str) -> String {
    let all = hub.get("/relay/agents", None).await.expect(200).at("/data");
    let found = all.as_array().expect("a list").iter().find(|one| one["native_id"] == native);
    let found = found.unwrap_or_else(|| panic!("{native} is not in {all}"));
    found["agent_id"].as_str().expect("an address").to_owned()
}

/// An envelope with these further members.
pub fn wish(from: &Peer, text: &str, more: Value) -> Value {
    let mut envelope = envelope(&from.id, text);
    let members = envelope.as_object_mut().expect("an object");
    members.extend(more.as_object().expect("an object").clone());
    envelope
}

/// The code and the detail of a text that is an error reply.
#[track_caller]
pub fn error_of(said: &str) -> (String, String) {
    let said: Value =
        serde_json::from_str(said).unwrap_or_else(|_| panic!("not valid JSON: {said}"));
    assert_eq!(said["status"], "error", "{said}");
    let member = |name: &str| said[name].as_str().expect("a text").to_owned();
    (member("error_code"), member("detail"))
}

/// A refusal by the recipient: nothing was stored, and no job was opened.
#[track_caller]
pub fn assert_no(reply: &Reply, detail: &str) {
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.at("/success"), true, "{}", reply.text);
    assert_eq!(reply.str("/data/delivery"), "rejected");
    assert_eq!(reply.header("rialto-job"), None);
    let trace = reply.str("/data/trace_id");
    assert!(trace.parse::<uuid::Uuid>().is_ok(), "{}", reply.text);
    let said = reply.at("/data/receiver_response").to_string();
    let (code, told) = error_of(&said);
    assert_eq!(code, "ADAPTATION_FAILED");
    assert!(told.contains(detail), "{told:?} does not say {detail:?}");
}

/// An envelope has the members of the schema and no others: the reference client refuses more.
#[track_caller]
pub fn assert_strict(envelope: &Value) {
    const KNOWN: [&str; 7] = [
        "chorus_version",
        "sender_id",
        "original_text",
        "sender_culture",
        "cultural_context",
        "conversation_id",
        "turn_number",
    ];
    let mut names = envelope.as_object().expect("an object").keys();
    assert!(names.all(|name| KNOWN.contains(&name.as_str())), "{envelope}");
}

/// The conversation, the turn and the text of a message that the hub wrote for an agent.
#[track_caller]
pub fn bridged(event: &Event, from: &str, protocol: &str) -> (String, u64, String) {
    let envelope = &event.data["envelope"];
    assert_eq!((&event.data["sender_id"], &envelope["sender_id"]), (&json!(from), &json!(from)));
    assert_eq!(envelope["chorus_version"], "0.4");
    assert_eq!(envelope["sender_culture"], "en");
    assert_eq!(event.data["bridge"]["protocol"], protocol, "{}", event.text);
    assert_strict(envelope);
    let conversation = envelope["conversation_id"].as_str().expect("an id").to_owned();
    let turn = envelope["turn_number"].as_u64().expect("a number");
    (conversation, turn, event.said().to_owned())
}

impl TestHub {
    /// Sends an envelope to an address.
    pub async fn mail_to(&self, from: &Peer, to: &str, envelope: &Value) -> Reply {
        let body = json!({"receiver_id": to, "envelope": envelope});
        self.post("/relay/messages", Some(&from.key), &body).await
    }

    /// Grants credits to a relay agent.
    pub async fn fund_peer(&self, peer: &Peer, amount: &str) {
        self.grant(&format!("relay:{}", peer.id), amount).await;
    }

    /// The available and held credits of a relay agent.
    pub async fn account_of(&self, peer: &Peer) -> (String, String) {
        self.balance(&format!("relay:{}", peer.id)).await
    }

    /// The registry alias of a relay agent.
    pub fn registry_name(&self, peer: &Peer) -> Agent {
        let id = self.engine.with_world(|world| {
            let id = world.agent_by_alias(rialto_protocols::relay::ID, &peer.id).expect("an agent");
            world.alias_of(id, rialto_protocols::registry::ID).expect("a name").to_owned()
        });
        Agent { id, key: peer.key.clone(), owner: format!("relay:{}", peer.id) }
    }

    /// Shuts the hub down and starts another on the same data.
    pub async fn again(self, flags: &[(&str, &str)]) -> Self {
        self.restart(Profile::Serve, flags).await
    }

    /// The state of a message or a job, for one of its parties.
    pub async fn traced(&self, by: &Peer, trace: &str) -> Reply {
        self.get(&format!("/relay/messages/{}", escaped(trace)), Some(&by.key)).await
    }
}

/// A relay agent that reads its inbox.
pub async fn reader(hub: &TestHub, name: &str) -> (Peer, Inbox) {
    let peer = hub.join(name).await;
    let inbox = hub.inbox(&peer).await;
    (peer, inbox)
}

/// A registry orchestrator with ten credits.
pub async fn boss(hub: &TestHub) -> Agent {
    let boss = hub.orchestrator("acme").await;
    hub.grant("acme", "10").await;
    boss
}

/// Answers work in its conversation.
pub async fn answer(hub: &TestHub, by: &Peer, given: &Event, text: &str) -> Reply {
    let to = given.data["sender_id"].as_str().expect("an address");
    let conversation = given.data["envelope"]["conversation_id"].as_str().expect("an id");
    hub.mail_to(by, to, &turn(&by.id, text, conversation, 2)).await
}

/// Available and held credits, as the registry prints them.
pub fn account(spendable: &str, held: &str) -> (String, String) {
    (spendable.to_owned(), held.to_owned())
}
