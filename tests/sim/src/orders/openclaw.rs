//! Commands as agents of `openclaw` send them: one agent by id, with terms, wanted times, and an
//! immediate answer.

use std::sync::Arc;

use rialto_core::agent::presence::Stance;
use rialto_core::agent::status::Condition;
use rialto_core::agent::{Liveness, Terms};
use rialto_core::command::{Command, Enrol};
use rialto_core::job::{Policy, Selection};
use rialto_core::testkit::Scene;
use rialto_core::time::{Millis, Timestamp};

use super::{enrolment, opened, whom, wish};
use crate::cast::OPENCLAW;
use crate::dice::Dice;

/// How long the work may take if the request does not say.
const LIFE: Millis = Millis::hours(24);

pub fn enrol(dice: &mut Dice, n: u64, now: Timestamp) -> Enrol {
    let mut order = enrolment(dice, OPENCLAW, n);
    if dice.chance(40) {
        order.endpoint = Some(format!("https://{}.example", order.native));
        order.liveness = Liveness::Reached;
    }
    order.terms = Terms {
        at_once: dice.chance(50).then(|| 1 + dice.roll(2) as u32),
        per_minute: dice.chance(35).then(|| 1 + dice.roll(3) as u32),
        answers_itself: dice.chance(40),
        strict: dice.chance(20),
        urgent_first: true,
    };
    for skill in &mut order.skills {
        skill.approval = dice.chance(25);
        skill.takes = dice.chance(40).then(|| Millis(dice.within_seconds(60)));
    }
    order.condition = Some(condition(dice, now, true));
    order
}

/// A status report, since a time that may be older than that of the previous report.
pub fn condition(dice: &mut Dice, now: Timestamp, mostly_well: bool) -> Condition {
    let well = dice.chance(if mostly_well { 80 } else { 40 });
    let stance = match well {
        true => dice.of([Stance::Idle, Stance::Idle, Stance::Busy]),
        false => dice.of([
            Stance::Error,
            Stance::Broken,
            Stance::Maintenance,
            Stance::Maintenance,
            Stance::Offline,
        ]),
    };
    let until = dice.chance(70).then(|| now.plus(Millis(dice.within_seconds(300))));
    let since = now.plus(Millis(5_000 - dice.within_seconds(60)));
    let words = dice.chance(60).then(|| (since, Arc::from("as it says")));
    Condition { stance, until, words }
}

pub fn next(dice: &mut Dice, scene: &Scene, now: Timestamp) -> Option<Command> {
    let mut order = wish(dice, scene, OPENCLAW, now);
    let worker = whom(dice, scene, OPENCLAW);
    order.selection = Selection::Direct(worker);
    order.policy = Policy { presence_first: true, cancel_any_time: true, ..Policy::default() };
    order.priority = 1 + dice.roll(10) as u8;
    if dice.chance(40) {
        let wanted = now.plus(Millis(dice.within_seconds(400)));
        (order.deadline, order.lease) = (wanted, wanted.since(now));
        order.promised = Some(wanted);
    } else {
        order.deadline = now.plus(LIFE);
    }
    // An input error is reported once the worker is back.
    let desk = scene.world.desk(worker);
    let away = desk.is_some_and(|desk| desk.presence.stance == Stance::Maintenance);
    order.flaw = (away && dice.chance(50)).then(|| "{\"flaw\":1}".to_owned());
    opened(order)
}
