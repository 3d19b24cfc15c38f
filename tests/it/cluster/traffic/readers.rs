//! Readers: accounts, inboxes, the ledger and statistics at any node, streams that change nodes, and
//! keys that are used where they were not made.

use std::time::Duration;

use super::cast::Cast;
use crate::cluster::client::{Client, Request, cents};
use crate::cluster::history::{Operation, Seen, StreamEvent};
use crate::kit::{Agent, operator_key};
use crate::relay::kit::{Event, events};

/// Reads the accounts of the payers.
pub async fn read_accounts(mut client: Client, cast: Cast) {
    let key = operator_key();
    let owners: Vec<String> = cast.owners();
    while !client.is_over() {
        let owner = &owners[client.dice.roll(owners.len() as u64) as usize];
        let (node, path) =
            (client.any_node(), format!("/v1/accounts/{}", owner.replace(' ', "%20")));
        if let Some((seen, begin, end)) = client.read(node, &path, Some(&key)).await {
            let (available, held) = (cents(&seen["available"]), cents(&seen["held"]));
            let seen = Seen::Account { owner: owner.clone(), available, held };
            client.record(node, (begin, end), seen);
        }
        client.pause(8).await;
    }
}

/// Reads the newest positions of inboxes, and the newest entry of the ledger.
pub async fn read_inboxes(mut client: Client, cast: Cast) {
    let operator = operator_key();
    while !client.is_over() {
        let reader = &cast.receivers[client.dice.roll(cast.receivers.len() as u64) as usize];
        let node = client.any_node();
        let path = "/v1/inbox?after=0&limit=1";
        if let Some((seen, begin, end)) = client.read(node, path, Some(&reader.key)).await {
            let head = seen["head"].as_u64().unwrap_or_default();
            client.record(node, (begin, end), Seen::Inbox { agent: reader.id.clone(), head });
        }
        let node = client.any_node();
        let path = "/v1/ledger?limit=1";
        if let Some((seen, begin, end)) = client.read(node, path, Some(&operator)).await {
            let newest = seen["items"][0]["id"].as_u64().unwrap_or_default();
            client.record(node, (begin, end), Seen::Ledger { newest });
        }
        client.pause(8).await;
    }
}

/// Reads statistics, which may be up to a second old.
pub async fn read_statistics(mut client: Client) {
    let key = operator_key();
    while !client.is_over() {
        let node = client.any_node();
        let read = client.read(node, "/v1/operator/stats", Some(&key)).await;
        if let Some((seen, begin, end)) = read {
            let jobs = seen["jobs_opened"].as_u64().unwrap_or_default();
            client.record(node, (begin, end), Seen::Statistics { jobs });
        }
        client.pause(30).await;
    }
}

/// Makes a new key at one node and uses it at another at once.
pub async fn change_keys(mut client: Client, agent: Agent) {
    let mut key = agent.key;
    while !client.is_over() {
        let node = client.any_node();
        let step = Operation::Step { protocol: "keys" };
        let request = Request::new(step, client.fresh_key(), "/v1/keys/rotate").bearer(&key);
        let Some(reply) = client.attempt(node, &request).await else {
            // The old key is valid for ten more minutes, whether there is a new one or not.
            client.pause(100).await;
            continue;
        };
        let Some(new) = reply.json()["key"].as_str().map(str::to_owned) else {
            let text = format!("no new key at {node}: {}", reply.text);
            client.round.history.violation(text);
            return;
        };
        for node in 0..client.round.urls.len() {
            let answer = client.get(node, "/v1/me", Some(&new)).await;
            if let Some((status, text)) = answer.filter(|(status, _)| *status != 200) {
                let made = reply.node;
                let text = format!("a key made at {made} got {status} at {node}: {text}");
                client.round.history.violation(text);
            }
        }
        key = new;
        client.pause(200).await;
    }
}

/// How an inbox is streamed.
#[derive(Clone, Debug)]
pub struct InboxStream {
    agent: Agent,
    path: &'static str,
    text: fn(&Event) -> Option<&str>,
}

fn v1_text(event: &Event) -> Option<&str> {
    event.data["body"]["text"].as_str()
}

fn relay_text(event: &Event) -> Option<&str> {
    event.data["envelope"]["original_text"].as_str()
}

impl InboxStream {
    pub fn v1(agent: &Agent) -> Self {
        Self { agent: agent.clone(), path: "/v1/events", text: v1_text }
    }

    pub fn relay(agent: &Agent) -> Self {
        Self { agent: agent.clone(), path: "/relay/agent/inbox", text: relay_text }
    }
}

/// Follows an inbox over all nodes: every few events, and whenever a connection ends, it goes on at
/// another node after the last event.
pub async fn follow(mut client: Client, stream: InboxStream) {
    let (mut last, mut node) = (0, client.any_node());
    while !client.is_over() {
        read_some(&mut client, &stream, node, &mut last).await;
        node = client.other_node(node);
        client.pause(10).await;
    }
}

/// One connection, until it ends or enough was read.
async fn read_some(client: &mut Client, stream: &InboxStream, node: usize, last: &mut u64) {
    let request = client.round.http.get(format!("{}{}", client.round.urls[node], stream.path));
    let request = request.bearer_auth(&stream.agent.key).header("last-event-id", last.to_string());
    // A paused node accepts connections and answers nothing.
    let Ok(Ok(mut answer)) = tokio::time::timeout(Duration::from_secs(7), request.send()).await
    else {
        return;
    };
    let status = answer.status().as_u16();
    if status != 200 {
        let text = answer.text().await.unwrap_or_default();
        if ![429, 503, 507].contains(&status) {
            let text = format!("a stream after {last} got {status} at {node}: {text}");
            client.round.history.violation(text);
        }
        return;
    }
    let (mut bytes, mut count) = (Vec::new(), 3 + client.dice.roll(40));
    while !client.is_over() && count > 0 {
        let chunk = tokio::time::timeout(Duration::from_millis(700), answer.chunk()).await;
        let Ok(Ok(Some(more))) = chunk else { return };
        bytes.extend_from_slice(&more);
        for event in events(&mut bytes).into_iter().filter(|event| event.event == "message") {
            let text = (stream.text)(&event).unwrap_or_default().to_owned();
            let position = event.position();
            if position != *last + 1 {
                let inbox = &stream.agent.id;
                let text = format!("{inbox}: {position} came after {last} at node {node}");
                client.round.history.violation(text);
            }
            *last = position;
            count = count.saturating_sub(1);
            let event = StreamEvent { at: client.round.history.now(), node, position, text };
            client.round.history.add_event(&stream.agent.id, event);
        }
    }
}
