//! Commands as agents of `a2a` send them: a message that opens a task for an agent or for whichever
//! the hub chooses, with its log followed and often pushed.

use rialto_core::agent::Liveness;
use rialto_core::command::{Command, OpenJobWithWebhook, Registration};
use rialto_core::job::{NamedWorker, Policy, Reassignment, RequesterOptions, Selection};
use rialto_core::testkit::TestHub;
use rialto_core::time::{Millis, Timestamp};

use super::work::webhook;
use super::{enrolment, opened, whom, wish};
use crate::cast::A2A;
use crate::dice::Dice;

/// How long a task may take if its message does not say.
const LIFE: Millis = Millis::hours(24);

pub fn enrol(dice: &mut Dice, n: u64) -> Registration {
    let mut order = enrolment(dice, A2A, n);
    // Some are clients only. The others have a server, which their protocol calls.
    match dice.chance(40) {
        true => order.skills.clear(),
        false => order.liveness = Liveness::ByEndpoint,
    }
    order
}

pub fn next(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let mut order = wish(dice, scene, A2A, now);
    // The hub's id is also the requester's.
    order.foreign_id = order.uuid.to_string();
    order.selection = match dice.roll(12) {
        0 => Selection::Cheapest,
        1 => Selection::RoundRobin,
        2 => Selection::LeastOccupied,
        3 => Selection::BestReputation,
        4 => Selection::Auction { closes: now.plus(Millis::seconds(5)) },
        _ => Selection::Direct(whom(dice, scene, A2A)),
    };
    let by_hub = !matches!(order.selection, Selection::Direct(_));
    let may_be_offline = dice.chance(80);
    order.policy = Policy {
        reassignment: Reassignment {
            when_unreachable: by_hub,
            when_declined: by_hub,
            when_failed: false,
        },
        named_worker: NamedWorker { may_be_offline, not_before: None },
        requester: RequesterOptions {
            waits: true,
            cancels_any_time: true,
            follows_log: true,
            ..RequesterOptions::default()
        },
        ..Policy::default()
    };
    if dice.chance(60) {
        order.deadline = now.plus(LIFE);
    }
    if dice.chance(30) {
        let order = OpenJobWithWebhook { job: order, webhook: webhook(dice) };
        return Some(Command::OpenJobWithWebhook(Box::new(order)));
    }
    opened(order)
}
