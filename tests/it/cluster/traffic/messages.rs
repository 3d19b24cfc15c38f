//! Messages: with a key and retried anywhere, without one and never retried, and to all nodes at
//! once.

use serde_json::json;

use super::cast::Cast;
use crate::cluster::client::{Client, Request};
use crate::cluster::history::Operation;
use crate::kit::Agent;
use crate::relay::kit::turn;

/// Messages of one conversation of the relay: few enough for its loop guard.
const TALK: u64 = 20;

/// A message whose text is its key.
fn message(client: &mut Client, from: &Agent, to: &Agent) -> Request {
    let key = client.fresh_key();
    let operation = Operation::Send { inbox: to.id.clone() };
    let body = json!({"to": to.id, "body": {"text": key}});
    Request::new(operation, key, "/v1/messages").bearer(&from.key).json(&body)
}

/// Sends with a key until there is an answer.
pub async fn send(mut client: Client, cast: Cast, sender: usize) {
    let mut number = 0;
    while !client.is_over() {
        number += 1;
        let to = &cast.receivers[number % cast.receivers.len()];
        let request = message(&mut client, &cast.senders[sender], to).with_key();
        expect_done(&mut client, &request).await;
        if number % 25 == 0 {
            let mut lost = message(&mut client, &cast.senders[sender], to).with_key();
            lost.body = json!({"to": "no such agent", "body": 1}).to_string().into_bytes();
            let reply = client.run(&lost).await;
            if reply.as_ref().is_some_and(|reply| reply.is_done()) {
                let text = format!("a message to no agent was accepted: {reply:?}");
                client.round.history.violation(text);
            }
        }
        client.pause(4).await;
    }
}

/// Sends without a key. It is never sent again: whatever nodes repeat among themselves, it is there
/// at most once.
pub async fn send_without_key(mut client: Client, cast: Cast) {
    while !client.is_over() {
        let (from, node) = (&cast.senders[0], client.any_node());
        let request = message(&mut client, from, &cast.receivers[0]);
        match client.attempt(node, &request).await {
            Some(reply) if reply.is_done() => client.pause(3).await,
            Some(reply) => {
                let text = format!("a message was refused: {}", reply.text);
                client.round.history.violation(text);
            }
            None => client.pause(50).await,
        }
    }
}

/// Sends the same key to all nodes at once.
pub async fn send_everywhere(mut client: Client, cast: Cast) {
    while !client.is_over() {
        let request = message(&mut client, &cast.senders[1], &cast.receivers[1]).with_key();
        client.run_everywhere(&request).await;
        client.pause(20).await;
    }
}

/// Sends turns of the relay, whose place in a conversation identifies them.
pub async fn relay(mut client: Client, cast: Cast) {
    let (from, to) = (&cast.relay_sender, &cast.relay_receiver);
    for number in 1_u64.. {
        if client.is_over() {
            return;
        }
        let key = client.fresh_key();
        let envelope = turn(&from.id, &key, &(number / TALK).to_string(), number);
        let body = json!({"receiver_id": to.id, "envelope": envelope});
        let operation = Operation::Send { inbox: to.id.clone() };
        let request = Request::new(operation, key, "/relay/messages").bearer(&from.key);
        expect_done(&mut client, &request.json(&body)).await;
        client.pause(5).await;
    }
}

async fn expect_done(client: &mut Client, request: &Request) {
    if let Some(reply) = client.run(request).await.filter(|reply| !reply.is_done()) {
        let text = format!("{} was refused at {}: {}", request.path, reply.node, reply.text);
        client.round.history.violation(text);
    }
}
