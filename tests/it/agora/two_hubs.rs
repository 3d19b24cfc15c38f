//! Two hubs with the same keys: a signed order moves money on at most one of them.

use rialto_protocols::agora::{MessageType, UnsignedEnvelope};
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::{Value, json};

use super::kit::{Hub, Key, Said, assert_error, fresh_id, now};
use super::scene::{SEARCH, credits};
use super::socket::Socket;

const PRICE: i64 = 2;

/// Alice, who can pay on both hubs, and Bob, who offers search on both at a listed price.
struct Twins {
    here: Hub,
    there: Hub,
    alice: Key,
    bob: Key,
}

impl Twins {
    async fn meet() -> Self {
        let (alice, bob) = (Key::of(1), Key::of(2));
        let twins = Self { here: Hub::serve(&[]).await, there: Hub::serve(&[]).await, alice, bob };
        for hub in [&twins.here, &twins.there] {
            hub.fund(&twins.alice, "10").await;
            hub.hello(&twins.alice, json!({})).await;
            hub.provider(&twins.bob, SEARCH, Some(json!(PRICE))).await;
        }
        assert_ne!(twins.here.hub_key().await, twins.there.hub_key().await);
        twins
    }

    /// Posts a captured envelope to the other hub in every possible way.
    async fn replay(&self, said: &Said) {
        let hub = &self.there;
        let paths = [
            "/agora".to_owned(),
            "/agora/envelopes".to_owned(),
            "/agora/envelopes?wait=1".to_owned(),
            format!("/agora/agents/{}", self.bob.did()),
            format!("/agora/agents/{}", self.alice.did()),
            format!("/agora/agents/{}", hub.hub_key().await.did()),
        ];
        for path in paths {
            hub.call("POST", &path, None, Some(&said.text)).await;
        }
        let mut socket = Socket::open(hub).await;
        socket.say(said).await;
        while socket.next().await.is_some() {}
    }

    /// Alice's available and held credits on the other hub, and Bob's earnings there.
    async fn elsewhere(&self) -> ((String, String), String) {
        (self.there.account(&self.alice).await, self.there.spendable(&self.bob).await)
    }
}

/// An envelope for an agent that is valid on one hub only.
fn bound(by: &Key, kind: MessageType, payload: &Value, to: PublicKey, hub: PublicKey) -> Said {
    let (id, payload) = (fresh_id("bound"), payload.to_string());
    let draft = UnsignedEnvelope {
        id: &id,
        timestamp: now(),
        kind,
        payload: &payload,
        recipient: Some(to),
        hub: Some(hub),
        bridge: None,
    };
    let text = by.composer.sign(&draft).expect("a payload").text;
    Said { id, text }
}

fn wish() -> Value {
    json!({"resource": SEARCH, "params": {}, "budget": {"max": 5}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_no_payee_or_another_hub_is_paid_for_on_no_second_hub() {
    let twins = Twins::meet().await;
    let Twins { here, alice, bob, .. } = &twins;
    let hub = here.hub_key().await;
    let requests = [
        (alice.sign(MessageType::Request, &wish()), false),
        (alice.sign_for(MessageType::Request, &wish(), Some(hub)), true),
        (bound(alice, MessageType::Request, &wish(), bob.public(), hub), true),
        (bound(alice, MessageType::Request, &wish(), hub, hub), true),
    ];
    for (request, holds) in &requests {
        here.tell(request).await.expect(202);
        let held = if *holds { PRICE.to_string() } else { "0".to_owned() };
        assert_eq!(here.account(alice).await.1, held, "{}", request.text);
        twins.replay(request).await;
        // Bob tries to be paid twice.
        let answers = [bob.result(&request.id), bob.offer(&request.id, json!(1))];
        for answer in &answers {
            here.tell(answer).await;
            twins.replay(answer).await;
        }
        assert_eq!(twins.elsewhere().await, (credits("10", "0"), "0".to_owned()));
        let withdrawn = alice.error(&request.id, 500);
        here.tell(&withdrawn).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_alone_does_not_name_a_payee() {
    let twins = Twins::meet().await;
    let Twins { there, alice, bob, .. } = &twins;
    let request = alice.sign(MessageType::Request, &wish());
    there.tell_to(bob.did(), &request).await.expect(202);
    assert_eq!(there.account(alice).await, credits("10", "0"));
    // Bob has to make an offer; without one he would work for free by mistake.
    let refused = there.tell(&bob.result(&request.id)).await;
    assert_error(&refused, 400);
    assert!(refused.str("/payload/hint").contains("OFFER"), "{}", refused.text);
    let offer = bob.offer(&request.id, json!(PRICE));
    there.tell(&offer).await.expect(202);
    there.tell(&alice.accept(&offer)).await.expect(202);
    assert_eq!(there.account(alice).await, credits("8", "2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accept_by_the_offers_id_alone_takes_only_an_offer_that_was_read_here() {
    let twins = Twins::meet().await;
    let Twins { here, there, alice, bob } = &twins;
    let reads = here.hello(alice, json!({})).await;
    let request = alice.sign(MessageType::Request, &wish());
    let offer = bob.offer(&request.id, json!(PRICE));
    for hub in [here, there] {
        hub.tell(&request).await.expect(202);
        hub.tell(&offer).await.expect(202);
    }
    let accept = alice.accept_id(&offer.id);
    let unread = here.tell(&accept).await;
    assert_error(&unread, 401);
    assert!(unread.str("/payload/hint").contains("recipient"), "{}", unread.text);
    // As the spec prints it: she read the OFFER from her inbox, and names its id.
    assert_eq!(here.newest(&reads).await, offer.json());
    here.tell(&accept).await.expect(202);
    assert_eq!(here.account(alice).await, credits("8", "2"));
    // Bob has the ACCEPT, and brings it to the hub where his offer was not read.
    twins.replay(&accept).await;
    let result = bob.result(&request.id);
    here.tell(&result).await.expect(202);
    twins.replay(&result).await;
    assert_eq!(twins.elsewhere().await, (credits("10", "0"), "0".to_owned()));
    assert_eq!(here.spendable(bob).await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accept_that_names_a_hub_is_taken_there_and_nowhere_else() {
    let twins = Twins::meet().await;
    let Twins { here, there, alice, bob } = &twins;
    let hub = here.hub_key().await;
    for named in [true, false] {
        let request = alice.sign(MessageType::Request, &wish());
        let offer = bob.offer(&request.id, json!(PRICE));
        for hub in [here, there] {
            hub.tell(&request).await.expect(202);
            hub.tell(&offer).await.expect(202);
        }
        let payload = json!({"offer_id": offer.id});
        let accept = match named {
            true => alice.sign_for(MessageType::Accept, &payload, Some(hub)),
            false => bound(alice, MessageType::Accept, &payload, bob.public(), hub),
        };
        twins.replay(&accept).await;
        assert_eq!(twins.elsewhere().await, (credits("10", "0"), "0".to_owned()));
        here.tell(&accept).await.expect(202);
        here.tell(&accept).await.expect(202);
        assert_eq!(here.account(alice).await.1, "2");
        here.tell(&bob.result(&request.id)).await.expect(202);
    }
    assert_eq!(here.spendable(bob).await, "4");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_names_only_its_payee_pays_only_that_payee_on_any_hub() {
    let twins = Twins::meet().await;
    let Twins { here, there, alice, bob } = &twins;
    let mallory = Key::of(7);
    there.provider(&mallory, SEARCH, Some(json!(1))).await;
    let request = alice.sign(MessageType::Request, &wish());
    for hub in [here, there] {
        hub.tell(&request).await.expect(202);
    }
    let offer = bob.offer(&request.id, json!(PRICE));
    here.tell(&offer).await.expect(202);
    let accept = alice.accept(&offer);
    here.tell(&accept).await.expect(202);
    // Mallory gives her own offer the id of Bob's.
    let terms = json!({"request_id": request.id, "cost": 5, "ttl": 60_000, "eta": 0});
    let false_offer = mallory.sign_at(&offer.id, now(), MessageType::Offer, &terms, None);
    there.tell(&false_offer).await.expect(202);
    twins.replay(&accept).await;
    twins.replay(&alice.accept_id(&offer.id)).await;
    assert_eq!(there.account(alice).await, credits("10", "0"));
    assert_eq!(there.spendable(&mallory).await, "0");
}
