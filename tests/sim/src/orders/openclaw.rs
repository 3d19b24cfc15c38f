//! Commands as agents of `openclaw` send them: one agent by id, with terms, wanted times, and an
//! immediate answer.

use std::sync::Arc;

use rialto_core::agent::presence::Availability;
use rialto_core::agent::status::AgentStatusUpdate;
use rialto_core::agent::{Capacity, JobIntake};
use rialto_core::agent::{Liveness, Terms};
use rialto_core::command::{Command, Registration};
use rialto_core::job::RequesterOptions;
use rialto_core::job::{Policy, Selection};
use rialto_core::testkit::TestHub;
use rialto_core::time::{Millis, Timestamp};

use super::{enrolment, opened, whom, wish};
use crate::cast::OPENCLAW;
use crate::dice::Dice;

/// How long the work may take if the request does not say.
const LIFE: Millis = Millis::hours(24);

pub fn enrol(dice: &mut Dice, n: u64, now: Timestamp) -> Registration {
    let mut order = enrolment(dice, OPENCLAW, n);
    if dice.chance(40) {
        order.endpoint = Some(format!("https://{}.example", order.native_id));
        order.liveness = Liveness::ByEndpoint;
    }
    order.terms = Terms {
        capacity: Capacity {
            max_concurrent_jobs: dice.chance(50).then(|| 1 + dice.roll(2) as u32),
            max_starts_per_minute: dice.chance(35).then(|| 1 + dice.roll(3) as u32),
        },
        intake: JobIntake {
            confirms_jobs: dice.chance(40),
            strict_input: dice.chance(20),
            urgent_first: true,
        },
    };
    for skill in &mut order.skills {
        skill.needs_approval = dice.chance(25);
        skill.expected_duration = dice.chance(40).then(|| Millis(dice.within_seconds(60)));
    }
    order.status = Some(condition(dice, now, true));
    order
}

/// A status report, since a time that may be older than that of the previous report.
pub fn condition(dice: &mut Dice, now: Timestamp, mostly_well: bool) -> AgentStatusUpdate {
    let well = dice.chance(if mostly_well { 80 } else { 40 });
    let availability = match well {
        true => dice.of([Availability::Idle, Availability::Idle, Availability::Busy]),
        false => dice.of([
            Availability::Error,
            Availability::Broken,
            Availability::Maintenance,
            Availability::Maintenance,
            Availability::Offline,
        ]),
    };
    let until = dice.chance(70).then(|| now.plus(Millis(dice.within_seconds(300))));
    let since = now.plus(Millis(5_000 - dice.within_seconds(60)));
    let words = dice.chance(60).then(|| (since, Arc::from("as it says")));
    AgentStatusUpdate { availability, until, words }
}

pub fn next(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let mut order = wish(dice, scene, OPENCLAW, now);
    let worker = whom(dice, scene, OPENCLAW);
    order.selection = Selection::Direct(worker);
    order.policy = Policy {
        requester: RequesterOptions {
            answered_at_once: true,
            cancels_any_time: true,
            ..RequesterOptions::default()
        },
        ..Policy::default()
    };
    order.priority = 1 + dice.roll(10) as u8;
    if dice.chance(40) {
        let wanted = now.plus(Millis(dice.within_seconds(400)));
        (order.deadline, order.lease) = (wanted, wanted.since(now));
        order.wanted_by = Some(wanted);
    } else {
        order.deadline = now.plus(LIFE);
    }
    // An input error is reported once the worker is back.
    let agent_state = scene.world.agent_state(worker);
    let away = agent_state
        .is_some_and(|agent_state| agent_state.presence.availability == Availability::Maintenance);
    order.input_error = (away && dice.chance(50)).then(|| "{\"flaw\":1}".to_owned());
    opened(order)
}
