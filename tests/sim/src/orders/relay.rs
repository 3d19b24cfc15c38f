//! Commands as agents of `relay` send them: a message that hires its receiver, which may be
//! offline.

use rialto_core::agent::Liveness;
use rialto_core::command::{Command, Registration};
use rialto_core::job::{NamedWorker, Queueing, RequesterOptions};
use rialto_core::job::{Policy, Selection};
use rialto_core::testkit::TestHub;
use rialto_core::time::{Millis, Timestamp};

use super::{enrolment, opened, whom, wish};
use crate::cast::RELAY;
use crate::dice::Dice;

pub fn enrol(dice: &mut Dice, n: u64) -> Registration {
    let mut order = enrolment(dice, RELAY, n);
    if dice.chance(40) {
        order.endpoint = Some(format!("https://{}.example", order.native_id));
        order.liveness = Liveness::ByEndpoint;
    }
    order
}

pub fn next(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let mut order = wish(dice, scene, RELAY, now);
    let worker = whom(dice, scene, RELAY);
    order.selection = Selection::Direct(worker);
    let away = !scene.world.is_online(worker, now);
    let queue_unmatched = away && dice.chance(70);
    // Work of agents that reply to each other in a loop is assigned a few seconds later.
    let not_before = dice.chance(10).then(|| now.plus(Millis(dice.within_seconds(5))));
    order.policy = Policy {
        requester: RequesterOptions { answered_at_once: true, ..RequesterOptions::default() },
        queueing: Queueing { when_unmatched: queue_unmatched, ..Queueing::default() },
        named_worker: NamedWorker { not_before, ..NamedWorker::default() },
        ..Policy::default()
    };
    order.deadline = now.plus(order.lease);
    opened(order)
}
