//! The signed actions of agora: one row per message type, with the request it is about and its
//! state.

use std::collections::BTreeSet;

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::{FORGER, SIGNERS, Signer, doors, held};
use crate::agora::kit::{Hub, Key, Said};
use crate::agora::pen::Pen;
use Signer::{Requester, Worker};
use Stage::{Agreed, Direct, Offered, Open};

const RESOURCE: &str = "agora:search:v1";
/// The recipient of messages.
const READER: u8 = 9;

/// The state of the scene's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// One worker was asked by name, without a budget.
    Direct,
    /// Two workers were invited.
    Open,
    /// One of them, the worker, has made an offer.
    Offered,
    /// The requester has accepted it.
    Agreed,
}

/// One action and its permitted signers.
pub struct Row {
    pub signed_action: &'static str,
    pub kind: MessageType,
    pub stage: Stage,
    /// The sender it claims when the signer cannot sign.
    whose: Signer,
    /// Whether it is a message to the reader.
    to_reader: bool,
    payload: fn(&Market) -> Value,
    /// Statuses, by signer.
    expected: [u16; 7],
}

/// A hub, a request and the invited workers.
pub struct Market {
    pub hub: Hub,
    request: String,
    offer: String,
}

impl Market {
    pub async fn open(stage: Stage) -> Self {
        let hub = Hub::serve(&[]).await;
        let [requester, worker, asked, stranger, reader] = [1, 2, 3, 4, READER].map(Key::of);
        hub.fund(&requester, "10").await;
        for one in [&worker, &asked] {
            hub.provider(one, RESOURCE, None).await;
        }
        for one in [&stranger, &reader] {
            hub.hello(one, json!({})).await;
        }
        let inbox = hub.hello(&requester, json!({})).await;
        let request = match stage {
            Direct => {
                let wish = json!({"resource": RESOURCE, "params": {}});
                requester.sign_for(MessageType::Request, &wish, Some(worker.public()))
            }
            _ => requester.request(RESOURCE, json!({"budget": {"max": 6}})),
        };
        tell(&hub, &request).await;
        let mut market = Self { hub, request: request.id, offer: String::new() };
        if matches!(stage, Offered | Agreed) {
            let offer = worker.offer(&market.request, json!(2));
            tell(&market.hub, &offer).await;
            market.offer = offer.id;
            // Accepting by the offer's id alone requires that it was read here.
            let read = json!({"up_to": 1});
            market.hub.post("/agora/inbox/ack", Some(&inbox.0), &read).await.expect(200);
        }
        if stage == Agreed {
            tell(&market.hub, &requester.accept_id(&market.offer)).await;
        }
        market
    }

    /// The row's envelope as this signer sends it.
    pub fn said(&self, row: &Row, by: Signer) -> String {
        let seed = by.seed().or(row.whose.seed()).expect("the row has a signer");
        let pen = Pen::of(seed);
        let mut draft = pen.draft(row.kind.as_str(), (row.payload)(self));
        if row.to_reader {
            draft["recipient"] = json!({"id": Key::of(READER).did()});
        }
        match by {
            Signer::Unsigned => draft.to_string(),
            Signer::Forged | Signer::Operator => Pen::of(FORGER).sign(&draft),
            _ => pen.sign(&draft),
        }
    }

    async fn bring(&self, row: &Row, by: Signer, door: &str) -> u16 {
        // At the path of one agent, which is the other party.
        let other = if row.whose == Requester { Worker } else { Requester };
        let other = if row.to_reader { READER } else { other.seed().expect("a key") };
        let path = door.replace("{id}", Key::of(other).did());
        let key = (by == Signer::Operator).then_some(self.hub.operator.as_str());
        self.hub.call("POST", &path, key, Some(&self.said(row, by))).await.status
    }
}

async fn tell(hub: &Hub, said: &Said) {
    hub.tell(said).await.expect(202);
}

fn profile(_: &Market) -> Value {
    json!({"name": "renamed"})
}

fn greeting(_: &Market) -> Value {
    json!({"nonce": "1"})
}

fn mood(_: &Market) -> Value {
    json!({"status": "busy"})
}

fn wish(_: &Market) -> Value {
    json!({"resource": RESOURCE, "params": {}})
}

fn price(market: &Market) -> Value {
    json!({"request_id": market.request, "cost": 1, "ttl": 60_000, "eta": 0})
}

fn choice(market: &Market) -> Value {
    json!({"offer_id": market.offer})
}

fn outcome(market: &Market) -> Value {
    json!({"request_id": market.request, "status": "success", "data": {"n": 1}})
}

fn part(market: &Market) -> Value {
    json!({"request_id": market.request, "status": "partial", "data": {"n": 1}})
}

fn failure(market: &Market) -> Value {
    json!({"request_id": market.request, "code": 500, "message": "no"})
}

fn complaint(_: &Market) -> Value {
    json!({"code": 500, "message": "no"})
}

/// An update of the sender's own data, valid for its own key only.
const ONESELF: [u16; 7] = [202, 202, 202, 202, 401, 401, 401];

#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    Row { signed_action: "publish its own profile", kind: MessageType::Hello, stage: Open, whose: Worker, to_reader: false,
        payload: profile, expected: [200, 200, 200, 200, 401, 401, 401] },
    Row { signed_action: "send HELLO to an agent", kind: MessageType::Hello, stage: Open, whose: Worker, to_reader: true,
        payload: greeting, expected: ONESELF },
    Row { signed_action: "send WELCOME to an agent", kind: MessageType::Welcome, stage: Open, whose: Worker, to_reader: true,
        payload: greeting, expected: ONESELF },
    Row { signed_action: "publish its own status", kind: MessageType::Status, stage: Open, whose: Worker, to_reader: false,
        payload: mood, expected: ONESELF },
    Row { signed_action: "send STATUS to an agent", kind: MessageType::Status, stage: Open, whose: Worker, to_reader: true,
        payload: mood, expected: ONESELF },
    Row { signed_action: "request a job", kind: MessageType::Request, stage: Open, whose: Requester, to_reader: false,
        payload: wish, expected: ONESELF },

    Row { signed_action: "bid first", kind: MessageType::Offer, stage: Open, whose: Worker, to_reader: false,
        payload: price, expected: [401, 202, 202, 401, 401, 401, 401] },
    Row { signed_action: "bid after another", kind: MessageType::Offer, stage: Offered, whose: Worker, to_reader: false,
        payload: price, expected: [401, 202, 202, 401, 401, 401, 401] },
    Row { signed_action: "bid too late", kind: MessageType::Offer, stage: Agreed, whose: Worker, to_reader: false,
        payload: price, expected: [401, 400, 400, 401, 401, 401, 401] },
    Row { signed_action: "accept an offer", kind: MessageType::Accept, stage: Offered, whose: Requester, to_reader: false,
        payload: choice, expected: [202, 401, 401, 401, 401, 401, 401] },
    Row { signed_action: "accept an offer twice", kind: MessageType::Accept, stage: Agreed, whose: Requester, to_reader: false,
        payload: choice, expected: [400, 401, 401, 401, 401, 401, 401] },

    Row { signed_action: "report a direct request", kind: MessageType::Result, stage: Direct, whose: Worker,
        to_reader: false, payload: outcome, expected: [401, 202, 401, 401, 401, 401, 401] },
    Row { signed_action: "withdraw or refuse a direct request", kind: MessageType::Error, stage: Direct, whose: Requester,
        to_reader: false, payload: failure, expected: [202, 202, 401, 401, 401, 401, 401] },
    Row { signed_action: "report without a price", kind: MessageType::Result, stage: Open, whose: Worker, to_reader: false,
        payload: outcome, expected: [401, 400, 400, 401, 401, 401, 401] },
    Row { signed_action: "report before an agreement", kind: MessageType::Result, stage: Offered, whose: Worker, to_reader: false,
        payload: outcome, expected: [401, 400, 400, 401, 401, 401, 401] },
    Row { signed_action: "report", kind: MessageType::Result, stage: Agreed, whose: Worker, to_reader: false,
        payload: outcome, expected: [401, 202, 400, 401, 401, 401, 401] },
    Row { signed_action: "report a part", kind: MessageType::Result, stage: Agreed, whose: Worker, to_reader: false,
        payload: part, expected: [401, 202, 400, 401, 401, 401, 401] },

    Row { signed_action: "withdraw, or decline to bid", kind: MessageType::Error, stage: Open, whose: Requester, to_reader: false,
        payload: failure, expected: [202, 202, 202, 401, 401, 401, 401] },
    Row { signed_action: "withdraw a request with an offer", kind: MessageType::Error, stage: Offered, whose: Requester, to_reader: false,
        payload: failure, expected: [202, 202, 202, 401, 401, 401, 401] },
    Row { signed_action: "abandon the job", kind: MessageType::Error, stage: Agreed, whose: Worker, to_reader: false,
        payload: failure, expected: [400, 202, 400, 401, 401, 401, 401] },
    Row { signed_action: "send ERROR to an agent", kind: MessageType::Error, stage: Open, whose: Worker, to_reader: true,
        payload: complaint, expected: ONESELF },
];

#[test]
fn every_message_type_has_its_allowed_senders() {
    let all: BTreeSet<&str> = MessageType::ALL.iter().map(|kind| kind.as_str()).collect();
    let rows: BTreeSet<&str> = TABLE.iter().map(|row| row.kind.as_str()).collect();
    assert_eq!(all, rows, "types without a row");
    for row in TABLE {
        assert!(row.expected[4..].iter().all(|status| *status == 401), "{}", row.signed_action);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_envelope_is_accepted_only_from_its_sender() {
    let doors = doors("/agora");
    for row in TABLE {
        let mut market = Market::open(row.stage).await;
        let before = held(&market.hub).await;
        for (by, expected) in SIGNERS.into_iter().zip(row.expected) {
            if expected < 300 {
                continue;
            }
            // The recipient in the path does not change the answer to an unrelated signer.
            for door in &doors {
                let status = market.bring(row, by, door).await;
                assert_eq!(
                    status, expected,
                    "{} ({}) by {by:?} at {door}",
                    row.signed_action, row.kind
                );
            }
            assert_eq!(
                held(&market.hub).await,
                before,
                "{} ({}) by {by:?} was refused",
                row.signed_action,
                row.kind
            );
        }
        for (by, expected) in SIGNERS.into_iter().zip(row.expected) {
            if expected >= 300 {
                continue;
            }
            let status = market.bring(row, by, "/agora/envelopes").await;
            assert_eq!(status, expected, "{} ({}) by {by:?}", row.signed_action, row.kind);
            let after = held(&market.hub).await;
            assert!(after != before, "{} ({}) by {by:?} did nothing", row.signed_action, row.kind);
            market.hub.halt().await;
            market = Market::open(row.stage).await;
        }
        market.hub.halt().await;
    }
}
