//! One REQUEST to several providers: all may offer, one is chosen, the others are notified (R28,
//! R40, R41, R44, R45).

use serde_json::{Value, json};

use super::kit::{Hub, Key, Said, Token, assert_vouched};
use super::scene::{SEARCH, credits, kinds};
use crate::kit::eventually;

/// Alice with ten credits, and providers of the same resource.
struct Crowd {
    hub: Hub,
    alice: Key,
    alice_reads: Token,
    others: Vec<(Key, Token)>,
}

impl Crowd {
    async fn gather(flags: &[(&str, &str)], count: u8, price: Option<Value>) -> Self {
        let hub = Hub::serve(flags).await;
        let alice = Key::of(1);
        hub.fund(&alice, "10").await;
        let alice_reads = hub.hello(&alice, json!({})).await;
        let mut others = Vec::new();
        for n in 0..count {
            let key = Key::of(10 + n);
            let reads = hub.provider(&key, SEARCH, price.clone()).await;
            others.push((key, reads));
        }
        Self { hub, alice, alice_reads, others }
    }

    async fn ask(&self, more: Value) -> Said {
        let request = self.alice.request(SEARCH, more);
        assert_eq!(self.hub.told(&request).await, "PENDING");
        request
    }

    fn key(&self, n: usize) -> &Key {
        &self.others[n].0
    }

    /// What each provider received, by type.
    async fn heard(&self) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        for (_, reads) in &self.others {
            let letters = self.hub.letters(reads).await;
            all.push(kinds(&letters).into_iter().map(str::to_owned).collect());
        }
        all
    }

    async fn state(&self, request: &Said) -> String {
        self.hub.state_of(&self.alice_reads, &request.id).await
    }
}

#[tokio::test]
async fn one_of_several_offers_is_taken_and_the_other_offerers_are_told_so() {
    let crowd = Crowd::gather(&[], 4, None).await;
    let Crowd { hub, alice, alice_reads, others } = &crowd;
    let request = crowd.ask(json!({"budget": {"max": 6}})).await;
    for (_, reads) in others {
        assert_eq!(hub.newest(reads).await, request.json());
    }
    let mut offers = Vec::new();
    for n in [0, 1, 1, 2] {
        let offer = crowd.key(n).offer(&request.id, json!(n + 1));
        assert_eq!(hub.told(&offer).await, "NEGOTIATING");
        assert_eq!(hub.newest(alice_reads).await, offer.json());
        offers.push(offer);
    }
    let accept = alice.accept(&offers[3]);
    assert_eq!(hub.told(&accept).await, "PROCESSING");
    assert_eq!(hub.account(alice).await, credits("7", "3"));
    // The chosen provider gets the requester's ACCEPT; the others get one envelope of the hub each.
    assert_eq!(hub.newest(&others[2].1).await, accept.json());
    let hub_key = hub.hub_key().await;
    for (n, offer) in [(0, &offers[0]), (1, &offers[1])] {
        let letters = hub.letters(&others[n].1).await;
        assert_eq!(kinds(&letters), ["REQUEST", "STATUS"]);
        assert_vouched(hub_key, &letters[1]);
        let closed = &letters[1]["envelope"];
        assert_eq!(closed["sender"]["id"], hub_key.did());
        assert_eq!(closed["recipient"]["id"], others[n].0.did());
        assert_eq!(closed["payload"]["status"], "offer_closed");
        assert_eq!(closed["payload"]["message_id"], offer.id);
        assert_eq!(closed["payload"]["request_id"], request.id);
    }
    // A provider without an offer is not notified.
    assert_eq!(crowd.heard().await[3], ["REQUEST"]);
    for n in [0, 1, 3] {
        hub.refuses(&crowd.key(n).result(&request.id), 400).await;
        hub.refuses(&crowd.key(n).offer(&request.id, json!(1)), 400).await;
    }
    hub.refuses(&alice.accept(&offers[0]), 400).await;
    assert_eq!(hub.told(&crowd.key(2).result(&request.id)).await, "COMPLETED");
    assert_eq!(hub.spendable(crowd.key(2)).await, "3");
}

#[tokio::test]
async fn an_agent_cannot_start_a_job_that_several_were_invited_to() {
    let crowd = Crowd::gather(&[], 2, Some(json!(1))).await;
    let request = crowd.ask(json!({"budget": {"max": 6}})).await;
    // Nothing is held: the price is not known before an offer.
    assert_eq!(crowd.hub.account(&crowd.alice).await, credits("10", "0"));
    for n in 0..2 {
        crowd.hub.refuses(&crowd.key(n).result(&request.id), 400).await;
        crowd.hub.refuses(&crowd.key(n).partial(&request.id, false), 400).await;
    }
    assert_eq!(crowd.state(&request).await, "PENDING");
}

#[tokio::test]
async fn a_budget_asks_up_to_the_limit_and_no_budget_asks_one() {
    let crowd = Crowd::gather(&[], 10, None).await;
    crowd.ask(json!({"budget": {"max": 6}})).await;
    let asked = async || crowd.heard().await.iter().map(Vec::len).collect::<Vec<_>>();
    // Workers of equal rank are invited in the order of registration.
    assert_eq!(asked().await, [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    crowd.ask(json!({})).await;
    assert_eq!(asked().await, [2, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    let crowd = Crowd::gather(&[("agora.fanout", "3")], 5, None).await;
    // A budget without a maximum also invites offers.
    crowd.ask(json!({"budget": {}})).await;
    let asked: Vec<_> = crowd.heard().await.iter().map(Vec::len).collect();
    assert_eq!(asked, [1, 1, 1, 0, 0]);
}

#[tokio::test]
async fn who_says_no_is_left_out_and_the_others_go_on() {
    let crowd = Crowd::gather(&[], 3, None).await;
    let Crowd { hub, alice, .. } = &crowd;
    let request = crowd.ask(json!({"budget": {"max": 6}})).await;
    let taken_back = crowd.key(0).offer(&request.id, json!(1));
    hub.told(&taken_back).await;
    assert_eq!(hub.told(&crowd.key(0).error(&request.id, 500)).await, "NEGOTIATING");
    assert_eq!(hub.told(&crowd.key(1).error(&request.id, 503)).await, "NEGOTIATING");
    for n in 0..2 {
        hub.refuses(&crowd.key(n).offer(&request.id, json!(1)), 400).await;
        hub.refuses(&crowd.key(n).error(&request.id, 500), 400).await;
        assert_eq!(hub.standing_of(crowd.key(n).did()).outcomes, 0, "it was only invited");
    }
    // Its offer was withdrawn with the departure.
    hub.refuses(&alice.accept(&taken_back), 408).await;
    let offer = crowd.key(2).offer(&request.id, json!(2));
    hub.told(&offer).await;
    hub.told(&alice.accept(&offer)).await;
    assert_eq!(hub.told(&crowd.key(2).result(&request.id)).await, "COMPLETED");
    // Agents that left get no further notices.
    assert_eq!(crowd.heard().await[..2], [["REQUEST"], ["REQUEST"]]);
}

#[tokio::test]
async fn when_all_have_said_no_the_request_fails_with_the_last_error() {
    let crowd = Crowd::gather(&[], 3, None).await;
    let Crowd { hub, alice_reads, .. } = &crowd;
    let request = crowd.ask(json!({"budget": {"max": 6}})).await;
    for (n, code) in [(2, 404), (0, 500)] {
        assert_eq!(hub.told(&crowd.key(n).error(&request.id, code)).await, "PENDING");
    }
    assert_eq!(crowd.state(&request).await, "PENDING");
    let last = crowd.key(1).error(&request.id, 503);
    assert_eq!(hub.told(&last).await, "FAILED");
    assert_eq!(crowd.state(&request).await, "FAILED");
    assert_eq!(hub.newest(alice_reads).await, last.json());
    for n in 0..3 {
        assert_eq!(hub.standing_of(crowd.key(n).did()).failures, 0);
    }
}

#[tokio::test]
async fn a_withdrawal_and_a_timeout_reach_all_invited_agents() {
    let crowd = Crowd::gather(&[], 2, None).await;
    let Crowd { hub, alice, others, .. } = &crowd;
    let request = crowd.ask(json!({"budget": {"max": 6}})).await;
    hub.told(&crowd.key(0).offer(&request.id, json!(1))).await;
    let withdrawal = alice.error(&request.id, 500);
    assert_eq!(hub.told(&withdrawal).await, "FAILED");
    for (_, reads) in others {
        assert_eq!(hub.newest(reads).await, withdrawal.json());
    }
    let request = crowd.ask(json!({"budget": {"max": 6}, "timeout": 500})).await;
    eventually(async || crowd.state(&request).await == "FAILED").await;
    for (_, reads) in others {
        let told = hub.newest(reads).await;
        assert_eq!(told["payload"]["code"], 408, "{told}");
        assert_eq!(told["payload"]["request_id"], request.id);
    }
}
