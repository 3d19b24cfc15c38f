//! Every signed message, repeated by every signer: the message type is the operation.

use std::collections::BTreeSet;

use rialto_protocols::agora::MessageType;
use rialto_protocols::clara::Action;
use serde_json::json;

use super::bound::{self, ENVELOPES, ORDERS, REFUSED};
use super::measure::Standing;
use crate::authority::signed::{SIGNERS, Signer, doors, envelopes, items};
use crate::clara::kit::Wallet;

/// How often each signer sends each message.
const TIMES: usize = 4;

#[test]
fn every_type_of_envelope_and_every_order_has_a_bound() {
    let kinds: BTreeSet<&str> = MessageType::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(kinds, ENVELOPES.iter().map(|(kind, _)| *kind).collect());
    let actions: BTreeSet<&str> = Action::ALL.iter().map(|action| action.as_str()).collect();
    assert_eq!(actions, ORDERS.iter().map(|(action, _)| *action).collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_costs_so_much_and_no_more_however_often_and_by_whomever() {
    let mut over = Vec::new();
    for row in envelopes::TABLE {
        let market = envelopes::Market::open(row.stage).await;
        for by in SIGNERS {
            let (before, mut longest, mut sent) = (Standing::of(&market.hub), 0, 0);
            for _ in 0..TIMES {
                let text = market.said(row, by);
                sent = text.len();
                let reply = market.hub.call("POST", "/agora/envelopes", None, Some(&text)).await;
                longest = longest.max(reply.text.len());
            }
            let cost = before.cost_of(&market.hub, TIMES, longest);
            println!("{} by {by:?}: {sent} sent, {cost:?}", row.signed_action);
            let proven = !matches!(by, Signer::Unsigned | Signer::Forged | Signer::Operator);
            let bound = if proven { bound::of(ENVELOPES, row.kind.as_str()) } else { REFUSED };
            let excess = bound.excess(&cost, sent);
            over.extend(excess.map(|excess| format!("{} by {by:?}: {excess}", row.signed_action)));
        }
        market.hub.halt().await;
    }
    assert!(over.is_empty(), "{} cost too much:\n{}", over.len(), over.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_to_the_market_costs_so_much_and_no_more_however_often_and_by_whomever() {
    let mut over = Vec::new();
    let door = &doors("/clara")[0];
    for row in items::TABLE {
        let market = items::Market::open().await;
        // A board that is much longer than a short record.
        let about = json!({"about": "m".repeat(12_000)}).to_string();
        for number in 0..6 {
            let id = format!("long-{number}");
            let tags = [
                ("RedStone-Agent-Topic", "discord"),
                ("RedStone-Agent-Fee", "10"),
                ("RedStone-Agent-Id", id.as_str()),
            ];
            market.hub.act(&Wallet::of(8), "Register-Agent-Profile", &tags, &about).await;
        }
        for by in SIGNERS {
            let name = row.names(by).pop().expect("a name");
            let (before, mut longest) = (Standing::of(&market.hub), 0);
            for _ in 0..TIMES {
                let came = market.bring(row, by, name, door).await;
                let texts = came.iter().flat_map(|came| &came.messages);
                let answered = texts.filter_map(|sent| sent.data.as_ref()).map(String::len).sum();
                longest = longest.max(answered);
            }
            let cost = before.cost_of(&market.hub, TIMES, longest);
            println!("{} by {by:?}: {cost:?}", row.signed_action);
            let bound = match by {
                Signer::Forged | Signer::Operator => REFUSED,
                // Evaluated without a signature, so it changes nothing. Deferred writes of the
                // store may be counted here.
                Signer::Unsigned => bound::Bound {
                    answered: bound::of(ORDERS, row.action.as_str()).answered,
                    ..REFUSED
                },
                _ => bound::of(ORDERS, row.action.as_str()),
            };
            let excess = bound.excess(&cost, 0);
            over.extend(excess.map(|excess| format!("{} by {by:?}: {excess}", row.signed_action)));
        }
        market.hub.0.stop().await;
    }
    assert!(over.is_empty(), "{} cost too much:\n{}", over.len(), over.join("\n"));
}
