//! Commands as agents of `registry` send them: a skill by name or an agent by id, credits in cents,
//! callbacks.

use rialto_core::agent::Liveness;
use rialto_core::command::{Command, OpenJobWithWebhook, Registration, UnfitAgent};
use rialto_core::job::{NamedWorker, Policy, Reassignment, RequesterOptions, Selection};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::testkit::TestHub;
use rialto_core::time::Timestamp;

use super::work::webhook;
use super::{enrolment, opened, whom, wish};
use crate::cast::{REGISTRY, somebody};
use crate::dice::Dice;

const PRICE_STEP: PriceStep = PriceStep { decimals: 2, minimum: Credits::ZERO };

pub fn enrol(dice: &mut Dice, n: u64) -> Registration {
    let mut order = enrolment(dice, REGISTRY, n);
    if dice.chance(60) {
        order.endpoint = Some(format!("https://{}.example", order.native_id));
        order.liveness = Liveness::ByEndpoint;
    } else if dice.chance(25) {
        // Its protocol calls it.
        order.liveness = Liveness::ByEndpoint;
    }
    order
}

pub fn next(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let mut order = wish(dice, scene, REGISTRY, now);
    order.price_step = PRICE_STEP;
    order.selection = match dice.roll(8) {
        0..=2 => Selection::Direct(whom(dice, scene, REGISTRY)),
        3 => Selection::Cheapest,
        4 => Selection::Offers,
        _ => Selection::BestReputation,
    };
    let by_hub = matches!(order.selection, Selection::BestReputation | Selection::Cheapest);
    order.policy = Policy {
        reassignment: Reassignment {
            when_unreachable: by_hub,
            when_declined: by_hub,
            ..Reassignment::default()
        },
        named_worker: NamedWorker { may_be_offline: dice.chance(20), not_before: None },
        requester: RequesterOptions {
            waits: dice.chance(30),
            follows_log: dice.chance(25),
            ..RequesterOptions::default()
        },
        ..Policy::default()
    };
    order.callback = dice.chance(40).then(|| "https://caller.example/done".to_owned());
    if dice.chance(10) {
        let agent = somebody(dice, scene);
        order.unfit_agents.push(UnfitAgent { agent, reason: "it takes numbers".to_owned() });
    }
    // A requester that follows its job may name a webhook at once.
    if order.policy.requester.follows_log && dice.chance(40) {
        let webhook = webhook(dice);
        let order = OpenJobWithWebhook { job: order, webhook };
        return Some(Command::OpenJobWithWebhook(Box::new(order)));
    }
    opened(order)
}
