//! Fixtures of most agora tests: two agents, a request, and what the hub holds.

#![allow(dead_code)]

use rialto_core::reputation::Standing;
use rialto_protocols::agora::{ID, MessageType};
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::{Value, json};

use super::kit::{Hub, Key, Said, Token, assert_error, assert_vouched};
use crate::kit::{Reply, Snapshot, eventually, snapshot};

pub const SEARCH: &str = "agora:search:v1";

/// Alice, a requester with ten credits, and Bob, a provider of search.
pub struct Pair {
    pub hub: Hub,
    pub alice: Key,
    pub bob: Key,
    pub alice_reads: Token,
    pub bob_reads: Token,
}

impl Pair {
    /// Bob makes an offer for each request.
    pub async fn meet() -> Self {
        Self::on(&[], None).await
    }

    /// Bob lists a price.
    pub async fn priced(price: Value) -> Self {
        Self::on(&[], Some(price)).await
    }

    pub async fn on(flags: &[(&str, &str)], price: Option<Value>) -> Self {
        let hub = Hub::serve(flags).await;
        let (alice, bob) = (Key::of(1), Key::of(2));
        hub.fund(&alice, "10").await;
        let alice_reads = hub.hello(&alice, json!({})).await;
        let bob_reads = hub.provider(&bob, SEARCH, price).await;
        Self { hub, alice, bob, alice_reads, bob_reads }
    }

    /// Alice sends a request to Bob or, with a budget, to all providers of search. It names this
    /// hub, so that she can pay.
    pub async fn ask(&self, more: Value) -> Said {
        let hub = self.hub.hub_key().await;
        let request = self.alice.request_for(SEARCH, more, Some(hub));
        assert_eq!(self.hub.told(&request).await, "PENDING");
        request
    }

    /// Bob makes an offer that is valid for a minute.
    pub async fn offer(&self, request: &Said, cost: Value) -> Said {
        let offer = self.bob.offer(&request.id, cost);
        assert_eq!(self.hub.told(&offer).await, "NEGOTIATING");
        offer
    }

    /// Alice asks, Bob offers this price, Alice accepts.
    pub async fn agree(&self, cost: Value, more: Value) -> Said {
        let request = self.ask(more).await;
        let offer = self.offer(&request, cost).await;
        assert_eq!(self.hub.told(&self.alice.accept(&offer)).await, "PROCESSING");
        request
    }

    /// Alice's available and held credits.
    pub async fn account(&self) -> (String, String) {
        self.hub.account(&self.alice).await
    }

    /// Bob's earnings.
    pub async fn earned(&self) -> String {
        self.hub.spendable(&self.bob).await
    }

    /// The state of a request; both parties see the same.
    pub async fn state(&self, request: &Said) -> String {
        let state = self.hub.state_of(&self.alice_reads, &request.id).await;
        assert_eq!(self.hub.state_of(&self.bob_reads, &request.id).await, state);
        state
    }
}

impl Pair {
    /// Waits until a request has failed for both parties.
    pub async fn fails(&self, request: &Said) {
        let state = async || self.hub.state_of(&self.alice_reads, &request.id).await;
        eventually(async || state().await == "FAILED").await;
        assert_eq!(self.state(request).await, "FAILED");
    }
}

/// Amounts as `(available, held)`.
pub fn credits(spendable: &str, held: &str) -> (String, String) {
    (spendable.to_owned(), held.to_owned())
}

fn short(amount: &str) -> String {
    match amount.contains('.') {
        true => amount.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => amount.to_owned(),
    }
}

/// An OFFER with any terms.
pub fn offer(by: &Key, request_id: &str, cost: Value, ttl: Value, eta: Value) -> Said {
    let payload = json!({"request_id": request_id, "cost": cost, "ttl": ttl, "eta": eta});
    by.sign(MessageType::Offer, &payload)
}

impl Hub {
    /// Posts an envelope that is accepted, and returns the state of its request.
    pub async fn told(&self, said: &Said) -> String {
        let reply = self.tell(said).await.expect(202);
        assert_eq!(reply.str("/payload/message_id"), said.id);
        reply.str("/payload/state")
    }

    /// Posts an envelope that is refused with this code, and checks that nothing changed.
    pub async fn refuses(&self, said: &Said, code: u16) -> Reply {
        let before = self.held().await;
        let reply = self.tell(said).await;
        assert_error(&reply, code);
        assert_eq!(reply.str("/payload/message_id"), said.id, "{}", reply.text);
        assert_eq!(self.held().await, before, "a refused envelope changed something");
        reply
    }

    /// Everything a refused envelope could have changed.
    pub async fn held(&self) -> (Snapshot, Vec<String>) {
        let snapshot = snapshot(self).await;
        let boxes = self.engine.with_world(|world| {
            let shown = |id| format!("{:?}", (world.inbox(id).head, world.inbox(id).acked));
            let mut all: Vec<_> = world.agents().map(|one| (one.id, shown(one.id))).collect();
            all.sort_unstable();
            all.into_iter().map(|(_, shown)| shown).collect()
        });
        (snapshot, boxes)
    }

    /// A key's available and held credits, without trailing zeros.
    pub async fn account(&self, key: &Key) -> (String, String) {
        let (spendable, held) = self.balance(&key.owner()).await;
        (short(&spendable), short(&held))
    }

    pub async fn spendable(&self, key: &Key) -> String {
        self.account(key).await.0
    }

    /// The standing of a key's agent.
    pub fn standing_of(&self, did: &str) -> Standing {
        let found = self.engine.with_world(|world| {
            let fixture = world.agent_state(world.agent_by_alias(ID, did)?)?;
            Some(fixture.standing)
        });
        found.expect("an agent")
    }

    /// Waits until an inbox holds this many envelopes, and returns them.
    pub async fn letters_by(&self, token: &Token, count: usize) -> Vec<Value> {
        eventually(async || self.letters(token).await.len() >= count).await;
        self.letters(token).await
    }

    /// Waits until the newest envelope in an inbox has this type, and verifies it.
    pub async fn newest_is(&self, token: &Token, kind: MessageType) -> Value {
        eventually(async || {
            let letters = self.letters(token).await;
            letters.last().is_some_and(|last| last["envelope"]["type"] == kind.as_str())
        })
        .await;
        self.newest(token).await
    }

    /// Waits until the hub's clock is past a time from one of its answers.
    pub async fn past(&self, moment: &str) {
        let moment = rialto_protocols::kit::rfc3339::parse(moment).expect("a moment");
        eventually(async || self.engine.now() >= moment).await;
    }
}

/// An ERROR of the hub about a request, with its receipt.
#[track_caller]
pub fn assert_hub_error(hub: PublicKey, letter: &Value, request: &Said, code: u16) {
    assert_vouched(hub, letter);
    let envelope = &letter["envelope"];
    assert_eq!(envelope["type"], "ERROR", "{envelope}");
    assert_eq!(envelope["sender"]["id"], hub.did(), "{envelope}");
    assert_eq!(envelope["payload"]["code"], code, "{envelope}");
    assert_eq!(envelope["payload"]["request_id"], request.id, "{envelope}");
    assert!(envelope.get("bridge").is_none(), "{envelope}");
}

/// The types of the envelopes of an inbox, in order.
pub fn kinds(letters: &[Value]) -> Vec<&str> {
    letters.iter().filter_map(|letter| letter["envelope"]["type"].as_str()).collect()
}
